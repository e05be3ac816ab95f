import functools
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import dafh
from cases import first_by_default
from dafh import Recipe
from dafh.cli import main
from dafh.cli.synthetic import run_synthetic


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def few_steps(_):
    """In place of the demo's recipe: enough for a table and a figure."""
    return Recipe.paper(n_replicas=2, max_epochs=4)


# Several tests look at the same experiment, and none changes it: the first one runs it.
@functools.cache
def run_once(*samples, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dafh.cli.synthetic.demo_recipe", few_steps)
        return run_synthetic(*samples, **options)


def test_version():
    assert dafh.__version__ in run("--version").output


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize("suffix", first_by_default(["png", "html"], 1))
def test_demo_prints_the_table_and_says_where_the_figure_is(tmp_path, suffix, monkeypatch):
    out, asked = tmp_path / f"figure.{suffix}", []
    monkeypatch.setattr(
        "dafh.cli.synthetic.run_synthetic",
        lambda *samples, **options: asked.append((samples, options)) or run_once(*samples, **options),
    )
    result = run("demo", "--samples", "400", "--seed", "7", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert asked == [((400,), {"random_state": 7, "verbose": 1})]
    for method in ("Pooled", "Partition by s1", "Partition by s2", "DAFH"):
        assert method in result.output
    assert f"Figure: {out}" in result.output
    assert out.stat().st_size > 10_000


def test_data_list_names_every_data_set_with_its_licence_and_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DAFH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = run("data", "list").output
    for name in ("adult", "arrest", "violent", "german", "bank", "CC BY 4.0", "48,842 rows"):
        assert name in output
    assert output.count("missing") == 5
    (tmp_path / "german.data").touch()
    assert run("data", "list").output.count("missing") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "figure.pdf"], "must end in .png, .svg or .html"),
        (["--out", "no/such/folder/figure.png"], "There is no folder"),
        (["--samples", "10"], "not in the range"),
        (["--seed", "x"], "not a valid int"),
    ],
)
def test_bad_options_exit_with_2_and_one_sentence(arguments, message):
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_readme_the_demo_and_its_figure_show_the_same_figures(tmp_path, optimized):
    """Whoever changes the algorithm, the data or the table regenerates the README: dafh demo."""
    readme = [line.strip() for line in (Path(__file__).parents[2] / "README.md").read_text().splitlines()]
    out = tmp_path / "figure.html"
    printed = [line.strip() for line in run("demo", "--out", str(out)).stdout.splitlines()]
    methods = [line for line in printed if line.startswith(("Pooled", "Partition by", "DAFH"))]
    assert len(methods) == 4
    assert [line for line in methods if line not in readme] == []
    pr, accuracy = re.findall(r"[\d.]+%", methods[3])[:2]
    assert f"Pr without harm {pr}, accuracy {accuracy}" in out.read_text()
    assert float(accuracy[:-1]) >= 96.5


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
def test_colours_and_percentages_reach_the_figure():
    from dafh.plots import synthetic_panels

    chart = synthetic_panels(run_once(400, random_state=7, verbose=1), n_points=50).to_dict()
    subtitles = [panel["title"]["subtitle"] for panel in chart["concat"]]
    assert re.fullmatch(r"accuracy \d+\.\d%", subtitles[0])
    assert re.fullmatch(r"Pr without harm \d+\.\d%, accuracy \d+\.\d%", subtitles[3])
