"""Kill commands within their writes, and let them find the disk full; then run them again, and compare.

``python -m killing --kills 100 --full 10`` tries every command and prints what became of its files: `make kill`.
All trials are children of one process by fork, so that imports are paid for once.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from killing import faults
from killing.commands import COMMANDS, cluster, content, is_whole
from killing.environments import try_surroundings
from killing.records import differences, keep

SEED = 0
RECORDS = Path(".kill").absolute()
"""Where it is kept why a trial went wrong."""


@dataclass
class Count:
    """What became of the trials of one command."""

    command: str
    changes: int = 0
    """Calls that change files, in an undisturbed run."""
    kills: int = 0
    lost: int = 0
    partial: int = 0
    mixed: int = 0
    """Files of two runs side by side, and nothing says so."""
    not_resumed: int = 0
    stray: int = 0
    full: int = 0
    full_wrong: int = 0
    """Runs on a full disk that did not end with exit code 2, one sentence, and the old files."""
    reasons: list[str] = field(default_factory=list)

    def note(self, what, moment, detail):
        setattr(self, what, getattr(self, what) + 1)
        self.reasons.append(f"{self.command}, {what} at {moment}: {detail}")
        print(self.reasons[-1], file=sys.stderr, flush=True)


# ---- one run ----


@dataclass
class Run:
    """How a child ended."""

    code: int
    errors: str
    output: str = ""
    changes: int = 0
    n_bytes: int = 0


def run(command, folder, fault=(faults.COUNT, 0)):
    """Run a command in a folder, in a child of this process, with a fault below the folder."""
    address = cluster() if "{cluster}" in command.arguments else None
    arguments = [argument.format(cluster=address, folder=folder) for argument in command.arguments]
    with tempfile.TemporaryDirectory() as aside:
        pid = os.fork()
        if not pid:
            os._exit(_child(command, arguments, folder, fault, Path(aside)))
        status = os.waitpid(pid, 0)[1]
        figures = Path(aside, "seen").read_text().split() if Path(aside, "seen").exists() else (0, 0)
        said = (Path(aside, number).read_text(errors="replace") for number in "21")
        return Run(os.waitstatus_to_exitcode(status), *said, *map(int, figures))


def _child(command, arguments, folder, fault, aside):
    from dafh.cli import main

    code = 99
    try:
        for number in (1, 2):
            os.dup2(os.open(aside / str(number), os.O_CREAT | os.O_WRONLY), number)
        os.chdir(folder)
        (folder / "tmp").mkdir(exist_ok=True)
        os.environ |= {"TMPDIR": str(folder / "tmp"), "DAFH_COMPILATION_CACHE": "off"}
        os.environ |= {name: value.format(folder=folder) for name, value in command.environment.items()}
        os.environ.pop("DAFH_DATA", None)
        with command.patch():
            faults.arm(*fault, folder)
            try:
                main(arguments, prog_name="dafh")
            except SystemExit as end:
                code = end.code or 0
        (aside / "seen").write_text("{} {}".format(*faults.seen()))
    except BaseException as error:
        print(f"in the trial itself: {error!r}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


# ---- many ----


class Trials:
    """The trials of one command."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.start = folder / "before"
        self.start.mkdir(parents=True)
        command.prepare(self.start)
        # Two undisturbed runs, each twice in a row, since that is what a killed run is compared with.
        done = folder / "after"
        shutil.copytree(self.start, done)
        self.usual = run(command, done)
        assert self.usual.code == 0, self.usual
        self.files, self.after = names(done), self._content(done)
        self.before = self._content(self.start)
        assert self.before != self.after, command.name
        self.count = Count(command.name, changes=self.usual.changes)

    def kill(self, moment):
        """Kill a run within a change, and run the command again."""
        with self._folder() as work:
            ended = run(self.command, work, (faults.KILL, moment))
            assert ended.code == -signal.SIGKILL, (self.command.name, moment, ended)
            self.count.kills += 1
            found = self._content(work)
            self._judge(found, moment, work)
            again = run(self.command, work)
            if again.code or self._content(work) != self.after:
                self._record("not_resumed", moment, {"killed": ended, "again": again}, self._content(work), self.after)
            if names(work) != self.files:
                self.count.note("stray", moment, sorted(names(work) ^ self.files))

    def _judge(self, found, moment, work):
        lost = [name for name in self.before if name not in found]
        if lost:
            self.count.note("lost", moment, lost)
        ours = {name: found[name] for name in {*self.before, *self.after} & set(found)}
        half = [
            name
            for name, value in ours.items()
            if not is_whole(name, value, self.before.get(name), self.after.get(name))
        ]
        if half:
            self.count.note("partial", moment, half)
        changed = {name for name in self.after if self.before.get(name) != self.after[name]}
        new = {name for name in changed if found.get(name) == self.after[name]}
        if self.command.check and new and new != changed and set(self.before) >= changed:
            asked = type(self.command)("check", self.command.check, None)
            if run(asked, work).code != 2:
                self.count.note("mixed", moment, sorted(new))

    def fill(self, n_bytes):
        """Let the disk be full after some bytes, and then have room again."""
        with self._folder() as work:
            ended = run(self.command, work, (faults.FULL, n_bytes))
            self.count.full += 1
            said = [line for line in ended.errors.splitlines() if line.startswith("dafh: ")]
            found = self._content(work)
            intact = found == self.before or self._between(found)
            if ended.code != 2 or len(said) != 1 or "Traceback" in ended.errors or not intact:
                self._record("full_wrong", f"{n_bytes} bytes", {"full": ended}, found, self.before)
            again = run(self.command, work)
            found = self._content(work)
            if again.code or found != self.after or names(work) != self.files:
                runs, strays = {"full": ended, "again": again}, sorted(names(work) ^ self.files)
                self._record("full_wrong", f"{n_bytes} bytes, then again", runs, found, self.after, strays)

    def _record(self, what, moment, runs, found, wanted, strays=()):
        """Count a trial that went wrong, and keep why: what was said, and how the files differ."""
        files = {"files": differences(found, wanted), "files and folders, strays or missing": list(strays)}
        path = keep(RECORDS, f"{self.command.name}, {what} at {moment}", runs, files)
        self.count.note(what, moment, (next(reversed(runs.values())), files, f"kept in {path.name}"))

    def _between(self, found):
        """Whether every file is whole: a command that writes many may have written some."""
        known = set(self.before) <= set(found) <= set(self.after)
        return known and all(is_whole(n, v, self.before.get(n), self.after.get(n)) for n, v in found.items())

    def _content(self, folder):
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder, Path(copy) / "x", ignore=shutil.ignore_patterns(".dafh-part-*", "tmp"))
            found = content(Path(copy) / "x")
            return {name: value for name, value in found.items() if not name.endswith(("-journal", "-wal", "-shm"))}

    @contextmanager
    def _folder(self):
        work = self.folder / "work"
        shutil.copytree(self.start, work)
        yield work
        shutil.rmtree(work)


def names(folder):
    """Every file and folder below a folder."""
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*")}


def moments(n_all, n_wanted, rng):
    """Some of the moments from 1 to `n_all`: the last three, which put files in place, and others spread evenly."""
    if n_wanted >= n_all:
        return list(range(1, n_all + 1))
    last = list(range(n_all, n_all - min(3, n_wanted), -1))
    n_rest, n_others = n_all - len(last), n_wanted - len(last)
    edges = [round(i * n_rest / max(n_others, 1)) for i in range(n_others + 1)]
    return [*(rng.randint(low + 1, high) for low, high in itertools.pairwise(edges)), *last]


def try_all(commands, n_kills, n_full, folder, report=lambda count: None):
    """Divide so many kills among commands, and let each find the disk full so many times."""
    counts = []
    for number, command in enumerate(commands):
        rng = random.Random(SEED + number)
        trials = Trials(command, Path(folder) / str(number))
        share = n_kills // len(commands) + (number < n_kills % len(commands))
        for moment in moments(trials.usual.changes, share, rng):
            trials.kill(moment)
        for _ in range(n_full):
            trials.fill(rng.randrange(trials.usual.n_bytes))
        counts.append(trials.count)
        report(trials.count)
    return counts


HEADER = (
    "| command | changes of files in a run | kills | lost | partial | mixed "
    "| not resumed | stray | full disks | wrong |"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="kills of all commands together")
    parser.add_argument("--full", type=int, default=10, help="full disks for each command")
    parser.add_argument("--only", action="append", help="a command of the table")
    parser.add_argument("--surroundings", action="store_true", help="also try odd surroundings")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    chosen = [command for command in COMMANDS if command.name in (asked.only or [c.name for c in COMMANDS])]
    show = (lambda count: None) if asked.json else lambda count: print(line(count), flush=True)
    if not asked.json:
        print(HEADER, "|---" * 10 + "|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # Some surroundings are those of another user.
        counts = try_all(chosen, asked.kills, asked.full, folder, show)
        ended = try_surroundings(Path(folder) / "surroundings") if asked.surroundings else []
    if asked.json:
        print(json.dumps({"commands": list(map(asdict, counts)), "surroundings": list(map(asdict, ended))}))
        return 0
    print(line(Count("all", *(sum(getattr(c, n) for c in counts) for n in list(Count.__annotations__)[1:-1]))))
    wrong = [f"{one.name}: {'; '.join(one.wrong)}" for one in ended if one.wrong]
    if ended:
        print(f"\n{len(ended)} odd surroundings, {len(wrong)} with something wrong.", *wrong, sep="\n")
    return int(bool(wrong) or any(count.reasons for count in counts))


def line(count):
    return "| " + " | ".join(str(value) for value in list(asdict(count).values())[:-1]) + " |"


if __name__ == "__main__":
    sys.exit(main())
