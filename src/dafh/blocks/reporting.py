"""Blocks that say how long every pass over them takes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from dafh.blocks.base import Arrays, Block, Blocks, Result

PassReport = Callable[[str, float], None]
"""Called after a pass with what it went over, "rows" as they are or what was "kept" of them, and its seconds."""


class ReportedBlocks(Blocks[Block]):
    """Blocks whose passes are reported; so are those over what is kept of them."""

    def __init__(self, blocks: Blocks[Block], report: PassReport, what: str = "rows") -> None:
        self.blocks, self.report, self.what = blocks, report, what
        self.columns, self.n_rows = blocks.columns, blocks.n_rows

    def each(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        start = time.monotonic()
        yield from self.blocks.each(function)
        self.report(self.what, time.monotonic() - start)

    def total(self, function: Callable[[Block], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
        """Add up what a function makes of every block."""
        start = time.monotonic()
        found = self.blocks.total(function)
        self.report(self.what, time.monotonic() - start)
        return found

    def keep(self, function: Callable[[Block], Arrays]) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, kept near."""
        start = time.monotonic()
        kept = self.blocks.keep(function)
        self.report(self.what, time.monotonic() - start)
        return ReportedBlocks(kept, self.report, "kept")

    def close(self) -> None:
        """Let go of what is kept."""
        self.blocks.close()
