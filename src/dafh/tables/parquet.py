"""Parquet files read in pieces, of which none takes more memory than a packed file may."""

import io
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from dafh.exceptions import InputError
from dafh.tables.footer import Footer
from dafh.tables.pages import column_pages
from dafh.tables.streams import largest_piece

if TYPE_CHECKING:
    import pyarrow


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
        self._file = pyarrow.parquet.ParquetFile(self.stream, metadata=about)
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
            pages = [column_pages(self.stream, one, self.name) for one in group.chunks if one.column in columns]
            at_once = min(rows, group.n_rows)
            if sum(one.largest for one in pages) > self._most_bytes:
                raise self._too_large()
            if sum(one.most_bytes(at_once) for one in pages) > self._most_bytes:
                # An eighth, because Arrow takes up to four times as much while it reads.
                at_once = max(self._most_bytes // 8 // sum(one.longest for one in pages), 1)
            yield from self._file.iter_batches(at_once, row_groups=[number], columns=list(columns))

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
        if pyarrow.types.is_dictionary(column.type) and "string" in str(column.type.value_type):
            lengths = pyarrow.compute.binary_length(column.dictionary)
            coded += pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0
    return int(batch.nbytes + coded)
