"""Checks of parameters: what is let through, and the sentence for what is not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from dafh import Scorecard
from dafh.exceptions import InputError
from dafh.validation import (
    NOTHING,
    check_features,
    check_known_labels,
    check_labels,
    check_parameters,
    check_persons,
    check_table,
    check_times,
    check_weights,
    having,
    instance_of,
    number,
    one_of,
    sequence_of,
    unchanged_on_error,
    whole_number,
)

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
        (
            one_of("evidence", "proof"),
            "a str among {'evidence', 'proof'}",
            ["evidence", "proof"],
            ["VETO", "", None, 1, ["evidence"]],
        ),
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


class Oven(BaseEstimator):
    def __init__(self, heat=200, door="open"):
        self.heat = heat
        self.door = door


OVEN = {"heat": (whole_number(50), one_of("auto"), NOTHING), "door": (one_of("open", "closed"),)}


def test_a_parameter_that_cannot_be_used_is_named_with_all_that_it_may_be():
    with pytest.raises(InputError, match=r"'heat' parameter of Oven .*\[50, inf\), .*'auto'.* or None\. Got 3"):
        check_parameters(Oven(heat=3, door="ajar"), OVEN)
    with pytest.raises(InputError, match=r"'closed', 'open'.* Got 'ajar'"):
        check_parameters(Oven(door="ajar"), OVEN)
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


# ---- features ----


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_text_are_named_and_numbers_are_not(library):
    frame = library({"age": [30, 40], "city": ["Oslo", "Rome"], "paid": [True, False]})
    with pytest.raises(InputError, match=r"column city .*tabular_pipeline"):
        check_features(Oven(), frame, [0, 1], reset=True)


# ---- weights ----


def test_weights_are_one_for_each_row():
    assert check_weights(None, 3).tolist() == [1, 1, 1]
    assert check_weights(2, 3).tolist() == [2, 2, 2]
    assert check_weights([0, 1, 2.5], 3).tolist() == [0, 1, 2.5]
    assert check_weights(pd.Series([1, 2], index=[7, 3]), 2).dtype == np.float64


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "one weight for each"),
        ([[1], [1], [1]], r"shape \(3, 1\)"),
        ([1, -1e-12, 1], "Negative"),
        ([0, 0, 0], "zero"),
        ([1, np.nan, 1], "NaN"),
        ([1, np.inf, 1], "infinity"),
    ],
)
def test_weights_that_cannot_be_used(weights, message):
    with pytest.raises(ValueError, match=message):
        check_weights(weights, 3)


# ---- labels ----


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], "one label for each"),
        ([0, 9, 9], r"not fitted with: \[9\]"),
        (["0", "1", "0"], r"not fitted with: \['0', '1'\]"),
    ],
)
def test_labels_that_a_classifier_does_not_know(y, message):
    with pytest.raises(InputError, match=message):
        check_known_labels(y, np.array([0, 1]), 3)


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
        ([0, 1], [[0, 1], ["0", "1"]], "one kind"),
        ([0, 1], [[0, 1], [0.2, 0.9]], "not probabilities"),
    ],
)
def test_labels_that_cannot_be_compared(y, predictions, message):
    with pytest.raises(InputError, match=message):
        check_labels(np.asarray(y), columns(*predictions))


# ---- persons and times ----


def test_persons_are_numbered_and_rows_without_one_are_persons_of_their_own():
    assert check_persons(["b", "a", "b"], 3).tolist() == [0, 1, 0]
    assert check_persons(pd.Series(["x", None, "x", None]), 4).tolist() == [0, 1, 0, 2]
    assert check_persons([np.nan, np.nan], 2).tolist() == [0, 1]
    assert check_persons(None, 3) is None


def test_times_may_be_numbers_dates_and_text_that_reads_as_dates():
    assert check_times([3, 1, 2], 3).tolist() == [3, 1, 2]
    days = ["2020-01-03", "2020-01-01", "2020-01-02"]
    for times in (days, pd.to_datetime(days), pd.Series(pd.to_datetime(days)), np.array(days, "datetime64[D]")):
        assert check_times(times, 3).tolist() == [18_264, 18_262, 18_263]  # Days since 1970: whatever the other rows.
    assert check_times(None, 3) is None
    # Farther back than the nanoseconds of pandas reach, and in a zone of its own.
    assert check_times(["0000-01-01", "1970-01-01 18:00"], 2).tolist() == [-719_528, 0.75]
    assert check_times(["1970-01-02 00:00+02:00"], 1) == pytest.approx(22 / 24)
    with pytest.raises(InputError, match="numbers or dates"):
        check_times(np.array([2**61], "datetime64[s]"), 1)


# ---- tables ----


def checked(X, y, **settings):
    return check_table(Scorecard(), X, y, reset=True, **settings)


def test_arrays_may_have_gaps_but_no_text_and_no_infinity():
    assert np.isnan(checked(np.array([[1.0], [np.nan]]), [0, 1])[0].iloc[1, 0])
    with pytest.raises(ValueError, match="infinity"):
        checked(np.array([[1.0], [np.inf]]), [0, 1])
    with pytest.raises(InputError, match=r"^X holds text: pass a data frame, in which every column has a type\.$"):
        checked(np.array([["a"], ["b"]], object), [0, 1])
