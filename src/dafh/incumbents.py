"""Models that a user brings: in production already, used as they are, and never changed.

`Incumbent` is a fitted model of any library, with its own columns, labels and cut-off. `IncumbentColumns` are scores
and decisions that stand in the table, made by whatever model or person. A model that gives scores or labels only gets
its probabilities from `ScoreCurve` or `LabelShares`. Both are learned from labelled rows, by one or two numbers for
each class, so that rows that were used for them say hardly more than other rows would.

A new shape in which a model may come belongs here. How groups are learned on top of one is in `dafh.estimators`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import is_fitted
from dafh.columns.encoder import as_given
from dafh.columns.kinds import LARGEST_NUMBER
from dafh.columns.labels import find_labels
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.rows import check_columns_exist
from dafh.text import listed, quoted, shown
from dafh.validation import NOTHING, Allowed, Constraints, as_array, check_parameters, check_weights, unchanged_on_error

# Rows that are enough to see in which shape a model gives its labels.
_FEW_ROWS = 100


class Incumbent(ClassifierMixin, BaseEstimator):
    """A fitted model of any library as the pooled classifier, when something has to be said about it.

    A fitted model can be passed to `DAFHClassifier` as it is, and is wrapped by this class where it needs to be: if it
    takes other columns than the groups do, gives labels in another shape, or has no `predict_proba`. Wrap it yourself
    to name columns that nothing else is to see, or labels that it only knows by number.

    The model gets the rows as they came, with the columns that it was fitted on, in their order. It is never changed,
    and copies of this object (in cross-validation, say) share it.

    Parameters
    ----------
    model : fitted model with `predict`
        With `predict_proba` if it has any. From a `decision_function`, probabilities come by a logistic curve that is
        learned in `fit`. A model with `predict` alone gets, for each label it predicts, the share of each class among
        the rows of `fit` with that prediction. Either way its own labels decide.
    labels : sequence, optional
        What the outputs 0, 1, 2, ... stand for, if the model was fitted on such numbers and y holds something else.
    columns : sequence of str, optional
        Columns that the model takes, in its order. By default those that it remembers, or else all.
    only : sequence of str, optional
        Columns of X that only this model is to see: groups and their own classifiers do not use them.

    Attributes
    ----------
    classes_ : array
        Labels, as y has them.

    Examples
    --------
    >>> from dafh import DAFHClassifier, Incumbent
    >>> from sklearn.linear_model import LogisticRegression
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "bureau": [1.5, 0.2, 2.2, 0.1] * 25})
    >>> repaid = ["yes", "no", "yes", "no"] * 25
    >>> old = LogisticRegression().fit(people[["bureau"]], [1, 0, 1, 0] * 25)
    >>> model = DAFHClassifier(1, pooled=Incumbent(old, labels=["no", "yes"], only=["bureau"])).fit(people, repaid)
    >>> model.predict(people[:2]).tolist(), model.feature_names_in_.tolist()
    (['yes', 'no'], ['age'])
    """

    def __init__(
        self,
        model: Any,
        *,
        labels: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        only: Sequence[str] = (),
    ) -> None:
        self.model = model
        self.labels = labels
        self.columns = columns
        self.only = only

    def __sklearn_clone__(self) -> "Incumbent":
        """Copy what was said about the model, and share the model: a copy that is not fitted would be another one."""
        return Incumbent(self.model, labels=self.labels, columns=self.columns, only=self.only)

    def check(self) -> None:
        """Refuse what is no fitted model, and what was said about it in a way that cannot be understood."""
        check_incumbent(self.model)
        for name, given in {"columns": self.columns, "only": self.only}.items():
            if given is None:
                continue
            is_list = isinstance(given, Sequence | np.ndarray | pd.Index) and not isinstance(given, str)
            if not is_list or not all(isinstance(column, str) for column in given):
                raise InputError(f"{name} of Incumbent must be a list of names of columns, got {shown(given)}.")
        if self.labels is None:
            return
        labels = as_array(self.labels, "labels")
        of_one_kind = labels.ndim == 1 and len({type(one) for one in labels.tolist()}) == 1
        plain = of_one_kind and isinstance(labels.tolist()[0], str | bool | int | float)
        if not plain or len(set(labels.tolist())) < len(labels):
            raise InputError(
                f"labels of Incumbent must be a list of different texts or numbers, got {shown(self.labels)}."
            )

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn how to ask the model, and what its scores or labels mean; the model itself is not fitted."""
        with unchanged_on_error(self):
            self.check()
            self._model = self.model
            self._by_number = self.labels is not None
            self._names = self._found_columns(X)
            self.classes_, self._places = self._match_classes(np.unique(np.asarray(y)))
            label = np.searchsorted(self.classes_, np.asarray(y))
            # Refuses scores and numbers that are no labels, before groups are learned on top of them.
            self._predicted(_head(X))
            self._curve: ScoreCurve | None = None
            self._shares: LabelShares | None = None
            weight = check_weights(sample_weight, len(label))
            if not hasattr(self.model, "predict_proba"):
                if hasattr(self.model, "decision_function") and len(self.classes_) == 2:
                    self._curve = ScoreCurve.learn(self._scores(X), label == 1, weight)
                else:
                    self._shares = LabelShares.learn(self._predicted(X), label, weight, len(self.classes_))
        return self

    def _found_columns(self, X: Table) -> tuple[str, ...] | None:
        """Columns that the model is given; those that it remembers and never uses may be missing."""
        names = remembered_columns(self.model, X) if self.columns is None else tuple(self.columns)
        if names is None or not is_frame(X):
            return names
        table = _as_it_came(_head(X))
        there = [name for name in names if name in table.columns]
        if len(there) < len(names):
            try:
                self.model.predict(table[there])
            except Exception:  # In words of its own, which are rarely about columns.
                check_columns_exist(table, names)
        return tuple(there)

    def known_classes(self, present: NDArray[Any]) -> NDArray[Any]:
        """Labels that the model knows, in the words of those that occur."""
        return self._match_classes(present)[0]

    def _match_classes(self, present: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Labels as y has them, and the position among them of each label that the model knows."""
        own = getattr(self.model, "classes_", None)
        if self.labels is not None:
            classes = np.unique(np.asarray(self.labels))
            return _containing(classes, present, self.model), np.searchsorted(classes, np.asarray(self.labels))
        if own is None:
            return present, np.arange(len(present))
        own = np.asarray(own)
        # Some libraries turn True into "True", or 1 into 1.0: the same label in other words.
        if own.dtype.kind == present.dtype.kind or np.isin(present, own).all():
            classes = np.unique(own)
            return _containing(classes, present, self.model), np.searchsorted(classes, own)
        places, strange = find_labels(pd.Series(own), present)
        if strange is not None:
            _containing(own, present, self.model)
        return present, places

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row, as the model decides it."""
        check_is_fitted(self)
        return self.classes_[self._predicted(X)]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class, as the model gives it, or from its score or its label."""
        check_is_fitted(self)
        if self._curve is not None:
            return self._curve.probabilities(self._scores(X))
        if self._shares is not None:
            return self._shares.probabilities(self._predicted(X))
        given = np.asarray(self._model.predict_proba(self._rows(X)), np.float64)
        probabilities = np.zeros((len(given), len(self.classes_)))
        probabilities[:, self._places] = given
        return probabilities

    def _scores(self, X: Table) -> NDArray[np.float64]:
        score = np.asarray(self._model.decision_function(self._rows(X)), np.float64).reshape(-1)
        # It speaks for the second of the model's own labels, which may be the first of ours.
        return score if self._places[-1] == 1 else -score

    def _predicted(self, X: Table) -> NDArray[np.intp]:
        """Position of each row's label."""
        labels = np.asarray(self._model.predict(self._rows(X)))
        # CatBoost gives a column where there are more than two classes.
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.ndim != 1:
            raise InputError(
                f"{_name(self._model)} predicts {labels.shape[1]} values for each row: it needs to be one."
            )
        numbers = np.arange(len(self._places))
        own = numbers if self._by_number else np.asarray(getattr(self._model, "classes_", self.classes_))
        found, strange = find_labels(pd.Series(labels), own)
        if strange is not None:
            raise InputError(
                f"{_name(self._model)} predicts {quoted(strange)}, which is none of the labels "
                f"({listed([quoted(label) for label in own[:5]])}): bring a classifier, or put what it "
                "predicts into a column and name it by IncumbentColumns."
            )
        return self._places[found]

    def _rows(self, X: Table) -> Any:
        """Rows as the model takes them."""
        if not is_frame(X):
            return X
        table = _as_it_came(X)
        if self._names is None:
            # Whoever was fitted on an array warns of names.
            return table.to_numpy() if getattr(self._model, "n_features_in_", None) is not None else table
        check_columns_exist(table, self._names)
        table = table[list(self._names)]
        return table if remembers_names(self._model) else table.to_numpy()

    def as_it_is(self, X: Table) -> Any:
        """Return the model itself where it can be asked without any help, and this object otherwise."""
        if self._curve is not None or self._shares is not None or self._by_number or names_aside(self.only):
            return self
        own = getattr(self._model, "classes_", None)
        same_labels = own is not None and np.asarray(own).dtype == self.classes_.dtype
        if not same_labels or np.ndim(self._model.predict(self._rows(_head(X)))) != 1:
            return self
        if is_frame(X):
            names = [str(name) for name in X.columns]
            return self._model if self._names == tuple(names) and remembers_names(self._model) else self
        return self._model


def check_incumbent(model: Any) -> None:
    """Refuse a model that cannot be a pooled classifier."""
    if not callable(getattr(model, "predict", None)):
        raise InputError(f"{_name(model)} has no predict: it cannot be the pooled classifier.")
    try:
        regressor = is_regressor(model)
    except (AttributeError, TypeError):  # Of no library that follows scikit-learn: nobody knows until it predicts.
        regressor = False
    if regressor:
        raise InputError(
            f"{_name(model)} is a regressor: bring a classifier, or put what it predicts into a column and name it by "
            "IncumbentColumns."
        )
    if not is_fitted(model):
        raise InputError(f"{_name(model)} is not fitted: an incumbent is used as it is.")


def remembered_columns(model: Any, X: Table) -> tuple[str, ...] | None:
    """Columns that a model was fitted on, as X calls them; None where it does not know."""
    n_given = np.shape(X)[1]
    names = _remembered(model)
    if not is_frame(X) or names is None:
        expected = getattr(model, "n_features_in_", n_given)
        n_given = _as_it_came(X).shape[1] if is_frame(X) else n_given
        if expected != n_given:
            raise InputError(
                f"The fitted pooled classifier takes {expected} features, X has {n_given}: both must see the same "
                "columns, or the pooled classifier has to know those it takes by name."
            )
        return None
    given = [str(name) for name in _as_it_came(X).columns]
    # LightGBM writes an underscore for every space.
    spelled = {name.replace(" ", "_"): name for name in given} | {name: name for name in given}
    return tuple(spelled.get(name, name) for name in names)


def remembers_names(model: Any) -> bool:
    """Whether a model was fitted on a frame, and expects one."""
    return _remembered(model) is not None


def _remembered(model: Any) -> list[str] | None:
    # CatBoost has a name of its own for it. XGBoost raises an AttributeError where it was fitted on an array.
    names = getattr(model, "feature_names_in_", None)
    names = getattr(model, "feature_names_", None) if names is None else names
    if names is None:
        return None
    texts = [str(name) for name in names]
    # LightGBM and CatBoost number the columns of an array.
    numbered = [[f"{prefix}{i}" for i in range(len(texts))] for prefix in ("Column_", "")]
    return None if texts in numbered else texts


def _containing(classes: NDArray[Any], present: NDArray[Any], model: Any) -> NDArray[Any]:
    """Return the classes of a model, and refuse labels that are not among them."""
    unknown = present[~np.isin(present, classes)]
    if len(unknown):
        known = listed([quoted(label) for label in np.asarray(classes)[:5]])
        raise InputError(
            f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}. "
            f"{_name(model)} knows {known}; if those stand for other words, say so by Incumbent(model, labels=[...])."
        )
    return classes


def _as_it_came(X: Any) -> pd.DataFrame:
    return as_given(to_pandas(X))


def _head(X: Any) -> Any:
    return X.head(_FEW_ROWS) if hasattr(X, "head") else np.asarray(X)[:_FEW_ROWS]


def _name(model: Any) -> str:
    return type(model).__name__


def names_aside(only: Sequence[str] | None) -> tuple[str, ...]:
    """Columns that only the model is to see, as a tuple: they may be given as an array, or as None."""
    return () if only is None else tuple(only)


# ---- scores and decisions in the table ----

_NAME = Allowed("the name of a column", lambda value: isinstance(value, str))
_FINITE = Allowed("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))


class IncumbentColumns(ClassifierMixin, BaseEstimator):
    """Read the pooled classifier from the table: its score, its decision, or both.

    With it, a model in any language, or a person who decides, can be the pooled classifier of `DAFHClassifier`. Every
    table to be scored needs the same columns. They are kept out of the groups and of their own classifiers, which
    correct the score and nothing else.

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
    >>> model.pooled_.predict(people[:4]), model.feature_names_in_
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
    ) -> None:
        self.score = score
        self.decision = decision
        self.threshold = threshold

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        # Asked before `fit` has checked the names: what is no text is refused there.
        return tuple(dict.fromkeys(name for name in (self.score, self.decision) if isinstance(name, str)))

    @property
    def only(self) -> tuple[str, ...]:
        """Columns that nothing else is to see."""
        return self.columns

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
    check_columns_exist(table, names)
    return table[list(names)]


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


# ---- probabilities for what has none ----


@dataclass(frozen=True)
class ScoreCurve:
    """The probability of the second of two classes as a logistic curve of a score (Platt's scaling)."""

    intercept: float
    slope: float
    """Negative where a higher score speaks for the first class, as credit scores do if the target is default."""

    @classmethod
    def learn(
        cls, score: NDArray[np.float64], positive: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> "ScoreCurve":
        """Fit the curve."""
        mean = float(np.average(score, weights=weight))
        scale = float(np.sqrt(np.average((score - mean) ** 2, weights=weight))) or 1.0
        # One row's worth of penalty: a score that parts the classes perfectly still has a finite slope.
        model = LogisticRegression(C=1.0).fit(((score - mean) / scale)[:, None], positive, sample_weight=weight)
        slope = float(model.coef_[0, 0]) / scale
        return cls(float(model.intercept_[0]) - slope * mean, slope)

    def probabilities(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of both classes, (n, 2)."""
        positive = expit(self.intercept + self.slope * score)
        return np.column_stack([1 - positive, positive])


@dataclass(frozen=True, eq=False)
class LabelShares:
    """How often each class is true, by the label that is predicted."""

    table: NDArray[np.float64]
    """Row: predicted; column: true; both as positions of classes."""

    @classmethod
    def learn(
        cls, predicted: NDArray[np.intp], label: NDArray[np.intp], weight: NDArray[np.float64], n_classes: int
    ) -> "LabelShares":
        """Count, with one more row for each predicted label that has all classes in their shares among all rows.

        Without it, a label that was never wrong here would count as never wrong anywhere, and could not be corrected.
        """
        counts = np.bincount(predicted * n_classes + label, weight, n_classes**2).reshape(n_classes, n_classes)
        everywhere = counts.sum(axis=0) / counts.sum()
        return cls((counts + everywhere) / (counts.sum(axis=1, keepdims=True) + 1))

    def probabilities(self, predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        """Probability of each class, (n, classes)."""
        return self.table[predicted]
