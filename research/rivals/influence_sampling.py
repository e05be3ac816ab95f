"""Fairness without harm by acquiring rows (after Pang, Wang, Zhu, Yao, Qian and Liu, NeurIPS 2024)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from research.rivals.training import Floats, TwoClassClassifier, two_classes


@dataclass(eq=False, repr=False, kw_only=True)
class InfluenceSamplingClassifier(TwoClassClassifier):
    """Logistic regression that asks for the labels of the rows that would reduce the disparity of its decisions most.

    In each round, one gradient step on a row of the pool, with the label that the model would give it, says how the
    row would change disparity and loss on validation rows, which have the attribute. Of the rows that do not increase
    the loss, those that reduce the disparity most are acquired with their labels. The round counts only if accuracy on
    the validation rows does not fall. The attribute of no other row is used, and none to predict.

    What is simpler than in the paper: the pool is a part of the same data; the model is linear and fitted to
    convergence in every round; the disparity is the difference between the mean probabilities of two groups
    (demographic parity); and the predicted label stands for the one that is not yet known.

    `first_share` of the rows train at the start and `validation_share` validate; the others are the pool, of which
    each round acquires `acquired_share`. `accuracies_` are those on validation rows, at the start and after
    each round that counted; `n_rejected_` rounds did not count.
    """

    first_share: float = 0.3
    validation_share: float = 0.2
    rounds: int = 10
    acquired_share: float = 0.1
    random_state: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, attribute: ArrayLike) -> Self:
        """Fit; the attribute (two values) is used on validation rows only."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        self.scaler_ = StandardScaler().fit(values)
        x = self.scaler_.transform(values)
        order = np.random.default_rng(self.random_state).permutation(len(x))
        sizes = np.cumsum([int(share * len(x)) for share in (self.first_share, self.validation_share)])
        training, validation, pool = np.split(order, sizes)
        groups = np.asarray(attribute)[validation]
        x_val, y_val, in_group = x[validation], label[validation], groups == groups[0]
        n_acquired = max(1, int(self.acquired_share * len(pool)))

        model = LogisticRegression(max_iter=1000).fit(x[training], label[training])
        self.accuracies_ = [float(model.score(x_val, y_val))]
        self.n_rejected_ = 0
        for _ in range(self.rounds):
            p = model.predict_proba(x[pool])[:, 1]
            residual = p - (p > 0.5)  # The gradient of the loss of row i is residual_i · (x_i, 1).
            gap, gradient = _gap(model, x_val, in_group)
            error = model.predict_proba(x_val)[:, 1] - y_val
            loss_gradient = np.append(error @ x_val, error.sum()) / len(y_val)
            # A step against the gradient of a row changes what has gradient g by − residual_i (x_i, 1) · g.
            change = -residual * (x[pool] @ (np.sign(gap) * gradient[:-1]) + np.sign(gap) * gradient[-1])
            harmless = -residual * (x[pool] @ loss_gradient[:-1] + loss_gradient[-1]) <= 0
            best = np.argsort(np.where(harmless & (change < 0), change, np.inf))[:n_acquired]
            best = best[(harmless & (change < 0))[best]]
            if not len(best):
                break
            grown = np.concatenate([training, pool[best]])
            pool = np.delete(pool, best)
            refitted = LogisticRegression(max_iter=1000).fit(x[grown], label[grown])
            accuracy = float(refitted.score(x_val, y_val))
            if accuracy < self.accuracies_[-1]:
                self.n_rejected_ += 1
                continue
            model, training = refitted, grown
            self.accuracies_.append(accuracy)
        self.classifier_ = model
        return self

    def _logits(self, values: Floats) -> Floats:
        return np.asarray(self.classifier_.decision_function(self.scaler_.transform(values)))


def _gap(model: LogisticRegression, x: Floats, in_group: NDArray[np.bool_]) -> tuple[float, Floats]:
    """Difference of the mean probability between the group and the others, with its gradient by (w, b)."""
    p = model.predict_proba(x)[:, 1]
    weight = np.where(in_group, 1 / in_group.sum(), -1 / (~in_group).sum())
    slope = weight * p * (1 - p)  # The derivative of a probability by its logit is p (1 − p).
    return float(weight @ p), np.append(slope @ x, slope.sum())
