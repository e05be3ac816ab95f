"""The container of checked rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition
from dafh.rows.checked import CheckedRows


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
    assert checked(sample_weight=[1, 1, 1, 1, 1, 2]).fit_weight.tolist() == [1, 1, 1, 1, 1, 2]


def test_a_weight_beyond_a_million_million_is_refused():
    assert checked(sample_weight=[1, 1, 1, 1, 1, 1e12]).weight.max() == 1e12
    with pytest.raises(InputError, match=r"sample_weight holds 1e\+12; a fit takes weights of up to 1e\+12: divide"):
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


def test_classes_of_an_incumbent_are_sorted_and_keep_their_labels():
    rows = checked(y=["c", "a"] * 3, classes=np.array(["c", "b", "a"]))
    assert rows.classes.tolist() == ["a", "b", "c"]
    assert rows.y.tolist() == ["c", "a"] * 3


def test_a_class_of_rows_that_do_not_count_is_no_class():
    rows = checked(y=["a", "b", "a", "b", "z", "z"], sample_weight=[1, 1, 1, 1, 0, 0])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.y.tolist() == ["a", "b", "a", "b"]
    rows = checked(y=["b", "c", "b", "c", "a", "z"], sample_weight=[1, 1, 1, 1, 0, 0], classes=np.array(["b", "c"]))
    assert rows.y.tolist() == ["b", "c", "b", "c"]  # Nor are they held against an incumbent.


def test_one_class_is_too_few_whether_by_label_or_by_weight():
    with pytest.raises(InputError, match=r"y holds one class only \('a'\): at least two classes are needed"):
        checked(y=["a"] * 6)
    with pytest.raises(InputError, match=r"y holds one class only \(1\)"):
        checked(y=[0, 1] * 3, sample_weight=[0, 1] * 3)


def test_labels_that_are_measurements_are_refused():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        checked(y=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


# ---- what classifiers see ----


def test_an_array_is_seen_as_checked_and_a_frame_as_given():
    numbers = np.arange(12).reshape(6, 2)
    rows = checked(X=numbers)
    assert rows.given is rows.X
    assert rows.X.dtype == np.float64
    frame = pd.DataFrame(numbers, columns=["u", "v"])
    assert checked(X=frame).given is frame
    assert checked(X=numbers.astype(np.float32)).X.dtype == np.float32


def test_all_rows_that_count_are_not_copied():
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2))
    frame.columns = ["u", "v"]
    assert checked(X=frame, sample_weight=np.full(6, 0.5)).given is frame
    assert len(checked(X=frame, sample_weight=[0, 1, 1, 1, 1, 1]).given) == 5


def test_rows_without_attributes_have_none_in_any_part():
    assert checked().attributes is None
    assert checked().take(np.array([1, 2])).attributes is None


def test_a_part_may_be_empty_and_may_repeat_rows():
    rows = checked(sample_weight=[1, 2, 3, 4, 5, 6])
    assert len(rows.take(np.array([], np.intp))) == 0
    assert rows.take(np.array([5, 5, 0])).weight.tolist() == [6, 6, 1]
    assert len(rows) == 6  # Nothing is taken away from the rows themselves.


# ---- more rows for an estimator that is fitted ----


@pytest.fixture(scope="module")
def known():
    """An estimator that knows two columns and the classes "a" and "b"."""
    X = np.arange(12.0).reshape(6, 2)
    return DecoupledClassifier(PooledPartition()).fit(X, ["a", "b"] * 3)


def test_more_rows_keep_the_classes_of_the_estimator(known):
    rows = CheckedRows.check_more(known, [[1.0, 2.0], [3, 4]], ["b", "b"], sensitive_features={"sex": ["f", None]})
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.label.tolist() == [1, 1]
    assert rows.weight.tolist() == [1, 1]
    assert rows.attributes["sex"].tolist() == ["f", "(missing)"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_more_rows_of_a_frame_are_seen_as_given(library):
    frame = library({"u": np.arange(6.0), "v": np.arange(6.0) ** 2})
    model = DecoupledClassifier(PooledPartition()).fit(frame, ["a", "b"] * 3)
    rows = CheckedRows.check_more(model, frame, ["b"] * 6)
    assert rows.given is frame
    assert isinstance(rows.X, np.ndarray)
    numbers = CheckedRows.check_more(DecoupledClassifier(PooledPartition()).fit([[0], [1]], [0, 1]), [[3]], [1])
    assert numbers.given is numbers.X


def test_one_more_row_is_enough_and_a_weight_of_zero_stays(known):
    assert len(CheckedRows.check_more(known, [[1.0, 2.0]], ["a"])) == 1
    rows = CheckedRows.check_more(known, [[1.0, 2.0], [3, 4]], ["a", "b"], sample_weight=[0, 2])
    assert rows.weight.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0]], ["a"], {}, "X has 1 features, but DecoupledClassifier is expecting 2"),
        ([[1.0, 2.0]], ["z"], {}, r"was not fitted with: \['z'\]; it knows \['a', 'b'\]"),
        ([[1.0, 2.0]], ["a", "b"], {}, r"y has the shape \(2,\), X has 1 rows"),
        ([[1.0, 2.0]], ["a"], {"sample_weight": [1, 2]}, "sample_weight has the shape"),
        ([[1.0, 2.0]], ["a"], {"sensitive_features": ["f", "m"]}, "sensitive_features has 2 rows"),
        ([[1.0, np.nan]], ["a"], {}, "contains NaN"),
    ],
)
def test_more_rows_that_do_not_fit_are_refused(known, X, y, options, message):
    with pytest.raises(ValueError, match=message):
        CheckedRows.check_more(known, X, y, **options)


# ---- merging ----


def test_merged_rows_keep_their_total_weight_and_come_in_sorted_order():
    X = np.array([[3.0, 0.0], [1.0, 5.0], [3.0, 0.0], [1.0, 4.0]])
    merged = checked(X=X, y=["a", "b", "a", "b"], sample_weight=[1, 2, 4, 8]).merge_repeated()
    assert merged.X.tolist() == [[1, 4], [1, 5], [3, 0]]
    assert merged.y.tolist() == ["b", "b", "a"]
    assert merged.weight.tolist() == [8, 2, 5]


@pytest.mark.parametrize(("n_different", "expected"), [(59, 59), (60, 120)])
def test_fewer_than_sixty_different_rows_are_merged(n_different, expected):
    X = np.tile(np.arange(float(n_different)), 2)[:, None]
    rows = checked(X=X, y=X[:, 0].astype(int) % 2)
    assert len(rows.merge_repeated()) == expected
    assert rows.merge_repeated().weight.sum() == 2 * n_different


def test_the_order_of_a_small_table_means_nothing_after_merging():
    rng = np.random.default_rng(0)
    X, y = rng.integers(3, size=(40, 2)).astype(float), np.arange(40) % 2
    order = rng.permutation(40)
    one, other = (checked(X=X[rows], y=y[rows]).merge_repeated() for rows in (np.arange(40), order))
    for name in ("X", "label", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
