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
- `zafar`: groups of an attribute that prefer their own classifiers;
- `shared_latent`: parity for an attribute that a second data set teaches to predict;
- `influence_sampling`: rows acquired to reduce the disparity of decisions;
- `residual_boosting`: a control, small trees on the residuals of the pooled classifier.

A new way to weight rows is a `Weighting` and a subclass of `RivalClassifier`, with a name in `baselines`.
"""

from research.rivals.arl import ARLClassifier
from research.rivals.baselines import BASELINES, RIVALS, make_baseline
from research.rivals.bpf import BlindParetoClassifier
from research.rivals.dro import DROClassifier
from research.rivals.george import GeorgeClassifier
from research.rivals.influence_sampling import InfluenceSamplingClassifier
from research.rivals.jtt import JTTClassifier
from research.rivals.residual_boosting import ResidualBoostingClassifier
from research.rivals.shared_latent import SharedLatentClassifier
from research.rivals.tuning import Tuning, tune
from research.rivals.zafar import ZafarClassifier

__all__ = [
    "BASELINES",
    "RIVALS",
    "ARLClassifier",
    "BlindParetoClassifier",
    "DROClassifier",
    "GeorgeClassifier",
    "InfluenceSamplingClassifier",
    "JTTClassifier",
    "ResidualBoostingClassifier",
    "SharedLatentClassifier",
    "Tuning",
    "ZafarClassifier",
    "make_baseline",
    "tune",
]
