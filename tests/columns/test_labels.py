"""The target of a table: labels in training, and the same labels later."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.labels import labelled_rows, match_labels, no_target, read_labels
from dafh.exceptions import InputError


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


TYPES = {
    "whole numbers": [0, 1],
    "fractions": [0.0, 1.0],
    "nullable": pd.array([0, 1], dtype="Int64"),
    "text": ["0", "1"],
    "text with points": ["0.0", "1.0"],
    "categories": pd.Categorical([0, 1]),
    "categories of text": pd.Categorical(["0", "1"]),
}


@pytest.mark.parametrize("fitted", TYPES)
@pytest.mark.parametrize("later", TYPES)
def test_labels_match_between_all_types_of_training_and_later_files(fitted, later):
    y = read_labels(pd.Series(TYPES[fitted], name="y"))
    matched = match_labels(pd.Series(TYPES[later], name="y"), np.unique(y))
    assert matched.tolist() == y.tolist()
    assert matched.dtype == y.dtype


@pytest.mark.parametrize("fitted", [["true", "false"], ["TRUE", "FALSE"], ["True", "False"], [True, False]])
@pytest.mark.parametrize("later", [["true", "false"], ["FALSE", "TRUE"], [True, False], [False, True]])
def test_flags_match_in_every_spelling_and_type(fitted, later):
    classes = np.unique(read_labels(pd.Series(fitted, name="y")))
    matched = match_labels(pd.Series(later, name="y"), classes)
    assert [str(label).lower() for label in matched] == [str(label).lower() for label in later]
    assert set(matched) == set(classes)


@pytest.mark.parametrize("strange", ["Yes", "yes ", "2", None])
def test_words_that_only_resemble_a_label_are_refused(strange):
    with pytest.raises(InputError, match="which the model was not fitted with; it knows 'no' and 'yes'"):
        match_labels(pd.Series(["yes", strange or "?"], name="y"), np.array(["no", "yes"], dtype=object))


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=20).filter(lambda labels: len(set(labels)) > 1))
def test_labels_that_differ_are_never_mixed_up(labels):
    y = read_labels(pd.Series(labels, name="y", dtype=object))
    assert len(set(y.tolist())) == len(set(labels))
    assert y.dtype in (object, np.int64)  # NumPy's own text would cut labels of a later table.
    assert match_labels(pd.Series(labels, name="y", dtype=object), np.unique(y)).tolist() == y.tolist()


def test_fifty_classes_are_labels_and_fifty_one_are_not():
    assert len(np.unique(read_labels(pd.Series(range(50), name="y")))) == 50
    with pytest.raises(InputError, match="51 different values; class labels are few"):
        read_labels(pd.Series(range(51), name="y"))


@pytest.mark.parametrize("gap", ["", "?", "NA", " nan ", "NULL", None, np.nan])
def test_rows_whose_target_is_a_word_for_a_gap_have_no_target(gap):
    table = pd.DataFrame({"a": [1, 2, 3], "y": pd.Series(["yes", gap, "no"], dtype=object)})
    known = labelled_rows(table, "y")
    assert known["a"].tolist() == [1, 3]
    assert no_target(len(table) - len(known)) == ["Left out, no target: 1 row."]
    assert no_target(2) == ["Left out, no target: 2 rows."]
    assert no_target(0) == []
    assert len(labelled_rows(known, "y")) == len(known)


def test_an_unknown_label_is_shown_with_the_first_five_known_ones_only():
    with pytest.raises(InputError) as refusal:
        match_labels(pd.Series([99], name="y"), np.arange(10))
    assert str(refusal.value).endswith("it knows '0', '1', '2', '3' and '4'.")
