"""Samples that depend on the values of rows alone, drawn from blocks of any kind.

A row is drawn if a number made of its values is small. Equal rows have equal numbers, and would be drawn together or
not at all; a table of a few categories may hold the same row a million times. Rows are therefore counted first, in a
million buckets. Rows in buckets that hold many are counted one by one, and of each kind a share of its number is drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Block, Blocks
from dafh.tables.hashes import uniform

_BUCKET_BITS = 20
# A bucket is full if it holds eight times as many rows as it should, and so many at least: rows that are fewer than
# this are drawn together or not at all.
_FULL, _FULL_AT_LEAST = 8, 50
_SALT_OF_SAMPLE, _SALT_OF_PART, _SALT_OF_COPIES = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Census:
    """How many rows there are, and which of them are repeated often."""

    n_rows: int
    full: NDArray[np.bool_]
    """Buckets of rows that are repeated often."""

    @classmethod
    def take(cls, blocks: Blocks[Block], keys: "Callable[[Block], Keys]", *, each_for_itself: bool = True) -> "Census":
        """Count the rows of blocks by their hashes.

        Rows may stay together, because they belong to one person, or differ in what no hash tells, such as their time:
        then they are not `each_for_itself`, and none counts as repeated.
        """
        counts = np.zeros(2**_BUCKET_BITS, np.int64)
        for bucket, number in blocks.each(_BucketCounts(keys)):
            counts[bucket] += number
        n_rows = int(counts.sum())
        full = counts > max(_FULL * n_rows / len(counts), _FULL_AT_LEAST)
        return cls(n_rows, full & each_for_itself)

    def is_repeated(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether rows are in a bucket that holds many."""
        return self.full[_buckets(hashes)]


@dataclass(frozen=True)
class _BucketCounts:
    keys: "Callable[[Any], Keys]"

    def __call__(self, block: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.unique(_buckets(self.keys(block).hashes), return_counts=True)


def _buckets(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    return (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.intp)


class Keys(NamedTuple):
    """What decides which rows are drawn."""

    hashes: NDArray[np.uint64]
    places: NDArray[np.float64]
    """By which rows are divided into parts: numbers that look random, or times."""


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

    def weights(self, keys: Keys, census: Census) -> NDArray[np.float64]:
        """What each row counts in the part: 1, 0, or, where rows are repeated, the size of the part."""
        return np.where(census.is_repeated(keys.hashes), self.size, self.holds(keys))


EVERYTHING = Part()


def random_places(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers from 0 to 1 by which rows are divided at random."""
    return uniform(hashes, _SALT_OF_PART)


def draw_rows(
    blocks: Blocks[pd.DataFrame],
    keys: Callable[[pd.DataFrame], Keys],
    census: Census,
    most: int,
    part: Part = EVERYTHING,
) -> pd.DataFrame:
    """Draw about `most` rows of a part, all of them where there are no more."""
    share = min(1.0, most / max(census.n_rows * part.size, 1))
    found = list(blocks.each(_DrawnRows(keys, census, share, part)))
    often = pd.concat([repeated for _, repeated in found])
    return pd.concat([*(drawn for drawn, _ in found), _copies(often, share * part.size)], ignore_index=True)


_COUNT, _HASH = "\0count", "\0hash"


@dataclass(frozen=True)
class _DrawnRows:
    keys: Callable[[pd.DataFrame], Keys]
    census: Census
    share: float
    part: Part

    def __call__(self, block: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows that are drawn, and one row of each kind that is repeated, with its number."""
        keys = self.keys(block)
        hashes = keys.hashes
        repeated = self.census.is_repeated(hashes)
        drawn = (uniform(hashes, _SALT_OF_SAMPLE) < self.share) & self.part.holds(keys) & ~repeated
        kinds, first, count = np.unique(hashes[repeated], return_index=True, return_counts=True)
        return block[drawn], block[repeated].iloc[first].assign(**{_COUNT: count, _HASH: kinds})


def _copies(repeated: pd.DataFrame, share: float) -> pd.DataFrame:
    """So many copies of each repeated row as its share of the sample is, rounded up or down by a number of its own."""
    counts = repeated.groupby(_HASH, sort=False)[_COUNT].sum()
    kinds = repeated.drop_duplicates(_HASH).drop(columns=[_COUNT, _HASH])
    chance = uniform(counts.index.to_numpy(np.uint64), _SALT_OF_COPIES)
    copies = np.floor(counts.to_numpy() * share + chance).astype(np.intp)
    return kinds.iloc[np.repeat(np.arange(len(kinds)), copies)]
