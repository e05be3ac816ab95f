"""Prediction by groups: what a fitted DAFHClassifier says about rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import Classifier, decide, rows_at_once, to_probabilities
from dafh.estimators.pooled import pooled_labels, pooled_logits
from dafh.frames import Table, is_frame
from dafh.groups.trained import TrainedGroups
from dafh.linear.threads import one_thread
from dafh.rows import EncodedRows, TableEncoding, check_columns_aside

# Odds of more than e^20 to 1 are no longer told apart: no data could support them.
LARGEST_LOGIT = 20.0


class ServedRows(NamedTuple):
    """What is said about rows that a model serves."""

    label: NDArray[Any]
    probability: NDArray[Any]
    """Of each class, (n, classes)."""
    group: NDArray[np.intp]
    unseen: dict[str, tuple[int, Any]]
    """By column, the number of rows with a category that training rows did not have, and one of these."""


class PairedDecisions(NamedTuple):
    """What two classifiers decide about rows, as positions of classes."""

    group: NDArray[np.intp]
    """The number of groups stands for rows that belong to none."""
    own: NDArray[np.intp]
    """By the classifier that was asked for the row's group."""
    pooled: NDArray[np.intp]


class GroupPrediction(BaseEstimator):
    """Labels, probabilities and groups of rows; only fitted attributes are read: `set_params` changes nothing."""

    classes_: NDArray[Any]
    n_groups_: int
    pooled_: Classifier
    serves_: NDArray[np.intp]
    threshold_: float
    _aside: tuple[str, ...] | None
    """Columns that only the pooled classifier sees; None where it sees what groups see."""
    _encoding: TableEncoding
    _trained: TrainedGroups
    """Every own classifier as it was trained."""
    _serving: TrainedGroups
    """The same with the classifiers that serve."""

    def _see(self, X: Table) -> EncodedRows:
        """Check rows, and look at them as in training."""
        check_is_fitted(self)
        table, _ = check_columns_aside(self, X, reset=False, aside=self._aside)
        return self._encoding.encode(table if is_frame(X) else table.to_numpy())

    def _in_blocks(self, X: Table) -> Iterator[EncodedRows]:
        """Yield rows of which only labels are asked for: a model of many labels has more logits than there is room."""
        seen = self._see(X)
        size = rows_at_once(self, len(seen))
        if len(seen) <= size:
            yield seen
        else:
            yield from (seen.take(np.arange(len(seen))[start : start + size]) for start in range(0, len(seen), size))

    def _pooled_logits(self, seen: EncodedRows) -> NDArray[np.float64]:
        return pooled_logits(self.pooled_, seen, self.classes_)

    def _left_to_pooled(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows that the pooled classifier serves."""
        return np.flatnonzero(self.serves_[group] == self.n_groups_)

    def _route(self, seen: EncodedRows) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row, and the logits of the classifier that serves it (n, m)."""
        # Here and not only around each product: where several threads predict at once, setting the limit and taking it
        # back for each block of rows took four times as long as the products.
        with one_thread():
            group, own = self._serving.route(seen, self._pooled_logits(seen) if self._trained.contains_pooled else None)
            # A zero correction is the pooled classifier already; only classifiers that do not contain it need help.
            rows = self._left_to_pooled(group)
            if len(rows) and not self._trained.contains_pooled:
                own[rows] = self._pooled_logits(seen.take(rows))
        return group, own

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row, by the classifier that serves its group."""
        return np.concatenate([self._labels(seen, *self._route(seen)) for seen in self._in_blocks(X)])

    def _labels(self, seen: EncodedRows, group: NDArray[np.intp], own: NDArray[Any]) -> NDArray[Any]:
        labels = self.classes_[decide(own, self.threshold_)]
        rows = self._left_to_pooled(group)
        if len(rows):  # Its own label, not the one of its probabilities: it may have a threshold of its own.
            labels[rows] = pooled_labels(self.pooled_, seen.take(rows))
        return labels

    def predict_proba(self, X: Table) -> NDArray[Any]:
        """Probability of each class, by the classifier that serves the row's group; columns as in `classes_`."""
        return to_probabilities(_limited(self._route(self._see(X))[1]))

    def pooled_proba(self, X: Table) -> NDArray[Any]:
        """Probability of each class by the pooled classifier, whoever serves the row; columns as in `classes_`."""
        return to_probabilities(_limited(self._pooled_logits(self._see(X))))

    def decision_function(self, X: Table) -> NDArray[Any]:
        """Logit of ``classes_[1]`` (two classes) or of every class, by the classifier that serves the row."""
        values = _limited(self._route(self._see(X))[1])
        return values[:, 0] if values.shape[1] == 1 else values

    def serve(self, X: Table) -> ServedRows:
        """Label, probability of each class, and group of each row in one pass.

        The same as `predict`, `predict_proba` and `predict_group`: rows are checked, put into bins and routed once
        instead of three times.
        """
        seen = self._see(X)
        group, own = self._route(seen)
        return ServedRows(self._labels(seen, group, own), to_probabilities(_limited(own)), group, _unseen(seen))

    def unseen_categories(self, X: Table) -> dict[str, int]:
        """Rows with a category that training rows did not have, by column; columns without any are left out.

        They are served like all others. Of a column with so many categories that the rare ones share a bin, unseen ones
        share it too, and are not counted.
        """
        return {name: n_rows for name, (n_rows, _) in self.find_unseen(X).items()}

    def find_unseen(self, X: Table) -> dict[str, tuple[int, Any]]:
        """Return the same with one of the categories for each column."""
        return _unseen(self._see(X))

    def decide_twice(self, X: Table, servers: NDArray[np.intp], sensitive_features: Table | None) -> PairedDecisions:
        """Decide about each row by classifier ``servers[k]`` for group k, whoever serves it, and by the pooled one."""
        serving, found = self._trained.serving(servers), []
        for seen in self._in_blocks(X):
            group, own = serving.route(seen, self._pooled_logits(seen) if self._trained.contains_pooled else None)
            pooled = pd.Index(self.classes_).get_indexer(pooled_labels(self.pooled_, seen))
            found.append((group, decide(own, self.threshold_), pooled))
        return PairedDecisions(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def predict_group(self, X: Table) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1."""
        seen = self._see(X)  # First, because it says when the model is not fitted.
        return self._trained.assign(seen)

    def group_proba(self, X: Table) -> NDArray[Any]:
        """Soft assignment of each row to the groups, (n, `n_groups_`); 0 or 1 where they are rules."""
        seen = self._see(X)
        return self._trained.group_proba(seen)

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1).

        Column k is the classifier that serves group k; the pooled classifier is the last column.
        """
        blocks = []
        for seen in self._in_blocks(X):
            every = self._serving.every(seen, self._pooled_logits(seen))
            own = self.classes_[decide(every, self.threshold_)]
            blocks.append(np.column_stack([own, self.pooled_.predict(seen.X)]))
        labels = np.concatenate(blocks)
        # The pooled classifier's own labels, also where its threshold is not one half.
        labels[:, :-1][:, self.serves_ == self.n_groups_] = labels[:, -1:]
        return labels


def _limited(values: NDArray[Any]) -> NDArray[Any]:
    return values.clip(-LARGEST_LOGIT, LARGEST_LOGIT) if values.shape[1] == 1 else values


def _unseen(seen: EncodedRows) -> dict[str, tuple[int, Any]]:
    """By column, the number of rows with an unseen category and one of these; a gap is missing, and not unseen."""
    binning, found = seen.encoding.binning, {}
    for position, rows in ({} if binning is None else binning.unseen_categories(seen.codes)).items():
        values = seen.features.iloc[rows, position].dropna()
        if len(values):
            found[str(seen.features.columns[position])] = (len(values), values.iloc[0])
    return found
