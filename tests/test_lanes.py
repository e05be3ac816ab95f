"""Rows in lanes: an order that depends on values alone, and that any step is found in."""

from contextlib import ExitStack, closing

import numpy as np
import pytest

from dafh.blocks.lanes import N_LANES, LaneReader, Lanes, LaneWriter, Shape
from dafh.exceptions import InputError
from dafh.tables.hashes import mixed

SHAPE = Shape(2, 0, 1)


def rows(n_rows):
    made = np.zeros(n_rows, SHAPE.dtype)
    made["place"] = mixed(np.arange(n_rows, dtype=np.uint64))
    made["x"][:, 0] = np.arange(n_rows)
    return made


@pytest.fixture
def written():
    """A function that writes rows in so many blocks, and closes the files in the end."""
    with ExitStack() as stack:

        def write(made, n_blocks, folder=None, n_shards=5):
            writer = stack.enter_context(closing(LaneWriter(SHAPE, len(made), folder)))
            writer.n_shards = n_shards
            for block in np.array_split(made, n_blocks):
                writer.write(block)
            return writer.finish()

        yield write


def test_every_pass_takes_every_row_once_in_another_order(written):
    lanes = written(rows(1000), 3)
    n_rows = lanes.n_rows
    assert n_rows.sum() == 1000
    first, second = [], []
    for lane in range(N_LANES):
        reader = LaneReader(lanes, lane, 0, seed=0)
        first.append(reader.take(n_rows[lane])["x"][:, 0])
        second.append(reader.take(n_rows[lane])["x"][:, 0])
    for taken in (first, second):
        np.testing.assert_array_equal(np.sort(np.concatenate(taken)), np.arange(1000))
    assert not np.array_equal(first[0], second[0])
    assert np.abs(np.corrcoef(first[0], np.arange(len(first[0])))[0, 1]) < 0.4


def test_neither_the_order_of_rows_nor_their_blocks_change_what_is_read(written):
    made = rows(1000)
    one, other = written(made, 1), written(np.random.default_rng(0).permutation(made), 13)
    for lane in range(N_LANES):
        np.testing.assert_array_equal(LaneReader(one, lane, 0, 0).take(300), LaneReader(other, lane, 0, 0).take(300))


@pytest.mark.parametrize("first", [0, 1, 77, 150, 1234])
def test_any_position_is_found_without_reading_what_is_before(written, first):
    lanes = written(rows(1000), 4)
    whole = LaneReader(lanes, 2, 0, seed=5).take(first + 50)
    np.testing.assert_array_equal(LaneReader(lanes, 2, first, seed=5).take(50), whole[first:])


def test_another_seed_is_another_order(written):
    lanes = written(rows(1000), 1)
    assert not np.array_equal(LaneReader(lanes, 0, 0, seed=0).take(50), LaneReader(lanes, 0, 0, seed=1).take(50))


def test_equal_rows_of_a_shard_are_spread_over_it(written):
    made = rows(2000)
    made["place"][:200] = made["place"][0]
    made["x"][:200] = -1
    lanes = written(made, 3, n_shards=1)
    lane = int(made["place"][0] >> np.uint64(61))
    taken = LaneReader(lanes, lane, 0, 0).take(lanes.n_rows[lane])["x"][:, 0] == -1
    halves = np.array_split(taken, 2)
    assert taken.sum() == 200
    assert 70 < halves[0].sum() < 130


def test_another_process_reads_what_was_written_in_a_folder(written, tmp_path):
    lanes = written(rows(500), 2, tmp_path)
    with closing(Lanes.open(tmp_path)) as read:
        np.testing.assert_array_equal(LaneReader(read, 3, 0, 0).take(40), LaneReader(lanes, 3, 0, 0).take(40))


def test_a_full_disk_is_one_sentence():
    with closing(LaneWriter(SHAPE, 100)) as writer, open("/dev/full", "wb", buffering=0) as full:
        writer.files.insert(0, full)
        last = writer.files.pop()
        with pytest.raises(InputError, match="set TMPDIR to a folder on a disk with more room"):
            writer.write(rows(1000))
        last.close()
