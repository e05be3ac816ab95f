"""The notebooks of the documentation: stored clean, readable, and right about what they show."""

import ast
import importlib
import json
import re
from pathlib import Path

import altair as alt
import pytest

from dafh import plots
from dafh.datasets import registry
from dafh.datasets.sources import is_available

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name, kind):
    return [cell for cell in json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def code(name):
    return "\n".join(map(source, cells(name, "code")))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(name):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(name, "code"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_name_that_a_notebook_imports_exists(name):
    tree = ast.walk(ast.parse(code(name)))
    imports = [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports
    for node in imports:
        if isinstance(node, ast.Import):
            assert all(importlib.import_module(alias.name) for alias in node.names)
        else:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], node.module


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_chart_that_a_notebook_draws_exists(name):
    used = set(re.findall(r"\bplots\.(\w+)", code(name)))
    assert used
    assert sorted(used - set(plots.__all__)) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_chart_has_words_for_readers_who_do_not_see_it(name):
    drawing = [cell for cell in cells(name, "code") if draws(cell)]
    assert drawing
    for cell in drawing:
        assert len(cell["metadata"]["mystnb"]["image"]["alt"]) > 20, source(cell)


def draws(cell):
    last = ast.parse(source(cell)).body[-1]
    return isinstance(last, ast.Expr) and ast.unparse(last).startswith("plots.")


def test_the_gallery_shows_everything_that_draws():
    assert [name for name in plots.__all__ if f"plots.{name}" not in code("gallery")] == []


def test_every_notebook_is_in_the_table_of_contents():
    pages = (FOLDER / "index.md").read_text() + (FOLDER.parent / "index.md").read_text()
    assert [name for name in NOTEBOOKS if not re.search(rf"^(notebooks/)?{name}$", pages, flags=re.M)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_between_notebooks_lead_somewhere(name):
    text = "".join(map(source, cells(name, "markdown")))
    assert [target for target in re.findall(r"\]\(([^)#:]+)\)", text) if not (FOLDER / target).exists()] == []


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the cells of a notebook one after the other, as a reader does, and return what they define."""

    def run_cells(name, *needed):
        if not all(is_available(file) for data in needed for file in registry.DATASETS[data].files):
            pytest.skip(f"needs data at hand: {', '.join(needed)}")
        monkeypatch.chdir(tmp_path)
        names = {"shown": []}
        for cell in cells(name, "code"):
            *first, last = ast.parse(source(cell)).body
            exec(
                compile(ast.Module([*first, *([] if draws(cell) else [last])], []), f"{name}, {cell['id']}", "exec"),
                names,
            )
            if draws(cell):
                names["shown"].append(eval(compile(ast.Expression(last.value), name, "eval"), names))
        return names

    return run_cells


@pytest.mark.slow
def test_a_new_model_harms_a_group_and_the_repaired_one_none(run):
    names = run("old_new", "adult")
    assert names["result"].status == "harm"
    assert "capital_gain" in names["result"].regions[0].columns
    assert names["check"].status == "better"


@pytest.mark.slow
def test_the_bank_deploys_for_some_groups_and_the_database_agrees(run, tmp_path):
    names = run("bank", "bank")
    assert 0 < names["accuracy"] - names["nobody"] < 0.02
    assert names["result"].recommendation.kind == "deploy_some"
    assert names["agree"] == 1
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_incumbent_is_corrected_and_never_touched(run):
    names = run("incumbent", "bank")
    assert names["same"] == 1
    assert names["result"].recommendation.kind.startswith("deploy")
    assert names["result"].pooled_accuracy < names["result"].accuracy < names["right"]
    assert 0 < names["alone"].gain < names["second"].gain


@pytest.mark.slow
def test_costs_decide_between_two_models_that_err_equally_often(run):
    names = run("two_models", "arrest")
    assert names["result"].recommendation.kind == "keep"
    assert names["strict"].recommendation.kind == "do_not_deploy"
    assert [view.kind for view in names["views"]] == ["deploy", "do_not_deploy"]


@pytest.mark.slow
def test_the_gallery_draws_its_charts(run):
    names = run("gallery", "adult")
    assert len(names["shown"]) >= len(plots.__all__)
    assert all(isinstance(chart, alt.TopLevelMixin) for chart in names["shown"])
