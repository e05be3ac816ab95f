"""Models that a user brings: in production already, used as they are, and never changed.

`Incumbent` is a fitted model of any library, with its own columns, labels and cut-off. `IncumbentColumns` are scores
and decisions that stand in the table, made by whatever model or person. What gives scores or labels only gets
probabilities from a logistic regression on them: one or two numbers for each class, so that the rows that they were
learned from say hardly more than other rows would.

A new shape in which a model may come belongs here. How groups are learned on top of one is in `dafh.estimators`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import class_probabilities, is_fitted
from dafh.columns.encoder import as_given
from dafh.columns.kinds import LARGEST_NUMBER
from dafh.columns.labels import find_labels
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows import check_columns_exist
from dafh.text import listed, quoted
from dafh.validation import NOTHING, Allowed, Constraints, check_parameters, sequence_of, unchanged_on_error

# Rows that are enough to see in which shape a model gives its labels.
_ROWS_TO_TRY = 100
_NAME = Allowed("the name of a column", lambda value: isinstance(value, str))
_NAMES = sequence_of(_NAME, "a list of names of columns")
_LABEL = Allowed("a label", lambda value: isinstance(value, str | bool | int | float | np.generic))
_NUMBER = Allowed("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))


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
        With `predict_proba` if it has any. Otherwise probabilities come from a logistic regression on its
        `decision_function`, or on the labels that it predicts, which is learned in `fit`. Its own labels decide.
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

    _constraints: ClassVar[Constraints] = {
        "labels": (sequence_of(_LABEL, "a list of texts or numbers"), NOTHING),
        "columns": (_NAMES, NOTHING),
        "only": (_NAMES, NOTHING),
    }

    def __init__(
        self,
        model: Any,
        *,
        labels: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        only: Sequence[str] | None = None,
    ) -> None:
        self.model = model
        self.labels = labels
        self.columns = columns
        self.only = only

    def __sklearn_clone__(self) -> "Incumbent":
        """Copy what was said about the model, and share the model: a copy that is not fitted would be another one."""
        return Incumbent(self.model, labels=self.labels, columns=self.columns, only=self.only)

    def check(self) -> None:
        """Refuse what is no fitted classifier, and what was said about it in a way that cannot be understood."""
        name = type(self.model).__name__
        if not callable(getattr(self.model, "predict", None)):
            raise InputError(f"{name} has no predict: it cannot be the pooled classifier.")
        try:
            regressor = is_regressor(self.model)
        except (AttributeError, TypeError):  # Of no library that follows scikit-learn: nobody knows until it predicts.
            regressor = False
        if regressor:
            raise InputError(
                f"{name} is a regressor: bring a classifier, or put what it predicts into a column and name it by "
                "IncumbentColumns."
            )
        if not is_fitted(self.model):
            raise InputError(f"{name} is not fitted: an incumbent is used as it is.")
        check_parameters(self, self._constraints)
        if self.labels is not None and len(np.unique(np.asarray(self.labels))) < len(self.labels):
            raise InputError("labels of Incumbent must differ from each other: each stands for one output.")

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn how to ask the model, and what its scores or labels mean; the model itself is not fitted."""
        with unchanged_on_error(self):
            self.check()
            self._model = self.model
            self._by_number = self.labels is not None
            self._names = self._find_columns(X)
            self.classes_, self._class_codes = self._match_classes(np.unique(np.asarray(y)))
            # Refuses scores and numbers that are no labels, before groups are learned on top of them.
            self._predicted(_first_rows(X))
            self._calibration: StandardizedLogisticRegression | None = None
            if not hasattr(self.model, "predict_proba"):
                # Platt's calibration with a fixed weak penalty: isotonic regression fits the rows it has seen too well,
                # and the guard would compare own classifiers with a pooled one that looks better than it is.
                self._calibration = StandardizedLogisticRegression(C=1.0).fit(self._outputs(X), y, sample_weight)
        return self

    def _find_columns(self, X: Table) -> tuple[str, ...] | None:
        """Columns that the model is given, as X calls them; None where it takes X as it is."""
        table = _as_it_came(_first_rows(X)) if is_frame(X) else np.asarray(_first_rows(X))
        names = _remembered_names(self.model) if self.columns is None else list(self.columns)
        if names is None or not isinstance(table, pd.DataFrame):
            expected, n_columns = getattr(self.model, "n_features_in_", None), table.shape[1]
            if self.columns is None and expected not in (None, n_columns):
                raise InputError(
                    f"The fitted pooled classifier takes {expected} features, X has {n_columns}: both must see the "
                    "same columns, or the pooled classifier has to know those it takes by name."
                )
            return None
        # LightGBM writes an underscore for every space.
        spelled = {str(name).replace(" ", "_"): str(name) for name in table.columns}
        names = [name if name in table.columns else spelled.get(name, name) for name in names]
        present = [name for name in names if name in table.columns]
        if len(present) < len(names):  # Those that it remembers and never uses may be missing.
            try:
                self.model.predict(table[present])
            except Exception:  # In words of its own, which are rarely about columns.
                check_columns_exist(table, names)
        return tuple(present)

    def known_classes(self, present: NDArray[Any]) -> NDArray[Any]:
        """Labels that the model knows, in the words of those that occur."""
        return self._match_classes(present)[0]

    def _match_classes(self, present: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Labels as y has them, and the position among them of each output of the model."""
        own = getattr(self.model, "classes_", None) if self.labels is None else self.labels
        if own is None:
            return present, np.arange(len(present))
        own = np.asarray(own)
        # Some libraries turn True into "True", or 1 into 1.0: the same label in other words.
        if self.labels is None and own.dtype.kind != present.dtype.kind and not np.isin(present, own).all():
            codes, unknown_label = find_labels(pd.Series(own), present)
            if unknown_label is None:
                return present, codes
        unknown = present[~np.isin(present, own)]
        if len(unknown):
            raise InputError(
                f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}. "
                f"{type(self.model).__name__} knows {listed([quoted(label) for label in own[:5]])}; if those stand for "
                "other words, say so by Incumbent(model, labels=[...])."
            )
        classes = np.unique(own)
        return classes, np.searchsorted(classes, own)

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row, as the model decides it."""
        check_is_fitted(self)
        return self.classes_[self._predicted(X)]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class, as the model gives it, or from its score or its label."""
        check_is_fitted(self)
        if self._calibration is not None:
            return class_probabilities(self._calibration, self._outputs(X), self.classes_)
        outputs = np.asarray(self._model.predict_proba(self._rows(X)), np.float64)
        # The model may list its classes in another order than np.unique, and know some that y does not have.
        probabilities = np.zeros((len(outputs), len(self.classes_)))
        probabilities[:, self._class_codes] = outputs
        return probabilities

    def _outputs(self, X: Table) -> NDArray[np.float64]:
        """What is turned into probabilities: a score, (n, 1), or 1 for the predicted label, (n, classes)."""
        if hasattr(self._model, "decision_function") and len(self.classes_) == 2:
            return np.asarray(self._model.decision_function(self._rows(X)), np.float64).reshape(-1, 1)
        return np.eye(len(self.classes_))[self._predicted(X)]

    def _predicted(self, X: Table) -> NDArray[np.intp]:
        """Position of each row's label."""
        name, labels = type(self._model).__name__, np.asarray(self._model.predict(self._rows(X)))
        # CatBoost gives a column where there are more than two classes.
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.ndim != 1:
            raise InputError(f"{name} predicts {labels.shape[1]} values for each row: it needs to be one.")
        numbers = np.arange(len(self._class_codes))
        own = numbers if self._by_number else np.asarray(getattr(self._model, "classes_", self.classes_))
        codes, unknown_label = find_labels(pd.Series(labels), own)
        if unknown_label is not None:
            raise InputError(
                f"{name} predicts {quoted(unknown_label)}, which is none of the labels "
                f"({listed([quoted(label) for label in own[:5]])}): bring a classifier, or put what it "
                "predicts into a column and name it by IncumbentColumns."
            )
        return self._class_codes[codes]

    def _rows(self, X: Table) -> Any:
        """Rows as the model takes them."""
        if not is_frame(X):
            return X
        table = _as_it_came(X)
        if self._names is None:
            # scikit-learn warns when a model that was fitted on arrays gets column names.
            return table.to_numpy() if getattr(self._model, "n_features_in_", None) is not None else table
        check_columns_exist(table, self._names)
        table = table[list(self._names)]
        return table if _remembered_names(self._model) is not None else table.to_numpy()

    def as_it_is(self, X: Table) -> Any:
        """Return the model itself where it can be asked without any help, and this object otherwise."""
        own = getattr(self._model, "classes_", None)
        if self._calibration is not None or self._by_number or (self.only is not None and len(self.only)):
            return self
        if own is None or np.asarray(own).dtype != self.classes_.dtype:
            return self
        if np.ndim(self._model.predict(self._rows(_first_rows(X)))) != 1:
            return self
        takes_all = not is_frame(X) or self._names == tuple(str(name) for name in X.columns)
        return self._model if takes_all and (not is_frame(X) or _remembered_names(self._model) is not None) else self


def _remembered_names(model: Any) -> list[str] | None:
    """Columns that a model was fitted on; None where it was an array, or where it does not say."""
    # CatBoost calls the attribute differently. XGBoost raises an AttributeError where it was fitted on an array.
    names = getattr(model, "feature_names_in_", None)
    names = getattr(model, "feature_names_", None) if names is None else names
    if names is None:
        return None
    texts = [str(name) for name in names]
    # LightGBM and CatBoost number the columns of an array.
    numbered = [[f"{prefix}{i}" for i in range(len(texts))] for prefix in ("Column_", "")]
    return None if texts in numbered else texts


def _as_it_came(X: Any) -> pd.DataFrame:
    return as_given(to_pandas(X))


def _first_rows(X: Any) -> Any:
    return X.head(_ROWS_TO_TRY) if hasattr(X, "head") else np.asarray(X)[:_ROWS_TO_TRY]


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
        Column with the label that was decided on. Without a score, probabilities come from a logistic regression on
        the decisions, so that they are close to the shares of the classes among rows with the same decision.
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
        "threshold": (_NUMBER, NOTHING),
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
    def only(self) -> tuple[str, ...]:
        """Columns that are read, and that nothing else is to see."""
        # Asked before `fit` has checked the names: what is no text is refused there.
        return tuple(dict.fromkeys(name for name in (self.score, self.decision) if isinstance(name, str)))

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn what the score means; the columns themselves are taken as they are."""
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            if not self.only:
                raise InputError("Name the column of the score, of the decision, or both.")
            if self.decision is not None and self.threshold is not None:
                raise InputError("Decisions are in the table already: leave the threshold out, or the decision.")
            y = np.asarray(y)
            self.classes_ = np.unique(y)
            self._read = (self.score, self.decision)
            if self.score is not None and len(self.classes_) != 2:
                raise InputError(
                    f"A score needs two classes, and y holds {len(self.classes_)}: name the column of the decision "
                    "alone."
                )
            if self.decision is not None:
                self._decided(X)  # Refuses decisions that are none of the labels, before anything else is done.
            outputs = self._outputs(X)
            calibration = StandardizedLogisticRegression(C=1.0).fit(outputs, y, sample_weight)
            slope = float(calibration.coef_[0, 0])
            is_probability = self.score is not None and bool(((outputs >= 0) & (outputs <= 1)).all())
            if is_probability or self.decision is not None:
                self._threshold = 0.5 if self.threshold is None else float(self.threshold)
            elif self.threshold is not None:
                self._threshold = float(self.threshold)
            else:
                raise InputError(
                    f"The column {quoted(self.score)} holds {outputs.max():g}, so it is no probability: name the "
                    "column of the decision too, or the threshold at which it is made."
                )
            # A credit score falls with the risk of default: then scores below the threshold are flagged.
            self._falls = slope < 0
            self._calibration = None if is_probability and slope > 0 else calibration
        return self

    def predict(self, X: Table) -> NDArray[Any]:
        """Label that was decided on, or that the score and its threshold decide."""
        check_is_fitted(self)
        if self._read[1] is not None:
            return self.classes_[self._decided(X)]
        score = self._outputs(X)[:, 0]
        return self.classes_[(score < self._threshold if self._falls else score > self._threshold).astype(np.intp)]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class, from the score or else from the decision."""
        check_is_fitted(self)
        outputs = self._outputs(X)
        if self._calibration is not None:
            return class_probabilities(self._calibration, outputs, self.classes_)
        if not ((outputs >= 0) & (outputs <= 1)).all():
            raise InputError(
                f"The column {quoted(self._read[0])} held probabilities in fit, and holds "
                f"{outputs[np.argmax(np.abs(outputs)), 0]:g} now."
            )
        return np.column_stack([1 - outputs[:, 0], outputs[:, 0]])

    def _outputs(self, X: Table) -> NDArray[np.float64]:
        """What is turned into probabilities: the score, (n, 1), or 1 for the label decided on, (n, classes)."""
        name = self._read[0]
        if name is None:
            return np.eye(len(self.classes_))[self._decided(X)]
        column = self._column(X, name)
        try:
            score = column.to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"The column {quoted(name)} holds text, or a number that is too large: a score is a number."
            ) from None
        self._refuse_gaps(name, ~(np.abs(score) < LARGEST_NUMBER))
        return score[:, None]

    def _decided(self, X: Table) -> NDArray[np.intp]:
        """Position of the label that was decided on."""
        column = self._column(X, str(self._read[1]))
        self._refuse_gaps(str(column.name), column.isna().to_numpy())
        codes, unknown_label = find_labels(column, self.classes_)
        if unknown_label is not None:
            raise InputError(
                f"The column {quoted(column.name)} holds {quoted(unknown_label)}, which is none of the labels of the "
                f"target ({listed([quoted(label) for label in self.classes_[:5]])}): decisions are written as labels."
            )
        return codes

    def _column(self, X: Table, name: str) -> "pd.Series[Any]":
        if not is_frame(X):
            raise InputError(f"The pooled classifier is read from the column {quoted(name)}: pass a data frame.")
        table = to_pandas(X)
        check_columns_exist(table, [name])
        return table[name]

    def _refuse_gaps(self, name: str, is_gap: NDArray[np.bool_]) -> None:
        if is_gap.any():
            rows = "1 row" if is_gap.sum() == 1 else f"{is_gap.sum():,} rows"
            raise InputError(
                f"The column {quoted(name)} is missing in {rows}: the pooled classifier needs it in every row."
            )
