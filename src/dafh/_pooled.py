"""The pooled classifier: fitting it, asking it for logits, and its default."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dafh._training_rows import FEWEST_ROWS_TO_SPLIT
from dafh.exceptions import InputError

# Probabilities are kept this far from 0 and 1, so that a sure classifier can still be corrected.
_SMALLEST_PROBABILITY = 1e-6
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


def is_fitted(estimator: Any) -> bool:
    """Whether the estimator can predict as it is."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[Any] | None) -> Any:
    """Fit a fresh copy, handing the weights to whichever step of a pipeline takes them."""
    model = clone(estimator)
    if sample_weight is None:
        return model.fit(X, y)
    prefix, step = "", model
    while isinstance(step, Pipeline):
        name, step = step.steps[-1]
        prefix += f"{name}__"
    if not has_fit_parameter(step, "sample_weight"):
        raise InputError(
            f"{type(step).__name__} takes no sample_weight: leave the weights out, or choose another model."
        )
    return model.fit(X, y, **{f"{prefix}sample_weight": sample_weight})


def fit_group(estimator: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[Any] | None) -> Any:
    """Fit a fresh copy on the rows of one group; rows that all have one label get that label."""
    if len(np.unique(y)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(X, y)
    return fit_clone(estimator, X, y, sample_weight)


def seeded(estimator: Any, seed: int) -> Any:
    """Return a copy in which every random state that was left open is given by the seed."""
    model = clone(estimator)
    open_states = {k: seed for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None}
    return model.set_params(**open_states)


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Probability of each of `classes`, in their order; 0 for one that the model has never seen."""
    probabilities = np.zeros((X.shape[0], len(classes)))
    known = np.isin(model.classes_, classes)
    columns = np.searchsorted(classes, np.asarray(model.classes_)[known])
    probabilities[:, columns] = model.predict_proba(X)[:, known]
    return probabilities


def logits(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Logits to be corrected: of class 1 for two classes, (n, 1); log-probabilities for more, (n, classes)."""
    logarithm = np.log(np.clip(probabilities, _SMALLEST_PROBABILITY, None))
    return logarithm[:, 1:] - logarithm[:, :1] if probabilities.shape[1] == 2 else logarithm


def residual(base: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each logit's class, what happened (0 or 1) minus the probability that was given to it; (n, m)."""
    if base.shape[1] == 1:
        return label[:, None] - expit(base)
    return (label[:, None] == np.arange(base.shape[1])) - softmax(base, axis=1)


def out_of_fold_probabilities(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    sample_weight: Any,
    n_folds: int,
    seed: int,
) -> NDArray[np.float64] | None:
    """Predict every row by a copy that was not fitted on it; None where a class is too rare to be left out.

    In-sample probabilities of a flexible model are overconfident, and corrections trained on them would learn to
    trust it where it has only memorised.
    """
    probabilities = np.empty((X.shape[0], len(classes)))
    folds = stratified_folds(y, n_folds, seed)
    if folds is None:
        return None
    for train, test in folds:
        weight = None if sample_weight is None else sample_weight[train]
        model = fit_clone(estimator, _safe_indexing(X, train), y[train], weight)
        probabilities[test] = class_probabilities(model, _safe_indexing(X, test), classes)
    return probabilities


def stratified_folds(y: NDArray[Any], n_folds: int, seed: int) -> Iterator[Any] | None:
    """Rows to fit on and rows to hold out, fold by fold; fewer folds for a rare class, None if it has one row only."""
    rarest = int(np.unique(y, return_counts=True)[1].min())
    n_folds = min(n_folds, rarest)
    if n_folds < 2:
        return None
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
