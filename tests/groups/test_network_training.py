"""The population: networks as they are drawn, steps, folds, averages, figures."""

import jax
import numpy as np
import pytest

from dafh import Recipe
from dafh.classifiers import decide
from dafh.groups.network import (
    copied_groups,
    draw_replica,
    outputs,
    population_figures,
    stacked,
    train,
)
from dafh.groups.objective import Batch, Settings
from dafh.groups.trained import apply_network


def make_rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    one = np.ones(n, np.float32)
    return Batch(x, (x[:, 0] * x[:, 1] > 0).astype(np.int32), np.zeros((n, 1), np.float32), one, fold=-one)


SGD = {"optimizer": "sgd", "momentum": 0.9}


def population(n_replicas, seed=0):
    streams = np.random.SeedSequence(seed).spawn(n_replicas)
    return stacked([draw_replica(np.random.default_rng(stream), (3, 8, 2), (3, 1), 0.5) for stream in streams])


def settings(n_replicas, **changes):
    values = {"envy_weight": 0.5, "penalty": 0.3, "temperature": 1.0, "anchor": 1.0, "shrinkage": 0.0}
    values |= {"group_learning_rate": 1e-2, "classifier_learning_rate": 1e-2, "held_out": -1} | changes
    return Settings(**{name: np.broadcast_to(value, n_replicas).astype(float) for name, value in values.items()})


def trained(n_replicas=2, rows=None, start=None, s=None, max_epochs=3, rng=None, **recipe):
    """The population after each epoch."""
    rows = make_rows() if rows is None else rows
    start = population(n_replicas) if start is None else start
    rng = np.random.default_rng(0) if rng is None else rng
    recipe = Recipe(**{"batch_size": 64, "final_rate": 1.0, "average_steps": 1} | recipe)
    s = settings(n_replicas) if s is None else s
    return list(train(rows, start, s, recipe, max_epochs=max_epochs, rng=rng))


def assert_same(one, other, atol=1e-6):
    for mine, yours in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(mine, yours, atol=atol)


# ---- networks as they are drawn ----


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("hidden", [(), (20,), (10, 10)])
def test_a_network_learns_to_tell_the_groups_it_starts_from(n_groups, hidden):
    x = np.random.default_rng(0).normal(size=(3000, 4))
    group = x[:, :n_groups].argmax(axis=1)
    copy = copied_groups(x, group, n_groups, hidden)
    assert [weight.shape[1] for weight, _ in copy] == [*hidden, n_groups]
    assert np.mean(apply_network(copy, x).argmax(axis=1) == group) > 0.9


# ---- steps ----


def test_a_replica_does_not_depend_on_its_companions():
    assert_same(trained(1)[2], jax.tree.map(lambda leaf: leaf[:1], trained(5)[2]), atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(Settings._fields) - {"held_out"}))
def test_replicas_with_different_settings_differ(name):
    start = jax.tree.map(lambda leaf: np.stack([leaf[0], leaf[0]]), population(1))
    weights = trained(start=start, s=settings(2, **{name: np.array([0.1, 0.9])}), max_epochs=2)[-1].classifiers[0][0]
    assert np.abs(weights[0] - weights[1]).max() > 1e-5


def test_the_learning_rates_fall_linearly_to_the_final_share():
    rows = make_rows(64)

    def after(max_epochs, final_rate, rate, start=None):
        rates = settings(1, group_learning_rate=rate, classifier_learning_rate=rate)
        options = {"max_epochs": max_epochs, "final_rate": final_rate, "start": start} | SGD | {"momentum": 0.0}
        return trained(1, rows, s=rates, **options)

    first, second, third = after(3, 0.0, 0.2)
    assert_same(first, after(1, 0.0, 0.2)[0])
    assert_same(third, second, atol=0)  # A rate of 0 in the last epoch.
    # The second epoch's rate is half the first's: from where the first one ended, a run at 0.1 makes the same step.
    assert_same(second, after(1, 0.0, 0.1, first)[0], atol=1e-5)


def test_the_average_is_the_mean_of_the_parameters_after_each_step():
    rows = make_rows(64)
    steps = [trained(1, rows, max_epochs=n)[-1] for n in (1, 2, 3)]
    averaged = trained(1, rows, average_steps=10)[-1]
    assert_same(averaged, jax.tree.map(lambda *leaves: np.mean(leaves, axis=0), *steps))


# ---- folds and weights ----


@pytest.mark.parametrize("batch_size", [1, 200])
def test_a_replica_that_holds_rows_out_is_trained_as_if_they_did_not_exist(batch_size):
    """Row by row too, where a row that is held out must not even move the classifiers by their momentum."""
    rows, fold = make_rows(200), np.arange(200) % 4
    order = np.random.default_rng(0).permutation(200)
    rows, fold = Batch(*(field[order] for field in rows)), fold[order]

    class InOrder:
        def permutation(self, n):
            return np.arange(n)

    options = {"batch_size": batch_size, "max_epochs": 2, "rng": InOrder()} | SGD
    held_out = trained(1, rows._replace(fold=fold.astype(np.float32)), s=settings(1, held_out=2), **options)
    without = trained(1, Batch(*(field[fold != 2] for field in rows)), **options)
    assert_same(held_out[-1], without[-1], atol=1e-4)


# ---- figures ----


def figures(rows, start, pooled_right=None, selection=None, n_folds=0):
    n = len(rows.label)
    pooled_right = np.zeros(n, bool) if pooled_right is None else pooled_right
    return population_figures(start, rows, pooled_right, np.arange(n) if selection is None else selection, n_folds)


def test_accuracy_and_pr_equal_a_count_by_hand():
    rows, start = make_rows(100), population(2)
    pooled_right = np.random.default_rng(0).random(100) < 0.1
    measured = figures(rows, start, pooled_right)
    for number in range(2):
        group_logits, logits = outputs(jax.tree.map(lambda leaf, r=number: leaf[r], start), rows.x, rows.base)
        right = decide(logits) == rows.label[:, None]
        own = right[np.arange(100), group_logits.argmax(axis=1)]
        assert measured["selection_accuracy"][0, number] == pytest.approx(own.mean(), abs=1e-6)
        harmed = ~own & (right.any(axis=1) | pooled_right)
        assert measured["selection_pr"][0, number] == pytest.approx(1 - harmed.mean(), abs=1e-6)


def test_a_replica_is_judged_by_the_selection_rows_that_it_holds_out():
    rows, start = make_rows(200), jax.tree.map(lambda leaf: np.repeat(leaf, 3, axis=0), population(1))
    fold, selection = np.arange(200) % 2, np.flatnonzero(np.arange(200) % 3 > 0)
    measured = figures(rows._replace(fold=fold), start, selection=selection, n_folds=2)
    alone = jax.tree.map(lambda leaf: leaf[:1], start)
    for block, part in enumerate([selection[fold[selection] == 0], selection[fold[selection] == 1], selection]):
        expected = figures(Batch(*(field[part] for field in rows)), alone)
        for name in ("brier", "accuracy", "pr", "label_information"):
            assert measured[f"selection_{name}"][block, 0] == pytest.approx(expected[f"selection_{name}"][0, 0])
