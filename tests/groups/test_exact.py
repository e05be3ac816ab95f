"""Rules chosen by held-out rows: which candidates there are, what they lose, and which one is taken."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh.groups.exact import Candidate, RuleRows, choose_candidate, fit_rules
from dafh.linear.designs import DenseDesign
from dafh.linear.newton import row_losses
from dafh.tables.bins import Binning

N = 1200


def problem(effect=2.0, n_classes=2, seed=0, n_folds=3):
    """The effect of z turns round with x; the pooled logits know nothing of it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.integers(0, 10, N), "z": rng.normal(size=N).round(1)})
    score = effect * table.z * np.where(table.x < 5, 1, -1) + rng.logistic(size=N)
    label = (score > 0).to_numpy(np.intp) + (n_classes > 2) * (score > 1.5).to_numpy(np.intp)
    binning = Binning.learn(table)
    base = np.zeros((n_folds + 1, N, 1 if n_classes == 2 else n_classes))
    design = DenseDesign(table[["z"]].to_numpy())
    fold = rng.integers(0, max(n_folds, 1), N)
    selects = (rng.random(N) < 0.5) & (n_folds > 0)
    return RuleRows(binning, binning.codes(table), label, np.ones(N), base, lambda block: design, fold, selects)


# ---- what is found ----


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_groups", [2, None])
def test_an_effect_that_turns_round_is_found(n_classes, n_groups):
    rows = problem(n_classes=n_classes)
    found = fit_rules(rows, n_groups)
    group, side = found.groups.tree.assign(rows.codes), rows.codes[:, 0] < 5
    assert found.groups.tree.n_groups == 2
    assert max((group == side).mean(), (group != side).mean()) > 0.97
    assert found.candidates["log_loss"].min() < 0.9 * row_losses(rows.base[0], rows.label).mean()


def test_nothing_is_found_where_there_is_nothing():
    found = fit_rules(problem(effect=0.0), None)
    assert found.chosen is None
    assert (found.groups.tree.n_groups, found.groups.tree.questions) == (1, ())
    np.testing.assert_array_equal(found.groups.corrections, 0)


def test_as_many_groups_as_asked_for_are_made_also_where_they_gain_nothing():
    rows = problem(effect=0.0)
    found = fit_rules(rows, 3)
    for made in (found.groups, *found.folds):
        assert len(np.unique(made.tree.assign(rows.codes))) == len(made.corrections) == 3


def test_one_group_is_the_pooled_classifier_for_all_rows():
    found = fit_rules(problem(), 1)
    assert (found.groups.tree.rule(0), len(found.candidates)) == ("all rows", 0)
    np.testing.assert_array_equal(found.groups.corrections, 0)


def test_without_folds_the_number_asked_for_is_made_and_none_is_chosen():
    assert fit_rules(problem(n_folds=0), None).chosen is None
    found = fit_rules(problem(n_folds=0), 2)
    assert (found.groups.tree.n_groups, found.folds) == (2, ())


def test_no_fold_has_more_groups_than_all_rows_make():
    """A category is too small for a leaf of all rows, and large enough for one without a fold."""
    rng = np.random.default_rng(0)
    job, fold = np.where(np.arange(10_000) < 49, "few", "many"), np.arange(10_000) % 5
    fold[:49] = np.arange(49) % 4
    table = pd.DataFrame({"job": job})
    label = np.where(job == "few", 1, rng.integers(0, 2, 10_000))
    binning = Binning.learn(table)
    design = DenseDesign(np.zeros((10_000, 1)))
    base, weight = np.zeros((6, 10_000, 1)), np.ones(10_000)
    rows = RuleRows(binning, binning.codes(table), label, weight, base, lambda _: design, fold, fold >= 0)
    found = fit_rules(rows, 2)
    assert [made.tree.n_groups for made in (found.groups, *found.folds)] == [1] * 6


def test_rows_of_weight_0_judge_nothing():
    rows = problem()
    ignored = np.arange(N) % 7 == 0
    weight = np.where(ignored, 0.0, 1.0)
    turned = np.where(ignored, 1 - rows.label, rows.label)
    one, two = (fit_rules(replace(rows, weight=weight, label=label), 2).candidates for label in (rows.label, turned))
    pd.testing.assert_frame_equal(one, two)


# ---- choosing ----


def losses_of(**means):
    """Losses by row of candidates around given means, with the same noise in all."""
    noise = np.linspace(-1, 1, 101)
    kinds = {
        "two": Candidate("mean", 2, 2, 50.0, 0.1),
        "score": Candidate("score", 2, 2, 50.0, 0.1),
        "four": Candidate("mean", 4, 4, 50.0, 0.1),
        "leaves": Candidate("mean", 4, 2, 1000.0, 0.3),
        "strong": Candidate("mean", 2, 2, 250.0, 0.1),
        "held": Candidate("mean", 2, 2, 50.0, 0.3),
    }
    return {kinds[name]: noise + mean + 0.1 * wiggle * noise[::-1] for name, (mean, wiggle) in means.items()}


def chosen(pooled=1.0, *, may_be_none=True, **means):
    found = choose_candidate(
        losses_of(**means), np.linspace(-1, 1, 101) + pooled, np.ones(101), may_be_none=may_be_none
    )
    return None if found is None else (found.criterion, found.n_groups)


def penalties(**means):
    found = choose_candidate(losses_of(**means), np.ones(101), np.ones(101), may_be_none=False)
    return found.n_leaves, found.strength, found.elsewhere


def test_the_lowest_loss_is_chosen():
    assert chosen(two=(0.5, 0), four=(0.2, 0), score=(0.4, 0)) == ("mean", 4)


def test_fewer_groups_are_chosen_within_one_standard_error_where_the_number_is_open():
    assert chosen(two=(0.202, 1), four=(0.2, 0)) == ("mean", 2)
    assert chosen(two=(0.3, 1), four=(0.2, 0)) == ("mean", 4)


def test_the_pooled_classifier_is_chosen_within_one_standard_error():
    assert chosen(pooled=0.2, two=(0.199, 1)) is None
    assert chosen(pooled=0.2, two=(0.199, 1), may_be_none=False) == ("mean", 2)


def test_a_tree_on_the_mean_is_chosen_within_one_standard_error():
    assert chosen(score=(0.2, 0), two=(0.202, 1)) == ("mean", 2)
    assert chosen(score=(0.2, 0), two=(0.3, 1)) == ("score", 2)


def test_fewer_leaves_are_chosen_within_one_standard_error():
    assert penalties(leaves=(0.2, 0), two=(0.202, 1)) == (2, 50.0, 0.1)
    assert penalties(leaves=(0.2, 0), two=(0.3, 1)) == (4, 1000.0, 0.3)


def test_stronger_penalties_are_chosen_within_three_standard_errors():
    error = 0.1 * np.sqrt(np.mean(np.linspace(-1, 1, 101) ** 2) / 101)
    within, beyond = 0.2 + 2.9 * error, 0.2 + 3.1 * error
    assert penalties(two=(0.2, 0), held=(within, 1)) == (2, 50.0, 0.3)
    assert penalties(two=(0.2, 0), held=(within, 1), strong=(within, 1)) == (2, 250.0, 0.1)
    assert penalties(two=(0.2, 0), held=(beyond, 1), strong=(beyond, 1)) == (2, 50.0, 0.1)


def test_penalties_are_compared_on_the_tree_that_was_chosen():
    """The lowest loss is that of another tree, from which the stronger penalty is far away."""
    assert penalties(score=(0.2, 0), two=(0.202, 1), strong=(0.21, 1)) == (2, 50.0, 0.1)
    assert penalties(score=(0.2, 0), two=(0.202, 1), strong=(0.202, 1)) == (2, 250.0, 0.1)
