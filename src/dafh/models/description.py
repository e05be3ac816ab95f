"""From objects to a description of plain values and back, by kinds that have names of our own.

A description is a tree of JSON objects. One with an entry ``kind`` stands for a part of the model, and `Kind` says how
it is written and built. Reading never looks a class up by name: it calls the `read` of the kind, which asks for each
entry by name and type (`Fields`) and builds the object itself. Entries that nobody asks for are refused, so that a file
cannot set an attribute that we do not know of.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dafh.models.container import Arrays, ArrayWriter, Json, MalformedError
from dafh.text import clipped

LONGEST_TEXT = 2**18
"""Letters of a name, a label or a category. Tables do hold documents; whatever repeats a text bounds the sum."""
MOST_COLUMNS = 100_000
DEEPEST_PART = 8
"""A pipeline, its model, the pooled pipeline of that and a classifier are four."""
LARGEST_FLOAT = 1e150
"""Numbers are at most this large: the product of two is still finite, and no prediction is lost to overflow."""

Role = Literal["classifier", "transformer", "partition", "unfitted"]
"""What a part is used as; an unfitted one is a parameter from which copies are made."""


@dataclass(frozen=True)
class Kind:
    """A kind of part: its name in files, the classes that are written as it, and both directions."""

    name: str
    role: Role
    types: tuple[type, ...]
    """Exactly these: a subclass may predict in another way."""
    write: "Callable[..., dict[str, Json]]"
    """Of an object and a `Writer`. Raises `NotPlainError` for an object that the description cannot hold."""
    read: "Callable[[Fields], object]"


class NotPlainError(ValueError):
    """An object holds something that a description has no words for."""


class Writer:
    """Write parts and collect their arrays."""

    def __init__(self, kinds: Iterable[Kind], write_foreign: Callable[[object, "Writer"], dict[str, Json]]) -> None:
        self.arrays = ArrayWriter()
        self.names: list[list[str]] = []
        self._kinds = {(kind.role, own): kind for kind in kinds for own in kind.types}
        self._write_foreign = write_foreign

    def part(self, value: object, role: Role) -> Json:
        """Describe a part of the model; what is of no kind of ours becomes a foreign part."""
        kind = self._kinds.get((role, type(value)))
        if kind is not None:
            before = len(self.arrays)
            try:
                return {"kind": kind.name, **kind.write(value, self)}
            except NotPlainError:
                if type(value).__module__.startswith("dafh."):
                    raise  # As a foreign part of our own classes it would break when one of them moves.
                self.arrays.forget_from(before)
        return {"kind": "foreign", **self._write_foreign(value, self)}

    def column_names(self, names: list[str]) -> Json:
        """Store names of columns, and return their number.

        All classifiers of a model take the same columns; with their names in each, they would be most of the file.
        """
        if names not in self.names:
            self.names.append(names)
        return self.names.index(names)

    def array(self, values: object) -> Json:
        """Store an array and return its number."""
        return self.arrays.add(np.asarray(values))


class Reader:
    """Build parts from their description."""

    def __init__(
        self, kinds: Iterable[Kind], arrays: Arrays, names: Json, read_foreign: "Callable[[Fields, Role], object]"
    ) -> None:
        self.arrays = arrays
        self.names = _name_lists(names)
        self.date_formats: set[str] = set()
        """Formats of dates that were found so far."""
        self._kinds = {(kind.role, kind.name): kind for kind in kinds}
        self._read_foreign = read_foreign
        self._depth = 0

    def part(self, value: Json, role: Role) -> Any:
        """Build a part that must have this role."""
        self._depth += 1
        # A model asks its pooled classifier twice. In a chain of models each of which is the pooled classifier of the
        # next, a single prediction would take 2 ** depth calls.
        if self._depth > DEEPEST_PART:
            raise MalformedError("its parts are nested too deeply")
        fields = Fields(value, f"a {role}", self)
        name = fields.text("kind")
        if name == "foreign":
            found = self._read_foreign(fields, role)
        elif (role, name) in self._kinds:
            fields.where = f"the {role} {name!r}"
            found = self._kinds[role, name].read(fields)
        else:
            raise MalformedError(f"{clipped(name, 40)!r} is not a kind of {role} that this dafh knows")
        fields.close()
        self._depth -= 1
        return found


def _name_lists(value: Json) -> list[NDArray[np.object_]]:
    """Check lists of names of columns; whoever refers to one gets the same array, so that references cost nothing."""
    found = []
    for names in value if isinstance(value, list) else [None]:
        texts = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        if not isinstance(names, list) or len(texts) < len(names) or len(set(texts)) < len(texts):
            raise MalformedError("its names of columns are malformed")
        found.append(np.array([*texts, None], dtype=object)[:-1])  # Without None, one text would become letters.
    return found


class Fields:
    """Entries of one JSON object, each asked for by name and type; whoever is done calls `close`."""

    def __init__(self, value: Json, where: str, reader: Reader) -> None:
        if not isinstance(value, dict):
            raise MalformedError(f"{where} is missing")
        self.where = where
        self.reader = reader
        self._left = dict(value)

    def take(self, name: str) -> Json:
        """Return an entry as it stands in the file."""
        if name not in self._left:
            raise MalformedError(f"{self.where} lacks the entry {name!r}")
        return self._left.pop(name)

    def refuse(self, name: str, reason: str = "is malformed") -> MalformedError:
        """Return the error that names an entry."""
        return MalformedError(f"the entry {name!r} of {self.where} {reason}")

    def close(self) -> None:
        """Refuse entries that nobody asked for."""
        if self._left:
            raise MalformedError(f"{self.where} has an unknown entry {clipped(next(iter(self._left)), 40)!r}")

    def has(self, name: str) -> bool:
        """Whether an entry is there and not null; a null is thereby done with."""
        if self._left.get(name, 0) is None:
            del self._left[name]
        return name in self._left

    # ---- plain values ----

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self.refuse(name)
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        """Return a whole number between two, both included."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(name, "is out of range")
        return value

    def number(self, name: str, low: float = -LARGEST_FLOAT, high: float = LARGEST_FLOAT) -> float:
        """Return a number between two, both included."""
        value = self.take(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise self.refuse(name, "is out of range")
        return float(value)

    def text(self, name: str) -> str:
        """Return a short text."""
        value = self.take(name)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise self.refuse(name)
        return value

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """Return one of a few words."""
        value = self.text(name)
        if value not in allowed:
            raise self.refuse(name)
        return value

    def items(self, name: str, most: int = MOST_COLUMNS) -> list[Json]:
        """Return a list of anything."""
        value = self.take(name)
        if not isinstance(value, list) or len(value) > most:
            raise self.refuse(name)
        return value

    def texts(self, name: str, length: int | None = None) -> list[str]:
        """Return a list of short texts."""
        values = self.items(name)
        found = [value for value in values if isinstance(value, str) and len(value) <= LONGEST_TEXT]
        if len(found) != len(values) or (length is not None and len(found) != length):
            raise self.refuse(name)
        return found

    # ---- parts ----

    def fields(self, name: str) -> "Fields":
        """Return the entries of an object that is no part of its own."""
        return Fields(self.take(name), f"{name!r} in {self.where}", self.reader)

    def part(self, name: str, role: Role) -> Any:
        """Build a part."""
        return self.reader.part(self.take(name), role)

    def parts(self, name: str, role: Role, most: int = MOST_COLUMNS) -> list[Any]:
        """Build a list of parts."""
        return [self.reader.part(value, role) for value in self.items(name, most)]

    def floats(self, name: str, *shape: int | None, most: float = LARGEST_FLOAT) -> NDArray[Any]:
        """Return an array of finite floating point numbers; None in the shape is any size."""
        found = self._array(name, "f", shape)
        # As a Python float: compared with an array in single precision, the limit itself would overflow.
        if np.isnan(found).any() or float(np.abs(found).max(initial=0)) > most:
            raise self.refuse(name, "holds numbers that are not finite")
        return found

    def wholes(self, name: str, *shape: int | None, least: int, most: int) -> NDArray[np.int64]:
        """Return an array of whole numbers between two, both included."""
        found = self._array(name, "i", shape)
        if not ((found >= least) & (found <= most)).all():
            raise self.refuse(name, "points outside its range")
        return found

    def flags(self, name: str, *shape: int | None) -> NDArray[np.bool_]:
        """Return an array of truth values."""
        return self._array(name, "b", shape)

    def blob(self, name: str) -> bytes:
        """Return bytes."""
        return self._array(name, "u", (None,)).tobytes()

    def any_array(self, name: str) -> NDArray[Any]:
        """Return a list of numbers or truth values, whatever they are."""
        return self._array(name, "fib", (None,))

    def _array(self, name: str, kinds: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        found = self.reader.arrays.take(self.take(name))
        fits = len(found.shape) == len(shape) and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
        if found.dtype.kind not in kinds or not fits:
            raise self.refuse(name, "does not fit the rest of the model")
        return found
