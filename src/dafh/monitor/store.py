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

_FORMAT = 2
# Marks the file as ours ("dafw" in ASCII), so that we never write to a database of another program.
_APPLICATION = 0x64616677
_TABLES = (
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), plain TEXT NOT NULL, arrays BLOB NOT NULL)",
    "CREATE TABLE models (number INTEGER PRIMARY KEY, checksum TEXT UNIQUE NOT NULL, name TEXT NOT NULL, "
    "batch INTEGER NOT NULL, content BLOB)",
    "CREATE TABLE batches (number INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL, "
    "added TEXT NOT NULL, counts TEXT NOT NULL, evidence TEXT NOT NULL, levels TEXT NOT NULL, drift TEXT NOT NULL)",
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
            self.close()
            raise

    def _check_owner(self) -> None:
        """Refuse the file of another program or format, before anything is written to it."""
        with self._reading():
            tables = self._value("SELECT count(*) FROM sqlite_master")
            owner, version = self._value("PRAGMA application_id"), self._value("PRAGMA user_version")
        if tables and owner != _APPLICATION:
            raise InputError(f"{self.path} belongs to another program: choose another file for the state.")
        if tables and version != _FORMAT:
            raise InputError(f"{self.path} was written by another version of dafh (format {version}, not {_FORMAT}).")

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
            if not self._value("SELECT count(*) FROM sqlite_master"):
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

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch yet."""
        with self._reading():
            return not self._value("SELECT count(*) FROM sqlite_master") or not self._value(
                "SELECT count(*) FROM state"
            )

    def models(self) -> list[KnownModel]:
        """Model files that the state belongs to, the one in use last."""
        with self._reading():
            found = self._connection.execute("SELECT checksum, name, content FROM models ORDER BY number")
            return [KnownModel(*row) for row in found]

    def monitor(self, model: Any) -> Monitor:
        """Go on where the last batch ended."""
        values, said = self.plain_state(), (self.notices(), self.service())
        with self._reading():
            with np.load(io.BytesIO(self._value("SELECT arrays FROM state")), allow_pickle=False) as found:
                arrays = dict(found.items())
            return Monitor.from_state(model, values, arrays, *said)

    def plain_state(self) -> dict[str, Any]:
        """Settings and counts, without the arrays."""
        with self._reading():
            return msgspec.json.decode(self._value("SELECT plain FROM state"), type=dict[str, Any])

    def notices(self) -> list[Notice]:
        """All that was noticed, in its order."""
        with self._reading():
            found = self._connection.execute("SELECT plain FROM notices ORDER BY number")
            return [msgspec.json.decode(text, type=Notice) for (text,) in found]

    def service(self) -> list[ServiceChange]:
        """All changes of who serves whom."""
        with self._reading():
            found = self._connection.execute("SELECT plain FROM service ORDER BY number")
            return [msgspec.json.decode(text, type=ServiceChange) for (text,) in found]

    def batch_of(self, fingerprint: str) -> StoredBatch | None:
        """Return the batch that had exactly these rows, if there was one."""
        found = self._batches("WHERE fingerprint = ?", fingerprint)
        return found[0] if found else None

    def batches(self) -> list[StoredBatch]:
        """All batches, in their order."""
        return self._batches()

    def _batches(self, where: str = "", *values: str) -> list[StoredBatch]:
        query = f"SELECT number, name, added, counts, evidence, levels, drift FROM batches {where} ORDER BY number"
        with self._reading():
            return [
                StoredBatch(number, name, added, *map(msgspec.json.decode, texts))
                for number, name, added, *texts in self._connection.execute(query, values)
            ]

    # ---- writing, within a transaction ----

    def put_model(self, checksum: str, name: str, batch: int, content: bytes | None = None) -> None:
        """Let another model file belong to the state from now on."""
        values = (checksum, name, batch, content)
        self._connection.execute("INSERT INTO models (checksum, name, batch, content) VALUES (?, ?, ?, ?)", values)

    def put_batch(self, monitor: Monitor, update: Update, fingerprint: str) -> None:
        """Store a batch with all that is known after it."""
        counts = {name: value for name, value in update.to_dict().items() if name != "notices"}
        tables = [plain(table.to_dict("records")) for table in (monitor.table(), monitor.levels(), monitor.drift())]
        texts = [_as_json(value) for value in (counts, *tables)]
        added = datetime.now(UTC).isoformat(timespec="seconds")
        row = (update.batch, update.name, fingerprint, added, *texts)
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._put_plain("notices", update.batch, [notice.to_dict() for notice in update.notices])
        self.put_state(monitor)

    def put_state(self, monitor: Monitor) -> None:
        """Store what the monitor knows."""
        values, arrays = monitor.to_state()
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        row = (_as_json(values), buffer.getvalue())
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", row)

    def put_service(self, batch: int, changes: list[ServiceChange]) -> None:
        """Store changes of who serves whom."""
        self._put_plain("service", batch, [change.to_dict() for change in changes])

    def _put_plain(self, table: str, batch: int, entries: list[dict[str, Any]]) -> None:
        rows = [(batch, _as_json(entry)) for entry in entries]
        self._connection.executemany(f"INSERT INTO {table} (batch, plain) VALUES (?, ?)", rows)


def _as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()
