"""Rows with a known target, names of columns, and fingerprints of tables."""

import hashlib
import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.files import DataFile
from dafh.tables.labels import labelled_rows


def with_target(table: pd.DataFrame, target: str, data: DataFile) -> tuple[pd.DataFrame, list[str]]:
    """Rows whose target is known, and what there is to say about the file."""
    known = labelled_rows(table, target)
    left_out = len(table) - len(known)
    return known, [*data.notes, *([f"Left out, without a target: {left_out:,} rows."] if left_out else [])]


def split_names(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Names of columns, given one by one or joined by commas; a name that itself has a comma is one name.

    Examples
    --------
    >>> split_names(["age,sex", "born, where"], ["age", "sex", "born, where"])
    ['age', 'sex', 'born, where']
    """
    known = set(columns)
    parts = ([entry] if entry in known else [part.strip() for part in entry.split(",")] for entry in names)
    return [name for name in itertools.chain(*parts) if name]


def row_hashes(features: pd.DataFrame, target: pd.Series) -> NDArray[np.uint64]:
    """One number for each row, the same in whatever file the row stands."""
    rows = features.assign(**{"the target": target.map(str)})
    return np.asarray(pd.util.hash_pandas_object(rows, index=False), np.uint64)


def fingerprint(hashes: NDArray[np.uint64]) -> str:
    """Checksum of a table, whatever the order of its rows: tells which table it is, and nothing about it."""
    return hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()
