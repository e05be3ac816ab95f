"""Records of what is known about groups, and the sentences made from them."""

import itertools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from dafh import DAFHClassifier, Scorecard
from dafh.exceptions import InputError
from dafh.explanation import Contrast, Effect, Explanation, GroupInWords, Member, Rule, stability
from dafh.explanation.stability import stability_in_time
from dafh.explanation.words import group_name, server_words
from dafh.explanation.worth import adds_nothing, worth_of_groups
from models import rules_case


@pytest.mark.parametrize(
    ("own", "pooled", "words"),
    [
        (0.05, 1, "almost no"),
        (0.051, 1, "a weaker"),
        (-0.06, 0.5, "the opposite"),
        (-0.9, -0.5, "a stronger"),
        (0.3, 0, "a stronger"),
    ],
)
def test_effects_at_the_edge_of_words(own, pooled, words):
    assert Effect("age", own, pooled, 1).text.startswith(f"age has {words} effect (")


def test_everything_known_is_said_in_one_order():
    members = tuple(Member(f"m{i}", f"m{i} = a", 0.5 + i / 10, 0.5) for i in range(6))
    contrasts = (Contrast("x", "x averages 3 instead of 1", 1.0),)
    effects = (Effect("x", 1.0, 0.2, "yes"),)
    whole = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", None, contrasts, effects, members, 0.8)
    rule, contrast, classifier, attributes = whole.lines()
    assert rule == "No short rule was found for this group."
    assert contrast == "Compared with the other rows: x averages 3 instead of 1."
    assert classifier.startswith("Its classifier differs from the pooled classifier: x has a stronger effect")
    assert [part.split()[0] for part in attributes.removeprefix("Sensitive attributes: ").split("; ")] == [
        "m5",
        "m4",
        "m3",
        "m2",
    ]


def test_each_attribute_is_represented_by_its_most_unusual_value():
    members = (
        Member("age", "age = old", 0.3, 0.2),
        Member("age", "age = young", 0.2, 0.5),
        Member("sex", "sex = f", 0.9, 0.5),
    )
    line = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", members=members).lines()[-1]
    assert line == (
        "Sensitive attributes: sex = f in 90.0% of rows (all rows: 50.0%); "
        "age = young in 20.0% of rows (all rows: 50.0%)."
    )


def test_the_pooled_classifier_is_not_compared_with_itself():
    same = GroupInWords(0, "Group 0", 9, 0.4, "the pooled classifier", difference=0.0)
    assert not any("classifier" in line for line in same.lines())


@pytest.mark.parametrize(("difference", "alike"), [(0.0499, True), (0.05, False), (None, False)])
def test_classifiers_are_alike_below_the_smallest_effect(difference, alike):
    close = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", difference=0.0)
    other = GroupInWords(1, "Group 1", 9, 0.4, "its own classifier", difference=difference)
    assert Explanation((close, other)).alike == alike


@pytest.mark.parametrize(
    ("index", "change"), [(0.399, "a lot"), (0.4, "somewhat"), (0.799, "somewhat"), (0.8, "barely")]
)
def test_words_for_stability_change_at_fixed_values(index, change):
    assert change in Explanation((), index).stability_text()


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
    [(1.0, 0.2, "a stronger"), (-0.1, -0.8, "a weaker"), (0.1, -0.8, "the opposite"), (0.01, 0.5, "almost no")],
)
def test_effects_in_words(own, pooled, words):
    assert Effect("age", own, pooled, 1).text == f"age has {words} effect ({own:+.2f} instead of {pooled:+.2f})"


@pytest.mark.parametrize(
    ("value", "word"),
    [(0.1, "change a lot"), (0.6, "change somewhat"), (0.95, "barely change"), (None, "not measured")],
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
        (0.1, 0.45, 0.5, True),
    ],
)
def test_a_rule_that_is_no_better_than_all_rows_is_not_praised(share, precision, recall, good):
    group = GroupInWords(0, "Group 0", 10, share, "its own classifier", Rule("a is b", precision, recall))
    assert group.lines()[0].startswith("Approximate rule: a is b." if good else "No short rule fits this group well.")


@pytest.mark.parametrize(("difference", "words"), [(0.049, "barely differs"), (0.05, "by 0.05 on average")])
def test_a_difference_is_a_number_only_where_it_matters(difference, words):
    (_, line) = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", difference=difference).lines()
    assert words in line


def test_stability_is_printed_only_if_it_was_measured():
    known = GroupInWords(0, "Group 0", 9, 1.0, "the pooled classifier")
    assert str(Explanation((known,))) == "Group 0: 9 rows (100.0% of all), served by the pooled classifier."
    assert str(Explanation((known,), 0.5)).splitlines()[1].startswith("The groups change somewhat with the seed")


def test_rows_after_the_last_group_belong_to_none_and_are_served_by_the_pooled_classifier():
    model = SimpleNamespace(n_groups_=2, serves_=np.array([2, 1]))
    assert [group_name(model, k) for k in range(3)] == ["Group 0", "Group 1", "Rows in no group"]
    assert [server_words(model, k) for k in range(3)] == [
        "the pooled classifier",
        "its own classifier",
        "the pooled classifier",
    ]


# ---- stability ----


class SeededGroups(ClassifierMixin, BaseEstimator):
    """Groups that depend on the seed in a known way: the rows below ten times the seed."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.fitted_ = self.random_state
        self.classes_, self.n_groups_, self.serves_ = np.unique(y), 2, np.arange(2)
        return self

    def predict_group(self, X):
        return (np.asarray(X)[:, 0] < 10 * self.fitted_).astype(int)

    def predict_all(self, X):
        return np.zeros((len(X), 3), int)


def test_stability_is_the_mean_over_all_pairs_of_seeds():
    X, y = np.arange(100.0)[:, None], np.arange(100) % 2
    parts = {seed: (X[:, 0] < 10 * seed).astype(int) for seed in (2, 5, 7)}
    by_hand = np.mean([adjusted_rand_score(parts[a], parts[b]) for a, b in ((2, 5), (2, 7), (5, 7))])
    model = SeededGroups(random_state=9)
    assert stability(model, X, y, seeds=(2, 5, 7)) == pytest.approx(by_hand)
    assert model.random_state == 9
    assert not hasattr(model, "classes_")
    assert stability(model, X, y, seeds=(3, 4)) < 1


class RowsSeen(ClassifierMixin, BaseEstimator):
    """Groups that depend on the rows of fit in a known way: rows up to the largest one seen of the first 50."""

    fits = []  # noqa: RUF012

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.fits.append((np.asarray(X)[:, 0], np.asarray(y), sample_weight, self.random_state))
        self.classes_, self.n_groups_, self.serves_ = np.unique(y), 2, np.arange(2)
        self.last_ = np.asarray(X)[np.asarray(X)[:, 0] < 50, 0].max()
        return self

    def predict_group(self, X):
        return (np.asarray(X)[:, 0] > self.last_ - 25).astype(int)

    def predict_all(self, X):
        return np.zeros((len(X), 3), int)


@pytest.mark.parametrize("table", [lambda X: X, lambda X: pd.DataFrame(X, columns=["x"])], ids=["array", "frame"])
def test_resamples_are_four_fifths_of_the_rows_of_each_class_with_all_that_belongs_to_them(table):
    X, y = np.arange(100.0)[:, None], np.where(np.arange(100) < 10, "rare", "often")
    RowsSeen.fits.clear()
    found = stability(RowsSeen(random_state=7), table(X), y, resamples=4, sample_weight=np.arange(100.0))
    assert -1 <= found <= 1
    assert len(RowsSeen.fits) == 4
    assert len({tuple(rows) for rows, *_ in RowsSeen.fits}) == 4
    for rows, labels, weight, seed in RowsSeen.fits:
        assert len(set(rows)) == 80
        assert (labels == "rare").sum() == 8
        np.testing.assert_array_equal(labels, y[rows.astype(int)])
        np.testing.assert_array_equal(weight, rows)
        assert seed == 7


def test_groups_of_resamples_are_compared_on_all_rows_over_all_pairs():
    X, y = np.arange(100.0)[:, None], np.arange(100) % 2
    RowsSeen.fits.clear()
    found = stability(RowsSeen(), X, y, resamples=5)
    last = [rows[rows < 50].max() for rows, *_ in RowsSeen.fits]
    assert len(set(last)) > 1
    parts = [(X[:, 0] > row - 25).astype(int) for row in last]
    by_hand = np.mean([adjusted_rand_score(one, other) for one, other in itertools.combinations(parts, 2)])
    assert found == pytest.approx(by_hand)
    assert {seed for *_, seed in RowsSeen.fits} == {0}


@pytest.mark.parametrize("resamples", [0, 1, -3])
def test_one_resample_is_no_comparison(resamples):
    with pytest.raises(InputError, match="at least two resamples"):
        stability(RowsSeen(), np.arange(10.0)[:, None], np.arange(10) % 2, resamples=resamples)


def test_stable_rules_are_found_again_on_other_rows():
    case = rules_case()
    assert stability(case.model, case.X, case.y, resamples=2) > 0.9


@pytest.mark.parametrize(("seconds_each", "n_fits"), [(1.0, 5), (16.0, 2), (29.0, 2), (31.0, 0)])
def test_without_a_number_as_many_copies_are_compared_as_fit_into_half_a_minute(seconds_each, n_fits):
    X, y = np.arange(100.0)[:, None], np.arange(100) % 2
    RowsSeen.fits.clear()

    def clock():
        return seconds_each * len(RowsSeen.fits)

    found, n_found = stability_in_time(RowsSeen(), X, y, clock=clock)
    assert n_found == n_fits
    assert (found is None) == (n_fits == 0)
    assert len(RowsSeen.fits) == max(n_fits, 1)


def test_copies_are_fitted_on_a_sample_of_very_many_rows(monkeypatch):
    # By its name the module would be mistaken for the function in it.
    monkeypatch.setattr(sys.modules["dafh.explanation.stability"], "_MOST_ROWS", 60)
    RowsSeen.fits.clear()
    X, y = pd.DataFrame({"x": np.arange(100.0)}), np.arange(100) % 2
    stability_in_time(RowsSeen(), X, y, sample_weight=np.arange(100.0), sensitive_features=X)
    assert [len(rows) for rows, *_ in RowsSeen.fits] == [60] * 5  # Seeds: each copy takes the whole sample.
    for rows, _, weight, _ in RowsSeen.fits:
        np.testing.assert_array_equal(weight, rows)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
def test_copies_keep_the_incumbent_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=400) > 0).astype(int)
    incumbent = CountsItsFits(max_iter=50).fit(X, y)
    model = DAFHClassifier(2, groups="rules", pooled=incumbent, random_state=0).fit(X, y)
    CountsItsFits.n_fits = 0
    assert stability(model, X, y, resamples=2) > 0.5
    assert CountsItsFits.n_fits == 0


class CountsItsFits(LogisticRegression):
    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        CountsItsFits.n_fits += 1
        return super().fit(X, y, sample_weight)


def test_words_on_stability_name_the_number_of_fits():
    text = Explanation((), 0.9, resampled=True, n_fits=5).stability_text()
    assert "between 5 fits on random samples of 80% of the rows is 0.90" in text
    assert Explanation((), 0.9, n_fits=3).to_dict()["n_fits"] == 3


def test_words_on_stability_say_what_was_changed():
    rule = Rule("a is b", 1.0, 1.0, exact=True)
    group = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", rule)
    by_rows = Explanation((group,), 0.5, resampled=True).stability_text()
    assert "change somewhat with the rows they are learned from" in by_rows
    assert "fits on random samples of 80% of the rows is 0.50" in by_rows
    assert "with the seed" in Explanation((group,), 0.5).stability_text()
    assert Explanation((group,)).stability_text() == (
        "How much the groups change with the rows they are learned from was not measured."
    )


@pytest.mark.parametrize(
    ("served_by", "who"),
    [("its own classifier", "its classifier"), ("the pooled classifier", "its own classifier, which is not in use,")],
)
def test_a_gain_says_whose_it_is(served_by, who):
    lines = GroupInWords(0, "Group 0", 9, 0.4, served_by, Rule("a is b", 1.0, 1.0, exact=True), gain=-0.0125).lines()
    assert lines == [
        "Exactly the rows for which a is b.",
        f"Gain of {who} over the pooled classifier on calibration rows: -1.25 percentage points.",
    ]


@pytest.mark.parametrize(
    ("loss", "what"),
    [("fnr", "+2.00 percentage points in false negative rate"), ("cost", "+2.00 per 100 rows in cost")],
)
def test_a_gain_in_another_loss_than_the_error_rate_names_it(loss, what):
    words = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", Rule("a", 1, 1, exact=True), gain=0.02, loss=loss)
    assert words.lines()[1] == f"Gain of its classifier over the pooled classifier on calibration rows: {what}."


def served(serves, n_groups, pooled=None):
    return SimpleNamespace(n_groups_=n_groups, serves_=np.array(serves), pooled_=pooled, groups_="rules")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (served([1], 1, Scorecard()), "Groups add nothing to the pooled classifier: keep one scorecard for all rows."),
        (
            served([2, 2], 2, Scorecard()),
            "2 groups were found, but the guard let none keep its own classifier: the pooled one serves all rows.",
        ),
        (served([1], 1), "Groups add nothing to the pooled classifier: keep the pooled classifier."),
        (served([0], 1), "There is one group: one classifier serves all rows."),
        (served([0, 3, 0], 3), "3 groups were found; 2 of them have a classifier other than the pooled one."),
    ],
)
def test_what_groups_are_worth_in_one_sentence(model, said):
    assert worth_of_groups(model) == said
    assert adds_nothing(model) == ("add nothing" in said or "let none" in said)


def test_the_rules_of_a_model_say_the_same_as_all_other_outputs():
    final = rules_case().model[-1]
    assert worth_of_groups(final) == final.rules_.sentence()
