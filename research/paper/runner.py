"""Run the jobs of a study that are not done yet, several at a time, and store each as soon as it is done."""

import time
from collections.abc import Callable, Iterator
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


def run_jobs(
    jobs: list[Job],
    store: ResultStore,
    execute: Callable[[Job], list[Row]],
    *,
    n_jobs: int = 1,
    cluster: str | None = None,
    made_by: str = "",
    on_done: Callable[[Job, int, int], None] | None = None,
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
        Called after each job with the job, how many are done, and how many there are.
    """
    known = store.keys(made_by)
    pending = [job for job in dict.fromkeys(jobs) if job.key not in known]
    for number, (job, rows, seconds) in enumerate(_results(pending, execute, n_jobs, cluster), 1):
        store.put(job.key, asdict(job), rows, seconds, made_by)
        if on_done is not None:
            on_done(job, number, len(pending))
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
