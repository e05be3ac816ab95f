"""Tables and options that attack, or are bad: harmless results, or one sentence."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import run
from dafh import load
from dafh.cli.model_file import ModelFile

NASTY = [
    "<script>alert(1)</script>",
    '"quoted", with commas',
    "=cmd|' /C calc'!A0",
    "🦊 ünïcode \u202e",
    "two\nlines",
    "x" * 10_000,
]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nasty")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(NASTY, 200) for name in NASTY})
    table.insert(0, "age", rng.integers(18, 80, 200))
    table["=target()"] = np.where(table["age"] + rng.normal(0, 9, 200) > 50, "=cmd()", "<b>no</b>")
    table.to_csv(folder / "nasty.csv", index=False)
    arguments = ["--target", "=target()", "--sensitive", NASTY[0], "--test-size", "0.5", "--out", folder / "m.dafh"]
    result = run("fit", folder / "nasty.csv", *arguments, "--method", "exceptions")
    assert result.exit_code == 0, result.output
    return folder, table


def test_scores_of_nasty_tables_are_right_and_harmless(nasty):
    folder, table = nasty
    result = run("predict", folder / "m.dafh", folder / "nasty.csv", "--keep", "all", "--out", folder / "s.csv")
    assert result.exit_code == 0, result.output
    assert "would be formulas in a spreadsheet" in result.output
    scored = pd.read_csv(folder / "s.csv", dtype=str)
    cells = pd.concat([scored[name] for name in scored.columns])
    assert not cells.dropna().str.match(r"[=@+]|-\D").any()
    assert not [name for name in scored.columns if name.startswith("=")]
    model = ModelFile.open(folder / "m.dafh")
    expected = model.model.predict(model.schema.features_of(table))
    assert scored["prediction"].str.removeprefix("'").tolist() == expected.tolist()
    assert scored[NASTY[4]].str.removeprefix("'").tolist() == table[NASTY[4]].tolist()


def test_reports_of_nasty_tables_hold_them_as_text(nasty):
    folder, _ = nasty
    result = run("report", folder / "m.dafh", folder / "m.test.parquet", "--out", folder / "r.html")
    assert result.exit_code == 0, result.output
    page = (folder / "r.html").read_text()
    assert len(page) < 2_000_000
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "x" * 100 not in page
    assert run("audit", folder / "m.dafh", folder / "m.test.parquet").exit_code == 0
    assert run("show", folder / "m.dafh").exit_code == 0


# ---- bad input: one sentence, exit code 2 ----


def bad_commands(folder):
    csv, model = folder / "people.csv", folder / "model.dafh"
    small, empty = folder / "bad.csv", folder / "empty"
    empty.mkdir(exist_ok=True)
    out = ["--out", folder / "never.dafh"]
    return {
        "has no column 'hird', the target; did you mean 'hired'?": (None, ["fit", csv, "--target", "hird", *out]),
        "has one value only": ("a,y\n" + "1,0\n2,0\n" * 20, ["fit", small, "--target", "y", *out]),
        "Parquet magic bytes": (b"PAR1 nonsense", ["fit", small, "--target", "y", *out]),
        "There is no file": (None, ["fit", folder / "none.csv", "--target", "y", *out]),
        "which the model was fitted with": ("age,sex\n1,f\n", ["predict", model, small]),
        "held numbers in fit": ("age,job,since\nold,cook,2020-01-01\n", ["predict", model, small]),
        "more than one column called 'age'": ("age,age\n1,2\n", ["predict", model, small]),
        "is empty": ("", ["predict", model, small]),
        "Is a directory": (None, ["predict", model, folder]),
        "There is no table in the folder": (None, ["fit", empty, "--target", "y", *out]),
        "There is no folder": (None, ["fit", csv, "--target", "hired", "--out", folder / "no" / "m.dafh"]),
        "is not a dafh model file": (None, ["show", csv]),
        "which the model was not fitted with; it knows": (None, ["audit", model, csv, "--target", "job"]),
        "has no column 'race', to audit by": (None, ["audit", model, csv, "--sensitive", "race"]),
        "at least 20 are needed": ("a,y\n1,0\n2,1\n", ["fit", small, "--target", "y", *out]),
        "different values": (None, ["fit", csv, "--target", "person_id", *out]),
        "cannot have a second role": (None, ["fit", csv, "--target", "hired", "--drop", "hired", *out]),
    }


@pytest.mark.parametrize("sentence", bad_commands(Path()))
def test_bad_input_is_refused_in_one_sentence(folder, sentence):
    content, arguments = bad_commands(folder)[sentence]
    if content is not None:
        (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith(("dafh:", "Error:"))]
    assert len(lines) == 1
    assert "Traceback" not in result.output
    assert not (folder / "never.dafh").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_without_permission_is_refused_before_the_work(folder):
    locked = folder / "locked"
    locked.mkdir(mode=0o500)
    result = run("fit", folder / "people.csv", "--target", "hired", "--out", locked / "m.dafh")
    assert result.exit_code == 2
    assert "cannot be written: permission denied" in result.stderr


def test_a_model_saved_from_python_says_what_it_lacks(folder):
    import dafh

    dafh.save(load(folder / "model.dafh"), folder / "python.dafh")
    result = run("audit", folder / "python.dafh", folder / "people.csv")
    assert result.exit_code == 2
    assert "was saved from Python" in result.stderr


def test_an_unexpected_error_is_one_sentence_too(folder, monkeypatch):
    monkeypatch.setattr("dafh.persistence.read_card", lambda path: 1 / 0)
    result = run("show", folder / "model.dafh")
    assert result.exit_code == 70  # 1 means harm.
    assert "unexpected error, please report it: ZeroDivisionError" in result.stderr
