"""Rows on disk in a random order that depends on their values alone, for training in small steps.

Every row has a place, a number made of its values, which says where it is written: in one of a few lanes, and there in
one of many shards. Rows of a shard are random ones, so that a pass takes the shards in a random order, and shuffles the
rows of one shard after the other in memory. A batch takes as many rows from every lane. Batches are therefore the same
whatever the order of the rows and the way they are divided into files, and whether one process reads all lanes or
several read some each; and the batches of any step are found without reading those before.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.blocks.spool import no_room
from dafh.tables.hashes import mixed

N_LANES = 8
"""Fixed, because it is part of the order; so many processes at most can share the work."""
# Rows of a shard of each lane are in memory at a time: 64 MB of numbers for all lanes.
_NUMBERS_PER_SHARD = 2**21
_FEWEST_ROWS_PER_SHARD, _MOST_ROWS_PER_SHARD = 2**10, 2**16
# More would make the index of what each block has written larger than the shards.
_MOST_SHARDS = 512
_LANE_BITS, _SHARD_BITS = 3, 32
# So many passes of a seed have orders that no other seed has.
_MOST_PASSES = 2**24


class Shape(NamedTuple):
    """How many numbers a row has of each kind."""

    n_columns: int
    n_answers: int
    n_logits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """A row as it is written."""
        return np.dtype(
            [
                ("place", np.uint64),
                ("x", np.float32, (self.n_columns,)),
                ("base", np.float32, (self.n_logits,)),
                ("weight", np.float32),
                ("label", np.int32),
                ("pooled_right", np.float32),
                ("answers", np.int8, (self.n_answers,)),
            ]
        )


class LaneWriter:
    """Writes rows to where they belong.

    Parameters
    ----------
    shape : Shape
    n_rows : int
        About how many rows there will be.
    folder : Path, optional
        For other processes to read. Without one the files have no name: whatever ends the process, nothing is left
        behind.
    """

    def __init__(self, shape: Shape, n_rows: int, folder: Path | None = None) -> None:
        self.shape, self.folder = shape, folder
        width = shape.dtype.itemsize // 4
        rows = int(np.clip(_NUMBERS_PER_SHARD // width, _FEWEST_ROWS_PER_SHARD, _MOST_ROWS_PER_SHARD))
        self.n_shards = int(np.clip(-(-n_rows // (N_LANES * rows)), 1, _MOST_SHARDS))
        self.files: list[IO[bytes]] = [_open(folder, lane, "w+b") for lane in range(N_LANES)]
        self.counts: list[NDArray[np.int64]] = []

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows, an array of the shape's dtype."""
        lane = (rows["place"] >> np.uint64(64 - _LANE_BITS)).astype(np.int64)
        within = rows["place"] << np.uint64(_LANE_BITS) >> np.uint64(64 - _SHARD_BITS)
        bucket = lane * self.n_shards + (within * np.uint64(self.n_shards) >> np.uint64(_SHARD_BITS)).astype(np.int64)
        counts = np.bincount(bucket, minlength=N_LANES * self.n_shards).reshape(N_LANES, self.n_shards)
        rows = rows[np.argsort(bucket, kind="stable")]
        ends = counts.sum(axis=1).cumsum()
        for file, first, last in zip(self.files, ends - counts.sum(axis=1), ends, strict=True):
            try:
                file.write(rows[first:last].view(np.uint8).data)
            except OSError as error:
                raise no_room(error) from error
        self.counts.append(counts)

    def finish(self) -> "Lanes":
        """Return what was written, to be read."""
        try:
            for file in self.files:
                file.flush()
        except OSError as error:
            raise no_room(error) from error
        counts = np.array(self.counts, np.int32).reshape(-1, N_LANES, self.n_shards)
        if self.folder is not None:
            np.save(self.folder / "counts.npy", counts)
            (self.folder / "shape.json").write_text(json.dumps(self.shape))
        return Lanes(self.shape, counts, self.files)

    def close(self) -> None:
        """Give the disk back; files with a name are left to whoever named the folder."""
        for file in self.files:
            file.close()


def _open(folder: Path | None, lane: int, mode: str) -> Any:
    return tempfile.TemporaryFile() if folder is None else open(folder / f"lane-{lane}.rows", mode)


@dataclass(frozen=True, eq=False)
class Lanes:
    """Rows in their lanes."""

    shape: Shape
    counts: NDArray[np.int32]
    """Rows of each block, in each lane and shard, in the order in which they lie in the files."""
    files: Sequence[Any]

    @classmethod
    def open(cls, folder: Path) -> "Lanes":
        """Read what another process has written."""
        shape = Shape(*json.loads((folder / "shape.json").read_text()))
        files = [_open(folder, lane, "rb") for lane in range(N_LANES)]
        return cls(shape, np.load(folder / "counts.npy", allow_pickle=False), files)

    @property
    def n_rows(self) -> NDArray[np.int64]:
        """Number of rows in each lane."""
        return self.counts.sum(axis=(0, 2), dtype=np.int64)

    def stream(self, lane: int, first: int, seed: int) -> Iterator[NDArray[Any]]:
        """Yield the rows of a lane from a position on, shard by shard, pass after pass, without end.

        Parameters
        ----------
        lane : int
        first : int
            Rows of the lane that were taken before, in all passes.
        seed : int
            Of the order.
        """
        passes, skipped = divmod(first, int(self.n_rows[lane]))
        sizes = self.counts[:, lane].sum(axis=0)
        while True:
            for shard in np.random.default_rng([seed, lane, passes]).permutation(len(sizes)):
                if skipped >= sizes[shard]:
                    skipped -= int(sizes[shard])
                    continue
                rows = self._read(lane, shard)
                yield rows[_order(rows["place"], seed * _MOST_PASSES + passes)[skipped:]]
                skipped = 0
            passes += 1

    def _read(self, lane: int, shard: int) -> NDArray[Any]:
        counts = self.counts[:, lane]
        before = counts.ravel().cumsum(dtype=np.int64).reshape(counts.shape) - counts
        rows = np.empty(int(counts[:, shard].sum()), self.shape.dtype)
        size, filled = rows.itemsize, 0
        whole = rows.view(np.uint8).data
        for offset, count in zip(before[:, shard] * size, counts[:, shard].astype(np.int64) * size, strict=True):
            while count:
                got = os.preadv(self.files[lane].fileno(), [whole[filled : filled + count]], offset)
                if not got:
                    raise OSError("a file of rows ends too early")
                filled, offset, count = filled + got, offset + got, count - got
        return rows

    def close(self) -> None:
        """Give the disk back."""
        for file in self.files:
            file.close()


class LaneReader:
    """Takes rows of a lane, so many at a time."""

    def __init__(self, lanes: Lanes, lane: int, first: int, seed: int) -> None:
        self.stream = lanes.stream(lane, first, seed)
        self.left: NDArray[Any] = np.empty(0, lanes.shape.dtype)

    def take(self, n_rows: int) -> NDArray[Any]:
        """Return the next rows."""
        parts, missing = [], n_rows
        while missing:
            if not len(self.left):
                self.left = next(self.stream)
            parts.append(self.left[:missing])
            self.left, missing = self.left[missing:], missing - len(parts[-1])
        return np.concatenate(parts)


def _order(place: NDArray[np.uint64], salt: int) -> NDArray[np.intp]:
    """Order of the rows of a shard, another one for every salt; equal rows, which share a place, are spread over it."""
    by_place = np.argsort(place, kind="stable")
    ordered = place[by_place]
    starts = np.r_[True, ordered[1:] != ordered[:-1]]
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    return by_place[np.argsort(mixed(copy_of(ordered, np.arange(len(ordered)) - first), salt), kind="stable")]


def copy_of(place: NDArray[np.uint64], number: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Places of copies of rows, by their numbers; copy 0 has the place of the row."""
    return np.where(number > 0, mixed(place ^ mixed(number.astype(np.uint64))), place)
