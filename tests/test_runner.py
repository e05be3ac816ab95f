"""Running jobs: which, how often, in what order, and how long it will take."""

import threading
import time

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.study.runner import Job, RemainingTime, run_jobs
from dafh.study.store import ResultStore

jobs = st.lists(
    st.builds(
        Job,
        st.just("honest"),
        st.sampled_from(["adult", "bank"]),
        st.sampled_from(["dafh", "pooled"]),
        st.just(2),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=20,
    unique=True,
)


def square(job):
    """A job whose result says which job it was."""
    return [{"square": job.split**2}, {"square": -1}]


@pytest.fixture
def store(tmp_path):
    with ResultStore(tmp_path / "r.sqlite") as opened:
        yield opened


def splits(n, method="m"):
    return [Job("honest", "toy", method, 2, split) for split in range(n)]


def test_the_key_of_a_job_holds_every_field():
    job = Job("paper", "adult", "grid", 3, 7)
    assert job.key == "paper/adult/grid/K3/split7"
    variations = [("honest", "adult", "grid", 3, 7), ("paper", "bank", "grid", 3, 7), ("paper", "adult", "dafh", 3, 7)]
    variations += [("paper", "adult", "grid", 2, 7), ("paper", "adult", "grid", 3, 8)]
    assert len({job.key, *(Job(*fields).key for fields in variations)}) == 6


def test_a_row_of_the_table_has_the_job_it_belongs_to(store):
    run_jobs(splits(3), store, square)
    frame = store.frame([job.key for job in splits(3)])
    assert frame["split"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["square"].tolist() == [0, -1, 1, -1, 4, -1]
    assert set(frame["protocol"] + frame["dataset"] + frame["method"]) == {"honesttoym"}


def test_one_at_a_time_jobs_run_in_the_order_they_were_given(store):
    ran = []
    wanted = splits(5)[::-1]
    run_jobs(wanted, store, lambda job: ran.append(job) or [])
    assert ran == wanted


def test_a_job_that_is_asked_for_twice_runs_once(store):
    ran = []
    assert run_jobs(splits(2) + splits(2), store, lambda job: ran.append(job) or []) == 2
    assert ran == splits(2)


def test_only_what_is_missing_runs_when_more_is_asked_for(store):
    ran = []
    run_jobs(splits(3), store, square)
    assert run_jobs(splits(5), store, lambda job: ran.append(job.split) or []) == 2
    assert ran == [3, 4]
    assert store.rows([splits(1)[0].key]) == [
        {"protocol": "honest", "dataset": "toy", "method": "m", "n_groups": 2, "split": 0, "square": value}
        for value in (0, -1)
    ]


def test_nothing_to_do_calls_nothing(store):
    assert run_jobs([], store, pytest.fail, on_done=pytest.fail) == 0


def test_each_finished_job_is_reported_after_it_is_stored(store):
    events = []

    def report(job, done, total, seconds):
        events.append((job.split, done, total, seconds, {job.key} <= store.keys()))

    run_jobs(splits(1), store, square)
    run_jobs(splits(4), store, square, on_done=report)
    assert [event[:3] for event in events] == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]
    assert all(event[4] for event in events)
    assert events[-1][3] == 0


def test_the_time_of_a_job_is_its_own(store):
    run_jobs(splits(2), store, lambda job: time.sleep(0.05 * job.split) or [])
    first, second = (store.seconds()[job.key] for job in splits(2))
    assert first < 0.04 < second


def test_several_at_a_time_every_job_is_stored_once_and_counted(store):
    seen = []
    with joblib.parallel_config("threading"):
        done = run_jobs(splits(9), store, square, n_jobs=3, on_done=lambda *event: seen.append(event[1:3]))
    assert done == 9
    assert seen == [(number, 9) for number in range(1, 10)]
    assert store.frame([job.key for job in splits(9)])["square"].tolist()[::2] == [split**2 for split in range(9)]


def test_several_at_a_time_a_failure_keeps_what_is_done_and_names_the_cause(store):
    store_has_some = threading.Event()

    def fails(job):
        if job.split == 5:
            store_has_some.wait(10)
            raise ZeroDivisionError("in split five")
        return square(job)

    with joblib.parallel_config("threading"), pytest.raises(ZeroDivisionError, match="in split five"):
        run_jobs(splits(12), store, fails, n_jobs=2, on_done=lambda *event: store_has_some.set())
    done = store.keys()
    assert splits(12)[5].key not in done
    assert done
    assert run_jobs(splits(12), store, square) == 12 - len(done)


# ---- the remaining time ----


@given(jobs, st.integers(1, 4), st.floats(0.1, 100))
def test_with_equal_jobs_it_is_their_number_times_their_time(given_jobs, n_jobs, seconds):
    remaining = RemainingTime(given_jobs, n_jobs)
    assert remaining.seconds() is None
    for done, job in enumerate(given_jobs, 1):
        remaining.done(job, seconds)
        assert remaining.seconds() == pytest.approx((len(given_jobs) - done) * seconds / n_jobs)


@given(jobs, st.data())
def test_it_ends_at_zero_and_is_never_negative(given_jobs, data):
    remaining = RemainingTime(given_jobs, 2)
    for job in data.draw(st.permutations(given_jobs)):
        remaining.done(job, data.draw(st.floats(0, 1000)))
        assert remaining.seconds() >= 0
    assert remaining.seconds() == 0


def test_jobs_of_one_kind_are_expected_to_take_their_mean():
    remaining = RemainingTime([*splits(4), *splits(2, "other")], n_jobs=1)
    remaining.done(splits(1)[0], 2.0)
    remaining.done(splits(2)[1], 4.0)
    assert remaining.seconds() == pytest.approx(2 * 3.0 + 2 * 3.0)  # Those of another kind as the slowest kind so far.
    remaining.done(splits(1, "other")[0], 100.0)
    assert remaining.seconds() == pytest.approx(2 * 3.0 + 1 * 100.0)
