"""The target of a table: labels in training, and the same labels later."""

import numpy as np
import pandas as pd
import pytest

from dafh.exceptions import InputError
from dafh.tables.labels import labelled_rows, match_labels, read_labels


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, 1, 1], [0, 1, 1]), ([1.0, 2.0, 1.0], [1, 2, 1]), ([True, False, True], [True, False, True]),
     (["a", "b", "a"], ["a", "b", "a"])],
)  # fmt: skip
def test_labels_are_whole_numbers_flags_or_text(values, expected):
    assert read_labels(pd.Series(values, name="y")).tolist() == expected


@pytest.mark.parametrize(
    ("values", "sentence"),
    [([1, 1, 1], "one value only"), (list(range(60)), "60 different values"), ([0.5, 1.0, 0.5], "fractions like 0.5")],
)
def test_targets_that_are_no_labels_are_refused(values, sentence):
    with pytest.raises(InputError, match=sentence):
        read_labels(pd.Series(values, name="y"))


def test_labels_of_another_file_are_matched_whatever_their_type():
    assert match_labels(pd.Series(["1", "0", "1"]), np.array([0, 1])).tolist() == [1, 0, 1]
    assert match_labels(pd.Series([1.0, 0.0]), np.array([0, 1])).tolist() == [1, 0]
    assert match_labels(pd.Series(["True", "False"]), np.array([False, True])).tolist() == [True, False]
    with pytest.raises(InputError, match="holds 'maybe', which the model was not fitted with; it knows 'no' and 'yes'"):
        match_labels(pd.Series(["yes", "maybe"], name="y"), np.array(["no", "yes"], dtype=object))


def test_rows_without_a_target_are_left_out():
    table = pd.DataFrame({"a": [1, 2], "y": [np.nan, 1]})
    assert labelled_rows(table, "y")["a"].tolist() == [2]
    with pytest.raises(InputError, match="has no values"):
        labelled_rows(table.assign(y=np.nan), "y")


def test_large_labels_stay_apart_and_infinite_ones_are_no_numbers():
    assert len(set(read_labels(pd.Series(["9007199254740992", "9007199254740993"] * 5, name="y")))) == 2
    assert len(set(read_labels(pd.Series([9007199254740992, 9007199254740993] * 5, name="y")))) == 2
    with pytest.raises(InputError, match="fractions like"):
        read_labels(pd.Series([1.0, np.inf] * 5, name="y"))


def test_labels_that_differ_stay_apart_and_flags_match_in_every_spelling():
    assert read_labels(pd.Series(["01", "1", "2"], name="y")).tolist() == ["01", "1", "2"]
    assert match_labels(pd.Series(["01", "1"]), np.array(["01", "1", "2"], dtype=object)).tolist() == ["01", "1"]
    assert match_labels(pd.Series(["true", "FALSE"]), np.array([False, True])).tolist() == [True, False]
