"""The pooled classifier that a user brings to a fit: found, checked against the rows, and ready to be asked."""

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from dafh.checks.parameters import Allowed
from dafh.classifiers.fitting import is_fitted
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.incumbents import Incumbent, IncumbentColumns, check_incumbent, names_aside
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard
from dafh.rows.checked import CheckedRows

Brought = Incumbent | IncumbentColumns
FITTED_MODEL = Allowed(
    "a fitted model that has 'predict'", lambda value: callable(getattr(value, "predict", None)) and is_fitted(value)
)
"""What a pooled classifier may be beside a name and a classifier with probabilities."""


def find_incumbent(pooled: Any) -> Brought | None:
    """Return what was brought, still to be matched with rows; None for a classifier that is fitted here."""
    if isinstance(pooled, str):
        return None
    if isinstance(pooled, Incumbent):
        pooled.check()
        return pooled.__sklearn_clone__()
    if isinstance(pooled, IncumbentColumns):
        return pooled
    if not is_fitted(pooled):
        return None
    check_incumbent(pooled)
    return Incumbent(pooled)


def is_read_as_it_came(pooled: Any) -> bool:
    """Whether a fitted classifier takes rows as they come; our own take them as our groups do."""
    ours = isinstance(pooled, str | Scorecard | StandardizedLogisticRegression | IncumbentColumns)
    return not ours and (isinstance(pooled, Incumbent) or is_fitted(pooled))


def columns_aside(brought: Brought | None) -> tuple[str, ...] | None:
    """Columns that only the pooled classifier sees; None where it sees what groups see."""
    return None if brought is None else names_aside(brought.only)


def match_incumbent(brought: Brought, rows: CheckedRows) -> Any:
    """Match what was brought with the rows of a fit; a model that needs no help is returned as it is."""
    if isinstance(brought, IncumbentColumns):
        # Fitted by the user on other rows, perhaps: then it stays so.
        return brought if is_fitted(brought) else IncumbentColumns(**brought.get_params(deep=False)).fit(*_of(rows))
    return brought.fit(*_of(rows)).as_it_is(rows.given)


def _of(rows: CheckedRows) -> tuple[Any, Any, Any]:
    return rows.given, rows.y, rows.fit_weight


class BringsIncumbent(BaseEstimator):
    """Checks of the rows of an estimator whose pooled classifier may be brought by the user."""

    pooled: Any
    n_groups: Any
    classes_: NDArray[Any]
    _aside: tuple[str, ...] | None

    @property
    def brings_incumbent(self) -> bool:
        """Whether `pooled` is a fitted model that takes rows as they come; `tabular_pipeline` asks."""
        return is_read_as_it_came(self.pooled)

    def _check_training_rows(self, X: Table, y: ArrayLike, known: dict[str, Any]) -> CheckedRows:
        brought = find_incumbent(self.pooled)
        self._aside = columns_aside(brought)
        # A model in production may know classes that these rows do not have; its order of classes is kept.
        classes = brought.known_classes if isinstance(brought, Incumbent) else getattr(brought, "classes_", None)
        rows = CheckedRows.check_table(self, X, y, classes=classes, aside=self._aside, **known)
        self.classes_ = rows.classes
        if self.n_groups != "auto" and len(rows) < self.n_groups:
            raise InputError(f"{len(rows)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows.")
        return rows

    def _check_more(self, X: Table, y: ArrayLike, sensitive_features: Table | None, **known: Any) -> CheckedRows:
        return CheckedRows.check_more_of_table(self, X, y, aside=self._aside, **known)
