"""A fitted model of any library, as a classifier with the labels of y."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils.validation import check_is_fitted

from dafh.checks.rows import as_array, check_weights, unchanged_on_error
from dafh.classifiers.fitting import is_fitted
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.incumbents.columns import check_there
from dafh.incumbents.scales import LabelShares, ScoreCurve
from dafh.tables.encoder import as_given
from dafh.tables.labels import find_labels
from dafh.text import listed, quoted, shown

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
                check_there(table, names)
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
        check_there(table, self._names)
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
