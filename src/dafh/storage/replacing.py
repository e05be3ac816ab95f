"""Replace a file in one step, so that no half file is ever left."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dafh.exceptions import InputError
from dafh.storage.leftovers import CAN_HOLD, create_beside, sweep_files
from dafh.storage.nameless import nameless_file
from dafh.text import clipped

_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place at the end, and vanishes if anything fails.

    What a link points to is replaced, not the link, and keeps its rights. A device or a named pipe is written to as it
    is. What killed processes have left in the folder is removed.
    """
    check_writable(path)
    with _named_in_errors(path):
        if is_special(path):
            yield path
            return
        target = path.resolve()
        sweep_files(target.parent)
        # A result is an ordinary file, but one that only its owner may read must not become readable to all.
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        handle: int | None
        handle, temporary = create_beside(target, mode)
        try:
            yield temporary
            # Without this, a power cut soon afterwards can leave an empty file under the new name.
            os.fsync(handle)
            if not CAN_HOLD:  # Windows replaces no file that is open, and has no lock that would end here.
                os.close(handle)
                handle = None
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
            if handle is not None:
                os.close(handle)


@contextlib.contextmanager
def _named_in_errors(path: Path) -> Iterator[None]:
    """Say in errors of writing which file could not be written: the system knows the reason only."""
    try:
        yield
    except OSError as error:
        if error.errno in _OF_WRITING and error.filename is None:
            error.filename = str(path)
        raise


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written to, before the work and not after it."""
    try:
        folder = path.resolve().parent
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a file to write to.")
        if not folder.is_dir():
            raise InputError(f"There is no folder {clipped(folder, 300)} to write {clipped(path.name)} to.")
        if os.path.lexists(path) and not os.access(path, os.W_OK) and path.exists():
            raise InputError(f"{path} cannot be written: no permission.")
        # Asking for permission is not enough: file systems have their own reasons.
        if not is_special(path):
            nameless_file(folder).close()
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{clipped(path, 300)} cannot be written: {_reason(error)}.") from error


def is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder, such as /dev/null: it must not be replaced."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _reason(error: Exception) -> str:
    """Say in a few words why a path cannot be used."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT:  # The folder exists, or the path would have been refused before.
        return "the working folder no longer exists"
    if number == errno.ELOOP or isinstance(error, RuntimeError):  # Python 3.12 and older raise their own error.
        return "its symbolic links form a circle"
    if number is None:
        return "it has letters that no path can have"
    return os.strerror(number).lower()
