"""From data frames of any library to numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dafh.exceptions import InputError
from dafh.frames import OTHER, Table
from dafh.tables.column import Column
from dafh.tables.reader import TableReader, check_seen_columns, checked_frame, settled_kinds
from dafh.text import shown


@dataclass(frozen=True)
class Scale:
    """How a column of numbers, flags or dates is standardised."""

    median: float
    """Of the known values; it takes the place of a gap. 0 if none is known."""
    mean: float
    """Of the values with gaps filled."""
    deviation: float
    """Their standard deviation; 1 where all are the same."""
    gap_share: float
    """Share of gaps. Above 0, a further column says where they are."""
    gap_deviation: float

    @classmethod
    def learn(cls, values: NDArray[np.float64]) -> "Scale":
        """Learn from values that are NaN where there is a gap."""
        missing = np.isnan(values)
        median = 0.0 if missing.all() else float(np.median(values[~missing]))
        # The scaler knows which spread is only rounding, and must count as none.
        scaler = StandardScaler().fit(np.column_stack([np.where(missing, median, values), missing]))
        (mean, gap_share), (deviation, gap_deviation) = scaler.mean_.tolist(), scaler.scale_.tolist()
        return cls(median, mean, deviation, gap_share, gap_deviation)

    @property
    def has_gaps(self) -> bool:
        """Whether there were gaps in `fit`."""
        return self.gap_share > 0


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as numbers, with their categories as places: most of the columns of 0 and 1 would be zeros."""

    numbers: NDArray[np.float64]
    """Numbers and indicators of gaps, (n, a)."""
    places: list[NDArray[np.intp]]
    """By column of categories, the place of each row's category; behind the last one for none of them."""
    sizes: list[int]
    """Number of categories of each of these columns."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    def dense(self) -> NDArray[np.float64]:
        """All columns, (n, p): numbers, then 0 and 1 for each category."""
        start = self.numbers.shape[1]
        columns = np.zeros((len(self), start + sum(self.sizes)))
        columns[:, :start] = self.numbers
        for places, size in zip(self.places, self.sizes, strict=True):
            rows = np.flatnonzero(places < size)
            columns[rows, start + places[rows]] = 1.0
            start += size
        return columns

    def times(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply all columns by weights (p, m): of categories, the weight of each row's is looked up."""
        start = self.numbers.shape[1]
        total = self.numbers @ weight[:start]
        for places, size in zip(self.places, self.sizes, strict=True):
            # The place behind the last one has no weight.
            table = np.vstack([weight[start : start + size], np.zeros(weight.shape[1])])
            total += table.take(places, axis=0)
            start += size
        return total

    def take(self, rows: NDArray[np.intp]) -> "EncodedRows":
        """Return some of the rows."""
        return EncodedRows(self.numbers[rows], [places[rows] for places in self.places], self.sizes)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a data frame with numbers, categories, booleans, dates, text and missing values as numbers.

    Numbers and booleans are standardised, with the median for missing (or infinite) values and a column that says where
    they were missing; dates count in days. Everything else becomes one column per category. A missing value is a
    category. An unseen category is none of the others, or a rare one where rare ones were put together. All of it is
    learned in `fit`, from the rows given there.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kind of columns by name: "number", "flag", "category", or "date" with a format, as in a table's schema. Of
        columns that are not named the type decides, in `fit` and once: text is categories, whatever it looks like.

    Attributes
    ----------
    columns_ : list of Column
        Name, kind and categories of each column.
    scales_ : dict of str to Scale
        How each column of numbers, flags or dates is standardised.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40, None], "city": ["Oslo", None, "Bergen"]})
    >>> TableEncoder().fit(frame).get_feature_names_out().tolist()
    ['age', 'age is missing', 'city=(missing)', 'city=Bergen', 'city=Oslo']
    """

    # By hand, where scikit-learn has a ColumnTransformer of imputer, scaler and OneHotEncoder: what was learned must be
    # plain values, so that a model file can hold it without naming classes of another library, and an encoder with rare
    # categories cannot be rebuilt from its public attributes. It is faster, too: a column is looked at once.

    def __init__(self, kinds: Mapping[str, str] | None = None) -> None:
        self.kinds = kinds

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn which column holds what, and its values."""
        frame = checked_frame(X)
        kinds = settled_kinds(frame, self.kinds)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.columns_ = [
            Column.learn(frame[name], kind) if kind == "category" else Column(name, kind)
            for name, kind in kinds.items()
        ]
        numbers = [column for column in self.columns_ if not column.is_category]
        self.scales_ = {column.name: Scale.learn(column.floats(frame[column.name])) for column in numbers}
        return self

    def transform(self, X: Table) -> pd.DataFrame:
        """Encode rows with the columns seen in `fit`, in any order."""
        frame = checked_frame(X)
        # Without a copy: for tables of a hundred columns that took longer than the encoding.
        return pd.DataFrame(
            self.encode(frame).dense(), columns=self.get_feature_names_out(), index=frame.index, copy=False
        )

    def encode(self, X: Table) -> "EncodedRows":
        """Encode rows as `transform` does, with the place of a category instead of a column for each."""
        check_is_fitted(self)
        frame = checked_frame(X)
        check_seen_columns(frame, list(self.feature_names_in_))
        gaps = [name for name, scale in self.scales_.items() if scale.has_gaps]
        # Column by column in memory, which is how they are written and added up.
        values = np.empty((len(frame), len(self.scales_) + len(gaps)), order="F")
        numbers = [column for column in self.columns_ if not column.is_category]
        for position, column in enumerate(numbers):
            scale, known = self.scales_[column.name], column.floats(frame[column.name])
            missing = np.isnan(known)
            values[:, position] = (np.where(missing, scale.median, known) - scale.mean) / scale.deviation
            if scale.has_gaps:
                place = len(numbers) + gaps.index(column.name)
                values[:, place] = (missing - scale.gap_share) / scale.gap_deviation
        categories = [column for column in self.columns_ if column.is_category]
        places = [column.codes(frame[column.name]).astype(np.intp) for column in categories]
        return EncodedRows(values, places, [column.n_bins - 1 for column in categories])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the encoded columns: ``age``, ``age is missing``, ``city=Oslo``."""
        check_is_fitted(self)
        names = [*self.scales_, *(f"{name} is missing" for name, scale in self.scales_.items() if scale.has_gaps)]
        for column in self.columns_:
            names += [f"{column.name}={value}" for value in column.categories]
            names += [f"{column.name}={OTHER}"] * column.has_other
        return np.array(_told_apart(names), dtype=object)


def _told_apart(names: list[str]) -> list[str]:
    """Number names that occur again: a category may be called "(other)", and a column "age is missing"."""
    found: dict[str, None] = {}
    for name in names:
        new, number = name, 2
        while new in found:
            new, number = f"{name} ({number})", number + 1
        found[new] = None
    return list(found)


def tabular_pipeline(estimator: BaseEstimator, kinds: Mapping[str, str] | None = None) -> Pipeline:
    """Put a step that takes data frames of any library before an estimator.

    `DAFHClassifier` and `Scorecard` take numbers, dates, flags, categories and gaps themselves: before them, columns
    are only read as their kinds (`TableReader`). For all others they are encoded as numbers (`TableEncoder`).

    Parameters
    ----------
    estimator : classifier
        `DAFHClassifier`, `Scorecard`, `DecoupledClassifier` or any other of scikit-learn's kind.
    kinds : mapping of str to str, optional
        What columns hold, by name: "number", "flag", "category", or "date" with a format such as "date %d.%m.%Y". The
        type decides about the others, and text is categories.

    Returns
    -------
    Pipeline
        Steps ``encoder`` and ``model``. Column names survive to the model. What the model's `fit` takes besides X and y
        is passed with its name: ``fit(X, y, model__sensitive_features=...)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dafh import tabular_pipeline
    >>> frame = pd.DataFrame({"age": [20, 30, None, 50] * 5, "city": ["Oslo", "Bergen", None, "Oslo"] * 5})
    >>> model = tabular_pipeline(LogisticRegression()).fit(frame, [0, 0, 1, 1] * 5)
    >>> model.predict(pd.DataFrame({"age": [55], "city": ["Tromsø"]}))
    array([1])
    """
    if not isinstance(estimator, BaseEstimator) and not hasattr(estimator, "__sklearn_tags__"):
        raise InputError(f"An estimator is needed, such as DAFHClassifier(), not {shown(estimator)}.")
    # A fitted model that the user brings was fitted on rows as they come, not as we read them.
    as_they_came = bool(getattr(estimator, "brings_incumbent", False))
    first = TableReader(kinds, keep_given=as_they_came) if takes_tables(estimator) else TableEncoder(kinds)
    return Pipeline([("encoder", first), ("model", estimator)])


def takes_tables(estimator: BaseEstimator) -> bool:
    """Whether an estimator says, by its tags, that it takes categories, text and missing values itself."""
    taken = get_tags(estimator).input_tags
    return bool(taken.categorical and taken.string and taken.allow_nan)
