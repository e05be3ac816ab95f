"""Checks of parameters: what is let through, and the sentence for what is not."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from dafh.checks.parameters import (
    NOTHING,
    check_parameters,
    having,
    instance_of,
    number,
    one_of,
    sequence_of,
    whole_number,
)
from dafh.exceptions import InputError

# ---- kinds of parameters ----

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("kind", "words", "good", "bad"),
    [
        (whole_number(1), "an int in the range [1, inf)", [1, 2, np.int64(7)], [0, -1, 1.0, True, "1", None, NAN]),
        (number(0, 0.5), "a float in the range (0, 0.5)", [0.1, np.float32(0.2)], [0, 0.5, -1, NAN, True, "0.1"]),
        (number(0, 1, closed="left"), "a float in the range [0, 1)", [0, 0.0, 0.99], [1, -1e-9, INF]),
        (number(0, 1, closed="right"), "a float in the range (0, 1]", [1, 0.5], [0, 1.01, NAN]),
        (number(0, closed="left"), "a float in the range [0, inf)", [0, 3, 1e300], [INF, -0.1, NAN]),
        (
            one_of("evidence", "proof"),
            "a str among {'proof', 'evidence'}",
            ["evidence", "proof"],
            ["VETO", "", None, 1, ["evidence"]],
        ),
        (having("fit", "predict"), "an object that has 'fit', 'predict'", [LogisticRegression()], [None, 3, "fit"]),
        (instance_of(dict), "an instance of dict", [{}], [[], None, dict]),
        (NOTHING, "None", [None], [0, "", False, NAN]),
    ],
)
def test_what_each_kind_lets_through(kind, words, good, bad):
    assert kind.words == words
    assert [kind.holds(value) for value in good] == [True] * len(good)
    assert [kind.holds(value) for value in bad] == [False] * len(bad)


def test_a_sequence_holds_members_of_one_kind():
    widths = sequence_of(whole_number(1), "a sequence of positive ints")
    for good in ((), [1], (3, 4), np.array([5, 6])):
        assert widths.holds(good)
    for bad in (5, "12", [0], [1, 2.5], [None], None, [[1]]):
        assert not widths.holds(bad)


class Oven(BaseEstimator):
    def __init__(self, heat=200, door="open"):
        self.heat = heat
        self.door = door


OVEN = {"heat": (whole_number(50), one_of("auto"), NOTHING), "door": (one_of("open", "closed"),)}


def test_a_parameter_that_cannot_be_used_is_named_with_all_that_it_may_be():
    with pytest.raises(InputError, match=r"'heat' parameter of Oven .*\[50, inf\), .*'auto'.* or None\. Got 3"):
        check_parameters(Oven(heat=3, door="ajar"), OVEN)
    with pytest.raises(InputError, match=r"'closed', 'open'.* Got 'ajar'"):
        check_parameters(Oven(door="ajar"), OVEN)
    for heat in (50, "auto", None):
        check_parameters(Oven(heat=heat), OVEN)
