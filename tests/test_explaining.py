"""Groups in words: what is said must be so."""

import numpy as np
import pandas as pd
import pytest

from dafh import DAFHClassifier, DecoupledClassifier, explain, tabular_pipeline
from dafh.exceptions import InputError
from dafh.explanation.stability import stability
from dafh.explanation.words import Effect, Explanation
from dafh.partitions import AttributePartition


class FakeGroups:
    """Groups by a rule that is known, in place of a trained model."""

    classes_ = np.array([0, 1])

    def __init__(self, group_of, serves=(0, 1)):
        self.group_of = group_of
        self.serves_ = np.array(serves)
        self.n_groups_ = len(serves)
        self.pooled_ = self

    def predict_group(self, X):
        return np.asarray(self.group_of(X)).astype(int)

    def predict_all(self, X):
        return np.zeros((len(X), self.n_groups_ + 1), int)


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


def words_for(group_of, table=None, **options):
    table = people() if table is None else table
    return explain(FakeGroups(group_of, **options), table)


def test_a_simple_rule_is_found_and_said_with_values_that_occur():
    young, old = words_for(lambda X: X["age"] > 40).groups
    assert young.rule.text == "age up to 40"
    assert old.rule.text == "age from 41"
    assert young.rule.precision == young.rule.recall == 1
    assert young.contrasts[0].column == "age"
    assert young.rows + old.rows == 2000
    assert young.share + old.share == pytest.approx(1)


def test_an_interval_is_said_as_one():
    rule = words_for(lambda X: X["age"].between(30, 50)).groups[1].rule
    assert rule.text == "age 30 to 50"


def test_categories_gaps_and_dates_are_said_as_such():
    assert words_for(lambda X: X["job"] == "cook").groups[1].rule.text == "job is cook"
    assert words_for(lambda X: X["income"].isna()).groups[1].rule.text == "income is missing"
    late = words_for(lambda X: X["since"] > "2021-06-30").groups[1].rule.text
    assert late == "since from 2021-07-01"


def test_alternatives_are_kept_apart():
    text = words_for(lambda X: (X["job"] == "cook") | (X["age"] > 60)).groups[1].rule.text
    assert "; or " in text
    assert "job is cook" in text
    assert "age from 61" in text


def test_fidelity_is_measured_on_rows_that_did_not_make_the_rule():
    rng = np.random.default_rng(1)
    coin = rng.random(2000) < 0.5
    rule = words_for(lambda X: coin).groups[1].rule
    assert rule is None or rule.precision < 0.6


def test_contrasts_are_true_and_name_each_column_once():
    table = people()
    group = words_for(lambda X: X["job"] == "cook", table).groups[1]
    assert group.contrasts[0].text == "job is cook for 100.0% (others 0.0%)"
    columns = [contrast.column for contrast in group.contrasts]
    assert len(columns) == len(set(columns))


def test_who_is_in_a_group_is_counted():
    table = people()
    sex = np.where(table["age"] > 40, "f", "m")
    model = FakeGroups(lambda X: X["age"] > 50)
    old = explain(model, table, sensitive_features=pd.DataFrame({"sex": sex})).groups[1]
    assert {member.name: member.share for member in old.members} == {"sex = f": 1.0, "sex = m": 0.0}
    assert old.members[0].overall == pytest.approx((sex == "f").mean())


def test_effects_of_linear_classifiers_are_their_weights():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=6000), "b": rng.normal(size=6000)})
    side = rng.choice(["left", "right"], 6000)
    logit = np.where(side == "left", 2 * X["a"], -2 * X["a"]) + X["b"]
    y = (rng.random(6000) < 1 / (1 + np.exp(-logit))).astype(int)
    attributes = pd.DataFrame({"side": side})
    model = DecoupledClassifier(AttributePartition(), random_state=0).fit(X, y, sensitive_features=attributes)
    for group in explain(model, X, sensitive_features=attributes).groups:
        (effect, *rest) = group.effects
        own = model.estimators_[group.group].coef_[0]
        assert effect.column == "a"
        assert effect.own == pytest.approx(own[0] * X["a"].std(), rel=0.05)
        assert effect.pooled == pytest.approx(model.pooled_.coef_[0, 0], abs=0.05)
        assert all(abs(other.own - other.pooled) < 1 for other in rest)


@pytest.mark.parametrize(
    ("own", "pooled", "words"),
    [(1.0, 0.2, "age counts more: +1.00 instead of +0.20"), (0.1, -0.8, "the other way round"), (0.1, 0.5, "less")],
)
def test_effects_in_words(own, pooled, words):
    assert words in Effect("age", own, pooled, 1).text


def test_a_group_served_by_the_pooled_classifier_says_so():
    words = words_for(lambda X: X["age"] > 40, serves=(2, 0))
    assert [group.served_by for group in words.groups] == ["the pooled classifier", "the classifier of group 0"]
    assert "Its classifier is the pooled one." in str(words)


def test_few_rows_and_one_group_are_no_trouble():
    assert words_for(lambda X: X["age"] * 0, people(5)).groups[0].rule is None
    assert len(words_for(lambda X: X["age"] > 0, people(1)).groups) == 2
    with pytest.raises(InputError, match="no rows"):
        explain(FakeGroups(lambda X: X["age"]), people(1).iloc[:0])
    with pytest.raises(InputError, match="n_contrasts"):
        explain(FakeGroups(lambda X: X["age"] > 0), people(), n_contrasts=0)


def test_arrays_and_pipelines_are_described_by_the_columns_they_are_given():
    table = people(600)
    y = np.where(table["age"] > 40, "yes", "no")
    quick = {"n_replicas": 2, "max_epochs": 2, "random_state": 0, "guard": None}
    model = tabular_pipeline(DAFHClassifier(**quick)).fit(table[["job", "income"]], y)
    words = explain(model, table[["job", "income"]])
    said = " ".join(contrast.column for group in words.groups for contrast in group.contrasts)
    assert set(said.split()) <= {"job", "income"}
    arrays = DecoupledClassifier(random_state=0).fit(table[["age"]].to_numpy(float), y)
    assert "0" in explain(arrays, table[["age"]].to_numpy(float)).groups[0].rule.text


def test_everything_is_plain_and_printable():
    words = words_for(lambda X: X["age"] > 40)
    plain = words.to_dict()
    assert plain["groups"][0]["rule"]["text"] == "age up to 40"
    assert plain["stability"] is None
    assert "Roughly: age up to 40" in str(words)
    assert "<p>" in words._repr_html_()


def test_names_cannot_become_markup_in_a_notebook():
    table = people(200).rename(columns={"age": "<script>alert(1)</script>"})
    page = words_for(lambda X: X.iloc[:, 0] > 40, table)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_stability_is_one_for_groups_that_no_seed_moves_and_small_for_chance():
    from dafh.partitions import RandomPartition

    table = people(400)[["age"]].to_numpy(float)
    y = (table[:, 0] > 40).astype(int)
    same = stability(DecoupledClassifier(), np.r_[table * 0, table * 0 + 100], np.r_[y, y], seeds=(0, 1, 2))
    assert same == 1
    chance = stability(DecoupledClassifier(RandomPartition()), np.arange(800.0)[:, None], np.r_[y, y], seeds=(0, 1, 2))
    assert abs(chance) < 0.05
    with pytest.raises(InputError, match="two different seeds"):
        stability(DecoupledClassifier(), table, y, seeds=(1, 1))


@pytest.mark.parametrize(("value", "word"), [(0.1, "much"), (0.6, "partly"), (0.95, "hardly"), (None, "not measured")])
def test_stability_in_words(value, word):
    assert word in Explanation((), value).stability_text()


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
    bound = float(group.rule.text.removeprefix("x from ").replace(",", ""))
    truly = values > threshold
    named = values >= bound
    assert (named & truly).sum() / named.sum() == pytest.approx(group.rule.precision, abs=0.03)
    assert group.rule.precision > 0.97


def test_hours_are_said_where_they_matter():
    table = pd.DataFrame({"when": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400), unit="h")})
    rule = words_for(lambda X: X["when"] >= "2020-01-08 22:00", table).groups[1].rule
    assert rule.text == "when from 2020-01-08 22:00:00"


def test_time_zones_far_dates_and_huge_numbers_are_described():
    table = pd.DataFrame(
        {
            "zoned": pd.date_range("2020-01-01", periods=200, tz="Europe/Oslo"),
            "far": np.array(["9999-12-31", "2020-01-01"] * 100, "datetime64[s]"),
            "huge": [1e300, 1.0] * 100,
        }
    )
    assert words_for(lambda X: np.arange(len(X)) > 100, table).groups[1].rule.text.startswith("zoned from 2020-04-1")
