"""Other methods to compare with: the paper's baselines, capacity controls, and fairness without demographics.

- `baselines`: `make_baseline` builds the paper's baselines, the controls and the rivals by name, ready to fit;
- `tuning`: the same search of settings for all of them, on selection rows without demographics;
- `training`: trains one model, linear or a network, against weights of the rows; shared by all methods below;
- `base`: the scikit-learn contract that they share;
- `dro`: the worst group of a given size, by distributionally robust optimisation;
- `arl`: an adversary that weights regions of columns and label;
- `bpf`: the worst rows of a given share, Pareto-optimal (blind Pareto fairness);
- `jtt`: a second training in which the errors of the first count more;
- `george`: the worst of hidden subclasses, found by clustering;
- `zafar` and `convex_concave`: groups of an attribute that prefer their own classifiers, and the solver behind it;
- `residual_boosting`: a control, small trees on the residuals of the pooled classifier.

A new baseline gets its name in `baselines`, with a partition of its own in `dafh.partitions` if it needs one, and a
line in the tables of `dafh.study.tables` that should show it. If it divides rows by attributes, name it in
`dafh.study.methods.BY_ATTRIBUTES` too, so that those are taken out of X. A new way to weight rows is a `Weighting` and
a subclass of `RivalClassifier`, in a file of its own, with a line in
`dafh.study.rivals`.
"""

from dafh.rivals.arl import ARLClassifier
from dafh.rivals.baselines import BASELINES, make_baseline
from dafh.rivals.bpf import BlindParetoClassifier
from dafh.rivals.dro import DROClassifier
from dafh.rivals.george import GeorgeClassifier
from dafh.rivals.jtt import JTTClassifier
from dafh.rivals.residual_boosting import ResidualBoostingClassifier
from dafh.rivals.tuning import Tuning, tune
from dafh.rivals.zafar import ZafarClassifier

__all__ = [
    "BASELINES",
    "ARLClassifier",
    "BlindParetoClassifier",
    "DROClassifier",
    "GeorgeClassifier",
    "JTTClassifier",
    "ResidualBoostingClassifier",
    "Tuning",
    "ZafarClassifier",
    "make_baseline",
    "tune",
]
