"""Every source of raw data, working and failing, and what is left behind."""

import hashlib
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import platformdirs
import pytest

from dafh.datasets import package_index, sources
from dafh.datasets.registry import DATASETS, Dataset, RawFile, Wheel
from dafh.exceptions import DataNotFoundError

CONTENT = b"age;y\n30;1\n" * 1000


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


@pytest.fixture(scope="module")
def publisher():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


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
        ("wrong", "what it serves is another file"),
        ("cut", "the transfer ended|IncompleteRead"),
        ("missing", "HTTP 404"),
        ("slow", "timed out"),
    ],
)
def test_a_failing_publisher_leaves_nothing_behind(publisher, alone, tmp_path, monkeypatch, behaviour, reason):
    monkeypatch.setattr(sources, "_TIMEOUT_SECONDS", 0.5)
    with pytest.raises(DataNotFoundError, match=reason) as caught:
        sources.obtain(raw_file(f"{publisher}/{behaviour}"), cache=tmp_path)
    assert os.listdir(tmp_path) == []
    assert "\n" not in str(caught.value)


def test_the_error_names_the_file_and_the_four_ways_to_supply_it(alone, tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        sources.obtain(raw_file("http://127.0.0.1:9/x"), cache=tmp_path)
    for part in ("raw.csv", "DAFH_DATA", str(tmp_path), "http://127.0.0.1:9/x", "package index with carrier 1.0"):
        assert part in str(caught.value)


def test_the_network_is_not_touched_when_the_file_is_there(alone, tmp_path, monkeypatch):
    (tmp_path / "raw.csv").write_bytes(CONTENT)
    monkeypatch.setattr(sources.urllib.request, "urlopen", lambda *_, **__: pytest.fail("network touched"))
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
    with pytest.raises(DataNotFoundError, match=r"mine/raw.csv is another file \(its SHA-256 differs\)"):
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
    stale, fresh = tmp_path / "old.part", tmp_path / "new.part"
    stale.touch()
    fresh.touch()
    os.utime(stale, (0, 0))
    sources.obtain(raw_file(f"{publisher}/right"), cache=tmp_path)
    assert not stale.exists()
    assert fresh.exists()  # may belong to a process that is still at work


def make_index(folder, members):
    """A simple index in a folder, with one wheel."""
    (folder / "carrier").mkdir(parents=True)
    with zipfile.ZipFile(folder / "carrier" / "carrier-1.0-py3-none-any.whl", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    page = '<a href="carrier-0.9-py3-none-any.whl">old</a><a href="carrier-1.0-py3-none-any.whl#sha256=0">new</a>'
    (folder / "carrier" / "index.html").write_text(page)
    return folder.as_uri()


@pytest.fixture
def index_settings(monkeypatch):
    def use(**settings):
        monkeypatch.setattr(package_index, "_pip_settings", lambda: settings)

    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    return use


def test_the_index_of_pip_s_settings_is_used(index_settings, tmp_path):
    index_settings(**{"index-url": make_index(tmp_path / "index", {"a/raw.csv": CONTENT})})
    file = raw_file((tmp_path / "nowhere").as_uri())
    assert sources.obtain(file, cache=tmp_path / "cache").read_bytes() == CONTENT


def test_extra_indexes_and_folders_of_archives_are_used_too(index_settings, tmp_path):
    index = make_index(tmp_path / "index", {"a/raw.csv": CONTENT})
    empty = (tmp_path / "empty").as_uri()
    file = raw_file((tmp_path / "nowhere").as_uri())
    index_settings(**{"index-url": empty, "extra-index-url": f"{empty} {index}"})
    assert sources.obtain(file, cache=tmp_path / "first").is_file()
    index_settings(**{"index-url": empty, "find-links": str(tmp_path / "index" / "carrier")})
    assert sources.obtain(file, cache=tmp_path / "second").is_file()


def test_one_archive_serves_all_the_files_it_carries(index_settings, tmp_path, monkeypatch):
    index_settings(**{"index-url": make_index(tmp_path / "index", {"a/raw.csv": CONTENT, "a/other.csv": b"x"})})
    file = raw_file((tmp_path / "nowhere").as_uri())
    other = raw_file(file.url, b"x", name="other.csv", members=("a/other.csv",))
    both = Dataset("both", "", (file, other), 1, "", "", "", "", ())
    monkeypatch.setattr(sources, "DATASETS", {"both": both})
    sources.obtain(file, cache=tmp_path / "cache")
    assert (tmp_path / "cache" / "other.csv").read_bytes() == b"x"


def test_an_archive_without_the_file_is_an_explained_failure(index_settings, tmp_path):
    index_settings(**{"index-url": make_index(tmp_path / "index", {"b/raw.csv": CONTENT})})
    with pytest.raises(DataNotFoundError, match=r"no item named 'a/raw.csv'"):
        sources.obtain(raw_file((tmp_path / "nowhere").as_uri()), cache=tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_password_in_the_index_s_address_goes_into_a_header_and_nowhere_else(index_settings, tmp_path):
    request = package_index._request("http://host/x.whl", credentials_of="http://me:s%40cret@host/simple")
    assert request.full_url == "http://host/x.whl"
    assert request.get_header("Authorization") == "Basic bWU6c0BjcmV0"
    elsewhere = package_index._request("http://files/x.whl", credentials_of="http://me:secret@host/simple")
    assert not elsewhere.has_header("Authorization")
    index_settings(**{"index-url": "http://me:s3cret@127.0.0.1:9/simple"})
    with pytest.raises(DataNotFoundError) as caught:
        sources.obtain(raw_file((tmp_path / "nowhere").as_uri()), cache=tmp_path / "cache")
    assert "s3cret" not in str(caught.value)


def test_pip_s_settings_come_from_its_files_and_its_environment(monkeypatch, tmp_path):
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = http://file/simple\nextra-index-url =\n    http://a/simple\n    http://b/simple\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    settings = package_index._pip_settings()
    assert package_index._indexes(settings) == ["http://file/simple", "http://a/simple", "http://b/simple"]
    monkeypatch.setenv("PIP_INDEX_URL", "http://environment/simple")
    assert package_index._indexes(package_index._pip_settings())[0] == "http://environment/simple"


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, id=file.name) for dataset in DATASETS.values() for file in dataset.files],
)
def test_the_real_package_index_has_every_file(file, monkeypatch):
    """Over the network the first time, from a folder of its own in the user's cache after that."""
    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr(sources, "_from_publisher", lambda *_: (_ for _ in ()).throw(OSError("not asked")))
    cache = platformdirs.user_cache_path("dafh") / "package-index-test"
    path, problem = cache / file.name, ""
    try:
        path = sources.obtain(file, cache=cache)
    except DataNotFoundError as error:
        problem = str(error)
    # An index that answers, but with something else, is a failure and not a reason to skip.
    assert not any(sign in problem for sign in ("another file", "no item named", "no such file")), problem
    if problem:
        pytest.skip(f"no package index can be reached from here: {problem}")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


def test_bank_is_rebuilt_to_the_byte_in_the_publisher_s_format():
    parts = [",age,job,deposit\n2,30,admin.,no\n", ",age,job,deposit\n1,-5,blue-collar,yes\n10,7,x,no\n"]
    expected = b'"age";"job";"y"\n-5;"blue-collar";"yes"\n30;"admin.";"no"\n7;"x";"no"\n'
    assert sources.rebuild_bank(parts) == expected


def test_without_network_and_data_the_command_says_one_sentence_and_exits_with_2(tmp_path):
    dead = "http://127.0.0.1:9"
    environment = os.environ | {
        "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{dead}/simple", "PIP_FIND_LINKS": "", "http_proxy": dead, "https_proxy": dead,
        "no_proxy": "", "NO_PROXY": "",
    }  # fmt: skip
    environment.pop("DAFH_DATA", None)
    command = [sys.executable, "-m", "dafh", "data", "fetch", "german"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("dafh: german.data is not here and could not be fetched")
    assert "DAFH_DATA" in line
    assert list((tmp_path / "cache" / "dafh" / "data").iterdir()) == []
