"""How much the groups change with the seed of training."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from dafh.classifiers.pipelines import final_classifier, parameter_path
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.served import ServedPredictions
from dafh.exceptions import InputError
from dafh.frames import Table


def stability(
    model: GroupModel | Pipeline,
    X: Table,
    y: ArrayLike,
    *,
    sensitive_features: Table | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    **fit_options: Any,
) -> float:
    """Fit copies of a model with different seeds and compare their groups by the adjusted Rand index.

    Parameters
    ----------
    model : DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
        Fitted or not; it is left as it is.
    X, y
        The copies are fitted, and compared, on these rows.
    sensitive_features : data frame, series or array with as many rows, optional
        Passed on to a model whose groups depend on them.
    seeds : sequence of int, default=(0, 1, 2)
        Two or more; each costs one fit. They replace the model's `random_state`, but not one that the user set on a
        partition or a classifier inside it.
    **fit_options
        Passed to `fit` as they are, so that those of a pipeline need the name of the step (`model__sample_weight`).

    Returns
    -------
    float
        Mean over all pairs of copies: 1 if they find the same groups, about 0 if their groups are unrelated.

    Examples
    --------
    >>> from dafh import DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> from dafh.explanation import stability
    >>> from dafh.partitions import IntersectionPartition, RandomPartition
    >>> data = make_paper_synthetic(1000, random_state=0)
    >>> named = DecoupledClassifier(IntersectionPartition())
    >>> stability(named, data.X, data.y, sensitive_features=data.sensitive_features)
    1.0
    >>> abs(stability(DecoupledClassifier(RandomPartition()), data.X, data.y)) < 0.1
    True
    """
    if len(set(seeds)) < 2:
        raise InputError("Pass at least two different seeds: groups of one fit cannot be compared.")
    path = parameter_path(model)
    if sensitive_features is not None and has_fit_parameter(final_classifier(model), "sensitive_features"):
        fit_options = {**fit_options, f"{path}sensitive_features": sensitive_features}
    parts = []
    for seed in seeds:
        copy = clone(model).set_params(**{f"{path}random_state": seed}).fit(X, y, **fit_options)
        parts.append(ServedPredictions.of(copy, X, sensitive_features).groups)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in itertools.combinations(parts, 2)]))
