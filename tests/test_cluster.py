"""Fits on a local cluster of two worker processes."""

import os
import signal

import pandas as pd
import pytest

from dafh.exceptions import InputError
from dafh.large import DaskBlocks, as_blocks
from large import FEATURES, assert_same_model, fitted, grouped_table, in_memory

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def two_workers():
    """A scheduler with two workers, each a process with one thread."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.slow  # A fit in which a worker is killed is compared with the same model.
@pytest.mark.parametrize("n_rows", [1500, 5000])
def test_partitions_give_the_model_of_rows_in_memory(two_workers, small_sample, n_rows):
    table = grouped_table(n_rows)
    collection = dd.from_pandas(table, npartitions=7, sort=False)
    assert_same_model(in_memory(n_rows), fitted(collection), table[FEATURES])


def test_a_killed_worker_changes_nothing(two_workers, small_sample):
    """Killed in the middle of a fit: the blocks it kept are made again by the other."""
    table = grouped_table(5000)
    blocks, passes = as_blocks(dd.from_pandas(table, npartitions=6, sort=False)), []

    class Deadly(DaskBlocks):
        def keep(self, function, **options):
            kept = super().keep(function, **options)
            return Deadly(kept.tasks)

        def total(self, function):
            passes.append(1)
            if len(passes) == 2:
                os.kill(next(iter(two_workers.run(os.getpid).values())), signal.SIGKILL)
            return super().total(function)

    model = fitted(Deadly(blocks.tasks, blocks.columns, blocks.n_rows))
    assert len(passes) > 2
    assert_same_model(in_memory(5000), model, table[FEATURES])
    two_workers.wait_for_workers(2, timeout=30)


def test_rows_have_their_positions_on_workers_too(two_workers):
    collection = dd.from_pandas(pd.DataFrame({"a": range(900)}, index=[7] * 900), npartitions=4, sort=False)
    for rows in as_blocks(collection).map(lambda block: block):
        assert rows.index.tolist() == rows["a"].tolist()


def test_without_dask_one_sentence_says_what_to_install(monkeypatch):
    collection = dd.from_pandas(pd.DataFrame({"a": range(9)}), npartitions=2)
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(InputError, match=r"pip install 'dafh\[dask\]'"):
        as_blocks(collection)
