"""Other methods, to compare with: the paper's comparators and the capacity controls, by name.

- `baselines`: `make_baseline` builds each of them, ready to fit.

A new method to compare with belongs here, with its name in `baselines`; the study then takes it as it takes the others.
"""

from dafh.rivals.baselines import BASELINES, make_baseline

__all__ = ["BASELINES", "make_baseline"]
