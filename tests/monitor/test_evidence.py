"""The books of a monitor: every question counts its rows, and nothing is lost between two sessions."""

import numpy as np
import pytest

from dafh.evaluation.losses import check_losses
from dafh.monitor.evidence import FIRST_ALARMS, Evidence, JudgedRows, capital_of_term
from dafh.monitor.settings import NOT_DECLARED
from dafh.stats import Bettors

PARTS = ["", "sex = f", "sex = m", "age = old"]


def random_rows(seed, n=300):
    rng = np.random.default_rng(seed)
    parts = np.column_stack([rng.integers(1, 3, n), rng.choice([3, NOT_DECLARED], n)]).astype(np.int16)
    wrong = rng.random((2, n)) < 0.3
    weight = rng.choice([0.0, 0.3, 1.0], n)
    return JudgedRows(rng.integers(2, size=n), wrong[0], wrong[1], rng.random(n) < 0.4, parts, weight)


def books(weighted=True):
    losses = check_losses(("error", "fpr", "fnr", "cost"), {"fp": 1, "fn": 4})
    return Evidence(2, PARTS, losses, 0.05, weighted, np.array([True, False]))


def rows_of(rows, group, part, loss):
    """Which rows count for a question, and own minus pooled loss of each, one by one."""
    for i in range(len(rows)):
        in_part = part == 0 or part in rows.subgroups[i]
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
        counted = list(rows_of(rows, evidence.group[q], evidence.subgroup[q], loss))
        weight, x = np.array(counted).T
        assert table["rows"][q] == len(counted)
        assert table["own_worse"][q] == (x > 0).sum()
        assert table["gain"][q] == pytest.approx(-loss.worst * (weight @ x) / weight.sum())
        bettors = Bettors.start(1, FIRST_ALARMS)
        bettors.bet(0, (weight * x)[x != 0])
        assert evidence.harm.capital[q] == pytest.approx(bettors.capital[0])


def test_terms_share_the_level():
    assert sum(capital_of_term(term) for term in range(60)) == pytest.approx(1.0)
    assert sum(capital_of_term(term, first=0.8) for term in range(60)) == pytest.approx(1.0)


# ---- batches, and what is shown ----


@pytest.mark.parametrize("size", [1, 13, 70])
def test_evidence_does_not_depend_on_how_rows_are_divided(size):
    whole, parts, rows = books(), books(), random_rows(3)
    found = whole.add(rows)
    alarms = []
    for first in range(0, len(rows), size):
        alarms += of_kind("harm", parts.add(rows_from(rows, slice(first, first + size))))
    assert [about(alarm) for alarm in alarms] == [about(alarm) for alarm in of_kind("harm", found)]
    columns = ["rows", "own_worse", "own_better", "gain", "harm_evidence", "benefit_evidence"]
    np.testing.assert_allclose(parts.table()[columns], whole.table()[columns], rtol=1e-9)


def of_kind(kind, notices):
    return [notice for notice in notices if notice.kind == kind]


def about(alarm):
    """What does not depend on the rows of its batch that came later."""
    return alarm.group, alarm.part, alarm.loss, alarm.row


def rows_from(rows, part):
    """Some of the rows."""
    return JudgedRows(**{name: values[part] for name, values in vars(rows).items()})


def streak(lost, won):
    """Rows of group 0 that its classifier loses, and then rows that it wins."""
    own_wrong = np.repeat([True, False], [lost, won])
    n, parts = lost + won, np.zeros((lost + won, 0), np.int16)
    return JudgedRows(np.zeros(n, np.intp), own_wrong, ~own_wrong, None, parts, np.ones(n))


def error_books(**settings):
    return Evidence(1, [""], check_losses("error"), 0.05, False, np.array([True]), **settings)


def test_an_alarm_needs_the_number_of_questions_over_the_level():
    assert (books().needed()[:16] == 32 / 0.05).all()
    assert np.isnan(books().needed()[16:]).all()  # The pooled classifier serves group 1.


def test_a_proof_lapses_when_the_gain_has_ended():
    evidence = error_books()
    assert of_kind("benefit", evidence.add(streak(0, 200)))
    assert evidence.better_now().all()
    assert not of_kind("benefit", evidence.add(streak(0, 200)))  # It is told once.
    evidence.add(streak(60, 0))
    assert not evidence.better_now().any()
    evidence.add(streak(0, 200))
    assert evidence.better_now().all()


def test_missing_labels_speak_against_what_is_to_be_shown():
    """40 rows lost and 10 not known: harm is shown as if these were won, and benefit as if they were lost."""
    unsure, best, worst = error_books(), error_books(), error_books()
    unsure.add(streak(40, 0), streak(40, 10), streak(50, 0))
    best.add(streak(40, 10))
    worst.add(streak(50, 0))
    assert unsure.harm.capital == pytest.approx(best.harm.capital)
    assert unsure.benefit.capital == pytest.approx(worst.benefit.capital)
    assert unsure.table()["rows"][0] == 40


def test_a_batch_may_count_once():
    evidence = error_books(by_batch=True)
    for _ in range(3):
        evidence.add(streak(60, 40))
    expected = Bettors.start(1, FIRST_ALARMS)
    expected.bet(0, np.ones(3))
    assert evidence.harm.capital == pytest.approx(expected.capital)
    assert (evidence.limits == [-1, 1]).all()


def test_shocks_that_a_batch_shares_are_noticed_once():
    evidence, steady = error_books(), error_books()
    noticed = []
    for number in range(12):
        evidence.add(streak(80, 20) if number % 2 else streak(20, 80))
        noticed.append(evidence.shows_shocks())
        steady.add(streak(48 + number % 3, 52 - number % 3))
        assert not steady.shows_shocks()
    assert sum(noticed) == 1
