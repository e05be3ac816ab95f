"""The container of checked rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
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
