"""What the monitor promises, in worlds in which the truth is known: small here, in full size under `slow`."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dafh.study.watching.alarms import (
    EQUAL,
    HEAVY_LOSES,
    KINDS,
    alarm_shares,
    batch_table,
    empty_books,
    level_table,
    simulated_rows,
)
from dafh.study.watching.delays import (
    change_delays,
    delay_table,
    fixed_sample_rows,
    rows_until_alarm,
    run_length_table,
)
from dafh.study.watching.limits import coverage_table, drift_table, missed_share
from dafh.study.watching.service import SCENARIOS, by_monitor, by_recalibration, outcomes, service_table
from dafh.study.watching.tables import TABLES, as_markdown, write_page
from dafh.watch.evidence import Evidence


def most(level, n_worlds):
    """Largest share that a probability of `level` gives in so many worlds, but for one in a thousand."""
    return level + 3.1 * np.sqrt(level * (1 - level) / n_worlds)


# ---- small ----


@pytest.mark.parametrize(("kind", "n_groups", "n_losses"), [(EQUAL, 1, 1), (EQUAL, 4, 3), (HEAVY_LOSES, 4, 1)])
def test_without_harm_alarms_are_rare(kind, n_groups, n_losses):
    share = alarm_shares(kind, n_groups, n_losses, (600,), n_worlds=400, seed=0)[0]
    assert share <= most(0.05, 400)


def test_with_harm_alarms_are_certain():
    harm = KINDS["equal"]._replace(chance=(0.75, 0.25))
    assert alarm_shares(harm, 1, 1, (300,), n_worlds=100, seed=0) == [1.0]


def test_an_alarm_comes_as_soon_as_with_the_prototype():
    assert np.median(rows_until_alarm(0.05, 1, 2000, seed=1, most=400)) < 1.08 * 203
    found = rows_until_alarm(0.02, 1, 2000, seed=1, most=2500)
    assert np.median(found) < 1.08 * 1619
    assert np.isfinite(found).mean() > 0.99


def test_a_single_look_with_known_size_needs_fewer_rows():
    assert fixed_sample_rows(0.05, 0.5) == 139
    assert fixed_sample_rows(0.05, 0.9) == 355


def test_harm_after_good_rows_is_found_by_alarms_and_sooner_by_warnings():
    found = change_delays(gain=0.0, harm=0.05, run_length=1e5, n_worlds=60, seed=0, most=5000)
    assert found["warning, median"] < found["alarm, median"] < 1500
    assert found["alarm before, %"] <= 15


def test_limits_hold_at_all_times_for_all_groups():
    assert missed_share((0.06, 0.04, 0.9), 4, 20_000, 12, 80, seed=0) <= most(0.05, 80)


@pytest.mark.parametrize("harm", [0.0, 0.2])
def test_books_note_a_missed_limit_as_the_search_for_it_does(harm):
    books, rng = empty_books(2, weighted=True), np.random.default_rng(0)
    books.add(simulated_rows(rng, 800, 2, 0.3, weighted=True, harm=harm))
    Evidence._tighten(books, np.arange(books.n_questions))
    assert books.missed == bool((books.limits[:, 0] > 0).any() or (books.limits[:, 1] < 0).any()) == (harm > 0)


def test_a_monitor_serves_what_is_shown():
    good, turned = SCENARIOS[2], SCENARIOS[4]
    rows = outcomes(good, np.random.default_rng(0))
    served, _ = by_monitor(good, rows)
    assert served[-1].all()
    assert not served[0].all()
    rows = outcomes(turned, np.random.default_rng(0))
    _, served = by_monitor(turned, rows)
    assert served[11].all()
    assert not served[-1].any()


def test_recalibration_forgets_what_it_knew_last_month():
    rows = outcomes(SCENARIOS[2], np.random.default_rng(0))
    served = by_recalibration(rows, "proof")
    assert (served[1:] < served[:-1]).any()


def test_tables_are_written_with_the_digits_that_matter():
    table = pd.DataFrame({"rows": [1234.5, -0.5], "share": [2.25, -0.001], "name": ["a", "b"], "n": [1, 12_000]})
    rule, *lines = as_markdown(table).splitlines()[1:]
    assert rule == "| ---: | ---: | --- | ---: |"
    assert lines == ["| 1,234 | 2.25 | a | 1 |", "| −0.5 | 0 | b | 12,000 |"]


def test_every_table_has_its_place_in_the_page(tmp_path, monkeypatch):
    page = tmp_path / "watch.md"
    shutil.copy(Path(__file__).parents[1] / "docs" / "watch.md", page)
    for name in TABLES:
        monkeypatch.setitem(TABLES, name, lambda name=name: pd.DataFrame({"table": [name]}))
    write_page(page)
    assert all(f"<!-- {name}: begin -->\n| table |\n| --- |\n| {name} |\n" in page.read_text() for name in TABLES)


# ---- in full size, as on the page ----


@pytest.mark.slow
def test_no_alarm_in_95_of_100_worlds_however_often_one_looks():
    table = level_table()
    assert (table.filter(like="looks") / 100 <= most(0.05, 2000)).all(axis=None)


@pytest.mark.slow
def test_neither_in_the_books_with_batches_weights_losses_and_subgroups():
    table = batch_table()
    assert (table[["any alarm", "any limit missed"]] / 100 <= most(0.05, 1000)).all(axis=None)


@pytest.mark.slow
def test_delays_run_lengths_limits_and_drift():
    delays = delay_table().set_index(["harm, points", "questions"])["median"]
    assert delays[2.0, 1] <= 1.02 * 1619
    assert delays[5.0, 1] <= 1.02 * 203
    lengths = run_length_table()
    assert (lengths["found"] >= 0.85 * lengths["stated"]).all()
    assert (coverage_table().filter(like="group") >= 95 - 100 * (most(0.05, 2000) - 0.05)).all(axis=None)
    assert (drift_table().filter(like="reference") / 100 <= most(0.05, 2000)).all(axis=None)


@pytest.mark.slow
def test_a_monitor_rarely_serves_what_is_no_better_and_keeps_more_than_monthly_proofs():
    table = service_table().set_index(["own classifiers are", "way"])
    equal = table.loc["equal to the pooled one", "ever, %"]
    assert equal["monitor"] / 100 <= most(0.05, 1000)
    assert equal["recalibrate, proof"] > 20
    better = table.loc["better by 2 points", "gain"]
    assert better["monitor"] > 2 * better["recalibrate, proof"]
