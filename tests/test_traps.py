"""What users bring by mistake, and what looks right and is not: refused, or told in one sentence."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from command_line import run
from dafh import DAFHClassifier, DecoupledClassifier, Incumbent, IncumbentColumns, Scorecard, audit, tabular_pipeline
from dafh.cli.output import print_json
from dafh.columns.column import Column
from dafh.columns.schema import TableSchema
from dafh.exceptions import InputError, SuspiciousInputWarning
from model_files import Parts


def rows(n=600, seed=0):
    """Age decides about y, and so does the amount; job means nothing."""
    rng = np.random.default_rng(seed)
    age, amount = rng.integers(18, 80, n), rng.normal(50, 10, n).round(1)
    y = (age + amount + rng.normal(0, 8, n) > 99).astype(int)
    return pd.DataFrame({"age": age, "amount": amount, "job": rng.choice(["cook", "clerk"], n)}), y


class NotToBeFitted(LogisticRegression):
    """A model in production."""

    is_final = False

    def fit(self, X, y, sample_weight=None):
        assert not type(self).is_final, "the incumbent was fitted again"
        return super().fit(X, y, sample_weight)


# ---- incumbents in copies ----


@pytest.fixture
def incumbent(monkeypatch):
    table, y = rows(200, seed=1)
    model = NotToBeFitted().fit(table[["age"]], y)
    monkeypatch.setattr(NotToBeFitted, "is_final", True)
    return model


def test_a_fitted_incumbent_stays_as_it_is_in_cross_validation_and_grid_search(incumbent):
    table, y = rows()
    model = DAFHClassifier(1, pooled=incumbent, random_state=0)
    X = table[["age"]]
    assert len(cross_val_score(model, X, y, cv=2)) == 2
    found = GridSearchCV(tabular_pipeline(model), {"model__guard": ["evidence", None]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(found.best_estimator_[-1].pooled_.predict(X), incumbent.predict(X))


@pytest.mark.parametrize("pooled", [Scorecard(8), IncumbentColumns("amount", threshold=50.0)])
def test_whatever_was_fitted_before_is_shared_by_copies_and_the_rest_is_not(pooled):
    table, y = rows()
    unfitted = clone(DAFHClassifier(1, pooled=pooled))
    assert unfitted.pooled is not pooled
    brought = clone(pooled).fit(table, y)
    assert clone(DAFHClassifier(1, pooled=brought)).pooled is brought


def test_a_copy_still_takes_another_pooled_classifier(incumbent):
    copy = clone(DAFHClassifier(1, pooled=incumbent)).set_params(pooled="linear")
    assert clone(copy).pooled == "linear"
    shared = clone(DAFHClassifier(1, pooled=Incumbent(incumbent)))
    assert shared.pooled.model is incumbent


# ---- columns ----


@pytest.mark.parametrize(
    "model",
    [DAFHClassifier(1), Scorecard(8), tabular_pipeline(DAFHClassifier(1)), tabular_pipeline(LogisticRegression())],
)
def test_numbers_as_text_are_told_with_what_to_do(model):
    table, y = rows()
    as_text = table.assign(age=table["age"].astype(str))
    with pytest.warns(SuspiciousInputWarning, match=r"Column 'age' holds numbers or dates as text.*pandas.to_numeric"):
        clone(model).fit(as_text, y)
    declared = as_text.astype({"age": "category"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(table, y)
        clone(model).fit(declared, y)


def test_numbers_that_are_declared_as_categories_and_codes_with_zeros_are_not_told():
    table, y = rows()
    table = table.assign(age=table["age"].astype(str), place=[f"{i % 40:05}" for i in range(len(y))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tabular_pipeline(DAFHClassifier(1), {"age": "category"}).fit(table, y)


@pytest.mark.parametrize(
    ("form", "kind"),
    [("€ {}", "number"), ("{} €", "number"), ("-$ {}", "number"), ("{}%", "number"), ("{} kg", "category")],
)
def test_amounts_with_a_sign_of_a_currency_are_numbers_in_files(form, kind):
    table, y = rows(60)
    texts = table["amount"].map(form.format)
    schema = TableSchema.guess(pd.DataFrame({"amount": texts, "age": table["age"], "y": y}), "y", categories=["age"])
    assert schema.features.get("amount", "category") == kind
    if kind == "number":
        read = schema.features_of(pd.DataFrame({"amount": texts, "age": table["age"]}))["amount"]
        sign = -1 if form.startswith("-") else 1
        np.testing.assert_allclose(read, sign * table["amount"])


@pytest.mark.parametrize(("name", "values"), [("zip_code", [10_115, 80_331] * 30), ("place", ["0501", "1201"] * 30)])
def test_numbers_that_may_be_codes_get_a_hint(name, values):
    table = pd.DataFrame({name: list(values), "age": np.arange(60) % 50, "y": [0, 1] * 30})
    (hint,) = [note for note in TableSchema.guess(table, "y").notes if "codes" in note]
    assert (
        hint
        == f"The numbers of this column may be codes: {name}. If their order means nothing, declare them as categories."
    )
    declared = TableSchema.guess(table, "y", categories=[name])
    assert not any("codes" in note for note in declared.notes)


@pytest.mark.parametrize("model", [DAFHClassifier(1), Scorecard(8), DecoupledClassifier()])
@pytest.mark.parametrize("as_given", [pd.DataFrame, np.asarray])
def test_infinite_numbers_are_refused_in_training(model, as_given):
    table, y = rows(100)
    table = table[["age", "amount"]].astype(float)
    table.loc[3, "amount"] = np.inf
    with pytest.raises(ValueError, match="infini"):
        model.fit(as_given(table), y)


def test_infinite_numbers_in_files_count_as_missing_and_are_told():
    table, y = rows(100)
    table = table.assign(amount=table["amount"].astype(str), y=y)
    table.loc[3, "amount"] = "inf"
    schema = TableSchema.guess(table, "y")
    assert "Counted as missing in amount: 'inf'." in schema.notes
    assert schema.features_of(table)["amount"].isna().tolist() == [i == 3 for i in range(100)]


def test_subgroups_of_few_numbers_are_in_the_order_of_numbers():
    ages = pd.Series([10, 11, 4, 10, None], name="age")
    column = Column.of_subgroups(ages)
    assert column.subgroups == ["age = 4", "age = 10", "age = 11", "age = (missing)"]
    assert column.subgroup_codes(ages).tolist() == [1, 2, 0, 1, 3]
    y = np.tile([0, 1], 200)
    sensitive = pd.DataFrame({"age": np.tile([10, 11, 4, 7], 100)})
    named = audit(y, np.column_stack([y, y]), y * 0, pooled=y, sensitive_features=sensitive, depth=1).composition
    assert named["named_group"].tolist() == ["age = 4", "age = 7", "age = 10", "age = 11"]


# ---- labels ----


def test_one_label_in_two_spellings_is_refused():
    table, y = rows(100)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[0] = "Yes "
    for model in (DAFHClassifier(1), DecoupledClassifier()):
        with pytest.raises(InputError, match=r"y holds 'yes' and 'Yes ': write one label in one way"):
            model.fit(table[["age"]], labels)


def test_the_command_refuses_one_label_in_two_spellings(tmp_path):
    table, y = rows(100)
    table.assign(y=np.where(y == 1, "yes", np.where(np.arange(100) % 3, "no", "No"))).to_csv(tmp_path / "a.csv")
    result = run("fit", tmp_path / "a.csv", "--target", "y", "--out", tmp_path / "model.dafh")
    assert result.exit_code == 2
    assert "The target 'y' holds 'No' and 'no': write one label in one way." in result.stderr


def test_a_stray_label_is_told_and_a_rare_class_among_small_ones_is_not():
    table, y = rows(300)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[0] = "maybe"
    with pytest.warns(SuspiciousInputWarning, match="y holds 'maybe' in 1 of 300 rows"):
        DAFHClassifier(1).fit(table[["age"]], labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = np.r_[np.arange(10), np.flatnonzero(labels == "yes")[:10], np.flatnonzero(labels == "no")[:10]]
        DAFHClassifier(1).fit(table[["age"]].iloc[few], labels[few])


# ---- files from anybody ----


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


@pytest.mark.parametrize("weight", ["inf", "1e999"])
def test_weights_without_end_are_refused(tmp_path, weight):
    table = pd.DataFrame({"a": [1, 2, 3, 4] * 20, "w": "1", "y": [0, 1] * 40})
    table.loc[3, "w"] = weight
    table.to_csv(tmp_path / "table.csv", index=False)
    found = run("fit", tmp_path / "table.csv", "--target", "y", "--weight", "w", "--out", tmp_path / "m.dafh")
    assert found.exit_code == 2
    assert "needs a number from 0 on in every row" in found.output


def test_dates_that_cannot_be_counted_are_refused(tmp_path):
    days = pa.array([2**31 - 1 - number % 20 for number in range(80)], pa.date32())
    pq.write_table(pa.table({"a": [1, 2, 3, 4] * 20, "y": [0, 1] * 40, "d": days}), tmp_path / "table.parquet")
    found = run("fit", tmp_path / "table.parquet", "--target", "y", "--out", tmp_path / "m.dafh")
    assert found.exit_code == 2
    assert "Column 'd' holds a date that is too far away to be counted." in found.output


# ---- calibration rows ----


@pytest.mark.parametrize("part", [slice(None), slice(0, 300), slice(100, 250)])
@pytest.mark.parametrize("model", [DAFHClassifier(1, guard="proof"), DecoupledClassifier(guard="proof")])
def test_training_rows_for_the_guard_are_told(model, part):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1400, 2))
    y = (X[:, 0] > 0).astype(int)
    fitted = clone(model).set_params(guard=None).fit(X[:1000], y[:1000]).set_params(guard="proof")
    fitted.recalibrate(X[1000:], y[1000:])
    with pytest.warns(SuspiciousInputWarning, match="X holds rows that the model was trained on"):
        fitted.recalibrate(X[:1000][part], y[:1000][part])


def test_of_many_training_rows_a_thousand_are_recognised():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 2))
    y = (X[:, 0] > 0).astype(int)
    fitted = DecoupledClassifier(guard="evidence").fit(X[:5000], y[:5000])
    fitted.recalibrate(X[5000:], y[5000:])
    assert len(fitted.training_hashes_) == 1000
    with pytest.warns(SuspiciousInputWarning, match="trained on"):
        fitted.recalibrate(X[:5000], y[:5000])


def test_rows_of_categories_that_repeat_anyway_may_judge():
    table = pd.DataFrame({"job": ["cook", "clerk", "pilot", "nurse"] * 50})
    y = np.tile([0, 1, 1, 0, 1, 0, 0, 1], 25)
    DAFHClassifier(1).fit(table, y).recalibrate(table, y)
