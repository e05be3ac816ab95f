"""Parquet files taken apart and put together again, with whatever an attacker writes into them.

A structure is a list of fields, each a list of its number, its kind and its value, so that a field may stand there
twice, or out of place. A list is a pair of the kind of its values and the values.
"""

BOOL, FALSE, BYTE, WHOLE, LONG, DOUBLE, TEXT, LIST, STRUCTURE = 1, 2, 3, 5, 6, 7, 8, 9, 12


class Bytes:
    """Reads structures one after the other."""

    def __init__(self, content, at=0):
        self.content, self.at = content, at

    def take(self, length):
        self.at += length
        return self.content[self.at - length : self.at]

    def unsigned(self):
        value = shift = 0
        while (byte := self.take(1)[0]) > 127:
            value, shift = value | (byte & 127) << shift, shift + 7
        return value | byte << shift

    def signed(self):
        value = self.unsigned()
        return value // 2 if value % 2 == 0 else -(value + 1) // 2

    def structure(self):
        fields, number = [], 0
        while first := self.take(1)[0]:
            number = number + first // 16 if first // 16 else self.signed()
            fields.append([number, first % 16, self.value(first % 16)])
        return fields

    def value(self, kind):
        if kind in (BOOL, FALSE):
            return kind == BOOL
        if kind == BYTE:
            return self.take(1)[0]
        if kind == DOUBLE:
            return self.take(8)
        if kind == TEXT:
            return self.take(self.unsigned())
        if kind == STRUCTURE:
            return self.structure()
        if kind == LIST:
            first = self.take(1)[0]
            length = self.unsigned() if first // 16 == 15 else first // 16
            inside = first % 16
            return inside, [self.take(1)[0] if inside in (BOOL, FALSE) else self.value(inside) for _ in range(length)]
        return self.signed()


def unsigned(value):
    content = b""
    while value > 127:
        content += bytes([value % 128 + 128])
        value //= 128
    return content + bytes([value])


def signed(value):
    return unsigned(2 * value if value >= 0 else -2 * value - 1)


def structure(fields):
    content, last = b"", 0
    for number, kind, value in fields:
        step = number - last
        content += bytes([step * 16 + kind]) if 0 < step < 16 else bytes([kind]) + signed(number)
        content, last = content + one(kind, value), number
    return content + b"\0"


def one(kind, value):
    if kind in (BOOL, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind == DOUBLE:
        return value
    if kind == TEXT:
        return unsigned(len(value)) + value
    if kind == STRUCTURE:
        return structure(value)
    if kind == LIST:
        inside, values = value
        parts = (bytes([value]) if inside in (BOOL, FALSE) else one(inside, value) for value in values)
        return bytes([15 * 16 + inside]) + unsigned(len(values)) + b"".join(parts)
    return signed(value)


def field(fields, number):
    return next(field for field in fields if field[0] == number)


def apart(content):
    """Return the bytes before the footer of a file, and the fields of the footer."""
    length = int.from_bytes(content[-8:-4], "little")
    return content[: -8 - length], Bytes(content[-8 - length : -8]).structure()


def together(body, footer):
    """Return the bytes of a file."""
    end = structure(footer)
    return body + end + len(end).to_bytes(4, "little") + b"PAR1"


def groups(footer):
    return field(footer, 4)[2][1]


def chunks(footer):
    return [chunk for group in groups(footer) for chunk in field(group, 1)[2][1]]


def about(chunk):
    return field(chunk, 3)[2]
