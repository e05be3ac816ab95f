"""Results of the study in one small JSON file, one job a line."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError

Row = dict[str, Any]
STORED = Path(__file__).with_name("results.json")
"""The results that are part of the repository, from which the pages are written."""
_PACKAGES = ("dafh", "jax", "scikit-learn", "numpy", "scipy")
# Methods with a prefix have tables of their own, because their rows have other columns.
_KINDS = ("sgd", "steps", "composition", "synthetic", "rival")


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
        prefix = self.method.partition("-")[0]
        return prefix if prefix in _KINDS else "models"


class Store:
    """Results in memory, and in a file that is written anew after each job, so that a study can go on.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "results.json"
    >>> job = Job("german", "pooled", 1, 0)
    >>> Store(file).put(job, [{"accuracy": 0.75}], seconds=1.5)
    >>> job in Store(file).jobs, Store(file).table("models")["accuracy"].tolist()
    (True, [0.75])
    """

    def __init__(self, path: Path = STORED) -> None:
        self.path, self.about = path, versions()
        self.seconds: dict[Job, float] = {}
        self._columns: dict[Job, dict[str, list[Any]]] = {}
        if path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self.about = content["about"]
                for *key, seconds, columns in content["jobs"]:
                    job = Job(*key)
                    self.seconds[job], self._columns[job] = seconds, columns
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path} holds no results of a study: choose another folder.") from error

    @property
    def jobs(self) -> set[Job]:
        """Jobs that are done."""
        return set(self.seconds)

    def require_same_versions(self) -> None:
        """Refuse to mix results of several versions of the package, or of the libraries below it."""
        if self.about != versions():
            raise InputError(
                f"{self.path} was made with other versions, {self.about}: delete it, or choose another folder."
            )

    def put(self, job: Job, rows: Iterable[Row], seconds: float) -> None:
        """Add the rows of a job, and write the file."""
        columns = pd.DataFrame(list(rows)).astype(object).map(_short).to_dict("list")
        self.seconds[job], self._columns[job] = round(seconds, 2), columns
        done = (json.dumps([*astuple(job), self.seconds[job], self._columns[job]]) for job in sorted(self.jobs))
        temporary = self.path.with_suffix(".part")
        head, lines = json.dumps(self.about), ",\n".join(done)
        temporary.write_text(f'{{"about": {head},\n"jobs": [\n{lines}\n]}}\n', encoding="utf-8")
        os.replace(temporary, self.path)

    def table(self, kind: str) -> pd.DataFrame:
        """All rows of one kind, in the order of their jobs."""
        jobs = [job for job in sorted(self.jobs) if job.kind == kind]
        rows = [
            {**asdict(job), **dict(zip(self._columns[job], values, strict=True))}
            for job in jobs
            for values in zip(*self._columns[job].values(), strict=True)
        ]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(Job.__annotations__))

    def expected_seconds(self, jobs: Iterable[Job]) -> float:
        """CPU seconds that jobs will take, from the times of the same jobs on other splits; NaN if unknown."""
        times = pd.Series(
            {(job.dataset, job.method, job.k, job.split): s for job, s in self.seconds.items()}, dtype=float
        )
        means = times.groupby(level=[0, 1, 2]).mean() if len(times) else times
        return float(sum(means.get((job.dataset, job.method, job.k), np.nan) for job in jobs))


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    return {name: version(name) for name in _PACKAGES}


def _short(value: Any) -> Any:
    """Numbers with five digits, and null where there is none."""
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else float(f"{value:.5g}")
