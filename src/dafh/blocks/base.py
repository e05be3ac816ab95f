"""The interface: what is asked of rows, wherever they are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Block = TypeVar("Block")
Result = TypeVar("Result")
Arrays = dict[str, NDArray[Any]]
"""What is kept of a block: arrays by name."""


class Blocks(ABC, Generic[Block]):
    """Rows in pieces, which a function can be applied to."""

    columns: tuple[str, ...] = ()
    """Names of the columns, where blocks are tables out of files or a cluster."""
    n_rows: int | None = None
    """Number of all rows, where it is known without a pass over them."""

    @abstractmethod
    def each(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""

    @abstractmethod
    def keep(self, function: Callable[[Block], Arrays]) -> "Blocks[Arrays]":
        """Blocks of what a function makes of every block, kept near: several passes over them cost little.

        Whoever calls this must call `close` on the result.
        """

    def through(
        self,
        function: Callable[[Block], Result],
        *,
        columns: tuple[str, ...] | None = None,
        n_rows: int | None = None,
    ) -> "Blocks[Result]":
        """Blocks of what a function makes of every block, made anew in every pass."""
        return _Through(self, function, self.columns if columns is None else columns, n_rows)

    def total(self, function: Callable[[Block], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
        """Add up what a function makes of every block."""
        return reduce(add, self.each(function))

    def close(self) -> None:
        """Let go of what is kept."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def add(one: tuple[NDArray[Any], ...], other: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Add up two results."""
    return tuple(np.add(a, b) for a, b in zip(one, other, strict=True))


class _Then(Generic[Block]):
    """One function after another; a class, because a cluster has to send it to its workers."""

    def __init__(self, first: Callable[[Block], Any], second: Callable[[Any], Any]) -> None:
        self.first, self.second = first, second

    def __call__(self, block: Block) -> Any:
        return self.second(self.first(block))


class _Through(Blocks[Any]):
    def __init__(
        self, blocks: Blocks[Any], function: Callable[[Any], Any], columns: tuple[str, ...], n_rows: int | None
    ) -> None:
        self.blocks, self.function = blocks, function
        self.columns, self.n_rows = columns, n_rows

    def each(self, function: Callable[[Any], Result]) -> Iterator[Result]:
        return self.blocks.each(_Then(self.function, function))

    def keep(self, function: Callable[[Any], Arrays]) -> Blocks[Arrays]:
        return self.blocks.keep(_Then(self.function, function))

    def total(self, function: Callable[[Any], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
        return self.blocks.total(_Then(self.function, function))

    def close(self) -> None:
        self.blocks.close()
