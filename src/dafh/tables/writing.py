"""Write tables as CSV or Parquet, so that no half file is ever left."""

import contextlib
import csv
import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.storage import replacing
from dafh.tables.cells import NotSimpleError, csv_lines
from dafh.tables.values import is_number
from dafh.text import CONTROLS

STDIN = "-"
"""The name of standard input, and of standard output."""
# How spreadsheets recognise a formula; a tab or a line break before it does not stop them.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


class TableWriter:
    """Write frames with the same columns one after the other, as CSV (packed if the name ends in .gz) or Parquet.

    In a CSV file, text that a spreadsheet would run as a formula gets an apostrophe in front, which spreadsheets do not
    show; `n_defused` counts how often. Parquet holds text as text and is left alone.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.n_defused = 0
        self._write: Callable[[pd.DataFrame], None]
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "TableWriter":
        with contextlib.ExitStack() as stack:
            if str(self.path) != STDIN:
                self._target: Any = stack.enter_context(replacing(Path(self.path)))
            elif sys.stdout is None:
                raise InputError("Standard output is closed: name a file to write to.")
            else:
                self._target = sys.stdout
            if Path(self.path).suffix == ".parquet":
                self._write = self._write_parquet
                self._parquet: Any = None
            else:
                self._write = self._write_csv
                if isinstance(self._target, Path):
                    self._target = _opened(self._target, stack)
            self._stack = stack.pop_all()
        self._started = False
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, table: pd.DataFrame) -> None:
        """Append rows."""
        self._write(table)
        self._started = True

    def _write_csv(self, table: pd.DataFrame) -> None:
        harmless = pd.concat([self._defused(column) for _, column in table.items()], axis=1)
        harmless.columns = pd.Index([_defused(name) if _is_formula(name) else name for name in table.columns])
        options: dict[str, Any] = {"index": False, "lineterminator": "\n"}
        header = "" if self._started else harmless.iloc[:0].to_csv(**options)
        try:
            rendered = header + csv_lines(harmless)
        except NotSimpleError:
            rendered = header + harmless.to_csv(**options, header=False)
        if "\r" in rendered:
            # The csv module quotes cells with a line feed and not those with a return, which most readers, spreadsheets
            # among them, take for the end of a line: what follows would be a cell of its own, a formula for example.
            rendered = harmless.to_csv(**options, header=not self._started, quoting=csv.QUOTE_NONNUMERIC)
        # A terminal would obey what somebody has put into a cell; files and pipes get it as it is.
        self._target.write(rendered.translate(CONTROLS) if self._target.isatty() else rendered)

    def _defused(self, column: pd.Series) -> pd.Series:
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
            return column
        # Each different value is looked at once: columns of text hold few of them.
        try:
            codes, values = pd.factorize(column)
        except TypeError:  # Lists and records, which are no formulas.
            return column
        formulas = np.array([*map(_is_formula, values), False])
        if not formulas.any():
            return column
        self.n_defused += int(formulas[codes].sum())
        harmless = np.array([*map(_defused, values), None], dtype=object)[codes]
        return column.astype(object).where(~formulas[codes], harmless)

    def _write_parquet(self, table: pd.DataFrame) -> None:
        import pyarrow
        import pyarrow.parquet

        # The categories of a piece are not those of the next one; as values they fit into one column.
        encoded = [name for name in table.columns if isinstance(table[name].dtype, pd.CategoricalDtype)]
        table = table.astype(dict.fromkeys(encoded, object))
        if self._parquet is None:
            schema = pyarrow.Table.from_pandas(table, preserve_index=False).schema
            for place, kind in enumerate(schema.types):
                # A column without values so far must take text later; all other types are known from the start.
                if pyarrow.types.is_null(kind):
                    schema = schema.set(place, schema.field(place).with_type(pyarrow.string()))
            # Opened here: by itself Arrow asks for positions, which pipes do not have, and words errors its own way.
            file = self._stack.enter_context(open(self._target, "wb"))  # noqa: SIM115
            self._parquet = self._stack.enter_context(pyarrow.parquet.ParquetWriter(file, schema))
        self._parquet.write_table(pyarrow.Table.from_pandas(table, schema=self._parquet.schema, preserve_index=False))


def _opened(path: Path, stack: contextlib.ExitStack) -> Any:
    """Open a text file, packed if its name ends in .gz."""
    file: Any = stack.enter_context(open(path, "wb"))  # noqa: SIM115
    if path.suffix == ".gz":
        # Without name and time, which would be those of a temporary file: the same rows give the same bytes.
        file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    return stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))


def _is_formula(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return False
    return not (is_number(value) or is_number(value, decimal=","))


def _defused(value: object) -> str:
    return f"'{value}"
