"""Tables as numbers and as bins, and checks of tables of any kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dafh import Scorecard
from dafh.checks.rows import check_table
from dafh.exceptions import InputError
from dafh.rows.checked import CheckedRows
from dafh.rows.seen import TableView

TABLE = pd.DataFrame({"age": [20.0, 30.0, None, 50.0], "job": ["cook", "clerk", None, "cook"]})


def view_of(table):
    return TableView.learn(table, np.ones(len(table)))


# ---- numbers and bins ----


def test_numbers_without_gaps_are_taken_as_they_are():
    table = pd.DataFrame({"a": [1, 2], "b": [True, False]})
    view = view_of(table)
    assert view.encoder is None
    np.testing.assert_array_equal(view.see(table).numbers, [[1.0, 1.0], [2.0, 0.0]])


def test_single_precision_arrays_stay_as_they_are():
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert view_of(X).see(X).numbers is X


def test_tables_of_any_kind_are_encoded():
    seen = view_of(TABLE).see(TABLE)
    assert seen.numbers.shape == (4, 5)
    assert np.isfinite(seen.numbers).all()


def test_some_rows_have_their_numbers_and_bins_whether_they_were_asked_for_before_or_not():
    rows = np.array([3, 0])
    before, after = view_of(TABLE).see(TABLE), view_of(TABLE).see(TABLE)
    assert (len(before.numbers), len(before.codes)) == (4, 4)
    for name in ("numbers", "codes"):
        expected = getattr(before, name)[rows]
        np.testing.assert_array_equal(getattr(before.take(rows), name), expected)
        np.testing.assert_array_equal(getattr(after.take(rows), name), expected)


def test_blocks_of_rows_are_the_whole_in_pieces_and_leave_no_large_table_behind():
    table = pd.concat([TABLE] * 5000, ignore_index=True)
    seen, whole = view_of(TABLE).see(table), view_of(TABLE).see(table).numbers
    blocks = [block.numbers for block in seen.blocks()]
    assert [len(block) for block in blocks] == [8192, 8192, 3616]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert "numbers" not in vars(seen)


def test_rows_whose_numbers_are_there_are_not_cut_into_blocks():
    table = pd.concat([TABLE] * 5000, ignore_index=True)
    seen = view_of(TABLE).see(table)
    assert len(seen.numbers) == 20_000
    assert [len(block) for block in seen.blocks()] == [20_000]


def test_bins_that_a_classifier_has_are_shared():
    card = Scorecard(n_bins=2).fit(pd.DataFrame({"x": np.arange(80.0)}), np.arange(80) % 2)
    table = pd.DataFrame({"x": np.arange(80.0)})
    assert TableView.learn(table, np.ones(80), card.binning_).binning is card.binning_


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_gaps_where_training_had_none_are_refused_as_numbers_and_taken_as_bins(value):
    view = view_of(np.arange(6.0).reshape(3, 2))
    seen = view.see(np.array([[0.0, value]]))
    assert seen.codes[0, 1] == view.binning.columns[1].n_bins - 1
    with pytest.raises(InputError, match=r"^X has missing or infinite values, and had none in fit: fill them"):
        _ = seen.numbers


# ---- checks ----


def checked(X, y, **settings):
    return check_table(Scorecard(), X, y, reset=True, **settings)


def test_a_frame_keeps_its_types_and_loses_its_index():
    table, labels = checked(TABLE.set_axis([5, 6, 7, 8]), ["a", "b", "a", "b"])
    pd.testing.assert_frame_equal(table, TABLE)
    assert labels.tolist() == ["a", "b", "a", "b"]


def test_frames_of_another_library_become_the_same_table():
    table, _ = checked(pl.DataFrame({"age": [20.0, 30.0], "job": ["cook", None]}), [0, 1])
    assert table.age.tolist() == [20, 30]
    assert table.job.isna().tolist() == [False, True]


def test_arrays_may_have_gaps_but_no_text_and_no_infinity():
    assert np.isnan(checked(np.array([[1.0], [np.nan]]), [0, 1])[0].iloc[1, 0])
    with pytest.raises(ValueError, match="infinity"):
        checked(np.array([[1.0], [np.inf]]), [0, 1])
    with pytest.raises(InputError, match=r"^X holds text: pass a data frame, in which every column has a type\.$"):
        checked(np.array([["a"], ["b"]], object), [0, 1])


@pytest.mark.parametrize("X", [TABLE, np.arange(8.0).reshape(4, 2)], ids=["frame", "array"])
def test_labels_must_be_there_one_for_each_row(X):
    with pytest.raises(InputError, match="requires y to be passed"):
        checked(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        checked(X, [0, 1])


def test_names_and_number_of_columns_are_remembered():
    card = Scorecard()
    check_table(card, TABLE, [0, 1, 0, 1], reset=True)
    assert (card.feature_names_in_.tolist(), card.n_features_in_) == (["age", "job"], 2)
    with pytest.raises(ValueError, match="same order"):
        check_table(card, TABLE[["job", "age"]], reset=False)
    assert len(check_table(card, TABLE[:1], reset=False)[0]) == 1


def test_rows_of_weight_0_are_left_out_and_classes_are_those_of_the_others():
    weight = [1, 1, 0, 1]
    rows = CheckedRows.check(Scorecard(), TABLE, ["a", "b", "c", "b"], sample_weight=weight)
    assert (rows.classes.tolist(), rows.label.tolist(), len(rows.given)) == (["a", "b"], [0, 1, 1], 3)
    assert rows.fit_weight is None


def test_classes_of_a_fitted_classifier_are_kept_and_others_refused():
    known = np.array(["a", "b", "z"])
    rows = CheckedRows.check(Scorecard(), TABLE, ["a", "z", "a", "z"], classes=known)
    assert rows.label.tolist() == [0, 2, 0, 2]
    with pytest.raises(InputError, match=r"does not know: \['q'\]"):
        CheckedRows.check(Scorecard(), TABLE, ["a", "q", "a", "z"], classes=known)


def test_an_array_stays_an_array_and_a_frame_a_frame():
    rows = CheckedRows.check(Scorecard(), [[1, 2], [3, 4]], [0, 1])
    assert isinstance(rows.given, np.ndarray)
    assert isinstance(CheckedRows.check(Scorecard(), TABLE, [0, 1, 0, 1]).given, pd.DataFrame)


def test_more_rows_must_have_labels_that_are_known():
    card = Scorecard().fit(TABLE, [0, 1, 0, 1])
    rows = CheckedRows.check_more(card, TABLE[:2], [1, 0])
    assert (rows.label.tolist(), rows.classes.tolist()) == ([1, 0], [0, 1])
    with pytest.raises(InputError, match="not fitted with"):
        CheckedRows.check_more(card, TABLE[:2], [1, 2])
