"""Run the jobs of a study that are not done yet, several at a time, and store each as soon as it is done."""

import time
from collections.abc import Callable

from joblib import Parallel, delayed, parallel_config

from research.paper.store import Job, Row, Store
from research.paper.study import execute


def run(
    jobs: list[Job],
    store: Store,
    *,
    n_jobs: int = 1,
    execute: Callable[[Job], list[Row]] = execute,
    on_done: Callable[[Job, int, int], None] | None = None,
) -> int:
    """Run the jobs that the store does not have, each once, and return how many that were.

    `on_done` is called after each job with the job, how many are done, and how many there are.
    """
    store.require_same_versions()
    pending = [job for job in dict.fromkeys(jobs) if not store.has(job)]
    with parallel_config("loky" if n_jobs > 1 else "sequential", n_jobs=n_jobs):
        parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=2 * n_jobs)
        results = parallel(delayed(_timed)(execute, job) for job in pending)
        for number, (job, rows, seconds) in enumerate(results, 1):
            store.put(job, rows, seconds)
            if on_done is not None:
                on_done(job, number, len(pending))
    return len(pending)


def _timed(execute: Callable[[Job], list[Row]], job: Job) -> tuple[Job, list[Row], float]:
    # CPU time does not depend on what else runs on the machine.
    started = time.process_time()
    rows = execute(job)
    return job, rows, time.process_time() - started
