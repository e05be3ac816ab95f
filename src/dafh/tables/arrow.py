"""Tables of Arrow as pandas frames."""

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from dafh.exceptions import InputError
from dafh.text import quoted

if TYPE_CHECKING:
    import pyarrow

_ROW_NAMES = re.compile(r"__index_level_\d+__")
"""What pandas calls the column of row names that have no name themselves."""
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of the years 1 and 9999, since 1970: Python knows no others, and pandas asks it about zones."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


def arrow_to_pandas(batch: Any) -> pd.DataFrame:
    """Turn a table or a batch of Arrow into a pandas frame, without row names that pandas has put into it."""
    # What pandas has noted in a file is taken off: it can give columns other names, or hide them, and where it is
    # damaged, Arrow fails on it even if told to ignore it.
    bare = _with_dates_in_reach(batch.replace_schema_metadata(None))
    # Whole numbers stay whole where there are gaps among them: account numbers do not fit into fractions. Days become
    # dates like all others, and not objects, which a piece without any could not tell from text.
    frame = bare.to_pandas(types_mapper=_nullable_types().get, date_as_object=False)
    row_names = [name for name in frame.columns if _ROW_NAMES.fullmatch(name)]
    return frame.drop(columns=row_names) if row_names else frame


def _with_dates_in_reach(batch: Any) -> Any:
    """Refuse dates with a zone that Python cannot write; in Greenwich, where the zone alone leads beyond."""
    import pyarrow
    import pyarrow.compute

    for place, field in enumerate(batch.schema):
        coded = pyarrow.types.is_dictionary(field.type)
        kind = field.type.value_type if coded else field.type
        if not pyarrow.types.is_timestamp(kind) or kind.tz is None:
            continue
        column = batch.column(place).cast(kind) if coded else batch.column(place)
        ends = [end.value for end in pyarrow.compute.min_max(column).values() if end.is_valid]
        seconds = [end // _PER_SECOND[kind.unit] for end in ends]
        if any(not _FIRST_SECOND <= second <= _LAST_SECOND for second in seconds):
            raise InputError(f"Column {quoted(field.name)} holds a date that is too far away to be counted.")
        if any(not _FIRST_SECOND + _DAY <= second <= _LAST_SECOND - _DAY for second in seconds):
            column = column.cast(pyarrow.timestamp(kind.unit, "UTC"))
        batch = batch.set_column(place, field.name, column)
    return batch


def _nullable_types() -> dict[Any, Any]:
    import pyarrow

    names = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean")
    arrow = {name: pyarrow.bool_() if name == "Boolean" else getattr(pyarrow, name.lower())() for name in names}
    return {arrow[name]: getattr(pd, f"{name}Dtype")() for name in names}


def is_nested(kind: "pyarrow.DataType") -> bool:
    """Whether a type of Arrow holds lists, records or bytes instead of single values, or extends another."""
    import pyarrow

    return bool(pyarrow.types.is_nested(kind) or "binary" in str(kind) or extends(kind))


def extends(kind: "pyarrow.DataType") -> bool:
    """Whether a type of Arrow, or one within it, is made of another one by a library."""
    import pyarrow

    inside = [kind.field(place).type for place in range(kind.num_fields)]
    if pyarrow.types.is_dictionary(kind):
        inside.append(kind.value_type)
    return isinstance(kind, pyarrow.BaseExtensionType) or any(map(extends, inside))
