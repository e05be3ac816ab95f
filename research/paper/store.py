"""Results of a study in one file, which stays whole if the process is killed."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import pandas as pd

from dafh.exceptions import InputError
from dafh.storage.tables import check_tables
from dafh.text import clipped

# Changes with the meaning of the results, so that old ones are refused instead of misread.
_SCHEMA = 2
# Marks the file as ours ("dafh" in ASCII), so that we never write to a database of another program.
_APPLICATION = 0x64616668
_LARGEST_NUMBER = 10**15
_TABLE = "results (key TEXT PRIMARY KEY, job TEXT, rows TEXT, seconds REAL, made_by TEXT)"


class ResultStore:
    """Jobs and their results in SQLite: a job is stored with all its rows or not at all.

    Only the process that hands out the jobs writes. The file is in WAL mode, so that others can read at the same time.

    Parameters
    ----------
    path : Path
        File of the store; it is created, with its folder, if it does not exist.

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
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{self.path} cannot be used to store results: {error}.") from error
        try:
            self._check_owner()
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._create()
        except BaseException as error:
            # A refused file must not stay open: Python would warn about it, and some systems keep it locked.
            self.close()
            if isinstance(error, sqlite3.Error):
                raise InputError(f"{self.path} cannot be used to store results: {error}.") from error
            raise

    def _check_owner(self) -> None:
        """Refuse the file of another program, or of another version, before anything is written to it."""
        # Tables first: a process that is making the file at this moment sets the marks before the table, so whoever
        # sees the table sees the marks too.
        if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
            return
        owner, version = (
            self._connection.execute(f"PRAGMA {n}").fetchone()[0] for n in ("application_id", "user_version")
        )
        if owner != _APPLICATION:
            raise InputError(f"{self.path} belongs to another program: choose another folder.")
        if version != _SCHEMA:
            raise InputError(
                f"{self.path} was written by another version of dafh (format {version} instead of {_SCHEMA}): choose "
                "another folder, or delete the file."
            )
        with self._read_soundly():
            check_tables(self._connection, (f"CREATE TABLE {_TABLE}",))

    def _create(self) -> None:
        # The marks come before the table. A process killed after the table but before the marks would leave a file that
        # looks like another program's, and every later run would refuse it.
        self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")

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
        with self._read_soundly():
            found = {key for (key,) in self._connection.execute(query, (made_by,))}
            if not all(isinstance(key, str) for key in found):
                raise TypeError("a job has no key")
        return found

    def put(self, key: str, job: dict[str, Any], rows: list[dict[str, Any]], seconds: float, made_by: str = "") -> None:
        """Write a job with all its rows in one transaction; it replaces an older result of the same job."""
        row = (key, json.dumps(job, sort_keys=True), json.dumps(rows), seconds, made_by)
        try:
            with self._connection:
                self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error

    def rows(self, keys: list[str]) -> list[dict[str, Any]]:
        """Rows of the jobs with these keys, in this order; each row also holds the fields of its job."""
        return list(self._iterate(keys))

    def _iterate(self, keys: list[str]) -> Iterator[dict[str, Any]]:
        with closing(self._connection.cursor()) as cursor:
            for key in keys:
                with self._read_soundly():
                    found = cursor.execute("SELECT job, rows FROM results WHERE key = ?", (key,)).fetchone()
                    rows = [] if found is None else _rows_of_job(*found)
                yield from rows

    def seconds(self) -> dict[str, float]:
        """How long each job took."""
        with self._read_soundly():
            found = dict(self._connection.execute("SELECT key, seconds FROM results"))
            if not all(isinstance(one, float) for one in found.values()):
                raise TypeError("a job has no time")
        return found

    @contextmanager
    def _read_soundly(self) -> Iterator[None]:
        """Turn whatever is wrong with a damaged or forged file into one sentence."""
        try:
            yield
        except (TypeError, ValueError, RecursionError, sqlite3.Error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{self.path} cannot be used as results of a study: it is damaged ({clipped(error, 80)})."
            ) from error

    def frame(self, keys: list[str]) -> pd.DataFrame:
        """Return the rows as a table, which does not depend on when and in what order the jobs ran."""
        rows = self.rows(keys)
        with self._read_soundly():
            _check_columns(rows)
        return pd.DataFrame(rows)


def _rows_of_job(job: object, rows: object) -> list[dict[str, Any]]:
    """Rows with the fields of their job, of texts that `put` has written, or someone else."""
    if not isinstance(job, str) or not isinstance(rows, str):
        raise TypeError("a result is not text")
    fields, found = json.loads(job), json.loads(rows)
    if not isinstance(fields, dict) or not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise TypeError("a result is not made of rows")
    return [{**fields, **row} for row in found]


def _check_columns(rows: list[dict[str, Any]]) -> None:
    """Refuse numbers beside something else in one column, and numbers that no table could hold: nobody has put them."""
    kinds: dict[str, bool] = {}
    for row in rows:
        for name, value in row.items():
            if value is None:
                continue
            if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
                raise ValueError(f"the number in {name!r} is too large")
            is_number = isinstance(value, int | float)
            if kinds.setdefault(name, is_number) != is_number:
                raise TypeError(f"{name!r} holds numbers and something else")
