"""Results of a study in one file that survives a kill at any moment."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import pandas as pd

from dafh.exceptions import InputError

# A change of what results mean makes old ones useless; it must not make them look right.
_SCHEMA = 2
# Marks the file as ours ("dafh" in ASCII): nobody else's database is ever written to.
_APPLICATION = 0x64616668


class ResultStore:
    """Jobs and what they gave, in SQLite: a job is there with all its rows, or not at all.

    One process writes (the one that hands out the jobs); the file is in WAL mode, so that others can read meanwhile.

    Parameters
    ----------
    path : path of the file; made with its folder if it is not there

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ResultStore(Path(folder) / "results.sqlite") as store:
    ...     store.put("adult/pooled/0", {"dataset": "adult"}, [{"accuracy": 0.85}], seconds=1.5, made_by="dafh 1")
    ...     store.keys("dafh 1"), store.rows(["adult/pooled/0"])
    ({'adult/pooled/0'}, [{'dataset': 'adult', 'accuracy': 0.85}])
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path)
            self._check_owner()
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._create()
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{self.path} cannot be used as a store of results: {error}.") from error

    def _check_owner(self) -> None:
        """Refuse a file that something else has made, before anything is written to it."""
        owner, version = (
            self._connection.execute(f"PRAGMA {n}").fetchone()[0] for n in ("application_id", "user_version")
        )
        if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
            return
        if owner != _APPLICATION:
            raise InputError(f"{self.path} is a database of another program: choose another folder.")
        if version != _SCHEMA:
            raise InputError(
                f"{self.path} was written by another version of dafh (format {version}, this one has {_SCHEMA}): "
                "choose another folder, or remove it."
            )

    def _create(self) -> None:
        with self._connection:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS results "
                "(key TEXT PRIMARY KEY, job TEXT, rows TEXT, seconds REAL, made_by TEXT)"
            )
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def keys(self, made_by: str | None = None) -> set[str]:
        """Keys of all jobs that are done, or of those done by this version of the code and its settings."""
        query = "SELECT key FROM results WHERE made_by = coalesce(?, made_by)"
        return {key for (key,) in self._connection.execute(query, (made_by,))}

    def put(self, key: str, job: dict[str, Any], rows: list[dict[str, Any]], seconds: float, made_by: str = "") -> None:
        """Write a job with all its rows, in one transaction, in the place of what another version made of it."""
        row = (key, json.dumps(job, sort_keys=True), json.dumps(rows), seconds, made_by)
        try:
            with self._connection:
                self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error

    def rows(self, keys: list[str]) -> list[dict[str, Any]]:
        """Rows of the jobs with these keys, in their order, each with what describes the job."""
        return list(self._iterate(keys))

    def _iterate(self, keys: list[str]) -> Iterator[dict[str, Any]]:
        with closing(self._connection.cursor()) as cursor:
            for key in keys:
                found = cursor.execute("SELECT job, rows FROM results WHERE key = ?", (key,)).fetchone()
                if found is not None:
                    job = json.loads(found[0])
                    yield from ({**job, **row} for row in json.loads(found[1]))

    def seconds(self) -> dict[str, float]:
        """How long each job took."""
        return dict(self._connection.execute("SELECT key, seconds FROM results"))

    def frame(self, keys: list[str]) -> pd.DataFrame:
        """Return the rows as a table; the same jobs give the same table, whenever and in whatever order they ran."""
        return pd.DataFrame(self.rows(keys))
