"""From data frames of any kind to numbers."""

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from dafh.exceptions import InputError
from dafh.frames import LARGEST_NUMBER, to_days, to_pandas

# More categories than this in a column, and its rare ones are put together.
_MOST_CATEGORIES = 60
_MISSING = "(missing)"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a data frame with numbers, categories, booleans, dates, text and missing values as numbers.

    Numbers and booleans are standardised, with the median for missing (or infinite) values and a column that says where
    they were missing; dates count in days. Everything else becomes one column per category; a missing value is a
    category, and one that was not seen in `fit` is none of them. All of it is learned in `fit`, from the rows given
    there.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40, None], "city": ["Oslo", None, "Bergen"]})
    >>> TableEncoder().fit(frame).get_feature_names_out().tolist()
    ['age', 'age is missing', 'city=(missing)', 'city=Bergen', 'city=Oslo']
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which column holds what, and its values."""
        frame = _as_pandas(X)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.numeric_ = {name: _is_numeric(frame[name]) for name in frame.columns}
        numbers = [name for name, numeric in self.numeric_.items() if numeric]
        categories = [name for name, numeric in self.numeric_.items() if not numeric]
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=_MOST_CATEGORIES,
            sparse_output=False,
            feature_name_combiner=_category_name,
        )
        impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        self._encoder = ColumnTransformer(
            [("numbers", make_pipeline(impute, StandardScaler()), numbers), ("categories", one_hot, categories)],
            verbose_feature_names_out=False,
        ).fit(self._prepare(frame))
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Encode rows with the columns seen in `fit`, in any order."""
        check_is_fitted(self)
        frame = _as_pandas(X)
        missing = [name for name in self.feature_names_in_ if name not in frame.columns]
        if missing:
            extra = [str(name) for name in frame.columns if name not in set(self.feature_names_in_)]
            more = f" (new columns: {', '.join(extra[:5])})" if extra else ""
            raise InputError(f"Columns seen in fit are missing now: {', '.join(map(str, missing[:5]))}{more}.")
        with warnings.catch_warnings():
            # That an unseen category counts as a rare one, or as none, is what this class says of itself.
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            encoded = self._encoder.transform(self._prepare(frame[list(self.feature_names_in_)]))
        return pd.DataFrame(encoded, columns=self.get_feature_names_out(), index=frame.index)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the encoded columns: ``age``, ``age is missing``, ``city=Oslo``."""
        check_is_fitted(self)
        names = self._encoder.get_feature_names_out()
        prefix = "missingindicator_"
        return np.array(
            [f"{n.removeprefix(prefix)} is missing" if n.startswith(prefix) else n for n in names], dtype=object
        )

    def _prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Numbers as floats and everything else as text, so that the same value is the same in every frame."""
        return pd.DataFrame(
            {
                name: _to_numbers(name, frame[name]) if numeric else _to_text(frame[name])
                for name, numeric in self.numeric_.items()
            }
        )


def tabular_pipeline(estimator: Any) -> Pipeline:
    """Put an encoder of data frames before an estimator.

    Parameters
    ----------
    estimator : classifier
        `DAFHClassifier`, `DecoupledClassifier` or any other of scikit-learn's kind.

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
    return Pipeline([("encoder", TableEncoder()), ("model", estimator)])


def _category_name(column: str, category: Any) -> str:
    return f"{column}={category}"


def _as_pandas(X: Any) -> pd.DataFrame:
    """Turn any frame, or array, into a pandas frame with unique text column names."""
    frame = to_pandas(X)
    if not frame.shape[1] or not len(frame):
        raise InputError(f"The data frame is empty: it has {len(frame)} rows and {frame.shape[1]} columns.")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"Column names must be unique; {repeated[0]!r} occurs more than once.")
    return frame


def _is_numeric(column: pd.Series) -> bool:
    if pd.api.types.is_bool_dtype(column.dtype):
        return True  # 0 and 1: other files write the same column as numbers
    if column.dtype == object:
        # An array of mixed content: a column of numbers in it is still one.
        return bool(column.notna().any()) and all(
            isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in column.dropna()
        )
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)


def _to_numbers(name: str, column: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return to_days(column)
    try:
        numbers = pd.to_numeric(column).astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Column {name!r} held numbers in fit and holds other values now ({error}).") from error
    return numbers.where(numbers.abs() < LARGEST_NUMBER)


def _to_text(column: pd.Series) -> pd.Series:
    # Value by value, not row by row: a million rows have a handful of categories.
    codes, values = pd.factorize(column)
    texts = np.array([*map(_text_of, values), _MISSING], dtype=object)  # Code −1, a gap, is the last.
    return pd.Series(texts[codes], column.index, name=column.name, dtype=object)


def _text_of(value: Any) -> str:
    # 1 and 1.0 are one category, whichever type the rest of the column forces on them.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
