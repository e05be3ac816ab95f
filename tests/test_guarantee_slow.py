"""What docs/guarantee.md says was found, asserted in full size; `make slow` runs it."""

import numpy as np
import pytest

from dafh.study.guarantee import audits, coverage, fits, proof, recommendations, veto

pytestmark = pytest.mark.slow


def at_most(level, n_worlds):
    """Level plus two standard errors of a simulated share."""
    return level + 2 * np.sqrt(level * (1 - level) / n_worlds)


def test_no_limit_is_missed_more_often_than_its_level_anywhere():
    table = coverage.limit_table()
    assert table["worst ratio to the level"].max() <= 1.0001


def test_no_limit_for_costs_is_missed_more_often_than_its_level():
    assert coverage.cost_table()["worst ratio to the level"].max() <= 1.0001


def test_no_limit_for_weights_is_missed_more_often_than_its_level():
    assert coverage.weighted_table()["worst missed at 5%"].max() <= at_most(0.05, 10_000)


@pytest.mark.parametrize("scenario", proof.scenarios(), ids=lambda one: one.name)
def test_proof_keeps_its_promise(scenario):
    assert scenario.harmed_share(1000) <= at_most(0.05, 1000)


def test_proof_keeps_its_promise_end_to_end_on_noise():
    table = fits.fit_table(100)
    assert table["harmed"].mean() <= at_most(0.05, 500)
    assert table["harmed if all were kept"].min() > 0.9


def test_holm_keeps_at_least_what_bonferroni_keeps():
    table = proof.power_table(1000)
    assert (table["alike, holm"] >= table["alike, bonferroni"]).all()


def test_the_judged_gain_is_not_biased():
    table = veto.bias_table(500)
    assert (table["bias"].abs() <= 0.0005 + 2 * table["standard error"]).all()


@pytest.mark.parametrize("scenario", audits.audit_scenarios(), ids=lambda one: one.name)
def test_audits_are_wrong_no_more_often_than_promised(scenario):
    assert max(scenario.wrong_shares(500)) <= at_most(0.05, 500)


@pytest.mark.parametrize("world", recommendations.WORLDS[:3], ids=lambda world: world.name)
def test_recommendations_are_wrong_no_more_often_than_promised(world):
    kinds, wrong = world.recommended(500)
    assert wrong <= at_most(0.05, 500)
    if max(world.gains) <= 0:
        assert kinds["deploy"] + kinds["deploy_some"] <= at_most(0.05, 500)
