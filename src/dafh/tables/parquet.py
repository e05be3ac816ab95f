"""Parquet files read in pieces, of which none takes more memory than a packed file may."""

import io
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, BinaryIO

from dafh.exceptions import InputError
from dafh.tables.footer import Footer
from dafh.tables.pages import column_pages
from dafh.tables.streams import largest_piece

if TYPE_CHECKING:
    import pyarrow


_FEWEST_ROWS = 100
# Bytes that one cell takes as an object in Python, beside those that Arrow counts.
_AS_OBJECT = {"decimal": 120, "time": 64, "null": 8}


@dataclass
class ParquetTable:
    """A Parquet file that may come from anybody.

    Parameters
    ----------
    stream : binary stream
        It must be able to jump.
    name : str
        What to call the file in messages.
    footer : Footer
        What the file says about itself, or about the part of it that is to be read.
    """

    stream: BinaryIO
    name: str
    footer: Footer
    _file: Any = field(init=False)
    _most_bytes: int = field(init=False)
    """What a piece may take in memory."""

    def __post_init__(self) -> None:
        import pyarrow.parquet

        about = pyarrow.parquet.read_metadata(io.BytesIO(self.footer.content()))
        # Without types that extend others, where Arrow has a choice: some of them end the process, and JSON is text.
        has_choice = "arrow_extensions_enabled" in signature(pyarrow.parquet.ParquetFile).parameters
        options = {"arrow_extensions_enabled": False} if has_choice else {}
        self._file = pyarrow.parquet.ParquetFile(self.stream, metadata=about, **options)
        self._most_bytes = largest_piece(self.stream.seek(0, os.SEEK_END))

    @property
    def schema(self) -> "pyarrow.Schema":
        """Names and types of the columns."""
        return self._file.schema_arrow

    def pieces(self, rows: int, columns: Collection[str], *, together: bool) -> "Iterator[pyarrow.Table]":
        """Yield tables of so many rows; `together` if whoever asks keeps all of them."""
        import pyarrow

        waiting: list[pyarrow.RecordBatch] = []
        n_waiting = n_bytes = 0
        for batch in self._batches(rows, columns):
            n_bytes += _bytes_of(batch)
            if n_bytes > self._most_bytes:
                raise self._too_large()
            missing = rows - n_waiting
            waiting.append(batch[:missing])
            n_waiting += len(waiting[-1])
            if n_waiting == rows:
                yield pyarrow.Table.from_batches(waiting).unify_dictionaries()
                rest = batch[missing:]
                waiting, n_waiting = ([rest], len(rest)) if len(rest) else ([], 0)
                n_bytes = n_bytes if together else _bytes_of(rest)
        if waiting:
            yield pyarrow.Table.from_batches(waiting).unify_dictionaries()

    def _batches(self, rows: int, columns: Collection[str]) -> "Iterator[pyarrow.RecordBatch]":
        """Yield up to so many rows at a time, fewer where they may take too much memory to be measured afterwards."""
        # One row group after another: the pages of a later one are looked at when it is its turn.
        for number, group in enumerate(self.footer.groups):
            if not group.n_rows:
                continue
            # The path of a column that is not nested is its name.
            pages = [
                column_pages(self.stream, one, self.name, self._most_bytes)
                for one in group.chunks
                if one.column in columns
            ]
            at_once = min(rows, group.n_rows)
            if sum(one.largest for one in pages) > self._most_bytes:
                raise self._too_large()
            if sum(one.most_bytes(at_once) for one in pages) > self._most_bytes:
                # An eighth, because Arrow takes up to four times as much while it reads.
                at_once = self._most_bytes // 8 // sum(one.longest for one in pages)
                if at_once < min(group.n_rows, _FEWEST_ROWS):  # So few at a time that it would take hours.
                    raise self._too_large()
            n_read = 0
            for batch in self._file.iter_batches(max(at_once, 1), row_groups=[number], columns=list(columns)):
                n_read += len(batch)
                yield batch
            if n_read != group.n_rows:
                raise InputError(f"{self.name} is damaged: one of its parts has other rows than it says.")

    def _too_large(self) -> InputError:
        return InputError(
            f"{self.name} takes more than {self._most_bytes:,} bytes in memory at once, which is more than a Parquet "
            "file of its size may take: write it without columns of long texts."
        )


def _bytes_of(batch: "pyarrow.RecordBatch") -> int:
    """Bytes of a batch, with every row of a coded column as long as its text."""
    import pyarrow
    import pyarrow.compute

    coded = 0
    for column in batch.columns:
        words = str(column.type)
        if not words.startswith("timestamp"):
            coded += len(column) * max((size for word, size in _AS_OBJECT.items() if words.startswith(word)), default=0)
        if pyarrow.types.is_dictionary(column.type) and "string" in str(column.type.value_type):
            lengths = pyarrow.compute.binary_length(column.dictionary)
            coded += pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0
    return int(batch.nbytes + coded)
