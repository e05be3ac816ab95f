"""A number for each row that depends on its values alone: not on its file, its place in it, or the types of a file."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.kinds import category_codes, parse_numbers, to_floats, typed_kind

_GAP = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(table: pd.DataFrame) -> NDArray[np.uint64]:
    """Hash every row, whatever the order of its columns.

    Whole numbers, fractions and text that reads as a number are alike, so that a table has the same hashes in a text
    file and in a typed one.

    Examples
    --------
    >>> one = row_hashes(pd.DataFrame({"age": [30, 41], "job": ["cook", None]}))
    >>> other = row_hashes(pd.DataFrame({"job": [None, "cook"], "age": ["41.0", "30"]}))
    >>> (one == other[::-1]).all()
    np.True_
    """
    total = np.zeros(len(table), np.uint64)
    names = pd.util.hash_array(np.array([str(name) for name in table], object))
    for name, (_, column) in zip(names, table.items(), strict=True):
        total += mixed(value_hashes(column) ^ name)
    return mixed(total)


def labelled_hashes(features: pd.DataFrame, labels: ArrayLike) -> NDArray[np.uint64]:
    """Hash rows with their labels, as a schema reads them: neither the type of a file nor its time zones matter."""
    texts = pd.Series(np.asarray(labels), features.index).map(str).astype(object)
    # A name that no column of a file has: `assign` would replace a feature.
    return row_hashes(pd.concat([features, texts.rename("\0label")], axis=1))


def hash_total(hashes: NDArray[np.uint64]) -> int:
    """Sum of hashes: that of a table is the sum of those of its pieces, whatever the order of its rows."""
    return int(hashes.sum(dtype=np.uint64))


def fingerprint(total: int) -> str:
    """Checksum of a table from the sum of its hashes: tells which table it is, and nothing about it."""
    return f"{total % 2**64:016x}"


def value_hashes(column: "pd.Series[Any]") -> NDArray[np.uint64]:
    """Hash every value of a column."""
    kind = typed_kind(column)
    if kind not in (None, "category"):
        return _number_hashes(to_floats(column))
    codes, names = category_codes(column)
    hashes = pd.util.hash_array(np.array(names, object), categorize=False) if names else np.zeros(0, np.uint64)
    numbers = parse_numbers(pd.Series(names, dtype=object), ".").to_numpy(np.float64)
    hashes = np.where(np.isnan(numbers), hashes, _number_hashes(numbers))
    return np.append(hashes, _GAP)[codes]


def _number_hashes(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    # Zero has two signs, and what is no number many patterns of bits.
    return np.where(np.isnan(values), _GAP, mixed((values + 0.0).view(np.uint64)))


def mixed(bits: NDArray[np.uint64], salt: int = 0) -> NDArray[np.uint64]:
    """Spread 64 bits evenly, as the generator SplitMix64 does; another salt gives independent numbers."""
    bits = bits + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def uniform(hashes: NDArray[np.uint64], salt: int) -> NDArray[np.float64]:
    """Numbers between 0 and 1 that look random, one for each hash."""
    return (mixed(hashes, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53
