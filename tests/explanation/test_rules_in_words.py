"""Rules, contrasts and effects: every number and every word is that of the data."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from dafh import explain
from dafh.explanation import Contrast
from dafh.explanation.views import Described, View
from models import additive_case, network_case, rules_case


class KnownGroups:
    """Groups of rows by a known rule; with weights, both classifiers are logistic and known as well."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, groups, own=None, pooled=None, n_groups=2):
        self.groups, self.n_groups_, self.serves_ = np.asarray(groups), n_groups, np.arange(n_groups)
        self.pooled_ = self
        if own is not None:
            self.predict_proba = self.answer(own)
            self.pooled_ = type("Pooled", (), {"classes_": self.classes_, "predict_proba": self.answer(pooled)})()

    @staticmethod
    def answer(weights):
        def probabilities(*rows):
            second = expit(np.asarray(rows[-1], float) @ weights)
            return np.column_stack([1 - second, second])

        return probabilities

    def predict_group(self, X):
        return self.groups

    def predict_all(self, X):
        return np.full((len(X), self.n_groups_ + 1), "no")


def group(table, members, **options):
    """What is said about the rows for which `members` holds."""
    return explain(KnownGroups(np.asarray(members).astype(int)), table, **options).groups[1]


def uniform(n=400, seed=0):
    return np.random.default_rng(seed).uniform(size=n)


# ---- bounds ----

numbers = st.floats(-1e12, 1e12)


@given(numbers, numbers)
def test_a_written_bound_keeps_neighbouring_values_apart(value, beyond):
    if value == beyond:
        return
    written = float(View("x").bound(value, beyond).replace(",", ""))
    assert beyond < written <= value if beyond < value else value <= written < beyond


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**7), st.booleans())
def test_a_written_date_keeps_neighbouring_seconds_apart(second, step, later):
    value, beyond = second / 86_400, (second + (step if later else -step)) / 86_400
    text = View("x", is_date=True).bound(value, beyond)
    written = (np.datetime64(text.replace(" ", "T"), "s") - np.datetime64(0, "s")).astype(int) / 86_400
    assert value <= written < beyond if later else beyond < written <= value


def test_a_bound_has_no_more_digits_than_needed():
    assert View("x").bound(1234.4, 1200) == "1,234"
    assert View("x").bound(1234.56, 1200) == "1,234.56"  # "1,235 or more" would leave the value itself out.
    assert View("x").bound(0.123456, 0.1) == "0.123"
    assert View("x").bound(0.123456, 0.12345) == "0.123456"
    assert View("x", is_date=True).bound(18262.5, 18261.5) == "2020-01-01"
    assert View("x", is_date=True).bound(18262.5, 18262.4) == "2020-01-01 12:00:00"


# ---- rules ----


@pytest.mark.parametrize("threshold", [-35, -1, 0, 7, 35])
def test_a_threshold_is_found_wherever_it_lies(threshold):
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(-50, 50), 20))
    rule = group(pd.DataFrame({"x": values}), values > threshold).rule
    assert rule.text == f"x is {threshold + 1} or more"
    assert (rule.precision, rule.recall) == (1, 1)


def test_a_single_value_is_said_without_a_range():
    values = np.arange(500) % 5
    assert group(pd.DataFrame({"x": values}), values == 2).rule.text == "x is 2"


def test_all_but_one_category_is_said_so():
    job = np.resize(["cook", "clerk", "pilot", "nurse"], 400)
    assert group(pd.DataFrame({"job": job}), job != "cook").rule.text == "job is not cook"


def test_conditions_that_must_hold_together_are_joined_by_and():
    table = pd.DataFrame({"x": uniform(2000), "job": np.resize(["cook", "clerk"], 2000)})
    rule = group(table, (table["x"] > 0.5) & (table["job"] == "cook")).rule
    first, second = sorted(rule.text.split(" and "))
    assert first in ("job is cook", "job is not clerk")
    assert second.startswith("x is 0.50")
    assert rule.precision > 0.95


def test_a_simple_rule_is_preferred_to_one_that_is_hardly_better():
    x, chance = uniform(2000), uniform(2000, seed=1)
    rule = group(pd.DataFrame({"x": x, "chance": chance}), (x > 0.5) & (chance > 0.05)).rule
    assert "chance" not in rule.text
    assert 0.9 < rule.precision < 1
    exact = group(pd.DataFrame({"x": x, "chance": chance}), (x > 0.5) & (chance > 0.3)).rule
    assert "chance" in exact.text


def test_precision_and_recall_are_those_of_the_rule_on_other_rows():
    """Every third row matches the rule without being in the group, and a tenth of the group is elsewhere."""
    rng = np.random.default_rng(0)
    matches = rng.random(30_000) < 0.3
    members = np.where(matches, rng.random(30_000) < 2 / 3, rng.random(30_000) < 0.03)
    rule = group(pd.DataFrame({"flag": np.where(matches, "on", "off")}), members).rule
    assert rule.text in ("flag is on", "flag is not off")
    assert rule.precision == pytest.approx(2 / 3, abs=0.02)
    assert rule.recall == pytest.approx(0.2 / (0.2 + 0.021), abs=0.02)


@pytest.mark.parametrize(("n", "found"), [(39, False), (40, True)])
def test_a_rule_needs_rows_to_be_measured_on(n, found):
    values = np.random.default_rng(0).permutation(n)
    assert (group(pd.DataFrame({"x": values}), values >= n // 2).rule is not None) == found


def test_a_group_of_one_row_does_not_stop_the_description():
    table = pd.DataFrame({"x": np.arange(200.0)})
    one = group(table, np.arange(200) == 199)
    assert one.rows == 1
    assert one.lines()


def test_the_same_seed_finds_the_same_rule():
    x = uniform(300)
    members = x + 0.3 * uniform(300, seed=1) > 0.6
    said = [str(explain(KnownGroups(members.astype(int)), pd.DataFrame({"x": x}), random_state=s)) for s in (1, 1, 2)]
    assert said[0] == said[1] != said[2]


# ---- contrasts ----


def test_differences_are_in_standard_deviations_and_have_the_sign_of_the_group():
    x = np.r_[np.zeros(100), np.full(100, 10.0)]
    (contrast,) = group(pd.DataFrame({"x": x}), x > 5).contrasts
    assert contrast == Contrast("x", "x averages 10 instead of 0", difference=2.0)
    (other,) = group(pd.DataFrame({"x": x}), x < 5).contrasts
    assert other.difference == -2.0


def test_the_largest_differences_come_first_and_no_more_than_asked():
    rng = np.random.default_rng(0)
    members = np.arange(4000) % 2 == 0
    table = pd.DataFrame({f"shift {s}": rng.normal(size=4000) + s * members for s in (0.5, 2, 0, 1)})
    columns = [contrast.column for contrast in group(table, members).contrasts]
    assert columns == ["shift 2", "shift 1", "shift 0.5"]
    assert len(group(table, members, n_contrasts=1).contrasts) == 1


def test_dates_gaps_and_categories_are_compared_in_their_own_words():
    members = np.arange(200) >= 100
    table = pd.DataFrame(
        {
            "since": np.where(members, np.datetime64("2020-01-01"), np.datetime64("2010-01-01")),
            "income": np.where(members & (np.arange(200) % 2 == 0), np.nan, 7.0),
        }
    )
    texts = {contrast.text for contrast in group(table, members).contrasts}
    assert "since averages 2020-01-01 instead of 2010-01-01" in texts
    assert "income is missing in 50.0% of rows instead of 0.0%" in texts


def test_only_frequent_categories_are_described():
    town = np.r_[np.repeat([f"town {i}" for i in range(20)], 20), ["rare"] * 10]
    described = Described.of(pd.DataFrame({"town": town}))
    assert sorted(view.category for view in described.views) == sorted({*town} - {"rare"})


def test_two_columns_of_one_name_are_both_read():
    members = np.arange(100) >= 50
    table = pd.DataFrame({"a": np.zeros(100), "b": members * 1.0}).set_axis(["x", "x"], axis=1)
    assert group(table, members).contrasts[0].text == "x averages 1 instead of 0"


def test_many_rows_are_counted_in_full_and_described_by_a_sample(monkeypatch):
    x = uniform(5000)
    monkeypatch.setattr(sys.modules["dafh.explanation.explain"], "_MOST_ROWS", 500)
    found = group(pd.DataFrame({"x": x}), x > 0.8, sensitive_features=pd.DataFrame({"high": x > 0.9}))
    assert found.rows == (x > 0.8).sum()
    assert found.share == pytest.approx((x > 0.8).mean())
    assert found.rule.text.startswith("x is 0.8")
    assert {member.share for member in found.members} == {
        (x > 0.9).sum() / found.rows,
        ((x > 0.8) & (x <= 0.9)).sum() / found.rows,
    }


# ---- views ----


def test_values_without_gaps_standard_scores_and_ranks():
    described = Described.of(pd.DataFrame({"x": [1.0, 5.0, np.nan, 9.0]}))
    assert described.views == [View("x"), View("x", is_gap=True)]
    np.testing.assert_array_equal(described.values, [[1, 0], [5, 0], [5, 1], [9, 0]])
    np.testing.assert_array_equal(described.ranks, [[0, 0], [1, 0], [1, 1], [2, 0]])
    np.testing.assert_allclose(described.standardized.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(described.standardized.std(axis=0), 1)


def test_a_constant_column_has_standard_scores_of_zero():
    np.testing.assert_array_equal(Described.of(pd.DataFrame({"x": [3, 3, 3]})).standardized, 0)


def test_flags_in_words():
    assert View("job", "cook").holds(True) == "job is cook"
    assert View("job", "cook").holds(False) == "job is not cook"
    assert View("job", is_gap=True).holds(False) == "job is not missing"
    assert View("job", "x" * 100).holds(True) == "job is " + "x" * 59 + "…"


# ---- classifiers ----


def test_effects_are_changes_per_standard_deviation_largest_first():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=2000), "b": 10 * rng.normal(size=2000), "c": rng.normal(size=2000)})
    model = KnownGroups(np.arange(2000) % 2, own=[1.0, 0.2, 0.5], pooled=[0.2, 0.05, 0.5])
    a_wide, a_narrow = explain(model, X).groups[0].effects
    assert (a_wide.column, a_narrow.column) == (
        "b",
        "a",
    )  # Per unit b has the smaller effect, per deviation the larger.
    assert a_wide.own == pytest.approx(0.2 * X["b"].std(), rel=0.02)
    assert a_narrow.pooled == pytest.approx(0.2, rel=0.05)
    assert a_wide.label == "yes"


def test_the_difference_of_classifiers_is_their_mean_distance_in_log_odds():
    X = pd.DataFrame({"one": np.ones(200), "x": np.linspace(-1, 1, 200)})
    model = KnownGroups(np.arange(200) % 2, own=[0.5, 0], pooled=[0.2, 0])
    for found in explain(model, X).groups:
        assert found.difference == pytest.approx(0.3)
        assert found.effects == ()


def test_classes_in_another_order_are_compared_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=400)})
    model = KnownGroups(np.arange(400) % 2, own=[1.0], pooled=[1.0])
    probabilities = model.pooled_.predict_proba
    reversed_order = {"classes_": model.classes_[::-1], "predict_proba": lambda self, X: probabilities(X)[:, ::-1]}
    model.pooled_ = type("Reversed", (), reversed_order)()
    assert explain(model, X).groups[0].difference == pytest.approx(0, abs=1e-9)


def test_classifiers_of_other_classes_are_not_compared():
    X = pd.DataFrame({"a": uniform()})
    model = KnownGroups(np.arange(400) % 2, own=[1.0], pooled=[1.0])
    model.pooled_.classes_ = np.array(["no", "maybe"])
    assert [found.difference for found in explain(model, X).groups] == [None, None]


def test_of_many_classes_the_one_that_differs_most_is_named():
    X = pd.DataFrame({"a": uniform()})
    model = KnownGroups(np.arange(400) % 2, own=[1.0], pooled=[1.0])
    model.classes_ = model.pooled_.classes_ = np.array(["x", "y", "z"])
    third = 0.2 + 0.3 * X["a"].to_numpy()
    model.predict_proba = lambda X: np.column_stack([np.full(400, 0.1), 0.9 - third, third])
    model.pooled_.predict_proba = lambda X: np.tile([0.1, 0.6, 0.3], (400, 1))
    assert {effect.label for effect in explain(model, X).groups[0].effects} == {"z"}
    assert "log-odds of class z" in explain(model, X).groups[0].lines()[-1]


def test_certain_classifiers_have_finite_differences():
    X = pd.DataFrame({"a": np.linspace(-9000, 9000, 200)})
    found = explain(KnownGroups(np.arange(200) % 2, own=[1.0], pooled=[-1.0]), X).groups[0]
    assert found.difference == pytest.approx(2 * np.log(1e6), rel=0.05)


def test_a_group_of_few_rows_has_no_effects_but_a_difference():
    X = pd.DataFrame({"a": uniform(100), "b": uniform(100, seed=1)})
    model = KnownGroups(np.arange(100) < 3, own=[2.0, 0], pooled=[0.0, 0])
    assert explain(model, X).groups[1].effects == ()
    assert explain(model, X).groups[1].difference > 0
    assert explain(model, X).groups[0].effects[0].column == "a"


# ---- the rules of a model ----


def test_a_model_with_rules_is_described_by_its_own_rules_exactly():
    case = rules_case()
    final = case.model[-1]
    words = explain(case.model, case.X)
    assert words.exact
    for number, described in enumerate(words.groups):
        rule = described.rule
        assert rule.text == final.rules_.tree.rule(number)
        assert (rule.precision, rule.recall, rule.exact) == (1.0, 1.0, True)
        assert described.lines()[0] == f"Exactly the rows for which {rule.text}."
    assert "Approximate" not in str(words)
    assert words.to_dict()["groups"][0]["rule"]["exact"] is True


def test_the_rule_that_is_told_holds_for_the_rows_of_the_group_and_no_others():
    case = rules_case()
    told = [described.rule.text for described in explain(case.model, case.X).groups]
    assert told == ["job is clerk or pilot", "job is not clerk or pilot"]
    first = case.model[-1].predict_group(case.model[:-1].transform(case.X)) == 0
    np.testing.assert_array_equal(first, case.X["job"].isin(["clerk", "pilot"]))


def test_gains_of_rules_are_those_of_the_guard():
    case = rules_case()
    gains = case.model[-1].guard_report_.table["gain"]
    for described, gain in zip(explain(case.model, case.X).groups, gains, strict=True):
        assert described.gain == gain
        assert described.lines()[1] == (
            "Gain of its classifier over the pooled classifier on calibration rows: "
            f"{100 * gain:+.2f} percentage points."
        )


def test_a_rule_is_told_also_where_all_rows_or_none_are_in_its_group():
    case = rules_case()
    cooks = case.X[case.X["job"] == "cook"]
    other, cook = explain(case.model, cooks).groups
    assert (other.rows, cook.share) == (0, 1)
    assert other.lines()[0].startswith("Exactly the rows for which job is clerk or pilot")
    assert cook.lines()[0].startswith("Exactly the rows for which job is not clerk or pilot")


def test_groups_that_add_nothing_are_said_to_before_anything_else():
    case = additive_case()
    words = explain(case.model, case.X)
    said = "Groups add nothing to the pooled classifier: keep one scorecard for all rows."
    assert str(words).splitlines()[0] == words.worth == words.to_dict()["worth"] == said
    (only,) = words.groups
    assert (only.rule, only.gain, words.exact) == (None, None, False)


def test_a_network_has_approximate_rules_and_no_gains_of_rules():
    case = network_case()
    words = explain(case.model, case.X)
    assert not words.exact
    assert "Exactly" not in str(words)
    assert all(described.gain is None for described in words.groups)
    assert words.worth.startswith("2 groups")


def test_models_that_were_told_their_groups_claim_no_worth():
    assert explain(KnownGroups(np.arange(100) % 2), pd.DataFrame({"x": uniform(100)})).worth is None
