"""The public surface, the layers and the weight of an import are promises; this holds them."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dafh

SOURCE = Path(dafh.__file__).parent
ROOT = Path(__file__).parent.parent
# The one list of rooms and floors: the table in CONTRIBUTING.md.
FLOORS = {
    room: int(floor)
    for floor, room in re.findall(r"^\| (\d+) \| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)
}
MODULES = sorted(SOURCE.rglob("*.py"))


def top_level_name(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def imported_modules(path, *, only_at_import=False):
    tree = parsed(path)
    nodes = tree.body if only_at_import else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "dafh")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_from_lower_floors_only(path):
    own = top_level_name(path)
    if own in ("__init__", "__main__"):
        return
    for module in imported_modules(path):
        other = module.split(".")[1] if module.startswith("dafh.") else own
        if other != own and other in FLOORS:
            assert FLOORS[other] < FLOORS[own], f"{own} imports {other}"


def test_every_room_has_a_floor_and_every_floor_a_room():
    assert {top_level_name(path) for path in MODULES} - {"__init__", "__main__"} == set(FLOORS)


def test_every_folder_says_what_lives_there():
    for path in SOURCE.glob("*/__init__.py"):
        assert len(ast.get_docstring(parsed(path)).splitlines()) >= 3, path.parent.name


PRIVATE_PARTS = re.compile(
    r"\b(sklearn|joblib|pip|skops|pandas|jax)(\.\w+)*\._\w+|from (sklearn|joblib)[\w.]* import _"
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_private_part_of_a_library_is_used(path):
    assert not PRIVATE_PARTS.search(path.read_text())


def test_only_the_network_and_its_objective_import_jax():
    users = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        if {"jax", "optax"} & {m.split(".")[0] for m in imported_modules(path)}
    }
    assert users == {"groups/network.py", "groups/objective.py"}


def test_public_names_are_sorted_and_exist():
    assert sorted(dafh.__all__) == dafh.__all__
    for name in dafh.__all__:
        assert getattr(dafh, name).__name__ == name
        assert name in dir(dafh)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Clasifier'"):
        dafh.Clasifier  # noqa: B018


def public_names():
    """The names of the package and of every room that exports some."""
    yield from (("dafh", name) for name in dafh.__all__)
    for path in SOURCE.glob("*/__init__.py"):
        room = f"dafh.{path.parent.name}"
        yield from ((room, name) for name in getattr(importlib.import_module(room), "__all__", ()))


@pytest.mark.parametrize(("room", "name"), list(public_names()))
def test_every_public_name_has_a_docstring_with_an_example(room, name):
    public = getattr(importlib.import_module(room), name)
    assert not callable(public) or ">>>" in public.__doc__


def modules_after(code):
    listing = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {module.split(".")[0] for module in listing.stdout.split()}


def test_importing_dafh_imports_nothing_heavy():
    assert not {"numpy", "pandas", "scipy", "sklearn", "jax", "altair"} & modules_after("import dafh")


def test_help_imports_neither_jax_nor_scikit_learn():
    code = "from click.testing import CliRunner\nfrom dafh.cli import main\nCliRunner().invoke(main, ['--help'])"
    assert not {"numpy", "pandas", "scipy", "sklearn", "jax", "altair", "rich"} & modules_after(code)
