"""Control, as in multicalibration: small trees on the residuals of the pooled classifier.

If all that groups gain over a pooled classifier is capacity, a few trees on its residuals gain as much. Boosting starts
at the pooled logit and sees it as one more column, so that it can also mend the calibration. Held-out rows choose the
number of rounds, and zero rounds are a choice: the pooled classifier as it is.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dafh.classifiers.logits import decide, find_cutoff
from dafh.linear import StandardizedLogisticRegression
from research.rivals.base import to_probabilities

_FOLDS = 3
# Added to the curvature of a leaf, as in other boosting libraries. Where the pooled classifier is nearly certain, there
# is hardly any, and one row with the other label would move the leaf by a logit of a hundred: on Bank, held-out rows
# then chose zero rounds.
_RIDGE = 1.0


class Rows(NamedTuple):
    """What boosting sees of rows: columns with the pooled logits beside them, these logits, label, weight."""

    X: NDArray[np.float64]
    base: NDArray[np.float64]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]

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
    """Boost small trees on (x, pooled logit), starting at the pooled logit.

    Parameters
    ----------
    pooled : classifier or None, default=None
        Copied and fitted on all rows; None is logistic regression, fitted to convergence.
    learning_rate : float, default=0.3
        Share of each Newton step that is taken.
    max_depth : int, default=3
    max_rounds : int, default=30
        Largest number of trees for each logit. Boosting stops after five rounds without a lower held-out loss.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : array
    pooled_ : classifier
    threshold_ : float
        With two classes, the probability above which the pooled classifier, and so this one, predicts the second.
    n_rounds_ : int
        Rounds that held-out rows chose; 0 is the pooled classifier as it is.
    trees_ : list of list of LeafTree
        The trees of each round, one for each logit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> curved = X[:, 0] * X[:, 1] > 0
    >>> model = ResidualBoostingClassifier(random_state=0).fit(X, curved)
    >>> model.pooled_.score(X, curved) < 0.7, model.score(X, curved) > 0.9
    (True, True)
    """

    RANGES: ClassVar[dict[str, tuple[float, ...]]] = {"learning_rate": (0.1, 0.3), "max_depth": (2, 3)}
    _PATIENCE: ClassVar[int] = 5
    _LEAF_ROWS: ClassVar[int] = 20
    _HELD_OUT: ClassVar[float] = 0.2
    pooled: Any = None
    learning_rate: float = field(default=0.3, kw_only=True)
    max_depth: int = field(default=3, kw_only=True)
    max_rounds: int = field(default=30, kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the pooled classifier, choose the number of rounds on held-out rows, and fit the trees on all rows."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        known = {} if sample_weight is None else {"sample_weight": weight}
        self.classes_, label = np.unique(labels, return_inverse=True)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.pooled_ = clone(StandardizedLogisticRegression() if self.pooled is None else self.pooled)
        self.pooled_.fit(values, labels, **known)
        # Its own cut-off: what boosting adds must not also change how often rows are flagged.
        self.threshold_ = 0.5
        if len(self.classes_) == 2:
            probability = self.pooled_.predict_proba(values)[:, 1]
            self.threshold_ = find_cutoff(self.pooled_.predict(values) == self.classes_[1], probability)
        # With the strength of all rows: choosing it again in each fold takes most of the time on small tables.
        again = StandardizedLogisticRegression(C=self.pooled_.C_) if self.pooled is None else self.pooled
        # Out of fold: the in-sample logits of a flexible classifier leave no residuals to learn from.
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
        found = cross_val_predict(again, values, labels, cv=folds, method="predict_proba", params=known)
        base = _logits(found)
        rows = Rows(np.column_stack([values, base]), base, label, weight)
        kept, apart = train_test_split(
            np.arange(len(label)), test_size=self._HELD_OUT, stratify=label, random_state=seed
        )
        self.n_rounds_ = self._choose_rounds(rows.take(kept), rows.take(apart), seed)
        self.trees_ = [trees for trees, _ in self._boost(rows, self.n_rounds_, seed)]
        return self

    def _choose_rounds(self, rows: Rows, held_out: Rows, seed: int) -> int:
        """Return the number of rounds with the lowest loss on held-out rows."""

        def loss(total: NDArray[np.float64]) -> float:
            found, every = to_probabilities(total), np.arange(len(self.classes_))
            return float(log_loss(held_out.label, found, sample_weight=held_out.weight, labels=every))

        theirs = held_out.base.copy()
        losses = [loss(theirs)]
        for trees, _ in self._boost(rows, self.max_rounds, seed):
            theirs += np.column_stack([tree(held_out.X) for tree in trees])
            losses.append(loss(theirs))
            if len(losses) - 1 - int(np.argmin(losses)) >= self._PATIENCE:
                break
        return int(np.argmin(losses))

    def _boost(self, rows: Rows, n_rounds: int, seed: int) -> Any:
        """Yield the trees of each round, and the logits after it."""
        total = rows.base.copy()
        for number in range(n_rounds):
            trees = self._round(rows, total, (seed + number) % 2**32)
            total += np.column_stack([tree(rows.X) for tree in trees])
            yield trees, total

    def _round(self, rows: Rows, total: NDArray[np.float64], seed: int) -> list[LeafTree]:
        """One tree for each logit: of the residuals, with a Newton step in each leaf."""
        probability = to_probabilities(total)[:, -total.shape[1] :]
        own_class = np.arange(len(self.classes_))[-total.shape[1] :]
        left = (rows.label[:, None] == own_class) - probability
        curvature = rows.weight[:, None] * probability * (1 - probability)
        trees = []
        for m in range(total.shape[1]):
            tree = DecisionTreeRegressor(
                max_depth=self.max_depth, min_samples_leaf=self._LEAF_ROWS, random_state=seed
            ).fit(rows.X, left[:, m], sample_weight=rows.weight)
            leaf = tree.apply(rows.X)
            slope = np.bincount(leaf, rows.weight * left[:, m], minlength=tree.tree_.node_count)
            bend = np.bincount(leaf, curvature[:, m], minlength=tree.tree_.node_count)
            trees.append(LeafTree(tree, self.learning_rate * slope / (bend + _RIDGE)))
        return trees

    def _total(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        total = _logits(self.pooled_.predict_proba(values))
        seen = np.column_stack([values, total])
        for trees in self.trees_:
            total += np.column_stack([tree(seen) for tree in trees])
        return total

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class; columns as in `classes_`."""
        return to_probabilities(self._total(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of each row, at the cut-off of the pooled classifier; of several classes the most probable."""
        return self.classes_[decide(self._total(X), self.threshold_)]


def _logits(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """One logit for two classes, and one for each of more."""
    logs = np.log(np.clip(probabilities, 1e-12, 1))
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs
