"""How much the groups change with the seed of training, or with the rows they are learned from."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from dafh.classifiers import GroupModel, final_classifier, parameter_path
from dafh.evaluation.paired import ServedPredictions
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, take_rows

# Share of the rows in a sample: half of them would ask what fewer rows find, not how sure these are.
_SAMPLED = 0.8


def stability(
    model: GroupModel | Pipeline,
    X: Table,
    y: ArrayLike,
    *,
    sensitive_features: Table | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    resamples: int | None = None,
    max_rows: int | None = None,
    **fit_options: Any,
) -> float:
    """Fit copies of a model, with different seeds or on different rows, and compare their groups.

    Groups of a network depend on its random start: compare seeds. Exceptions have none, and a seed would only draw
    other folds; what they depend on is the rows: compare resamples.

    Parameters
    ----------
    model : DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
        Fitted or not; it is left as it is.
    X, y
        The copies are fitted on these rows, or on samples of them, and compared on all of them.
    sensitive_features : data frame, series or array with as many rows, optional
        Passed on to a model whose groups depend on them.
    seeds : sequence of int, default=(0, 1, 2)
        Two or more; each costs one fit. They replace the model's `random_state`, but not one that the user set on a
        partition or a classifier inside it.
    resamples : int, optional
        Instead of seeds: fit this many copies, two or more, each on a random sample of 80% of the rows of each class,
        drawn without replacement. All copies have the `random_state` of the model, or 0 where that is None.
    max_rows : int, optional
        Most rows to fit on and to compare; of more, a random sample.
    **fit_options
        Passed to `fit`; those of a pipeline need the name of the step (`model__sample_weight`). Of a sample of the
        rows, options with one entry for each row are sampled as well.

    Returns
    -------
    float
        Adjusted Rand index, its mean over all pairs of copies: 1 if they find the same groups, about 0 if their groups
        are unrelated.

    Examples
    --------
    >>> from dafh import DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> from dafh.explanation import stability
    >>> from dafh.partitions import IntersectionPartition
    >>> data = make_paper_synthetic(1000, random_state=0)
    >>> named = DecoupledClassifier(IntersectionPartition())
    >>> stability(named, data.X, data.y, sensitive_features=data.sensitive_features)
    1.0
    """
    labels, n_rows = np.asarray(y), len(np.asarray(y))
    if max_rows is not None and n_rows > max_rows:
        kept = np.sort(np.random.default_rng(0).permutation(n_rows)[:max_rows])
        fit_options = {name: _sampled(value, kept, n_rows) for name, value in fit_options.items()}
        X, sensitive_features = _sampled(X, kept, n_rows), _sampled(sensitive_features, kept, n_rows)
        labels = labels[kept]
    plans = _plans(model, labels, seeds, resamples)
    pairs = itertools.combinations(_groups_of_copies(model, X, labels, sensitive_features, plans, fit_options), 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


def _groups_of_copies(
    model: GroupModel | Pipeline,
    X: Table,
    y: NDArray[Any],
    sensitive_features: Table | None,
    plans: Iterator[tuple[int, NDArray[np.intp]]],
    fit_options: dict[str, Any],
) -> Iterator[NDArray[np.intp]]:
    """Fit one copy after the other, and return the groups of all rows by each."""
    path, final = parameter_path(model), final_classifier(model)
    if sensitive_features is not None and has_fit_parameter(final, "sensitive_features"):
        fit_options = {**fit_options, f"{path}sensitive_features": sensitive_features}
    for seed, rows in plans:
        copy = clone(model).set_params(**{f"{path}random_state": seed})
        options = {name: _sampled(value, rows, len(y)) for name, value in fit_options.items()}
        copy.fit(_sampled(X, rows, len(y)), y[rows], **options)
        yield ServedPredictions.of(copy, X, sensitive_features).groups


def _plans(
    model: GroupModel | Pipeline, y: NDArray[Any], seeds: Sequence[int], resamples: int | None
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Seed and rows of each copy."""
    if resamples is None:
        if len(set(seeds)) < 2:
            raise InputError("Pass at least two different seeds: groups of one fit cannot be compared.")
        yield from ((seed, np.arange(len(y))) for seed in seeds)
        return
    if resamples < 2:
        raise InputError("Pass at least two resamples: groups of one fit cannot be compared.")
    known = final_classifier(model).get_params(deep=False).get("random_state")
    for number in range(resamples):
        # Of each class: of all rows together, a sample might miss a rare one.
        drawn = pd.Series(np.arange(len(y))).groupby(y).sample(frac=_SAMPLED, random_state=number)
        yield (0 if known is None else known), np.sort(drawn.to_numpy())


def _sampled(value: Any, rows: NDArray[np.intp], n_rows: int) -> Any:
    """Rows of an option of fit that has one entry for each row; any other option as it is."""
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    return take_rows(value if is_frame(value) or hasattr(value, "iloc") else np.asarray(value), rows)
