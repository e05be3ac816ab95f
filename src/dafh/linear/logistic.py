"""Logistic regression fitted to convergence: the classifier that is used where the user brings none."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT, out_of_fold_probabilities

_MOST_COEFFICIENTS_FOR_NEWTON = 300
# Inverse strengths of regularisation to choose from, where the rows leave room for a choice.
_STRENGTHS = (0.01, 0.03, 0.1, 1.0)
_ROWS_THAT_SETTLE_A_COEFFICIENT = 50


class StandardizedLogisticRegression(LogisticRegression):
    """Logistic regression fitted to convergence on standardised features, with coefficients in the units of X.

    The scale of a column then changes neither the regularisation nor the number of iterations, and predicting needs
    no copy of X. It is the classifier that is used where the user brings none.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Inverse strength of the regularisation. "auto": 1 where there are 50 rows or more for each coefficient; else
        the one of a few from 0.01 to 1 with the lowest log-loss in cross-validation.

    Attributes
    ----------
    C_ : float
        The strength in use.
    """

    def __init__(self, C: float | str = "auto") -> None:
        super().__init__(C=C)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on standardised columns, then write the coefficients for the columns as they are."""
        scaler = StandardScaler().fit(X, sample_weight=sample_weight)
        # Newton's method converges to the last digit in a few steps while its matrix, coefficients squared, is small.
        n_classes = len(np.unique(y))
        n_coefficients = scaler.n_features_in_ * (1 if n_classes == 2 else n_classes)
        newton = n_coefficients <= _MOST_COEFFICIENTS_FOR_NEWTON
        solver = {"solver": "newton-cholesky", "tol": 1e-8} if newton else {"tol": 1e-6, "max_iter": 5000}
        scaled = scaler.transform(X)
        self.C_ = self.C
        if self.C == "auto":
            settled = len(scaled) >= _ROWS_THAT_SETTLE_A_COEFFICIENT * n_coefficients
            self.C_ = _STRENGTHS[-1] if settled else _choose_strength(scaled, np.asarray(y), sample_weight, solver)
        model = LogisticRegression(C=self.C_, **solver).fit(scaled, y, sample_weight)
        self.classes_, self.n_iter_, self.n_features_in_ = model.classes_, model.n_iter_, model.n_features_in_
        if hasattr(scaler, "feature_names_in_"):
            self.feature_names_in_ = scaler.feature_names_in_
        self.coef_: NDArray[Any] = model.coef_ / scaler.scale_
        self.intercept_ = model.intercept_ - self.coef_ @ scaler.mean_
        return self


def _choose_strength(X: NDArray[Any], y: NDArray[Any], sample_weight: Any, solver: dict[str, Any]) -> float:
    """Lowest log-loss in cross-validation; the weakest where too few rows, or rows of a class, can be left out."""
    if len(y) < FEWEST_ROWS_TO_SPLIT:
        return _STRENGTHS[-1]
    classes, losses = np.unique(y), []
    for strength in _STRENGTHS:
        model = LogisticRegression(C=strength, **solver)
        probabilities = out_of_fold_probabilities(model, X, y, classes, sample_weight, n_folds=5, seed=0)
        if probabilities is None:
            return _STRENGTHS[-1]
        losses.append(log_loss(y, probabilities, sample_weight=sample_weight, labels=classes))
    return _STRENGTHS[int(np.argmin(losses))]
