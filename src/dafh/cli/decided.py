"""Rows with the decisions of an old and a new model, for `dafh compare`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.cli.model_file import ModelFile, scored
from dafh.columns.hashes import uniform
from dafh.columns.kinds import read_as, with_gaps
from dafh.columns.labels import find_labels, match_labels, read_labels
from dafh.columns.read import DataFile
from dafh.columns.schema import TableSchema, check_columns, split_names
from dafh.exceptions import InputError
from dafh.large import as_blocks, open_files
from dafh.text import listed, quoted

_MOST_COMPARED = 1_000_000
# Rows that show what columns hold.
_MOST_SAMPLED = 200_000


def read_decided(
    data: Any,
    old: str,
    new: str,
    *,
    target: str | None = None,
    sensitive: Sequence[str] = (),
    drop: Sequence[str] = (),
    person: str | None = None,
    time: str | None = None,
    weight: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Read what `compare` takes from files or a Dask data frame: labels, decisions, features, and roles of columns.

    `old` and `new` are columns with decisions, or model files; `data` is a DataFile or anything that
    `dafh.large.as_blocks` takes. Rows without a target are left out. Of more than a million rows, a random million is
    compared. Returns arguments of `compare`, and notes for the reader.

    Examples
    --------
    >>> rows, _ = read_decided("rows/*.parquet", "old", "new", target="hired")         # doctest: +SKIP
    >>> dafh.compare(**rows)                                                           # doctest: +SKIP
    """
    files = data.files() if isinstance(data, DataFile) else []
    blocks = open_files(files, text=None) if files else as_blocks(data)
    if blocks is None:
        raise InputError("Pass files or a Dask data frame; `dafh.compare` takes tables in memory itself.")
    n_rows = blocks.count()
    if not n_rows:
        raise InputError("There are no rows to compare decisions on.")
    thinned = partial(_thinned, share=min(_MOST_COMPARED / n_rows, 1.0), target=target)
    sample = pd.concat(list(blocks.map(partial(thinned, share=min(_MOST_SAMPLED / n_rows, 1.0)))))
    if not len(sample):
        raise InputError(f"The target {quoted(target)} has no values.")
    paths = [name for name in (old, new) if name not in blocks.columns and Path(name).is_file()]
    decisions = [name for name in (old, new) if name not in paths]
    check_columns(blocks.columns, decisions, "with decisions")
    attributes = split_names(sensitive, blocks.columns)
    unwanted = [*split_names(drop, blocks.columns), *decisions]
    anchor = target or next(iter(decisions), None)
    if anchor is None:
        raise InputError("Two model files need a target: name the column with the true label.")
    decimal = files[0].decimal if files else "."
    schema = TableSchema.guess(
        sample,
        anchor,
        drop=[name for name in dict.fromkeys(unwanted) if name != anchor],
        sensitive=attributes,
        person=person,
        time=time,
        weight=weight,
        decimal=decimal,
    )
    models = {name: ModelFile.open(Path(name)) for name in paths}
    role_columns = [name for name in dict.fromkeys((target, *decisions, person, time, weight, *attributes)) if name]

    def convert(block: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Features, and columns with roles beside what model files decide."""
        rows = thinned(block).reset_index(drop=True)
        labels = {
            name: scored(file.model, file.schema.features_of(rows))["prediction"].to_numpy()
            for name, file in models.items()
        }
        return schema.features_of(rows), rows[role_columns].assign(**labels)

    converted = [tables for tables in blocks.map(convert) if len(tables[0])]
    features, roles = (pd.concat(tables, ignore_index=True) for tables in zip(*converted, strict=True))
    y = None if target is None else read_labels(roles[target])
    labels = {
        role: roles[name].to_numpy() if name in models else _as_decisions(roles[name], y, decimal)
        for role, name in (("old", old), ("new", new))
    }
    left_out = [name for name in schema.left_out if name not in unwanted]
    notes = [f"Rules are not about {listed([quoted(name) for name in left_out[:5]])}."] if left_out else []
    if n_rows > _MOST_COMPARED:
        notes.append(f"A random sample of {len(roles):,} of {n_rows:,} rows is compared.")
    return {
        "y": y,
        **labels,
        "X": features if features.shape[1] else None,
        "sensitive_features": schema.attributes_of(roles, attributes) if attributes else None,
        **schema.fit_options(roles),
    }, notes


def _thinned(block: pd.DataFrame, share: float, target: str | None) -> pd.DataFrame:
    """A share of the rows of a block, the same whatever the blocks are, without those that have no target."""
    if target is not None:
        check_columns(block.columns, [target], "the target")
        block = block[with_gaps(block[target]).notna()]
    return block if share >= 1 else block[uniform(block.index.to_numpy(np.uint64), 0) < share]


def _as_decisions(column: "pd.Series[Any]", y: NDArray[Any] | None, decimal: str) -> NDArray[Any]:
    """Decisions of a column as they are compared: labels, or scores as numbers."""
    if y is not None and find_labels(column, np.unique(y))[1] is None:
        return match_labels(column, np.unique(y))
    numbers = read_as(column, "number", decimal).values
    return (numbers if numbers.notna().all() else column).to_numpy()
