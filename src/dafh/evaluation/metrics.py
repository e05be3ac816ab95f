"""The metrics of fairness without harm as plain functions of predictions."""

from typing import Any

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


def pr_without_harm(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows served best by their own classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).pr_without_harm


def accuracy(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows that their own classifier gets right; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).accuracy


def disagreement(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows on which not all classifiers agree; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).disagreement


def violations(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> int:
    """Count negative gains and envy gaps; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).violations


def max_gain(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Largest gain over the pooled classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).max_gain


def min_gain(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Smallest gain over the pooled classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).min_gain


def max_envy_gap(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Largest envy gap (the paper's "min envy"); arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).max_envy_gap


def min_envy_gap(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Smallest envy gap; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).min_envy_gap


def disparity_change(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Disparity of accuracy, own minus pooled; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).disparity_change
