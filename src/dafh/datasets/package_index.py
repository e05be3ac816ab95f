"""Find an archive on the package index that the user's pip is configured for.

pip is asked for its settings through its public commands, `mousebender` reads the pages of the index (HTML or JSON),
and `urllib` of the standard library fetches them. The alternatives were tried and were worse for this one job:

- ``pip download`` parses the metadata of what it downloads, and pip 24.1 and newer refuse those of one of our packages
  (a malformed requirement). That does not matter here: the archive is only read, never installed.
- `unearth` knows indexes and credentials, but it logs HTTP errors instead of raising them, asks for passwords on the
  terminal, changes a class of its HTTP library when it is imported, and brings seven packages.
- `pypi-simple` reads neither folders nor ``file://`` indexes, and brings thirteen packages. `mousebender` brings one.
"""

import ast
import os
import re
import ssl
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from mousebender import simple

_TIMEOUT_SECONDS = 30
_HELP_WIDTH = "500"
# What a network, or a page that is no page of a package index, can lead to. Anything else is a mistake of ours.
_PAGE_ERRORS = (
    OSError, LookupError, ValueError, HTTPException, simple.UnsupportedMIMEType, simple.UnsupportedAPIVersion,
)  # fmt: skip


def find(project: str, filename: str) -> tuple[str, urllib.request.OpenerDirector]:
    """Return the address of an archive on the first index that has it, and an opener that may fetch it."""
    settings = _pip_settings()
    indexes = _indexes(settings)
    places = [_as_address(place) for place in settings.get("find-links", "").split()]
    opener = _opener(settings, [*places, *indexes])
    # Folders of archives first, as they cost nothing; then pages of links; then the indexes in the user's order.
    for place in places:
        if place.startswith("file:") and (path := _as_path(place) / filename).is_file():
            return path.as_uri(), opener
    pages = [place for place in places if not place.startswith("file:") or _as_path(place).is_file()]
    pages += [simple.create_project_url(index, project) for index in indexes]
    failures = []
    for page in pages:
        try:
            links = _links(page, project, opener)
        except _PAGE_ERRORS as error:
            # One dead mirror must not hide the others. The reason is kept for the message; it never holds a password.
            failures.append(" ".join(str(getattr(error, "reason", None) or error).split()))
            continue
        if filename in links:
            return links[filename], opener
        failures.append(f"no {filename} there")
    raise OSError(", ".join(dict.fromkeys(failures)) or "no package index is configured")


def _pip_settings() -> dict[str, str]:
    """Settings of pip from its files and from the environment, by option name."""
    settings: dict[str, str] = {}
    for line in _ask_pip("config", "list").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            # Lines are sorted by section: the environment (":env:") comes first, then "download", then "global". That
            # is pip's own order of precedence, so the first value of an option is the one that counts.
            settings.setdefault(key.split(".")[-1].strip(), str(ast.literal_eval(value)))
    return settings


def _indexes(settings: dict[str, str]) -> list[str]:
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on", "t", "y"):  # as pip
        return []
    main = settings.get("index-url") or os.environ.get("UV_DEFAULT_INDEX") or _default_index()
    return [_as_address(index) for index in [main, *settings.get("extra-index-url", "").split()] if index]


def _default_index() -> str:
    """Index that pip uses where none is configured, as its help text states; empty where there is no pip.

    `pip config list` leaves defaults out, and a vendor's pip may have another one than we would write down here.
    """
    stated = re.search(r"--index-url <url>\s.*?\(default\s+(\S+?)\)", _ask_pip("download", "--help"), re.DOTALL)
    return stated.group(1) if stated else ""


def _ask_pip(*arguments: str) -> str:
    """Output of a pip command, or nothing in an environment without pip."""
    command = [sys.executable, "-m", "pip", *arguments]
    # The help text is wrapped to the width of the terminal, which would cut an address in two.
    environment = os.environ | {"COLUMNS": _HELP_WIDTH}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS, env=environment
    )
    return done.stdout


def _opener(settings: dict[str, str], addresses: Iterable[str]) -> urllib.request.OpenerDirector:
    """Opener with the user's certificates, proxy, and the user names and passwords written into addresses."""
    passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
    for address in addresses:
        parts = urlsplit(address)
        if parts.username:
            # For the whole server, as archives are often outside the folder of the index, but for no other server.
            server = parts._replace(netloc=_server(parts), path="/", query="", fragment="").geturl()
            pair = unquote(parts.username), unquote(parts.password or "")
            passwords.add_password(None, server, *pair, is_authenticated=True)
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPBasicAuthHandler(passwords),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=settings.get("cert") or None)),
    ]
    if proxy := settings.get("proxy"):
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    return urllib.request.build_opener(*handlers)


def _links(page: str, project: str, opener: urllib.request.OpenerDirector) -> dict[str, str]:
    """Address of each file that a page of the simple index lists."""
    # An index in a folder has a page for each project, under the name that web servers give by themselves.
    in_folder = page.startswith("file:") and page.endswith("/")
    parts = urlsplit(f"{page}index.html" if in_folder else page)
    # `urllib` takes a user name for a part of the host's name; the opener knows the password already.
    address = parts._replace(netloc=_server(parts)).geturl()
    request = urllib.request.Request(address, headers={"Accept": simple.ACCEPT_SUPPORTED})
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as response, warnings.catch_warnings():
        # Names and addresses of files are the same in every version of the interface so far.
        warnings.simplefilter("ignore", simple.APIVersionWarning)
        text = response.read().decode("utf-8", "replace")
        details = simple.parse_project_details(text, response.headers.get_content_type(), project)
        return {file["filename"]: urljoin(response.url, file["url"]) for file in details["files"]}


def _server(parts: SplitResult) -> str:
    """Host and port of an address, without user name and password."""
    return parts.netloc.rpartition("@")[2]


def _as_address(place: str) -> str:
    """Address of an index or a folder; pip also takes a plain path."""
    return place if "://" in place else Path(place).expanduser().absolute().as_uri()


def _as_path(address: str) -> Path:
    return Path(urllib.request.url2pathname(urlsplit(address).path))
