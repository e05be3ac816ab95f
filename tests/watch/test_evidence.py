"""The books of a monitor: every question counts its rows, and nothing is lost between two sessions."""

import json

import numpy as np
import pandas as pd
import pytest

from dafh import Monitor
from dafh.evaluation.losses import check_losses
from dafh.stats import Bettors, Detectors
from dafh.watch.declared import NOT_DECLARED
from dafh.watch.evidence import FIRST_ALARMS, Evidence, JudgedRows, capital_of_term
from watched import bad_rows, fresh_model, good_rows, same_evidence

PARTS = ["", "sex = f", "sex = m", "age = old"]


def random_rows(seed, n=300):
    rng = np.random.default_rng(seed)
    parts = np.column_stack([rng.integers(1, 3, n), rng.choice([3, NOT_DECLARED], n)]).astype(np.int16)
    wrong = rng.random((2, n)) < 0.3
    weight = rng.choice([0.0, 0.3, 1.0], n)
    return JudgedRows(rng.integers(2, size=n), wrong[0], wrong[1], rng.random(n) < 0.4, parts, weight)


def books(weighted=True):
    losses = check_losses(("error", "fpr", "fnr", "cost"), {"fp": 1, "fn": 4})
    return Evidence(2, PARTS, losses, 0.05, 1e4, weighted, np.array([True, False]))


def rows_of(rows, group, part, loss):
    """Which rows count for a question, and own minus pooled loss of each, one by one."""
    for i in range(len(rows)):
        in_part = part == 0 or part in rows.parts[i]
        counted = {"fpr": not rows.positive[i], "fnr": rows.positive[i]}.get(loss.name, True)
        if rows.group[i] == group and in_part and counted and rows.weight[i] > 0:
            stake = {"cost": 1.0 if rows.positive[i] else 0.25}.get(loss.name, 1.0)
            yield rows.weight[i], stake * (float(rows.own_wrong[i]) - float(rows.pooled_wrong[i]))


def test_every_question_counts_its_own_rows_and_bets_on_them():
    evidence, rows = books(), random_rows(0)
    evidence.add(rows)
    table = evidence.table()
    for q in range(evidence.n_questions):
        loss = evidence.losses[evidence.loss[q]]
        counted = list(rows_of(rows, evidence.group[q], evidence.part[q], loss))
        weight, x = np.array(counted).T
        assert table["rows"][q] == len(counted)
        assert table["own_worse"][q] == (x > 0).sum()
        assert table["gain"][q] == pytest.approx(-loss.worst * (weight @ x) / weight.sum())
        bettors = Bettors.start(1, FIRST_ALARMS)
        bettors.bet(0, (weight * x)[x != 0])
        assert evidence.harm.capital[q] == pytest.approx(bettors.capital[0])
        detectors, bets = Detectors.start(1), np.flatnonzero(x)
        detectors.watch(0, (weight * x)[bets], np.diff(bets, prepend=-1).astype(float))
        detectors.wait(0, len(x) - 1 - bets[-1])
        assert evidence.change.evidence[q] == pytest.approx(detectors.evidence[0])


def test_terms_share_the_level():
    assert sum(capital_of_term(term) for term in range(60)) == pytest.approx(1.0)
    assert sum(capital_of_term(term, first=0.8) for term in range(60)) == pytest.approx(1.0)


def test_warnings_need_more_where_a_row_counts_for_more_questions():
    one = Evidence(2, [""], check_losses("error"), 0.05, 1000.0, False, np.ones(2, bool))
    assert one.run_length_needed == 1000.0
    # Three parts (all rows, sex, age) and three of the four losses on each row.
    assert books().run_length_needed == 9 * 1e4


# ---- nothing is lost ----


def through_a_file(monitor):
    """The monitor as another session finds it."""
    values, arrays = monitor.to_state()
    copies = {name: array.copy() for name, array in arrays.items()}
    return Monitor.from_state(monitor.model, json.loads(json.dumps(values)), copies, monitor.notices, monitor.service)


def test_a_monitor_goes_on_where_another_session_ended():
    rows, model = good_rows(), fresh_model()
    about = rows.sensitive.assign(age=np.arange(1500) % 60)
    settings = {"losses": ("error", "cost"), "costs": {"fp": 1, "fn": 3}, "largest_weight": 2.0, "level": 0.1}
    straight, broken = (Monitor(model, **settings) for _ in range(2))
    for first in range(0, 1500, 500):
        part = slice(first, first + 500)
        y = pd.Series(rows.y[part]).where(np.arange(500) % 5 > 0, None)
        given = {"sensitive_features": about[part], "sample_weight": np.tile([1.0, 2.0], 250)}
        known = {"ids": np.arange(first, first + 500), "persons": np.arange(first, first + 500) // 2}
        for monitor in (straight, broken):
            monitor.update(rows.X[part], y, **given, **known)
        broken = through_a_file(broken)
        labels = np.arange(first, first + 500, 5)
        assert broken.label(labels, rows.y[labels]) == straight.label(labels, rows.y[labels])
    same_evidence(straight, broken)
    pd.testing.assert_frame_equal(straight.table(), broken.table())
    pd.testing.assert_frame_equal(straight.drift(), broken.drift())
    assert broken.notices == straight.notices
    assert broken.n_waiting == straight.n_waiting == 0


def test_so_it_does_after_a_change_of_service():
    straight, broken = (Monitor(fresh_model()) for _ in range(2))
    for rows in (bad_rows(), good_rows(), good_rows(1500, seed=12)):
        for monitor in (straight, broken):
            monitor.update(rows.X, rows.y)
            monitor.apply()
        broken = through_a_file(broken)
    assert broken.service == straight.service != []
    pd.testing.assert_frame_equal(straight.table(), broken.table())


def test_questions_that_leave_service_undecided_make_it_no_easier_for_others():
    """Two groups, two sexes: one question is alarmed, its group leaves, and three of four are still undecided."""
    losses = check_losses(("error",), None)
    evidence = Evidence(2, ["", "sex = f"], losses, 0.05, 1e9, False, np.array([True, True]))
    before = evidence.needed()
    evidence.alarmed[0] = 1
    evidence.begin_term(np.array([0]), np.array([False, True]))
    # The alarmed question is decided, and counts no more; the other one of its group counts as if it had lost all.
    assert evidence.retired.tolist() == [False, True, False, False]
    assert np.isnan(evidence.needed()[:2]).all()
    np.testing.assert_allclose(evidence.needed()[2:], 20 + 20 + (20 - FIRST_ALARMS))
    np.testing.assert_allclose(before, 20 + 3 * (20 - FIRST_ALARMS))
    # In its second term in service, a group needs the most that any could, and shares with nobody.
    evidence.begin_term(np.array([0]), np.array([True, True]))
    np.testing.assert_allclose(evidence.needed(), [80, 80, 60 - FIRST_ALARMS, 60 - FIRST_ALARMS])
