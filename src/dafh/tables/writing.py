"""Write tables as CSV or Parquet, so that no half file is ever left."""

import contextlib
import csv
import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.tables.cells import NotSimpleError, csv_lines
from dafh.tables.values import is_number

STDIN = "-"
"""The name of standard input, and of standard output."""
# How spreadsheets recognise a formula; a tab or a line break before it does not stop them.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place at the end, and vanishes if anything fails.

    What a link points to is replaced, not the link. A device or a named pipe is written to as it is.
    """
    check_writable(path)
    if _is_special(path):
        yield path
        return
    path = path.resolve()
    # Not the whole name: with the letters that are added, a long one would be too long for the file system.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(temporary)
        # mkstemp makes files that only their owner may read; a result is an ordinary file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written to, before the work and not after it."""
    folder = path.resolve().parent
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a file to write to.")
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} to write {path.name} to.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission.")
    if _is_special(path):
        return
    try:  # Asking for permission is not enough: file systems have their own reasons.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {(error.strerror or 'no permission').lower()}.") from error


def _is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder, such as /dev/null: it must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


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
        if str(self.path) == STDIN:
            self._target: Any = sys.stdout
        else:
            self._target = self._stack.enter_context(replacing(Path(self.path)))
        if Path(self.path).suffix == ".parquet":
            self._write = self._write_parquet
            self._parquet: Any = None
        else:
            self._write = self._write_csv
            if isinstance(self._target, Path):
                opened = gzip.open if self._target.suffix == ".gz" else open
                self._target = self._stack.enter_context(opened(self._target, "wt", encoding="utf-8", newline=""))
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
        self._target.write(rendered)

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
            self._parquet = self._stack.enter_context(pyarrow.parquet.ParquetWriter(self._target, schema))
        self._parquet.write_table(pyarrow.Table.from_pandas(table, schema=self._parquet.schema, preserve_index=False))


def _is_formula(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return False
    return not (is_number(value) or is_number(value, decimal=","))


def _defused(value: object) -> str:
    return f"'{value}"
