"""Other methods to compare with: the paper's baselines, capacity controls, and fairness without demographics.

- `baselines`: `make_baseline` builds the paper's baselines and the controls by name, ready to fit;
- `training`: trains one model, linear or a network, against weights of the rows; shared by all methods below;
- `base`: the scikit-learn contract that they share;
- `dro`: the worst group of a given size, by distributionally robust optimisation.

A new baseline gets its name in `baselines`, with a partition of its own in `dafh.partitions` if it needs one, and a
line in the tables of `dafh.study.tables` that should show it. If it divides rows by attributes, name it in
`dafh.study.methods.BY_ATTRIBUTES` too, so that those are taken out of X. A new way to weight rows is a `Weighting` and
a subclass of `RivalClassifier`, in a file of its own.
"""

from dafh.rivals.baselines import BASELINES, make_baseline
from dafh.rivals.dro import DROClassifier

__all__ = ["BASELINES", "DROClassifier", "make_baseline"]
