"""Changed and crafted model files."""

import json
import pickle
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dafh
from command_line import people
from command_line import run as run_command
from dafh import Monitor
from dafh.exceptions import InputError
from dafh.sql import to_sql
from fuzz.cases import Case, Kind, refused, without_parts
from fuzz.commands import run
from model_files import SVC_TYPES, Parts, models

_VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 999, -(2**63), 2**63, 2**64 - 1, 10**12, 0.5, -1e300, 1e-300, 1e150, "", "x",
    "kind", "\U0001f600", "posix.system", "n" * 3000, [], {}, [[]], [0, 0], {"array": 0}, {"kind": "foreign"},
    {"kind": "pipeline", "steps": []}, "number", "category", "date %Y", "date ISO8601", "flag", [None], [""],
    {"": None},
    "\0", "a\nb", "pooled", "error", "cost", [["a", 1]], {"a": {"b": []}},
]  # fmt: skip
_CELLS = [0.0, 1.0, -1.0, 2.0**31, -(2.0**63), "nan", "inf", "-inf", 1e308, 5e-324]
_ENTRIES = ["_in_fit", "n_jobs", "memory", "kind", "settings", "schema", "reference", "fingerprints", "guard", "worth"]
_BYTES = list(b'0123456789-.eE"[]{},:\\ntf \xff')
_OF_COMMANDS = "by command"
_OTHER_COLUMNS = re.compile(
    r"^(The feature names should match|X has \d+ features|sensitive_features has no column|Columns seen in fit|"
    r"Column .* held .* in fit)"
)


def prepare(folder: Path) -> None:
    """Write one valid file of each kind of model, with rows that it can be asked about."""
    rows = {}
    for name, (model, arguments) in models().items():
        dafh.save(model, folder / f"{name}.dafh", trusted=SVC_TYPES)
        rows[name] = arguments
    (folder / "rows.pickle").write_bytes(pickle.dumps(rows))  # Written and read by this program alone.
    prepare_commands(folder)


def prepare_commands(folder: Path) -> None:
    """Write the files that commands make, with a card that says how tables are read."""
    people(300).to_csv(folder / "people.csv", index=False)
    options = ["--target", "hired", "--sensitive", "sex", "--protect", "sex", "--groups", "2", "--by", "rules"]
    for number, more in enumerate([[], ["--incumbent-score", "age", "--incumbent-threshold", "40"]]):
        out = folder / f"{_OF_COMMANDS} {number}.dafh"
        result = run_command("fit", folder / "people.csv", *options, *more, "--out", out)
        assert result.exit_code == 0, result.output


_BASES = [
    "dafh", "tabular", "points", "network on points", "groups by network", "scorecard", "incumbent", "boosting",
    "pipeline",
    "network", "tree", "combinations", "clusters", "random", "foreign", *[f"{_OF_COMMANDS} {i % 2}" for i in range(6)],
]  # fmt: skip


def draw(rng: np.random.Generator) -> Case:
    """Draw a base and changes of it. Places are drawn as fractions, because what is there is known only later."""
    base = _BASES[rng.integers(len(_BASES))]
    action = rng.integers(10)
    if action == 0:
        return {
            "base": base,
            "changes": [["bytes", int(rng.integers(5)), rng.random(), rng.integers(256, size=20).tolist()]],
        }
    changes: list[list[Any]] = []
    for _ in range(rng.integers(1, 4)):
        if action <= 6:
            part = str(rng.choice(["model", "model", "model", "table", "names", "card", "card"]))
            value = _VALUES[rng.integers(len(_VALUES))]
            changes.append(
                ["value", part, int(rng.integers(8)), rng.random(), rng.random(), value, str(rng.choice(_ENTRIES))]
            )
        elif action <= 8:
            changes.append(
                ["cell", rng.random(), rng.random(), int(rng.integers(256)), _CELLS[rng.integers(len(_CELLS))]]
            )
        else:
            changes.append(["text", rng.random(), int(rng.choice(_BYTES))])
    return {"base": base, "changes": changes, "use": int(rng.integers(40))}


# ---- changes ----


def changed_file(case: Case, folder: Path, target: Path) -> None:
    """Write the changed file, with a checksum that fits unless its bytes are changed."""
    path = folder / f"{case['base']}.dafh"
    parts = Parts(path)
    description = None
    for what, *about in case["changes"]:
        if what == "bytes":
            target.write_bytes(_changed_bytes(path.read_bytes(), *about))
            return
        if what == "value":
            _change_value(parts, *about)
        elif what == "cell":
            _change_cell(parts, *about)
        else:
            description = _change_text(parts, *about)
    parts.write(target, description=description)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a description, with its keys or positions."""
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from _places(node[key])


def _change_value(parts: Parts, part: str, action: int, at: float, to: float, value: Any, entry: str) -> None:
    """Replace, remove, double, swap or count on values of the description, of its tables or of the card."""
    found = list(_places(getattr(parts, part)))
    if not found:
        return
    (node, key), (other, place) = (found[int(share * len(found))] for share in (at, to))
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node, list):
        node.insert(key, _copy(node[key]))
    elif action == 2:
        node[key], other[place] = _copy([other[place], node[key]])
    elif action == 3 and isinstance(node[key], int | float):
        node[key] = node[key] + int(7 * to) - 3
    elif action == 4 and isinstance(node, dict):
        node[entry] = _copy(node[key])
    elif action == 5 and isinstance(node[key], list | dict):
        node[key] = type(node[key])()
    else:
        node[key] = value


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _change_cell(parts: Parts, which: float, at: float, byte: int, cell: Any) -> None:
    """Set a cell of an array to something odd, or a byte of it to anything."""
    if not parts.table:
        return
    number = int(which * len(parts.table))
    array = parts.array(number)
    if not array.size:
        return
    if byte % 2:
        array.flat[int(at * array.size)] = np.array(float(cell)).astype(array.dtype)
    else:
        array.reshape(-1).view(np.uint8)[int(at * array.nbytes)] = byte
    parts.set_array(number, array)


def _change_text(parts: Parts, at: float, byte: int) -> bytes:
    text = bytearray(json.dumps({"arrays": parts.table, "column_names": parts.names, "model": parts.model}).encode())
    text[int(at * len(text))] = byte
    return bytes(text)


def _changed_bytes(content: bytes, action: int, share: float, noise: list[int]) -> bytes:
    at = int(share * len(content))
    return [
        content[:at] + bytes([content[at] ^ (1 << noise[0] % 8)]) + content[at + 1 :],
        content[:at],
        content[:at] + bytes(noise) + content[at:],
        content[:at] + content[at + len(noise) :],
        content[:at] + content[at : at + len(noise)] + content[at:],
    ][action]


# ---- running ----


def run_case(case: Case, folder: Path) -> str:
    """Read the file, and use it in every way that a model is used."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        target = place / "changed.dafh"
        changed_file(case, folder, target)
        by_command = case["base"].startswith(_OF_COMMANDS)
        found = run("show", target)
        if by_command and found == "accepted":
            return _use_by_commands(target, folder / "people.csv", place, case.get("use", 0))
        try:
            model = dafh.load(target, trusted=SVC_TYPES)
        except InputError as error:
            return refused(error)
        rows = pickle.loads((folder / "rows.pickle").read_bytes()).get(case["base"])
        if rows is not None:
            try:
                use(model, rows)
            except ValueError as error:  # A changed model may ask for columns that these rows do not have.
                if not _OTHER_COLUMNS.match(str(error)):
                    raise
        return "accepted"


def _use_by_commands(model: Path, data: Path, place: Path, use_as: int) -> str:
    """Score with a model file, and do one more thing with it; its card says how tables are read."""
    found = run("predict", model, data, "--out", place / "out.csv")
    commands = {
        0: ["report", model, data, "--out", place / "page.html", "--seeds", "0"],
        1: ["export", model, "--to", "sql", "--out", place / "model.sql"],
        2: ["watch", model, data, "--state", place / "state.db"],
        3: ["explain", model, data],
        4: ["audit", model, data],
    }
    run(*commands[0 if use_as == 0 else 1 + use_as % 4])
    return found


def use(model: Any, rows: tuple[Any, ...]) -> None:
    """Ask a model everything."""
    for method in ("predict", "predict_proba", "predict_group"):
        if hasattr(model, method):
            assert len(getattr(model, method)(*rows)) == 20
    if len(rows) == 1 and hasattr(model, "predict_all"):
        model.predict_all(*rows)
    repr(model)
    for name in ("guard_report_", "rules_", "pooled_"):
        str(getattr(model, name, None))
    if hasattr(model, "predict_group"):
        attributes = {"sensitive_features": rows[1]} if len(rows) > 1 else {}
        try:
            dafh.explain(model, rows[0], **attributes)
            Monitor(model).update(rows[0], model.predict(*rows), **attributes)
            to_sql(model, "sqlite")
        except InputError as error:
            refused(error)


def smaller(case: Case) -> Iterator[Case]:
    """Leave out changes."""
    for changes in without_parts(case["changes"]):
        if changes:
            yield case | {"changes": changes}


MODELS = Kind("models", draw, run_case, smaller, prepare)
