"""How many processes go on training a network, who starts them, and where its state is kept.

Processes (ranks) are always started as such, also by the workers of a cluster: JAX ends a process whose peer dies. Who
starts a rank watches it. If one is lost, the others are ended and an error says so; a rank ends by itself if whoever
started it is gone.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlsplit

from dafh.blocks.lanes import N_LANES
from dafh.exceptions import InputError, RankLostError

Launch = Callable[[Path, int], None]
"""Starts so many ranks for the job in a folder, and returns when all have ended well."""
_SECONDS_BETWEEN_LOOKS = 0.2
# A worker that hears nothing for so long ends its rank: whoever has started it is gone.
_SECONDS_OF_SILENCE = 20.0
_STOP, _ALIVE = "stop", "alive"


def run_locally(folder: Path, n_ranks: int) -> None:
    """Start all ranks on this machine."""
    address = f"127.0.0.1:{free_port()}"
    ranks = [_Rank(folder, rank, n_ranks, address) for rank in range(n_ranks)]
    try:
        # Every rank is looked at, also those after one that runs.
        while sum(rank.is_running() for rank in ranks):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for rank in ranks:
            rank.end()


def run_with(*command: str) -> Launch:
    """Return a function that starts all ranks with one command, such as ``"srun", "--ntasks=4"`` or ``"mpirun"``.

    JAX finds out which rank is which, under SLURM, Open MPI and Kubernetes.
    """

    def launch(folder: Path, n_ranks: int) -> None:
        done = subprocess.run(
            [*command, sys.executable, "-m", "dafh.engine.rank", str(folder)], capture_output=True, check=False
        )
        if done.returncode:
            lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
            reason = lines[-1].strip().rstrip(".") if lines else f"exit code {done.returncode}"
            raise RankLostError(f"{command[0]} could not train the network in {n_ranks} processes: {reason}.")

    return launch


def run_on_workers(folder: Path, n_ranks: int) -> None:
    """Start one rank for each of some workers of the Dask cluster in use; all of them must see the folder."""
    from distributed import default_client

    client = default_client()
    workers = sorted(client.nthreads())
    if len(workers) < n_ranks:
        raise InputError(f"{n_ranks} ranks need as many workers, and the cluster has {len(workers)}.")
    workers = workers[:n_ranks]
    port = client.submit(free_port, workers=workers[:1], pure=False).result()
    address = f"{urlsplit(workers[0]).hostname}:{port}"
    futures = [
        client.submit(_watch_rank, folder, rank, n_ranks, address, workers=[worker], retries=0, pure=False)
        for rank, worker in enumerate(workers)
    ]
    try:
        looks = 0
        while not all(future.done() for future in futures):
            (folder / _ALIVE).write_text(str(looks))
            looks += 1
            _raise_first_error(futures)
            # Its task waits for it to come back, which tells nobody.
            lost = set(workers) - set(client.nthreads())
            if lost:
                raise _lost(workers.index(min(lost)), n_ranks, "its worker is gone")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        _raise_first_error(futures)
    finally:
        (folder / _STOP).touch()
        client.cancel(futures)


def _raise_first_error(futures: Sequence[Any]) -> None:
    for future in futures:
        if future.status == "error":
            future.result()


def _watch_rank(folder: Path, number: int, n_ranks: int, address: str) -> None:
    """Start a rank and wait for it: what a worker does."""
    from distributed import secede

    # Waiting takes no thread from other tasks. If it did, two fits at a time could each hold half of the workers, and
    # wait for the other half for ever.
    secede()
    rank = _Rank(folder, number, n_ranks, address)
    heard, last = time.monotonic(), ""
    try:
        while rank.is_running():
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            said = (folder / _ALIVE).read_text() if (folder / _ALIVE).exists() else ""
            if said != last:
                heard, last = time.monotonic(), said
            if (folder / _STOP).exists() or not folder.exists() or time.monotonic() - heard > _SECONDS_OF_SILENCE:
                return
    finally:
        rank.end()


class _Rank:
    """A process, and how it ends."""

    def __init__(self, folder: Path, number: int, n_ranks: int, address: str) -> None:
        self.number, self.n_ranks = number, n_ranks
        self.log = folder / f"rank-{number}.log"
        command = [sys.executable, "-m", "dafh.engine.rank", str(folder), str(number), str(n_ranks), address]
        with open(self.log, "wb") as log:
            # The rank ends when this pipe does: with `end`, or with this process.
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def is_running(self) -> bool:
        """Whether it runs; an error if it has ended badly."""
        code = self.process.poll()
        if code:
            raise _lost(self.number, self.n_ranks, self._reason(code))
        return code is None

    def _reason(self, code: int) -> str:
        if code in (-signal.SIGKILL, -signal.SIGTERM):
            return f"ended by {signal.Signals(-code).name}"
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return " ".join(lines[-1].split()).rstrip(".") if lines else f"exit code {code}"

    def end(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.wait()
        pipe: IO[bytes] | None = self.process.stdin
        if pipe is not None:
            pipe.close()


def _lost(number: int, n_ranks: int, reason: str) -> RankLostError:
    return RankLostError(
        f"Process {number + 1} of the {n_ranks} that train the network was lost ({reason}): fit again, and with the "
        "same folder for checkpoints training goes on from the last one."
    )


def free_port() -> int:
    """Return a port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


def ranks_for(checkpoint: str | Path | None, *, on_cluster: bool) -> "Ranks":
    """Return as many ranks as the cluster in use has workers, 8 at most; without a folder to share, this process."""
    if checkpoint is None or not on_cluster:
        return Ranks(checkpoint=checkpoint)
    from distributed import default_client

    n_workers = len(default_client().nthreads())
    n_ranks = max(n for n in range(1, N_LANES + 1) if N_LANES % n == 0 and n <= max(n_workers, 1))
    return Ranks(n_ranks, checkpoint, run_on_workers)


@dataclass(eq=False)
class Ranks:
    """The processes that go on training a network from all rows, for all fits inside of a ``with``.

    Parameters
    ----------
    n_ranks : {1, 2, 4, 8}
        1: this process does it.
    checkpoint : path, optional
        Folder for the state of the training. If a fit is interrupted, the same fit goes on from the last state.
    launch : function
        `run_locally`; `run_on_workers` of a Dask cluster; ``run_with("srun", "--ntasks=4")`` or the like. For all but
        the first, `checkpoint` must be a folder that all of them see.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.datasets import make_grouped_classification
    >>> data = make_grouped_classification(500, random_state=0)
    >>> with Ranks(2):  # Of so few rows, one process has seen all.
    ...     model = DAFHClassifier(2, random_state=0).fit(data.X, data.y)
    """

    n_ranks: int = 1
    checkpoint: str | Path | None = None
    launch: Launch = run_locally
    _before: Token["Ranks | None"] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse a number of ranks that lanes cannot be divided among."""
        if self.n_ranks < 1 or N_LANES % self.n_ranks:
            raise InputError(f"n_ranks must be 1, 2, 4 or 8. Got {self.n_ranks} instead.")
        if self.launch is not run_locally and self.checkpoint is None:
            raise InputError("Ranks on other machines need a folder for checkpoints that all of them see.")

    @classmethod
    def in_use(cls) -> "Ranks":
        """Return those of the innermost ``with``; this process alone where there is none."""
        return _in_use.get() or Ranks()

    def __enter__(self) -> Self:
        self._before = _in_use.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._before is not None
        _in_use.reset(self._before)

    @property
    def checkpoint_folder(self) -> Path | None:
        """Folder for the state of the training."""
        return None if self.checkpoint is None else Path(self.checkpoint).absolute()

    @contextmanager
    def folder(self) -> Iterator[Path | None]:
        """Yield a folder for a job, which is deleted afterwards; None where no other process has to see it."""
        if self.n_ranks == 1:
            yield None
            return
        where = self.checkpoint_folder
        with ExitStack() as stack:
            try:
                if where is not None:
                    where.mkdir(parents=True, exist_ok=True)
                made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dafh-", dir=where)))
            except OSError as error:
                raise InputError(f"The folder {where} cannot be written: {error.strerror or error}.") from error
            yield made


_in_use: ContextVar[Ranks | None] = ContextVar("ranks", default=None)
