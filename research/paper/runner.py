"""Run the jobs of a study that are not done yet, several at a time, and store each as soon as it is done."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from research.paper.store import ResultStore

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
        """Name of the job, the same in every run."""
        return f"{self.protocol}/{self.dataset}/{self.method}/K{self.n_groups}/split{self.split}"

    @property
    def kind(self) -> tuple[str, str]:
        """Data set and method: jobs of one kind take about the same time."""
        return self.dataset, self.method


class RemainingTime:
    """Estimate the time that the remaining jobs need, from how long jobs of the same kind took."""

    def __init__(self, jobs: Iterable[Job], n_jobs: int) -> None:
        self.waiting: dict[tuple[str, str], int] = defaultdict(int)
        self.taken: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.n_jobs = n_jobs
        for job in jobs:
            self.waiting[job.kind] += 1

    def done(self, job: Job, seconds: float) -> None:
        """Record how long a job took."""
        self.waiting[job.kind] -= 1
        self.taken[job.kind].append(seconds)

    def seconds(self) -> float | None:
        """Return the seconds left, or None before the first job is done."""
        means = {kind: sum(taken) / len(taken) for kind, taken in self.taken.items()}
        if not means:
            return None
        # A kind that has not run yet counts as the slowest so far: an estimate that shrinks annoys less than one that
        # grows.
        slowest = max(means.values())
        return sum(number * means.get(kind, slowest) for kind, number in self.waiting.items()) / self.n_jobs


def run_jobs(
    jobs: list[Job],
    store: ResultStore,
    execute: Callable[[Job], list[Row]],
    *,
    n_jobs: int = 1,
    cluster: str | None = None,
    made_by: str = "",
    on_done: Callable[[Job, int, int, float | None], None] | None = None,
) -> int:
    """Run the jobs that the store does not have, each once, and return how many that were.

    Jobs go through joblib. Only this process writes results.

    Parameters
    ----------
    jobs : list of Job
    store : ResultStore
    execute : function of a job that returns its rows
        Other processes must be able to import it if ``n_jobs > 1``.
    n_jobs : int, default=1
        Jobs at a time.
    cluster : str, optional
        Address of a Dask scheduler whose workers run the jobs; they find the raw files of data sets by themselves.
    made_by : str, default=""
        What the results depend on besides the job, such as versions. Stored results with another value are made again.
    on_done : function, optional
        Called after each job with the job, how many are done, how many there are, and the seconds left.
    """
    known = store.keys(made_by)
    pending = [job for job in dict.fromkeys(jobs) if job.key not in known]
    remaining = RemainingTime(pending, n_jobs)
    for number, (job, rows, seconds) in enumerate(_results(pending, execute, n_jobs, cluster), 1):
        store.put(job.key, asdict(job), rows, seconds, made_by)
        remaining.done(job, seconds)
        if on_done is not None:
            on_done(job, number, len(pending), remaining.seconds())
    return len(pending)


def _results(
    pending: list[Job], execute: Callable[[Job], list[Row]], n_jobs: int, cluster: str | None
) -> Iterator[tuple[Job, list[Row], float]]:
    if cluster is None and (n_jobs == 1 or len(pending) <= 1):
        yield from (_timed(execute, job) for job in pending)
        return
    from joblib import Parallel, delayed, parallel_config

    with ExitStack() as stack:
        if cluster is None:
            # One thread for each process: there are as many processes as cores already.
            stack.enter_context(parallel_config("loky", inner_max_num_threads=1))
        else:
            from distributed import Client

            n_jobs = sum(stack.enter_context(Client(cluster, timeout=10)).nthreads().values())
            stack.enter_context(parallel_config("dask"))
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * n_jobs)
        yield from parallel(delayed(_timed)(execute, job) for job in pending)


def _timed(execute: Callable[[Job], list[Row]], job: Job) -> tuple[Job, list[Row], float]:
    started = time.perf_counter()
    rows = execute(job)
    return job, rows, time.perf_counter() - started
