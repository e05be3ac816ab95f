"""Blocks out of files: Parquet by row groups, text in pieces, and the data sets of Arrow."""

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dafh.blocks.base import Arrays, Blocks, Result
from dafh.blocks.memory import ROWS_PER_BLOCK, in_order
from dafh.blocks.spool import keep_in_file
from dafh.checks.parameters import check_path
from dafh.exceptions import InputError
from dafh.tables.arrow import arrow_to_pandas
from dafh.tables.files import DataFile
from dafh.text import listed, quoted

# What counts as a table in a folder.
_SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".gz")


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files behind a path, a pattern such as ``rows/*.parquet``, a folder, or several of them; sorted, each once.

    Raises
    ------
    InputError
        If a path leads to no file.
    """
    found: list[Path] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        whole = check_path(path)
        if whole.is_dir():
            try:
                inside = [one for one in whole.rglob("*") if one.suffix in _SUFFIXES and one.is_file()]
            except OSError as error:
                raise InputError(f"{whole} cannot be read as a folder of tables: {error.strerror}.") from error
            # As other engines do: names that begin with a dot or an underscore are no data.
            matches = [one for one in inside if not any(part[0] in "._" for part in one.relative_to(whole).parts)]
        elif whole.exists():
            matches = [whole]
        else:
            matches = [Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file()]
        if not matches:
            kind = "no table in the folder" if whole.is_dir() else "no file"
            raise InputError(f"There is {kind} {path}.")
        found += matches
    return sorted(dict.fromkeys(found))


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
        return self.file.n_rows

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Read the rows, block by block."""
        for block in self.file.chunks(rows=self.rows, text=self.text):
            yield with_columns(block, self.columns, self.file.name)


def with_columns(block: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return a block with its columns in order; refuse one that has others than the first file has."""
    there = list(block.columns)
    missing = [quoted(column) for column in columns if column not in there]
    if missing:
        raise InputError(f"{name} has no column {listed(missing[:3])}, which the first file has.")
    strange = [quoted(column) for column in there if column not in columns]
    if strange:
        raise InputError(f"{name} has a column {listed(strange[:3])}, which the first file has not.")
    return block[list(columns)]


class FileBlocks(Blocks[pd.DataFrame]):
    """Rows in files, read anew in every pass; what is kept of them goes into a temporary file."""

    def __init__(self, pieces: Sequence[Any], columns: tuple[str, ...]) -> None:
        self.pieces, self.columns = pieces, columns
        numbers = [piece.n_rows for piece in pieces]
        self.n_rows = None if None in numbers else sum(numbers)

    @classmethod
    def open(cls, files: Sequence[DataFile]) -> "FileBlocks":
        """Look at files of which each has the columns of the first."""
        columns = tuple(str(name) for name in next(files[0].chunks(rows=100)).columns)
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
