"""All small changes of a module that mutation.py tries: one node of its syntax tree at a time."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass


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

    Left alone are annotations, decorators, docstrings, imports, the wording of messages, and strict=True of zip, which
    only guards against mistakes of our own.
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
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
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
        if ast.dump(node.args[first]) != ast.dump(swapped[first]):
            yield "args", None, swapped
    for at, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict"):
            yield "keywords", None, [other for k, other in enumerate(node.keywords) if k != at]
