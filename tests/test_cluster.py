"""Fits on a local cluster of two worker processes."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cases import first_by_default
from dafh.blocks import cluster
from dafh.blocks.cluster import DaskBlocks, connected
from dafh.blocks.files import FileBlocks
from dafh.exceptions import InputError
from dafh.tables.read import DataFile
from large import assert_same_model, grouped_table, written_in_files
from test_large_fits import FEATURES, fitted, in_memory

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


@pytest.mark.parametrize("n_partitions", first_by_default([7, 1], 1))
def test_partitions_give_the_model_of_rows_in_memory(two_workers, small_sample, n_partitions):
    table = grouped_table(4000)
    collection = dd.from_pandas(table.sample(frac=1, random_state=0), npartitions=n_partitions, sort=False)
    assert_same_model(in_memory(4000), fitted(collection), table[FEATURES])


def test_workers_read_files_themselves_whatever_folder_they_work_in(two_workers, tmp_path, monkeypatch):
    table = grouped_table(1000)
    written_in_files(tmp_path / "rows", table, 3)
    monkeypatch.chdir(tmp_path)
    files = FileBlocks.open([DataFile(path) for path in sorted(Path("rows").iterdir())])
    blocks = DaskBlocks.of_files(files)
    assert sum(blocks.each(len)) == 1000
    (total,) = blocks.total(lambda block: (block["x0"].sum(),))
    assert total == pytest.approx(table["x0"].sum())


def test_arrays_lie_in_memory_as_anywhere_else_wherever_they_were_in_a_message():
    """Dask reads them in place. Those at odd addresses are multiplied in another way, with other last digits."""
    dask = pytest.importorskip("dask")
    odd = np.zeros(8 * 5 + 1, np.uint8)[1:].view(np.float64)
    assert not odd.flags.aligned
    blocks = DaskBlocks([dask.delayed({"a": odd, "label": np.arange(5)})] * 3)
    assert list(blocks.each(lambda block: (block["a"].flags.aligned, odd.flags.aligned))) == [(True, True)] * 3


def test_a_killed_worker_changes_nothing(two_workers, small_sample):
    """Killed in the middle of a fit: the blocks it kept are made again by the other."""
    table = grouped_table(4000)
    collection = dd.from_pandas(table, npartitions=6, sort=False)
    passes = []
    total = DaskBlocks.total

    def killing(self, function):
        passes.append(1)
        if len(passes) == 2:
            victim = next(iter(two_workers.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
        return total(self, function)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskBlocks, "total", killing)
        model = fitted(collection)
    assert len(passes) > 2
    assert_same_model(in_memory(4000), model, table[FEATURES])
    two_workers.wait_for_workers(2, timeout=30)


@pytest.mark.slow
def test_two_fits_run_one_after_the_other_and_at_a_time(two_workers, small_sample):
    table = grouped_table(4000)
    models = {}

    def fit(name):
        models[name] = fitted(dd.from_pandas(table, npartitions=3, sort=False))

    threads = [threading.Thread(target=fit, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model in models.values():
        assert_same_model(in_memory(4000), model, table[FEATURES])
    assert len(models) == 2


def test_what_is_kept_is_forgotten(two_workers):
    blocks = DaskBlocks.of_collection(dd.from_pandas(pd.DataFrame({"a": range(100)}), npartitions=2))
    with blocks.keep(lambda block: {"a": block["a"].to_numpy()}) as kept:
        (total,) = kept.total(lambda arrays: (arrays["a"].sum(),))
    assert total == 4950
    for _ in range(50):
        if not any(two_workers.run(lambda dask_worker: len(dask_worker.data)).values()):
            return
        time.sleep(0.1)
    pytest.fail("the workers still hold blocks")


def test_an_address_at_which_nobody_answers_is_one_sentence(monkeypatch):
    monkeypatch.setattr(cluster, "_SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(InputError, match="No Dask scheduler answers at tcp://127"), connected("tcp://127.0.0.1:1"):
        pass


def test_without_dask_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(InputError, match=r"pip install 'dafh\[dask\]'"), connected("tcp://127.0.0.1:1"):
        pass


def test_order_and_division_of_a_sum_do_not_matter(two_workers):
    values = np.random.default_rng(0).normal(size=1000)
    sums = []
    for n_partitions in (1, 7, 20):
        frame = dd.from_pandas(pd.DataFrame({"a": values}), npartitions=n_partitions)
        sums.append(DaskBlocks.of_collection(frame).total(lambda block: (block["a"].sum(), np.int64(len(block)))))
    assert all(total == pytest.approx(values.sum(), abs=1e-12) for total, _ in sums)
    assert {int(number) for _, number in sums} == {1000}
