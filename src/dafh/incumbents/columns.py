"""A score and a decision that stand in the table, as a classifier."""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dafh.checks.parameters import NOTHING, Allowed, Constraints, check_parameters
from dafh.checks.rows import check_weights, unchanged_on_error
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.incumbents.scales import LabelShares, ScoreCurve
from dafh.tables.labels import find_labels
from dafh.tables.values import LARGEST_NUMBER
from dafh.text import listed, quoted

_NAME = Allowed("the name of a column", lambda value: isinstance(value, str))
_FINITE = Allowed("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))


class IncumbentColumns(ClassifierMixin, BaseEstimator):
    """Read the pooled classifier from the table: its score, its decision, or both.

    With it, a model in any language, or a person who decides, can be the pooled classifier of `DAFHClassifier`. Every
    table to be scored needs the same columns. They are kept out of the groups and of their own classifiers, which
    correct the score and nothing else, unless `as_features` is set.

    Parameters
    ----------
    score : str, optional
        Column with a number for each row. If all lie between 0 and 1, and the second label is more frequent where they
        are higher, they are taken as its probability. Any other score (300 to 850, say, or one that falls with the
        risk) becomes a probability by a logistic curve, which is learned in `fit`. Needs two classes.
    decision : str, optional
        Column with the label that was decided on. Without a score, the probability of each class is its share among
        the rows of `fit` with the same decision.
    threshold : float, optional
        Without a decision: the score that parts the two labels. Scores beyond it, on the side where the second label is
        more frequent, predict that label. By default 0.5, for scores between 0 and 1; other scores need it.
    as_features : bool, default=False
        Whether groups, and their own classifiers, may use these columns as well.

    Attributes
    ----------
    classes_ : array
        Labels.

    Examples
    --------
    >>> from dafh import DAFHClassifier, IncumbentColumns
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "score": [640, 580, 700, 610] * 25})
    >>> repaid, approved = [1, 0, 1, 0] * 25, ["yes", "no", "yes", "yes"] * 25
    >>> incumbent = IncumbentColumns("score", threshold=600).fit(people, repaid)
    >>> incumbent.predict(people[:4])
    array([1, 0, 1, 1])
    >>> model = DAFHClassifier(1, pooled=IncumbentColumns("score", threshold=600)).fit(people, repaid)
    >>> model.predict(people[:4]), model.feature_names_in_
    (array([1, 0, 1, 1]), array(['age'], dtype=object))
    """

    _constraints: ClassVar[Constraints] = {
        "score": (_NAME, NOTHING),
        "decision": (_NAME, NOTHING),
        "threshold": (_FINITE, NOTHING),
    }

    def __init__(
        self,
        score: str | None = None,
        decision: str | None = None,
        *,
        threshold: float | None = None,
        as_features: bool = False,
    ) -> None:
        self.score = score
        self.decision = decision
        self.threshold = threshold
        self.as_features = as_features

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        # Asked before `fit` has checked the names: what is no text is refused there.
        return tuple(dict.fromkeys(name for name in (self.score, self.decision) if isinstance(name, str)))

    @property
    def only(self) -> tuple[str, ...]:
        """Columns that nothing else is to see."""
        return () if self.as_features else self.columns

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn what the score means; the columns themselves are taken as they are."""
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            if not self.columns:
                raise InputError("Name the column of the score, of the decision, or both.")
            if self.decision is not None and self.threshold is not None:
                raise InputError("Decisions are in the table already: leave the threshold out, or the decision.")
            self.classes_, label = np.unique(np.asarray(y), return_inverse=True)
            self._read = (self.score, self.decision)
            table, weight = _named(X, self.columns), check_weights(sample_weight, len(label))
            self._curve: ScoreCurve | None = None
            self._shares: LabelShares | None = None
            self._threshold: float | None = None
            if self.score is None:
                self._shares = LabelShares.learn(self._decided(table), label, weight, len(self.classes_))
            else:
                self._learn_score(_numbers(table, self.score), label, weight)
            if self.decision is not None:
                self._decided(table)  # Refuses decisions that are none of the labels, before anything else is done.
        return self

    def _learn_score(self, score: NDArray[np.float64], label: NDArray[np.intp], weight: NDArray[np.float64]) -> None:
        if len(self.classes_) != 2:
            raise InputError(
                f"A score needs two classes, and y holds {len(self.classes_)}: name the column of the decision alone."
            )
        curve = ScoreCurve.learn(score, label == 1, weight)
        within = bool(((score >= 0) & (score <= 1)).all())
        self._curve = None if within and curve.slope > 0 else curve
        if self.decision is None:
            if self.threshold is None and not within:
                raise InputError(
                    f"The column {quoted(self.score)} holds {score.max():g}, so it is no probability: name the column "
                    "of the decision too, or the threshold at which it is made."
                )
            self._threshold = 0.5 if self.threshold is None else float(self.threshold)

    def predict(self, X: Table) -> NDArray[Any]:
        """Label that was decided on, or that the score and its threshold decide."""
        check_is_fitted(self)
        table = _named(X, [name for name in self._read if name is not None])
        if self._read[1] is not None:
            return self.classes_[self._decided(table)]
        assert self._threshold is not None
        score = self._scores(table)
        falls = self._curve is not None and self._curve.slope < 0
        return self.classes_[(score < self._threshold if falls else score > self._threshold).astype(np.intp)]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class, from the score or else from the decision."""
        check_is_fitted(self)
        table = _named(X, [name for name in self._read if name is not None])
        if self._shares is not None:
            return self._shares.probabilities(self._decided(table))
        score = self._scores(table)
        return np.column_stack([1 - score, score]) if self._curve is None else self._curve.probabilities(score)

    def _scores(self, table: pd.DataFrame) -> NDArray[np.float64]:
        score = _numbers(table, str(self._read[0]))
        if self._curve is None and not ((score >= 0) & (score <= 1)).all():
            raise InputError(
                f"The column {quoted(self._read[0])} held probabilities in fit, and holds "
                f"{score[np.argmax(np.abs(score))]:g} now."
            )
        return score

    def _decided(self, table: pd.DataFrame) -> NDArray[np.intp]:
        """Position of the label that was decided on."""
        column = table[str(self._read[1])]
        if column.isna().any():
            raise InputError(_gaps(str(column.name), int(column.isna().sum())))
        places, strange = find_labels(column, self.classes_)
        if strange is not None:
            raise InputError(
                f"The column {quoted(column.name)} holds {quoted(strange)}, which is none of the labels of the target "
                f"({listed([quoted(label) for label in self.classes_[:5]])}): decisions are written as labels."
            )
        return places


def _named(X: Table, names: list[str] | tuple[str, ...]) -> pd.DataFrame:
    """Return the columns of these names, or say which one is missing."""
    if not is_frame(X):
        raise InputError(f"The pooled classifier is read from the column {quoted(names[0])}: pass a data frame.")
    table = to_pandas(X)
    check_there(table, names)
    return table[list(names)]


def check_there(table: pd.DataFrame, names: list[str] | tuple[str, ...]) -> None:
    """Refuse a table without the columns that the pooled classifier asks for."""
    missing = [quoted(name) for name in names if name not in table.columns]
    if missing:
        which = f"column {missing[0]}" if len(missing) == 1 else f"columns {listed(missing[:5])}"
        raise InputError(f"The pooled classifier needs the {which}, which the table does not have.")


def _numbers(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    try:
        values = table[name].to_numpy(np.float64, na_value=np.nan)
    except OverflowError:
        raise InputError(f"The column {quoted(name)} holds a number that is too large: a score is not.") from None
    except (TypeError, ValueError):
        raise InputError(f"The column {quoted(name)} holds text: a score is a number.") from None
    gaps = int((~(np.abs(values) < LARGEST_NUMBER)).sum())
    if gaps:
        raise InputError(_gaps(name, gaps))
    return values


def _gaps(name: str, n_rows: int) -> str:
    rows = "1 row" if n_rows == 1 else f"{n_rows:,} rows"
    return f"The column {quoted(name)} is missing in {rows}: the pooled classifier needs it in every row."
