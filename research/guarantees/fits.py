"""End to end: real fits with `guard="proof"` on labels that no own classifier can predict better than the pooled."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin

from dafh import DAFHClassifier
from dafh.exceptions import DAFHWarning

CUTOFFS = (0.1, 0.3, 0.5, 0.7, 0.9)
_FRESH_ROWS = 4000
_N_COLUMNS = 3


class TrueClassifier(ClassifierMixin, BaseEstimator):
    """The best classifier that there is: it knows the probability of every row, and decides at a cut-off.

    Probabilities are close to the cut-off, so that own classifiers often decide differently and lose little by it:
    nothing is harder for a test.
    """

    def __init__(self, cutoff: float = 0.5) -> None:
        self.cutoff = cutoff
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = _N_COLUMNS

    def fit(self, X: Any, y: Any) -> "TrueClassifier":
        """Do nothing: all is known."""
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the true probabilities."""
        positive = expit(logit(self.cutoff) + 0.3 * np.asarray(X)[:, 0])
        return np.column_stack([1 - positive, positive])

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        """Decide so that the cost is lowest."""
        return (self.predict_proba(X)[:, 1] > self.cutoff).astype(np.intp)


def fit_harms(cutoff: float, seed: int, n_rows: int = 500) -> tuple[bool, bool]:
    """Fit on one sample: whether any group is truly served worse, and whether own classifiers differed at all.

    A false positive costs the cut-off and a false negative the rest, so that this cut-off is the best there is and any
    other decision costs more.
    """
    rng = np.random.default_rng(seed)
    incumbent = TrueClassifier(cutoff)
    X = rng.normal(size=(n_rows, _N_COLUMNS))
    y = (rng.random(n_rows) < incumbent.predict_proba(X)[:, 1]).astype(np.intp)
    model = DAFHClassifier(
        2,
        method="exceptions",
        pooled=incumbent,
        guard="proof",
        guard_losses=("cost",),
        costs={"fp": cutoff, "fn": 1 - cutoff},
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DAFHWarning)
        model.fit(X, y)
    fresh = rng.normal(size=(_FRESH_ROWS, _N_COLUMNS))
    best = incumbent.predict(fresh)
    report = model.guard_report_
    assert report is not None
    differed = bool((report.table["own_worse"] + report.table["own_better"]).any())
    return bool((model.predict(fresh) != best).any()), differed


def fit_table(n_worlds: int = 100, seed: int = 0) -> pd.DataFrame:
    """Share of fits that harm a group, and of fits whose own classifiers would, for each cut-off."""
    table = []
    for cutoff in CUTOFFS:
        harmed = np.array([fit_harms(cutoff, seed + i) for i in range(n_worlds)])
        table.append((f"{cutoff:g}", *harmed.mean(axis=0).tolist()))
    return pd.DataFrame(table, columns=["cut-off", "harmed", "harmed if all were kept"])
