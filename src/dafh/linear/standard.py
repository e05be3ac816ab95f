"""Standardised columns, and coefficients on both sides of the standardisation."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Standardization(NamedTuple):
    """Center and scale by which columns were standardised."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[Any], weight: NDArray[np.float64]) -> "Standardization":
        """Mean and standard deviation of every column; a constant column keeps its scale."""
        center, deviation = mean_and_deviation(X, weight)
        return cls(center, np.where(deviation > 0, deviation, 1.0))

    def of_rows(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows as standardised columns."""
        return (X - self.center) / self.scale

    def stacked(self, intercept: NDArray[np.float64], coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients (p + 1, m) for standardised columns, intercepts first, of a model for columns as they are."""
        return np.vstack([intercept + coef @ self.center, (coef * self.scale).T])

    def unstacked(self, coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Undo `stacked`: intercepts (m,) and coefficients (m, p) for columns as they are."""
        coef = (coefficients[1:] / self.scale[:, None]).T
        return coefficients[0] - coef @ self.center, coef


def mean_and_deviation(X: NDArray[Any], weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and standard deviation of every column."""
    mean = np.average(X, axis=0, weights=weight)
    return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
