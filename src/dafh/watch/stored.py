"""Checks of a state file, which may be damaged or forged: what is in it is looked at before anything relies on it."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.evaluation.losses import LOSS_NAMES
from dafh.exceptions import InputError
from dafh.tables.values import LARGEST_NUMBER
from dafh.text import clipped

LONGEST_VALUE = 2**28
"""Bytes of one value of the database, such as all arrays of a monitor."""
_LARGEST_COUNT = 10**15
_NOTHING = type(None)
_Types = tuple[type, ...]
_TEXT: _Types = (str,)
_FLAG: _Types = (bool,)
_WHOLE: _Types = (int,)
_NUMBER: _Types = (int, float, _NOTHING)
"""What JSON has no word for is null."""
NOTICE: dict[str, _Types] = {
    "kind": _TEXT, "group": (int, _NOTHING), "part": _TEXT, "loss": (str, _NOTHING), "row": _WHOLE, "batch": _WHOLE,
    "onset": (int, _NOTHING), "gain": _NUMBER, "in_service": _FLAG, "sentence": _TEXT,
}  # fmt: skip
CHANGE: dict[str, _Types] = {
    "group": _WHOLE, "before": _TEXT, "after": _TEXT, "row": _WHOLE, "batch": _WHOLE, "reason": _TEXT,
    "sentence": _TEXT,
}  # fmt: skip
COUNTS: dict[str, _Types] = {
    "batch": _WHOLE, "name": _TEXT, "n_rows": _WHOLE, "n_labelled": _WHOLE, "n_late": _WHOLE, "n_repeated": _WHOLE,
    "n_waiting": _WHOLE, "n_left_out": _WHOLE,
}  # fmt: skip
QUESTION: dict[str, _Types] = {
    "group": _WHOLE, "part": _TEXT, "loss": _TEXT, "rows": _WHOLE, "own_worse": _WHOLE, "own_better": _WHOLE,
    "weight": (int, float), "own_loss": _NUMBER, "pooled_loss": _NUMBER, "gain": _NUMBER, "low": (int, float),
    "high": (int, float), "harm_evidence": _NUMBER, "harm_needed": _NUMBER, "benefit_evidence": _NUMBER,
    "change_evidence": _NUMBER, "in_service": _FLAG, "alarm_row": _WHOLE,
}  # fmt: skip
SHARE: dict[str, _Types] = {
    "name": _TEXT, "hits": _WHOLE, "rows": _WHOLE, "share": (int, float), "reference_share": (int, float),
    "evidence": _NUMBER, "drift_row": _WHOLE,
}  # fmt: skip
_STATE: dict[str, _Types] = {
    "settings": (dict,), "parts": (list,), "n_classes": _WHOLE, "divides_all": _FLAG, "n_batches": _WHOLE,
    "has_persons": (bool, _NOTHING), "reference": (dict, _NOTHING), "watched": (list,),
}  # fmt: skip


@contextmanager
def read_soundly(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with a state into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        RuntimeError,  # Of zip archives that are encrypted, too.
        TypeError,
        ValueError,
        sqlite3.Error,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(f"{path} cannot be used as a state: it is damaged ({clipped(error, 80)}).") from error


def read_json(text: object) -> Any:
    """Read JSON without numbers that JSON does not have, or that no count is as large as."""
    if not isinstance(text, str):
        raise TypeError("a value is not text")
    return json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_int)


def _refuse(word: str) -> None:
    raise ValueError(f"it holds {word}")


def _float(word: str) -> float:
    number = float(word)
    if not np.isfinite(number):
        raise ValueError("it holds a number that is too large")
    return number


def _int(word: str) -> int:
    if len(word) > 20:  # Hashes are whole numbers of up to 64 bits.
        raise ValueError("it holds a number that is too large")
    return int(word)


def checked(value: Any, expected: Mapping[str, _Types]) -> dict[str, Any]:
    """Return a record that has exactly these entries, of these types; whole numbers are counts, 0 or more."""
    if not isinstance(value, dict) or set(value) != set(expected):
        raise ValueError("a record has other entries than it should have")
    for name, types in expected.items():
        entry = value[name]
        if type(entry) not in types:
            raise TypeError(f"{name!r} is a {type(entry).__name__}")
        if type(entry) is int and bool not in types and float not in types and not 0 <= entry <= _LARGEST_COUNT:
            raise ValueError(f"{name!r} is out of range")
        # Evidence may grow to any size; all else is a mean, or a sum of weights.
        if type(entry) is float and not name.endswith(("evidence", "needed")) and abs(entry) > LARGEST_NUMBER:
            raise ValueError(f"{name!r} is out of range")
    if value.get("loss") not in (None, *LOSS_NAMES):
        raise ValueError("it holds an unknown loss")
    return dict(value)


def checked_list(value: Any, expected: Mapping[str, _Types]) -> list[dict[str, Any]]:
    """Return a list of such records, at least one."""
    if not isinstance(value, list) or not value:
        raise ValueError("a list is empty, or none")
    return [checked(entry, expected) for entry in value]


def checked_notice(value: Any) -> dict[str, Any]:
    """Return what a notice is made of, without its sentence, which is made anew."""
    found = checked(value, NOTICE)
    if found["kind"] not in ("harm", "change", "benefit", "drift"):
        raise ValueError("it holds an unknown kind of notice")
    about_group = found["kind"] != "drift"
    about_loss = found["kind"] in ("harm", "change")
    if about_group != (found["group"] is not None) or about_loss != (found["loss"] is not None):
        raise ValueError("a notice does not say what it is about")
    return {name: entry for name, entry in found.items() if name != "sentence"}


def checked_change(value: Any) -> dict[str, Any]:
    """Return what a change of service is made of, without its sentence."""
    return {name: entry for name, entry in checked(value, CHANGE).items() if name != "sentence"}


def checked_state(value: Any) -> dict[str, Any]:
    """Return the plain values of a monitor."""
    return checked(value, _STATE)


def read_arrays(content: object) -> dict[str, NDArray[Any]]:
    """Read arrays as `numpy.savez` writes them, not packed: so that none is larger than the file that brings it."""
    if not isinstance(content, bytes):
        raise TypeError("its arrays are missing")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if any(one.compress_type != zipfile.ZIP_STORED for one in members):
            raise ValueError("its arrays are packed")
        if sum(one.file_size for one in members) > len(content) or len(members) > 100:
            raise ValueError("its arrays are larger than the file")
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return dict(found.items())


def check_arrays(found: Mapping[str, NDArray[Any]], fresh: Mapping[str, NDArray[Any]]) -> None:
    """Compare arrays with those of a monitor that has seen nothing: same names, types and shapes, and no odd values.

    Rows that wait, and lists of what is known, may have any length.
    """
    if set(found) != set(fresh):
        raise ValueError("it has other arrays than it should have")
    n_waiting = len(found["pending_id"])
    for name, expected in fresh.items():
        array = found[name]
        shape: tuple[int, ...] = expected.shape
        if name.startswith("pending_"):
            shape = (n_waiting, *shape[1:])
        elif name in ("known_ids", "persons"):
            shape = (array.size,)
        if array.dtype != expected.dtype or array.shape != shape:
            raise ValueError(f"the array {name!r} does not fit the others")
        # Capital may have any size; all else counts rows, or lies between −1 and 1.
        counts = array.dtype.kind in "if" and not name.endswith("accounts")
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(f"the array {name!r} holds what is no number")
        if counts and array.size and not -1 <= array.min() <= array.max() <= _LARGEST_COUNT:
            raise ValueError(f"the array {name!r} is out of range")
        if array.dtype.kind == "i" and name != "pending_parts" and (array < 0).any():
            raise ValueError(f"the array {name!r} is out of range")
        if name.endswith("accounts") and (array < 0).any():
            raise ValueError(f"the array {name!r} is out of range")


def check_codes(arrays: Mapping[str, NDArray[Any]], n_groups: int, n_classes: int, n_parts: int) -> None:
    """Refuse rows that wait and belong to a group, a label or a subgroup that there is not."""
    limits = {
        "pending_group": n_groups + 1,  # Rows of no group are numbered after the groups.
        "pending_own": n_classes,
        "pending_pooled": n_classes,
        "pending_parts": n_parts,
    }
    if any(arrays[name].max(initial=-1) >= limit for name, limit in limits.items()):
        raise ValueError("rows that wait for labels belong to nothing")
    if "drift_hits" in arrays and (arrays["drift_hits"] > arrays["drift_seen"]).any():
        raise ValueError("it counts more rows than there were")
