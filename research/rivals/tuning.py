"""Tune any rival alike: the same selection rows, the ranges of its authors, no demographics.

Two criteria read the same trials. "log-loss" asks for good probabilities on selection rows, as everything else in this
package does. "antigone" (Veldanda et al.) asks for the worst-off without knowing who they are: the selection rows that
a reference classifier gets wrong stand for the disadvantaged group, and the setting with the best accuracy on the worse
of the two pseudo-groups wins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.preprocessing import StandardScaler

from dafh.linear import StandardizedLogisticRegression

CRITERIA = ("log-loss", "antigone")
# Accuracy that Antigone may give up, as a share of rows. Without a limit, a classifier that is right on half of the
# rows, whichever they are, has the best worst pseudo-group.
MOST_ACCURACY_LOST = 0.05
# Strengths of the reference classifiers, from hardly fitted to converged: the one whose errors lie farthest from its
# other rows names the pseudo-groups.
_REFERENCES = (1e-4, 1e-3, 1e-2, 1.0)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Settings that were tried, and what selection rows say of each."""

    settings: list[dict[str, Any]]
    trials: pd.DataFrame
    """One row per setting: `log_loss`, `accuracy`, and `worst`, the accuracy on the worse of two pseudo-groups."""

    def best(self, criterion: str = "log-loss") -> dict[str, Any]:
        """Return the setting that a criterion chooses."""
        if criterion == "log-loss":
            return self.settings[int(self.trials["log_loss"].to_numpy().argmin())]
        accuracy = self.trials["accuracy"]
        allowed = accuracy >= accuracy.max() - MOST_ACCURACY_LOST
        return self.settings[int(self.trials["worst"].where(allowed, -1.0).to_numpy().argmax())]


def tune(rival: Any, X: ArrayLike, y: ArrayLike, *, max_rows: int | None = None, random_state: int = 0) -> Tuning:
    """Fit a rival with every setting of its `RANGES`, and judge each on selection rows.

    Of more than `max_rows` rows, so many are drawn. With the same `random_state`, all rivals have the same rows.
    """
    values, labels = np.asarray(X, np.float64), np.asarray(y)
    rows = np.arange(len(labels))
    if max_rows is not None and max_rows < len(labels):
        rows, _ = train_test_split(rows, train_size=max_rows, stratify=labels, random_state=random_state)
    fit, select = train_test_split(rows, test_size=0.25, stratify=labels[rows], random_state=random_state)
    truth, right = labels[select], _reference_is_right(values, labels, fit, select)
    settings = list(ParameterGrid(rival.RANGES))
    trials = []
    for setting in settings:
        model = clone(rival).set_params(**setting).fit(values[fit], labels[fit])
        is_right = model.predict(values[select]) == truth
        loss = log_loss(truth, model.predict_proba(values[select]), labels=model.classes_)
        worst = min(is_right[pseudo_group].mean() for pseudo_group in (right, ~right) if pseudo_group.any())
        trials.append({"log_loss": float(loss), "accuracy": float(is_right.mean()), "worst": float(worst)})
    return Tuning(settings, pd.DataFrame(trials))


def _reference_is_right(
    X: NDArray[Any], labels: NDArray[Any], fit: NDArray[np.intp], select: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether the reference classifier is right about each selection row: the two pseudo-groups.

    Of several references, the one whose errors are farthest from its other rows, class by class: the authors show that
    its pseudo-groups are the least noisy.
    """
    scaled = StandardScaler().fit(X[fit]).transform(X[select])
    rights = [
        StandardizedLogisticRegression(C=strength).fit(X[fit], labels[fit]).predict(X[select]) == labels[select]
        for strength in _REFERENCES
    ]
    return max(rights, key=lambda right: distance_between_means(scaled, labels[select], right))


def distance_between_means(X: NDArray[np.float64], labels: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Distance between the mean row that is right and the mean row that is not, averaged over classes by their size."""
    total = 0.0
    for label in np.unique(labels):
        hits, errors = X[(labels == label) & right], X[(labels == label) & ~right]
        if len(hits) and len(errors):
            total += (len(hits) + len(errors)) * float(np.linalg.norm(hits.mean(axis=0) - errors.mean(axis=0)))
    return total / len(labels)
