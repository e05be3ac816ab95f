"""Temporary files without a name: whatever ends the process, nothing is left behind."""

import os
import tempfile
from pathlib import Path
from typing import IO


def nameless_file(folder: Path | None = None) -> IO[bytes]:
    """Open a file without a name in a folder; by default, where temporary files are (TMPDIR)."""
    return tempfile.TemporaryFile(prefix="dafh-", dir=temporary_folder() if folder is None else folder)


def temporary_folder() -> Path:
    """Folder of temporary files, as Python finds it.

    Python itself tries a folder by writing a file with a name there, and a kill in that moment leaves the file.
    """
    places = (tempfile.tempdir, *(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")), "/tmp")
    for place in places:
        if isinstance(place, str) and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
            return Path(place).absolute()
    return Path(tempfile.gettempdir())
