"""The metrics of fairness without harm as plain functions of labels, predictions and groups.

Each takes the parameters of `PreferenceMatrix.from_predictions`. To compute several, build that matrix once and read
its attributes of the same names.
"""

from typing import Protocol

from numpy.typing import ArrayLike

from dafh.evaluation.matrix import PreferenceMatrix

__all__ = [
    "accuracy",
    "disagreement",
    "disparity_change",
    "max_envy_gap",
    "max_gain",
    "min_envy_gap",
    "min_gain",
    "pr_without_harm",
    "violations",
]

_DOCSTRING = """{meaning}

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    predictions : array of shape (n, M)
        Labels predicted by each of M classifiers.
    groups : array of int of shape (n,)
        Group of each row.
    pooled : array of shape (n,)
        Labels predicted by the pooled classifier.
    own : array of int, optional
        Column of `predictions` that serves each group, M for the pooled classifier; by default column k for group k.
    sample_weight : array of shape (n,), optional
        Row weights.

    Examples
    --------
    Two groups of two rows. Classifier 0 is always right on group 0; classifier 1 is never right on group 1.

    >>> from dafh.evaluation import {name}
    >>> predictions = [[1, 1], [0, 1], [1, 0], [1, 1]]
    >>> {name}(y=[1, 0, 1, 0], predictions=predictions, groups=[0, 0, 1, 1], pooled=[1, 1, 1, 1])
    {value}
    """


class Metric(Protocol):
    """A function from predictions to one number."""

    def __call__(
        self,
        y: ArrayLike,
        predictions: ArrayLike,
        groups: ArrayLike,
        pooled: ArrayLike,
        *,
        own: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute the metric."""
        ...


# The nine functions differ in one attribute name. Made in one place, they cannot differ in anything else.
def _metric(name: str, meaning: str, value: float) -> Metric:
    """Make the function that returns one attribute of the preference matrix; `value` is what its example shows."""

    def metric(
        y: ArrayLike,
        predictions: ArrayLike,
        groups: ArrayLike,
        pooled: ArrayLike,
        *,
        own: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        matrix = PreferenceMatrix.from_predictions(y, predictions, groups, pooled, own=own, sample_weight=sample_weight)
        return getattr(matrix, name)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = _DOCSTRING.format(meaning=meaning, name=name, value=value)
    return metric


accuracy = _metric("accuracy", "Share of rows that the classifier serving them gets right.", 0.5)
disagreement = _metric("disagreement", "Share of rows on which the classifiers do not all predict the same.", 0.5)
disparity_change = _metric(
    "disparity_change", "Largest difference in accuracy between groups, own classifiers minus pooled.", 1.0
)
max_envy_gap = _metric("max_envy_gap", 'Largest envy gap, which the paper calls "min envy".', 0.5)
max_gain = _metric("max_gain", "Largest gain of any group over the pooled classifier.", 0.5)
min_envy_gap = _metric("min_envy_gap", "Smallest envy gap: negative if another group's classifier is better.", -0.5)
min_gain = _metric(
    "min_gain", "Smallest gain of any group over the pooled classifier: negative if one is harmed.", -0.5
)
pr_without_harm = _metric(
    "pr_without_harm", "Share of rows that no other classifier serves better than their own.", 0.75
)
violations = _metric("violations", "Number of negative gains and negative envy gaps.", 2)
