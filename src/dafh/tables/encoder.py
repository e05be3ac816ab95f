"""From data frames of any library to numbers."""

from collections import Counter
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
from dafh.frames import MISSING, OTHER, Table
from dafh.tables.reader import TableReader, check_seen_columns, checked_frame
from dafh.tables.values import as_kind, category_codes, to_floats, typed_kind
from dafh.text import shown

# Columns of 0 and 1 that one column of categories may become; its rare categories share the last of them.
_MOST_CATEGORIES = 60


@dataclass(frozen=True)
class NumberColumn:
    """What was learned about a column of numbers, flags or dates."""

    name: str
    kind: str
    median: float
    """Of the known values; it takes the place of a gap. 0 if none is known."""
    mean: float
    """Of the values with gaps filled."""
    scale: float
    """Their standard deviation; 1 where all are the same."""
    gap_share: float
    """Share of gaps. Above 0, a further column says where they are."""
    gap_scale: float

    @property
    def has_gaps(self) -> bool:
        """Whether there were gaps in `fit`."""
        return self.gap_share > 0


@dataclass(frozen=True)
class CategoryColumn:
    """What was learned about a column of categories."""

    name: str
    kind: str
    categories: tuple[str, ...]
    """Those with a column of their own, sorted."""
    has_other: bool
    """Whether rare categories share one more column; unseen ones then go there too."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as numbers, with their categories as places: most of the columns of 0 and 1 would be zeros."""

    numbers: NDArray[np.float64]
    """Numbers and indicators of gaps, (n, a)."""
    places: list[NDArray[np.intp]]
    """By column of categories, the place of each row's category; −1 for none of them."""
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
            rows = np.flatnonzero(places >= 0)
            columns[rows, start + places[rows]] = 1.0
            start += size
        return columns

    def times(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply all columns by weights (p, m): of categories, the weight of each row's is looked up."""
        start = self.numbers.shape[1]
        total = self.numbers @ weight[:start]
        for places, size in zip(self.places, self.sizes, strict=True):
            # Place −1, the last one, has no weight.
            table = np.vstack([weight[start : start + size], np.zeros(weight.shape[1])])
            total += table.take(places, axis=0, mode="wrap")
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
    columns_ : list of NumberColumn and CategoryColumn
        What was learned, one entry for each column, in plain values.

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
        given = dict(self.kinds or {})
        check_seen_columns(frame, list(given))
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        columns: list[NumberColumn | CategoryColumn] = []
        for name in frame.columns:
            kind = given.get(name) or typed_kind(frame[name]) or "category"
            if kind == "category":
                columns.append(learn_categories(name, frame[name]))
            else:
                columns.append(_learn_numbers(name, kind, to_floats(as_kind(frame[name], kind))))
        self.columns_ = columns
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
        numbers, gaps, categories = self._parts()
        # Column by column in memory, which is how they are written and added up.
        values = np.empty((len(frame), len(numbers) + len(gaps)), order="F")
        indicator = {column.name: len(numbers) + place for place, column in enumerate(gaps)}
        for position, column in enumerate(numbers):
            known = to_floats(as_kind(frame[column.name], column.kind))
            missing = np.isnan(known)
            values[:, position] = (np.where(missing, column.median, known) - column.mean) / column.scale
            if column.has_gaps:
                values[:, indicator[column.name]] = (missing - column.gap_share) / column.gap_scale
        places = [category_places(column, frame[column.name]) for column in categories]
        return EncodedRows(values, places, [len(column.categories) + column.has_other for column in categories])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the encoded columns: ``age``, ``age is missing``, ``city=Oslo``."""
        check_is_fitted(self)
        numbers, gaps, categories = self._parts()
        names = [column.name for column in numbers] + [f"{column.name} is missing" for column in gaps]
        for column in categories:
            names += [f"{column.name}={value}" for value in column.categories]
            names += [f"{column.name}={OTHER}"] * column.has_other
        return np.array(_told_apart(names), dtype=object)

    def _parts(self) -> tuple[list[NumberColumn], list[NumberColumn], list[CategoryColumn]]:
        """Columns in the order of the output: numbers, those of them with a column for gaps, categories."""
        numbers = [column for column in self.columns_ if isinstance(column, NumberColumn)]
        categories = [column for column in self.columns_ if isinstance(column, CategoryColumn)]
        return numbers, [column for column in numbers if column.has_gaps], categories


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


def _learn_numbers(name: str, kind: str, values: NDArray[np.float64]) -> NumberColumn:
    missing = np.isnan(values)
    median = 0.0 if missing.all() else float(np.median(values[~missing]))
    # The scaler knows which spread is only rounding, and must count as none.
    scaler = StandardScaler().fit(np.column_stack([np.where(missing, median, values), missing]))
    (mean, gap_share), (scale, gap_scale) = scaler.mean_.tolist(), scaler.scale_.tolist()
    return NumberColumn(name, kind, median, mean, scale, gap_share, gap_scale)


def learn_categories(name: str, column: pd.Series) -> CategoryColumn:
    """Find the categories of a column; of a long list, the most frequent ones."""
    codes, known = category_codes(column)
    counts: Counter[str] = Counter()
    # A gap, code −1, is a category as well; a text "(missing)" would be the same one.
    for category, count in zip([MISSING, *known], np.bincount(codes + 1, minlength=len(known) + 1), strict=True):
        counts[category] += int(count)
    there = sorted(category for category, count in counts.items() if count)
    if len(there) < _MOST_CATEGORIES:
        return CategoryColumn(name, "category", tuple(there), has_other=False)
    # As in scikit-learn: of categories that are equally frequent, those last in the alphabet are kept.
    kept = sorted(there, key=counts.__getitem__)[-(_MOST_CATEGORIES - 1) :]
    return CategoryColumn(name, "category", tuple(sorted(kept)), has_other=True)


def category_places(column: CategoryColumn, values: pd.Series) -> NDArray[np.intp]:
    """Position of each row's category; of all others −1, or the position of the rare ones."""
    codes, names = category_codes(values)
    seen = {category: place for place, category in enumerate(column.categories)}
    unseen = len(seen) if column.has_other else -1
    places = [seen.get(name, unseen) for name in (*names, MISSING)]
    return np.array(places, np.intp)[codes]
