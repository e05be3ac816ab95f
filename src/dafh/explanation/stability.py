"""How far the groups depend on the seed of training."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from dafh.classifiers.pipelines import parameter_path
from dafh.evaluation.served import ServedPredictions
from dafh.exceptions import InputError


def stability(model: Any, X: Any, y: ArrayLike, *, seeds: Sequence[int] = (0, 1, 2), **fit_options: Any) -> float:
    """Mean adjusted Rand index between the groups of copies of a model, fitted on the same rows with different seeds.

    Parameters
    ----------
    model : DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    X, y
        Rows to fit the copies on, and to compare their groups on.
    seeds : sequence of int, default=(0, 1, 2)
        Two or more; every seed costs one fit.
    fit_options
        Passed to `fit`.
    """
    if len(set(seeds)) < 2:
        raise InputError("At least two different seeds are needed to compare groups.")
    name = f"{parameter_path(model)}random_state"
    copies = (clone(model).set_params(**{name: seed}).fit(X, y, **fit_options) for seed in seeds)
    parts = [ServedPredictions.of(copy, X, fit_options.get("sensitive_features")).groups for copy in copies]
    pairs = itertools.combinations(parts, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))
