"""What an attack by somebody who knows the source has found."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import dafh
from command_line import run
from dafh.cli.output import print_json
from dafh.monitor.notices import Update, evidence_in_words
from dafh.stats import Differences
from model_files import Parts

BELL = "\x1b]0;title\x07"


def test_a_terminal_is_told_nothing_by_names_in_a_card(saved, tmp_path, capsys):
    parts = Parts(saved[0])
    parts.card |= {"settings": {BELL: 1}, "versions": {BELL: "1"}}
    result = run("show", parts.write(tmp_path / "forged.dafh"))
    assert result.exit_code == 0
    assert "title" in result.output
    assert "\x1b" not in result.output
    odd = {"\x9b31m": "\x7f\u202e\U000e0041é"}
    print_json(odd)
    printed = capsys.readouterr().out
    assert all(letter.isprintable() for letter in printed.replace("\n", ""))
    assert "é" in printed
    assert json.loads(printed) == odd


def test_a_terminal_is_told_nothing_by_the_name_of_a_batch():
    fields = {name: 0 for name in Update.__dataclass_fields__ if name.startswith("n_")}
    update = Update(batch=1, name=BELL, notices=[], **fields)
    assert "\x1b" not in update.headline()


def test_questions_about_many_groups_are_counted_together(monkeypatch):
    """An audit of 300 groups took 4 minutes, most of it for equal counts that were tested one by one."""
    rng = np.random.default_rng(0)
    n, n_groups = 400, 30
    y, groups = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    predictions = np.where(rng.random((n, n_groups)) < 0.7, y[:, None], 1 - y[:, None])
    tested = []
    reached = Differences._reached
    monkeypatch.setattr(Differences, "_reached", lambda self, h, q: tested.append(len(q)) or reached(self, h, q))
    found = dafh.audit(y, predictions, groups, pooled=predictions[:, 0]).to_frame()
    assert len(found) == n_groups**2
    assert max(tested) < 300
    right = predictions == y[:, None]
    for _, row in found[found["kind"] == "envy"].sample(20, random_state=0).iterrows():
        mine = groups == row["group"]
        own, rival = right[mine][:, row["group"]], right[mine][:, row["rival"]]
        assert (row["own_worse"], row["own_better"]) == ((rival & ~own).sum(), (own & ~rival).sum())


@pytest.mark.parametrize("only", [None, np.array(["x", "z"])])
def test_columns_that_only_an_incumbent_sees_may_be_none_or_an_array(only):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["x", "y", "z"])
    old = LogisticRegression().fit(X, X["x"] > 0)
    brought = dafh.Incumbent(old, only=only)
    model = dafh.DAFHClassifier(1, pooled=brought, random_state=0).fit(X, X["x"] > 0)
    assert (model.pooled_.predict(X) == old.predict(X)).all()


@pytest.mark.parametrize("weight", ["inf", "1e999"])
def test_weights_without_end_are_refused(tmp_path, weight):
    table = pd.DataFrame({"a": [1, 2, 3, 4] * 20, "w": "1", "y": [0, 1] * 40})
    table.loc[3, "w"] = weight
    table.to_csv(tmp_path / "table.csv", index=False)
    found = run("fit", tmp_path / "table.csv", "--target", "y", "--weight", "w", "--out", tmp_path / "m.dafh")
    assert found.exit_code == 2
    assert "needs a number from 0 on in every row" in found.output


def test_evidence_that_a_state_has_no_number_for_is_without_end():
    assert evidence_in_words(None) == "over 1,000,000"


def test_dates_that_cannot_be_counted_are_refused(tmp_path):
    days = pa.array([2**31 - 1 - number % 20 for number in range(80)], pa.date32())
    pq.write_table(pa.table({"a": [1, 2, 3, 4] * 20, "y": [0, 1] * 40, "d": days}), tmp_path / "table.parquet")
    found = run("fit", tmp_path / "table.parquet", "--target", "y", "--out", tmp_path / "m.dafh")
    assert found.exit_code == 2
    assert "Column 'd' holds a date that is too far away to be counted." in found.output
