"""Which way a table is read: whole, or in passes over its rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dafh.blocks.reporting import PassReport
from dafh.estimators import training_rows
from dafh.tables.read import STDIN, DataFile
from dafh.workflows.large import LargeTable
from dafh.workflows.names import split_names
from dafh.workflows.training import TrainingTable

_LISTS = ("drop", "sensitive", "categories", "protect")


def read_table(
    data: DataFile,
    target: str,
    *,
    seed: int = 0,
    on_cluster: bool = False,
    memory: float | None = None,
    report: Callable[[int], PassReport] | None = None,
    **said: Any,
) -> TrainingTable | LargeTable:
    """Read a table to train on; both ways lead to the same model.

    Parameters
    ----------
    data : DataFile
        Its path may also be a pattern such as ``rows/*.parquet``, or a folder.
    target : str
    seed : int
        Draws the rows that are held out of a small table.
    on_cluster : bool
        Whether the workers of a Dask cluster read the rows, however few they are.
    memory : float, optional
        Bytes that a large table may use.
    report : function of the number of rows, optional
        Makes a function that is called after every pass over a large table.
    said : what the user says about columns, as in `TrainingTable.read`
    """
    if str(data.path) == STDIN:
        return TrainingTable.read(data, target, seed=seed, **said)
    files = replace(data, leave_out=split_names(said.get("drop", ()), ())).files()
    n_rows = sum(file.count_rows() for file in files)
    if n_rows <= training_rows.MOST_ROWS:
        return TrainingTable.read(data, target, seed=seed, **said)
    names = list(next(files[0].pieces(rows=100)).columns)
    said |= {name: split_names(said.get(name, ()), names) for name in _LISTS}
    told = None if report is None else report(n_rows)
    return LargeTable.read(files, target, n_rows, on_cluster=on_cluster, memory=memory, report=told, **said)
