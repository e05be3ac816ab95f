"""What rows bring beside features and labels: declared attributes, persons and times; and tables of any kind."""

import numpy as np
import pandas as pd
import pytest

from dafh import DecoupledClassifier, Scorecard
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition
from dafh.rows.checked import CheckedRows, RowContext

X = np.arange(12.0).reshape(6, 2)
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
    assert RowContext().take(np.array([2, 0])).is_empty


@pytest.mark.parametrize("known", [({"sex": ["f"]}, None, None), (None, ["x"], None), (None, None, [1.0])])
def test_anything_known_is_something(known):
    assert not RowContext.check(1, *known).is_empty
    assert RowContext.check(1, None, None, None).is_empty


# ---- rows that bring it ----


def test_rows_of_weight_zero_leave_with_all_that_is_known_of_them():
    rows = CheckedRows.check(DecoupledClassifier(), X, Y, **KNOWN, time=range(6), sample_weight=[1, 0, 1, 1, 1, 1])
    assert context_of(rows) == [list("ffmfm"), [0, 1, 1, 2, 2], [0, 2, 3, 4, 5]]


def test_a_table_brings_it_too():
    rows = CheckedRows.check_table(Scorecard(), TABLE, Y, **KNOWN, time=range(6), sample_weight=[0, 1, 1, 1, 1, 2])
    assert context_of(rows) == [list("mfmfm"), [0, 1, 1, 2, 2], [1, 2, 3, 4, 5]]
    assert rows.weight.tolist() == [1, 1, 1, 1, 2]
    assert rows.given["age"].tolist() == [40, 50, 60, 70, 80]
    assert rows.y.tolist() == Y[1:]


def test_rows_for_a_fitted_estimator_bring_it_but_for_time():
    model = DecoupledClassifier(PooledPartition()).fit(X, Y)
    assert context_of(CheckedRows.check_more(model, X, Y, **KNOWN)) == [list("fmfmfm"), [0, 0, 1, 1, 2, 2], None]


def test_equal_rows_of_which_more_is_known_are_not_merged():
    repeated = np.zeros((6, 2))
    assert len(CheckedRows.check(DecoupledClassifier(), repeated, Y).merge_repeated()) == 2
    for name, values in KNOWN.items():
        rows = CheckedRows.check(DecoupledClassifier(), repeated, Y, **{name: values})
        assert rows.merge_repeated() is rows


# ---- tables of any kind ----


def test_a_table_has_no_numbers_until_they_are_made():
    rows = CheckedRows.check_table(Scorecard(), TABLE, Y)
    assert rows.X.size == 0
    assert rows.take(np.array([1, 0])).X.size == 0
    assert rows.with_numbers(X).take(np.array([1, 0])).X.tolist() == [[2, 3], [0, 1]]
    assert rows.given["job"].tolist()[:2] == ["cook", "clerk"]


def test_an_array_stays_an_array_and_a_frame_a_frame():
    assert CheckedRows.check_table(Scorecard(), X.tolist(), Y).given.dtype == np.float64
    more = CheckedRows.check_more_of_table(Scorecard().fit(X, Y), X[:2].tolist(), Y[:2])
    assert more.given.tolist() == [[0, 1], [2, 3]]
    assert isinstance(more.given, np.ndarray)
    assert isinstance(CheckedRows.check_table(Scorecard(), TABLE, Y).given, pd.DataFrame)


def test_a_table_may_have_fewer_classes_than_an_incumbent_knows_but_no_others():
    rows = CheckedRows.check_table(Scorecard(), TABLE, Y, classes=np.array(["a", "b", "c"]))
    assert rows.classes.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"does not know: \['b'\]"):
        CheckedRows.check_table(Scorecard(), TABLE, Y, classes=np.array(["a", "c"]))


def test_more_of_a_table_keeps_classes_and_brings_what_is_known():
    model = Scorecard().fit(TABLE, Y)
    rows = CheckedRows.check_more_of_table(model, TABLE[:2], ["b", "b"], sample_weight=[0, 2], persons=[7, 7])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.label.tolist() == [1, 1]
    assert rows.weight.tolist() == [0, 2]
    assert context_of(rows) == [None, [0, 0], None]
    assert rows.given["age"].tolist() == [30, 40]
    assert rows.X.size == 0
    declared = CheckedRows.check_more_of_table(model, TABLE[:2], Y[:2], guard_features={"sex": ["f", "m"]})
    assert context_of(declared) == [["f", "m"], None, None]
    with pytest.raises(InputError, match=r"was not fitted with: \['z'\]"):
        CheckedRows.check_more_of_table(model, TABLE[:2], ["z", "a"])
    with pytest.raises(ValueError, match="feature names should match"):
        CheckedRows.check_more_of_table(model, TABLE[["job", "age"]], Y)


def test_columns_aside_go_with_the_rows_and_are_no_features():
    card, wide = Scorecard(), TABLE.assign(score=0.5)[["score", "age", "job"]]
    assert list(CheckedRows.check_table(card, wide, Y, aside=["score"]).given) == ["age", "job", "score"]
    assert list(card.feature_names_in_) == ["age", "job"]
    more = CheckedRows.check_more_of_table(Scorecard().fit(TABLE, Y), wide, Y, aside=["score"])
    assert list(more.given) == ["age", "job", "score"]
