"""Tables with columns that only the pooled classifier sees, beside the features."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from dafh.checks.rows import check_table
from dafh.exceptions import InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.tables.encoder import is_given
from dafh.text import listed, quoted


def check_parted(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike = "no_validation",
    *,
    reset: bool,
    aside: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Validate a table like `check_table`: features first, then what only the pooled classifier sees.

    The estimator remembers names and number of the features; what stands beside them is not its own business.

    Parameters
    ----------
    aside : names of columns, optional
        What only the pooled classifier sees, beside rows as they came before a reader. None: it sees the features, as
        everything else does.
    """
    names = list(X.columns) if is_frame(X) else []
    given = [name for name in names if is_given(name)]
    if not given and not aside:
        return check_table(estimator, X, y, reset=reset)
    if not names:
        raise InputError(f"The pooled classifier needs {_columns(aside or ())}: pass a data frame.")
    table = to_pandas(X).reset_index(drop=True)
    missing = [name for name in aside or () if name not in table.columns]
    if missing:
        raise InputError(f"The pooled classifier needs {_columns(missing)}, which the table does not have.")
    beside = [*(aside or ()), *given]
    features, labels = check_table(estimator, table.drop(columns=beside), y, reset=reset)
    return (features if aside is None else pd.concat([features, table[beside]], axis=1)), labels


def _columns(names: Sequence[str]) -> str:
    shown = listed([quoted(name) for name in names[:5]])
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}"
