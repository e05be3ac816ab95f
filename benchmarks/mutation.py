"""Mutation testing: change the code in one place at a time, and see whether the tests notice.

    python benchmarks/mutation.py                      all modules of the table below
    python benchmarks/mutation.py guard paired         some of them
    python benchmarks/mutation.py guard --only _table  only mutants whose description holds a text
    python benchmarks/mutation.py --write              put the results into mutation.md

A mutant is *killed* if a test fails or does not end in time, and *survives* if all pass. A survivor is either a gap in
the tests or harmless, because nothing that a caller can see has changed. Those that were judged harmless are listed in
mutation_harmless.toml with the reason. The exit code is 1 if a module scores below 90 % or a survivor has no reason.

Why not mutmut or cosmic-ray: they start Python for every mutant, and importing NumPy, pandas and scikit-learn takes
longer than the tests. Here pytest imports everything and collects the tests once. Every mutant then runs in a fork of
that process, in which the functions of one module get the code of the changed syntax tree. No file is ever changed.
"""

import argparse
import ast
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

import pytest

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


_SLOW_AUDITS = "not fifty and not memory and not promised and not pipeline and not (AuditResult and result)"
TARGETS = {
    "guard": Target("dafh.evaluation.guard", ("tests/test_choosing_servers.py",), "not worlds"),
    "questions": Target("dafh.evaluation.questions", ("tests/test_audit.py",), _SLOW_AUDITS),
    "audit": Target("dafh.evaluation.audit", ("tests/test_audit.py",), _SLOW_AUDITS),
    "result": Target("dafh.evaluation.result", ("tests/test_audit.py", "tests/test_equality.py"), _SLOW_AUDITS),
    "verdict": Target("dafh.evaluation.verdict", ("tests/test_verdict.py",)),
    "paired": Target("dafh.evaluation.paired", ("tests/test_paired.py", "tests/test_matrix.py"), "not metrics"),
    "stats": Target("dafh.stats.paired", ("tests/test_stats.py",), "not discrepancy and not theorem"),
    "held_out": Target("dafh.rows.held_out", ("tests/test_held_out.py",)),
    "selection": Target("dafh.engine.selection", ("tests/test_selection.py",)),
    "serving": Target("dafh.groups.serving", ("tests/test_serving_values.py",)),
}

# ---- mutants ----


@dataclass(frozen=True)
class Mutant:
    """One change of a syntax tree: a value for one field of one node."""

    owner: ast.AST
    field: str
    position: int | None
    """Where in the field, if it is a list."""
    value: object
    line: int
    place: str
    """Function that is changed."""

    def apply(self) -> object:
        """Change the tree, and return what was there."""
        if self.position is None:
            before = getattr(self.owner, self.field)
            setattr(self.owner, self.field, self.value)
        else:
            items = getattr(self.owner, self.field)
            before, items[self.position] = items[self.position], self.value
        return before

    def describe(self) -> str:
        """Say what changes, in a form that stays the same when lines move."""
        whole = isinstance(self.value, ast.expr | ast.stmt)  # Otherwise an operator or a name: show its owner.
        before = "" if whole else ast.unparse(self.owner)
        old = self.apply()
        after = ast.unparse(self.value if whole else self.owner)
        before = ast.unparse(old) if whole else before
        Mutant(self.owner, self.field, self.position, old, 0, "").apply()
        return f"{self.place}: {before} -> {after}"


_COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_OPPOSITES = {"min": "max", "minimum": "maximum", "nanmin": "nanmax", "any": "all", "floor": "ceil", "argmin": "argmax"}
_OPPOSITES |= {value: key for key, value in _OPPOSITES.items()}
_SYMMETRIC = {"min", "max", "minimum", "maximum", "array_equal", "allclose", "isinstance", "issubdtype", "getattr"}


def find_mutants(tree: ast.Module) -> Iterator[Mutant]:
    """All changes of a module, in the order of its lines: statements first, then what is inside them.

    Left alone are annotations, decorators, docstrings, imports, and the wording of messages.
    """
    for position, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _walk(node, tree, "body", position, "")
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Dict | ast.Tuple | ast.Set):
            name = ast.unparse(node.targets[0])
            if not name.startswith("__"):
                yield from _walk(node.value, node, "value", None, name)


def _walk(node: ast.AST, owner: ast.AST, field: str, position: int | None, place: str) -> Iterator[Mutant]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}".lstrip(".")

    def mutant(value: object, owner: ast.AST = owner, field: str = field, position: int | None = position) -> Mutant:
        if isinstance(value, ast.AST):
            ast.copy_location(value, node)
        return Mutant(owner, field, position, value, getattr(node, "lineno", 0), place)

    yield from (mutant(value) for value in _replacements(node))
    yield from (mutant(value, node, inner, at) for inner, at, value in _inner_changes(node))
    if isinstance(node, ast.Raise | ast.JoinedStr):
        inside = [part for part in ast.walk(node) if isinstance(part, ast.FormattedValue)]
        for part in inside:
            if isinstance(node, ast.JoinedStr):
                yield from _walk(part.value, part, "value", None, place)
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
            continue
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield from _walk(child, node, name, at, place)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that take the place of a whole node."""
    if isinstance(node, ast.Constant):
        yield from _other_constants(node.value)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.YieldFrom | ast.Yield)
    ):
        yield ast.Pass()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        # Without the first assignment of a name nothing would run at all; a second one may have gone untested.
        name = node.targets[0].id
        if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value)):
            yield ast.Pass()


def _other_constants(value: object) -> Iterator[ast.Constant]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
        if isinstance(value, float) and value:
            yield ast.Constant(value * 2)
    elif isinstance(value, str):
        yield ast.Constant(value + "XX")


def _inner_changes(node: ast.AST) -> Iterator[tuple[str, int | None, object]]:
    """Changes of one field of a node: field, position in it, new value."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            yield from (("ops", at, other()) for other in _COMPARISONS[type(op)])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        if type(node.op) in _OPERATORS and not _joins_text(node):
            yield "op", None, _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "test", None, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.comprehension):
        yield from (("ifs", at, ast.UnaryOp(ast.Not(), test)) for at, test in enumerate(node.ifs))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "value", None, ast.Constant(None)
    elif isinstance(node, ast.Attribute) and node.attr in _OPPOSITES:
        yield "attr", None, _OPPOSITES[node.attr]
    elif isinstance(node, ast.Name) and node.id in _OPPOSITES:
        yield "id", None, _OPPOSITES[node.id]
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)


def _joins_text(node: ast.AST) -> bool:
    """Whether + joins strings: with - nothing would run at all."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _changed_calls(node: ast.Call) -> Iterator[tuple[str, int | None, object]]:
    """Calls with two arguments exchanged, or with one keyword less."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if plain and len(node.args) >= 2 and name not in _SYMMETRIC:
        first = 1 if name == "where" and len(node.args) == 3 else 0
        swapped = list(node.args)
        swapped[first], swapped[first + 1] = swapped[first + 1], swapped[first]
        yield "args", None, swapped
    for at, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield "keywords", None, [other for k, other in enumerate(node.keywords) if k != at]


# ---- running ----


class ForkForEachMutant:
    """Pytest plugin: runs the collected tests in a fork for every mutant, and once without any change."""

    def __init__(self, target: Target, tree: ast.Module, mutants: list[Mutant], jobs: int) -> None:
        self.target, self.tree, self.mutants, self.jobs = target, tree, mutants, jobs
        self.survived: list[bool] = []
        self.fine = False
        """Whether the tests pass as long as nothing is changed."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        began = time.monotonic()
        if session.testsfailed or not session.items or os.waitpid(self._start(session, None), 0)[1]:
            return True
        self.fine = True
        self.survived = [False] * len(self.mutants)
        self._run_all(session, timeout=10 + 5 * (time.monotonic() - began))
        return True

    def _run_all(self, session: pytest.Session, timeout: float) -> None:
        running: dict[int, tuple[int, float]] = {}
        waiting = list(enumerate(self.mutants))[::-1]
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, mutant = waiting.pop()
                running[self._start(session, mutant)] = number, time.monotonic()
            for pid, (number, since) in list(running.items()):
                done, status = os.waitpid(pid, os.WNOHANG)
                if not done and time.monotonic() - since > timeout:
                    os.kill(pid, signal.SIGKILL)
                    done, status = os.waitpid(pid, 0)  # A loop without end is noticed.
                if done and os.waitstatus_to_exitcode(status) == _BROKEN:
                    raise RuntimeError(f"This mutant cannot be run: {self.mutants[number].describe()}")
                if done:
                    self.survived[number] = status == 0
                    del running[pid]
            time.sleep(0.005)

    def _start(self, session: pytest.Session, mutant: Mutant | None) -> int:
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
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                if code:
                    break
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                code = 1 if session.testsfailed else 0
        except BaseException:
            code = _BROKEN
        finally:
            os._exit(code)


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
        *(["-k", target.deselected] if target.deselected else []),
    ]
    with silence():
        pytest.main([*options, *target.tests, str(target.path)], plugins=[plugin])
    if not plugin.fine:
        sys.exit(f"{name}: the tests fail without any change. Run pytest {' '.join(target.tests)} first.")
    survivors = [(mutant.line, text) for (mutant, text), alive in zip(chosen, plugin.survived, strict=True) if alive]
    score = 1 - len(survivors) / max(len(chosen), 1)
    lines = [
        f"{len(chosen)} mutants of `{target.module}`, {len(chosen) - len(survivors)} killed: {100 * score:.1f} %.",
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
