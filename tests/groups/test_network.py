"""Between estimator and training: starts, folds, which group of a fold's model is which, and what held-out rows say."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dafh import DAFHClassifier, Recipe
from dafh.datasets import make_paper_synthetic
from dafh.exceptions import InputError
from dafh.groups.judging import compare_rows
from dafh.groups.network import FittedPopulation, Start, fit_population
from dafh.groups.objective import divergence, margin_loss
from dafh.groups.recipe import RANDOM_STARTS
from dafh.groups.trained import NetworkModel
from dafh.rows import HeldOut, LabelledRows

N, K = 900, 3


def three_groups():
    """Groups by the largest of three columns; classifier k gives the sign of column k, shifted by k."""
    group = ((np.eye(3), np.zeros((1, 3))),)
    classifiers = ((np.eye(3)[:, :, None], np.array([[[-0.2]], [[0.0]], [[0.4]]])),)
    return NetworkModel(group, classifiers)


def renumbered(model, order):
    """The same model with its groups, and their classifiers, in another order."""
    group = tuple((weight[:, order], bias[:, order]) for weight, bias in model.group)
    return replace(model, group=group, classifiers=tuple((w[order], b[order]) for w, b in model.classifiers))


def rows_and_folds(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, K))
    label = (X.sum(axis=1) + rng.normal(size=N) > 0).astype(np.intp)
    rows = LabelledRows(X, label, np.array([0, 1]), np.ones(N), X)
    fold = np.repeat([0, 1, -1], N // 3).astype(np.int32)
    calibrates = (fold >= 0) & (np.arange(N) % 3 > 0)
    return rows, HeldOut(fold, calibrates, 2), rng.normal(size=(N, 1))


def population(*folds):
    return FittedPopulation(three_groups(), folds, pd.DataFrame(), 1)


def judged(networks, rows, base, held_out, cutoff=0.5, pooled_label=None):
    pooled_label = np.zeros(len(rows), np.intp) if pooled_label is None else pooled_label
    judging, group, logits = networks.cross_fitted(rows, base, held_out)
    return compare_rows(rows, judging, group, logits, base, pooled_label, cutoff)


def wrong_in_groups(compared):
    """Rows on which each classifier is wrong, (K, K + 1)."""
    return np.array([(~compared.right[compared.group == k]).sum(axis=0) for k in range(K)])


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0]])
def test_folds_count_for_the_same_groups_however_they_are_numbered(order):
    rows, held_out, base = rows_and_folds()
    plain = judged(population(three_groups(), three_groups()), rows, base, held_out)
    mixed = population(three_groups(), renumbered(three_groups(), order))
    for name, values in vars(judged(mixed, rows, base, held_out)).items():
        np.testing.assert_array_equal(values, getattr(plain, name))
    wrong = wrong_in_groups(plain)
    assert not np.array_equal(wrong, wrong[order])  # The groups can be told apart by their errors.


@pytest.mark.parametrize("cutoff", [0.5, 0.3])
def test_the_calibration_rows_of_each_fold_are_judged_by_its_own_block(cutoff):
    """Own classifiers decide at their cut-off, and the pooled one at its own."""
    rows, held_out, base = rows_and_folds()
    pooled_label = (expit(base[:, 0]) > 0.6).astype(np.intp)
    compared = judged(population(three_groups(), three_groups()), rows, base, held_out, cutoff, pooled_label)
    used = np.concatenate([held_out.calibration(fold) for fold in range(2)])
    X, label, pooled = rows.numbers[used], rows.label[used], base[used]
    labels = expit(X + np.array([-0.2, 0.0, 0.4]) + pooled) > cutoff  # Corrections are added to the pooled logit.
    np.testing.assert_array_equal(compared.group, X.argmax(axis=1))
    np.testing.assert_array_equal(compared.right, np.column_stack([labels, expit(pooled) > 0.6]) == label[:, None])
    np.testing.assert_array_equal(compared.positive, label == 1)
    np.testing.assert_array_equal(compared.differ, labels != (expit(pooled) > 0.6))


# ---- training, from checked rows to models ----


def tiny_fit(rows, held_out, base, begin=None, n_groups=K, **settings):
    quick = {"n_replicas": 1, "max_epochs": 2, "select": "last", "group_hidden": (16,), "anchor": 4.0}
    seeds = np.random.SeedSequence(0), np.random.SeedSequence(1)
    recipe = Recipe(**quick | {"noise": 0.5, "batch_size": 300, "average_steps": 1} | settings)
    return fit_population(recipe, n_groups, rows, base, held_out, start=begin, seeds=seeds)


def start_at_groups(rows, seed=0):
    """Groups by the largest column, and other corrections for each block."""
    rng = np.random.default_rng(seed)
    return Start(rows.numbers.argmax(axis=1), rng.normal(size=(3, K, K, 1)), rng.normal(size=(3, K, 1)))


STILL = {"group_learning_rate": 0.0, "classifier_learning_rate": 0.0}


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_before_its_first_step_every_block_tells_the_groups_and_has_the_exact_corrections(scale):
    rows, held_out, base = rows_and_folds()
    start = start_at_groups(rows)
    rows = replace(rows, numbers=rows.numbers * [1, scale, 0.01] + [0, 5, -3])
    fitted = tiny_fit(rows, held_out, base, start, **STILL)
    for block, model in enumerate([*fitted.folds, fitted.model]):
        assert np.mean(model.group_logits(rows.numbers).argmax(axis=1) == start.group) > 0.9
        every = np.einsum("nd,kdm->nkm", rows.numbers, start.weight[block]) + start.bias[block]
        np.testing.assert_allclose(model.logits(rows.numbers), every, rtol=1e-4, atol=1e-3)


def test_a_cold_model_does_not_contain_the_pooled_classifier():
    rows, held_out, base = rows_and_folds()
    cold, other = (tiny_fit(rows, held_out, logits, start="cold").model for logits in (base, 3 * base))
    assert not cold.contains_pooled
    np.testing.assert_array_equal(cold.logits(rows.numbers), other.logits(rows.numbers))


# ---- no row judges what it has taught ----


def moved(before, after, rows):
    """How far each model, those of the folds first, is from the other fit's, in any output."""
    return [
        max(
            np.abs(f(one) - f(other)).max()
            for f in (lambda m: m.logits(rows.numbers), lambda m: m.group_logits(rows.numbers))
        )
        for one, other in zip([*before.folds, before.model], [*after.folds, after.model], strict=True)
    ]


def test_the_model_of_a_fold_learns_nothing_from_its_rows():
    """Other labels and groups in fold 1 change the final model and fold 0's, but not the one that leaves fold 1 out."""
    rows, held_out, base = rows_and_folds()
    start, there = start_at_groups(rows), held_out.fold == 1
    changed = replace(rows, label=np.where(there, 1 - rows.label, rows.label))
    other = replace(start, group=np.where(there, 0, start.group))
    distance = moved(tiny_fit(rows, held_out, base, start), tiny_fit(changed, held_out, base, other), rows)
    assert distance[1] == 0
    assert min(distance[0], distance[2]) > 1e-4


# ---- an objective of one's own ----


def test_functions_replace_surrogate_and_penalty():
    rows, held_out, base = rows_and_folds()
    named = tiny_fit(rows, held_out, base, penalty=0.5)
    given = tiny_fit(rows, held_out, base, penalty=0.5, surrogate=margin_loss, imbalance=divergence)
    np.testing.assert_array_equal(named.model.logits(rows.numbers), given.model.logits(rows.numbers))
    hinge = tiny_fit(
        rows,
        held_out,
        base,
        penalty=0.5,
        surrogate=lambda z, y, _: jnp.maximum(0.0, 1.0 - (2.0 * y[:, None] - 1.0) * z[..., 0]),
        imbalance=lambda share: (share**2).sum(),
    )
    assert np.abs(named.model.logits(rows.numbers) - hinge.model.logits(rows.numbers)).max() > 1e-4


# ---- starts, from the estimator ----


@pytest.mark.parametrize("start", ["exceptions", "clusters", "errors", "pooled", "cold"])
def test_every_start_trains(start):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=600) > 0
    recipe = Recipe(start=start, max_epochs=3, n_folds=2)
    model = DAFHClassifier(2, method="network", pooled="linear", recipe=recipe, guard=None, random_state=0).fit(X, y)
    assert model.n_groups_ == 2
    assert set(np.unique(model.predict_group(X))) <= {0, 1}
    assert model.score(X, y) > (0.8 if start == "exceptions" else 0.4)


def test_random_starts_take_the_place_of_exceptions_that_held_out_rows_find_poor(monkeypatch):
    """No single rectangle helps where the sign of x1 · x2 decides which side of a cluster is positive."""
    monkeypatch.setitem(RANDOM_STARTS, "n_replicas", 2)
    data = make_paper_synthetic(1000, random_state=0)
    model = DAFHClassifier(2, method="network", pooled="linear", guard=None, recipe=Recipe(n_folds=2), random_state=0)
    assert model.fit(data.X, data.y).score(data.X, data.y) > 0.95


def test_errors_make_two_groups():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = DAFHClassifier(3, method="network", pooled="linear", recipe=Recipe(start="errors"))
    with pytest.raises(InputError, match="n_groups must be 2"):
        model.fit(X, X[:, 0] > 0)


# ---- bookkeeping ----


def test_training_that_diverges_everywhere_is_explained():
    rows, held_out, base = rows_and_folds()
    with pytest.raises(InputError, match="diverged"):
        tiny_fit(rows, held_out, np.full_like(base, np.nan))
