"""Results of a study in one SQLite file, which stays whole if the process is killed."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import pandas as pd

from dafh.exceptions import InputError

# Changes with the meaning of the results, so that old ones are refused instead of misread.
_SCHEMA = 2


class ResultStore:
    """Jobs and their results: a job is stored with all its rows or not at all.

    Only the process that hands out the jobs writes; others can read at the same time.

    Parameters
    ----------
    path : Path
        File of the store; it is created, with its folder, if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ResultStore(Path(folder) / "results.sqlite") as store:
    ...     store.put("adult/pooled/0", {"dataset": "adult"}, [{"accuracy": 0.85}], seconds=1.5, made_by="dafh 1")
    ...     store.keys("dafh 1"), store.frame(["adult/pooled/0"]).to_dict("records")
    ({'adult/pooled/0'}, [{'dataset': 'adult', 'accuracy': 0.85}])
    """

    def __init__(self, path: Path) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            is_new = not self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} cannot be used to store results: {error}.") from error
        if not is_new and version != _SCHEMA:
            self.close()
            raise InputError(f"{path} holds something else, or results of another version: choose another folder.")
        columns = "key TEXT PRIMARY KEY, job TEXT, rows TEXT, seconds REAL, made_by TEXT"
        # The mark comes before the table: a process killed between them must not leave a file that is refused.
        self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS results ({columns})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def keys(self, made_by: str | None = None) -> set[str]:
        """Keys of all stored jobs, or of those with this `made_by`."""
        query = "SELECT key FROM results WHERE made_by = coalesce(?, made_by)"
        return {key for (key,) in self._connection.execute(query, (made_by,))}

    def put(self, key: str, job: dict[str, Any], rows: list[dict[str, Any]], seconds: float, made_by: str = "") -> None:
        """Write a job with all its rows in one transaction; it replaces an older result of the same job."""
        row = (key, json.dumps(job, sort_keys=True), json.dumps(rows), seconds, made_by)
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)

    def frame(self, keys: Iterable[str]) -> pd.DataFrame:
        """Rows of the jobs with these keys, in this order, each with the fields of its job."""
        found = []
        for key in keys:
            for job, rows in self._connection.execute("SELECT job, rows FROM results WHERE key = ?", (key,)):
                found += [{**json.loads(job), **row} for row in json.loads(rows)]
        return pd.DataFrame(found)
