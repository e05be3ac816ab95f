"""Everything that `fit` takes instead of rows in memory."""

from pathlib import Path
from typing import Any

import pandas as pd

from dafh.blocks.base import Blocks
from dafh.blocks.cluster import DaskBlocks
from dafh.blocks.files import FileBlocks, open_dataset
from dafh.tables.read import DataFile, find_files


def as_blocks(X: Any) -> Blocks[pd.DataFrame] | None:
    """Blocks of a path, a pattern, several of them, a data set of Arrow or a Dask data frame; None for anything else.

    The blocks have `columns`.
    """
    if isinstance(X, Blocks):
        return X
    if isinstance(X, str | Path) or (isinstance(X, list | tuple) and X and all(isinstance(x, str | Path) for x in X)):
        return FileBlocks.open([DataFile(path) for path in find_files(X)])
    library = type(X).__module__.split(".")[0]
    if library == "pyarrow" and hasattr(X, "get_fragments"):
        return open_dataset(X)
    if library in ("dask", "dask_expr") and hasattr(X, "to_delayed") and hasattr(X, "columns"):
        return DaskBlocks.of_collection(X)
    return None
