"""The bytes of a model file: where what stands, how large each part may be, and the checksum.

::

    dafh model <format> <SHA-256 of the rest>
    <bytes of the card> <bytes of the description> <bytes of the arrays>
    the card, JSON
    the description, JSON: a table of arrays, and the model
    the arrays, one after the other, little-endian

Nothing is compressed, so no part can be larger than the file that brings it: a model is a few hundred kilobytes, and
packing it would save little and open the door to files that unpack to gigabytes. An array's place follows from those
before it, so arrays cannot overlap; each may be used once. (safetensors does much the same with offsets in the file,
and would still leave the description, its limits and the checksum to us.)

The checksum finds damage, not forgery: whoever forges a file computes it anew. So everything is checked as if it came
from an attacker.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dafh.text import clipped

FORMAT = 3
"""Formats 1 and 2 were trees of classes, written before the first release; counting on keeps them recognisable."""
MAGIC = b"dafh model "
LARGEST_FILE = 2**30
LARGEST_TEXT = 2**23
"""Bytes of the card, and of the description."""
MOST_VALUES = 200_000
"""Values in either: three bytes of text, such as ``[],``, become a Python object of about a hundred."""
DEEPEST = 60
"""Levels of nesting; a pipeline in a pipeline in a group takes about ten."""
_HEADER = re.compile(rb"dafh model (\d{1,9}) ([0-9a-f]{64})\n(\d{1,12}) (\d{1,12}) (\d{1,12})\n")
_LONGEST_HEADER = 256
_DTYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "bool": "|u1", "bytes": "|u1"}
_MOST_DIMENSIONS = 3

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


class MalformedError(ValueError):
    """Why a file is refused, as the second half of a sentence."""


@dataclass(frozen=True)
class Content:
    """The parts of a model file; the texts are not parsed yet."""

    card: bytes
    description: bytes
    arrays: bytes

    def to_bytes(self) -> bytes:
        """Put the parts together, with the checksum in front."""
        lengths = f"{len(self.card)} {len(self.description)} {len(self.arrays)}\n".encode()
        rest = lengths + self.card + self.description + self.arrays
        return MAGIC + f"{FORMAT} {_checksum(rest)}\n".encode() + rest


def read_content(file: BinaryIO, size: int) -> Content:
    """Read the parts of a file of `size` bytes; lengths are compared with that before anything is read."""
    if not size:
        raise MalformedError("it is empty")
    head = file.read(_LONGEST_HEADER)
    if not head.startswith(MAGIC):
        raise MalformedError("it is not a dafh model file")
    _check_format(head)
    found = _HEADER.match(head)
    if found is None:
        raise MalformedError("its first two lines are malformed")
    lengths = [int(number) for number in found.groups()[2:]]
    if found.end() + sum(lengths) != size:
        raise MalformedError("checksum mismatch: it was cut short, or something was added")
    if size > LARGEST_FILE or max(lengths[:2]) > LARGEST_TEXT:
        raise MalformedError("it is too large for a model file")
    start = found.start(3)
    rest = head[start:] + file.read(size - len(head))
    if _checksum(rest).encode() != found[2]:
        raise MalformedError("checksum mismatch: its content has changed since it was written")
    at = np.cumsum([found.end() - start, *lengths])
    if len(rest) != at[-1]:
        raise MalformedError("it changed while it was read")
    return Content(*(rest[first:last] for first, last in pairwise(at)))


def _check_format(head: bytes) -> None:
    word = head[len(MAGIC) :].split(b" ")[0]
    number = int(word) if re.fullmatch(rb"\d{1,9}", word) else -1
    if number > FORMAT:
        raise MalformedError("it was written by a newer dafh: upgrade to read it")
    if number in (1, 2):
        raise MalformedError(f"format {number} is no longer read: fit and save the model again")
    if number != FORMAT:
        raise MalformedError("its first two lines are malformed")


def _checksum(rest: bytes) -> str:
    # The format is part of the sum, or a flipped bit in it would go unnoticed.
    return hashlib.sha256(b"%d " % FORMAT + rest).hexdigest()


# ---- texts ----

# An unclosed string is taken to the end of the text. With a closing quote required, a text of nothing but escaped
# quotes would be searched again from each of them.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)


def parse(text: bytes) -> Json:
    """Read JSON that does not take much memory or recursion: no key twice, and no number that JSON does not have."""
    # Two quotes for each value and two for its name; counted first, because finding the strings takes longer.
    if text.count(b'"') > 5 * MOST_VALUES:
        raise MalformedError("it holds too many values")
    marks = np.frombuffer(_STRINGS.sub(b"", text), np.uint8)
    opened = (marks == ord("[")) | (marks == ord("{"))
    if int(opened.sum()) + int((marks == ord(",")).sum()) > MOST_VALUES:
        raise MalformedError("it holds too many values")
    closed = (marks == ord("]")) | (marks == ord("}"))
    depth = np.cumsum(opened.astype(np.int8) - closed.astype(np.int8), dtype=np.int32)
    if depth.max(initial=0) > DEEPEST:
        raise MalformedError("it is nested too deeply")
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_float, parse_int=_int
        )
        json.dumps(value, ensure_ascii=False).encode()  # Lone surrogates, which cannot be printed.
    except MalformedError:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"a part of it is not JSON ({clipped(error, 80)})") from error
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError("an entry occurs twice")
    return found


def _no_number(word: str) -> float:
    raise MalformedError(f"it holds {word}")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise MalformedError("it holds a number that is too large")
    return number


def _int(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        raise MalformedError("it holds a number that is too large")
    return number


# ---- arrays ----


class ArrayWriter:
    """Collect arrays, each of which gets a number."""

    def __init__(self) -> None:
        self.table: list[Json] = []
        self._parts: list[bytes] = []

    def add(self, array: NDArray[np.generic]) -> int:
        """Append an array of numbers or truth values."""
        names = {"uint8": "bytes", "i": "int64", "u": "int64"}
        name = names.get(array.dtype.name) or names.get(array.dtype.kind, array.dtype.name)
        if name not in _DTYPES or not 1 <= array.ndim <= _MOST_DIMENSIONS:
            raise MalformedError(f"an array of type {array.dtype} and {array.ndim} dimensions cannot be stored")
        self.table.append([name, list(array.shape)])
        self._parts.append(np.ascontiguousarray(array, np.dtype(_DTYPES[name])).tobytes())
        return len(self.table) - 1

    def __len__(self) -> int:
        return len(self.table)

    def forget_from(self, number: int) -> None:
        """Drop the last arrays: the part they belong to is written in another way."""
        del self.table[number:], self._parts[number:]

    def to_bytes(self) -> bytes:
        """All arrays, one after the other."""
        return b"".join(self._parts)


class Arrays:
    """The arrays of a file. Their sizes are added up and compared with the bytes there are before any is made."""

    def __init__(self, table: Json, data: bytes) -> None:
        if not isinstance(table, list):
            raise MalformedError("its table of arrays is malformed")
        self._entries: list[tuple[str, tuple[int, ...], int]] = []
        end = 0
        for entry in table:
            name, shape = _checked_entry(entry)
            self._entries.append((name, shape, end))
            end += math.prod(shape) * np.dtype(_DTYPES[name]).itemsize
        if end != len(data):
            raise MalformedError(f"its arrays would take {end} bytes and {len(data)} are there")
        self._data = data
        self._left = set(range(len(self._entries)))

    def take(self, number: Json) -> NDArray[np.generic]:
        """Return an array, a copy in memory of its own; each is there once."""
        if not isinstance(number, int) or isinstance(number, bool) or number not in self._left:
            raise MalformedError("an array is missing, or used twice")
        self._left.remove(number)
        name, shape, start = self._entries[number]
        found = np.frombuffer(self._data, np.dtype(_DTYPES[name]), math.prod(shape), start).reshape(shape)
        if name == "bool":
            if found.max(initial=0) > 1:  # NumPy would take such a byte for both, true and false.
                raise MalformedError("a truth value is neither true nor false")
            return found.astype(np.bool_)
        return found.astype(found.dtype.newbyteorder("="))

    def check_all_taken(self) -> None:
        """Refuse arrays that nothing refers to."""
        if self._left:
            raise MalformedError("it holds an array that its model does not use")


def _checked_entry(entry: Json) -> tuple[str, tuple[int, ...]]:
    if not isinstance(entry, list) or len(entry) != 2:
        raise MalformedError("its table of arrays is malformed")
    name, shape = entry
    if not isinstance(name, str) or name not in _DTYPES:
        raise MalformedError(f"an array is of type {clipped(name, 30)}, which a model has no need of")
    if not isinstance(shape, list) or not 1 <= len(shape) <= _MOST_DIMENSIONS:
        raise MalformedError("the shape of an array is malformed")
    # Nothing but a list may be empty: (0, 10**9) takes no bytes, and code that sizes its memory by it does.
    least = 0 if len(shape) == 1 else 1
    sizes = [size for size in shape if isinstance(size, int) and not isinstance(size, bool) and size >= least]
    if len(sizes) != len(shape):
        raise MalformedError("the shape of an array is malformed")
    return name, tuple(sizes)
