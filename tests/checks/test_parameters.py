"""Checks of what users pass in: what is let through, and the sentence for what is not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from dafh.checks.parameters import (
    NOTHING,
    RANDOM_STATE,
    check_parameters,
    having,
    instance_of,
    number,
    one_of,
    sequence_of,
    whole_number,
)
from dafh.checks.rows import check_features, check_known_labels, check_labels, check_weights, unchanged_on_error
from dafh.exceptions import InputError

# ---- kinds of parameters ----

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("kind", "words", "good", "bad"),
    [
        (whole_number(1), "an int in the range [1, inf)", [1, 2, np.int64(7)], [0, -1, 1.0, True, "1", None, NAN]),
        (number(0, 0.5), "a float in the range (0, 0.5)", [0.1, np.float32(0.2)], [0, 0.5, -1, NAN, True, "0.1"]),
        (number(0, 1, closed="left"), "a float in the range [0, 1)", [0, 0.0, 0.99], [1, -1e-9, INF]),
        (number(0, 1, closed="right"), "a float in the range (0, 1]", [1, 0.5], [0, 1.01, NAN]),
        (number(0, closed="left"), "a float in the range [0, inf)", [0, 3, 1e300], [INF, -0.1, NAN]),
        (one_of("veto", "proof"), "a str among {'proof', 'veto'}", ["veto", "proof"], ["VETO", "", None, 1, ["veto"]]),
        (having("fit", "predict"), "an object that has 'fit', 'predict'", [LogisticRegression()], [None, 3, "fit"]),
        (instance_of(dict), "an instance of dict", [{}], [[], None, dict]),
        (NOTHING, "None", [None], [0, "", False, NAN]),
    ],
)
def test_what_each_kind_lets_through(kind, words, good, bad):
    assert kind.words == words
    assert [kind.holds(value) for value in good] == [True] * len(good)
    assert [kind.holds(value) for value in bad] == [False] * len(bad)


def test_a_sequence_holds_members_of_one_kind():
    widths = sequence_of(whole_number(1), "a sequence of positive ints")
    for good in ((), [1], (3, 4), np.array([5, 6])):
        assert widths.holds(good)
    for bad in (5, "12", [0], [1, 2.5], [None], None, [[1]]):
        assert not widths.holds(bad)


def test_a_method_must_be_callable():
    class Odd:
        fit = "not a method"

    assert not having("fit").holds(Odd())


@pytest.mark.parametrize("state", [None, 0, 7, np.int32(3), np.random.RandomState(0)])
def test_random_states_that_can_be_used(state):
    assert RANDOM_STATE.holds(state)


@pytest.mark.parametrize("state", [-1, 0.5, "0", True, np.random.default_rng(0)])
def test_random_states_that_cannot_be_used(state):
    assert not RANDOM_STATE.holds(state)


class Oven(BaseEstimator):
    def __init__(self, heat=200, door="open"):
        self.heat = heat
        self.door = door


OVEN = {"heat": (whole_number(50), one_of("auto"), NOTHING), "door": (one_of("open", "closed"),)}


def test_a_parameter_that_cannot_be_used_is_named_with_all_that_it_may_be():
    with pytest.raises(InputError) as caught:
        check_parameters(Oven(heat=3), OVEN)
    assert str(caught.value) == (
        "The 'heat' parameter of Oven must be an int in the range [50, inf), a str among {'auto'} or None. "
        "Got 3 instead."
    )


def test_the_first_wrong_parameter_is_named():
    with pytest.raises(InputError, match="'heat' parameter"):
        check_parameters(Oven(heat=3, door="ajar"), OVEN)
    with pytest.raises(InputError, match=r"must be a str among \{'closed', 'open'\}\. Got 'ajar' instead\."):
        check_parameters(Oven(door="ajar"), OVEN)


def test_parameters_in_order_are_let_through():
    for heat in (50, "auto", None):
        check_parameters(Oven(heat=heat), OVEN)


# ---- an estimator that fails half-way ----


def fail(oven, error):
    """Delete an attribute, add one and write a parameter, and then fail."""
    with unchanged_on_error(oven):
        del oven.warm_
        oven.burnt_ = True
        oven.heat = 0
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_estimator_is_put_back_whatever_went_wrong(error):
    oven = Oven()
    oven.warm_ = before = [1]
    with pytest.raises(error):
        fail(oven, error)
    assert vars(oven) == {"heat": 200, "door": "open", "warm_": [1]}
    assert oven.warm_ is before


def test_without_an_error_changes_stay():
    oven = Oven()
    with unchanged_on_error(oven):
        oven.warm_ = True
    assert oven.warm_


# ---- features ----


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float32, np.float32), (np.float64, np.float64), (int, np.float64), (bool, np.float64)]
)
def test_features_become_floating_point_numbers_and_single_precision_stays(given, kept):
    X, y = check_features(Oven(), np.eye(3).astype(given), [0, 1, 0], reset=True)
    assert X.dtype == kept
    assert y.tolist() == [0, 1, 0]


def test_one_row_is_too_few_to_fit_and_enough_to_predict():
    oven = Oven()
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        check_features(oven, [[1.0, 2.0]], [0], reset=True)
    check_features(oven, np.eye(2), [0, 1], reset=True)
    assert check_features(oven, [[1.0, 2.0]], reset=False).shape == (1, 2)


def test_column_names_are_remembered():
    oven = Oven()
    check_features(oven, pd.DataFrame({"u": [1.0, 2.0], "v": [0.0, 1.0]}), [0, 1], reset=True)
    assert oven.feature_names_in_.tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="feature names"):
        check_features(oven, pd.DataFrame({"v": [1.0], "u": [0.0]}), reset=False)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_text_are_named_and_numbers_are_not(library):
    frame = library({"age": [30, 40], "city": ["Oslo", "Rome"], "paid": [True, False]})
    with pytest.raises(InputError) as caught:
        check_features(Oven(), frame, [0, 1], reset=True)
    assert str(caught.value) == (
        "Oven needs numbers, but column city of X holds text: wrap it as dafh.tabular_pipeline(Oven(...)), "
        "which encodes data frames of any kind."
    )


@pytest.mark.parametrize(("n", "words"), [(5, "c0, c1, c2, c3, c4 of X"), (6, "c0, c1, c2, c3, c4, ... of X")])
def test_five_columns_of_text_are_listed_at_most(n, words):
    frame = pd.DataFrame({f"c{k}": ["a", "b"] for k in range(n)})
    with pytest.raises(InputError, match=words):
        check_features(Oven(), frame, [0, 1], reset=True)


def test_other_errors_keep_their_own_message():
    with pytest.raises(ValueError, match="contains NaN") as caught:
        check_features(Oven(), [[np.nan], [1.0]], [0, 1], reset=True)
    assert "tabular_pipeline" not in str(caught.value)


# ---- weights ----


def test_weights_are_one_for_each_row():
    assert check_weights(None, 3).tolist() == [1, 1, 1]
    assert check_weights(2, 3).tolist() == [2, 2, 2]
    assert check_weights([0, 1, 2.5], 3).tolist() == [0, 1, 2.5]
    assert check_weights(pd.Series([1, 2], index=[7, 3]), 2).dtype == np.float64


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(2,\), X has 3 rows: give one weight for each"),
        ([[1], [1], [1]], r"shape \(3, 1\), X has 3 rows"),
        ([1, -1e-12, 1], "Negative values in sample_weight"),
        (-1, "Negative values"),
        ([0, 0, 0], "All sample weights are zero"),
        (0, "All sample weights are zero"),
        ([1, NAN, 1], "sample_weight contains NaN"),
        ([1, INF, 1], "sample_weight contains infinity"),
    ],
)
def test_weights_that_cannot_be_used(weights, message):
    with pytest.raises(ValueError, match=message):
        check_weights(weights, 3)


# ---- labels ----


def test_labels_that_a_classifier_knows_are_let_through():
    check_known_labels(["a", "b", "a"], np.array(["a", "b"]), 3)
    check_known_labels(np.array([1.0, 0.0]), np.array([0, 1]), 2)
    check_known_labels(pd.Series([True, False]), np.array([False, True]), 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"y has the shape \(2,\), X has 3 rows: give one label for each"),
        ([[0], [1], [0]], r"y has the shape \(3, 1\)"),
        ([0, 9, 9], r"was not fitted with: \[9\]; it knows \[0, 1\]"),
        ([0, 1, np.nan], r"was not fitted with: \[nan\]"),
        (["0", "1", "0"], r"was not fitted with: \['0', '1'\]"),
    ],
)
def test_labels_that_a_classifier_does_not_know(y, message):
    with pytest.raises(InputError, match=message):
        check_known_labels(y, np.array([0, 1]), 3)


def test_long_lists_of_labels_are_cut_short():
    with pytest.raises(InputError) as caught:
        check_known_labels(np.arange(100, 200), np.arange(50), 100)
    assert "[100, 101, 102, 103, 104];" in str(caught.value)
    assert "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]." in str(caught.value)


def columns(*values):
    return [np.asarray(value) for value in values]


def test_true_and_predicted_labels_of_one_kind_can_be_compared():
    check_labels(np.array([0, 1]), columns([0, 1], [0.0, 1.0]))
    check_labels(np.array(["a", "b"]), columns(["a", "c"], np.array(["b", "b"], object)))
    check_labels(np.array([0.5, 1.5]), columns([0.5, 0.5]))  # Labels that are no whole numbers are labels too.


@pytest.mark.parametrize(
    ("y", "predictions", "message"),
    [
        ([0.0, np.nan], [[0, 1]], "y has missing values"),
        (np.array(["a", None], object), [["a", "b"]], "y has missing values"),
        ([0, 1], [[0, 1], [0, np.nan]], "missing predictions"),
        ([0, 1], [[0, 1], ["0", "1"]], "y holds labels like 0, and predictions are like '0': both must be of one"),
        (["a", "b"], [[0, 1]], "both must be of one kind"),
        ([0, 1], [[0, 1], [0.2, 0.9]], "predictions must be labels, as y has them, not probabilities"),
    ],
)
def test_labels_that_cannot_be_compared(y, predictions, message):
    with pytest.raises(InputError, match=message):
        check_labels(np.asarray(y), columns(*predictions))
