"""The books of a monitor in one file, which stays whole if the process is killed: a batch is in it, or it is not."""

import io
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from dafh.exceptions import InputError
from dafh.monitor.monitor import Monitor
from dafh.monitor.notices import Notice, ServiceChange, Update
from dafh.storage import is_special
from dafh.text import clipped, plain

_FORMAT = 3
# Marks the file as ours ("dafw" in ASCII), so that we never write to a database of another program.
_APPLICATION = 0x64616677
_SCHEMA = f"""
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_FORMAT};
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), plain TEXT NOT NULL, arrays BLOB NOT NULL);
    CREATE TABLE models (number INTEGER PRIMARY KEY, checksum TEXT UNIQUE NOT NULL, name TEXT NOT NULL, content BLOB);
    CREATE TABLE batches (number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, plain TEXT NOT NULL)
"""


@dataclass(frozen=True)
class KnownModel:
    """A model file that the state belongs to."""

    checksum: str
    name: str
    content: bytes | None
    """What is to be written in place of the file, where `apply` has changed who serves whom."""


@dataclass(frozen=True)
class StoredBatch:
    """What was known after a batch."""

    number: int
    name: str
    added: str
    counts: dict[str, Any]
    evidence: list[dict[str, Any]]
    levels: list[dict[str, Any]]
    drift: list[dict[str, Any]]


class WatchStore:
    """State of a monitor in SQLite.

    Parameters
    ----------
    path : Path
        Created where it does not exist, unless `must_exist`.
    wait : float
        Seconds to wait for another process that is writing.
    must_exist : bool
        Refuse to create the file.
    """

    def __init__(self, path: Path, *, wait: float = 60.0, must_exist: bool = False) -> None:
        self.path, self._wait = Path(path), wait
        if must_exist and not self.path.exists():
            raise InputError(f"There is no state file {self.path}.")
        if is_special(self.path):
            # SQLite would write to a device, report success, and have nothing when it is opened again.
            raise InputError(f"{self.path} is no file that can keep a state.")
        try:
            # Without a mode of its own, Python would begin and end transactions where it likes.
            self._connection = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be opened: {error}.") from error
        try:
            self._check_owner()
        except BaseException:
            self._connection.close()
            raise

    def _check_owner(self) -> None:
        """Refuse the file of another program or format, before anything is written to it."""
        with self._reading():
            if not self._has_tables():
                return
            owner, version = self._value("PRAGMA application_id"), self._value("PRAGMA user_version")
        if owner != _APPLICATION:
            raise InputError(f"{self.path} belongs to another program: choose another file for the state.")
        if version != _FORMAT:
            raise InputError(f"{self.path} was written by another version of dafh (format {version}, not {_FORMAT}).")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Change the state as one: all of it, or nothing if anything fails or the process is killed.

        Another process that wants to do so waits, from before it reads the state until it is written.
        """
        connection = self._connection
        try:
            # Not at the first write: a state that two processes have read would lose the batch of one of them.
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise InputError(f"{self.path} cannot be written: {error}.") from error
            raise InputError(
                f"{self.path} is in use by another process, for more than {self._wait:g} seconds: try again later."
            ) from error
        try:
            if not self._has_tables():
                # One by one: `executescript` would commit first.
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
            yield
            connection.execute("COMMIT")
        except BaseException as error:
            # After some errors SQLite has gone back already. If going back fails, too, whoever opens the file next
            # does it.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise InputError(f"{self.path} cannot be written: {error}.") from error
            raise

    # ---- reading ----

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever is wrong with a damaged file into one sentence."""
        try:
            yield
        except InputError:
            raise
        except (sqlite3.Error, zipfile.BadZipFile, EOFError, LookupError, TypeError, ValueError) as error:
            reason = clipped(error, 80)
            raise InputError(f"{self.path} cannot be used as a state: it is damaged ({reason}).") from error

    def _value(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    def _has_tables(self) -> bool:
        return bool(self._value("SELECT count(*) FROM sqlite_master"))

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch yet."""
        with self._reading():
            return not self._has_tables() or not self._value("SELECT count(*) FROM batches")

    def models(self) -> list[KnownModel]:
        """Model files that the state belongs to, the one in use last."""
        with self._reading():
            rows = self._connection.execute("SELECT checksum, name, content FROM models ORDER BY number")
            return [KnownModel(*row) for row in rows]

    def monitor(self, model: Any) -> Monitor:
        """Go on where the last batch ended."""
        with self._reading():
            with np.load(io.BytesIO(self._value("SELECT arrays FROM state")), allow_pickle=False) as file:
                arrays = dict(file.items())
            return Monitor.from_state(model, self.plain_state(), arrays)

    def plain_state(self) -> dict[str, Any]:
        """Settings, counts, notices and changes of service, without the arrays."""
        with self._reading():
            return msgspec.json.decode(self._value("SELECT plain FROM state"), type=dict[str, Any])

    def notices(self) -> list[Notice]:
        """All that was noticed, in its order."""
        with self._reading():
            return msgspec.convert(self.plain_state()["notices"], list[Notice])

    def service(self) -> list[ServiceChange]:
        """All changes of who serves whom."""
        with self._reading():
            return msgspec.convert(self.plain_state()["service"], list[ServiceChange])

    def batches(self, fingerprint: str | None = None) -> list[StoredBatch]:
        """All batches in their order, or those of exactly these rows."""
        query = "SELECT plain FROM batches WHERE fingerprint = coalesce(?, fingerprint) ORDER BY number"
        with self._reading():
            rows = self._connection.execute(query, [fingerprint])
            return [msgspec.json.decode(text, type=StoredBatch) for (text,) in rows]

    # ---- writing, within a transaction ----

    def put_model(self, checksum: str, name: str, content: bytes | None = None) -> None:
        """Let another model file belong to the state from now on."""
        row = checksum, name, content
        self._connection.execute("INSERT INTO models (checksum, name, content) VALUES (?, ?, ?)", row)

    def put_batch(self, monitor: Monitor, update: Update, fingerprint: str) -> None:
        """Store a batch with all that is known after it."""
        tables = [plain(table.to_dict("records")) for table in (monitor.table(), monitor.levels(), monitor.drift())]
        added = datetime.now(UTC).isoformat(timespec="seconds")
        batch = StoredBatch(update.batch, update.name, added, update.counts(), *tables)
        row = update.batch, fingerprint, msgspec.json.encode(batch).decode()
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?)", row)
        self.put_state(monitor)

    def put_state(self, monitor: Monitor) -> None:
        """Store what the monitor knows."""
        values, arrays = monitor.to_state()
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        row = msgspec.json.encode(values).decode(), buffer.getvalue()
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", row)
