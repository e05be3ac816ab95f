"""Fingerprints of tables, which tell whether a model was trained on one."""

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.tables.hashes import mixed, row_hashes


def labelled_hashes(features: pd.DataFrame, y: ArrayLike) -> NDArray[np.uint64]:
    """One number for each row, the same in whatever file the row stands.

    Features and labels come as the schema reads them, so that neither the type of a file nor its time zones matter.
    """
    label = pd.Series(np.asarray(y), features.index).map(str).astype(object)
    # A name that no column of a file has: `assign` would replace a feature.
    return row_hashes(pd.concat([features, label.rename("\0label")], axis=1))


def hash_sums(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of hashes: those of a table are the sums of those of its parts, whatever the order of its rows."""
    return np.array([len(hashes), *(mixed(hashes, salt).sum(dtype=np.uint64) for salt in range(3))], np.uint64)


def fingerprint(sums: NDArray[np.uint64]) -> str:
    """Checksum of a table from the sums of its hashes: tells which table it is, and nothing about it."""
    return hashlib.sha256(sums.tobytes()).hexdigest()
