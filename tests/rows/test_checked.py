"""Checked rows: labels, weights and classes, and what is known about rows beside features."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dafh import DecoupledClassifier, Scorecard
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition
from dafh.rows.checked import CheckedRows, RowContext


def checked(X=None, y=None, **options):
    X = np.arange(12.0).reshape(6, 2) if X is None else X
    return CheckedRows.check(DecoupledClassifier(), X, ["a", "b"] * 3 if y is None else y, numbers=True, **options)


def test_rows_of_weight_zero_are_left_out():
    rows = checked(sample_weight=[1, 1, 0, 2, 1, 1], sensitive_features={"sex": list("fmfmfm")})
    assert rows.X[:, 0].tolist() == [0, 2, 6, 8, 10]
    assert rows.weight.tolist() == [1, 1, 2, 1, 1]
    assert rows.attributes["sex"].tolist() == ["f", "m", "m", "f", "m"]


def test_a_weight_beyond_a_million_million_is_refused():
    assert checked(sample_weight=[1, 1, 1, 1, 1, 1e12]).weight.max() == 1e12
    with pytest.raises(InputError, match="sample_weight"):
        checked(sample_weight=[1, 1, 1, 1, 1, 1e12 + 0.5])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_part_of_the_rows_keeps_everything_together(library):
    frame = library({"u": np.arange(6.0), "v": np.arange(6.0) ** 2})
    part = checked(X=frame, sensitive_features={"sex": list("fmfmfm")}).take(np.array([4, 1]))
    assert part.X.tolist() == [[4, 16], [1, 1]]
    assert np.asarray(part.given).tolist() == [[4, 16], [1, 1]]
    assert list(part.given.columns) == ["u", "v"]
    assert part.y.tolist() == ["a", "b"]
    assert part.attributes["sex"].tolist() == ["f", "m"]


def test_classes_of_an_incumbent_may_be_more_than_those_that_occur():
    rows = checked(classes=np.array(["a", "b", "c"]))
    assert rows.classes.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match="does not know"):
        checked(classes=np.array(["a", "c"]))


# ---- labels and classes ----


@pytest.mark.parametrize(
    ("y", "classes", "label"),
    [
        ([2, 0, 1, 0, 2, 1], [0, 1, 2], [2, 0, 1, 0, 2, 1]),
        ([10.0, -1.0] * 3, [-1.0, 10.0], [1, 0] * 3),
        ([True, False] * 3, [False, True], [1, 0] * 3),
        (np.array(["b", "ä"] * 3, object), ["b", "ä"], [0, 1] * 3),
    ],
)
def test_labels_of_any_type_become_positions(y, classes, label):
    rows = checked(y=y)
    assert rows.classes.tolist() == classes
    assert rows.label.tolist() == label
    assert rows.y.tolist() == list(y)


def test_a_class_of_rows_that_do_not_count_is_no_class():
    rows = checked(y=["a", "b", "a", "b", "z", "z"], sample_weight=[1, 1, 1, 1, 0, 0])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.y.tolist() == ["a", "b", "a", "b"]
    rows = checked(y=["b", "c", "b", "c", "a", "z"], sample_weight=[1, 1, 1, 1, 0, 0], classes=np.array(["b", "c"]))
    assert rows.y.tolist() == ["b", "c", "b", "c"]  # Nor are they held against an incumbent.


def test_one_class_is_too_few_whether_by_label_or_by_weight():
    with pytest.raises(InputError, match="one class only"):
        checked(y=["a"] * 6)
    with pytest.raises(InputError, match="one class only"):
        checked(y=[0, 1] * 3, sample_weight=[0, 1] * 3)


# ---- more rows for an estimator that is fitted ----


@pytest.fixture(scope="module")
def known():
    """An estimator that knows two columns and the classes "a" and "b"."""
    X = np.arange(12.0).reshape(6, 2)
    return DecoupledClassifier(PooledPartition()).fit(X, ["a", "b"] * 3)


def test_more_rows_keep_the_classes_of_the_estimator(known):
    rows = CheckedRows.check_more(
        known, [[1.0, 2.0], [3, 4]], ["b", "b"], numbers=True, sensitive_features={"sex": ["f", None]}
    )
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.label.tolist() == [1, 1]
    assert rows.weight.tolist() == [1, 1]
    assert rows.attributes["sex"].tolist() == ["f", "(missing)"]


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0]], ["a"], {}, "expecting 2"),
        ([[1.0, 2.0]], ["z"], {}, r"not fitted with: \['z'\]"),
        ([[1.0, 2.0]], ["a", "b"], {}, "y has the shape"),
        ([[1.0, 2.0]], ["a"], {"sample_weight": [1, 2]}, "sample_weight has the shape"),
        ([[1.0, 2.0]], ["a"], {"sensitive_features": ["f", "m"]}, "2 rows"),
        ([[1.0, np.nan]], ["a"], {}, "contains NaN"),
    ],
)
def test_more_rows_that_do_not_fit_are_refused(known, X, y, options, message):
    with pytest.raises(ValueError, match=message):
        CheckedRows.check_more(known, X, y, numbers=True, **options)


FEATURES = np.arange(12.0).reshape(6, 2)
Y = ["a", "b"] * 3
KNOWN = {"guard_features": {"sex": list("fmfmfm")}, "persons": list("xxyyzz")}
TABLE = pd.DataFrame({"age": [30, 40, 50, 60, 70, 80], "job": ["cook", "clerk", None, "cook", "clerk", "cook"]})


def context_of(rows):
    """Declared attribute, person and time of each row."""
    context = rows.context
    return [part if part is None else np.asarray(part).ravel().tolist() for part in vars(context).values()]


# ---- what is known ----


def test_each_of_the_three_is_checked_and_kept():
    context = RowContext.check(2, {"sex": ["f", "m"]}, ["x", "x"], [5, 3])
    assert context.declared["sex"].tolist() == ["f", "m"]
    assert context.person.tolist() == [0, 0]
    assert context.time.tolist() == [5, 3]
    nothing = RowContext.check(2, None, None, None)
    assert (nothing.declared, nothing.person, nothing.time) == (None, None, None)


@pytest.mark.parametrize(
    ("known", "name"),
    [(([1], None, None), "guard_features"), ((None, [1], None), "persons"), ((None, None, [1]), "time")],
)
def test_what_has_not_one_entry_for_each_row_is_refused_by_name(known, name):
    with pytest.raises(InputError, match=f"^{name} has "):
        RowContext.check(2, *known)


def test_a_part_of_the_rows_takes_its_own():
    part = RowContext.check(3, {"sex": list("fmx")}, list("abc"), [7, 8, 9]).take(np.array([2, 0]))
    assert part.declared["sex"].tolist() == ["x", "f"]
    assert part.person.tolist() == [2, 0]
    assert part.time.tolist() == [9, 7]


# ---- rows that bring it ----


def test_rows_of_weight_zero_leave_with_all_that_is_known_of_them():
    rows = CheckedRows.check(
        DecoupledClassifier(), FEATURES, Y, **KNOWN, time=range(6), sample_weight=[1, 0, 1, 1, 1, 1]
    )
    assert context_of(rows) == [list("ffmfm"), [0, 1, 1, 2, 2], [0, 2, 3, 4, 5]]


def test_a_table_brings_it_too():
    rows = CheckedRows.check(Scorecard(), TABLE, Y, **KNOWN, time=range(6), sample_weight=[0, 1, 1, 1, 1, 2])
    assert context_of(rows) == [list("mfmfm"), [0, 1, 1, 2, 2], [1, 2, 3, 4, 5]]
    assert rows.weight.tolist() == [1, 1, 1, 1, 2]
    assert rows.given["age"].tolist() == [40, 50, 60, 70, 80]
    assert rows.y.tolist() == Y[1:]


# ---- tables of any kind ----


def test_more_of_a_table_keeps_classes_and_brings_what_is_known():
    model = Scorecard().fit(TABLE, Y)
    rows = CheckedRows.check_more(model, TABLE[:2], ["b", "b"], sample_weight=[0, 2], persons=[7, 7])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.label.tolist() == [1, 1]
    assert rows.weight.tolist() == [0, 2]
    assert context_of(rows) == [None, [0, 0], None]
    assert rows.given["age"].tolist() == [30, 40]
    assert rows.X.size == 0
    declared = CheckedRows.check_more(model, TABLE[:2], Y[:2], guard_features={"sex": ["f", "m"]})
    assert context_of(declared) == [["f", "m"], None, None]
    with pytest.raises(InputError, match="not fitted with"):
        CheckedRows.check_more(model, TABLE[:2], ["z", "a"])
    with pytest.raises(ValueError, match="feature names should match"):
        CheckedRows.check_more(model, TABLE[["job", "age"]], Y)


def test_columns_aside_go_with_the_rows_and_are_no_features():
    card, wide = Scorecard(), TABLE.assign(score=0.5)[["score", "age", "job"]]
    assert list(CheckedRows.check(card, wide, Y, aside=["score"]).given) == ["age", "job", "score"]
    assert list(card.feature_names_in_) == ["age", "job"]
    more = CheckedRows.check_more(Scorecard().fit(TABLE, Y), wide, Y, aside=["score"])
    assert list(more.given) == ["age", "job", "score"]
