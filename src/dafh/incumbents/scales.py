"""Probabilities for what has none: a score on any scale, or a label and nothing else.

Both are learned from labelled rows, by one or two numbers for each class, so that rows that were used for them say
hardly more than other rows would.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression


@dataclass(frozen=True)
class ScoreCurve:
    """The probability of the second of two classes as a logistic curve of a score (Platt's scaling)."""

    intercept: float
    slope: float
    """Negative where a higher score speaks for the first class, as credit scores do if the target is default."""

    @classmethod
    def learn(
        cls, score: NDArray[np.float64], positive: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> "ScoreCurve":
        """Fit the curve.

        Examples
        --------
        >>> score, positive = np.array([300.0, 500, 600, 800]), np.array([True, True, False, False])
        >>> ScoreCurve.learn(score, positive, np.ones(4)).slope < 0
        True
        """
        mean = float(np.average(score, weights=weight))
        scale = float(np.sqrt(np.average((score - mean) ** 2, weights=weight))) or 1.0
        # One row's worth of penalty: a score that parts the classes perfectly still has a finite slope.
        model = LogisticRegression(C=1.0).fit(((score - mean) / scale)[:, None], positive, sample_weight=weight)
        slope = float(model.coef_[0, 0]) / scale
        return cls(float(model.intercept_[0]) - slope * mean, slope)

    def probabilities(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of both classes, (n, 2)."""
        positive = expit(self.intercept + self.slope * score)
        return np.column_stack([1 - positive, positive])


@dataclass(frozen=True, eq=False)
class LabelShares:
    """How often each class is true, by the label that is predicted."""

    table: NDArray[np.float64]
    """Row: predicted; column: true; both as positions of classes."""

    @classmethod
    def learn(
        cls, predicted: NDArray[np.intp], label: NDArray[np.intp], weight: NDArray[np.float64], n_classes: int
    ) -> "LabelShares":
        """Count, with one more row for each predicted label that has all classes in their shares among all rows.

        Without it, a label that was never wrong here would count as never wrong anywhere, and could not be corrected.

        Examples
        --------
        >>> predicted, label = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
        >>> LabelShares.learn(predicted, label, np.ones(4), 2).table.tolist()
        [[0.625, 0.375], [0.25, 0.75]]
        """
        counts = np.bincount(predicted * n_classes + label, weight, n_classes**2).reshape(n_classes, n_classes)
        everywhere = counts.sum(axis=0) / counts.sum()
        return cls((counts + everywhere) / (counts.sum(axis=1, keepdims=True) + 1))

    def probabilities(self, predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        """Probability of each class, (n, classes)."""
        return self.table[predicted]
