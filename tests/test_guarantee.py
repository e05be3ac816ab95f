"""Simulated worlds and enumerated outcomes, checked by law: the study of the guarantee must itself be right."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dafh.evaluation.guard import GuardReport
from dafh.exceptions import InputError
from dafh.study.guarantee import (
    KINDS,
    World,
    as_markdown,
    coverage_table,
    guard_table,
    harmed_share,
    harmful_world,
    helpful_world,
    interval_coverage,
    kept_share,
)


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- coverage ----


@settings(max_examples=20)
@given(st.integers(5, 80), st.floats(0.02, 0.6), st.floats(-0.95, 0.95))
def test_an_interval_is_either_right_or_misses_on_one_side(n_rows, discordance, relative_gap):
    found = interval_coverage(n_rows, discordance, relative_gap * discordance)
    assert found.inside + found.missed_above + found.missed_below == pytest.approx(1)
    assert 0 < found.width <= 2
    assert found.inside >= 0.945


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.15])
def test_exchanging_the_classifiers_exchanges_the_sides(gap):
    one, other = interval_coverage(60, 0.2, gap), interval_coverage(60, 0.2, -gap)
    assert one.missed_above == pytest.approx(other.missed_below, abs=1e-9)
    assert one.inside == pytest.approx(other.inside, abs=1e-9)
    assert one.width == pytest.approx(other.width, abs=1e-9)


def test_more_confidence_covers_more_and_more_rows_are_narrower():
    usual, sure, many = (interval_coverage(*case) for case in ((50, 0.2, 0.1), (50, 0.2, 0.1, 0.99), (200, 0.2, 0.1)))
    assert sure.inside > usual.inside
    assert sure.width > usual.width > many.width


def test_coverage_agrees_with_a_simulation():
    from dafh.stats import paired_interval

    n, discordance, gap = 40, 0.3, 0.1
    worse, better = (discordance - gap) / 2, (discordance + gap) / 2
    counts = rng().multinomial(n, [worse, better, 1 - discordance], size=20_000)
    low, high = paired_interval(counts[:, 0], counts[:, 1], n)
    simulated = ((low <= gap + 1e-12) & (gap - 1e-12 <= high)).mean()
    assert interval_coverage(n, discordance, gap).inside == pytest.approx(simulated, abs=0.006)


def test_the_table_takes_the_worst_case_of_each_size():
    table = coverage_table((20, 40), discordances=(0.1, 0.3), relative_gaps=(0.0, 0.5))
    cases = [interval_coverage(40, psi, psi * share) for psi in (0.1, 0.3) for share in (0.0, 0.5)]
    last = table.iloc[1]
    assert table["rows"].tolist() == [20, 40]
    assert last["worst coverage"] == min(case.inside for case in cases)
    assert last["mean coverage"] == pytest.approx(np.mean([case.inside for case in cases]))
    assert last["worst lower tail"] == max(case.missed_above for case in cases)
    assert last["worst upper tail"] == max(case.missed_below for case in cases)


# ---- worlds ----


def test_rows_of_a_world_have_its_errors():
    harm = np.array([[0.05, -0.03], [0.0, 0.02]])
    world = World(np.array([60_000, 40_000]), harm, 0.2, pooled_error=0.3)
    counts = world.draw(rng()).paired_counts()
    np.testing.assert_array_equal(counts.n_rows, [60_000, 40_000])
    np.testing.assert_allclose(counts.errors[:, -1], 0.3, atol=0.01)
    np.testing.assert_allclose(counts.errors[:, :2] - counts.errors[:, [2]], harm, atol=0.01)
    for own in range(2):
        worse, better, n_rows = counts.pair(np.full(2, own), np.full(2, 2))
        np.testing.assert_allclose((worse + better) / n_rows, 0.2, atol=0.01)


def test_no_world_is_harmed_where_own_classifiers_are_copies_of_the_pooled_one():
    world = World(np.array([200, 50]), np.zeros((2, 2)), discordance=0.0)
    drawn = world.draw(rng())
    np.testing.assert_array_equal(drawn.right, drawn.right[:, [-1]].repeat(3, axis=1))
    assert not drawn.differ.any()
    for kind in ("veto", "proof"):
        assert not world.is_harmed(world.guard(rng(), kind=kind))


def report_of(serves, margin=0.0):
    """What a guard would report, as far as a world looks at it."""
    report = helpful_world(len(serves), rows=50).guard(rng(), kind="proof", margin=margin)
    return GuardReport(**{**vars(report), "serves": np.array(serves)})


@pytest.mark.parametrize(
    ("serves", "margin", "harmed"),
    [([0, 1], 0.0, True), ([2, 1], 0.0, False), ([1, 2], 0.0, False), ([0, 2], 0.05, False), ([0, 2], 0.04, True)],
)
def test_a_world_is_harmed_by_who_serves_whom_beyond_the_margin(serves, margin, harmed):
    world = World(np.array([10, 10]), np.array([[0.05, -0.01], [0.03, 0.0]]), 0.1)
    assert world.is_harmed(report_of(serves, margin)) == harmed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_worlds_can_be_drawn_and_are_harmful(kind, margin):
    for seed in range(10):
        world = harmful_world(rng(seed), 3, kind, margin)
        assert (np.abs(world.harm) <= world.discordance).all()
        assert world.discordance <= 0.5
        harmful = world.harm[~np.eye(3, dtype=bool)] if kind == "open gate" else world.harm
        assert (harmful > margin).all()
        assert ((world.sizes >= 49) & (world.sizes <= 5000)).all()


def test_an_imbalanced_world_has_one_large_group():
    assert harmful_world(rng(), 4, "imbalanced").sizes.tolist() == [5000, 50, 50, 50]


def test_behind_an_open_gate_own_classifiers_are_better():
    assert (np.diag(harmful_world(rng(), 3, "open gate").harm) < 0).all()


def test_a_kind_of_world_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="no harmful worlds of the kind 'tie': choose from varied, imbalanced"):
        harmed_share(2, 1, "tie", seed=0)


def test_own_classifiers_that_are_clearly_better_are_always_kept_and_others_never():
    assert kept_share(3, 5, seed=0, gain=0.09) == 1
    assert kept_share(3, 5, seed=0, gain=-0.09) == 0
    assert kept_share(3, 5, seed=0, gain=-0.09, guard="veto") == 0


def test_clear_harm_never_passes_the_guard():
    assert harmed_share(2, 10, "imbalanced", seed=3, margin=0.0) <= 0.1
    world = World(np.full(2, 5000), np.full((2, 2), 0.05), 0.1)
    assert not any(world.is_harmed(world.guard(rng(seed), kind="proof")) for seed in range(10))


def test_the_same_seed_gives_the_same_share():
    assert harmed_share(2, 8, "ties", seed=5, guard="veto") == harmed_share(2, 8, "ties", seed=5, guard="veto")


def test_the_table_has_a_column_for_every_kind_and_shares_in_all_of_them():
    table = guard_table(n_worlds=5)
    assert table["groups"].tolist() == [2, 4, 8]
    assert [f"harmed, {kind}" for kind in KINDS] == list(table.columns[1:5])
    assert table.drop(columns="groups").to_numpy().min() >= 0
    assert table.drop(columns="groups").to_numpy().max() <= 1


def test_tables_are_written_in_percent_with_whole_numbers_left_alone():
    text = as_markdown(pd.DataFrame({"rows": [5000], "coverage": [0.95123]}))
    assert text.splitlines()[-1].split("|")[1:3] == [" 5,000 ", " 95.12 "]
