"""Which rows are held out, and the container of checked rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut, set_rows_aside


def labels(n, rare=0, seed=0):
    label = np.random.default_rng(seed).integers(2, size=n)
    label[:rare] = 2
    return label


def draw(n=1000, selection=0.1, calibration=0.1, folds="auto", rare=0, seed=0):
    label = labels(n, rare)
    return label, HeldOut.draw(label, selection, calibration, folds, np.random.default_rng(seed))


@given(
    n=st.integers(60, 3000),
    selection=st.sampled_from([0.05, 0.1, 0.3, 0.6]),
    calibration=st.sampled_from([0.0, 0.05, 0.1, 0.3]),
    folds=st.sampled_from(["auto", 1, 2, 3, 9]),
    seed=st.integers(0, 99),
)
def test_every_row_is_held_out_once_at_most_and_shares_are_kept(n, selection, calibration, folds, seed):
    _, held = draw(n, selection, calibration, folds, seed=seed)
    assert held.n_folds >= 1
    for fold in range(held.n_folds):
        members = held.fold == fold
        assert abs(members.sum() - (selection + calibration) * n) <= 2
        assert abs((members & held.calibrates).sum() - calibration * n) <= 3
        assert set(held.calibration(fold)) == set(np.flatnonzero(members & held.calibrates))
    assert set(held.selection) == set(np.flatnonzero((held.fold >= 0) & ~held.calibrates))
    assert not held.calibrates[held.fold < 0].any()


@pytest.mark.parametrize(
    ("n", "selection", "calibration", "expected"),
    [
        (500, 0.1, 0.1, 5),  # 100 rows a fold: as many folds as there may be.
        (500, 0.1, 0.0, 5),  # Ten would fit without calibration rows: five are the most.
        (4000, 0.1, 0.1, 3),  # 800 rows a fold: three hold out 2,000.
        (20_000, 0.1, 0.1, 1),
        (1000, 0.3, 0.3, 1),  # A row is held out once at most.
        (59, 0.1, 0.1, 0),  # Too few rows to spare any.
        (60, 0.1, 0.1, 5),
    ],
)
def test_the_number_of_folds(n, selection, calibration, expected):
    assert draw(n, selection, calibration)[1].n_folds == expected


def test_folds_have_the_classes_of_the_data():
    label, held = draw(3000, rare=300)
    for fold in range(held.n_folds):
        shares = np.bincount(label[held.fold == fold], minlength=3) / (held.fold == fold).sum()
        np.testing.assert_allclose(shares, np.bincount(label) / len(label), atol=0.01)


def test_a_class_too_rare_to_be_held_out_always_trains():
    label, held = draw(1000, rare=9)
    assert (held.fold[label == 2] == -1).all()
    label, held = draw(1000, rare=10)
    assert (held.fold[label == 2] >= 0).any()


def test_without_a_share_to_select_all_held_out_rows_calibrate():
    _, held = draw(1000, selection=0.0, calibration=0.2)
    assert held.n_folds == 5
    assert held.calibrates[held.fold >= 0].all()
    assert len(held.selection) == 1000  # Curves are then drawn over all rows.


def test_nothing_is_held_out_where_nothing_is_wanted():
    _, held = draw(1000, selection=0.0, calibration=0.0)
    assert held.n_folds == 0
    assert (held.fold == -1).all()


@pytest.mark.parametrize(("selection", "calibration"), [(0.5, 0.5), (0.9, 0.2)])
def test_shares_that_leave_nothing_to_train_on_are_refused(selection, calibration):
    with pytest.raises(InputError, match="leave no rows to train on: together they must be less than 1"):
        draw(1000, selection, calibration)


def test_rows_set_aside_are_a_simple_random_sample():
    kept, apart = set_rows_aside(labels(1000), 0.2, np.random.default_rng(0))
    assert len(apart) == 200
    assert sorted([*kept, *apart]) == list(range(1000))
    other = set_rows_aside(labels(1000), 0.2, np.random.default_rng(1))[1]
    assert set(other) != set(apart)


def test_no_row_is_set_aside_where_one_class_would_be_left():
    label = np.array([1] + [0] * 9)
    for seed in range(20):
        kept, apart = set_rows_aside(label, 0.5, np.random.default_rng(seed))
        assert len(np.unique(label[kept])) == 2
        assert len(apart) in (0, 5)


# ---- checked rows ----


def checked(X=None, y=None, **options):
    X = np.arange(12.0).reshape(6, 2) if X is None else X
    return CheckedRows.check(DecoupledClassifier(), X, ["a", "b"] * 3 if y is None else y, **options)


def test_labels_come_back_as_they_were_given():
    rows = checked(y=["b", "a", "b", "a", "b", "a"])
    assert rows.y.tolist() == ["b", "a", "b", "a", "b", "a"]
    assert rows.label.tolist() == [1, 0, 1, 0, 1, 0]
    assert len(rows) == 6


def test_rows_of_weight_zero_are_left_out():
    rows = checked(sample_weight=[1, 1, 0, 2, 1, 1], sensitive_features={"sex": list("fmfmfm")})
    assert rows.X[:, 0].tolist() == [0, 2, 6, 8, 10]
    assert rows.weight.tolist() == [1, 1, 2, 1, 1]
    assert rows.attributes["sex"].tolist() == ["f", "m", "m", "f", "m"]


def test_weights_reach_a_classifier_only_where_they_differ_from_one():
    assert checked(sample_weight=np.ones(6)).fit_weight is None
    assert checked(sample_weight=np.full(6, 2.0)).fit_weight.tolist() == [2.0] * 6


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_part_of_the_rows_keeps_everything_together(library):
    frame = library({"u": np.arange(6.0), "v": np.arange(6.0) ** 2})
    part = checked(X=frame, sensitive_features={"sex": list("fmfmfm")}).take(np.array([4, 1]))
    assert part.X.tolist() == [[4, 16], [1, 1]]
    assert np.asarray(part.given).tolist() == [[4, 16], [1, 1]]
    assert list(part.given.columns) == ["u", "v"]
    assert part.y.tolist() == ["a", "b"]
    assert part.attributes["sex"].tolist() == ["f", "m"]


def test_repeated_rows_of_a_small_table_become_weights():
    X = np.array([[1.0], [2.0], [1.0], [1.0]])
    merged = checked(X=X, y=[0, 1, 0, 1]).merge_repeated()
    table = {(x, y): w for (x,), y, w in zip(merged.X.tolist(), merged.y.tolist(), merged.weight.tolist(), strict=True)}
    assert table == {(1.0, 0): 2.0, (1.0, 1): 1.0, (2.0, 1): 1.0}


def test_many_different_rows_are_not_merged():
    X = np.arange(60.0)[:, None]
    rows = checked(X=np.vstack([X, X]), y=[0, 1] * 60)
    assert rows.merge_repeated() is rows
    assert len(checked(X=np.vstack([X[:-1], X[:-1]]), y=[0, 1] * 59).merge_repeated()) == 118  # 59 is odd: all differ.


def test_classes_of_an_incumbent_may_be_more_than_those_that_occur():
    rows = checked(classes=np.array(["a", "b", "c"]))
    assert rows.classes.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"does not know: \['b'\]"):
        checked(classes=np.array(["a", "c"]))
