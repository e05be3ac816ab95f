"""Mutation testing: change the code in one place at a time, and see whether the tests notice.

    python benchmarks/mutation.py                      all modules of the table below
    python benchmarks/mutation.py guard paired         some of them
    python benchmarks/mutation.py guard --only _table  only mutants whose description holds a text
    python benchmarks/mutation.py --write              put the results into mutation.md

A mutant is *killed* if a test fails or does not end in time, and *survives* if all pass. A survivor is either a gap in
the tests or harmless, because nothing that a caller can see has changed. Those that were judged harmless are listed in
mutation_harmless.toml with the reason. The exit code is 1 if a module scores below 90% or a survivor has no reason.

Why not mutmut or cosmic-ray: they start Python for every mutant, and importing NumPy, pandas and scikit-learn takes
longer than the tests. Here pytest imports everything and collects the tests once. Every mutant then runs in a fork of
that process, in which the functions of one module get the code of the changed syntax tree. No file is ever changed.
Tests that have noticed a change run first for the next one, then the quickest: most mutants die in the first test.
"""

import argparse
import ast
import functools
import mmap
import os
import re
import signal
import sys
import time
import tomllib
import types
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutants import Mutant, find_mutants

ROOT = Path(__file__).parent.parent
HARMLESS = Path(__file__).parent / "mutation_harmless.toml"
RESULTS = Path(__file__).parent / "mutation.md"
LEAST_SCORE = 0.9


@dataclass(frozen=True)
class Target:
    """A module, and the fast tests that must notice every change of it; the first ones should fail soonest."""

    module: str
    tests: tuple[str, ...]
    deselected: str = ""
    """Tests that are too slow and notice nothing that the others miss, as pytest's -k takes them."""

    @property
    def path(self) -> Path:
        return ROOT / "src" / f"{self.module.replace('.', '/')}.py"


_SLOW_AUDITS = "not promised and not fit_together and not renumbering"
_SLOW_LAWS = (
    "not randomly_weighted and not harder_to_exclude and not in_company and not many_times_over "
    "and not hold_the_estimate"
)
TARGETS = {
    "guard": Target(
        "dafh.evaluation.guard",
        ("tests/evaluation/test_guard.py", "tests/evaluation/test_guard_report.py"),
        "not worlds",
    ),
    "guard_report": Target("dafh.evaluation.guard_report", ("tests/evaluation/test_guard_report.py",)),
    "losses": Target("dafh.evaluation.losses", ("tests/evaluation/test_losses.py",)),
    "differences": Target(
        "dafh.stats.differences", ("tests/stats/test_differences.py", "tests/stats/test_crossing.py"), _SLOW_LAWS
    ),
    "crossing": Target("dafh.stats.crossing", ("tests/stats/test_crossing.py",)),
    "questions": Target(
        "dafh.evaluation.questions",
        ("tests/evaluation/test_audit.py", "tests/evaluation/test_audit_named_groups.py"),
        _SLOW_AUDITS,
    ),
    "audit": Target(
        "dafh.evaluation.audit",
        ("tests/evaluation/test_audit.py", "tests/evaluation/test_audit_named_groups.py"),
        _SLOW_AUDITS,
    ),
    "result": Target(
        "dafh.evaluation.result", ("tests/evaluation/test_result.py", "tests/evaluation/test_audit.py"), _SLOW_AUDITS
    ),
    "verdict": Target("dafh.evaluation.verdict", ("tests/evaluation/test_verdict.py",), "not agree"),
    "paired": Target(
        "dafh.evaluation.paired", ("tests/evaluation/test_paired.py", "tests/evaluation/test_matrix.py"), "not metrics"
    ),
    "stats": Target("dafh.stats.paired", ("tests/stats/test_paired_tests.py",)),
    "held_out": Target("dafh.rows.held_out", ("tests/rows/test_held_out.py",)),
    "checked": Target("dafh.rows.checked", ("tests/rows/test_checked.py",)),
    "bins": Target("dafh.tables.bins", ("tests/test_bins.py",)),
    "designs": Target("dafh.linear.designs", ("tests/linear/test_designs.py",)),
    "newton": Target("dafh.linear.newton", ("tests/linear/test_newton.py",)),
    "crossfit": Target("dafh.linear.crossfit", ("tests/linear/test_crossfit.py",)),
    "scorecard": Target("dafh.linear.scorecard", ("tests/linear/test_scorecard.py",), "not papers"),
    "rules": Target("dafh.groups.rules", ("tests/groups/test_rules.py",), "not papers"),
    "growing": Target("dafh.groups.growing", ("tests/groups/test_growing.py",)),
    "merging": Target("dafh.groups.merging", ("tests/groups/test_merging.py",)),
    "exact": Target("dafh.groups.exact", ("tests/groups/test_exact.py",)),
    "corrections": Target("dafh.groups.corrections", ("tests/groups/test_corrections.py",)),
    "selection": Target("dafh.engine.selection", ("tests/engine/test_selection.py",)),
    "serving": Target("dafh.groups.serving", ("tests/test_serving_values.py",)),
    "judging": Target("dafh.groups.judging", ("tests/groups/test_judging.py",)),
}


class ForkForEachMutant:
    """Pytest plugin: runs the collected tests in a fork for every mutant, and once without any change."""

    def __init__(self, target: Target, tree: ast.Module, mutants: list[Mutant], jobs: int) -> None:
        self.target, self.tree, self.mutants, self.jobs = target, tree, mutants, jobs
        self.survived: list[bool] = []
        # Memory that forks share: the test that noticed each mutant, and the seconds that each test takes.
        self.noticed_by, self.seconds = np.zeros(0), np.zeros(0)
        self.order: list[int] = []
        """Tests in the order in which the next fork runs them."""
        self.fine = False
        """Whether the tests pass as long as nothing is changed."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        began = time.monotonic()
        self.noticed_by, self.seconds = shared_numbers(len(self.mutants) + 1), shared_numbers(len(session.items) + 1)
        self.order = list(range(len(session.items)))
        if session.testsfailed or not session.items or os.waitpid(self._start(session, None, -1), 0)[1]:
            return True
        self.fine = True
        self.order.sort(key=lambda item: self.seconds[item])
        self.survived = [False] * len(self.mutants)
        self._run_all(session, timeout=10 + 5 * (time.monotonic() - began))
        return True

    def _run_all(self, session: pytest.Session, timeout: float) -> None:
        running: dict[int, tuple[int, float]] = {}
        waiting = list(enumerate(self.mutants))[::-1]
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, mutant = waiting.pop()
                running[self._start(session, mutant, number)] = number, time.monotonic()
            for pid, (number, since) in list(running.items()):
                done, status = os.waitpid(pid, os.WNOHANG)
                if not done and time.monotonic() - since > timeout:
                    os.kill(pid, signal.SIGKILL)
                    done, status = os.waitpid(pid, 0)  # A loop without end is noticed.
                if done and os.waitstatus_to_exitcode(status) == _BROKEN:
                    raise RuntimeError(f"This mutant cannot be run: {self.mutants[number].describe()}")
                if done:
                    self.survived[number] = status == 0
                    # 0 where no test has failed, because the module could not be imported or time was up.
                    if noticed := int(self.noticed_by[number]):
                        self.order.remove(noticed - 1)
                        self.order.insert(0, noticed - 1)
                    del running[pid]
            time.sleep(0.005)

    def _start(self, session: pytest.Session, mutant: Mutant | None, number: int) -> int:
        """Run the tests in a fork, with one change or none, up to the first that fails; return the process id."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX warns of forks; its threads do not run yet.
            pid = os.fork()
        if pid:
            return pid
        code = _BROKEN
        try:
            code = 0
            if mutant is not None:
                mutant.apply()
                code = 0 if replace_code(self.target, self.tree) else 1
            items = [session.items[i] for i in self.order]
            for position, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
                if code:
                    break
                began = time.monotonic()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self.seconds[self.order[position]] = time.monotonic() - began
                if session.testsfailed:
                    code, self.noticed_by[number] = 1, self.order[position] + 1
        except BaseException:
            code = _BROKEN
        finally:
            os._exit(code)


def shared_numbers(n: int) -> Any:
    """Zeros that this process and its forks see alike."""
    return np.frombuffer(mmap.mmap(-1, 8 * n), np.float64)


_BROKEN = 99


def replace_code(target: Target, tree: ast.Module) -> bool:
    """Give every function of a module the code, and every constant the value, that the changed tree says.

    Functions keep their identity, so that all modules that have imported them see the change. Return False if the
    changed module cannot even be imported, which any test would notice.
    """
    module = sys.modules[target.module]
    fresh = types.ModuleType(target.module)
    try:
        exec(compile(ast.fix_missing_locations(tree), str(target.path), "exec"), vars(fresh))
    except Exception:
        return False
    _transplant(vars(module), vars(fresh), module)
    return True


def _transplant(old: Mapping[str, Any], new: Mapping[str, Any], module: types.ModuleType) -> None:
    for name, value in new.items():
        mine, theirs = _function_of(old.get(name)), _function_of(value)
        if mine is not None and theirs is not None:
            if mine.__module__ == module.__name__ and mine is not theirs:
                mine.__code__, mine.__defaults__ = theirs.__code__, theirs.__defaults__
                mine.__kwdefaults__ = theirs.__kwdefaults__
        elif isinstance(value, type):
            if value.__module__ == module.__name__:
                _transplant(vars(old[name]), vars(value), module)
        elif old is vars(module) and not name.startswith("__"):
            vars(module)[name] = value


def _function_of(value: object) -> types.FunctionType | None:
    """The function behind a method, a property or a decorator."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, functools.cached_property):
        value = value.func
    value = getattr(value, "__func__", value)
    value = getattr(value, "__wrapped__", value)
    return value if isinstance(value, types.FunctionType) else None


@contextmanager
def silence() -> Iterator[None]:
    """Throw away what pytest and its forks print."""
    kept = os.dup(1)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(sink)


def named(mutants: list[Mutant]) -> list[str]:
    """Descriptions; where two are alike the later ones get a number."""
    seen: Counter[str] = Counter()
    names = []
    for mutant in mutants:
        text = mutant.describe()
        seen[text] += 1
        names.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return names


def check(name: str, harmless: dict[str, str], only: str, jobs: int) -> tuple[bool, str]:
    """Test all mutants of a module; return whether it is good enough, and what was found as Markdown."""
    target = TARGETS[name]
    tree = ast.parse(target.path.read_text(encoding="utf-8"))
    mutants = list(find_mutants(tree))
    texts = named(mutants)
    chosen = [(mutant, text) for mutant, text in zip(mutants, texts, strict=True) if only in text]
    plugin = ForkForEachMutant(target, tree, [mutant for mutant, _ in chosen], jobs)
    options = [
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=mutation",
        *(["-k", target.deselected] if target.deselected else []),
    ]
    with silence():
        pytest.main([*options, *target.tests, str(target.path)], plugins=[plugin])
    if not plugin.fine:
        sys.exit(f"{name}: the tests fail without any change. Run pytest {' '.join(target.tests)} first.")
    survivors = [(mutant.line, text) for (mutant, text), alive in zip(chosen, plugin.survived, strict=True) if alive]
    score = 1 - len(survivors) / max(len(chosen), 1)
    lines = [
        f"{len(chosen)} mutants of `{target.module}`, {len(chosen) - len(survivors)} killed: {100 * score:.1f}%.",
        *(f"- line {line}, `{text}`: {harmless.get(text, 'NO REASON GIVEN')}" for line, text in survivors),
    ]
    gone = sorted(set(harmless) - set(texts))
    killed = sorted({text for _, text in chosen} & set(harmless) - {text for _, text in survivors})
    lines += [f"- listed as harmless, but there is no such mutant: `{text}`" for text in gone]
    lines += [f"- listed as harmless, but killed: `{text}`" for text in killed]
    explained = all(text in harmless for _, text in survivors)
    return score >= LEAST_SCORE and explained and not gone, "\n".join(lines)


def write(sections: dict[str, str]) -> None:
    """Replace the sections of these modules in mutation.md, and keep the others."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    old = dict(re.findall(r"^## (\w+)\n\n(.*?)\n(?=\n## |\Z)", text, flags=re.S | re.M))
    head = (
        "# Mutation testing\n\nWritten by `make mutation`. A survivor is a change that no test notices; each has the "
        "reason why it is harmless.\n"
    )
    parts = {name: (old | sections)[name] for name in TARGETS if name in old | sections}
    page = "\n".join([head, *(f"## {name}\n\n{body}\n" for name, body in parts.items())])
    RESULTS.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="module", help=f"any of {', '.join(TARGETS)}")
    parser.add_argument("--only", default="", help="only mutants whose description holds this text")
    parser.add_argument("--write", action="store_true", help="put the results into mutation.md")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args()
    unknown = set(options.names) - set(TARGETS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}: choose from {', '.join(TARGETS)}")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    known = tomllib.loads(HARMLESS.read_text(encoding="utf-8"))["harmless"]
    good = True
    for name in options.names or TARGETS:
        began = time.monotonic()
        harmless = {entry["mutant"]: entry["reason"] for entry in known if entry["module"] == name}
        enough, text = check(name, harmless, options.only, options.jobs)
        print(f"{name} ({time.monotonic() - began:.0f} s): {text}", flush=True)
        good &= enough
        if options.write and not options.only:
            write({name: text})
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
