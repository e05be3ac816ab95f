"""The audit: many ways to say the same, hard inputs, and inputs that are refused."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audited import rows, run, verdicts
from dafh import audit
from dafh.exceptions import InputError

# ---- many ways to say the same ----


def test_named_columns_and_named_groups():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    named = np.array(["east", "west"])[groups]
    columns = {"east": predictions[:, 0], "west": predictions[:, 1]}
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        frame = audit(y, table, named, pooled=pooled).to_frame()
        assert list(frame["group"]) == ["east", "east", "west", "west"]
        assert list(frame["rival"]) == ["pooled", "west", "pooled", "east"]
        np.testing.assert_allclose(frame["p"], plain["p"])


def test_one_model_against_the_pooled_one_for_any_segments():
    y, predictions, groups, pooled = rows()
    result = audit(y, predictions[:, 1], np.array(["old", "new"])[groups], pooled=pooled)
    assert list(result.to_frame()["group"]) == ["new", "old"]
    assert set(result.to_frame()["kind"]) == {"rationality"}


def test_groups_may_be_booleans_whole_floats_and_missing():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    for same in (groups.astype(bool), groups.astype(float)):
        pd.testing.assert_frame_equal(audit(y, predictions, same, pooled=pooled).to_frame(), plain)
    strings = {"0": predictions[:, 0], "1": predictions[:, 1]}
    assert verdicts(audit(y, strings, groups, pooled=pooled)).keys() == {
        ("0", "pooled"),
        ("0", "1"),
        ("1", "pooled"),
        ("1", "0"),
    }
    segments = np.array(["a", None], dtype=object)[groups]
    one_column = pd.DataFrame({"model": predictions[:, 0]})
    asked = audit(y, one_column, segments, pooled=pooled).to_frame()
    assert asked["group"].tolist() == ["a", "(missing)"]
    assert asked["n"].tolist() == [(groups == 0).sum(), (groups == 1).sum()]


def test_the_scale_of_weights_means_nothing():
    table = rows()
    plain = run(table).to_frame()
    for weight in (1e200, 1e-200):
        pd.testing.assert_frame_equal(run(table, sample_weight=np.full(2000, weight)).to_frame(), plain)


def test_a_margin_turns_harm_into_no_harm():
    table = rows(20_000, errors=(0.31, 0.33))
    assert run(table).verdict.status == "harm"
    assert run(table, margin=0.1).verdict.status == "no_harm"


def test_groups_served_by_the_pooled_classifier_cannot_be_harmed_by_it():
    y, predictions, _, pooled = rows()
    groups = np.full(len(y), 2)
    groups[:900] = np.arange(900) % 2
    asked = verdicts(audit(y, predictions, groups, pooled=pooled))
    assert asked["pooled", "pooled"] == "satisfied"
    own = verdicts(audit(y, predictions, groups % 2, pooled=pooled, own=[2, 1]))
    assert own[0, "pooled"] == "satisfied"
    assert (0, 0) in own  # The classifier it does not use can still be preferred.


def test_classifiers_that_happen_to_agree_are_not_taken_for_one():
    y, predictions, groups, pooled = rows(errors=(0.1, 0.1))
    predictions[:, 1] = pooled
    frame = audit(y, predictions, groups, pooled=pooled).to_frame().iloc[2]
    assert frame["verdict"] == "undecided"  # They may differ on up to three in a thousand.
    assert 0.002 < frame["high"] < 0.006
    assert -frame["low"] == pytest.approx(frame["high"], rel=1e-9)
    assert verdicts(audit(y, predictions, groups, pooled=pooled, margin=0.01))[1, "pooled"] == "satisfied"
    assert verdicts(audit(y, predictions, groups, pooled=pooled, own=[0, 2]))[1, "pooled"] == "satisfied"


def test_a_wrong_satisfied_is_as_rare_as_promised():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(20):
        own = (rng.random(100) < 0.01) * 1  # Errs on one in a hundred, the pooled classifier never.
        result = audit(np.zeros(100, int), own, np.zeros(100, int), pooled=np.zeros(100, int))
        wrong += result.to_frame()["verdict"].eq("satisfied").sum()
    assert wrong == 0


# ---- hard inputs ----


def test_empty_and_tiny_groups_say_that_nothing_is_known():
    y, predictions, _, pooled = rows(300, 3)
    groups = np.zeros(300, int)
    groups[0] = 1
    frame = audit(y, predictions, groups, pooled=pooled).to_frame().set_index(["group", "rival"])
    assert frame.loc[(2, "pooled"), "n"] == 0
    assert np.isnan(frame.loc[(2, "pooled"), "own_loss"])
    assert tuple(frame.loc[(2, "pooled"), ["low", "high"]]) == (-1, 1)
    assert set(frame.loc[[1, 2], "verdict"]) == {"undecided"}
    assert frame.loc[(1, "pooled"), "n"] == 1


def test_empty_groups_do_not_make_the_correction_stricter():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    with_empty = audit(y, predictions, groups, pooled=pooled, own=[0, 1, 0]).to_frame()
    assert with_empty["n"].eq(0).sum() == 2
    np.testing.assert_array_equal(with_empty["p_corrected"][:4], plain["p_corrected"])


def test_one_class_one_row_and_predictions_that_never_differ():
    one_class = audit(np.ones(200, int), np.ones((200, 2), int), np.arange(200) % 2, pooled=np.ones(200, int))
    assert set(one_class.to_frame()["verdict"]) == {"undecided"}
    assert one_class.to_frame()["high"].max() < 0.05
    assert one_class.matrix.pr_without_harm == 1
    single = audit(["a"], [["a", "b"]], [0], pooled=["b"])
    assert set(single.to_frame()["verdict"]) == {"undecided"}
    for result in (one_class, single):
        assert result.summary()
        json.dumps(result.to_dict(), allow_nan=False)


def test_equal_weights_change_nothing_and_unequal_ones_cost_rows():
    table = rows()
    plain = run(table).to_frame()
    pd.testing.assert_frame_equal(run(table, sample_weight=np.full(2000, 7.5)).to_frame(), plain)
    weighted = run(table, sample_weight=np.random.default_rng(0).choice([0.1, 1, 4], 2000)).to_frame()
    assert (weighted["n"] == plain["n"]).all()
    assert (weighted["high"] - weighted["low"] > plain["high"] - plain["low"]).all()


def test_rows_of_weight_zero_are_as_good_as_absent():
    y, predictions, groups, pooled = rows()
    half = np.arange(2000) % 2 == 0
    kept = audit(y[half], predictions[half], groups[half], pooled=pooled[half]).to_frame()
    pd.testing.assert_frame_equal(run((y, predictions, groups, pooled), sample_weight=half * 1.0).to_frame(), kept)


RECORDS = np.array([{}] * 2000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 0.5}, "level must lie between 0 and 0.5"),
        ({"margin": 1}, "margin must be at least 0 and below 1"),
        ({"groups": np.array(["a", "b"])[np.arange(2000) % 2]}, "groups must be integers"),
        (
            {"predictions": {str(k): np.zeros(2000) for k in range(12)}, "groups": np.arange(2000) % 7 + 20},
            "groups holds 20, 21, 22, 23 and 24, but predictions has the columns 0, 1, 2, 3, 4, 5, 6, 7, 8 and 9:",
        ),
        ({"level": 0}, "level must lie between 0 and 0.5"),
        ({"margin": -0.1}, "margin must be at least 0 and below 1"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"groups": np.full(2000, 5)}, "groups must be integers from 0 to 1"),
        ({"groups": np.full(2000, 0.5)}, "groups must be integers"),
        ({"predictions": {"a": np.zeros(2000), "b": np.zeros(2000)}}, "groups holds 0 and 1, but .* columns a and b"),
        ({"predictions": np.zeros((2000, 2, 2))}, "one column per classifier"),
        ({"sensitive_features": pd.DataFrame({"sex": ["f"]})}, "has 1 rows, the data have 2000"),
        ({"y": np.full(2000, "0")}, "both must be of one kind"),
        ({"y": np.r_[np.nan, np.zeros(1999)]}, "y has missing values"),
        ({"pooled": np.r_[np.nan, np.zeros(1999)]}, "missing predictions"),
        ({"predictions": np.full((2000, 2), 0.3)}, "not probabilities"),
        ({"predictions": {"a": np.zeros(2000, int), "b": np.full(2000, "x")}}, "different kinds"),
        ({"predictions": pd.DataFrame(np.zeros((2000, 2), int), columns=["a", "a"])}, "two columns of the same name"),
        ({"y": [], "predictions": np.zeros((0, 2)), "groups": [], "pooled": []}, "no rows"),
        ({"predictions": [[0], [0, 1]]}, "predictions cannot be read as an array"),
        ({"predictions": {"a": [[0], [0, 1]]}}, "predictions cannot be read as an array"),
        ({"predictions": 1}, "predictions must have one row per sample, got 1"),
        ({"predictions": {}}, "predictions must have columns of the same length, one label per sample in each"),
        ({"predictions": {"a": 1}}, "columns of the same length"),
        ({"predictions": {"a": [0, 1], "b": [0]}}, "columns of the same length"),
        ({"predictions": {"a": [[0, 1]], "b": [[0, 1]]}}, "columns of the same length"),
        ({"groups": [[0], [0, 1]]}, "groups cannot be read as an array"),
        (
            {"predictions": np.zeros(2000, int), "groups": np.zeros((2000, 1), int)},
            r"groups must have one entry per sample, got shape \(2000, 1\)",
        ),
        ({"predictions": np.zeros(2000, int), "groups": RECORDS}, "groups holds lists or records: a group is text"),
        ({"own": [[0], [0, 1]]}, "own cannot be read as an array"),
        ({"own": 0}, r"own must have one entry per group, got shape \(\)"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, message):
    y, predictions, groups, pooled = rows()
    arguments = {"y": y, "predictions": predictions, "groups": groups, "pooled": pooled} | change
    with pytest.raises(InputError, match=message):
        audit(**arguments)


def test_wrong_lengths_are_refused():
    y, predictions, groups, pooled = rows()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        audit(y[:-1], predictions, groups, pooled=pooled)
