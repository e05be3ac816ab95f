"""Fingerprints of tables, which tell whether a model was trained on one."""

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.tables.hashes import row_hashes


def labelled_hashes(features: pd.DataFrame, y: ArrayLike) -> NDArray[np.uint64]:
    """One number for each row, the same in whatever file the row stands.

    Features and labels come as the schema reads them, so that neither the type of a file nor its time zones matter.
    """
    label = pd.Series(np.asarray(y), features.index).map(str).astype(object)
    # A name that no column of a file has: `assign` would replace a feature.
    return row_hashes(pd.concat([features, label.rename("\0label")], axis=1))


def fingerprint(hashes: NDArray[np.uint64]) -> str:
    """Checksum of a table, whatever the order of its rows: tells which table it is, and nothing about it."""
    return hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()
