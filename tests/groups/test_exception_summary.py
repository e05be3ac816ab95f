"""The list of exceptions as people read it: rules, shares, gains, and who serves whom."""

import numpy as np
import pytest

from dafh.groups.summary import ExceptionSummary
from dafh.regions.conditions import Condition, Region

YOUNG = Region((Condition("age", "number", high=25.0),))
COOKS = Region((Condition("job", "category", values=("cook",)), Condition("age", "number", low=60.0)))
K = 3


def summary(serves=(0, 1, K), shift=(np.nan,) * K, **others):
    return ExceptionSummary((YOUNG, COOKS), np.array(serves), np.array([0.3, 0.1, 0.6]), np.array(shift), **others)


def judged(**others):
    limits = {"gain": [0.031, 0.02, np.nan], "low": [0.01, -0.01, np.nan], "high": [0.05, 0.05, np.nan]}
    return summary(**{name: np.array(values) for name, values in limits.items()}, **others)


def test_the_list_is_a_frame_in_its_own_order():
    frame = judged().to_frame()
    assert frame["rule"].tolist() == ["age is 25 or less", "job is cook and age is above 60", "everybody else"]
    assert frame["rows"].tolist() == [0.3, 0.1, 0.6]
    assert frame["gain"].tolist()[:2] == [0.031, 0.02]
    assert frame["served_by"].tolist() == [0, 1, K]
    assert summary().to_frame()["gain"].isna().all()  # No guard, no gains.


def test_a_terminal_and_a_notebook_show_the_same_words():
    printed, page = str(judged()), judged()._repr_html_()
    for words in ("job is cook and age is above 60", "everybody else", "its own classifier", "30.0%"):
        assert words in printed
        assert words in page
    assert "gain, points" in printed
    assert "+1.00 to +5.00" in printed
    assert "gain in cost, per 100 rows" in str(judged(loss="cost"))
    assert "gain" not in str(summary())


@pytest.mark.parametrize(
    ("serves", "said"),
    [
        ([0, 1, 2], "2 exceptions, asked in this order; the first that holds decides. 3 of 3 groups have"),
        ([0, K, K], "1 of 3 groups has its own classifier."),
        ([K, K, K], "2 exceptions found, but the guard let no group keep its own classifier"),
    ],
)
def test_a_sentence_says_what_groups_are_worth(serves, said):
    assert said in summary(serves).sentence()


def test_without_exceptions_there_is_a_sentence_and_no_table():
    alone = ExceptionSummary((), np.array([1]), np.ones(1), np.array([np.nan]))
    assert str(alone) == "No exceptions: groups add nothing to the pooled classifier, which serves everybody."
    assert alone.rules == ["everybody"]
    corrected = ExceptionSummary((), np.array([0]), np.ones(1), np.array([np.nan]))
    assert str(corrected) == "No exceptions: one correction of the pooled classifier serves everybody."


def test_everybody_who_serves_is_named():
    # A shift of the logit by log 4 moves a cut-off of 0.5 to 0.2.
    found = summary([0, K, 1], shift=[np.log(4), np.nan, np.nan])
    assert found.server(0) == "its own classifier (about another cut-off of the pooled one, 0.20)"
    assert found.server(1) == "the pooled classifier"
    assert found.server(2) == "the classifier of group 1"
