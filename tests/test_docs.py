"""What the documentation shows is run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

import dafh
from dafh.cli import main
from dafh.datasets import fetch_german, make_grouped_classification, registry
from dafh.datasets.sources import is_available
from models import model_of

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/start.md", "docs/fix.md", "docs/production.md", "docs/guarantee.md"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), flags=re.S | re.M)


def names_for_readers():
    """Whatever the examples take for granted."""
    data = make_grouped_classification(400, n_features=3, n_groups=2, random_state=0)
    X, y = pd.DataFrame(np.asarray(data.X), columns=["a", "b", "c"]), np.asarray(data.y)
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "race": rng.choice(["x", "y"], 200)})
    incumbent = LogisticRegression().fit(X[:200], y[:200])
    return {
        "X": X[:200], "y": y[:200], "X_test": X[200:], "y_test": y[200:], "people": people, "train_people": people,
        "predictions": np.column_stack([y[200:], y[200:]]), "groups": rng.integers(0, 2, 200),
        "baseline": incumbent.predict(X[200:]), "new_model": y[200:], "old_model": incumbent.predict(X[200:]),
        "region": rng.choice(["north", "south"], 200), "model_in_production": incumbent,
        "model": model_of(max_epochs=3, random_state=0).fit(X[:200], y[:200]),
    }  # fmt: skip


def part_of_german():
    """300 of the 1,000 rows: the examples run all the same, in less than half of the time."""
    data = fetch_german()
    return Bunch(**data | {name: data[name][:300] for name in ("X", "y", "sensitive_features")})


def is_here(name):
    return all(is_available(file) for file in registry.DATASETS[name].files)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize("page", PAGES)
def test_examples_in_python_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dafh.datasets.fetch_german", part_of_german)
    namespace = names_for_readers()
    (tmp_path / "rows").mkdir()
    namespace["X"].assign(hired=namespace["y"]).to_parquet(tmp_path / "rows" / "1.parquet")
    examples = blocks(page, "python")
    assert examples
    for block in examples:
        if any(f"fetch_{name}" in block and not is_here(name) for name in ("adult", "german")):
            continue
        # What the README prints is tested below.
        if "fetch_adult" not in block:
            exec(compile(block, page, "exec"), namespace)


def test_the_comparison_in_the_readme_prints_what_stands_below_it(capsys):
    if not is_here("adult"):
        pytest.skip("needs the Adult data at hand: DAFH_DATA names no folder")
    (block,) = [block for block in blocks("README.md", "python") if "fetch_adult" in block]
    exec(compile(block, "README.md", "exec"), {})
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    text = (ROOT / "README.md").read_text()
    shown = [line[4:].rstrip() for line in text[text.index("    DO NOT RELEASE") :].split("\n\n")[0].splitlines()]
    assert len(shown) >= 4
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("n_rows", [2000, pytest.param(48_842, marks=pytest.mark.slow)])
def test_the_commands_of_the_readme_work_as_typed(tmp_path, monkeypatch, n_rows):
    if not is_here("adult"):
        pytest.skip("needs the Adult data at hand: DAFH_DATA names no folder")
    monkeypatch.chdir(tmp_path)
    (commands,) = blocks("README.md", "shell")
    for command in commands.splitlines():
        result = CliRunner().invoke(main, command.split()[1:])
        assert result.exit_code == 0, f"{command}: {result.output}"
        if command == "dafh data export adult":
            lines = (tmp_path / "adult.csv").read_text().splitlines()
            assert len(lines) == 1 + 48_842
            (tmp_path / "adult.csv").write_text("\n".join(lines[: 1 + n_rows]) + "\n")
        if n_rows > 40_000 and "dafh fit" in command:
            text = (ROOT / "README.md").read_text()
            rules = [line[4:] for line in text.splitlines() if re.match(r" {4} +[0-9]  \w", line)]
            assert len(rules) == 3
            assert [line for line in rules if line not in result.output] == []
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_every_command_that_a_page_shows_exists():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for words in re.findall(r"^ {4}dafh (\w+)|`dafh (\w+)", page.read_text(), flags=re.M):
            assert set(words) - {""} <= set(main.commands), page.name


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem
)
def test_every_option_that_a_page_shows_exists(page):
    commands = [*main.commands.values(), *main.commands["watch"].commands.values()]
    known = {option for command in commands for parameter in command.params for option in parameter.opts}
    shown = re.findall(r"(?:dafh .*|`)(--[a-z][a-z-]+)", page.read_text())
    assert set(shown) <= known | {"--help"}


def test_links_between_pages_lead_somewhere():
    folders = (ROOT / "docs", ROOT / "docs" / "notebooks")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(page for one in folders for page in one.glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs/api.md").read_text()
    assert all(f"   {name}\n" in text for name in dafh.__all__)


def test_the_worked_year_prints_what_the_page_shows(capsys):
    page = (ROOT / "docs/watch.md").read_text()
    exec(blocks("docs/watch.md", "python")[0], {})
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    section = page.split("## A worked year")[1].split("\n## ")[0]
    shown = [line[4:].rstrip() for line in section.split("```")[2].splitlines() if line.startswith("    ")]
    assert len(shown) >= 10
    assert [line for line in shown if line and line not in printed] == []
