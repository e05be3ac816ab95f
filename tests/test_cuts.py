"""Cuts are put where the errors of the pooled classifier change, whatever the scale of a column, and nowhere else."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dafh.engine.networks import Parameters, apply_classifiers, init_replica
from dafh.groups.cuts import find_cuts
from models import model_of

ONES = np.ones(2000)


def stepped(n=2000, at=0.3, seed=0):
    """One column and residuals that jump where it passes `at`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, np.where(x > at, 0.3, -0.2)[:, None] + 0.1 * rng.normal(size=(n, 1))


def test_a_jump_is_found_between_the_two_values_around_it():
    x, residual = stepped()
    cuts = find_cuts(x[:, None], residual, ONES, most=1)
    # 2,000 values share 256 bins: the cut is at a border of one, at most eight values away.
    between = np.sum((x > min(cuts.threshold[0], 0.3)) & (x <= max(cuts.threshold[0], 0.3)))
    assert cuts.column.tolist() == [0]
    assert between <= 8


def test_few_values_are_cut_exactly_between_two_of_them():
    x = np.repeat([1.0, 2.0, 5.0, 9.0], 100)
    residual = np.where(x > 2, 0.5, -0.5)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(400, 1))
    cuts = find_cuts(x[:, None], residual, np.ones(400), most=1)
    assert (cuts.column.tolist(), cuts.threshold.tolist()) == ([0], [3.5])


def test_rare_values_far_out_are_cut_where_most_rows_share_one_value():
    # Like gains from capital: nine rows in ten are 0, and what lies above 5,000 is another story.
    rng = np.random.default_rng(0)
    x = np.where(rng.random(5000) < 0.9, 0, rng.integers(1, 10_000, 5000)).astype(float)
    residual = np.where(x > 5000, 0.6, -0.1)[:, None] + 0.1 * rng.normal(size=(5000, 1))
    cuts = find_cuts(x[:, None], residual, np.ones(5000), most=1)
    assert 4900 < cuts.threshold[0] < 5100


def test_columns_without_a_place_for_a_cut_have_none():
    _, residual = stepped()
    X = np.column_stack([np.ones(2000), np.arange(2000) % 2])
    assert len(find_cuts(X, residual, ONES, most=64)) == 0


def test_noise_is_hardly_ever_cut():
    rng = np.random.default_rng(0)
    cuts = find_cuts(rng.normal(size=(2000, 50)), rng.normal(size=(2000, 1)), ONES, most=500)
    assert len(cuts) <= 10  # of up to 350


def test_the_largest_changes_are_kept_when_cuts_are_few():
    x, large = stepped()
    other, small = stepped(at=-0.5, seed=1)
    cuts = find_cuts(np.column_stack([other, x]), large + 0.2 * small, ONES, most=1)
    assert cuts.column.tolist() == [1]
    assert len(find_cuts(x[:, None], large, ONES, most=0)) == 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), at=st.floats(-1, 1), scale=st.floats(1e-3, 1e3))
def test_a_monotone_change_of_scale_moves_no_row_across_a_cut(seed, at, scale):
    x, residual = stepped(500, at, seed)
    ones = np.ones(500)
    changed = np.exp(scale * (x - x.max()) / 100)
    above = [find_cuts(column[:, None], residual, ones, 8).above(column[:, None]) for column in (x, changed)]
    np.testing.assert_array_equal(*above)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_weight_of_two_is_a_row_given_twice(seed):
    n = 8000  # So many that the smallest side of a cut is a share, not a number, of rows.
    x, residual = stepped(n, seed=seed)
    x = x.round(1)
    weight = 1.0 + np.random.default_rng(seed).integers(0, 2, n)
    twice = np.repeat(np.arange(n), weight.astype(int))
    weighted = find_cuts(x[:, None], residual, weight, 3)
    repeated = find_cuts(x[twice, None], residual[twice], np.ones(len(twice)), 3)
    np.testing.assert_allclose(weighted.threshold, repeated.threshold)


def test_values_in_single_precision_stay_on_their_side():
    x = np.random.default_rng(0).integers(0, 50, 2000) / 7
    residual = np.where(x > 3, 0.5, -0.5)[:, None] + 0.1 * np.random.default_rng(1).normal(size=(2000, 1))
    cuts = find_cuts(x[:, None], residual, ONES, 8)
    np.testing.assert_array_equal(cuts.above(x[:, None]), cuts.above(x[:, None].astype(np.float32)))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_numbers_are_cut_too(scale):
    x, residual = stepped()
    cuts = find_cuts(x[:, None] * scale, residual, ONES, most=1)
    assert np.isfinite(cuts.threshold).all()
    assert 0 < cuts.above(x[:, None] * scale).mean() < 1


def test_several_classes_are_cut_where_any_of_them_changes():
    x, residual = stepped()
    cuts = find_cuts(x[:, None], np.column_stack([0 * residual, residual, -residual]), ONES, most=1)
    assert cuts.column.tolist() == [0]


def test_classifiers_do_not_see_what_comes_after_their_columns():
    replica: Parameters = init_replica(np.random.default_rng(0), (5, 2), (3, 1), noise=1.0)
    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    base = np.zeros((4, 1), np.float32)
    alone, together = (apply_classifiers(replica.classifiers, columns, base) for columns in (x[:, :3], x))
    np.testing.assert_array_equal(alone, together)
    assert jax.tree.leaves(replica.group)[0].shape[0] == 5


@pytest.fixture(scope="module")
def bump():
    """People between two thresholds of one column follow another rule than all others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    inside = np.abs(X[:, 0] - 0.5) < 0.4
    return X, (np.where(inside, -1, 1) * (2 * X[:, 1] + X[:, 2]) + (X[:, 0] > 0.9) + rng.logistic(size=6000) * 0.3 > 0)


def test_the_group_classifier_gains_by_cuts(bump):
    X, y = bump
    scores = {}
    for most in (0, 64):
        model = model_of(group_cuts=most, n_replicas=4, max_epochs=10, random_state=0).fit(X[:4000], y[:4000])
        scores[most] = model.score(X[4000:], y[4000:])
    assert scores[64] > scores[0]


def test_groups_do_not_depend_on_the_offset_of_a_column(bump):
    X, y = bump
    settings = {"max_epochs": 3, "n_replicas": 2, "guard": None, "random_state": 0}
    near = model_of(**settings).fit(X[:3000], y[:3000])
    offset = np.array([1e4, 0, 0, -1e5])
    far = model_of(**settings).fit(X[:3000] + offset, y[:3000])
    alike = far.predict_group(X + offset) == near.predict_group(X)
    assert alike.mean() > 0.99  # Rounding moves a row at a border now and then.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbouring_numbers_are_cut_between(dtype):
    one = dtype(1)
    x = np.repeat([np.nextafter(one, dtype(0)), one, np.nextafter(one, dtype(2))], 200)
    residual = np.where(x >= one, 0.5, -0.5)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(600, 1))
    cuts = find_cuts(x[:, None], residual, np.ones(600), most=1)
    np.testing.assert_array_equal(cuts.above(x[:, None])[:, 0], x >= one)


def test_a_column_of_neighbouring_numbers_does_not_break_training():
    rng = np.random.default_rng(0)
    x = np.where(np.arange(400) % 2, np.float32(1), np.nextafter(np.float32(1), np.float32(2)))
    X = np.column_stack([x, rng.normal(size=400), np.where(rng.random(400) < 0.5, x, np.float32(0))]).astype(np.float32)
    y = (X[:, 1] + 2 * (x > 1) > 0.5).astype(int)
    model = model_of(max_epochs=2, n_replicas=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
