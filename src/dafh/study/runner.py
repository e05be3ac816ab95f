"""Run the jobs of a study: those that are not done yet, several at a time, each written as soon as it is done."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from dafh.study.store import ResultStore

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One piece of work: a method on one split of one data set."""

    protocol: str
    dataset: str
    method: str
    n_groups: int
    split: int

    @property
    def key(self) -> str:
        """Name of the job; stable, and the same in every run."""
        return f"{self.protocol}/{self.dataset}/{self.method}/K{self.n_groups}/split{self.split}"

    @property
    def kind(self) -> tuple[str, str]:
        """What jobs that take about the same time have in common."""
        return self.dataset, self.method


class RemainingTime:
    """Estimate what is left, from how long jobs of the same kind took; honest about kinds not seen yet."""

    def __init__(self, jobs: Iterable[Job], n_jobs: int) -> None:
        self.waiting: dict[tuple[str, str], int] = defaultdict(int)
        self.taken: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.n_jobs = n_jobs
        for job in jobs:
            self.waiting[job.kind] += 1

    def done(self, job: Job, seconds: float) -> None:
        """Note that a job has ended."""
        self.waiting[job.kind] -= 1
        self.taken[job.kind].append(seconds)

    def seconds(self) -> float | None:
        """Estimate what is left; None while nothing is known. A kind not seen yet counts as the slowest one seen."""
        means = {kind: sum(taken) / len(taken) for kind, taken in self.taken.items()}
        if not means:
            return None
        slowest = max(means.values())
        return sum(number * means.get(kind, slowest) for kind, number in self.waiting.items()) / self.n_jobs


def run_jobs(
    jobs: list[Job],
    store: ResultStore,
    execute: Callable[[Job], list[Row]],
    *,
    n_jobs: int = 1,
    made_by: str = "",
    on_done: Callable[[Job, int, int, float | None], None] | None = None,
) -> int:
    """Run the jobs that the store does not have, and return how many that were.

    Jobs go through joblib, so that another backend (Dask, Ray) can take them; results are written by this process only.

    Parameters
    ----------
    execute : function of a job that returns its rows; must be importable from other processes if ``n_jobs > 1``
    made_by : what the results depend on besides the job; results of anything else are not taken for these
    on_done : called after each job with the job, how many are done, how many there are, and the seconds left
    """
    known = store.keys(made_by)
    pending = [job for job in jobs if job.key not in known]
    remaining = RemainingTime(pending, n_jobs)
    for number, (job, rows, seconds) in enumerate(_results(pending, execute, n_jobs), 1):
        store.put(job.key, asdict(job), rows, seconds, made_by)
        remaining.done(job, seconds)
        if on_done is not None:
            on_done(job, number, len(pending), remaining.seconds())
    return len(pending)


def _results(pending: list[Job], execute: Callable[[Job], list[Row]], n_jobs: int) -> Iterable[Any]:
    if n_jobs == 1 or len(pending) <= 1:
        return (_timed(execute, job) for job in pending)
    from joblib import Parallel, delayed, parallel_config

    # One thread each: as many processes as cores are busy already. Another backend brings its own rules.
    config = parallel_config("loky", inner_max_num_threads=1) if _default_backend() else nullcontext()
    with config:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * n_jobs)
        return parallel(delayed(_timed)(execute, job) for job in pending)


def _default_backend() -> bool:
    from joblib.parallel import DEFAULT_BACKEND, get_active_backend

    # The name of a backend's class is all that joblib shows of it in public: LokyBackend is "loky".
    return type(get_active_backend()[0]).__name__.lower().startswith(DEFAULT_BACKEND)


def _timed(execute: Callable[[Job], list[Row]], job: Job) -> tuple[Job, list[Row], float]:
    started = time.perf_counter()
    rows = execute(job)
    return job, rows, time.perf_counter() - started
