"""Control, as in multicalibration: small trees on the residuals of the pooled classifier.

If all that groups gain over a pooled classifier is capacity, a few trees on its residuals gain as much. Boosting starts
at the pooled logit and sees it as one more column, so that it can also mend the calibration. Held-out rows choose the
number of rounds, and zero rounds are a choice: the pooled classifier as it is.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dafh.checks.parameters import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    RandomState,
    check_parameters,
    having,
    number,
    whole_number,
)
from dafh.checks.rows import TakesSparse, check_features, unchanged_on_error
from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT, fit_clone, out_of_fold_probabilities, seeded
from dafh.classifiers.logits import class_probabilities, decide, logits, residual, to_probabilities
from dafh.classifiers.protocols import Classifier
from dafh.frames import Table, is_frame
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import set_rows_aside

_FOLDS = 3
# Added to the curvature of a leaf, as in other boosting libraries. Where the pooled classifier is nearly certain, there
# is hardly any, and one row with the other label would move the leaf by a logit of a hundred: on Bank, held-out rows
# then chose zero rounds.
_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Tree:
    """One regression tree as plain arrays; node 0 is the root, and children stand behind their parent."""

    children: NDArray[np.int64]
    """Nodes on the left and on the right, (nodes, 2); 0 and 0 for a leaf."""
    column: NDArray[np.int64]
    threshold: NDArray[np.float64]
    """A row goes left where its value, in single precision, is at most the threshold."""
    value: NDArray[np.float64]
    """What a leaf adds to the logit."""

    def leaves(self, X: NDArray[np.float32]) -> NDArray[np.intp]:
        """Leaf of each row; all rows go down one level at a time."""
        node = np.zeros(len(X), np.intp)
        walking = np.arange(len(X))
        while len(walking := walking[self.children[node[walking], 1] > 0]):
            at = node[walking]
            right = X[walking, self.column[at]] > self.threshold[at]
            node[walking] = self.children[at, right.astype(np.intp)]
        return node


@dataclass(frozen=True, eq=False)
class _Rows:
    """What boosting sees of rows: columns and pooled logit, label, weight."""

    X: NDArray[np.float32]
    base: NDArray[np.float64]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]

    def take(self, rows: NDArray[np.intp]) -> "_Rows":
        return _Rows(self.X[rows], self.base[rows], self.label[rows], self.weight[rows])

    def loss(self, total: NDArray[np.float64], n_classes: int) -> float:
        found = to_probabilities(total)
        return float(log_loss(self.label, found, sample_weight=self.weight, labels=np.arange(n_classes)))


class ResidualBoostingClassifier(TakesSparse, ClassifierMixin, BaseEstimator):
    """Boost small trees on (x, pooled logit), starting at the pooled logit.

    Parameters
    ----------
    pooled : classifier or None, default=None
        Copied and fitted on all rows; None is logistic regression, fitted to convergence.
    learning_rate : float, default=0.3
        Share of each Newton step that is taken.
    max_depth : int, default=3
    max_rounds : int, default=30
        Largest number of trees for each logit.
    patience : int, default=5
        Rounds without a lower held-out loss after which boosting stops.
    min_samples_leaf : int, default=20
    validation_size : float, default=0.2
        Share of the rows that are held out to choose the number of rounds; all rows then fit the trees.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : array
    pooled_ : classifier
    n_rounds_ : int
        Rounds that held-out rows chose; 0 is the pooled classifier as it is.
    trees_ : list of list of Tree
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

    _constraints: ClassVar[Constraints] = {
        "pooled": (having("fit", "predict_proba"), NOTHING),
        "learning_rate": (number(0, 1, closed="right"),),
        "max_depth": (whole_number(1),),
        "max_rounds": (whole_number(0),),
        "patience": (whole_number(1),),
        "min_samples_leaf": (whole_number(1),),
        "validation_size": (number(0, 1),),
        "random_state": (RANDOM_STATE,),
    }

    def __init__(
        self,
        pooled: Classifier | None = None,
        *,
        learning_rate: float = 0.3,
        max_depth: int = 3,
        max_rounds: int = 30,
        patience: int = 5,
        min_samples_leaf: int = 20,
        validation_size: float = 0.2,
        random_state: RandomState = None,
    ) -> None:
        self.pooled = pooled
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_rounds = max_rounds
        self.patience = patience
        self.min_samples_leaf = min_samples_leaf
        self.validation_size = validation_size
        self.random_state = random_state

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the pooled classifier, choose the number of rounds on held-out rows, and fit the trees on all rows."""
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            checked = CheckedRows.check(self, X, y, sample_weight=sample_weight)
            self.classes_ = checked.classes
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            unfitted = seeded(StandardizedLogisticRegression() if self.pooled is None else self.pooled, seed)
            self.pooled_ = fit_clone(unfitted, checked.given, checked.y, checked.fit_weight)
            if self.pooled is None:
                # With the strength of all rows: choosing it again in each fold takes most of the time on small tables.
                unfitted = StandardizedLogisticRegression(C=getattr(self.pooled_, "C_"))  # noqa: B009
            rows = self._rows(checked, unfitted, seed)
            kept, apart = set_rows_aside(rows.label, self.validation_size, np.random.default_rng(seed))
            # With hardly any rows, none can be held out, and nothing would speak for a single round.
            enough = len(checked) >= FEWEST_ROWS_TO_SPLIT and len(apart) > 0
            self.n_rounds_ = self._choose_rounds(rows.take(kept), rows.take(apart), seed) if enough else 0
            self.trees_ = self._boost(rows, self.n_rounds_, seed)
        return self

    def _rows(self, checked: CheckedRows, unfitted: Classifier, seed: int) -> _Rows:
        # Out of fold: the in-sample logits of a flexible classifier leave no residuals to learn from.
        found = out_of_fold_probabilities(
            unfitted, checked.given, checked.y, checked.classes, checked.fit_weight, _FOLDS, seed
        )
        if found is None:
            found = class_probabilities(self.pooled_, checked.given, checked.classes)
        base = logits(found)
        return _Rows(_beside(checked.X, base), base, checked.label, checked.weight)

    def _choose_rounds(self, rows: _Rows, held_out: _Rows, seed: int) -> int:
        """Return the number of rounds with the lowest loss on held-out rows."""
        total, theirs = rows.base.copy(), held_out.base.copy()
        losses = [held_out.loss(theirs, len(self.classes_))]
        for number_of_round in range(self.max_rounds):
            for m, tree in enumerate(self._round(rows, total, seed + number_of_round)):
                total[:, m] += tree.value[tree.leaves(rows.X)]
                theirs[:, m] += tree.value[tree.leaves(held_out.X)]
            losses.append(held_out.loss(theirs, len(self.classes_)))
            if len(losses) - 1 - int(np.argmin(losses)) >= self.patience:
                break
        return int(np.argmin(losses))

    def _boost(self, rows: _Rows, n_rounds: int, seed: int) -> list[list[Tree]]:
        total = rows.base.copy()
        trees = []
        for number_of_round in range(n_rounds):
            trees.append(self._round(rows, total, seed + number_of_round))
            for m, tree in enumerate(trees[-1]):
                total[:, m] += tree.value[tree.leaves(rows.X)]
        return trees

    def _round(self, rows: _Rows, total: NDArray[np.float64], seed: int) -> list[Tree]:
        """One tree for each logit: of the residuals, with a Newton step in each leaf."""
        left = residual(total, rows.label)
        probability = to_probabilities(total)[:, -total.shape[1] :]
        curvature = rows.weight[:, None] * probability * (1 - probability)
        trees = []
        for m in range(total.shape[1]):
            grown = DecisionTreeRegressor(
                max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=seed % 2**32
            ).fit(rows.X, left[:, m], sample_weight=rows.weight)
            found = grown.tree_
            leaf = grown.apply(rows.X)
            slope = np.bincount(leaf, rows.weight * left[:, m], minlength=found.node_count)
            bend = np.bincount(leaf, curvature[:, m], minlength=found.node_count)
            inner = found.children_left >= 0
            trees.append(
                Tree(
                    np.where(inner[:, None], np.column_stack([found.children_left, found.children_right]), 0),
                    np.where(inner, found.feature, 0).astype(np.int64),
                    np.where(inner, found.threshold, 0.0),
                    np.where(inner, 0.0, self.learning_rate * slope / (bend + _RIDGE)),
                )
            )
        return trees

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Logit of the second of two classes, (n,), or of every class, (n, classes)."""
        total = self._logits(X)
        return total[:, 0] if total.shape[1] == 1 else total

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; columns as in `classes_`."""
        return to_probabilities(self._logits(X))

    def predict(self, X: Table) -> NDArray[Any]:
        """Return the most probable label of each row."""
        total = self._logits(X)
        return self.classes_[decide(total)]

    def _logits(self, X: Table) -> NDArray[np.float64]:
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        given: Any = X if is_frame(X) else values
        total = logits(class_probabilities(self.pooled_, given, self.classes_))
        seen = _beside(values, total)
        for trees in self.trees_:
            for m, tree in enumerate(trees):
                total[:, m] += tree.value[tree.leaves(seen)]
        return total


def _beside(X: NDArray[Any], base: NDArray[np.float64]) -> NDArray[np.float32]:
    """Columns and pooled logit in single precision, as the trees of scikit-learn compare them."""
    return np.column_stack([X, base]).astype(np.float32)
