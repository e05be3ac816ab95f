"""Blocks out of files: Parquet by row groups, text in pieces, and the data sets of Arrow."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dafh.blocks.base import Arrays, Blocks, Result
from dafh.blocks.memory import ROWS_PER_BLOCK, in_order
from dafh.blocks.spool import keep_in_file
from dafh.tables.read import DataFile, arrow_to_pandas, with_columns


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a file that is read by itself."""

    file: DataFile
    columns: tuple[str, ...]
    text: tuple[str, ...] | None = ()
    """Columns of a text file to be read as strings; None for all."""
    rows: int = ROWS_PER_BLOCK

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where the file says it."""
        return None if self.file.row_group is None else self.file.count_rows()

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Read the rows, block by block."""
        for block in self.file.pieces(rows=self.rows, text=self.text):
            yield with_columns(block, self.columns, self.file.name)


class FileBlocks(Blocks[pd.DataFrame]):
    """Rows in files, read anew in every pass; what is kept of them goes into a temporary file."""

    def __init__(self, pieces: Sequence[Any], columns: tuple[str, ...]) -> None:
        self.pieces, self.columns = pieces, columns
        numbers = [piece.n_rows for piece in pieces]
        self.n_rows = None if None in numbers else sum(numbers)

    @classmethod
    def open(cls, files: Sequence[DataFile]) -> "FileBlocks":
        """Look at files of which each has the columns of the first."""
        columns = tuple(str(name) for name in next(files[0].pieces(rows=100)).columns)
        return cls([Piece(part, columns) for file in files for part in file.parts()], columns)

    def with_rows_per_block(self, rows: int) -> "FileBlocks":
        """Return the same rows, in blocks of another size."""
        return FileBlocks([replace(piece, rows=rows) for piece in self.pieces], self.columns)

    def reading_as_text(self, text: tuple[str, ...] | None) -> "FileBlocks":
        """Return the same rows, with some columns of text files read as strings."""
        return FileBlocks([replace(piece, text=text) for piece in self.pieces], self.columns)

    def each(self, function: Callable[[pd.DataFrame], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""

        def read(piece: Any) -> list[Result]:
            return [function(block) for block in piece.blocks()]

        for results in in_order(read, self.pieces):
            yield from results

    def keep(self, function: Callable[[pd.DataFrame], Arrays]) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, in a temporary file."""
        return keep_in_file(self, function)


@dataclass(frozen=True, eq=False)
class Fragment:
    """A part of a data set of Arrow, usually a file."""

    fragment: Any
    schema: Any
    rows: int = ROWS_PER_BLOCK

    @property
    def n_rows(self) -> int | None:
        """Number of rows."""
        return int(self.fragment.count_rows())

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Read the rows, block by block."""
        for batch in self.fragment.to_batches(schema=self.schema, batch_size=self.rows):
            if batch.num_rows:
                yield arrow_to_pandas(batch)


def open_dataset(dataset: Any) -> FileBlocks:
    """Blocks of a ``pyarrow.dataset.Dataset``."""
    pieces = [Fragment(fragment, dataset.schema) for fragment in dataset.get_fragments()]
    return FileBlocks(pieces, tuple(dataset.schema.names))
