"""Mutation testing: change the code in one place at a time, and see whether the tests notice.

    python benchmarks/mutation.py                      all modules of the table below
    python benchmarks/mutation.py guard paired         some of them
    python benchmarks/mutation.py guard --only _table  only mutants whose description holds a text
    python benchmarks/mutation.py --write              put the results into mutation.md

A mutant is *killed* if a test fails or does not end in time, and *survives* if all pass. A survivor is either a gap in
the tests or harmless, because nothing that a caller can see has changed. Those that were judged harmless are listed in
mutation_harmless.toml with the reason. The exit code is 1 if a module scores below 90 % or a survivor has no reason.

Why not mutmut or cosmic-ray: they start Python for every mutant, and importing NumPy, pandas and scikit-learn takes
longer than the tests. Here they are imported once. Every mutant then runs in a fork of that process, which imports the
package itself anew, with one module compiled from the changed syntax tree. No file is ever changed.
"""

import argparse
import ast
import importlib
import importlib.machinery
import os
import re
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    "held_out": Target("dafh.rows.held_out", ("tests/test_rows.py",)),
    "selection": Target("dafh.engine.selection", ("tests/test_selection.py",)),
    "serving": Target("dafh.groups.serving", ("tests/test_serving.py",)),
}
# Imported once, before the forks. JAX is not: it starts threads, which do not survive a fork.
PRELOADED = (
    "numpy", "pandas", "pandas.testing", "scipy.stats", "scipy.special", "sklearn.base", "sklearn.linear_model",
    "sklearn.pipeline", "sklearn.model_selection", "sklearn.tree", "sklearn.preprocessing", "narwhals.stable.v1",
    "polars", "pyarrow.parquet", "altair", "jinja2", "click.testing", "hypothesis.extra.numpy", "joblib", "pytest",
    "_pytest.doctest",
)  # fmt: skip


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


class MutatedModule(importlib.machinery.SourceFileLoader):
    """Loads one module from a syntax tree instead of its file, and leaves all others to Python."""

    def __init__(self, target: Target, tree: ast.Module) -> None:
        super().__init__(target.module, str(target.path))
        self.tree = tree

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def create_module(self, spec):
        spec.has_location = True  # Sets __file__, without which pytest does not find the docstring examples.

    def get_code(self, fullname):
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec")


def start(target: Target, tree: ast.Module, mutant: Mutant | None) -> int:
    """Run the tests in a fork, with one change or none; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        if mutant is not None:
            mutant.apply()
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.meta_path.insert(0, MutatedModule(target, tree))
        import pytest

        # Plain asserts: otherwise pytest rewrites every file it is given, and reads the module from its file again.
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--assert=plain"]
        chosen = ["-k", target.deselected] if target.deselected else []
        tests = [test for test in target.tests if (ROOT / test.split("::")[0]).exists()]
        code = int(pytest.main([*options, *chosen, *tests, str(target.path)]))
    except SyntaxError:
        pass
    finally:
        os._exit(code)


def run_all(target: Target, tree: ast.Module, mutants: list[Mutant], timeout: float, jobs: int) -> list[bool]:
    """Whether each mutant survives; `jobs` of them run at a time."""
    survived = [False] * len(mutants)
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(mutants))[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            number, mutant = waiting.pop()
            running[start(target, tree, mutant)] = number, time.monotonic()
        for pid, (number, since) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done and time.monotonic() - since > timeout:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                done, status = pid, 1  # A loop without end is noticed.
            if done:
                survived[number] = status == 0
                del running[pid]
        time.sleep(0.01)
    return survived


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
    began = time.monotonic()
    pid = start(target, tree, None)
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"{name}: the tests fail without any change. Run pytest {' '.join(target.tests)} first.")
    timeout = 10 + 5 * (time.monotonic() - began)
    survived = run_all(target, tree, [mutant for mutant, _ in chosen], timeout, jobs)
    survivors = [(mutant.line, text) for (mutant, text), alive in zip(chosen, survived, strict=True) if alive]
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
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}
    sys.path.insert(0, str(ROOT / "src"))
    for module in PRELOADED:
        importlib.import_module(module)
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
