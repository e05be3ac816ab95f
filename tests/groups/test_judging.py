"""What calibration rows say about the models of folds, in the group numbers of the final model; all by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh.groups.judging import Decisions, FoldVerdict, cross_fitted_rows, matched_groups
from dafh.rows import LabelledRows


def rows_of(label, n_classes=2, **changes):
    nothing = np.zeros((len(label), 1))
    return LabelledRows(nothing, np.array(label), np.arange(n_classes), np.ones(len(label)), **changes)


def verdict(rows, group, own, pooled, place):
    """A fold whose rows have one logit of each own classifier, and one of the pooled classifier."""
    return FoldVerdict(
        np.array(rows, np.intp), np.array(group), np.array(own)[:, :, None], np.array(pooled)[:, None], np.array(place)
    )


# ---- which group is which ----


def test_groups_are_matched_one_to_one_by_the_rows_they_share():
    one = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    other = np.array([2, 2, 0, 0, 0, 1, 1, 0, 0])
    assert matched_groups(one, other, 3).tolist() == [2, 0, 1]


def test_all_groups_together_share_as_many_rows_as_possible():
    """Group 0 shares 3 rows with group 0 and 2 with group 1; all 4 rows of group 1 are in group 0: 2 + 4 > 3 + 0."""
    one, other = np.repeat([0, 0, 1], [3, 2, 4]), np.repeat([0, 1, 0], [3, 2, 4])
    assert matched_groups(one, other, 2).tolist() == [1, 0]


@pytest.mark.parametrize("place", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
def test_groups_and_classifiers_of_a_fold_get_the_numbers_of_the_final_model(place):
    """One row of each group, on which only the classifier of its group is right."""
    only_own = np.where(np.eye(3), 5.0, -5.0)
    fold = verdict([0, 1, 2], [0, 1, 2], only_own, [-1.0, -1, -1], place)
    compared = cross_fitted_rows([fold], 3, rows_of([1, 1, 1]), Decisions())
    assert compared.group.tolist() == place
    assert compared.own.tolist() == [0, 1, 2]
    assert compared.right[:, :3].tolist() == np.eye(3, dtype=bool)[place].tolist()
    assert compared.differ.tolist() == compared.right[:, :3].tolist()  # The pooled classifier is always wrong.
    assert compared.own_right.all()


# ---- rows of all folds ----


def test_a_fold_without_rows_says_nothing():
    fold = verdict([1], [0], [[1.0]], [1.0], [0])
    empty = verdict([], np.zeros(0, np.intp), np.zeros((0, 1)), np.zeros(0), [0])
    rows = rows_of([0, 1])
    both, alone = (cross_fitted_rows(folds, 1, rows, Decisions()) for folds in ([empty, fold], [fold]))
    assert both.right.tolist() == alone.right.tolist()
    assert len(cross_fitted_rows([empty], 1, rows, Decisions()).group) == 0


def test_what_is_known_about_a_row_goes_with_it():
    known = {"declared": pd.DataFrame({"sex": list("abcd")}), "person": np.array([3, 2, 1, 0])}
    rows = replace(rows_of([0, 1, 1, 0], **known), weight=np.array([1.0, 2, 4, 8]))
    compared = cross_fitted_rows([verdict([2, 0], [0, 0], [[1.0]] * 2, [1.0, 1], [0])], 1, rows, Decisions())
    assert compared.weight.tolist() == [0.5, 0.125]  # The largest weight of all rows, not of these, is 1.
    assert compared.person.tolist() == [1, 3]
    assert compared.attributes["sex"].tolist() == ["c", "a"]
    assert compared.positive.tolist() == [True, False]


# ---- how logits become labels ----


def test_both_classifiers_decide_at_one_half_unless_told_otherwise():
    fold = verdict([0, 1], [0, 0], [[0.1], [-0.1]], [-0.1, 0.1], [0])
    assert cross_fitted_rows([fold], 1, rows_of([1, 1]), Decisions()).right.tolist() == [[True, False], [False, True]]


def test_a_pooled_classifier_that_serves_in_all_folds_is_judged_by_what_it_predicts():
    fold = verdict([1, 0], [0, 0], [[-1.0], [-1.0]], [3.0, 3.0], [0])
    by_label = cross_fitted_rows([fold], 1, rows_of([1, 1]), Decisions(cutoff=0.2, pooled_label=np.array([0, 1])))
    assert by_label.right.tolist() == [[True, True], [True, False]]
    by_cutoff = cross_fitted_rows([fold], 1, rows_of([1, 1]), Decisions(pooled_cutoff=0.99))
    assert by_cutoff.right.tolist() == [[False, False], [False, False]]
