"""Other methods to compare with: the paper's baselines and capacity controls.

- `baselines`: `make_baseline` builds each of them by name, ready to fit.

A new method belongs here, with its name in `baselines`; the study then runs it like the others.
"""

from dafh.rivals.baselines import BASELINES, make_baseline

__all__ = ["BASELINES", "make_baseline"]
