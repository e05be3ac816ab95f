"""Results of the study in one small JSON file: a table for each kind of result, and which jobs are done."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from dafh.exceptions import InputError

Row = dict[str, Any]
STORED = Path(__file__).with_name("results.json")
"""The results that are part of the repository, from which the pages are written."""
_PACKAGES = ("dafh", "jax", "scikit-learn", "numpy", "scipy")


@dataclass(frozen=True, order=True)
class Job:
    """A method on one random split of a data set, whose seed is the number of the split."""

    dataset: str
    method: str
    k: int
    split: int

    @property
    def kind(self) -> str:
        """Table of the results."""
        first = self.method.partition("-")[0]
        return first if first in ("sgd", "steps", "composition", "synthetic", "rival") else "models"


class Store:
    """Results in memory, and in a file that is written anew after each job, so that a study can go on.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "results.json"
    >>> job = Job("german", "pooled", 1, 0)
    >>> Store(file).put(job, [{"accuracy": 0.75}], seconds=1.5)
    >>> Store(file).has(job), Store(file).table("models")["accuracy"].tolist()
    (True, [0.75])
    """

    def __init__(self, path: Path = STORED) -> None:
        self.path = path
        self.about = versions()
        self._tables: dict[str, list[Row]] = {"jobs": []}
        if path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self.about = content.pop("about")
                self._tables = {
                    kind: [
                        {name: value for name, value in zip(table["columns"], row, strict=True) if value is not None}
                        for row in table["rows"]
                    ]
                    for kind, table in content.items()
                }
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{path} holds no results of a study: choose another folder.") from error
        self._done = {_job(row) for row in self._tables["jobs"]}

    def has(self, job: Job) -> bool:
        """Whether the job is done."""
        return job in self._done

    def require_same_versions(self) -> None:
        """Refuse to mix results of several versions of the package, or of the libraries below it."""
        if self.about != versions():
            raise InputError(
                f"{self.path} was made with other versions, {self.about}: delete it, or choose another folder."
            )

    def put(self, job: Job, rows: Iterable[Row], seconds: float) -> None:
        """Add the rows of a job, and write the file."""
        named = asdict(job)
        self._tables.setdefault(job.kind, []).extend({**named, **row} for row in rows)
        self._tables["jobs"].append({**named, "seconds": round(seconds, 2)})
        self._done.add(job)
        self._write()

    def table(self, kind: str) -> pd.DataFrame:
        """All rows of one kind, in the order of their jobs."""
        rows = sorted(self._tables.get(kind, []), key=_job)
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["dataset", "method", "k", "split"])

    def seconds(self, jobs: Iterable[Job]) -> float:
        """CPU seconds that jobs will take, from the times of the same jobs on other splits; NaN if unknown."""
        times = self.table("jobs")
        mean = times.groupby(["dataset", "method", "k"])["seconds"].mean() if len(times) else pd.Series(dtype=float)
        return float(sum(mean.get((job.dataset, job.method, job.k), float("nan")) for job in jobs))

    def _write(self) -> None:
        # One row a line, and every number with five digits: small, and readable in a diff.
        sections = [f'"about": {json.dumps(self.about)}']
        for kind in sorted(self._tables):
            rows = sorted(self._tables[kind], key=_job)
            columns = list(dict.fromkeys(name for row in rows for name in row))
            lines = ",\n".join(
                json.dumps([_short(row.get(name)) for name in columns], separators=(",", ":")) for row in rows
            )
            sections.append(f'"{kind}": {{"columns": {json.dumps(columns)}, "rows": [\n{lines}\n]}}')
        temporary = self.path.with_suffix(".part")
        temporary.write_text("{" + ",\n".join(sections) + "}\n", encoding="utf-8")
        os.replace(temporary, self.path)


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    return {name: version(name) for name in _PACKAGES}


def _job(row: Row) -> Job:
    return Job(row["dataset"], row["method"], row["k"], row["split"])


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value
