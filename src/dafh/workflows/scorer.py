"""Scoring where the data live: a model file as a function of data frames, for engines that apply one to partitions."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.checks.parameters import check_path
from dafh.workflows.serving import FileModel


class Scorer:
    """A model file as a function: data frame in, predictions, probabilities and groups out.

    It holds no more than the path, so that an engine can send it to its workers; each of them reads the file once. The
    columns are those of ``dafh predict``, and the index is that of the rows.

    Parameters
    ----------
    path : str or Path
        A model file written by ``dafh fit``, at a place that all workers can read.

    Examples
    --------
    Dask and Spark:

    >>> scorer = Scorer("model.dafh")                                        # doctest: +SKIP
    >>> frame.map_partitions(scorer, meta=scorer.meta)                       # doctest: +SKIP
    >>> frame.mapInPandas(scorer.batches, scorer.spark_schema)               # doctest: +SKIP

    pandas:

    >>> import tempfile
    >>> from dafh.tables.read import DataFile
    >>> from dafh.workflows.training import TrainingTable, make_classifier
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "hired": ["no", "no", "yes", "yes"] * 25})
    >>> table.to_csv(folder / "people.csv", index=False)
    >>> people = TrainingTable.read(DataFile(folder / "people.csv"), "hired")
    >>> _ = people.save(people.fit(make_classifier(people.schema, n_groups=1)), folder / "model.dafh")
    >>> Scorer(folder / "model.dafh")(pd.DataFrame({"age": [25, 45]}))[["prediction", "group"]]
      prediction  group
    0         no      0
    1        yes      0
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(check_path(path))

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a data frame; one without rows too, which engines use to learn the columns."""
        if not len(frame):
            return self.meta
        scored = _opened(self.path).score_frame(frame)
        return scored.set_axis(frame.index, axis=0)

    def batches(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Score data frames one after the other, as Spark's ``mapInPandas`` hands them over."""
        for frame in frames:
            yield self(frame)

    @property
    def meta(self) -> pd.DataFrame:
        """The columns of the result without rows, as Dask asks for."""
        classes = _opened(self.path).model.classes_
        shown = classes[1:] if len(classes) == 2 else classes
        columns: dict[str, Any] = {"prediction": pd.Series(classes[:0])}
        columns |= {f"probability_{label}": pd.Series(dtype=np.float64) for label in shown}
        return pd.DataFrame({**columns, "group": pd.Series(dtype=np.int64)})

    @property
    def spark_schema(self) -> str:
        """The columns of the result as Spark names types."""
        kinds = {"f": "double", "i": "bigint", "b": "boolean"}
        parts = [(str(name), kinds.get(kind.kind, "string")) for name, kind in self.meta.dtypes.items()]
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in parts)


@cache
def _opened(path: str) -> FileModel:
    """A model file, read once for each process."""
    return FileModel.open(Path(path))
