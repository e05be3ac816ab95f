"""Compared rows: differences of two classifiers against counting row by row, with losses, weights and persons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compared import rows_of
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.losses import ERROR, Costs, Loss
from dafh.exceptions import InputError
from dafh.stats import Differences

LOSSES = (ERROR, Loss("fpr"), Loss("fnr"), Loss("cost", Costs(1, 5)))


@st.composite
def compared(draw, weighted=False, persons=False):
    n, n_groups, n_models = draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return ComparedRows.check(
        rng.integers(2, size=n),
        rng.integers(2, size=(n, n_models)),
        rng.integers(n_groups, size=n),
        rng.integers(2, size=n),
        rng.integers(n_models + 1, size=n_groups),
        rng.choice([0.1, 1.0, 2.0], size=n) if weighted else None,
        classes=[0, 1],
        persons=rng.integers(n, size=n) if persons else None,
    )


def all_pairs(rows):
    return [(g, i) for i in range(rows.right.shape[1]) for g in range(len(rows.own))]


def against_pooled(rows, loss=ERROR):
    """Every classifier beside the pooled one, in every group: questions as in `all_pairs`."""
    each = [rows.harm(loss, right, rows.right[:, -1]).by_group(rows.group, len(rows.own)) for right in rows.right.T]
    return Differences.joined(each, each[0].worst, each[0].largest)


def costs_of_wrong_decisions(rows, loss):
    """What each row adds to the mean if it is decided wrongly, and whether it counts, one row at a time."""
    table = []
    for positive in rows.positive:
        if loss.name == "cost":
            table.append((5.0 if positive else 1.0, True))
        else:
            table.append((1.0, loss.name == "error" or positive == (loss.name == "fnr")))
    return np.array(table, float).T


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(rows=compared(weighted=True))
def test_differences_are_those_of_counting_row_by_row(loss, rows):
    stake, counts = costs_of_wrong_decisions(rows, loss)
    found = against_pooled(rows, loss)
    for q, (g, i) in enumerate(all_pairs(rows)):
        members = (rows.group == g) & (counts > 0)
        own, rival = ~rows.right[members, i], ~rows.right[members, -1]
        weight = rows.weight[members]
        assert found.total[q] == pytest.approx(weight.sum())
        assert found.own_worse[q] == (own & ~rival).sum()
        assert found.own_better[q] == (rival & ~own).sum()
        if members.any():
            harm = (weight * stake[members] * (own * 1.0 - rival)).sum() / weight.sum()
            assert found.harm[q] == pytest.approx(harm, abs=1e-12)
        else:
            assert np.isnan(found.harm[q])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(rows=compared(weighted=True, persons=True))
def test_the_rows_of_a_person_count_together(loss, rows):
    stake, counts = costs_of_wrong_decisions(rows, loss)
    found = against_pooled(rows, loss)
    for q, (g, i) in enumerate(all_pairs(rows)):
        units = {}
        for row in np.flatnonzero((rows.group == g) & (counts > 0)):
            worse = rows.weight[row] * stake[row] * (rows.right[row, -1] * 1.0 - rows.right[row, i])
            difference, size = units.get(rows.person[row], (0.0, 0.0))
            units[rows.person[row]] = difference + worse, size + rows.weight[row]
        assert found.counts[q].sum() == len(units)
        assert found.total[q] == pytest.approx(sum(size for _, size in units.values()))
        total = sum(difference for difference, _ in units.values())
        assert found.counts[q] @ found.difference == pytest.approx(total, abs=1e-12)
        assert found.own_worse[q] == sum(difference > 1e-12 for difference, _ in units.values())


def test_a_person_whose_rows_cancel_says_nothing():
    rows = rows_of((6, {"10": 2, "01": 2}), persons=[0, 1, 0, 1, 2, 3])
    found = against_pooled(rows)
    assert (found.own_worse[0], found.own_better[0], found.counts[0].sum()) == (0, 0, 4)


def test_the_largest_unit_is_that_of_all_groups():
    """A row of weight 9 elsewhere shows that such rows exist."""
    rows = rows_of((3, {"100": 1}), (3, {}), sample_weight=[1, 1, 1, 1, 1, 9])
    assert against_pooled(rows).take(np.arange(1)).largest == 1.0
    assert against_pooled(rows).take(np.arange(1)).size.max() == pytest.approx(1 / 9)
    persons = rows_of((3, {"100": 1}), (3, {}), persons=[0, 1, 2, 3, 3, 3])
    assert against_pooled(persons).largest == 3.0


def test_many_different_weights_are_put_together_and_change_no_mean():
    rng = np.random.default_rng(0)
    n = 5000
    weight = rng.lognormal(0, 2, n)
    y, own, pooled = (rng.integers(2, size=n) for _ in range(3))
    rows = ComparedRows.check(y, own[:, None], np.zeros(n, int), pooled, sample_weight=weight)
    found = against_pooled(rows)
    assert found.size.size <= 3 * 400
    assert found.total[0] == pytest.approx(rows.weight.sum())
    exact = (weight * ((own != y) * 1.0 - (pooled != y))).sum() / weight.sum()
    assert found.harm[0] == pytest.approx(exact, abs=2e-3)
    assert found.largest == pytest.approx(1, rel=0.05)


def test_a_weight_of_nearly_nothing_changes_nothing():
    rng = np.random.default_rng(0)
    n = 3000
    weight, own, pooled = rng.lognormal(size=n), rng.random(n) < 0.9, rng.random(n) < 0.7
    p = []
    for tiny in (0.0, 1e-300, 1e-30):
        weight[0] = tiny
        rows = ComparedRows.check(np.ones(n, bool), own[:, None], np.zeros(n, int), pooled, sample_weight=weight)
        p.append(against_pooled(rows).p_within(0.0)[0])
    assert p == pytest.approx([p[0]] * 3, rel=0.5)


def test_a_heavier_row_than_any_here_may_be_drawn_next():
    rng = np.random.default_rng(0)
    own, pooled, weight = rng.random(100) < 0.9, rng.random(100) < 0.7, np.full(100, 2.0)
    p = []
    for largest in (None, 2.0, 10.0, 200.0):
        given = {"sample_weight": weight, "largest_weight": largest}
        rows = ComparedRows.check(np.ones(100, bool), own[:, None], np.zeros(100, int), pooled, **given)
        p.append(against_pooled(rows).p_within(0.0)[0])
    assert p[0] == p[1] < p[2] < p[3]
    for wrong in (1.0, -1, "many"):
        with pytest.raises(InputError, match="largest_weight"):
            ComparedRows.check(np.ones(100, bool), own[:, None], np.zeros(100, int), pooled, sample_weight=weight,
                               largest_weight=wrong)  # fmt: skip


@given(compared(weighted=True))
def test_mean_losses_are_unknown_without_rows_and_weighted_otherwise(rows):
    n_groups = len(rows.own)
    for loss in LOSSES:
        stake, counts = costs_of_wrong_decisions(rows, loss)
        means = rows.mean_loss(loss, rows.own_right, rows.group, n_groups)
        for g in range(n_groups):
            members = (rows.group == g) & (counts > 0)
            if members.any():
                expected = np.average(stake[members] * ~rows.own_right[members], weights=rows.weight[members])
                assert means[g] == pytest.approx(expected)
            else:
                assert np.isnan(means[g])


def test_no_rows_are_compared_to_nothing():
    for loss in (ERROR, Loss("fnr")):
        found = against_pooled(ComparedRows.none(1), loss)
        assert found.total.tolist() == [0, 0]
        assert found.upper(0.05).tolist() == [1, 1]


def test_the_classifier_that_serves_a_row_is_that_of_its_group():
    rows = ComparedRows.check(
        y=[1, 1, 1], predictions=[[1, 0], [0, 1], [0, 0]], groups=[1, 0, 2], pooled=[0, 0, 1], own=[1, 0, 2]
    )
    assert rows.own_right.tolist() == [True, True, True]
    assert rows.differ.tolist() == [[True, False], [False, True], [True, True]]


def test_the_positive_class_is_the_second_of_two():
    rows = {"predictions": [["a"], ["a"]], "groups": [0, 0], "pooled": ["a", "a"]}
    assert ComparedRows.check(["a", "b"], **rows).positive.tolist() == [False, True]
    assert ComparedRows.check(["a", "b"], **rows, classes=["b", "a"]).positive.tolist() == [True, False]
    assert ComparedRows.check(["a", "b"], **rows, classes=["a", "b", "c"]).positive is None
    assert ComparedRows.check(["a", "c"], **rows | {"pooled": ["b", "b"]}).positive is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predictions": [0, 1]}, "one column per classifier"),
        ({"pooled": [[0], [0]]}, "one entry per sample"),
        ({"groups": [-1, 0]}, "integers from 0"),
        ({"groups": [0.0, 0.5]}, "integers from 0"),
        ({"own": [2]}, "own must name a classifier"),
        ({"own": []}, "one entry per group"),
        ({"y": [], "predictions": np.zeros((0, 1)), "groups": [], "pooled": []}, "no rows"),
        ({"pooled": [0]}, "inconsistent"),
        ({"persons": [1]}, "one identifier"),
        ({"groups": [[0], [0, 1]]}, "groups cannot be read"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, words):
    good = {"y": [0, 1], "predictions": [[0], [1]], "groups": [0, 0], "pooled": [0, 0]}
    with pytest.raises(ValueError, match=words):
        ComparedRows.check(**good | change)
