"""Temporary files and folders that are known by their names and held by locks, and what killed processes left of them.

A process holds a lock on whatever it has not finished. The system gives the lock back when the process ends, however
it ends. So whatever bears our name and can be locked belongs to nobody, and the next run removes it. The alternatives
were worse: a process number in the name says nothing in another container or on another machine, and may be in use
again; an age is too short for a long run or too long for the next one.
"""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dafh.storage.nameless import temporary_folder

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, what a killed process leaves stays.
    fcntl = None  # type: ignore[assignment]

CAN_HOLD = fcntl is not None
"""Whether files can be held by locks that end with their process."""
PREFIX = ".dafh-part-"
"""How the names of unfinished files begin."""
FOLDER_PREFIX = "dafh-job-"
"""How the names of folders begin that processes share while they work."""
_OWNER = "owner"
# Enough to recognise the file by, and short enough for any file system in any alphabet. The end is kept, because
# libraries choose the format of a file by it.
_LETTERS_OF_NAME = 40


def create_beside(path: Path, mode: int | None) -> tuple[int, Path]:
    """Create an empty file in the folder of another one, and hold it; return its handle, to be closed, and its path.

    It has the rights given, or those of any new file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        made = path.with_name(f"{PREFIX}{secrets.token_hex(4)}-{path.name[-_LETTERS_OF_NAME:]}")
        try:
            handle = os.open(made, flags, 0o666)
        except FileExistsError:
            continue
        if _hold(handle):
            if mode is not None:
                os.chmod(made, mode)
            return handle, made
        os.close(handle)


def sweep_files(folder: Path) -> None:
    """Remove unfinished files whose process is gone."""
    if not CAN_HOLD:
        return
    for path in _named(folder, PREFIX):
        handle = _take(path)
        if handle is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(handle)


@contextlib.contextmanager
def shared_folder(where: Path | None) -> Iterator[Path]:
    """Yield a folder for a job, which is deleted afterwards; those of killed processes are deleted, too.

    Without `where`, it is made where temporary files are.
    """
    where = temporary_folder() if where is None else where
    where.mkdir(parents=True, exist_ok=True)
    for old in _named(where, FOLDER_PREFIX):
        _sweep_folder(old)
    made, handle = _create_folder(where)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(handle)


def _create_folder(where: Path) -> tuple[Path, int]:
    while True:
        made = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=where))
        try:
            handle = os.open(made / _OWNER, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:  # Taken for an empty one that was left, in the moment between the two lines.
            continue
        if _hold(handle):
            return made, handle
        os.close(handle)


def _sweep_folder(path: Path) -> None:
    if not CAN_HOLD:
        return
    with contextlib.suppress(OSError):
        os.rmdir(path)  # Only if it is empty: its process was killed before it could hold it.
    handle = _take(path / _OWNER)
    if handle is not None:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _hold(handle: int) -> bool:
    """Lock a file that was just made; False if somebody else has found and removed it in the moment before."""
    if not CAN_HOLD:
        return True
    with contextlib.suppress(OSError):  # A file system without locks: nobody can take it from us either.
        fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0


def _take(path: Path) -> int | None:
    """Lock a file of ours whose process is gone, and return its handle; None if it is in use, or of another kind."""
    try:
        # No link is followed, and a pipe that bears the name keeps nobody waiting.
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and about.st_nlink:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
    except OSError:
        pass  # In use, or on a file system without locks.
    os.close(handle)
    return None


def _named(folder: Path, prefix: str) -> list[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.name.startswith(prefix)]
    return []
