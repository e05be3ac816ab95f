"""The public surface, the layers and the weight of an import are promises; this holds them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dafh

SOURCE = Path(dafh.__file__).parent
# A module imports from lower layers only (or from its own package); the names are top-level modules of dafh.
LAYERS = [
    {"exceptions"},
    {"_validation", "_progress", "_text", "_cuts", "_training_rows"},
    {
        "engine",
        "stats",
        "datasets",
        "tabular",
        "named_groups",
        "_inference",
        "_pooled",
        "_rules",
        "datafiles",
    },
    {"preference", "columns"},
    {"partitions", "guard", "auditing", "_fitting"},
    {"classifier", "decoupled"},
    {"baselines", "plots", "persistence", "explaining"},
    {"report", "study", "workflows"},
    {"cli"},
    {"__main__"},
]
MODULES = sorted(SOURCE.rglob("*.py"))


def layer_of(name):
    return next(level for level, names in enumerate(LAYERS) if name in names)


def top_level_name(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_modules(path, *, only_at_import=False):
    tree = ast.parse(path.read_text())
    nodes = tree.body if only_at_import else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "dafh")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_from_lower_layers_only(path):
    own = top_level_name(path)
    if own == "__init__":
        return
    for module in imported_modules(path):
        if module.startswith("dafh."):
            other = module.split(".")[1]
            if (SOURCE / other).exists() or (SOURCE / f"{other}.py").exists():
                assert other == own or layer_of(other) < layer_of(own), f"{own} imports {other}"


def test_every_module_has_a_layer():
    assert {top_level_name(path) for path in MODULES} - {"__init__"} <= set().union(*LAYERS)


def test_only_the_engine_imports_jax():
    users = {
        top_level_name(path) for path in MODULES if {"jax", "optax"} & {m.split(".")[0] for m in imported_modules(path)}
    }
    assert users == {"engine"}


def test_public_names_are_sorted_and_exist():
    assert sorted(dafh.__all__) == dafh.__all__
    for name in dafh.__all__:
        assert getattr(dafh, name).__name__ == name
        assert name in dir(dafh)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Clasifier'"):
        dafh.Clasifier  # noqa: B018


@pytest.mark.parametrize("name", dafh.__all__)
def test_every_public_name_has_a_docstring_with_an_example(name):
    assert ">>>" in getattr(dafh, name).__doc__


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


def test_prediction_needs_no_jax_and_neither_do_metrics_and_partitions():
    assert "jax" not in modules_after("import dafh.preference, dafh.classifier, dafh.decoupled, dafh.partitions")
