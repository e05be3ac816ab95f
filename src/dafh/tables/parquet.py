"""Parquet files read in pieces, of which none takes more memory than a packed file may."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from dafh.exceptions import InputError
from dafh.tables.pages import column_pages
from dafh.tables.streams import largest_piece

if TYPE_CHECKING:
    import pyarrow

MOST_ROWS_ANYWAY, MOST_ROWS_A_BYTE = 1_000_000, 1_000
"""Rows of a file, and rows for each of its bytes: a billion equal rows fit into 1 kB, and would be read for hours."""


@dataclass
class ParquetTable:
    """A Parquet file that may come from anybody.

    Parameters
    ----------
    stream : binary stream
        It must be able to jump.
    name : str
        What to call the file in messages.
    """

    stream: BinaryIO
    name: str
    file: Any = field(init=False)
    _most_bytes: int = field(init=False)
    """What a piece may take in memory."""

    def __post_init__(self) -> None:
        import pyarrow.parquet

        self.file = pyarrow.parquet.ParquetFile(self.stream)
        n_bytes, n_rows = self.stream.seek(0, os.SEEK_END), self.n_rows
        self._most_bytes = largest_piece(n_bytes)
        if n_rows > max(MOST_ROWS_ANYWAY, MOST_ROWS_A_BYTE * n_bytes):
            raise InputError(
                f"{self.name} has {n_rows:,} rows in {n_bytes:,} bytes; beyond {MOST_ROWS_ANYWAY:,} rows, a Parquet "
                f"file may have up to {MOST_ROWS_A_BYTE:,} for each byte."
            )
        about = self.file.metadata
        parts = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
        if min(parts, default=0) < 0 or sum(parts) != n_rows:
            raise InputError(f"{self.name} is damaged: its parts do not have as many rows as the whole.")

    @property
    def n_rows(self) -> int:
        """Number of rows, as the file says."""
        return int(self.file.metadata.num_rows)

    def pieces(
        self, rows: int, columns: Collection[str], row_groups: Collection[int] | None, *, together: bool
    ) -> "Iterator[pyarrow.Table]":
        """Yield tables of so many rows; `together` if whoever asks keeps all of them."""
        import pyarrow

        waiting: list[pyarrow.RecordBatch] = []
        n_waiting = n_bytes = 0
        for batch in self._batches(rows, columns, row_groups):
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

    def _batches(
        self, rows: int, columns: Collection[str], row_groups: Collection[int] | None
    ) -> "Iterator[pyarrow.RecordBatch]":
        """Yield up to so many rows at a time, fewer where they may take too much memory to be measured afterwards."""
        about = self.file.metadata
        # One row group after another: the pages of a later one are looked at when it is its turn.
        for number in range(about.num_row_groups) if row_groups is None else row_groups:
            group = about.row_group(number)
            if not group.num_rows:
                continue
            chunks = [group.column(place) for place in range(group.num_columns)]
            # Arrow reads by the schema, and the limits are found by what the chunks say: they must say the same.
            for place, one in enumerate(chunks):
                known = about.schema.column(place)
                if (one.path_in_schema, one.physical_type) != (known.path, known.physical_type):
                    raise InputError(f"{self.name} is damaged: one of its columns is not what its schema says.")
            # The path of a column that is not nested is its name.
            pages = [column_pages(self.stream, one, self.name) for one in chunks if one.path_in_schema in columns]
            at_once = min(rows, group.num_rows)
            if sum(one.largest for one in pages) > self._most_bytes:
                raise self._too_large()
            if sum(one.most_bytes(at_once) for one in pages) > self._most_bytes:
                # An eighth, because Arrow takes up to four times as much while it reads.
                at_once = max(self._most_bytes // 8 // sum(one.longest for one in pages), 1)
            yield from self.file.iter_batches(at_once, row_groups=[number], columns=list(columns))

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
