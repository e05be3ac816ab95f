"""From data frames of any library to typed frames, for estimators that take tables, and to numbers, for all others."""

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

from dafh.columns.bins import named_table
from dafh.columns.column import Column
from dafh.columns.kinds import kind_of, warn_of_numbers_as_text
from dafh.exceptions import InputError
from dafh.frames import OTHER, Table
from dafh.text import clipped, quoted, shown

_GIVEN = "\0given "
"""Before the names of columns as they came; no column of a file has it."""


class TableReader(TransformerMixin, BaseEstimator):
    """Read the columns of a data frame as what they held in `fit`: numbers, dates, flags or categories.

    Numbers come out as floats, dates as dates, flags as booleans and categories as text, or as a categorical column of
    text where they came as one or are declared as such; a missing value stays missing.
    Nothing but the kind of each column is learned. Columns may come in any order, and new ones are left out.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kind of columns by name: "number", "flag", "category", or "date" with a format, as in a table's schema. Of
        columns that are not named the type decides, in `fit` and once: text is categories, whatever it looks like.
    keep_given : bool, default=False
        Whether to hand on all columns as they came, too, under names that no table has: for a fitted model behind this
        step that was fitted on such rows (`as_given` takes them out again).

    Attributes
    ----------
    columns_ : dict of str to str
        Name and kind of each column.

    Examples
    --------
    >>> reader = TableReader({"day": "date %d.%m.%Y"})
    >>> reader.fit(pd.DataFrame({"day": ["31.12.2020", None], "zip": ["01", "2"]})).columns_
    {'day': 'date %d.%m.%Y', 'zip': 'category'}
    >>> reader.transform(pd.DataFrame({"zip": [2], "day": ["1.1.2021"]})).to_dict("list")
    {'day': [Timestamp('2021-01-01 00:00:00')], 'zip': ['2']}
    """

    def __init__(self, kinds: Mapping[str, str] | None = None, *, keep_given: bool = False) -> None:
        self.kinds = kinds
        self.keep_given = keep_given

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn which column holds what."""
        frame = checked_frame(X)
        if any(is_given(name) for name in frame.columns):
            raise InputError(f"Names of columns must not begin with {_GIVEN!r}: rename them.")
        self.columns_ = settled_kinds(frame, self.kinds)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        return self

    def transform(self, X: Table) -> pd.DataFrame:
        """Read rows with the columns seen in `fit`, in any order."""
        check_is_fitted(self)
        frame = checked_frame(X)
        check_seen_columns(frame, list(self.columns_))
        columns = {name: Column(name, kind).read(frame[name]) for name, kind in self.columns_.items()}
        for name, kind in (self.kinds or {}).items():
            if kind == "category":  # Declared: whatever is behind this step need not wonder about numbers as text.
                columns[name] = columns[name].astype("category")
        if self.keep_given:
            columns |= {f"{_GIVEN}{name}": frame[name] for name in frame.columns}
        return pd.DataFrame(columns, index=frame.index)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the columns, which stay as they are."""
        check_is_fitted(self)
        return np.array(list(self.columns_), dtype=object)


def is_given(name: object) -> bool:
    """Whether a column is one that was handed on as it came."""
    return isinstance(name, str) and name.startswith(_GIVEN)


def as_given(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows as they came, before a reader has looked at them; without a reader, the rows themselves."""
    names = [name for name in frame.columns if is_given(name)]
    return frame[names].rename(columns=lambda name: name.removeprefix(_GIVEN)) if names else frame


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


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a data frame with numbers, categories, booleans, dates, text and missing values as numbers.

    Numbers and booleans are standardised, with the median for missing (or infinite) values and a column that says where
    they were missing; dates count in days. Everything else becomes one column per category. A missing value is a
    category. An unseen category is none of the others, or a rare one where rare ones were put together. All of it is
    learned in `fit`, from the rows given there.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        As in `TableReader`.

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
        warn_of_numbers_as_text(frame[[name for name in frame.columns if name not in (self.kinds or {})]])
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
        return pd.DataFrame(self.encode(frame), columns=self.get_feature_names_out(), index=frame.index, copy=False)

    def encode(self, X: Table) -> NDArray[np.float64]:
        """Encode rows as `transform` does, as an array: numbers, where gaps are, then 0 and 1 for each category."""
        check_is_fitted(self)
        frame = checked_frame(X)
        check_seen_columns(frame, list(self.feature_names_in_))
        columns = {column.name: column for column in self.columns_}
        values = np.zeros((len(frame), len(self.get_feature_names_out())))
        gap = len(self.scales_)
        start = gap + sum(scale.has_gaps for scale in self.scales_.values())
        for position, (name, scale) in enumerate(self.scales_.items()):
            numbers = columns[name].floats(frame[name])
            missing = np.isnan(numbers)
            values[:, position] = (np.where(missing, scale.median, numbers) - scale.mean) / scale.deviation
            if scale.has_gaps:
                values[:, gap] = (missing - scale.gap_share) / scale.gap_deviation
                gap += 1
        for column in self.columns_:
            if column.is_category:
                codes = column.codes(frame[column.name]).astype(np.intp)
                rows = np.flatnonzero(codes < column.n_bins - 1)  # The last bin is for categories never seen.
                values[rows, start + codes[rows]] = 1.0
                start += column.n_bins - 1
        return values

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
    unique: dict[str, None] = {}
    for name in names:
        new, number = name, 2
        while new in unique:
            new, number = f"{name} ({number})", number + 1
        unique[new] = None
    return list(unique)


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
    tags = get_tags(estimator).input_tags
    return bool(tags.categorical and tags.string and tags.allow_nan)


def checked_frame(X: Table) -> pd.DataFrame:
    """Turn any frame, or array, into a pandas frame with unique text column names."""
    frame = named_table(X)
    if not frame.shape[1] or not len(frame):
        raise InputError(f"The data frame is empty: it has {len(frame)} rows and {frame.shape[1]} columns.")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"Column names must be unique; {quoted(repeated[0])} occurs more than once.")
    return frame


def settled_kinds(frame: pd.DataFrame, kinds: Mapping[str, str] | None) -> dict[str, str]:
    """Kind of each column: as the user says, else by its type."""
    kinds = kinds or {}
    check_seen_columns(frame, list(kinds))
    return {name: kinds.get(name) or kind_of(frame[name]) for name in frame.columns}


def check_seen_columns(frame: pd.DataFrame, names: list[str]) -> None:
    """Refuse a frame that lacks columns of `fit`, in one sentence."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        extra = [clipped(name) for name in frame.columns if name not in set(names)]
        more = f" (new columns: {', '.join(extra[:5])})" if extra else ""
        raise InputError(f"Columns seen in fit are missing now: {', '.join(map(clipped, missing[:5]))}{more}.")
