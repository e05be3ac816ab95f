"""Several processes that train a network together: as one does, or with an error that says who was lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import jax
import numpy as np
import pytest

from dafh.blocks.lanes import N_LANES, LaneReader, Lanes, LaneWriter, Shape
from dafh.engine import ranks, streaming
from dafh.engine.checkpoints import load_checkpoint, save_checkpoint
from dafh.engine.networks import init_replica
from dafh.engine.objective import Settings
from dafh.engine.population import Plan, loss_and_totals
from dafh.engine.rank import read_result, write_job
from dafh.engine.ranks import Ranks, run_locally, run_on_workers, run_with
from dafh.engine.streaming import Checkpoints, Course, engine_rows, train_stream
from dafh.exceptions import InputError, RankLostError
from dafh.tables.hashes import mixed

# Large enough for one program to round otherwise than another.
PLAN = Plan((4, 100, 3), (4, 1))
COURSE = Course(n_steps=80, rows_per_lane=32, chunk_steps=4, final_rate=0.1, average_steps=10, seed=3)
SETTINGS = Settings(*(np.full(1, value, np.float32) for value in (0, 0.1, 3, 8, 0.04, 0.003, 0.003, -1, 0.5)))


def start():
    return init_replica(np.random.default_rng(0), PLAN.group_sizes, PLAN.classifier_sizes, 0.1)


@pytest.fixture
def job(tmp_path):
    """A folder with rows; the effect of the third column depends on the first."""
    rng = np.random.default_rng(1)
    made = np.zeros(1000, Shape(4, 0, 1).dtype)
    made["place"], made["x"], made["weight"] = mixed(np.arange(1000, dtype=np.uint64)), rng.normal(size=(1000, 4)), 1
    made["label"] = made["x"][:, 1] + np.sign(made["x"][:, 0]) * made["x"][:, 2] > 0
    folder = tmp_path / "job"
    folder.mkdir()
    with closing(LaneWriter(Shape(4, 0, 1), 1000, folder)) as writer:
        writer.write(made)
        writer.finish()
    return folder


def alone(job, checkpoints=None, course=COURSE):
    with closing(Lanes.open(job)) as lanes:
        return train_stream(lanes, start(), SETTINGS, PLAN, course, checkpoints=checkpoints)


def assert_same(one, other):
    """To the last bit: training makes much of small differences."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def started(monkeypatch):
    """Processes that were started, as they come."""
    processes, popen = [], subprocess.Popen
    monkeypatch.setattr(ranks.subprocess, "Popen", lambda *a, **k: processes.append(popen(*a, **k)) or processes[-1])
    return processes


@pytest.mark.parametrize("parts", [("group", "classifiers"), ("group",), ("classifiers",)])
def test_lanes_add_up_to_the_gradient_of_the_population(job, parts):
    with closing(Lanes.open(job)) as lanes:
        taken = np.stack([LaneReader(lanes, lane, 0, 0).take(20) for lane in range(N_LANES)])
    taken["base"], taken["weight"] = taken["x"][..., :1] / 2, np.random.default_rng(0).random(taken.shape)
    settings = Settings(*(value[0] for value in SETTINGS))
    params = start()

    def loss(active, rows):
        return loss_and_totals(params._replace(**active), settings, rows, PLAN)[0]

    active = {part: getattr(params, part) for part in parts}
    expected = jax.jit(jax.grad(loss))(active, engine_rows(taken.reshape(-1)))
    run, chunk = streaming._programs(PLAN, parts), engine_rows(taken[None])
    shares = run.shares(params, settings, chunk, 0, run.totals(params, settings, chunk, 0))
    found = streaming._gradient(params, settings, shares, parts)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


def test_a_killed_process_is_an_error_within_seconds_and_a_second_run_goes_on(job, tmp_path, started):
    """And ends where one process does that nothing disturbs."""
    checkpoints = Checkpoints(tmp_path / "kept" / "network.npz", 8, "this")
    course = COURSE._replace(n_steps=160)
    write_job(job, start(), SETTINGS, PLAN, course, checkpoints)

    def kill_one():
        while not checkpoints.path.exists():
            time.sleep(0.02)
        os.kill(started[1].pid, signal.SIGKILL)
        killed.append(time.monotonic())

    killed = []
    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(RankLostError, match=r"Process \d of the 2 that train the network was lost"):
        run_locally(job, 2)
    assert time.monotonic() - killed[0] < 30
    killer.join()
    assert all(process.poll() is not None for process in started)
    _, n_done = load_checkpoint(checkpoints.path, "this", state_like(checkpoints))
    assert 0 < n_done < 160
    run_locally(job, 1)  # As many processes as one likes: the sums are the same.
    together = read_result(job, PLAN)
    assert np.abs(together.group[0].weight - start().group[0].weight).max() > 0.01
    assert_same(together, alone(job, course=course))


@pytest.mark.slow
def test_a_killed_process_of_a_worker_ends_all(job, tmp_path):
    distributed, psutil = pytest.importorskip("distributed"), pytest.importorskip("psutil")
    checkpoints = Checkpoints(tmp_path / "kept" / "network.npz", 8, "this")
    course = COURSE._replace(n_steps=120)
    write_job(job, start(), SETTINGS, PLAN, course, checkpoints)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
        distributed.Client(local) as client,
    ):
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        killed = []

        def kill_one():
            while not checkpoints.path.exists():
                time.sleep(0.02)
            os.kill(workers[1].children()[0].pid, signal.SIGKILL)
            killed.append(time.monotonic())

        killer = threading.Thread(target=kill_one)
        killer.start()
        with pytest.raises(RankLostError, match=r"Process \d of the 2 that train the network was lost"):
            run_on_workers(job, 2)
        killer.join()
        assert time.monotonic() - killed[0] < 30
        while any(worker.children() for worker in workers):
            assert time.monotonic() - killed[0] < 30
            time.sleep(0.1)


def state_like(checkpoints):
    with np.load(checkpoints.path) as file:
        return [file[f"leaf_{number}"] for number in range(len(file.files) - 2)]


def test_a_process_ends_when_whoever_started_it_is_gone(job, started):
    write_job(job, start(), SETTINGS, PLAN, COURSE._replace(n_steps=100_000), None)
    rank = ranks._Rank(job, 0, 1, f"127.0.0.1:{ranks.free_port()}")
    time.sleep(1)
    assert rank.is_running()
    started[0].stdin.close()  # What the end of this process would do.
    assert started[0].wait(timeout=30) == 1


def test_a_process_that_fails_says_why(tmp_path):
    with pytest.raises(RankLostError, match=r"No such file or directory: .*job\.json"):
        run_locally(tmp_path, 1)


def test_a_command_that_starts_all_processes_and_fails_says_why(tmp_path):
    with pytest.raises(RankLostError, match="python could not train the network in 2 processes: no hosts"):
        run_with(sys.executable, "-c", "raise SystemExit('no hosts')")(tmp_path, 2)


def test_a_stopped_training_goes_on_where_it_was(job, tmp_path):
    checkpoints = Checkpoints(tmp_path / "network.npz", 8, "this")
    half = COURSE._replace(n_steps=40)
    alone(job, checkpoints, half)
    state, n_done = load_checkpoint(checkpoints.path, "this", state_like(checkpoints))
    assert n_done == 40
    alone(job, checkpoints)
    assert load_checkpoint(checkpoints.path, "this", state)[1] == 80


@pytest.mark.parametrize("spoil", ["another training", "cut short", "no file", "another shape"])
def test_a_checkpoint_that_does_not_fit_is_not_gone_on_with(tmp_path, spoil):
    path, state = tmp_path / "network.npz", {"a": np.ones(3, np.float32)}
    if spoil != "no file":
        save_checkpoint(path, "that" if spoil == "another training" else "this", {"a": np.zeros(3, np.float32)}, 5)
    if spoil == "cut short":
        path.write_bytes(path.read_bytes()[:50])
    if spoil == "another shape":
        state = {"a": np.ones(4, np.float32)}
    found, n_done = load_checkpoint(path, "this", state)
    assert n_done == 0
    assert found is state


def with_bits(content, mark, places):
    """An archive with other bits in all its headers, here and in its directory."""
    changed = bytearray(content)
    for header, place in zip((b"PK\x03\x04", b"PK\x01\x02"), places, strict=True):
        at = changed.find(header)
        while at >= 0:
            changed[at + place] |= mark
            at = changed.find(header, at + 1)
    return bytes(changed)


@pytest.mark.parametrize(
    "forged",
    [
        {"n_steps": np.array([1, 2])},
        {"n_steps": np.array(np.inf)},
        {"n_steps": np.array(-1)},
        {"n_steps": np.array(81)},
        {"leaf_0": np.array([0, np.nan, 0], np.float32)},
        "one array",
        "encrypted",
        "unknown compression",
        "packed",
    ],
    ids=str,
)
def test_a_forged_checkpoint_is_not_gone_on_with(tmp_path, forged):
    path, state = tmp_path / "network.npz", {"a": np.ones(3, np.float32)}
    sound = {"about": np.array("this"), "n_steps": np.array(80), "leaf_0": np.zeros(3, np.float32)}
    np.savez(path, **sound)
    assert load_checkpoint(path, "this", state, 80)[1] == 80
    if isinstance(forged, dict):
        np.savez(path, **{**sound, **forged})
    elif forged == "one array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif forged == "packed":
        np.savez_compressed(path, **sound)
    else:
        bits = (1, (6, 8)) if forged == "encrypted" else (99, (8, 10))
        path.write_bytes(with_bits(path.read_bytes(), *bits))
    found, n_done = load_checkpoint(path, "this", state, 80)
    assert n_done == 0
    assert found is state


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "network.npz"
    for n_steps in (5, 6):
        save_checkpoint(path, "this", {"a": np.full(3, n_steps)}, n_steps)
    found, n_done = load_checkpoint(path, "this", {"a": np.zeros(3, int)})
    assert n_done == 6
    np.testing.assert_array_equal(found["a"], [6, 6, 6])
    assert [one.name for one in tmp_path.iterdir()] == ["network.npz"]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        save_checkpoint(tmp_path / "file" / "network.npz", "this", {"a": np.ones(1)}, 1)


@pytest.mark.parametrize("n_ranks", [0, 3, 16])
def test_lanes_are_divided_evenly_among_ranks(n_ranks):
    with pytest.raises(InputError, match="n_ranks must be 1, 2, 4 or 8"):
        Ranks(n_ranks)


def test_ranks_on_other_machines_need_a_folder():
    with pytest.raises(InputError, match="need a folder for checkpoints that all of them see"):
        Ranks(2, launch=run_on_workers)


def test_ranks_are_in_use_inside_of_a_with():
    assert Ranks.in_use().n_ranks == 1
    with Ranks(2), Ranks(4) as inner:
        assert Ranks.in_use() is inner
    assert Ranks.in_use().n_ranks == 1
