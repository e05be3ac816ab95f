"""The audit of named groups, and who is in which group."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audited import people, rows, run
from dafh import audit

# ---- named groups ----


def test_depth_chooses_how_many_attributes_are_intersected():
    table, _ = people()
    sizes = [len(run(rows(4000), sensitive_features=table, depth=depth).named) for depth in (1, 2, 5)]
    assert sizes == [2 + 3, 2 + 3 + 6, 2 + 3 + 6]
    three = table.assign(half=np.arange(4000) % 2)
    assert len(run(rows(4000), sensitive_features=three).named) == 2 + 3 + 2 + 6 + 4 + 6  # Pairs by default.


def test_counts_of_named_groups_are_those_of_a_group_by():
    table, _ = people()
    y, predictions, groups, pooled = rows(4000)
    served = predictions[np.arange(4000), groups]
    frame = audit(y, predictions, groups, pooled=pooled, sensitive_features=table).named.set_index("group")
    for (sex, race), members in table.groupby(["sex", "race"]).groups.items():
        row = frame.loc[f"sex = {sex} & race = {race}"]
        wrong, pooled_wrong = served[members] != y[members], pooled[members] != y[members]
        assert row["n"] == len(members)
        assert row["own_worse"] == (wrong & ~pooled_wrong).sum()
        assert row["own_loss"] == pytest.approx(wrong.mean())
        assert row["rival_loss"] == pytest.approx(pooled_wrong.mean())


def test_missing_values_are_a_group_numbers_are_cut_and_rare_categories_put_together():
    table, rng = people()
    table.loc[:99, "sex"] = None
    table["age"] = rng.integers(18, 90, 4000).astype(float)
    table.loc[100:149, "age"] = np.nan
    table["town"] = rng.integers(0, 900, 4000).astype(str)
    names = set(run(rows(4000), sensitive_features=table, depth=1).named["group"])
    assert {"sex = (missing)", "age = (missing)", "town = (other)"} <= names
    assert sum(name.startswith("age = ") for name in names) == 5
    assert sum(name.startswith("town = ") for name in names) == 60


@pytest.mark.parametrize(
    "attributes",
    [
        pd.Series(["x", "y"] * 100),
        np.array([["x", "y"] * 100]).T,
        pl.DataFrame({"a": ["x", None] * 100}),
        pd.DataFrame({0: pd.Categorical(["x", None] * 100), "b": [True, False] * 100}),
        pd.DataFrame({"all missing": [None] * 200}),
        pd.DataFrame({"number": [np.nan] * 200}),
        pd.DataFrame({"many": np.r_[np.arange(199.0), np.inf]}),
        pd.DataFrame({"when": pd.date_range("2020", periods=200)}),
        pd.DataFrame({"mixed": [1, "1", None, 2.5] * 50}),
    ],
)
def test_attributes_of_any_kind(attributes):
    result = run(rows(200), sensitive_features=attributes)
    assert result.named["n"].sum() >= 200
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.summary()


def test_weights_count_in_the_composition():
    table = pd.DataFrame({"sex": ["f", "f", "f", "m"]})
    result = audit([0] * 4, [[0, 0]] * 4, [0, 1, 1, 1], pooled=[0] * 4, sensitive_features=table,
                   sample_weight=[2, 1, 1, 4])  # fmt: skip
    assert result.composition.columns.tolist() == ["named_group", "weight", "in_0", "in_1"]
    assert result.composition.to_numpy().tolist() == [["sex = f", 1.0, 0.5, 0.5], ["sex = m", 1.0, 0.0, 1.0]]


def test_named_groups_whose_rows_here_are_all_served_by_the_pooled_classifier_are_not_satisfied_by_that():
    """Elsewhere such a named group may have rows in another group: 400 rows cannot show that it has not."""
    table, _ = people(400)
    y, predictions, _, pooled = rows(400)
    groups = (table["sex"] == "m").to_numpy() * 1
    result = audit(y, predictions, groups, pooled=pooled, own=[0, 2], sensitive_features=table, depth=1)
    assert result.named.set_index("group").loc["sex = m", "verdict"] == "undecided"
    all_pooled = audit(y, predictions, groups, pooled=pooled, own=[2, 2], sensitive_features=table, depth=1)
    assert set(all_pooled.named["verdict"]) == {"satisfied"}


def test_persons_count_once_in_named_groups_and_rows_of_one_person_in_two_groups_count_in_both():
    table, _ = people(400)
    y, predictions, groups, pooled = rows(400)
    persons = np.arange(400) // 4
    named = audit(y, predictions, groups, pooled=pooled, persons=persons, sensitive_features=table, depth=1).named
    plain = audit(y, predictions, groups, pooled=pooled, sensitive_features=table, depth=1).named
    assert named["n"].tolist() == plain["n"].tolist()
    np.testing.assert_allclose(named["gap"], plain["gap"])
    assert (named["high"] - named["low"] > plain["high"] - plain["low"]).all()
    each = audit(y, predictions, groups, pooled=pooled, persons=np.arange(400), sensitive_features=table, depth=1)
    pd.testing.assert_frame_equal(each.named, plain)
