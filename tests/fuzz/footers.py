"""Parquet files whose footers and page headers say something else than they should."""

from typing import Any

import numpy as np

import parquet_bytes as pb

_NUMBERS = [0, 1, -1, 2, 3, 4, 7, 100, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]
_MOST_CHANGES = 4
Fields = list[list[Any]]


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some fields of the footer, or of the header of the first page; as it was if it is no Parquet file."""
    try:
        body, footer = pb.apart(content)
        if rng.random() < 0.7:
            _change_some(footer, rng)
            return pb.together(body, footer)
        reader = pb.Bytes(body, 4)
        header = reader.structure()
    except (IndexError, ValueError, RecursionError):
        return content
    _change_some(header, rng)
    changed = pb.structure(header)
    # The same length if possible, so that everything else is where the footer says.
    missing = reader.at - 4 - len(changed)
    if missing > 6:
        changed = pb.structure([*header, [300, pb.TEXT, b"x" * (missing - 5)]])
    return pb.together(body[:4] + changed + body[reader.at :], footer)


def _change_some(fields: Fields, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(1, _MOST_CHANGES)):
        inside = _structures(fields)
        _change(inside[rng.integers(len(inside))], rng)


def _structures(fields: Fields) -> list[Fields]:
    """All structures within one, itself included; empty ones have nothing to change."""
    found = [fields]
    for _, kind, value in fields:
        if kind == pb.STRUCTURE and value:
            found += _structures(value)
        elif kind == pb.LIST and value[0] == pb.STRUCTURE:
            for one in value[1]:
                found += _structures(one)
    return found


def _change(fields: Fields, rng: np.random.Generator) -> None:
    if not fields:
        fields.append([1, pb.WHOLE, 1])
    at = int(rng.integers(len(fields)))
    number, kind, value = fields[at]
    way = rng.integers(8)
    if way == 0:
        del fields[at]
    elif way == 1:
        fields.insert(at, [number, kind, value])
    elif way == 2:
        fields[at][0] = int(rng.choice([0, 1, 5, 300, 2**15 - 1, number + 2**16]))
    elif way == 3 and kind in (pb.WHOLE, pb.LONG):
        fields[at][1] = pb.LONG if kind == pb.WHOLE else pb.WHOLE
    elif way == 4 and kind == pb.LIST:
        inside, values = value
        fields[at][2] = (inside, [values * int(rng.choice([2, 50])), values[:-1], values[::-1]][rng.integers(3)])
    elif kind == pb.TEXT:
        fields[at][2] = bytes(rng.permutation(np.frombuffer(value + b"x", np.uint8)).tobytes())
    elif isinstance(value, int):
        fields[at][2] = [*_NUMBERS, value + 1, value * 2][rng.integers(len(_NUMBERS) + 2)]
        if kind == pb.BYTE:
            fields[at][2] %= 256
