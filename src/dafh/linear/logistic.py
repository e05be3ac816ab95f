"""Logistic regression fitted to convergence: the classifier that is used where the user brings none."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from dafh.classifiers import FEWEST_ROWS_TO_SPLIT, check_threshold, decide, out_of_fold_probabilities
from dafh.frames import Table
from dafh.validation import check_persons

_MOST_COEFFICIENTS_FOR_NEWTON = 300
# Values of C to choose from where there are few rows for each coefficient.
_STRENGTHS = (0.01, 0.03, 0.1, 1.0)
_ENOUGH_ROWS_PER_COEFFICIENT = 50


class StandardizedLogisticRegression(LogisticRegression):
    """Logistic regression on standardised features, with coefficients in the units of X.

    The scale of a column changes neither the regularisation nor the number of iterations, and predicting needs no
    scaled copy of X.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Inverse strength of the regularisation. "auto" is 1 where there are at least 50 rows for each coefficient, and
        otherwise the value from 0.01 to 1 with the lowest log-loss in cross-validation.
    threshold : float, default=0.5
        With two classes, the probability above which `predict` says ``classes_[1]``.

    Attributes
    ----------
    C_ : float
        The value of C in use.
    threshold_ : float
        The cut-off in use.

    Examples
    --------
    >>> from dafh.datasets import make_grouped_classification
    >>> few = make_grouped_classification(100, n_features=20, label_noise=0.5, random_state=0)
    >>> StandardizedLogisticRegression().fit(few.X, few.y).C_
    0.01
    """

    def __init__(self, C: float | str = "auto", *, threshold: float = 0.5) -> None:
        super().__init__(C=C)
        self.threshold = threshold

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *, persons: ArrayLike | None = None
    ) -> Self:
        """Fit on standardised columns, then write the coefficients for the columns as they are.

        With `persons`, the identifier of each row's person, cross-validation keeps a person's rows together.
        """
        scaler = StandardScaler().fit(X, sample_weight=sample_weight)
        n_classes = len(np.unique(y))
        n_coefficients = scaler.n_features_in_ * (1 if n_classes == 2 else n_classes)
        # Newton's method converges to the last digit in a few steps, but its matrix has coefficients squared entries.
        solver: dict[str, Any] = {"solver": "newton-cholesky", "tol": 1e-8}
        if n_coefficients > _MOST_COEFFICIENTS_FOR_NEWTON:
            solver = {"tol": 1e-6, "max_iter": 5000}
        scaled = scaler.transform(X)
        self.C_ = self.C
        if self.C == "auto":
            has_many_rows = len(scaled) >= _ENOUGH_ROWS_PER_COEFFICIENT * n_coefficients
            person = check_persons(persons, len(scaled))
            self.C_ = _STRENGTHS[-1]
            if not has_many_rows:
                self.C_ = _choose_strength(scaled, np.asarray(y), sample_weight, solver, person)
        model = LogisticRegression(C=self.C_, **solver).fit(scaled, y, sample_weight)
        self.classes_, self.n_iter_, self.n_features_in_ = model.classes_, model.n_iter_, model.n_features_in_
        if hasattr(scaler, "feature_names_in_"):
            self.feature_names_in_ = scaler.feature_names_in_
        # w'((x − mean) / scale) + b = (w / scale)'x + b − (w / scale)'mean: no scaled copy is needed to predict.
        self.coef_: NDArray[np.float64] = model.coef_ / scaler.scale_
        self.intercept_ = model.intercept_ - self.coef_ @ scaler.mean_
        check_threshold(self.threshold, len(self.classes_))
        self.threshold_ = self.threshold
        return self

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row."""
        scores = self.decision_function(X)
        return self.classes_[decide(scores[:, None] if scores.ndim == 1 else scores, self.threshold_)]


def _choose_strength(
    X: NDArray[np.float64],
    y: NDArray[np.generic],
    sample_weight: ArrayLike | None,
    solver: dict[str, Any],
    person: NDArray[np.intp] | None,
) -> float:
    """Lowest log-loss in cross-validation; 1 where too few rows, or too few rows of a class, can be left out.

    LogisticRegressionCV makes the same choice, but fails where all rows of a fold have weight 0 or where metadata
    routing is switched on, and no call of it works without warnings in scikit-learn 1.6 and 1.9 alike.
    """
    if len(y) < FEWEST_ROWS_TO_SPLIT:
        return _STRENGTHS[-1]
    classes, losses = np.unique(y), []
    weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    for strength in _STRENGTHS:
        model = LogisticRegression(C=strength, **solver)
        probabilities = out_of_fold_probabilities(model, X, y, classes, weight, n_folds=5, seed=0, person=person)
        if probabilities is None:
            return _STRENGTHS[-1]
        losses.append(log_loss(y, probabilities, sample_weight=weight, labels=classes))
    return _STRENGTHS[int(np.argmin(losses))]
