"""How much the groups change with the seed of training, or with the rows they are learned from."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from dafh.classifiers.pipelines import final_classifier, parameter_path
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.served import ServedPredictions
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
    **fit_options: Any,
) -> float:
    """Fit copies of a model, with different seeds or on different rows, and compare their groups.

    Groups of a network depend on its random start: compare seeds. Rules have no random start, and a seed would only
    draw other folds; what they depend on is the rows: compare resamples.

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
    >>> from dafh.partitions import IntersectionPartition, RandomPartition
    >>> data = make_paper_synthetic(1000, random_state=0)
    >>> named = DecoupledClassifier(IntersectionPartition())
    >>> stability(named, data.X, data.y, sensitive_features=data.sensitive_features)
    1.0
    >>> abs(stability(DecoupledClassifier(RandomPartition()), data.X, data.y)) < 0.1
    True
    """
    path = parameter_path(model)
    if sensitive_features is not None and has_fit_parameter(final_classifier(model), "sensitive_features"):
        fit_options = {**fit_options, f"{path}sensitive_features": sensitive_features}
    parts = []
    for seed, rows in _plans(model, np.asarray(y), seeds, resamples):
        copy = clone(model).set_params(**{f"{path}random_state": seed})
        if rows is None:
            copy.fit(X, y, **fit_options)
        else:
            options = {name: _sampled(value, rows, len(np.asarray(y))) for name, value in fit_options.items()}
            copy.fit(take_rows(X if is_frame(X) else np.asarray(X), rows), np.asarray(y)[rows], **options)
        parts.append(ServedPredictions.of(copy, X, sensitive_features).groups)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in itertools.combinations(parts, 2)]))


def _plans(
    model: GroupModel | Pipeline, y: NDArray[Any], seeds: Sequence[int], resamples: int | None
) -> Iterator[tuple[int, NDArray[np.intp] | None]]:
    """Seed and rows of each copy; no rows stand for all of them."""
    if resamples is None:
        if len(set(seeds)) < 2:
            raise InputError("Pass at least two different seeds: groups of one fit cannot be compared.")
        yield from ((seed, None) for seed in seeds)
        return
    if resamples < 2:
        raise InputError("Pass at least two resamples: groups of one fit cannot be compared.")
    known = final_classifier(model).get_params(deep=False).get("random_state")
    for number in range(resamples):
        yield (0 if known is None else known), _sample(y, np.random.default_rng(number))


def _sample(y: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw rows of each class: of all rows together, a sample might miss a rare class."""
    label = np.unique(y, return_inverse=True)[1]
    drawn = []
    for k in range(label.max() + 1):
        members = np.flatnonzero(label == k)
        drawn.append(rng.permutation(members)[: int(np.ceil(_SAMPLED * len(members)))])
    return np.sort(np.concatenate(drawn))


def _sampled(value: Any, rows: NDArray[np.intp], n_rows: int) -> Any:
    """Rows of an option of fit that has one entry for each row; any other option as it is."""
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    return take_rows(value if is_frame(value) or hasattr(value, "iloc") else np.asarray(value), rows)
