"""Control, as in multicalibration: small trees on the residuals of the pooled classifier.

If all that groups gain over a pooled classifier is capacity, a few trees on its residuals gain as much. Boosting starts
at the pooled logit and sees it as one more column, so that it can also mend the calibration. Held-out rows choose the
number of rounds, and zero rounds are a choice: the pooled classifier as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dafh.linear import StandardizedLogisticRegression
from research.rivals.training import decide, to_probabilities, two_classes

_FOLDS, _PATIENCE, _LEAF_ROWS, _HELD_OUT = 3, 5, 20, 0.2
# Added to the curvature of a leaf, as in other boosting libraries. Where the pooled classifier is nearly certain, there
# is hardly any, and one row with the other label would move the leaf by a logit of a hundred: on Bank, held-out rows
# then chose zero rounds.
_RIDGE = 1.0


class Rows(NamedTuple):
    """What boosting sees of rows: columns with the pooled logit beside them, this logit, label."""

    X: NDArray[np.float64]
    base: NDArray[np.float64]
    label: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        """Return some of the rows."""
        return Rows(*(field[rows] for field in self))


class LeafTree(NamedTuple):
    """A tree that finds the leaf of each row, and what every node adds to the logit."""

    tree: DecisionTreeRegressor
    value: NDArray[np.float64]

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the tree adds to the logit of each row."""
        return self.value[self.tree.apply(X)]


@dataclass(eq=False, repr=False)
class ResidualBoostingClassifier(ClassifierMixin, BaseEstimator):
    """Boost small trees on (x, pooled logit), starting at the pooled logit. Two classes.

    `pooled` is copied and fitted on all rows; None is logistic regression, fitted to convergence. Its cut-off
    (`threshold_`) is kept. Boosting stops after five rounds without a lower held-out loss, or after `max_rounds`;
    `n_rounds_` is the number that held-out rows chose, and 0 is the pooled classifier as it is.
    """

    RANGES: ClassVar[dict[str, tuple[float, ...]]] = {"learning_rate": (0.1, 0.3), "max_depth": (2, 3)}
    pooled: Any = None
    learning_rate: float = field(default=0.3, kw_only=True)
    max_depth: int = field(default=3, kw_only=True)
    max_rounds: int = field(default=30, kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the pooled classifier, choose the number of rounds on held-out rows, and fit the trees on all rows."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.pooled_ = clone(StandardizedLogisticRegression() if self.pooled is None else self.pooled)
        self.pooled_.fit(values, labels)
        # Its own cut-off: what boosting adds must not also change how often rows are flagged.
        self.threshold_ = float(getattr(self.pooled_, "threshold_", 0.5))
        # With the strength of all rows: choosing it again in each fold takes most of the time on small tables.
        again = StandardizedLogisticRegression(C=self.pooled_.C_) if self.pooled is None else self.pooled
        # Out of fold: the in-sample logits of a flexible classifier leave no residuals to learn from.
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
        base = _logits(cross_val_predict(again, values, labels, cv=folds, method="predict_proba"))
        rows = Rows(np.column_stack([values, base]), base, label)
        train, held_out = train_test_split(
            np.arange(len(label)), test_size=_HELD_OUT, stratify=label, random_state=seed
        )
        self.n_rounds_ = self._choose_rounds(rows.take(train), rows.take(held_out), seed)
        self.trees_ = list(self._boost(rows, self.n_rounds_, seed))
        return self

    def _choose_rounds(self, rows: Rows, held_out: Rows, seed: int) -> int:
        """Return the number of rounds with the lowest loss on held-out rows."""
        total = held_out.base.copy()
        losses = [log_loss(held_out.label, expit(total), labels=[0, 1])]
        for tree in self._boost(rows, self.max_rounds, seed):
            total += tree(held_out.X)
            losses.append(log_loss(held_out.label, expit(total), labels=[0, 1]))
            if len(losses) - 1 - int(np.argmin(losses)) >= _PATIENCE:
                break
        return int(np.argmin(losses))

    def _boost(self, rows: Rows, n_rounds: int, seed: int) -> Iterator[LeafTree]:
        """Yield trees of the residuals, with a Newton step in each leaf."""
        total = rows.base.copy()
        for number in range(n_rounds):
            probability = expit(total)
            residual, curvature = rows.label - probability, probability * (1 - probability)
            tree = DecisionTreeRegressor(
                max_depth=self.max_depth, min_samples_leaf=_LEAF_ROWS, random_state=(seed + number) % 2**32
            ).fit(rows.X, residual)
            leaf = tree.apply(rows.X)
            slope, bend = (np.bincount(leaf, term, tree.tree_.node_count) for term in (residual, curvature))
            added = LeafTree(tree, self.learning_rate * slope / (bend + _RIDGE))
            total += added(rows.X)
            yield added

    def _total(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logit of each row, (n, 1)."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        base = _logits(self.pooled_.predict_proba(values))
        columns = np.column_stack([values, base])
        return (base + sum(tree(columns) for tree in self.trees_))[:, None]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of both classes; columns as in `classes_`."""
        return to_probabilities(self._total(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of each row, at the cut-off of the pooled classifier."""
        return self.classes_[decide(self._total(X), logit(self.threshold_))]


def _logits(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logit of the second class."""
    logs: NDArray[np.float64] = np.log(np.clip(probabilities, 1e-12, 1))
    return logs[:, 1] - logs[:, 0]
