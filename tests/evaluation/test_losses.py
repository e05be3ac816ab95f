"""Losses: what is at stake on each row, the cut-off that costs imply, and names that cannot be used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.losses import LOSS_NAMES, TITLES, Costs, Loss, check_losses
from dafh.exceptions import InputError

POSITIVE = np.array([False, True, True, False, True])
costs = st.floats(0.01, 100)


@pytest.mark.parametrize(
    ("loss", "stake", "counted"),
    [
        (Loss("error"), [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
        (Loss("fpr"), [1, 0, 0, 1, 0], [1, 0, 0, 1, 0]),
        (Loss("fnr"), [0, 1, 1, 0, 1], [0, 1, 1, 0, 1]),
        (Loss("cost", Costs(2, 7)), [2, 7, 7, 2, 7], [1, 1, 1, 1, 1]),
    ],
)
def test_what_a_wrong_decision_costs_on_each_row(loss, stake, counted):
    found = loss.stakes(POSITIVE, 5)
    assert found[0].tolist() == stake
    assert found[1].tolist() == [bool(c) for c in counted]
    assert loss.worst == max(stake)


def test_an_error_needs_no_positive_class_and_all_other_losses_do():
    assert Loss("error").stakes(None, 3)[0].tolist() == [1, 1, 1]
    for loss in check_losses(("fpr", "fnr", "cost"), {"fp": 1, "fn": 1}):
        with pytest.raises(InputError, match="two classes"):
            loss.stakes(None, 3)


@given(costs, costs, st.floats(0, 1))
def test_at_the_cut_off_both_decisions_cost_the_same_on_average(fp, fn, probability):
    threshold = Costs(fp, fn).threshold
    assert (1 - threshold) * fp == pytest.approx(threshold * fn)
    if abs(probability - threshold) > 1e-9:
        assert (probability > threshold) == ((1 - probability) * fp < probability * fn)


def test_equal_costs_are_the_error_rate_and_its_cut_off():
    assert Costs.check({"fp": 3, "fn": 3}).threshold == 0.5
    assert Costs.check({"fn": "5", "fp": 1}) == Costs(1.0, 5.0)
    assert Costs.check(Costs(1, 2)) == Costs(1, 2)


@pytest.mark.parametrize(
    ("given_costs", "word"),
    [
        ({"fp": 1}, "'fp' and 'fn'"),
        ({"fp": 1, "fn": 2, "tp": 0}, "'fp' and 'fn'"),
        ([1, 5], "'fp' and 'fn'"),
        ({"fp": 0, "fn": 1}, "positive"),
        ({"fp": np.inf, "fn": 1}, "positive"),
        ({"fp": 1, "fn": np.nan}, "positive"),
        ({"fp": 1, "fn": "dear"}, "numbers"),
    ],
)
def test_costs_that_cannot_be_used(given_costs, word):
    with pytest.raises(InputError, match=word):
        Costs.check(given_costs)


def test_losses_by_name_each_once_and_in_their_order():
    assert [loss.name for loss in check_losses(("fnr", "error", "fnr"))] == ["fnr", "error"]
    assert check_losses("fpr") == (Loss("fpr"),)
    found = check_losses(("cost", "error"), {"fp": 1, "fn": 5})
    assert found == (Loss("cost", Costs(1, 5)), Loss("error"))
    assert set(TITLES) == set(LOSS_NAMES)
    assert found[0].unit == "per 100 rows"
    assert found[1].unit == "percentage points"


@pytest.mark.parametrize("names", [(), ("errors",), "accuracy", ("error", 3)])
def test_losses_that_do_not_exist_are_refused(names):
    with pytest.raises(InputError, match="'error', 'fpr', 'fnr' and 'cost'"):
        check_losses(names)


def test_costs_must_be_given_for_the_loss_that_needs_them():
    with pytest.raises(InputError, match="needs costs"):
        check_losses(("error", "cost"))
    with pytest.raises(InputError, match="positive"):
        check_losses(("error",), {"fp": -1, "fn": 1})  # Given for nothing, but wrong all the same.
