"""Constructor parameters of estimators: which a file may hold, and in which range.

Only parameters that say what a model is are written, and only where they differ from the default. How it is run is the
reader's business: `n_jobs`, `memory`, `verbose`, `warm_start` and the like are never read from a file, which could
otherwise start processes or name a folder of pickles as a cache.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from dafh.checks.parameters import NOTHING, Allowed, Constraints, number, one_of, sequence_of, whole_number
from dafh.evaluation.losses import LOSS_NAMES
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, NotPlainError

# Seeds end here; parameters that decide how long a refit takes have limits of their own.
_LARGEST_WHOLE = 2**32 - 1
_LONGEST_LIST = 100

_FLAG = Allowed("a bool", lambda value: isinstance(value, bool))
_POSITIVE = number(0, 1e12)
_NOT_NEGATIVE = number(0, 1e12, closed="left")
_SHARE = number(0, 1, closed="neither")
_MANY = Allowed("an int from 1 to 1,000,000", lambda value: whole_number(1).holds(value) and value <= 1_000_000)
_SEED = Allowed("an int or None", lambda value: value is None or whole_number(0).holds(value))
_CLASS_WEIGHT = Allowed(
    "None, 'balanced' or weights",
    lambda value: (
        value is None or value == "balanced" or (isinstance(value, dict) and all(map(_POSITIVE.holds, value.values())))
    ),
)

COSTS = Allowed(
    "positive numbers for fp and fn",
    lambda value: isinstance(value, dict) and set(value) == {"fp", "fn"} and all(map(_POSITIVE.holds, value.values())),
)
LOSSES = Allowed(
    "one or more losses",
    lambda value: isinstance(value, tuple) and len(value) > 0 and all(map(one_of(*LOSS_NAMES).holds, value)),
)

_LOGISTIC: Constraints = {
    "C": (_POSITIVE,),
    "penalty": (one_of("l1", "l2", "elasticnet"), NOTHING),
    "l1_ratio": (number(-1, 1, closed="right"), NOTHING),
    "dual": (_FLAG,),
    "tol": (_POSITIVE,),
    "fit_intercept": (_FLAG,),
    "intercept_scaling": (_POSITIVE,),
    "class_weight": (_CLASS_WEIGHT,),
    "random_state": (_SEED,),
    "solver": (one_of("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"),),
    "max_iter": (_MANY,),
}
_BOOSTING: Constraints = {
    "loss": (one_of("log_loss"),),
    "learning_rate": (_POSITIVE,),
    "max_iter": (_MANY,),
    "max_leaf_nodes": (_MANY, NOTHING),
    "max_depth": (_MANY, NOTHING),
    "min_samples_leaf": (_MANY,),
    "l2_regularization": (_NOT_NEGATIVE,),
    "max_features": (number(0, 1, closed="right"),),
    "max_bins": (Allowed("2 to 255", lambda value: whole_number(2).holds(value) and value <= 255),),
    "categorical_features": (one_of("from_dtype"), NOTHING),
    "early_stopping": (_FLAG, one_of("auto")),
    "scoring": (one_of("loss"), NOTHING),
    "validation_fraction": (_SHARE, NOTHING),
    "n_iter_no_change": (_MANY,),
    "tol": (_NOT_NEGATIVE,),
    "random_state": (_SEED,),
    "class_weight": (_CLASS_WEIGHT,),
}
_WIDTH = Allowed("1 to 16,384", lambda value: whole_number(1).holds(value) and value <= 2**14)
_NETWORK: Constraints = {
    "hidden_layer_sizes": (_WIDTH, sequence_of(_WIDTH, "layers")),
    "activation": (one_of("identity", "logistic", "tanh", "relu"),),
    "solver": (one_of("lbfgs", "sgd", "adam"),),
    "alpha": (_NOT_NEGATIVE,),
    "batch_size": (_MANY, one_of("auto")),
    "learning_rate": (one_of("constant", "invscaling", "adaptive"),),
    "learning_rate_init": (_POSITIVE,),
    "power_t": (_NOT_NEGATIVE,),
    "max_iter": (_MANY,),
    "shuffle": (_FLAG,),
    "random_state": (_SEED,),
    "tol": (_NOT_NEGATIVE,),
    "momentum": (number(-1, 1, closed="right"),),
    "nesterovs_momentum": (_FLAG,),
    "early_stopping": (_FLAG,),
    "validation_fraction": (_SHARE,),
    "beta_1": (number(0, 1, closed="left"),),
    "beta_2": (number(0, 1, closed="left"),),
    "epsilon": (_POSITIVE,),
    "n_iter_no_change": (_MANY,),
    "max_fun": (_MANY,),
}


@dataclass(frozen=True)
class Buildable:
    """A class that is built from plain parameters."""

    build: Callable[..., BaseEstimator]
    allowed: Constraints
    ignored: frozenset[str] = frozenset({"n_jobs", "verbose", "warm_start", "copy"})
    """Parameters that are left at their default whatever they were."""


BUILDABLE: dict[str, Buildable] = {
    "default logistic regression": Buildable(
        StandardizedLogisticRegression, {"C": (_POSITIVE, one_of("auto")), "threshold": (_SHARE,)}
    ),
    "scorecard": Buildable(
        Scorecard,
        {
            "n_bins": (Allowed("2 to 1,000,000", lambda value: _MANY.holds(value) and value >= 2),),
            "strength": (_POSITIVE, one_of("auto")),
            "threshold": (_SHARE,),
            "random_state": (whole_number(0),),
        },
    ),
    "logistic regression": Buildable(LogisticRegression, _LOGISTIC),
    "boosted trees": Buildable(HistGradientBoostingClassifier, _BOOSTING),
    "network": Buildable(MLPClassifier, _NETWORK),
    "constant": Buildable(DummyClassifier, {"strategy": (one_of("most_frequent", "prior"),), "random_state": (_SEED,)}),
    "standard scaler": Buildable(StandardScaler, {"with_mean": (_FLAG,), "with_std": (_FLAG,)}),
}


def write_settings(estimator: BaseEstimator, known: Buildable) -> dict[str, Json]:
    """Describe the parameters that differ from the default."""
    default = known.build().get_params(deep=False)
    found: dict[str, Json] = {}
    for name, value in estimator.get_params(deep=False).items():
        bare = _bare(value)
        if name in known.ignored or _same(bare, default[name]):
            continue
        if name not in known.allowed or not any(kind.holds(bare) for kind in known.allowed[name]):
            raise NotPlainError(f"the parameter {name!r} cannot be stored")
        # JSON has neither tuples nor keys of any type.
        found[name] = {"pairs": [list(pair) for pair in bare.items()]} if isinstance(bare, dict) else bare
    return found


def read_settings(fields: Fields, known: Buildable) -> BaseEstimator:
    """Build an estimator that is not fitted."""
    settings = fields.take("settings")
    if not isinstance(settings, dict):
        raise fields.refuse("settings")
    given = {name: _from_json(value, fields) for name, value in settings.items()}
    available = known.build().get_params(deep=False)
    for name, value in given.items():
        if name not in known.allowed or name in known.ignored or name not in available:
            raise MalformedError(f"{fields.where} has a parameter that is not read from files or not known here")
        if not any(kind.holds(value) for kind in known.allowed[name]):
            raise MalformedError(f"the parameter {name!r} of {fields.where} is out of range")
    return known.build(**given)


def _bare(value: object) -> Any:
    """Take a value out of NumPy's types; a random state that was brought along has been used, and is not kept."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return tuple(_bare(entry) for entry in value)
    return {_bare(k): _bare(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def _from_json(value: Json, fields: Fields) -> object:
    if isinstance(value, list) and len(value) <= _LONGEST_LIST:
        return tuple(_from_json(entry, fields) for entry in value)
    if isinstance(value, dict):
        pairs = value.get("pairs")
        if set(value) != {"pairs"} or not isinstance(pairs, list):
            raise fields.refuse("settings")
        found = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2]
        if len(found) < len(pairs) or not all(isinstance(key, str | int | float) for key, _ in found):
            raise fields.refuse("settings")
        return {key: weight for key, weight in found}  # noqa: C416 - dict(found) has no type
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, list) or (whole and abs(value) > _LARGEST_WHOLE):  # type: ignore[arg-type]
        raise fields.refuse("settings", "is out of range")
    return value
