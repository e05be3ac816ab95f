"""Leaves merged into groups, and corrections of groups, against all mergers there are and a general optimiser."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dafh.groups.merging import LeafRows, LeafSums, fit_corrections, prefer, refine, served_losses
from dafh.linear.designs import DenseDesign
from dafh.linear.newton import Regression, class_shares, row_losses

PENALTY = np.full(3, 5.0)


def leaf_rows(n_leaves=6, n_classes=2, seed=0, n=600):
    """Rows in leaves whose labels depend on two columns in different ways, and logits that know nothing of it."""
    rng = np.random.default_rng(seed)
    X, leaf = rng.normal(size=(n, 2)), np.arange(n) % n_leaves
    effect = rng.normal(size=(n_leaves, 3))[leaf]
    score = effect[:, 0] + (effect[:, 1:] * X).sum(axis=1) + rng.logistic(size=n)
    label = (score > 0).astype(np.intp) + (n_classes > 2) * (score > 1.5)
    base = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) / 2
    return LeafRows.of(Regression(DenseDesign(X), label, rng.uniform(0.5, 2, n), base), leaf, n_leaves)


def sums_of(**settings):
    rows = leaf_rows(**settings)
    return rows.sums()


def rows_of_groups(leaves, group):
    return [leaves.rows.take(np.flatnonzero(group[leaves.leaf] == k)) for k in range(group.max() + 1)]


def worth_of(sums, group):
    """By how much the best corrections of the groups lower the quadratic loss, written out from the sums."""
    worth = 0.0
    for k, output in itertools.product(range(group.max() + 1), range(sums.gradient.shape[2])):
        gradient = sums.gradient[group == k, :, output].sum(axis=0)
        matrix = sums.curvature[group == k, output].sum(axis=0) + np.diag(PENALTY)
        worth += gradient @ np.linalg.solve(matrix, gradient) / 2
    return worth


def all_mergers(n_leaves, n_groups):
    for group in itertools.product(range(n_groups), repeat=n_leaves):
        if len(set(group)) == n_groups and group[0] == 0:
            yield np.array(group)


# ---- sums ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_of_merged_leaves_are_the_sums_of_their_rows(n_classes):
    rows, parent = leaf_rows(n_classes=n_classes), np.array([0, 1, 0, 2, 1, 0])
    merged = rows.joined(parent).sums()
    for k, joined in enumerate(rows_of_groups(rows, parent)):
        np.testing.assert_allclose(merged.gradient[k], joined.gradient(joined.offset))
        np.testing.assert_allclose(merged.curvature[k], joined.curvatures(joined.offset))


# ---- mergers ----


@given(st.integers(2, 8), st.integers(1, 9), st.sampled_from([2, 3]), st.integers(0, 1000))
def test_no_group_is_empty(n_leaves, n_groups, n_classes, seed):
    sums = sums_of(n_leaves=n_leaves, n_classes=n_classes, seed=seed, n=120)
    group, corrections = sums.merge(min(n_groups, n_leaves), PENALTY)
    assert sorted(set(group.tolist())) == list(range(len(corrections)))
    assert len(corrections) == min(n_groups, n_leaves)


@pytest.mark.parametrize(("n_groups", "least"), [(2, 0.9), (3, 0.8)])
def test_most_mergers_of_few_leaves_are_the_best_there_are(n_groups, least):
    best = []
    for seed in range(40):
        sums = sums_of(n_leaves=6, seed=seed, n=200)
        found = worth_of(sums, sums.merge(n_groups, PENALTY)[0])
        best.append(found >= max(worth_of(sums, group) for group in all_mergers(6, n_groups)) - 1e-9)
    assert np.mean(best) >= least


def test_leaves_that_are_alike_are_put_together():
    gradient = np.array([-9.0, 8.0, -8.0, 9.0, 8.5])[:, None, None]
    sums = LeafSums(gradient, np.full((5, 1, 1, 1), 10.0))
    group, corrections = sums.merge(2, np.array([5.0]))
    assert group.tolist() == [0, 1, 0, 1, 1]
    np.testing.assert_allclose(corrections.ravel(), [17 / 25, -25.5 / 35])


# ---- corrections ----


def solved(rows, penalty, outside=None, elsewhere=0.0):
    """Correction by a general optimiser; on rows outside of the group, its squared size counts `elsewhere`."""
    matrix, outputs = rows.design.dense(), rows.offset.shape[1]

    def value(flat):
        coefficients = flat.reshape(-1, outputs)
        value = rows.weight @ row_losses(rows.offset + matrix @ coefficients, rows.label)
        if outside is not None:
            shares = class_shares(outside.offset)
            sizes = (shares * (1 - shares) * (outside.design.dense() @ coefficients) ** 2).sum(axis=1)
            value += elsewhere * outside.weight @ sizes / 2
        return value + penalty @ ((coefficients**2).sum(axis=1)) / 2

    return minimize(value, np.zeros(len(penalty) * outputs), tol=1e-9).x.reshape(-1, outputs)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrections_of_groups_are_those_of_a_general_optimiser(n_classes):
    rows, group, penalty = leaf_rows(n_classes=n_classes), np.array([0, 1, 0, 1, 1, 0]), np.array([5.0, 1.0, 20.0])
    corrections = fit_corrections(rows, group, penalty)
    for k, joined in enumerate(rows_of_groups(rows, group)):
        np.testing.assert_allclose(corrections[k], solved(joined, penalty), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrections_are_held_back_on_rows_of_other_groups(n_classes):
    rows, group = leaf_rows(n_classes=n_classes), np.array([0, 1, 0, 1, 1, 0])
    corrections = fit_corrections(rows, group, PENALTY, 0.3)
    parts = rows_of_groups(rows, group)
    for k, joined in enumerate(parts):
        np.testing.assert_allclose(corrections[k], solved(joined, PENALTY, parts[1 - k], 0.3), atol=1e-4)
    free = fit_corrections(rows, group, PENALTY)
    changes = [[np.abs(parts[1 - k].design.logits(c[k])).mean() for k in range(2)] for c in (corrections, free)]
    assert (np.array(changes[0]) < np.array(changes[1])).all()


def one_group():
    """Rows in one group, the exact correction, and the penalised loss of any correction."""
    rows, group = leaf_rows(), np.zeros(6, np.intp)
    (joined,) = rows_of_groups(rows, group)

    def value(correction):
        return joined.loss(joined.offset + joined.design.logits(correction)) + PENALTY @ correction[:, 0] ** 2 / 2

    return rows, group, fit_corrections(rows, group, PENALTY), value


def test_corrections_that_are_far_too_long_are_shortened_until_the_loss_falls():
    rows, group, exact, value = one_group()
    shortened = refine(rows, group, 8 * exact, PENALTY)
    assert value(shortened[0]) <= value(np.zeros((3, 1))) < value(8 * exact[0])
    np.testing.assert_array_equal(refine(rows, group, -exact, PENALTY), 0 * exact)


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.0])
def test_corrections_get_the_length_at_which_the_loss_is_lowest(factor):
    rows, group, exact, value = one_group()
    refined = refine(rows, group, factor * exact, PENALTY)
    np.testing.assert_allclose(refined, exact, rtol=0.01)
    assert value(refined[0]) < value(exact[0]) + 1e-4


# ---- preferences and serving ----


def test_every_leaf_prefers_the_correction_that_serves_it_best():
    rows, corrections = leaf_rows(), np.array([[[2.0], [0], [0]], [[-2.0], [0], [0]]])
    preferred = prefer(rows, np.zeros(6, np.intp), corrections)
    for part, k in zip(rows_of_groups(rows, np.arange(6)), preferred, strict=True):
        losses = [part.loss(part.offset + part.design.logits(correction)) for correction in corrections]
        assert losses[k] == min(losses)
    assert set(preferred) == {0, 1}


def test_preferences_that_would_leave_a_group_without_leaves_are_not_followed():
    rows, group = leaf_rows(), np.array([0, 1, 0, 1, 0, 1])
    corrections = np.array([[[0.0], [0], [0]], [[50.0], [0], [0]]])
    np.testing.assert_array_equal(prefer(rows, group, corrections), group)


def test_served_losses_are_those_of_each_rows_group():
    rng = np.random.default_rng(0)
    X, label, base = rng.normal(size=(50, 2)), rng.integers(0, 2, 50), rng.normal(size=(50, 1))
    corrections, group = rng.normal(size=(3, 3, 1)), rng.integers(0, 3, 50)
    losses = served_losses(Regression(DenseDesign(X), label, np.ones(50), base), group, corrections)
    by_hand = base[:, 0] + corrections[group, 0, 0] + (X * corrections[group, 1:, 0]).sum(axis=1)
    np.testing.assert_allclose(losses, row_losses(by_hand[:, None], label))
