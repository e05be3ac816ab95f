"""Warnings of columns that give the target, or a sensitive attribute, away."""

import numpy as np
import pandas as pd
import pytest

from dafh.tables.leakage import positions, predicts
from dafh.tables.schema import TableSchema

N = 400
RNG = np.random.default_rng(0)
LABEL = RNG.integers(0, 2, N)


def notes(sensitive=(), y=LABEL, **columns):
    table = pd.DataFrame({"noise": RNG.normal(size=len(y)), **columns, "y": np.where(y, "yes", "no")})
    return TableSchema.guess(table, "y", sensitive=sensitive).leakage_notes(table)


@pytest.mark.parametrize(
    "leak",
    [
        LABEL,
        LABEL.astype(str),
        1000.0 - 7 * LABEL,
        np.where(LABEL, "approved", "rejected"),
        LABEL == 0,
        pd.to_datetime("2020-01-01") + pd.to_timedelta(400 * LABEL, unit="D"),
        np.where(RNG.random(N) < 0.02, 1 - LABEL, LABEL),
        LABEL + RNG.normal(0, 0.1, N),
        pd.Series(np.where(LABEL, "x", None), dtype=object).fillna("?").where(LABEL == 1, "z"),
    ],
    ids=["same", "text", "scaled", "words", "negated", "dates", "nearly", "noisy", "category"],
)
def test_a_column_that_gives_the_target_away_is_named(leak):
    assert notes(outcome=leak) == [
        "Possible leakage: outcome alone predicts the target almost perfectly. Is it available at prediction time?"
    ]


def test_gaps_can_give_the_target_away():
    (note,) = notes(closed=np.where(LABEL, np.nan, RNG.normal(size=N)))
    assert note.startswith("Possible leakage: closed alone")


@pytest.mark.parametrize("error", [0.08, 0.3])
def test_a_good_feature_is_not_called_leakage(error):
    assert notes(good=np.where(RNG.random(N) < error, 1 - LABEL, LABEL)) == []


def test_what_is_right_because_one_label_is_frequent_is_no_leakage():
    rare = (np.arange(N) % 25 == 0).astype(int)
    assert notes(y=rare, good=np.where(RNG.random(N) < 0.5, 0, rare) + RNG.normal(0, 1e-3, N)) == []


def test_several_columns_are_named_in_one_sentence():
    (note,) = notes(a=LABEL, b=-LABEL)
    assert note == (
        "Possible leakage: each of a, b alone predicts the target almost perfectly. Are they available at prediction "
        "time?"
    )


def test_a_feature_that_gives_a_sensitive_attribute_away_is_named_without_a_question():
    sex = RNG.choice(["f", "m"], N)
    assert notes(["sex"], sex=sex, title=np.where(sex == "f", "Ms", "Mr")) == [
        "Possible leakage: title alone predicts sex almost perfectly."
    ]


def test_sensitive_and_dropped_columns_are_no_features_and_so_no_leakage():
    assert notes(["sex"], sex=LABEL) == []


def test_few_rows_prove_nothing():
    few = slice(0, 59)
    assert notes(y=LABEL[few], outcome=LABEL[few]) == []
    assert len(notes(y=LABEL[:60], outcome=LABEL[:60])) == 1


def test_columns_of_many_values_do_not_predict_by_naming_every_row():
    assert not predicts(positions(pd.Series([f"name {i}" for i in range(N)])), LABEL)


def test_a_column_that_repeats_in_both_halves_does_not_predict_by_heart():
    values, outcome = np.repeat(np.arange(200), 2), np.repeat(RNG.integers(0, 2, 200), 2)
    assert not predicts(values, outcome)
    assert predicts(values, np.repeat(np.arange(200) > 90, 2))


def feature_with_errors(outcome, errors):
    """A copy of an outcome with some errors among the odd rows, which are not fitted on."""
    feature = outcome.copy()
    feature[errors] = 1 - feature[errors]
    return feature


def test_nineteen_of_twenty_rows_must_be_right():
    outcome = np.repeat([0, 1], 200)
    assert predicts(feature_with_errors(outcome, np.arange(1, 21, 2)), outcome)  # 190 of 200.
    assert not predicts(feature_with_errors(outcome, np.arange(1, 23, 2)), outcome)  # 189 of 200.


def test_four_of_five_errors_of_the_most_frequent_value_must_vanish():
    outcome = np.repeat([0, 1], [360, 40])  # Among the rows that are asked, the usual value has 20 errors.
    assert predicts(feature_with_errors(outcome, np.arange(361, 367, 2)), outcome)  # 3 of them are left.
    assert not predicts(feature_with_errors(outcome, np.arange(361, 371, 2)), outcome)  # 5 of them are left.


def test_an_outcome_with_one_value_is_predicted_by_nothing():
    assert not predicts(LABEL, np.zeros(N, int))


def test_positions_follow_the_order_of_numbers_dates_and_text():
    assert positions(pd.Series([10, 9, np.nan, 10])).tolist() == [1, 0, -1, 1]
    assert positions(pd.Series(["10", "9", None])).tolist() == [0, 1, -1]
    assert positions(pd.to_datetime(pd.Series(["2020-02-01", "2020-01-01", None]))).tolist() == [1, 0, -1]
    assert positions(pd.Series([300, 2, None], dtype="Int64")).tolist() == [1, 0, -1]


def test_of_many_rows_some_are_looked_at_and_the_answer_is_the_same():
    many = np.tile(LABEL, 50)
    assert len(notes(y=many, outcome=many)) == 1
