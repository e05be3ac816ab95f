"""Paired counts: against counting row by row, with weights, in parts, and for groups without rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.exceptions import InputError


@st.composite
def compared(draw, weighted=False):
    n, n_groups, n_models = draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return ComparedRows.check(
        rng.integers(2, size=n),
        rng.integers(2, size=(n, n_models)),
        rng.integers(n_groups, size=n),
        rng.integers(2, size=n),
        rng.integers(n_models + 1, size=n_groups),
        rng.uniform(0.1, 2, size=n) if weighted else None,
    )


@given(compared())
def test_counts_are_those_of_counting_row_by_row(rows):
    counts = rows.paired_counts()
    n_groups, n_models = len(rows.own), rows.right.shape[1]
    beats, wrong = np.zeros((n_groups, n_models, n_models)), np.zeros((n_groups, n_models))
    for right, group in zip(rows.right, rows.group, strict=True):
        for i in range(n_models):
            wrong[group, i] += not right[i]
            for j in range(n_models):
                beats[group, i, j] += right[i] and not right[j]
    np.testing.assert_allclose(counts.beats, beats)
    np.testing.assert_allclose(counts.n_wrong, wrong)
    assert counts.n_rows.tolist() == np.bincount(rows.group, minlength=n_groups).tolist()


def test_more_rows_than_one_block_are_counted_once_each():
    rng = np.random.default_rng(0)
    n = 140_000
    y, own, pooled, groups = rng.integers(2, size=n), rng.integers(2, size=(n, 1)), rng.integers(2, size=n), np.zeros(n)
    counts = ComparedRows.check(y, own, groups.astype(int), pooled).paired_counts()
    assert counts.beats[0, 0, 1] == ((own[:, 0] == y) & (pooled != y)).sum()
    assert counts.beats[0, 1, 0] == ((own[:, 0] != y) & (pooled == y)).sum()
    assert counts.n_wrong[0].tolist() == [(own[:, 0] != y).sum(), (pooled != y).sum()]
    assert counts.n_rows.tolist() == [n]


@given(compared(weighted=True))
def test_weighted_counts_are_shares_of_weight_times_effective_rows(rows):
    counts = rows.paired_counts()
    for g in range(len(rows.own)):
        weight, right = rows.weight[rows.group == g], rows.right[rows.group == g]
        if not len(weight):
            assert counts.n_rows[g] == 0
            continue
        effective = weight.sum() ** 2 / (weight**2).sum()
        assert counts.n_rows[g] == pytest.approx(effective)
        np.testing.assert_allclose(counts.n_wrong[g], effective * (weight @ ~right) / weight.sum(), atol=1e-9)
        share = (weight * (right[:, 0] & ~right[:, -1])).sum() / weight.sum()
        assert counts.beats[g, 0, -1] == pytest.approx(effective * share, abs=1e-9)


def test_only_ratios_of_weights_count():
    rows = {"y": [1, 1, 1], "predictions": [[1], [0], [1]], "groups": [0, 0, 0], "pooled": [0, 1, 1]}
    small, large = (
        ComparedRows.check(**rows, sample_weight=scale * np.array([1.0, 2, 4])) for scale in (1e-200, 1e200)
    )
    np.testing.assert_allclose(small.weight, [0.25, 0.5, 1])
    np.testing.assert_allclose(small.paired_counts().beats, large.paired_counts().beats)


@given(compared())
def test_error_rates_follow_from_the_counts_and_are_unknown_without_rows(rows):
    errors = rows.paired_counts().errors
    for g in range(len(rows.own)):
        members = rows.group == g
        if members.any():
            np.testing.assert_allclose(errors[g], 1 - rows.right[members].mean(axis=0))
        else:
            assert np.isnan(errors[g]).all()


@given(compared(), st.integers(0, 40))
def test_counts_of_parts_add_up_to_the_counts_of_all_rows(rows, cut):
    total = PairedCounts.zero(len(rows.own), rows.right.shape[1] - 1)
    for part in (slice(0, cut), slice(cut, None)):
        chosen = ComparedRows(rows.right[part], rows.differ[part], rows.group[part], rows.own, rows.weight[part])
        total = total.plus(chosen.paired_counts())
    assert total == rows.paired_counts()


def test_a_pair_says_where_the_own_classifier_is_worse_and_where_it_is_better():
    beats = np.arange(18.0).reshape(2, 3, 3)
    worse, better, n = PairedCounts(beats, np.array([50.0, 60.0]), np.zeros((2, 3))).pair(
        np.array([0, 1]), np.array([2, 2])
    )
    assert worse.tolist() == [beats[0, 2, 0], beats[1, 2, 1]]
    assert better.tolist() == [beats[0, 0, 2], beats[1, 1, 2]]
    assert n.tolist() == [50, 60]


def test_the_classifier_that_serves_a_row_is_that_of_its_group():
    rows = ComparedRows.check(
        y=[1, 1, 1], predictions=[[1, 0], [0, 1], [0, 0]], groups=[1, 0, 2], pooled=[0, 0, 1], own=[1, 0, 2]
    )
    assert rows.own_right.tolist() == [True, True, True]
    assert rows.differ.tolist() == [[True, False], [False, True], [True, True]]


GOOD = {"y": [0, 1], "predictions": [[0], [1]], "groups": [0, 0], "pooled": [0, 0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predictions": [0, 1]}, r"one column per classifier, got shape \(2,\)"),
        ({"pooled": [[0], [0]]}, "pooled must have one entry per sample"),
        ({"groups": [[0], [0]]}, "groups must have one entry per sample"),
        ({"groups": [0, 1]}, "groups must be integers from 0 to 0"),
        ({"groups": [-1, 0]}, "groups must be integers from 0 to 0"),
        ({"groups": [0.0, 0.5]}, "groups must be integers from 0 to 0"),
        ({"own": [2]}, r"own must name a classifier from 0 to 1 \(the pooled one\)"),
        ({"own": [-1]}, "own must name a classifier from 0 to 1"),
        ({"own": [-1, 1]}, "own must name a classifier from 0 to 1"),
        ({"predictions": [[0.5], [1.0]]}, "not probabilities"),
        ({"own": [0.5]}, "own must name a classifier from 0 to 1"),
        ({"y": [], "predictions": np.zeros((0, 1)), "groups": [], "pooled": []}, "no rows to compare"),
        ({"pooled": [0, None]}, "missing predictions"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, message):
    with pytest.raises(InputError, match=message):
        ComparedRows.check(**GOOD | change)


def test_lengths_must_agree():
    for name in ("y", "groups", "pooled"):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            ComparedRows.check(**GOOD | {name: [0]})


def test_groups_of_the_right_type_are_not_copied():
    groups = np.zeros(2, np.intp)
    assert ComparedRows.check(**GOOD | {"groups": groups}).group is groups


def test_the_pooled_classifier_alone_can_serve_all_groups():
    rows = ComparedRows.check(y=[0, 1], predictions=np.zeros((2, 0)), groups=[0, 0], pooled=[0, 0], own=[0])
    assert rows.right.tolist() == [[True], [False]]
    assert rows.paired_counts().errors.tolist() == [[0.5]]
