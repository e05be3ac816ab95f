"""Commands in odd surroundings: each ends with its exit code and at most one sentence, and no file is harmed."""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from killing.commands import run_here

OLD = "old content\n"
_NOBODY = 65534
_LONG = "n" * 300


@dataclass(frozen=True)
class Surroundings:
    """What is odd, what is called, and how it has to end."""

    name: str
    arguments: tuple[str, ...]
    code: int
    prepare: object = None
    """Called in the child, in the folder, before the command."""
    root: bool = False
    """Whether only root can prepare it."""


SCORE = ("predict", "model.dafh", "people.csv")
WATCH = ("watch", "model.dafh", "people.csv", "--state")
FIT = ("fit", "people.csv", "--target", "hired")
TO_FILE = (*SCORE, "--out", "scored.csv")
AUDIT = ("audit", "model.dafh", "model.test.parquet")


# ---- what is odd ----


def device(name, number):
    return lambda: os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, number))


def full(number):
    return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def closed(*numbers):
    def prepare():
        for number in numbers:
            os.close(number)
            # As Python has it where the stream is closed when it starts.
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)

    return prepare


def broken_pipe():
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(reading)


def variables(**values):
    def prepare():
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None

    return prepare


def nothing_set():
    os.environ.clear()
    tempfile.tempdir = None


def ascii_only():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")


def deleted_folder():
    gone = Path("gone").absolute()
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


def as_nobody(*, folder_rights=0o777, file_rights=0o666):
    def prepare():
        Path("scored.csv").chmod(file_rights)
        Path.cwd().chmod(folder_rights)
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)

    return prepare


def nobody_without_home():
    as_nobody()()
    os.setuid(_NOBODY)
    variables(HOME=None, XDG_CACHE_HOME=None)()


def linked(target):
    def prepare():
        Path("link.csv").symlink_to(target)

    return prepare


CASES = [
    Surroundings("a device", (*SCORE, "--out", "null.csv"), 0, device("null.csv", 3), root=True),
    Surroundings("a full device", (*SCORE, "--out", "full.csv"), 2, device("full.csv", 7), root=True),
    Surroundings("a full device for Parquet", (*SCORE, "--out", "f.parquet"), 2, device("f.parquet", 7), root=True),
    Surroundings("a device for a model", (*FIT, "--test-size", "0.2", "--out", "null"), 2, device("null", 3), True),
    Surroundings("a device for a state", (*WATCH, "null"), 2, device("null", 3), root=True),
    Surroundings("a link", (*SCORE, "--out", "link.csv"), 0, linked("scored.csv")),
    Surroundings("a link to nothing", (*SCORE, "--out", "link.csv"), 0, linked("new.csv")),
    Surroundings("a link to itself", (*SCORE, "--out", "link.csv"), 2, linked("link.csv")),
    Surroundings("a folder", (*SCORE, "--out", "folder.csv"), 2, lambda: Path("folder.csv").mkdir()),
    Surroundings("a missing folder", (*SCORE, "--out", "none/scored.csv"), 2),
    Surroundings("a name that is too long", (*SCORE, "--out", f"{_LONG}.csv"), 2),
    Surroundings("a path that is too long", (*SCORE, "--out", "n/" * 3000 + "x.csv"), 2),
    Surroundings("a model whose test rows would have too long a name",
                 (*FIT, "--test-size", "0.2", "--out", f"{'n' * 245}.dafh"), 2),
    Surroundings("a table with a name that is too long", ("predict", "model.dafh", _LONG), 2),
    Surroundings("a model with a name that is too long", ("show", _LONG), 2),
    Surroundings("a state with a name that is too long", (*WATCH, _LONG), 2),
    Surroundings("full standard output", SCORE, 2, full(1)),
    Surroundings("full standard output for help", ("--help",), 2, full(1)),
    Surroundings("full standard output for help of a command", ("fit", "--help"), 2, full(1)),
    Surroundings("full standard output for an audit", AUDIT, 2, full(1)),
    Surroundings("full standard output for JSON", ("show", "model.dafh", "--json"), 2, full(1)),
    Surroundings("full standard output for a list", ("data", "list"), 2, full(1)),
    Surroundings("full standard error", TO_FILE, 0, full(2)),
    Surroundings("full standard error and a mistake", ("predict",), 2, full(2)),
    Surroundings("full standard error and bad input", ("show", "people.csv"), 2, full(2)),
    Surroundings("a closed pipe", SCORE, 141, broken_pipe),
    Surroundings("a closed pipe for help", ("--help",), 141, broken_pipe),
    Surroundings("closed standard input", TO_FILE, 0, closed(0)),
    Surroundings("closed standard input to read from", ("predict", "model.dafh", "-"), 2, closed(0)),
    Surroundings("closed standard output", TO_FILE, 0, closed(1)),
    Surroundings("closed standard output to write to", SCORE, 2, closed(1)),
    Surroundings("closed standard error", TO_FILE, 0, closed(2)),
    Surroundings("all streams closed", TO_FILE, 0, closed(0, 1, 2)),
    Surroundings("no variable set", TO_FILE, 0, nothing_set),
    Surroundings("no folder for temporary files", TO_FILE, 0, variables(TMPDIR="/none", TEMP=None, TMP=None)),
    Surroundings("the C locale", AUDIT, 0, variables(LC_ALL="C", LANG="C")),
    Surroundings("the POSIX locale", AUDIT, 0, variables(LC_ALL="POSIX", LANG=None)),
    Surroundings("a locale that does not exist", AUDIT, 0, variables(LC_ALL="xx_YY.KOI8-R", LANG="nonsense")),
    Surroundings("streams that take ASCII only", AUDIT, 0, ascii_only),
    Surroundings("a terminal of one column", AUDIT, 0, variables(COLUMNS="1", LINES="1")),
    Surroundings("one column for help", ("fit", "--help"), 0, variables(COLUMNS="1")),
    Surroundings("one column for a list", ("data", "list"), 0, variables(COLUMNS="1")),
    Surroundings("no columns", ("data", "list"), 0, variables(COLUMNS="0", TERM="dumb")),
    Surroundings("a deleted working folder", TO_FILE, 2, deleted_folder),
    Surroundings("a deleted working folder and help", ("--help",), 0, deleted_folder),
    Surroundings("a folder that is read-only", TO_FILE, 2, as_nobody(folder_rights=0o555), root=True),
    Surroundings("a file that is read-only", TO_FILE, 2, as_nobody(file_rights=0o444), root=True),
    Surroundings("a state in a folder that is read-only", (*WATCH, "watch.db"), 2, as_nobody(folder_rights=0o555),
                 root=True),
    Surroundings("a user without a home", ("data", "list"), 0, nobody_without_home, root=True),
]  # fmt: skip


@dataclass
class Ended:
    """How a command has ended in its surroundings."""

    name: str
    expected: int
    code: int
    sentences: list[str]
    wrong: list[str]


def try_surroundings(folder):
    """Run every case in a child of this process."""
    start = Path(folder) / "start"
    start.mkdir(parents=True)
    from command_line import people

    people().to_csv(start / "people.csv", index=False)
    run_here(start, *FIT, "--sensitive", "sex", "--test-size", "0.3", "--by", "rules")
    run_here(start, "data", "list")  # Imports what a child without rights may not be able to read.
    run_here(start, *SCORE, "--out", "good.csv")
    (start / "scored.csv").write_text(OLD)
    return [_try(case, start) for case in CASES if not case.root or os.geteuid() == 0]


def _try(case, start):
    with tempfile.TemporaryDirectory() as aside:
        # Others than root must be able to reach the folder.
        Path(aside).chmod(0o777)
        work = Path(aside) / "work"
        shutil.copytree(start, work)
        pid = os.fork()
        if not pid:
            os._exit(_child(case, work, Path(aside)))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        errors = Path(aside, "2").read_text()
        sentences = [line for line in errors.splitlines() if line.startswith(("dafh: ", "Error: "))]
        return Ended(case.name, case.code, code, sentences, list(_wrong(case, work, code, errors, sentences)))


def _child(case, work, aside):
    from dafh.cli import main

    code = 99
    with contextlib.suppress(BaseException):
        for number in (1, 2):
            os.dup2(os.open(aside / str(number), os.O_CREAT | os.O_WRONLY, 0o666), number)
        os.chdir(work)
        if case.prepare is not None:
            case.prepare()
        try:
            main(list(case.arguments), prog_name="dafh")
        except SystemExit as end:
            code = end.code or 0
            # What Python does at its end: with something left in a buffer that cannot be written, the code is 120.
            for stream in (sys.stdout, sys.stderr):
                try:
                    if stream is not None:
                        stream.flush()
                except OSError:
                    code = 120
    return code


def _wrong(case, work, code, errors, sentences):
    """Everything that is not as it should be."""
    if code != case.code:
        yield f"exit code {code} instead of {case.code}: {errors[-300:]!r}"
    if "Traceback" in errors or "unexpected" in errors:
        yield errors[-300:]
    said = "full standard error" not in case.name
    if len(sentences) != (case.code == 2 and said):
        yield f"{len(sentences)} sentences: {errors[-300:]!r}"
    scored, good = (work / "scored.csv").read_text(), (work / "good.csv").read_text()
    if scored not in ((OLD, good) if case.code == 0 else (OLD,)):
        yield "scored.csv is neither old nor new"
    if case.code == 0 and case.arguments[-2:] == TO_FILE[-2:] and scored != good:
        yield "scored.csv is not new"
    for path in work.iterdir():
        if path.name.startswith((".dafh-part", "~")):
            yield f"{path.name} is left"
    link = work / "link.csv"
    if case.name.startswith("a link") and not (link.is_symlink() and (code or link.read_text() == good)):
        yield "the link is no link, or its target is not new"
    for name in ("null.csv", "full.csv", "f.parquet", "null"):
        if (work / name).exists() and not (work / name).is_char_device():
            yield f"{name} is no device any more"
