"""Tables of Arrow as pandas frames."""

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow

_ROW_NAMES = re.compile(r"__index_level_\d+__")
"""What pandas calls the column of row names that have no name themselves."""


def arrow_to_pandas(batch: Any) -> pd.DataFrame:
    """Turn a table or a batch of Arrow into a pandas frame, without row names that pandas has put into it."""
    # What pandas has noted in a file is taken off: it can give columns other names, or hide them, and where it is
    # damaged, Arrow fails on it even if told to ignore it.
    bare = batch.replace_schema_metadata(None)
    # Whole numbers stay whole where there are gaps among them: account numbers do not fit into fractions. Days become
    # dates like all others, and not objects, which a piece without any could not tell from text.
    frame = bare.to_pandas(types_mapper=_nullable_types().get, date_as_object=False)
    row_names = [name for name in frame.columns if _ROW_NAMES.fullmatch(name)]
    return frame.drop(columns=row_names) if row_names else frame


def _nullable_types() -> dict[Any, Any]:
    import pyarrow

    names = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean")
    arrow = {name: pyarrow.bool_() if name == "Boolean" else getattr(pyarrow, name.lower())() for name in names}
    return {arrow[name]: getattr(pd, f"{name}Dtype")() for name in names}


def is_nested(kind: "pyarrow.DataType") -> bool:
    """Whether a type of Arrow holds lists, records or bytes instead of single values."""
    import pyarrow

    return bool(pyarrow.types.is_nested(kind) or "binary" in str(kind))
