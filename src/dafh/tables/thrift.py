"""Thrift's compact protocol, in which a Parquet file says what it holds: read strictly, and written.

Two readers of the same bytes may see different files: one takes the last of two equal fields and one the first, one
cuts a number that is too large and one does not. What could be read in two ways is therefore refused here.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from typing import Any

BOOL, BYTE, SHORT, WHOLE, LONG, TEXT = 1, 3, 4, 5, 6, 8
"""Kinds of values, by the numbers that the protocol has for them; bytes are a text."""
_FALSE, _DOUBLE, _LIST, _SET, _MAP, _STRUCTURE = 2, 7, 9, 10, 11, 12
_BITS = {BYTE: 8, SHORT: 16, WHOLE: 32, LONG: 64}
_DEEPEST = 16

Shape = Mapping[int, Any]
"""Kinds of the fields of a structure by their numbers: a kind, the shape of a structure, or a list of one of these."""


class DamagedError(ValueError):
    """The bytes are not what they should be."""


class UnfinishedError(DamagedError):
    """The bytes end within the structure."""


def read(content: bytes, shape: Shape, most_values: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure that are in its shape, and the number of bytes it takes.

    Parameters
    ----------
    content : bytes
        Begins with the structure.
    shape : mapping
        Fields that are not in it are skipped.
    most_values : int
        How many values there may be in all, skipped ones included: each takes longer to read than a byte does.
    """
    reader = _Reader(content, most_values)
    try:
        return reader.structure(shape, 0), reader.at
    except IndexError:
        raise UnfinishedError("the bytes end within a structure") from None


def unsigned(content: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it, and where it ends."""
    value = shift = 0
    while shift < 70:
        byte = content[at]
        at += 1
        if byte < 128:
            return value | byte << shift, at
        value |= (byte & 127) << shift
        shift += 7
    raise DamagedError("a number without end")


def written(fields: Mapping[int, Any], shape: Shape) -> bytes:
    """Return the bytes of a structure."""
    content = bytearray()
    _write_structure(content, fields, shape)
    return bytes(content)


class _Reader:
    def __init__(self, content: bytes, most_values: int) -> None:
        self._content, self._left = content, most_values
        self.at = 0

    def structure(self, shape: Shape, depth: int) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise DamagedError("structures within structures without end")
        fields: dict[int, Any] = {}
        seen = set()
        number = 0
        content = self._content
        # Most of the time goes into this loop and into `unsigned`: both read a byte without a call.
        while first := content[self.at]:
            self.at += 1
            step, kind = first >> 4, first & 15
            number = number + step if step else self._whole(SHORT)
            if number < 1 or number in seen:
                raise DamagedError("a field twice, or without a number")
            seen.add(number)
            expected = shape.get(number)
            if expected is None:
                self._skip(kind, depth)
            elif kind in (BOOL, _FALSE) and expected == BOOL:  # Their kind is their value.
                self._count()
                fields[number] = kind == BOOL
            elif kind != _kind(expected):
                raise DamagedError("a field of another kind")
            else:
                fields[number] = self._value(expected, depth)
        self.at += 1
        return fields

    def _value(self, expected: Any, depth: int) -> Any:
        self._count()
        if expected == TEXT:
            return self._bytes(self._unsigned())
        if isinstance(expected, int):
            return self._whole(expected)
        if isinstance(expected, list):
            n_values, kind = self._list()
            if n_values and kind != _kind(expected[0]):
                raise DamagedError("a list of another kind")
            return [self._value(expected[0], depth) for _ in range(n_values)]
        return self.structure(expected, depth + 1)

    def _skip(self, kind: int, depth: int) -> None:
        self._count()
        if kind == BYTE:
            self._byte()
        elif kind in _BITS:
            self._unsigned()
        elif kind == TEXT:
            self._bytes(self._unsigned())
        elif kind == _DOUBLE:
            self._bytes(8)
        elif kind == _STRUCTURE:
            self.structure({}, depth + 1)
        elif kind in (_LIST, _SET):
            n_values, kind = self._list()
            self._skip_all(repeat(kind, n_values), depth)
        elif kind == _MAP:
            if n_values := self._unsigned():
                kinds = self._byte()
                self._skip_all(chain.from_iterable(repeat((kinds >> 4, kinds & 15), n_values)), depth)
        elif kind not in (BOOL, _FALSE):
            raise DamagedError("no such kind")

    def _skip_all(self, kinds: Iterable[int], depth: int) -> None:
        if depth > _DEEPEST:
            raise DamagedError("lists within lists without end")
        for kind in kinds:
            # Within a list, true and false take a byte each.
            self._skip(BYTE if kind in (BOOL, _FALSE) else kind, depth + 1)

    def _list(self) -> tuple[int, int]:
        first = self._byte()
        return self._unsigned() if first >> 4 == 15 else first >> 4, first & 15

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise DamagedError("too many values")

    def _whole(self, kind: int) -> int:
        if kind == BYTE:
            value = self._byte()
            return value - 256 if value > 127 else value
        value = self._unsigned()
        if value >> _BITS[kind]:
            raise DamagedError("a number that is too large for its kind")
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        value, self.at = unsigned(self._content, self.at)
        return value

    def _bytes(self, length: int) -> bytes:
        self.at += length
        if self.at > len(self._content):
            raise IndexError
        return self._content[self.at - length : self.at]

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]


def _kind(expected: Any) -> int:
    if isinstance(expected, int):
        return expected
    return _LIST if isinstance(expected, list) else _STRUCTURE


def _write_structure(content: bytearray, fields: Mapping[int, Any], shape: Shape) -> None:
    last = 0
    for number in sorted(fields):
        value, expected = fields[number], shape[number]
        kind = (BOOL if value else _FALSE) if expected == BOOL else _kind(expected)
        # No structure of Parquet has a gap of more than 15 numbers, beyond which a field begins in another way.
        content.append((number - last) << 4 | kind)
        last = number
        if expected != BOOL:
            _write_value(content, value, expected)
    content.append(0)


def _write_value(content: bytearray, value: Any, expected: Any) -> None:
    if expected == TEXT:
        _write_unsigned(content, len(value))
        content += value
    elif expected == BYTE:
        content.append(value & 255)
    elif isinstance(expected, int):
        _write_unsigned(content, value << 1 if value >= 0 else ~value << 1 | 1)
    elif isinstance(expected, list):
        content.append(15 << 4 | _kind(expected[0]))
        _write_unsigned(content, len(value))
        for one in value:
            _write_value(content, one, expected[0])
    else:
        _write_structure(content, value, expected)


def _write_unsigned(content: bytearray, value: int) -> None:
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    content.append(value)
