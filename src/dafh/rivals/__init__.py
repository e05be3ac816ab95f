"""Other methods to compare with: the paper's baselines and capacity controls.

- `baselines`: `make_baseline` builds each of them by name, ready to fit.

A new baseline gets its name in `baselines`, with a partition of its own in `dafh.partitions` if it needs one, and a
line in the tables of `dafh.study.tables` that should show it. If it divides rows by attributes, name it in
`dafh.study.methods.BY_ATTRIBUTES` too, so that those are taken out of X.
"""

from dafh.rivals.baselines import BASELINES, make_baseline

__all__ = ["BASELINES", "make_baseline"]
