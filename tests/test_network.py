"""Between estimator and engine: which group of a fold's model is which, and what its held-out rows count."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh.exceptions import InputError
from dafh.groups.network import FittedPopulation, fit_population, matched_groups
from dafh.groups.recipe import Recipe
from dafh.groups.serving import CorrectionModel
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut

N, K = 900, 3


def three_groups():
    """Groups by the largest of three columns; classifier k gives the sign of column k, shifted by k."""
    group = ((np.eye(3), np.zeros(3)),)
    classifiers = ((np.eye(3)[:, :, None], np.array([[-0.2], [0.0], [0.4]])),)
    return CorrectionModel(None, group, classifiers)


def renumbered(model, order):
    """The same model with its groups, and their classifiers, in another order."""
    group = tuple((weight[:, order], bias[order]) for weight, bias in model.group)
    return replace(model, group=group, classifiers=tuple((w[order], b[order]) for w, b in model.classifiers))


def rows_and_folds(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, K))
    label = (X.sum(axis=1) + rng.normal(size=N) > 0).astype(np.intp)
    rows = CheckedRows(X, X, label, np.array([0, 1]), np.ones(N))
    fold = np.repeat([0, 1, -1], N // 3).astype(np.int32)
    calibrates = (fold >= 0) & (np.arange(N) % 3 > 0)
    return rows, HeldOut(fold, calibrates, 2), rng.normal(size=(N, 1))


def population(*folds):
    return FittedPopulation(three_groups(), folds, pd.DataFrame(), pd.DataFrame(), 1)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_groups_are_matched_by_the_rows_they_share(order):
    rows, _, _ = rows_and_folds()
    # Group j of the renumbered model is group order[j] of the original.
    np.testing.assert_array_equal(matched_groups(renumbered(three_groups(), order), three_groups(), rows.X), order)


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0]])
def test_folds_count_for_the_same_groups_however_they_are_numbered(order):
    rows, held_out, base = rows_and_folds()
    plain = population(three_groups(), three_groups()).cross_fitted_counts(rows, base, held_out)
    mixed = population(three_groups(), renumbered(three_groups(), order)).cross_fitted_counts(rows, base, held_out)
    for name in ("beats", "n_rows", "n_wrong"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(mixed, name))
    assert not np.array_equal(plain.n_wrong, plain.n_wrong[order])  # The groups can be told apart by their counts.


def test_counts_are_those_of_the_calibration_rows_of_each_fold():
    rows, held_out, base = rows_and_folds()
    counts = population(three_groups(), three_groups()).cross_fitted_counts(rows, base, held_out)
    used = np.flatnonzero(held_out.calibrates)
    X, label = rows.X[used], rows.label[used]
    group = X.argmax(axis=1)
    labels = (X + [-0.2, 0.0, 0.4] + base[used] > 0).astype(int)  # Corrections are added to the pooled logit.
    right = np.column_stack([labels, base[used] > 0]) == label[:, None]
    assert counts.n_rows.tolist() == np.bincount(group).tolist()
    for k in range(K):
        members = right[group == k]
        assert counts.n_wrong[k].tolist() == (~members).sum(axis=0).tolist()
        assert counts.beats[k, k, K] == (members[:, k] & ~members[:, K]).sum()
        assert counts.beats[k, K, k] == (~members[:, k] & members[:, K]).sum()


def test_a_cold_model_is_compared_without_the_pooled_logit():
    rows, held_out, base = rows_and_folds()
    cold = replace(three_groups(), pooled="unused")
    counts = population(cold, cold).cross_fitted_counts(rows, base, held_out)
    still = population(three_groups(), three_groups()).cross_fitted_counts(rows, 0 * base, held_out)
    np.testing.assert_array_equal(counts.n_wrong[:, :K], still.n_wrong[:, :K])


def test_folds_without_calibration_rows_count_nothing():
    rows, held_out, base = rows_and_folds()
    nothing = replace(held_out, calibrates=np.zeros(N, bool))
    counts = population(three_groups(), three_groups()).cross_fitted_counts(rows, base, nothing)
    assert not counts.n_rows.any()
    assert not counts.beats.any()
    assert not population().cross_fitted_counts(rows, base, HeldOut.none(N)).n_rows.any()


# ---- training, from checked rows to models ----


def tiny_fit(rows, held_out, base, **settings):
    quick = {"n_replicas": 1, "max_epochs": 2, "select": "last", "group_cuts": 0, "group_hidden": (3,)}
    seeds = {"start_seed": np.random.SeedSequence(0), "batch_seed": np.random.SeedSequence(1)}
    recipe = Recipe(**quick | {"noise": 0.5, "batch_size": 300, "average_steps": 1} | settings)
    return fit_population(recipe, K, rows, base, held_out, linear_base=None, **seeds)


def test_the_model_of_a_fold_learns_nothing_from_its_rows():
    """Other labels in fold 1 change the final model and that of fold 0, but not the model that leaves fold 1 out."""
    rows, held_out, base = rows_and_folds()
    changed = replace(rows, label=np.where(held_out.fold == 1, 1 - rows.label, rows.label))
    before, after = (tiny_fit(one, held_out, base) for one in (rows, changed))
    moved = [
        np.abs(one.logits(rows.X) - other.logits(rows.X)).max()
        for one, other in zip([*before.folds, before.model], [*after.folds, after.model], strict=True)
    ]
    assert moved[1] == 0
    assert min(moved[0], moved[2]) > 1e-4


def test_without_folds_there_are_no_models_of_folds():
    rows, _, base = rows_and_folds()
    fitted = tiny_fit(rows, HeldOut.none(N), base)
    assert fitted.folds == ()
    assert fitted.best_epoch == 2
    assert fitted.history.index.tolist() == [1, 2]
    assert fitted.population["chosen"].tolist() == [True]


def test_the_population_lists_every_start_with_its_settings():
    rows, held_out, base = rows_and_folds()
    fitted = tiny_fit(rows, held_out, base, n_replicas=3, anchor=(1, 8), penalty=0.7)
    assert fitted.population["anchor"].tolist() == [1, 8, 1]
    assert fitted.population["penalty"].tolist() == [0.7] * 3
    assert fitted.population["chosen"].sum() == 1
    assert (fitted.population["best_epoch"] <= 2).all()
    chosen = int(np.flatnonzero(fitted.population["chosen"])[0])
    last = fitted.history["selection_accuracy"].iloc[-1]
    if fitted.population["best_epoch"].iloc[chosen] == 2:
        assert fitted.population["selection_accuracy"].iloc[chosen] == last


def test_training_that_diverges_everywhere_is_explained():
    rows, held_out, base = rows_and_folds()
    with pytest.raises(InputError, match="Training diverged in every replica: bring the columns of X to ordinary"):
        tiny_fit(rows, held_out, np.full_like(base, np.nan))
