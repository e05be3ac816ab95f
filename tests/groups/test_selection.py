"""The rule that selects replica and epoch, on curves written by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.groups.network import LABEL_LIKE, Selection


def curves(brier, pr=0.9, label_information=0.0, n_folds=0):
    """Curves with the replicas of one block after those of the other."""
    brier = np.asarray(brier, float)
    flat = {"brier": brier, "pr": pr, "label_information": label_information}
    return {
        f"selection_{name}": np.broadcast_to(values, brier.shape).reshape(len(brier), n_folds + 1, -1)
        for name, values in flat.items()
    }


def choose(brier, n_folds=0, *, last=False):
    return Selection(n_folds, last=last).choose(curves(brier, n_folds=n_folds))


# ---- the criterion ----


@pytest.mark.parametrize(("information", "penalty"), [(0.0, 0.0), (LABEL_LIKE, 0.0), (0.51, 0.02), (1.0, 0.02)])
def test_label_like_groups_cost_two_hundredths_of_brier_score(information, penalty):
    value = Selection(0).criterion(curves([[0.1]], label_information=information))
    np.testing.assert_allclose(value, [[0.1 + penalty]])


# ---- folds ----


TWO_FOLDS = [[0.1, 0.3, 0.5, 0.2, 0.0, 0.0]]  # Two folds and the models on all rows, of two starts each.


def test_a_start_is_judged_by_the_mean_of_its_folds():
    assert choose(TWO_FOLDS, n_folds=2) == (1, 0)
    judged = Selection(2).judged(curves(TWO_FOLDS, pr=[[0.8, 0.6, 0.4, 0.2, 1.0, 1.0]], n_folds=2))
    np.testing.assert_allclose(judged["selection_brier"], [[0.3, 0.25]])
    np.testing.assert_allclose(judged["selection_pr"], [[0.6, 0.4]])


def test_a_model_on_all_rows_that_does_worse_than_its_folds_is_judged_by_itself():
    criterion = Selection(1).criterion(curves([[0.1, 0.2, 0.4, 0.1]], n_folds=1))
    np.testing.assert_allclose(criterion, [[0.4, 0.2]])
    assert choose([[0.1, 0.2, 0.4, 0.1]], n_folds=1) == (1, 0)


# ---- replicas that diverged ----


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_diverged_replica_is_never_chosen(broken):
    assert choose([[broken, 0.5]]) == (1, 0)
    assert choose([[0.5, broken], [broken, 0.1]]) == (1, 1)
    assert choose([[0.5, 0.5], [broken, 0.6]], last=True) == (1, 1)
    np.testing.assert_array_equal(Selection(0).criterion(curves([[broken]])), [[np.inf]])


# ---- ties and the last epoch ----


def test_ties_go_to_the_earliest_epoch_and_then_to_the_first_replica():
    assert choose([[0.2, 0.2], [0.2, 0.2]]) == (0, 0)
    assert choose([[0.3, 0.2], [0.2, 0.2]]) == (1, 0)


# ---- patience ----


def test_patience_counts_epochs_without_improvement_of_the_best_replica():
    rule = Selection(0, patience=2)
    assert not rule.should_stop(curves([[0.3, 0.4], [0.2, 0.4], [0.5, 0.4]]))
    assert rule.should_stop(curves([[0.3, 0.4], [0.2, 0.4], [0.5, 0.4], [0.3, 0.3]]))
    assert not rule.should_stop(curves([[0.3, 0.4], [0.2, 0.4], [0.5, 0.4], [0.3, 0.1]]))


# ---- rows that choose and judge ----


def test_the_other_folds_choose_for_a_fold_that_judges():
    # Fold 0 would take epoch 2, fold 1 epoch 1, fold 2 epoch 0; all together epoch 1.
    brier = [[0.4, 0.3, 0.05, 0.2], [0.3, 0.1, 0.2, 0.1], [0.1, 0.25, 0.4, 0.1]]
    chosen = Selection(3, all_choose=True).choose_by_block(curves(brier, n_folds=3))
    assert [choice.epoch for choice in chosen] == [1, 0, 2, 1]


def test_rows_of_a_fold_and_the_block_that_has_seen_them_have_no_say_for_it():
    rule, rng = Selection(3, all_choose=True), np.random.default_rng(0)
    brier = rng.random((6, 8))  # Two replicas.
    previous = rule.choose_by_block(curves(brier, n_folds=3))
    brier[:, [2, 3, 6, 7]] = rng.random((6, 4))  # Fold 1, and all rows.
    assert rule.choose_by_block(curves(brier, n_folds=3))[1] == previous[1]


# ---- the checkpoints that are kept ----


@given(
    st.lists(st.lists(st.floats(0, 1) | st.just(np.nan), min_size=4, max_size=4), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_checkpoints_that_are_chosen_in_the_end_have_been_kept_all_the_time(brier, last, all_choose):
    rule, kept = Selection(3, last=last, all_choose=all_choose), set()
    for n in range(len(brier)):
        chosen = {choice.epoch for choice in rule.choose_by_block(curves(brier[: n + 1], n_folds=3))}
        kept = (kept | {n}) & chosen
    assert chosen == kept
