"""Records of what is known about groups, and the sentences made from them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from dafh import Scorecard
from dafh.explanation.rules import Rule
from dafh.explanation.words import Effect, Explanation, GroupInWords, adds_nothing, worth_of_groups
from models import rules_case


@pytest.mark.parametrize(("difference", "alike"), [(0.0499, True), (0.05, False), (None, False)])
def test_classifiers_are_alike_below_the_smallest_effect(difference, alike):
    close = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", difference=0.0)
    other = GroupInWords(1, "Group 1", 9, 0.4, "its own classifier", difference=difference)
    assert Explanation((close, other)).alike == alike


def test_an_explanation_is_ready_for_json_whatever_its_labels():
    effect = Effect("x", 1.0, np.nan, np.int64(3))
    found = Explanation(
        (GroupInWords(0, "Group 0", 9, np.float64(0.4), "its own classifier", effects=(effect,)),), 0.5
    ).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["groups"][0]["effects"][0]["label"] == 3
    assert found["groups"][0]["effects"][0]["pooled"] is None
    assert found["stability"] == 0.5


@pytest.mark.parametrize(
    ("own", "pooled", "words"),
    [
        (1.0, 0.2, "stronger"),
        (-0.1, -0.8, "weaker"),
        (0.1, -0.8, "opposite"),
        (0.05, 1, "almost no"),
        (0.3, 0, "strong"),
    ],
)
def test_effects_in_words(own, pooled, words):
    assert words in Effect("age", own, pooled, 1).text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.499, "change a lot"),
        (0.5, "change in part"),
        (0.799, "change in part"),
        (0.8, "change little"),
        (0.949, "change little"),
        (0.95, "barely change"),
        (1.0, "barely change"),
        (None, "not measured"),
    ],
)
def test_stability_in_words(value, word):
    assert word in Explanation((), value).stability_text()


@pytest.mark.parametrize(
    ("share", "precision", "recall", "good"),
    [
        (0.3, 0.48, 0.55, False),
        (0.3, 0.9, 0.8, True),
        (0.9, 0.9, 1.0, False),
        (0.9, 1.0, 0.99, True),
        (0.1, 0, 0, False),
    ],
)
def test_a_rule_that_is_no_better_than_all_rows_is_not_praised(share, precision, recall, good):
    group = GroupInWords(0, "Group 0", 10, share, "its own classifier", Rule("a is b", precision, recall))
    assert ("No short rule" in group.lines()[0]) == (not good)


# ---- what groups are worth ----


def served(serves, n_groups, pooled=None):
    return SimpleNamespace(n_groups_=n_groups, serves_=np.array(serves), pooled_=pooled, method_="network")


@pytest.mark.parametrize(
    ("model", "nothing"),
    [
        (served([1], 1, Scorecard()), True),
        (served([2, 2], 2, Scorecard()), True),
        (served([1], 1), True),
        (served([0], 1), False),
        (served([0, 3, 0], 3), False),
    ],
)
def test_what_groups_are_worth_in_one_sentence(model, nothing):
    assert adds_nothing(model) == nothing
    assert any(words in worth_of_groups(model) for words in ("add nothing", "let none")) == nothing


def test_the_rules_of_a_model_say_the_same_as_all_other_outputs():
    final = rules_case().model[-1]
    assert worth_of_groups(final) == final.exceptions_.sentence()
