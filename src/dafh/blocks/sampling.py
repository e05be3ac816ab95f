"""Samples that depend on the values of rows alone, drawn from blocks of any kind.

A row is drawn if a number made of its values is small. Equal rows have equal numbers, and would be drawn together or
not at all; a table of a few categories may hold the same row a million times. Rows are therefore counted while they are
drawn, in a million buckets. Where buckets are too full, a further pass counts the rows in them kind by kind, and of
each kind a share of its number is drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Blocks
from dafh.tables.hashes import uniform

_BUCKET_BITS = 20
# A bucket is full if it holds eight times as many rows as it should, and so many at least: rows that are fewer than
# this are drawn together or not at all.
_FULL, _FULL_AT_LEAST = 8, 50
_SALT_OF_SAMPLE, _SALT_OF_PART, _SALT_OF_COPIES = 1, 2, 3
_COUNT, _HASH = "\0count", "\0hash"


class Keys(NamedTuple):
    """What decides which rows are drawn."""

    hashes: NDArray[np.uint64]
    places: NDArray[np.float64]
    """By which rows are divided into parts: numbers that look random, or times."""


KeysOf = Callable[[pd.DataFrame], Keys]


def random_places(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers from 0 to 1 by which rows are divided at random."""
    return uniform(hashes, _SALT_OF_PART)


def is_drawn_last(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Whether rows are in the share of all rows that is drawn last: a sample that leaves so many has none of them."""
    return uniform(hashes, _SALT_OF_SAMPLE) >= 1 - share


@dataclass(frozen=True, eq=False)
class Repeated:
    """Which rows are repeated often: those in full buckets."""

    full: NDArray[np.bool_] | None = None
    """By bucket; None where none is."""

    def holds(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether rows are in a full bucket."""
        return np.zeros(len(hashes), bool) if self.full is None else self.full[_buckets(hashes)]


@dataclass(frozen=True)
class Part:
    """Rows whose place lies between two limits; of rows that are repeated, a share of their number."""

    low: float = -np.inf
    high: float = np.inf
    size: float = 1.0
    """Share of all rows."""

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """Whether rows belong to the part."""
        return (self.low <= keys.places) & (keys.places < self.high)

    def weights(self, keys: Keys, repeated: Repeated) -> NDArray[np.float64]:
        """What each row counts in the part: 1, 0, or, where rows are repeated, the size of the part."""
        return np.where(repeated.holds(keys.hashes), self.size, self.holds(keys))


EVERYTHING = Part()


class Wanted(NamedTuple):
    """A part of the rows, and how many of them are to be drawn."""

    part: Part
    most: int


def count_rows(blocks: Blocks[pd.DataFrame]) -> int:
    """Number of rows; without a pass where it is known."""
    return sum(blocks.each(len)) if blocks.n_rows is None else blocks.n_rows


def draw_rows(
    blocks: Blocks[pd.DataFrame], keys: KeysOf, n_rows: int, wanted: Sequence[Wanted], *, each_for_itself: bool = True
) -> tuple[list[pd.DataFrame], Repeated]:
    """Draw rows of some parts, all rows of a part where there are no more than wanted.

    Parameters
    ----------
    blocks : Blocks
    keys : function of a block
    n_rows : int
        Number of all rows.
    wanted : sequence of Wanted
    each_for_itself : bool
        False if rows stay together, because they belong to one person, or differ in what no hash tells, such as their
        time: none counts as repeated then.

    Returns
    -------
    list of data frames
        The rows drawn of each part, in no particular order.
    Repeated
        Which rows are repeated often.
    """
    shares = [min(1.0, most / max(n_rows * part.size, 1)) for part, most in wanted]
    counts = np.zeros(2**_BUCKET_BITS, np.int64)
    drawn: list[list[pd.DataFrame]] = [[] for _ in wanted]
    for buckets, numbers, found in blocks.each(_Draw(keys, [part for part, _ in wanted], shares)):
        counts[buckets] += numbers
        for rows, more in zip(drawn, found, strict=True):
            rows.append(more)
    samples = [pd.concat(rows, ignore_index=True) for rows in drawn]
    full = counts > max(_FULL * n_rows / len(counts), _FULL_AT_LEAST)
    # Where all rows are drawn, it does not matter which of them are equal.
    if not each_for_itself or not full.any() or min(shares) == 1 == len(shares):
        return samples, Repeated()
    repeated = Repeated(full)
    often = pd.concat(list(blocks.each(_CountKinds(keys, repeated))))
    return [
        pd.concat([rows[~repeated.holds(keys(rows).hashes)], _copies(often, share * part.size)], ignore_index=True)
        for rows, share, (part, _) in zip(samples, shares, wanted, strict=True)
    ], repeated


@dataclass(frozen=True, eq=False)
class _Draw:
    """Numbers of rows by bucket, and the rows that are drawn of each part."""

    keys: KeysOf
    parts: Sequence[Part]
    shares: Sequence[float]

    def __call__(self, block: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.intp], list[pd.DataFrame]]:
        keys = self.keys(block)
        number = uniform(keys.hashes, _SALT_OF_SAMPLE)
        found = [
            block[(number < share) & part.holds(keys)] for part, share in zip(self.parts, self.shares, strict=True)
        ]
        buckets, numbers = np.unique(_buckets(keys.hashes), return_counts=True)
        return buckets, numbers, found


@dataclass(frozen=True, eq=False)
class _CountKinds:
    """One row of each kind that is repeated, with its number."""

    keys: KeysOf
    repeated: Repeated

    def __call__(self, block: pd.DataFrame) -> pd.DataFrame:
        hashes = self.keys(block).hashes
        inside = self.repeated.holds(hashes)
        kinds, first, count = np.unique(hashes[inside], return_index=True, return_counts=True)
        return block[inside].iloc[first].assign(**{_COUNT: count, _HASH: kinds})


def _buckets(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    return (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.intp)


def _copies(repeated: pd.DataFrame, share: float) -> pd.DataFrame:
    """So many copies of each repeated row as its share of the sample is, rounded up or down by a number of its own."""
    counts = repeated.groupby(_HASH, sort=False)[_COUNT].sum()
    kinds = repeated.drop_duplicates(_HASH).drop(columns=[_COUNT, _HASH])
    chance = uniform(counts.index.to_numpy(np.uint64), _SALT_OF_COPIES)
    copies = np.floor(counts.to_numpy() * share + chance).astype(np.intp)
    return kinds.iloc[np.repeat(np.arange(len(kinds)), copies)]
