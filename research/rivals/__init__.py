"""Other methods to compare with: the paper's baselines, capacity controls, and fairness without demographics.

- `baselines`: `make_baseline` builds the paper's baselines, the controls and the rivals by name, ready to fit;
- `partitions`: TreeLR, and the paper's manual partition of Arrest;
- `tuning`: the same search of settings for all rivals, on selection rows without demographics (Antigone);
- `training`: trains one linear model against weights of the rows;
- `dro`, `arl`, `bpf`, `jtt`, `george`: one model each, with other weights of the rows;
- `zafar`: one linear classifier for each group of an attribute, with constraints;
- `shared_latent`, `influence_sampling`: rivals that need the attribute of some rows.

A new way to weight rows is a `Weighting` and a subclass of `RivalClassifier`, with a name in `baselines`.
README.md beside this file says whom each of them harms.
"""

from research.rivals.baselines import BASELINES, RIVALS, make_baseline

__all__ = ["BASELINES", "RIVALS", "make_baseline"]
