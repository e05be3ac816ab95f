"""Between estimator and engine: starts, blocks, which group of a fold's model is which, and what held-out rows say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dafh.exceptions import InputError
from dafh.groups.judging import Decisions
from dafh.groups.network import FittedPopulation, NetworkStart, fit_population
from dafh.groups.recipe import Recipe
from dafh.groups.trained import CorrectionModel
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut

N, K = 900, 3


def three_groups():
    """Groups by the largest of three columns; classifier k gives the sign of column k, shifted by k."""
    group = ((np.eye(3), np.zeros(3)),)
    classifiers = ((np.eye(3)[:, :, None], np.array([[-0.2], [0.0], [0.4]])),)
    return CorrectionModel(group, classifiers)


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
    return rows, HeldOut(fold, calibrates, 2), rng.normal(size=(3, N, 1))


def population(*folds):
    return FittedPopulation(three_groups(), folds, pd.DataFrame(), pd.DataFrame(), 1)


def wrong_in_groups(compared):
    """Rows on which each classifier is wrong, (K, K + 1)."""
    return np.array([(~compared.right[compared.group == k]).sum(axis=0) for k in range(K)])


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0]])
def test_folds_count_for_the_same_groups_however_they_are_numbered(order):
    rows, held_out, base = rows_and_folds()
    plain = population(three_groups(), three_groups()).cross_fitted_rows(rows, base, held_out, None, Decisions())
    mixed = population(three_groups(), renumbered(three_groups(), order))
    for name, values in vars(mixed.cross_fitted_rows(rows, base, held_out, None, Decisions())).items():
        np.testing.assert_array_equal(values, getattr(plain, name))
    wrong = wrong_in_groups(plain)
    assert not np.array_equal(wrong, wrong[order])  # The groups can be told apart by their errors.


@pytest.mark.parametrize("cutoff", [0.5, 0.3])
def test_the_calibration_rows_of_each_fold_are_judged_by_its_own_block(cutoff):
    """Own classifiers decide at their cut-off, and the pooled one at its own."""
    rows, held_out, base = rows_and_folds()
    decisions = Decisions(cutoff=cutoff, pooled_cutoff=0.6)
    compared = population(three_groups(), three_groups()).cross_fitted_rows(rows, base, held_out, None, decisions)
    used = np.concatenate([held_out.calibration(fold) for fold in range(2)])
    X, label, pooled = rows.X[used], rows.label[used], base[held_out.fold[used], used]
    labels = expit(X + np.array([-0.2, 0.0, 0.4]) + pooled) > cutoff  # Corrections are added to the pooled logit.
    np.testing.assert_array_equal(compared.group, X.argmax(axis=1))
    np.testing.assert_array_equal(compared.right, np.column_stack([labels, expit(pooled) > 0.6]) == label[:, None])
    np.testing.assert_array_equal(compared.positive, label == 1)
    np.testing.assert_array_equal(compared.differ, labels != (expit(pooled) > 0.6))


def by_answers(question):
    """A model whose group is the answer to one of two questions: 0 for no, 1 for yes."""
    weight = np.zeros((K + 2, K))
    weight[K + question] = [-1, 1, -1]
    classifiers = ((np.eye(3)[:, :, None], np.array([[-0.2], [0.0], [0.4]])),)
    return CorrectionModel(((weight, np.array([0.5, 0, -9])),), classifiers)


def test_every_fold_is_counted_by_the_answers_of_its_own_block():
    """The model of each fold has another question than the final one, and the answers of the blocks make up for it."""
    rows, held_out, base = rows_and_folds()
    yes = rows.X[:, :1] > 0
    asked = [np.hstack([yes, ~yes]), np.hstack([~yes, yes]), np.hstack([~yes, yes])]
    starts = [replace(start_at_a_tree(rows), answers=answers) for answers in asked]
    fitted = replace(population(by_answers(0), by_answers(1)), model=by_answers(1))
    compared = fitted.cross_fitted_rows(rows, base, held_out, starts, Decisions())
    used = np.concatenate([held_out.calibration(fold) for fold in range(2)])
    np.testing.assert_array_equal(compared.group, yes[used, 0])
    right = (rows.X[used] + [-0.2, 0.0, 0.4] + base[held_out.fold[used], used] > 0) == rows.label[used, None]
    np.testing.assert_array_equal(compared.right[:, :K], right)


def test_a_cold_model_is_compared_without_the_pooled_logit():
    rows, held_out, base = rows_and_folds()
    cold = replace(three_groups(), contains_pooled=False)
    alone = population(cold, cold).cross_fitted_rows(rows, base, held_out, None, Decisions())
    still = population(three_groups(), three_groups()).cross_fitted_rows(rows, 0 * base, held_out, None, Decisions())
    np.testing.assert_array_equal(alone.right[:, :K], still.right[:, :K])


# ---- training, from checked rows to models ----


def tiny_fit(rows, held_out, base, starts=None, **settings):
    quick = {"n_replicas": 1, "max_epochs": 2, "select": "last", "group_hidden": (5,), "anchor": 4.0}
    seeds = {"start_seed": np.random.SeedSequence(0), "batch_seed": np.random.SeedSequence(1)}
    recipe = Recipe(**quick | {"noise": 0.5, "batch_size": 300, "average_steps": 1} | settings)
    return fit_population(recipe, K, rows, base, held_out, starts=starts, **seeds)


QUESTIONS = np.array([[0, 0.3], [1, -0.2], [2, 0.0]])  # Is this column above this value?
LEAVES = (((0, True), (1, True)), ((0, True), (1, False)), ((0, False), (2, True)), ((0, False), (2, False)))
LEAF_GROUP = np.array([2, 0, 1, 2])


def start_at_a_tree(rows, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    answers = rows.X[:, QUESTIONS[:, 0].astype(int)] > QUESTIONS[:, 1] + shift
    return NetworkStart(answers, LEAVES, LEAF_GROUP, rng.normal(size=(K, K, 1)), rng.normal(size=(K, 1)))


def started(rows, **changes):
    """Another tree and other corrections for each block."""
    return [replace(start_at_a_tree(rows, seed, 0.2 * seed), **changes) for seed in range(3)]


def groups_of_tree(answers):
    """Groups by following the questions."""
    leaf = np.where(answers[:, 0], np.where(answers[:, 1], 0, 1), np.where(answers[:, 2], 2, 3))
    return LEAF_GROUP[leaf]


STILL = {"group_learning_rate": 0.0, "classifier_learning_rate": 0.0}


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_before_its_first_step_every_block_is_its_tree_with_the_exact_corrections(scale):
    rows, held_out, base = rows_and_folds()
    rows = replace(rows, X=rows.X * [1, scale, 0.01] + [0, 5, -3])
    starts = started(rows)
    fitted = tiny_fit(rows, held_out, base, starts, **STILL)
    for model, start in zip([*fitted.folds, fitted.model], starts, strict=True):
        group, own = model.route(rows.X, start.answers)
        np.testing.assert_array_equal(group, groups_of_tree(start.answers))
        every = np.einsum("nd,kdm->nkm", rows.X, start.weight) + start.bias
        np.testing.assert_allclose(model.logits(rows.X), every, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(own, every[np.arange(N), group], rtol=1e-4, atol=1e-3)


def test_a_cold_start_knows_nothing_of_the_rules():
    rows, held_out, base = rows_and_folds()
    given, none = (tiny_fit(rows, held_out, base, starts, start="cold") for starts in (started(rows), None))
    np.testing.assert_array_equal(given.model.group_logits(rows.X), none.model.group_logits(rows.X))
    np.testing.assert_array_equal(given.model.logits(rows.X), none.model.logits(rows.X))


# ---- no row judges what it has taught ----


def moved(before, after, rows, starts):
    """How far each model, those of the folds first, is from the other fit's, in any output for any answers."""
    return [
        max(
            np.abs(one.logits(rows.X) - other.logits(rows.X)).max(),
            np.abs(one.group_logits(rows.X, start.answers) - other.group_logits(rows.X, start.answers)).max(),
        )
        for one, other, start in zip([*before.folds, before.model], [*after.folds, after.model], starts, strict=True)
    ]


def test_the_model_of_a_fold_learns_nothing_from_its_rows():
    """Other labels in fold 1 change the final model and that of fold 0, but not the model that leaves fold 1 out."""
    rows, held_out, base = rows_and_folds()
    starts = started(rows)
    changed = replace(rows, label=np.where(held_out.fold == 1, 1 - rows.label, rows.label))
    before, after = (tiny_fit(one, held_out, base, starts) for one in (rows, changed))
    distance = moved(before, after, rows, starts)
    assert distance[1] == 0
    assert min(distance[0], distance[2]) > 1e-4


@pytest.mark.parametrize("block", [0, 1, 2])
@pytest.mark.parametrize("part", ["base", "answers", "corrections"])
def test_a_model_depends_on_nothing_that_belongs_to_another_block(block, part):
    rows, held_out, base = rows_and_folds()
    starts, others, other_base = started(rows), started(rows), base.copy()
    if part == "base":
        other_base[block] = 3 * base[block] + 1  # Their spread, too: the noise of the starts is relative to it.
    elif part == "answers":
        others[block] = replace(starts[block], answers=~starts[block].answers)
    else:
        others[block] = replace(starts[block], weight=-starts[block].weight)
    settings = {"n_replicas": 2}  # The second has noise. The last epoch is taken, and the choice is the same.
    before, after = (
        tiny_fit(rows, held_out, base, starts, **settings),
        tiny_fit(rows, held_out, other_base, others, **settings),
    )
    assert before.population["chosen"].tolist() == after.population["chosen"].tolist()
    distance = moved(before, after, rows, starts)
    assert distance[block] > 1e-4
    assert [distance[other] for other in range(3) if other != block] == [0, 0]


# ---- bookkeeping ----


def test_training_that_diverges_everywhere_is_explained():
    rows, held_out, base = rows_and_folds()
    with pytest.raises(InputError, match="diverged"):
        tiny_fit(rows, held_out, np.full_like(base, np.nan))
