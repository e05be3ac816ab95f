"""Kill an update at random moments: run by test_watch_kills.py in a process of its own.

One process makes many children by fork, so that imports are paid for once.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from dafh.tables.read import DataFile
from dafh.workflows.watching import WatchSettings, watch_batch


def update(folder, state):
    watch_batch(folder / "model.dafh", DataFile(str(folder / "2.csv")), state, WatchSettings(), wait=5)


def child(work):
    """Start a process that does some work; it ends without any cleaning up."""
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def main(folder, before, work, n_trials):
    update(folder, shutil.copy(before, work / "warm.db"))  # Files and code are in memory from now on.
    start = time.perf_counter()
    os.waitpid(child(lambda: update(folder, Path(shutil.copy(before, work / "timed.db")))), 0)
    usual = time.perf_counter() - start
    rng = random.Random(0)
    for trial in range(n_trials):
        state = Path(shutil.copy(before, work / f"{trial}.db"))
        pid = child(lambda state=state: update(folder, state))
        time.sleep(rng.uniform(0, 1.1 * usual))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    # Two at once: both have to get through, one after the other.
    state = Path(shutil.copy(before, work / "both.db"))
    others = [child(lambda month=month: watch_batch(
        folder / "model.dafh", DataFile(str(folder / f"{month}.csv")), state, WatchSettings(), wait=30
    )) for month in (2, 3)]  # fmt: skip
    codes = [os.waitpid(pid, 0)[1] for pid in others]
    print(usual, codes)


if __name__ == "__main__":
    main(*(Path(path) for path in sys.argv[1:4]), int(sys.argv[4]))
