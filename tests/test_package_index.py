"""Archives from whatever pip is configured for: proxies, plain paths, pages of links, and indexes that fail."""

import http.server
import json
import os
import threading
from base64 import b64encode
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dafh.datasets import package_index

WHEEL = "carrier-1.0-py3-none-any.whl"
DEAD = "http://127.0.0.1:9"


@pytest.fixture
def alone(monkeypatch):
    """No setting of this machine: no proxy, no index, no file of pip's."""
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY")
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_")) or name in names]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def pip_settings(alone, monkeypatch):
    """Settings as `pip config list` prints them; asking the real pip every time would take half a second each."""

    def use(**settings):
        lines = [f":env:.{name.replace('_', '-')}={value!r}" for name, value in settings.items()]
        answer = SimpleNamespace(stdout="\n".join(lines))
        monkeypatch.setattr(package_index.subprocess, "run", lambda *arguments, **options: answer)

    return use


@contextmanager
def serve(answer):
    """Serve what `answer` returns for a request: a status, a type and a body; yield the address and the requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, dict(self.headers)))
            status, kind, body = answer(self.path)
            self.send_response(status)
            if kind:
                self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


def page_of(*links):
    return "<!DOCTYPE html><html><body>" + "".join(f'<a href="{link}">file</a>' for link in links) + "</body></html>"


def always(body, status=200, kind="text/html"):
    return lambda path: (status, kind, body)


def make_folder(folder):
    """An index in a folder: one project with one archive, which is empty."""
    (folder / "carrier").mkdir(parents=True)
    (folder / "carrier" / WHEEL).touch()
    (folder / "carrier" / "index.html").write_text(page_of(WHEEL))
    return folder


# ---- folders and paths ----


def test_an_index_may_be_a_plain_path(pip_settings, tmp_path):
    pip_settings(index_url=str(make_folder(tmp_path / "index")))
    url, opener = package_index.find("carrier", WHEEL)
    assert url == (tmp_path / "index" / "carrier" / WHEEL).as_uri()
    opener.open(url).close()


def test_a_path_may_start_at_home_and_hold_letters_of_any_language(pip_settings, tmp_path, monkeypatch):
    make_folder(tmp_path / "größe")
    monkeypatch.setenv("HOME", str(tmp_path))
    pip_settings(no_index="true", find_links="~/größe/carrier")
    url, opener = package_index.find("carrier", WHEEL)
    opener.open(url).close()


def test_names_of_projects_are_normalised_as_on_every_index(pip_settings, tmp_path):
    make_folder(tmp_path / "index")
    pip_settings(index_url=str(tmp_path / "index"))
    assert package_index.find("Carrier", WHEEL)[0].endswith(f"/carrier/{WHEEL}")


def test_a_folder_of_archives_is_asked_before_an_index(pip_settings, tmp_path):
    make_folder(tmp_path / "index")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / WHEEL).touch()
    pip_settings(index_url=str(tmp_path / "index"), find_links=str(tmp_path / "links"))
    assert package_index.find("carrier", WHEEL)[0] == (tmp_path / "links" / WHEEL).as_uri()


def test_a_folder_without_the_archive_leaves_the_question_to_the_index(pip_settings, tmp_path):
    make_folder(tmp_path / "index")
    (tmp_path / "links").mkdir()
    pip_settings(index_url=str(tmp_path / "index"), find_links=str(tmp_path / "links"))
    assert "/index/" in package_index.find("carrier", WHEEL)[0]


def test_a_page_of_links_may_be_a_file(pip_settings, tmp_path):
    (tmp_path / "links.html").write_text(page_of(f"sub/{WHEEL}"))
    pip_settings(no_index="1", find_links=str(tmp_path / "links.html"))
    assert package_index.find("carrier", WHEEL)[0] == (tmp_path / "sub" / WHEEL).as_uri()


@pytest.mark.parametrize("no_index", ["1", "true", "YES", "on", "y", "T"])
def test_every_yes_that_pip_takes_switches_indexes_off(pip_settings, tmp_path, no_index):
    pip_settings(no_index=no_index, index_url=str(make_folder(tmp_path / "index")))
    with pytest.raises(OSError, match="no package index is configured"):
        package_index.find("carrier", WHEEL)


@pytest.mark.parametrize("no_index", ["0", "false", "no", "off"])
def test_a_no_leaves_indexes_on(pip_settings, tmp_path, no_index):
    pip_settings(no_index=no_index, index_url=str(make_folder(tmp_path / "index")))
    assert package_index.find("carrier", WHEEL)[0].endswith(WHEEL)


# ---- over HTTP ----


def test_a_page_of_links_may_be_on_the_web_and_the_first_one_that_has_the_archive_counts(pip_settings):
    with serve(lambda path: (200, "text/html", page_of(WHEEL if "second" in path else "other-1.0.zip"))) as (
        web,
        asked,
    ):
        pip_settings(no_index="1", find_links=f"{web}/first/ {web}/second/")
        assert package_index.find("carrier", WHEEL)[0] == f"{web}/second/{WHEEL}"
    assert [path for path, _ in asked] == ["/first/", "/second/"]


def test_the_index_of_a_project_is_asked_by_its_name_and_for_both_formats(pip_settings):
    with serve(always(page_of(f"../../files/{WHEEL}#sha256=00"))) as (web, asked):
        pip_settings(index_url=f"{web}/simple/")
        assert package_index.find("carrier", WHEEL)[0].split("#")[0] == f"{web}/files/{WHEEL}"
    ((path, headers),) = asked
    assert path == "/simple/carrier/"
    assert "application/vnd.pypi.simple.v1+json" in headers["Accept"]
    assert "text/html" in headers["Accept"]


def test_a_proxy_of_pip_is_used_and_given_its_password(pip_settings):
    with serve(always(page_of(WHEEL))) as (proxy, asked):
        pip_settings(index_url="http://index.invalid/simple", proxy=proxy.replace("//", "//me:s3cret@"))
        assert package_index.find("carrier", WHEEL)[0] == f"http://index.invalid/simple/carrier/{WHEEL}"
    ((path, headers),) = asked
    assert path == "http://index.invalid/simple/carrier/"  # A proxy is asked for whole addresses.
    assert headers["Proxy-Authorization"] == f"Basic {b64encode(b'me:s3cret').decode()}"
    assert "Authorization" not in headers


def test_a_proxy_of_the_environment_is_used_where_pip_names_none(pip_settings, monkeypatch):
    with serve(always(page_of(WHEEL))) as (proxy, asked):
        pip_settings(index_url="http://index.invalid/simple")
        monkeypatch.setenv("http_proxy", proxy)
        package_index.find("carrier", WHEEL)
    assert len(asked) == 1


def test_the_archive_comes_through_the_same_proxy(pip_settings):
    with serve(lambda path: (200, "text/html", "archive" if path.endswith("whl") else page_of(WHEEL))) as (proxy, _):
        pip_settings(index_url="http://index.invalid/simple", proxy=proxy)
        url, opener = package_index.find("carrier", WHEEL)
        with opener.open(url) as response:
            assert response.read() == b"archive"


def test_a_dead_proxy_is_the_reason_that_is_given(pip_settings):
    pip_settings(index_url="http://index.invalid/simple", proxy=DEAD)
    with pytest.raises(OSError, match="Connection refused"):
        package_index.find("carrier", WHEEL)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (always("gone", status=404), "Not Found"),
        (always("down", status=503), "Service Unavailable"),
        (always("a picture", kind="image/png"), "image/png"),
        (always("{}", kind="application/vnd.pypi.simple.v1+json"), "."),
        (always("not json", kind="application/vnd.pypi.simple.v1+json"), "Expecting value"),
        (always(page_of("other.whl")), f"no {WHEEL} there"),
        (always("", kind=None), "."),
    ],
)
def test_an_index_that_fails_is_one_reason_and_no_traceback(pip_settings, answer, reason):
    with serve(answer) as (web, _):
        pip_settings(index_url=web)
        with pytest.raises(OSError, match=reason) as caught:
            package_index.find("carrier", WHEEL)
    assert "\n" not in str(caught.value)


def test_a_failing_index_does_not_hide_the_next_one_and_all_reasons_are_given(pip_settings, tmp_path):
    with serve(always("down", status=503)) as (web, _):
        pip_settings(index_url=web, extra_index_url=str(make_folder(tmp_path / "index")))
        assert package_index.find("carrier", WHEEL)[0].startswith("file:")
        pip_settings(index_url=web, extra_index_url=DEAD)
        with pytest.raises(OSError, match=r"Service Unavailable, .*Connection refused"):
            package_index.find("carrier", WHEEL)


def test_a_newer_version_of_the_interface_is_read_as_far_as_it_is_known(pip_settings):
    page = {"meta": {"api-version": "1.999"}, "name": "carrier", "versions": ["1.0"]}
    page["files"] = [{"filename": WHEEL, "url": f"/x/{WHEEL}", "hashes": {}, "new-field": 1}]
    with serve(always(json.dumps(page), kind="application/vnd.pypi.simple.v1+json")) as (web, _):
        pip_settings(index_url=web)
        assert package_index.find("carrier", WHEEL)[0] == f"{web}/x/{WHEEL}"


def test_a_certificate_that_is_not_there_is_explained(pip_settings, tmp_path):
    pip_settings(index_url=DEAD, cert=str(tmp_path / "missing.pem"))
    with pytest.raises(OSError, match="No such file"):
        package_index.find("carrier", WHEEL)


# ---- with the real pip ----


def test_settings_for_downloads_override_those_for_everything(alone, tmp_path, monkeypatch):
    for name in ("all", "downloads"):
        make_folder(tmp_path / name)
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nindex-url = {tmp_path}/all\n[download]\nindex-url = {tmp_path}/downloads\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert "/downloads/" in package_index.find("carrier", WHEEL)[0]


def test_several_extra_indexes_stand_on_lines_of_pips_file(alone, tmp_path, monkeypatch):
    make_folder(tmp_path / "last")
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nindex-url = {DEAD}\nextra-index-url =\n    {tmp_path}/none\n    {tmp_path}/last\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert "/last/" in package_index.find("carrier", WHEEL)[0]


def test_pip_hands_on_a_proxy_and_a_plain_path_as_they_were_written(alone, tmp_path, monkeypatch):
    (tmp_path / "links.html").write_text(page_of("other.zip"))
    with serve(always(page_of(WHEEL))) as (proxy, asked):
        monkeypatch.setenv("PIP_PROXY", proxy)
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links.html"))
        monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
        assert package_index.find("carrier", WHEEL)[0].startswith("http://index.invalid/")
    assert len(asked) == 1


def test_without_pip_and_without_settings_there_is_no_index(alone, monkeypatch):
    nothing = SimpleNamespace(stdout="")  # What `python -m pip` prints where there is no pip.
    monkeypatch.setattr(package_index.subprocess, "run", lambda *arguments, **options: nothing)
    with pytest.raises(OSError, match="no package index is configured"):
        package_index.find("carrier", WHEEL)
