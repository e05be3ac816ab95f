"""Changed state files of the monitor."""

import io
import json
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from command_line import people
from command_line import run as run_command
from fuzz.cases import Case, Kind, without_parts
from fuzz.commands import run

_TEXTS = {
    "state": ["plain"], "batches": ["counts", "evidence", "drift"], "notices": ["plain"], "service": ["plain"],
}  # fmt: skip
_VALUES = [
    None, True, 0, 1, -1, 7, 10**12, 0.5, -1e300, "", "x", "\0", [], {}, [[]], {"a": 1}, "n" * 3000, 10**400, "harm",
    "error",
    "<script>alert(1)</script>",
]  # fmt: skip
_STATEMENTS = [
    "DROP TABLE notices",
    "DELETE FROM batches",
    "DELETE FROM state",
    "DELETE FROM models",
    "UPDATE state SET plain = '{}'",
    "UPDATE state SET plain = 'not json'",
    "UPDATE state SET plain = x'00ff'",
    "UPDATE state SET arrays = x'00ff'",
    "UPDATE state SET arrays = 'text'",
    "UPDATE batches SET hashes = x'00'",
    "UPDATE batches SET counts = '[' || counts",
    "UPDATE batches SET name = NULL",
    "UPDATE batches SET number = number * 1000000",
    "UPDATE batches SET added = 5",
    "UPDATE models SET checksum = 'x' || number",
    "UPDATE models SET content = x'00ff'",
    "UPDATE notices SET plain = '{}'",
    "ALTER TABLE batches RENAME COLUMN name TO other",
    "CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM state; END",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
    'INSERT INTO notices (batch, plain) VALUES (1, \'{"kind": "harm"}\')',
    "INSERT INTO service (batch, plain) VALUES (1, '[]')",
    "ALTER TABLE notices RENAME TO old;CREATE VIEW notices AS WITH RECURSIVE n(number) AS (SELECT 1 UNION ALL SELECT "
    "number + 1 FROM n) SELECT number, 1 AS batch, '{}' AS plain FROM n",
    "UPDATE state SET plain = '[' || hex(zeroblob(5000000)) || ']'",
]
_CELLS = [0.0, 1.0, -1.0, 2.0**40, "nan", "inf", "-inf", 1e308]


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in plain values, with its keys or positions."""
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from _places(node[key])


def prepare(folder: Path) -> None:
    """Fit a model, and watch it for two batches: the second one waits for labels in part."""
    people(300).to_csv(folder / "people.csv", index=False)
    options = ["--target", "hired", "--sensitive", "sex", "--groups", "2", "--by", "rules", "--guard", "none"]
    commands = [["fit", folder / "people.csv", *options, "--out", folder / "model.dafh"]]
    for number in range(3):
        rows = people(200, seed=number + 1)
        rows.loc[:30, "hired"] = None
        rows.to_csv(folder / f"{number}.csv", index=False)
    commands += [["watch", folder / "model.dafh", folder / f"{i}.csv", "--state", folder / "state.db"] for i in (0, 1)]
    for command in commands:
        result = run_command(*command)
        assert result.exit_code == 0, result.output


def draw(rng: np.random.Generator) -> Case:
    """Draw changes of the state that `prepare` has made."""
    changes: list[list[Any]] = []
    for _ in range(rng.integers(1, 3)):
        way = rng.integers(10)
        if way <= 4:
            table = str(rng.choice(list(_TEXTS)))
            column = str(rng.choice(_TEXTS[table]))
            value = _VALUES[rng.integers(len(_VALUES))]
            changes.append(["value", table, column, int(rng.integers(5)), rng.random(), value])
        elif way <= 6:
            cell = _CELLS[rng.integers(len(_CELLS))]
            changes.append(["array", int(rng.integers(6)), rng.random(), rng.random(), cell])
        elif way == 7:
            changes.append(["sql", str(rng.choice(_STATEMENTS))])
        else:
            changes.append(["bytes", int(rng.integers(4)), rng.random(), rng.integers(256, size=20).tolist()])
    return {"changes": changes, "report": bool(rng.random() < 0.3)}


def run_case(case: Case, folder: Path) -> str:
    """Change the state, and go on with it."""
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state.db"
        shutil.copy(folder / "state.db", state)
        for what, *about in case["changes"]:
            if what == "bytes":
                _change_bytes(state, *about)
            else:
                _change_content(state, what, about)
        if case["report"]:
            run("watch", "report", state, "--out", Path(name) / "page.html")
        return run("watch", folder / "model.dafh", folder / "2.csv", "--state", state)


def _change_content(state: Path, what: str, about: list[Any]) -> None:
    try:
        connection = sqlite3.connect(state)
        try:
            if what == "sql":
                for statement in about[0].split(";CREATE"):
                    connection.execute(statement if statement.startswith(about[0][:6]) else f"CREATE{statement}")
            elif what == "value":
                _change_value(connection, *about)
            else:
                _change_array(connection, *about)
            connection.commit()
        finally:
            connection.close()
    except sqlite3.Error:  # An earlier change has left nothing to change.
        return


def _change_value(connection: sqlite3.Connection, table: str, column: str, action: int, at: float, value: Any) -> None:
    rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    if not rows:
        return
    row, text = rows[int(at * len(rows))]
    try:
        whole = [json.loads(text)]
    except (TypeError, ValueError):
        return
    found = list(_places(whole))
    node, key = found[int(at * len(found))]
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node[key], int | float):
        node[key] = node[key] * 3 - 1
    elif action == 2 and isinstance(node, dict):
        node["more"] = value
    else:
        node[key] = value
    changed = json.dumps(whole[0]) if whole else "null"
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))


def _change_array(connection: sqlite3.Connection, action: int, which: float, at: float, cell: Any) -> None:
    (content,) = connection.execute("SELECT arrays FROM state").fetchone()
    try:
        with np.load(io.BytesIO(content)) as found:
            arrays = dict(found.items())
    except (TypeError, ValueError, OSError, EOFError, zipfile.BadZipFile):  # Damaged by an earlier change.
        return
    name = list(arrays)[int(which * len(arrays))]
    array = arrays[name]
    with np.errstate(all="ignore"):
        if action == 0:
            del arrays[name]
        elif action == 1:
            arrays[name] = array.reshape(-1)[:-1]
        elif action == 2:
            arrays[name] = array.astype(str)
        elif action == 3:
            arrays[name] = np.zeros(50_000_000, np.int8)
        elif array.size:
            array.reshape(-1)[int(at * array.size)] = np.array(float(cell)).astype(array.dtype)
    buffer = io.BytesIO()
    (np.savez_compressed if action == 3 else np.savez)(buffer, allow_pickle=False, **arrays)
    connection.execute("UPDATE state SET arrays = ?", (buffer.getvalue(),))


def _change_bytes(state: Path, action: int, share: float, noise: list[int]) -> None:
    content = state.read_bytes()
    at = int(share * len(content))
    state.write_bytes(
        [
            content[:at] + bytes(noise) + content[at + len(noise) :],
            content[:at],
            content[:at] + bytes(noise) + content[at:],
            content[:at] + bytes([content[at] ^ 255] if at < len(content) else b"") + content[at + 1 :],
        ][action]
    )


def smaller(case: Case) -> Iterator[Case]:
    """Leave out changes."""
    for changes in without_parts(case["changes"]):
        if changes:
            yield case | {"changes": changes}


STATES = Kind("states", draw, run_case, smaller, prepare)
