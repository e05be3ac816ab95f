"""Groups found without a name: how often wrongly, and how often rightly; small here, in full as `slow`."""

import numpy as np
import pytest

from research.guarantees.discoveries import (
    KINDS,
    Planted,
    every_rule_misses,
    every_rule_table,
    false_discovery_table,
    is_false_claim,
    power_table,
)


def most(level, n_worlds, errors=3):
    return level + errors * np.sqrt(level * (1 - level) / n_worlds)


@pytest.mark.parametrize("kind", KINDS)
def test_few_groups_are_shown_where_none_loses(kind):
    assert np.mean([is_false_claim(kind, 1000, 6, seed) for seed in range(8)]) <= most(0.05, 8)


def test_limits_for_every_rule_are_hardly_ever_missed():
    assert np.mean([every_rule_misses(1000, 4, 0.1, seed) for seed in range(20)]) <= most(0.05, 20)


def test_a_large_harm_is_found_and_shown():
    shown, tested, elsewhere = np.mean([Planted(5000, 0.1, 0.2, 6).outcome(seed) for seed in range(4)], axis=0)
    assert shown == tested == 1
    assert elsewhere == 0


def test_more_rows_show_more():
    few, many = (power_table(4, (n,), (0.05,), (0.1,)).iloc[0]["shown"] for n in (1500, 15_000))
    assert few <= many == 1


@pytest.mark.slow
def test_false_discoveries_stay_within_their_level():
    table = false_discovery_table(200, ((2_000, 10), (10_000, 20)))
    assert (table[list(KINDS)] <= most(0.05, 200)).all(axis=None)


@pytest.mark.slow
def test_limits_for_every_rule_stay_within_their_level():
    assert (every_rule_table(200)["missed"] <= most(0.05, 200)).all()
