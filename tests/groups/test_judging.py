"""What calibration rows say about models that were trained without them; all by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dafh.groups.judging import compare_rows, matched_groups
from dafh.rows import LabelledRows


def rows_of(label, **changes):
    return LabelledRows(np.zeros((len(label), 1)), np.array(label), np.arange(2), np.ones(len(label)), **changes)


def compared(rows, judging, group, own, pooled_label, cutoff=0.5):
    """Compare rows with one logit of each own classifier."""
    own, base = np.array(own, float)[:, :, None], np.zeros((len(rows), 1))
    return compare_rows(rows, np.array(judging, np.intp), np.array(group), own, base, np.array(pooled_label), cutoff)


def test_groups_are_matched_one_to_one_by_the_rows_they_share():
    group = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    final = np.array([2, 2, 0, 0, 0, 1, 1, 0, 0])
    assert matched_groups(group, final, 3).tolist() == [2, 0, 1]


def test_all_groups_together_share_as_many_rows_as_possible():
    """Group 0 shares 3 rows with group 0 and 2 with group 1; all 4 rows of group 1 are in group 0: 2 + 4 > 3 + 0."""
    group, final = np.repeat([0, 0, 1], [3, 2, 4]), np.repeat([0, 1, 0], [3, 2, 4])
    assert matched_groups(group, final, 2).tolist() == [1, 0]


def test_each_classifier_is_right_where_its_label_is_that_of_the_row():
    rows = compared(rows_of([1, 1, 0]), [0, 1, 2], [0, 1, 1], [[0.1, -0.1], [-0.1, 0.1], [-1.0, 1.0]], [0, 1, 1])
    assert rows.right.tolist() == [[True, False, False], [False, True, True], [True, False, False]]
    assert rows.differ.tolist() == [[True, False], [True, False], [True, False]]
    assert rows.own_right.tolist() == [True, True, False]


def test_without_rows_nothing_is_said():
    assert len(compared(rows_of([0, 1]), [], [0, 0], [[1.0], [1.0]], [1, 1]).group) == 0


def test_attributes_of_a_row_go_with_it():
    attributes = {"declared": pd.DataFrame({"sex": list("abcd")}), "person": np.array([3, 2, 1, 0])}
    rows = replace(rows_of([0, 1, 1, 0], **attributes), weight=np.array([1.0, 2, 4, 8]))
    judged = compared(rows, [2, 0], [0] * 4, [[1.0]] * 4, [1] * 4)
    assert judged.weight.tolist() == [0.5, 0.125]  # The largest weight of all rows, not of these, is 1.
    assert judged.person.tolist() == [1, 3]
    assert judged.attributes["sex"].tolist() == ["c", "a"]
    assert judged.positive.tolist() == [True, False]
