"""Files that are written whole or not at all: a temporary file in the same folder takes the place of the old one.

Every command writes through `replacing` or through SQLite. A process that is killed leaves the old file or the new one,
and perhaps a temporary file whose name begins with ``.dafh-``.
"""

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dafh.exceptions import InputError
from dafh.text import clipped

_FULL_OR_READ_ONLY = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place at the end, and vanishes if anything fails.

    What a link points to is replaced, not the link, and keeps its rights. A device or a named pipe is written to as it
    is.
    """
    check_writable(path)
    target = path.resolve()
    # Libraries choose the format of a file by the end of its name; 40 letters of any alphabet are short enough.
    temporary = target.with_name(f".dafh-{secrets.token_hex(4)}-{target.name[-40:]}")
    try:
        if is_special(path):
            yield path
            return
        temporary.touch()
        if target.exists():  # A file that only its owner may read must not become readable to all.
            shutil.copymode(target, temporary)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())  # Otherwise a power cut can leave an empty file under the new name.
        os.replace(temporary, target)
    except OSError as error:
        if error.errno in _FULL_OR_READ_ONLY and error.filename is None:
            error.filename = str(path)  # The system gives the reason only.
        raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written to, before the work and not after it."""
    try:
        folder = path.resolve().parent
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a file to write to.")
        if not folder.is_dir():
            raise InputError(f"There is no folder {clipped(folder, 300)} to write {clipped(path.name)} to.")
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(f"{path} cannot be written: no permission.")
        if not is_special(path):  # Asking for permission is not enough: file systems have their own reasons.
            tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = str(error.strerror or error).lower()
        raise InputError(f"{clipped(path, 300)} cannot be written: {reason}.") from error


def is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder, such as /dev/null: it must not be replaced."""
    return path.exists() and not (path.is_file() or path.is_dir())
