"""A text file as pandas reads it, refused where a row has no end: a quotation mark that is never closed.

pandas takes everything up to the next quotation mark for one cell, and holds a row in memory whole.
"""

import io
import re
from typing import BinaryIO

# Where a reader of CSV may be: at the beginning of a cell, further on in it, within quotation marks, or after a
# quotation mark that was within them.
_START, _FURTHER, _QUOTED, _AFTER = range(4)
_BY_A_QUOTE = {_START: _QUOTED, _FURTHER: _FURTHER, _QUOTED: _AFTER, _AFTER: _QUOTED}
# An even number of quotation marks leads back to where it began: within marks it stands for half as many, and at the
# beginning of a cell it is one that is complete.
_ODD = re.compile('(?<!")"(?:"")*(?!")')
_ENDS = "\n\r"
_WINDOW = 2**12


class RowsOfText(io.TextIOWrapper):
    """Decoded text that fails on a row that is too long, before all of it is read.

    Parameters
    ----------
    stream : binary stream
    encoding : str
    delimiter : str
        One character.
    longest : int
        Letters of a row.
    """

    def __init__(self, stream: BinaryIO, encoding: str, delimiter: str, longest: int) -> None:
        super().__init__(stream, encoding, newline="")
        self._delimiter, self._longest = delimiter, longest
        # A mark after something else than a delimiter or a mark: it ends a cell, or is a letter of one without marks.
        self._certain = re.compile(f'[^" {re.escape(delimiter)}{_ENDS}] *"(?=[{re.escape(delimiter)}{_ENDS}])')
        self._state = _START
        self._length = 0
        """Letters since the row began."""
        self._marks = ""
        """Quotation marks at the end of what was read, of which more may follow: one if they are odd, else two."""

    def read(self, size: int | None = -1, /) -> str:
        """Read up to so many letters."""
        block = super().read(size)
        if '"' in block or self._marks:
            self._follow(self._marks + block)
        else:
            self._pass(block)
        if self._length > self._longest:
            raise OSError(
                f"one of its rows is longer than {self._longest:,} letters; a quotation mark may not be closed"
            )
        return block

    def _follow(self, block: str) -> None:
        """Follow the quotation marks; where one certainly ends a cell, what was before it does not matter."""
        complete = block.rstrip('"')
        n_marks = len(block) - len(complete)
        self._marks = '"' * (2 - n_marks % 2 if n_marks else 0)
        end = max(_last_end(complete), 0)
        # Most tables have such a mark near the end of a block, which spares the way through all of it.
        found = self._certain.search(complete, max(end - _WINDOW, 0), end + 1)
        if found:
            before = self._state, self._length
            self._state, self._length = _FURTHER, 0
            if self._follow_from(complete, found.end()):
                return
            self._state, self._length = before
        self._follow_from(complete, 0)

    def _follow_from(self, block: str, place: int) -> bool:
        """Go from one odd run of quotation marks to the next; say whether a row has ended."""
        ended = False
        for run in _ODD.finditer(block, place):
            ended |= self._pass(block[place : run.start()])
            self._state = _BY_A_QUOTE[self._state]
            place = run.end()
        return self._pass(block[place:]) or ended

    def _pass(self, text: str) -> bool:
        """Pass letters without an odd run of quotation marks; say whether a row has ended in them."""
        if not text:
            return False
        self._length += len(text)
        if self._state == _QUOTED:
            return False
        last = text.rstrip(" ")[-1:] if self._delimiter != " " else text[-1]
        if last in (self._delimiter, *_ENDS):
            self._state = _START
        elif last or self._state == _AFTER:
            self._state = _FURTHER
        end = _last_end(text)
        if end >= 0:
            self._length = len(text) - 1 - end
        return end >= 0


def _last_end(text: str) -> int:
    last = text.rfind("\n")
    return last if last >= 0 else text.rfind("\r")
