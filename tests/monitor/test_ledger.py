"""Rows that wait for labels, come twice, belong to one person or stand in any order: each counts once."""

import numpy as np
import pandas as pd
import pytest

from dafh import Monitor
from dafh.exceptions import InputError
from watched import bad_rows, good_rows, same_evidence


def test_rows_without_labels_wait_and_then_count_as_if_labelled_at_once(model):
    rows = good_rows()
    late, at_once = Monitor(model), Monitor(model)
    update = late.update(rows.X, ids=np.arange(1500))
    assert (update.n_labelled, update.n_waiting) == (0, 1500)
    update = late.label(np.arange(1500), rows.y)
    assert (update.n_labelled, update.n_late, update.n_waiting) == (1500, 1500, 0)
    at_once.update(rows.X, rows.y, ids=np.arange(1500))
    same_evidence(late, at_once)


def test_labels_before_any_rows_are_refused(model):
    with pytest.raises(InputError, match="call update first"):
        Monitor(model).label([1], ["yes"])


def test_late_labels_are_told_by_the_values_of_the_rows(model):
    rows = good_rows()
    y = pd.Series(rows.y).where(np.arange(1500) % 2 == 0, None)
    late, at_once = Monitor(model), Monitor(model)
    first = late.update(rows.X, y)
    assert (first.n_labelled, first.n_waiting, first.n_held) == (0, 750, 750)
    again = late.update(rows.X[1::2], rows.y[1::2])
    assert (again.n_labelled, again.n_late, again.n_waiting) == (1500, 750, 0)
    at_once.update(rows.X, rows.y)
    same_evidence(late, at_once)


def test_a_batch_counts_when_nearly_all_labels_are_known_and_then_once(model):
    rows = good_rows(200)
    monitor, each = Monitor(model), Monitor(model, min_labelled=0)
    for one in (monitor, each):
        one.update(rows.X, pd.Series(rows.y).where(np.arange(200) < 100, None), ids=np.arange(200))
    assert (monitor.n_rows, each.n_rows) == (0, 100)
    for one in (monitor, each):
        one.label(np.arange(100, 192), rows.y[100:192])
    assert (monitor.n_rows, each.n_rows) == (200, 192)
    # Those that were missing have counted, as if they spoke against what is to be shown.
    assert monitor.table()["rows"].sum() == 192
    assert monitor.label(np.arange(192, 200), rows.y[192:]).n_repeated == 8
    assert each.label(np.arange(192, 200), rows.y[192:]).n_late == 8


def test_rows_with_a_known_id_are_left_out(model):
    rows = good_rows()
    monitor = Monitor(model)
    monitor.update(rows.X[:1000], rows.y[:1000], ids=np.arange(1000))
    update = monitor.update(rows.X[500:], rows.y[500:], ids=np.arange(500, 1500))
    assert (update.n_repeated, update.n_labelled, monitor.n_rows) == (500, 500, 1500)
    assert monitor.update(rows.X, ids=np.arange(1500)).n_repeated == 1500


def test_files_that_overlap_without_ids_count_each_row_once(model):
    rows, monitor = good_rows(), Monitor(model)
    sizes = [monitor.update(rows.X[first : first + 500], rows.y[first : first + 500]) for first in range(0, 1001, 250)]
    assert [update.n_repeated for update in sizes] == [0, 250, 250, 250, 250]
    assert monitor.n_rows == 1500


def test_rows_of_few_different_values_are_not_taken_for_earlier_ones(model):
    X = good_rows().X.assign(experience=5.0, hours=38.0, since=good_rows().X["since"].iloc[0])
    monitor = Monitor(model)
    for first in (0, 500, 1000):
        assert monitor.update(X[first : first + 500], good_rows().y[first : first + 500]).n_repeated == 0
    assert monitor.n_rows == 1500


def test_of_a_person_with_several_rows_one_counts(model):
    rows = good_rows()
    monitor, by_label, order = Monitor(model), Monitor(model), np.argsort(good_rows().y[:900], kind="stable")
    update = monitor.update(rows.X[:900], rows.y[:900], persons=np.arange(900) // 3)
    assert (update.n_labelled, update.n_left_out, monitor.n_rows) == (900, 600, 300)
    by_label.update(rows.X[:900].iloc[order], rows.y[:900][order], persons=order // 3)
    same_evidence(monitor, by_label)  # Which one does not depend on where it stands in the file.
    update = monitor.update(rows.X[900:], rows.y[900:], persons=np.arange(600))
    assert (update.n_left_out, monitor.n_rows) == (300, 600)
    with pytest.raises(InputError, match="persons"):
        monitor.update(rows.X, rows.y)


def test_the_order_of_rows_in_a_file_does_not_matter(model):
    rows = bad_rows(400)
    as_given, by_label = (Monitor(model, losses=("error", "fpr", "fnr")) for _ in range(2))
    order = np.argsort(rows.y, kind="stable")
    as_given.update(rows.X, rows.y)
    by_label.update(rows.X.iloc[order], rows.y[order])
    same_evidence(as_given, by_label)
    assert by_label.notices == as_given.notices
