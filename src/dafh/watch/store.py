"""The books of a monitor in one file, which stays whole if the process is killed: a batch is in it, or it is not."""

import hashlib
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.storage import check_tables, is_special
from dafh.text import plain
from dafh.watch.inputs import Reference
from dafh.watch.monitor import Monitor
from dafh.watch.notices import Notice, ServiceChange, Update
from dafh.watch.settings import Settings
from dafh.watch.stored import (
    COUNTS,
    LONGEST_VALUE,
    QUESTION,
    SHARE,
    checked,
    checked_change,
    checked_list,
    checked_notice,
    checked_state,
    read_arrays,
    read_json,
    read_soundly,
)

_FORMAT = 1
# Marks the file as ours ("dafw" in ASCII), so that we never write to a database of another program.
_APPLICATION = 0x64616677
_TABLES = (
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), plain TEXT NOT NULL, arrays BLOB NOT NULL)",
    "CREATE TABLE models (number INTEGER PRIMARY KEY, checksum TEXT UNIQUE NOT NULL, name TEXT NOT NULL, "
    "batch INTEGER NOT NULL, content BLOB)",
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL, "
    "added TEXT NOT NULL, counts TEXT NOT NULL, evidence TEXT NOT NULL, drift TEXT NOT NULL, hashes BLOB NOT NULL)",
    "CREATE TABLE notices (number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, plain TEXT NOT NULL)",
    "CREATE TABLE service (number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, plain TEXT NOT NULL)",
)


@dataclass(frozen=True)
class KnownModel:
    """A model file that the state belongs to."""

    checksum: str
    name: str
    content: bytes | None
    """What is to be written in place of the file, where `apply` has changed who serves whom."""

    def is_sound(self) -> bool:
        """Whether it is made as `put_model` makes it: what is written in place of a model file has its checksum."""
        named = isinstance(self.checksum, str) and isinstance(self.name, str)
        if self.content is None or not named:
            return named
        return isinstance(self.content, bytes) and hashlib.sha256(self.content).hexdigest() == self.checksum


@dataclass(frozen=True)
class StoredBatch:
    """What was known after a batch."""

    number: int
    name: str
    added: str
    counts: dict[str, Any]
    evidence: list[dict[str, Any]]
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
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be opened: {error}.") from error
        try:
            self._check_owner()
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error | UnicodeError) and not isinstance(error, InputError):
                raise InputError(f"{self.path} cannot be used as a state: {error}.") from error
            raise

    def _check_owner(self) -> None:
        """Refuse the file of another program or format, before anything is written to it."""
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner, version = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if tables and owner != _APPLICATION:
            raise InputError(f"{self.path} belongs to another program: choose another file for the state.")
        if tables and version != _FORMAT:
            raise InputError(f"{self.path} was written by another version of dafh (format {version}, not {_FORMAT}).")
        with read_soundly(self.path):
            check_tables(self._connection, _TABLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Change the state as one: all of it, or nothing if anything fails or the process is killed.

        Another process that wants to do so waits, from before it reads the state until it is written.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise InputError(f"{self.path} cannot be written: {error}.") from error
            raise InputError(
                f"{self.path} is in use by another process, for more than {self._wait:g} seconds: try again later."
            ) from error
        try:
            # Also where two processes have found an empty file: the second one sees what the first has made.
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
                for statement in _TABLES:
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

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch yet."""
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return True
        return not self._connection.execute("SELECT count(*) FROM state").fetchone()[0]

    def models(self) -> list[KnownModel]:
        """Model files that the state belongs to, the one in use last."""
        with read_soundly(self.path):
            found = self._connection.execute("SELECT checksum, name, content FROM models ORDER BY number")
            known = [KnownModel(*row) for row in found]
            if not known or not all(one.is_sound() for one in known):
                raise ValueError("it holds a model that is not what it should be")
            return known

    def monitor(self, model: Any) -> Monitor:
        """Go on where the last batch ended."""
        with read_soundly(self.path):
            values, arrays = self._connection.execute("SELECT plain, arrays FROM state").fetchone()
            said = self.notices(), self.service()
            return Monitor.from_state(model, checked_state(read_json(values)), read_arrays(arrays), *said)

    def plain_state(self) -> dict[str, Any]:
        """Settings and counts, without the arrays."""
        with read_soundly(self.path):
            (text,) = self._connection.execute("SELECT plain FROM state").fetchone()
            values = checked_state(read_json(text))
            Settings.from_dict(values["settings"])
            Reference.from_dict(values["reference"])
            return values

    def notices(self) -> list[Notice]:
        """All that was noticed, in its order."""
        with read_soundly(self.path):
            return [Notice(**checked_notice(row)) for row in self._plain("notices")]

    def service(self) -> list[ServiceChange]:
        """All changes of who serves whom."""
        with read_soundly(self.path):
            return [ServiceChange(**checked_change(row)) for row in self._plain("service")]

    def _plain(self, table: str) -> list[dict[str, Any]]:
        found = self._connection.execute(f"SELECT plain FROM {table} ORDER BY number")
        return [read_json(text) for (text,) in found]

    def batch_of(self, fingerprint: str) -> StoredBatch | None:
        """Return the batch that had exactly these rows, if there was one."""
        found = [batch for batch, mark in self._batches() if mark == fingerprint]
        return found[0] if found else None

    def batches(self) -> list[StoredBatch]:
        """All batches, in their order."""
        return [batch for batch, _ in self._batches()]

    def _batches(self) -> Iterator[tuple[StoredBatch, str]]:
        query = "SELECT number, name, added, counts, evidence, drift, fingerprint FROM batches ORDER BY number"
        with read_soundly(self.path):
            for number, name, added, counts, evidence, drift, mark in self._connection.execute(query):
                if [type(value) for value in (number, name, added, mark)] != [int, str, str, str]:
                    raise TypeError("a batch has no name")
                about = checked(read_json(counts), COUNTS), checked_list(read_json(evidence), QUESTION)
                yield StoredBatch(number, name, added, *about, checked_list(read_json(drift), SHARE)), mark

    def hashes(self) -> NDArray[np.uint64]:
        """Hashes of the values of all rows so far."""
        with read_soundly(self.path):
            blobs = self._connection.execute("SELECT hashes FROM batches")
            found = [np.frombuffer(blob, np.uint64) for (blob,) in blobs]
            return np.concatenate(found) if found else np.zeros(0, np.uint64)

    # ---- writing, within a transaction ----

    def put_model(self, checksum: str, name: str, batch: int, content: bytes | None = None) -> None:
        """Let another model file belong to the state from now on."""
        values = (checksum, name, batch, content)
        self._connection.execute("INSERT INTO models (checksum, name, batch, content) VALUES (?, ?, ?, ?)", values)

    def put_batch(self, monitor: Monitor, update: Update, fingerprint: str, hashes: NDArray[np.uint64]) -> None:
        """Store a batch with all that is known after it."""
        counts = {name: value for name, value in update.to_dict().items() if name != "notices"}
        tables = [plain(table.to_dict("records")) for table in (monitor.table(), monitor.drift())]
        texts = [_as_json(value) for value in (counts, *tables)]
        added = datetime.now(UTC).isoformat(timespec="seconds")
        row = (update.batch, update.name, fingerprint, added, *texts, hashes.tobytes())
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._put_plain("notices", update.batch, [notice.to_dict() for notice in update.notices])
        self.put_state(monitor)

    def put_state(self, monitor: Monitor) -> None:
        """Store what the monitor knows."""
        values, arrays = monitor.to_state()
        row = (_as_json(values), _write_arrays(arrays))
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", row)

    def put_service(self, batch: int, changes: list[ServiceChange]) -> None:
        """Store changes of who serves whom."""
        self._put_plain("service", batch, [change.to_dict() for change in changes])

    def _put_plain(self, table: str, batch: int, entries: list[dict[str, Any]]) -> None:
        rows = [(batch, _as_json(entry)) for entry in entries]
        self._connection.executemany(f"INSERT INTO {table} (batch, plain) VALUES (?, ?)", rows)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _write_arrays(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
