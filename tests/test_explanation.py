"""Groups in words: every number and every word is that of the data."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dafh import AuditResult, DAFHClassifier, DecoupledClassifier, Explanation, Scorecard, explain
from dafh.exceptions import InputError
from dafh.explanation import GroupInWords, Rule, Stability, adds_nothing, stability, worth_of_groups
from dafh.partitions import IntersectionPartition
from models import additive_case, network_case, rules_case
from rule_words import groups_by_words


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


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["cook", "clerk", "pilot"], n, p=[0.5, 0.3, 0.2]),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.normal(3000, 500, n)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
        }
    )


def words_for(group_of, table=None, serves=(0, 1), **options):
    """What is said about groups by a rule that is known, in place of a trained model."""
    table = people() if table is None else table
    model = KnownGroups(np.asarray(group_of(table)).astype(int), n_groups=len(serves))
    model.serves_ = np.array(serves)
    return explain(model, table, **options)


def test_a_simple_rule_is_found_and_said_with_values_that_occur():
    young, old = words_for(lambda X: X["age"] > 40).groups
    assert young.rule.text == "age is 40 or less"
    assert old.rule.text == "age is above 40"
    assert young.rule.precision == young.rule.recall == 1
    assert young.contrasts[0]["column"] == "age"
    assert young.rows + old.rows == 2000
    assert young.share + old.share == pytest.approx(1)


def test_an_interval_is_said_as_one():
    rule = words_for(lambda X: X["age"].between(30, 50)).groups[1].rule
    assert rule.text == "age is above 29, up to 50"


def test_categories_gaps_and_dates_are_said_as_such():
    assert words_for(lambda X: X["job"] == "cook").groups[1].rule.text == "job is cook"
    assert words_for(lambda X: X["income"].isna()).groups[1].rule.text == "income is missing"
    late = words_for(lambda X: X["since"] > "2021-06-30").groups[1].rule.text
    assert late.startswith(("since is above 2021-06-", "since is above 2021-07-"))
    early = words_for(lambda X: X["since"] > "2021-06-30").groups[0].rule.text
    assert early == late.replace("above ", "") + " or less"
    assert words_for(lambda X: X["income"].notna()).groups[1].rule.text == "income is not missing"


def test_fidelity_is_measured_on_rows_that_did_not_make_the_rule():
    rng = np.random.default_rng(1)
    coin = rng.random(2000) < 0.5
    rule = words_for(lambda X: coin).groups[1].rule
    assert rule is None or rule.precision < 0.6


def test_contrasts_are_true_and_name_each_column_once():
    table = people()
    group = words_for(lambda X: X["job"] == "cook", table).groups[1]
    assert group.contrasts[0]["text"] == "job is cook in 100.0% of rows instead of 0.0%"
    columns = [contrast["column"] for contrast in group.contrasts]
    assert len(columns) == len(set(columns))


def test_who_is_in_a_group_is_counted():
    table = people()
    sex = np.where(table["age"] > 40, "f", "m")
    old = words_for(lambda X: X["age"] > 50, table, sensitive_features=pd.DataFrame({"sex": sex})).groups[1]
    assert {member["name"]: member["share"] for member in old.members} == {"sex = f": 1.0, "sex = m": 0.0}
    assert old.members[0]["overall"] == pytest.approx((sex == "f").mean())


def test_a_group_served_by_the_pooled_classifier_says_so():
    words = words_for(lambda X: X["age"] > 40, serves=(2, 0))
    assert [group.served_by for group in words.groups] == ["the pooled classifier", "the classifier of group 0"]


def test_names_cannot_become_markup_in_a_notebook():
    table = people(200).rename(columns={"age": "<script>alert(1)</script>"})
    page = words_for(lambda X: X.iloc[:, 0] > 40, table)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        (np.round(np.arange(100, 100.8, 0.001), 3), 100.4),
        (np.arange(2_000_000_000, 2_000_000_200), 2_000_000_100),
        (1e15 + np.arange(200.0), 1e15 + 100),
        (np.linspace(990, 1010, 400), 999.6),
        (np.array([1e-9, 2e-9, 3e-9, 4e-9] * 50), 2e-9),
    ],
)
def test_a_rule_as_it_is_written_names_the_rows_it_was_measured_on(values, threshold):
    values = np.random.default_rng(0).permutation(values)
    group = words_for(lambda X: X["x"] > threshold, pd.DataFrame({"x": values})).groups[1]
    bound = float(group.rule.text.removeprefix("x is above ").replace(",", ""))
    truly = values > threshold
    named = values > bound
    assert (named & truly).sum() / named.sum() == pytest.approx(group.rule.precision, abs=0.03)
    assert group.rule.precision > 0.97


# ---- unusual models ----


def sided(n=600, seed=0):
    """Two sides on which one column has opposite effects, known only as a sensitive attribute."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    side = pd.DataFrame({"side": rng.choice(["left", "right"], n)})
    y = np.where(side["side"] == "left", X["a"] > 0, X["a"] < 0).astype(int)
    return X, y, side


def nested(model):
    inside = Pipeline([("scale", StandardScaler()), ("model", model)])
    return Pipeline([("first", StandardScaler()), ("inside", inside)])


@pytest.mark.parametrize(
    ("wrap", "option"),
    [
        (lambda model: model, "sensitive_features"),
        (lambda model: Pipeline([("model", model)]), "model__sensitive_features"),
        (nested, "inside__model__sensitive_features"),
    ],
    ids=["alone", "one step", "pipeline in a pipeline"],
)
def test_groups_by_attributes_are_explained_and_audited_in_any_pipeline(wrap, option):
    X, y, side = sided()
    model = wrap(DecoupledClassifier(IntersectionPartition(), random_state=0))
    model.fit(X, y, **{option: side})
    words = explain(model, X, sensitive_features=side)
    assert [group.rows for group in words.groups] == side["side"].value_counts()[side["side"].unique()].tolist()
    assert words.groups[0].effects[0]["column"] == "a"
    assert AuditResult.of(model, X, y, sensitive_features=side).matrix.accuracy > 0.9
    with pytest.raises(InputError, match="sensitive_features"):
        explain(model, X)


def test_rows_of_an_unknown_value_are_rows_in_no_group():
    X, y, side = sided()
    model = DecoupledClassifier(IntersectionPartition(), random_state=0).fit(X, y, sensitive_features=side)
    unseen = side.copy()
    unseen.loc[:99, "side"] = "middle"
    *_, rest = explain(model, X, sensitive_features=unseen).groups
    assert (rest.rows, rest.served_by) == (100, "the pooled classifier")
    assert any(member["name"] == "side = middle" and member["share"] == 1 for member in rest.members)


# ---- unusual columns ----


@pytest.mark.parametrize("empty", [np.nan, None, pd.NaT], ids=["nan", "none", "nat"])
def test_columns_without_values_and_constant_columns_are_never_mentioned(empty):
    half = np.arange(200) >= 100
    table = pd.DataFrame({"empty": [empty] * 200, "same": 7, "x": np.arange(200.0)})
    words = words_for(lambda X: half, table)
    assert words.groups[1].rule.text.startswith("x is ")
    assert "empty" not in str(words)
    assert "same" not in str(words)
    assert words_for(lambda X: half, table[["empty"]]).groups[1].rule is None


def group(table, members, **options):
    """What is said about the rows for which `members` holds."""
    return explain(KnownGroups(np.asarray(members).astype(int)), table, **options).groups[1]


def uniform(n=400, seed=0):
    return np.random.default_rng(seed).uniform(size=n)


# ---- rules ----


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


# ---- contrasts ----


def test_differences_are_in_standard_deviations_and_have_the_sign_of_the_group():
    x = np.r_[np.zeros(100), np.full(100, 10.0)]
    (contrast,) = group(pd.DataFrame({"x": x}), x > 5).contrasts
    assert contrast == {"column": "x", "text": "x averages 10 instead of 0", "difference": 2.0}
    (other,) = group(pd.DataFrame({"x": x}), x < 5).contrasts
    assert other["difference"] == -2.0


def test_the_largest_differences_come_first_and_small_ones_are_left_out():
    rng = np.random.default_rng(0)
    members = np.arange(4000) % 2 == 0
    table = pd.DataFrame({f"shift {s}": rng.normal(size=4000) + s * members for s in (0.5, 2, 0, 1, 0.4, 0.3)})
    columns = [contrast["column"] for contrast in group(table, members).contrasts]
    assert columns == ["shift 2", "shift 1", "shift 0.5", "shift 0.4"]


# ---- classifiers ----


def test_effects_are_changes_per_standard_deviation_largest_first():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=2000), "b": 10 * rng.normal(size=2000), "c": rng.normal(size=2000)})
    model = KnownGroups(np.arange(2000) % 2, own=[1.0, 0.2, 0.5], pooled=[0.2, 0.05, 0.5])
    a_wide, a_narrow = explain(model, X).groups[0].effects
    # Per unit b has the smaller effect, per deviation the larger.
    assert (a_wide["column"], a_narrow["column"]) == ("b", "a")
    assert a_wide["own"] == pytest.approx(0.2 * X["b"].std(), rel=0.02)
    assert a_narrow["pooled"] == pytest.approx(0.2, rel=0.05)
    assert a_wide["label"] == "yes"


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


def test_of_many_classes_the_one_that_differs_most_is_named():
    X = pd.DataFrame({"a": uniform()})
    model = KnownGroups(np.arange(400) % 2, own=[1.0], pooled=[1.0])
    model.classes_ = model.pooled_.classes_ = np.array(["x", "y", "z"])
    third = 0.2 + 0.3 * X["a"].to_numpy()
    model.predict_proba = lambda X: np.column_stack([np.full(400, 0.1), 0.9 - third, third])
    model.pooled_.predict_proba = lambda X: np.tile([0.1, 0.6, 0.3], (400, 1))
    assert {effect["label"] for effect in explain(model, X).groups[0].effects} == {"z"}


# ---- the rules of a model ----


def test_a_model_with_rules_is_described_by_its_own_rules_exactly():
    case = rules_case()
    words = explain(case.model, case.X)
    assert words.exact
    for number, described in enumerate(words.groups):
        assert described.rule.text == case.model[-1].exceptions_.rules[number]
        assert (described.rule.precision, described.rule.recall, described.rule.exact) == (1.0, 1.0, True)
        table = case.model[-1].guard_report_.table
        assert (described.gain, described.low, described.high) == tuple(table.loc[number, ["gain", "low", "high"]])


def test_the_rule_that_is_told_holds_for_the_rows_of_the_group_and_no_others():
    case = rules_case()
    words = explain(case.model, case.X).groups
    assert [described.rule.text for described in words] == ["job is cook", "everybody else"]
    first = case.model[-1].predict_group(case.model[:-1].transform(case.X)) == 0
    np.testing.assert_array_equal(first, case.X["job"] == "cook")
    assert words[0].lines()[0] == "Exactly the rows for which job is cook."
    assert words[1].lines()[0] == "Everybody else: the rows of no exception above."


def patients(n=3000, seed=0):
    """Rows with three exceptions, in columns of all kinds, with gaps and names that look like parts of a rule."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "town and land": rng.choice(["a or b", "c, d", "missing", "e"], n).astype(object),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
            "dose": rng.lognormal(2, 1, n),
        }
    )
    table.loc[rng.random(n) < 0.15, "dose"] = np.nan
    table.loc[rng.random(n) < 0.1, "town and land"] = None
    effect = 0.1 * (table["age"] - 50)
    effect = effect.where(table["town and land"] != "a or b", -effect)
    effect = effect.where(table["since"] > "2020-06-01", effect + 3)
    effect = effect.where(table["dose"].notna(), -effect - 1)
    return table, (effect + rng.logistic(size=n) > 0).to_numpy()


@pytest.mark.parametrize("n_groups", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_words_alone_give_every_row_the_group_of_the_model_gaps_and_unseen_categories_included(n_groups):
    X, y = patients()
    model = DAFHClassifier(n_groups, guard=None, random_state=0).fit(X, y)
    assert model.n_groups_ == n_groups
    odd = X.head(200).copy()
    odd.loc[:50, "age"] = np.nan
    odd.loc[30:80, "since"] = pd.NaT
    odd.loc[60:120, "town and land"] = "never seen"
    odd.loc[100:150, "dose"] = [0.0, 1e6, np.nan] * 17
    odd.loc[140:, "town and land"] = None
    rows = pd.concat([X, odd], ignore_index=True)
    told = [described.rule.text for described in explain(model, X).groups]
    np.testing.assert_array_equal(groups_by_words(told, rows), model.predict_group(rows))
    assert len(np.unique(model.predict_group(rows))) == n_groups


def test_what_a_rule_says_already_is_no_contrast():
    case = rules_case()
    for described in explain(case.model, case.X).groups:
        assert "job" not in [contrast["column"] for contrast in described.contrasts]


def test_groups_that_add_nothing_are_said_to_before_anything_else():
    case = additive_case()
    words = explain(case.model, case.X)
    assert str(words).splitlines()[0] == words.worth == words.to_dict()["worth"]
    assert "add nothing" in words.worth
    (only,) = words.groups
    assert (only.rule, only.gain, words.exact) == (None, None, False)


def test_a_network_has_approximate_rules_and_no_gains_of_rules():
    case = network_case()
    words = explain(case.model, case.X)
    assert not words.exact
    assert all(described.gain is None for described in words.groups)


# ---- sentences ----


@pytest.mark.parametrize(("difference", "alike"), [(0.0499, True), (0.05, False), (None, False)])
def test_classifiers_are_alike_below_the_smallest_effect(difference, alike):
    close = GroupInWords(0, "Group 0", 9, 0.4, "its own classifier", difference=0.0)
    other = GroupInWords(1, "Group 1", 9, 0.4, "its own classifier", difference=difference)
    assert Explanation((close, other)).alike == alike


def test_an_explanation_is_ready_for_json_whatever_its_labels():
    effect = {"column": "x", "own": 1.0, "pooled": np.nan, "label": np.int64(3), "text": "x"}
    group = GroupInWords(0, "Group 0", 9, np.float64(0.4), "its own classifier", effects=(effect,))
    found = Explanation((group,)).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["groups"][0]["effects"][0]["label"] == 3
    assert found["groups"][0]["effects"][0]["pooled"] is None


@pytest.mark.parametrize(
    ("own", "pooled", "words"),
    [(1.0, 0.2, "a stronger"), (-0.1, -0.8, "a weaker"), (0.1, -0.8, "the opposite"), (0.03, 1, "almost no")],
)
def test_effects_in_words(own, pooled, words):
    X = pd.DataFrame({"age": np.random.default_rng(0).normal(size=2000)})
    (effect,) = explain(KnownGroups(np.arange(2000) % 2, own=[own], pooled=[pooled]), X).groups[0].effects
    assert effect["text"].startswith(f"age has {words} effect ({own:+.1f}"[:-2])


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


# ---- stability ----


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (-0.1, "a lot"),
        (0.44, "a lot"),
        (0.5, "in part"),
        (0.8, "little"),
        (0.949, "little"),
        (0.95, "barely"),
        (1, "barely"),
    ],
)
def test_words_of_stability_fit_the_figure(index, words):
    text = str(Stability(index, 3))
    assert words in text
    assert f"{index:.2f}" in text


def test_groups_by_an_attribute_are_the_same_in_every_sample_and_learned_groups_may_change():
    X, y, side = sided()
    assert stability(DecoupledClassifier(IntersectionPartition()), X, y, sensitive_features=side).rand_index == 1
    noise = np.random.default_rng(0).normal(size=(400, 3))
    labels = (np.arange(400) % 2).astype(int)
    assert stability(DAFHClassifier(4, pooled="linear", random_state=0), noise, labels, n_fits=2).rand_index < 0.8


def test_one_fit_cannot_be_compared():
    with pytest.raises(InputError, match="n_fits must be at least 2"):
        stability(DAFHClassifier(), np.zeros((4, 1)), [0, 1, 0, 1], n_fits=1)
