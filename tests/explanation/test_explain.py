"""Groups in words: what is said must be so."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dafh import AuditResult, DecoupledClassifier, explain, tabular_pipeline
from dafh.exceptions import InputError
from dafh.explanation import Explanation, stability
from dafh.partitions import AttributePartition, RandomPartition
from models import rules_case


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
    assert young.rule.text == "age is 40 or less"
    assert old.rule.text == "age is 41 or more"
    assert young.rule.precision == young.rule.recall == 1
    assert young.contrasts[0].column == "age"
    assert young.rows + old.rows == 2000
    assert young.share + old.share == pytest.approx(1)


def test_an_interval_is_said_as_one():
    rule = words_for(lambda X: X["age"].between(30, 50)).groups[1].rule
    assert rule.text == "age is between 30 and 50"


def test_categories_gaps_and_dates_are_said_as_such():
    assert words_for(lambda X: X["job"] == "cook").groups[1].rule.text == "job is cook"
    assert words_for(lambda X: X["income"].isna()).groups[1].rule.text == "income is missing"
    late = words_for(lambda X: X["since"] > "2021-06-30").groups[1].rule.text
    assert late == "since is 2021-07-01 or later"
    assert words_for(lambda X: X["since"] > "2021-12-31").groups[0].rule.text == "since is 2021-12-31 or earlier"
    assert words_for(lambda X: X["income"].notna()).groups[1].rule.text == "income is not missing"


def test_alternatives_are_kept_apart():
    text = words_for(lambda X: (X["job"] == "cook") | (X["age"] > 60)).groups[1].rule.text
    assert "; or " in text
    assert "job is cook" in text
    assert "age is 61 or more" in text


def test_fidelity_is_measured_on_rows_that_did_not_make_the_rule():
    rng = np.random.default_rng(1)
    coin = rng.random(2000) < 0.5
    rule = words_for(lambda X: coin).groups[1].rule
    assert rule is None or rule.precision < 0.6


def test_contrasts_are_true_and_name_each_column_once():
    table = people()
    group = words_for(lambda X: X["job"] == "cook", table).groups[1]
    assert group.contrasts[0].text == "job is cook in 100.0% of rows instead of 0.0%"
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


def test_a_group_served_by_the_pooled_classifier_says_so():
    words = words_for(lambda X: X["age"] > 40, serves=(2, 0))
    assert [group.served_by for group in words.groups] == ["the pooled classifier", "the classifier of group 0"]
    assert "Its classifier" not in str(words)  # The heading has said it.


def test_few_rows_and_one_group_are_no_trouble():
    assert words_for(lambda X: X["age"] * 0, people(5)).groups[0].rule is None
    assert [group.rows for group in words_for(lambda X: X["age"] > 0, people(1)).groups] == [0, 1]
    with pytest.raises(InputError, match="no rows"):
        explain(FakeGroups(lambda X: X["age"]), people(1).iloc[:0])
    with pytest.raises(InputError, match="n_contrasts"):
        explain(FakeGroups(lambda X: X["age"] > 0), people(), n_contrasts=0)


def test_arrays_and_pipelines_are_described_by_the_columns_they_are_given():
    table = people(600)
    y = np.where(table["age"] > 40, "yes", "no")
    case = rules_case()
    words = explain(case.model, case.X)
    said = {contrast.column for group in words.groups for contrast in group.contrasts}
    assert "job" in said
    assert said <= set(case.X.columns)
    arrays = DecoupledClassifier(random_state=0).fit(table[["age"]].to_numpy(float), y)
    assert explain(arrays, table[["age"]].to_numpy(float)).groups[0].rule.text.startswith("column 0 is ")


def test_everything_is_plain_and_printable():
    words = words_for(lambda X: X["age"] > 40)
    plain = words.to_dict()
    assert plain["groups"][0]["rule"]["text"] == "age is 40 or less"
    assert plain["groups"][0]["lines"][0].startswith("Approximate rule: age is 40 or less.")
    assert plain["stability"] is None
    assert "\n  Approximate rule: age is 40 or less." in str(words)
    assert "<p>" in words._repr_html_()


def test_names_cannot_become_markup_in_a_notebook():
    table = people(200).rename(columns={"age": "<script>alert(1)</script>"})
    page = words_for(lambda X: X.iloc[:, 0] > 40, table)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_stability_is_one_for_groups_that_no_seed_moves_and_small_for_chance():
    table = people(400)[["age"]].to_numpy(float)
    y = (table[:, 0] > 40).astype(int)
    same = stability(DecoupledClassifier(), np.r_[table * 0, table * 0 + 100], np.r_[y, y], seeds=(0, 1, 2))
    assert same == 1
    chance = stability(DecoupledClassifier(RandomPartition()), np.arange(800.0)[:, None], np.r_[y, y], seeds=(0, 1, 2))
    assert abs(chance) < 0.05
    with pytest.raises(InputError, match="two different seeds"):
        stability(DecoupledClassifier(), table, y, seeds=(1, 1))


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
    bound = float(group.rule.text.removeprefix("x is ").removesuffix(" or more").replace(",", ""))
    truly = values > threshold
    named = values >= bound
    assert (named & truly).sum() / named.sum() == pytest.approx(group.rule.precision, abs=0.03)
    assert group.rule.precision > 0.97


def test_hours_are_said_where_they_matter():
    table = pd.DataFrame({"when": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400), unit="h")})
    rule = words_for(lambda X: X["when"] >= "2020-01-08 22:00", table).groups[1].rule
    assert rule.text == "when is 2020-01-08 22:00:00 or later"


def test_time_zones_far_dates_and_huge_numbers_are_described():
    table = pd.DataFrame(
        {
            "zoned": pd.date_range("2020-01-01", periods=200, tz="Europe/Oslo"),
            "far": np.array(["9999-12-31", "2020-01-01"] * 100, "datetime64[s]"),
            "huge": [1e300, 1.0] * 100,
        }
    )
    assert words_for(lambda X: np.arange(len(X)) > 100, table).groups[1].rule.text.startswith("zoned is 2020-04-1")


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
def test_groups_by_attributes_are_explained_audited_and_compared_in_any_pipeline(wrap, option):
    X, y, side = sided()
    model = wrap(DecoupledClassifier(AttributePartition(), random_state=0))
    assert stability(model, X, y, sensitive_features=side, seeds=(0, 1)) == 1
    model.fit(X, y, **{option: side})
    words = explain(model, X, sensitive_features=side)
    assert [group.rows for group in words.groups] == side["side"].value_counts()[side["side"].unique()].tolist()
    assert words.groups[0].effects[0].column == "a"
    assert AuditResult.of(model, X, y, sensitive_features=side).matrix.accuracy > 0.9
    with pytest.raises(InputError, match="sensitive_features"):
        explain(model, X)
    with pytest.raises(InputError, match="sensitive_features"):
        stability(model, X, y)


def test_stability_of_a_model_that_takes_no_attributes_leaves_them_out():
    case = rules_case()
    assert stability(case.model, case.X, case.y, sensitive_features=case.sensitive, seeds=(0, 1)) > 0.9


def test_stability_passes_options_of_fit_on():
    X, y, _ = sided(200)
    model = Pipeline([("model", DecoupledClassifier(RandomPartition()))])
    assert stability(model, X, y, model__sample_weight=np.ones(200)) < 0.5
    with pytest.raises(ValueError, match="weight"):
        stability(model, X, y, model__sample_weight=-np.ones(200))


def test_rows_of_an_unknown_value_are_rows_in_no_group():
    X, y, side = sided()
    model = DecoupledClassifier(AttributePartition(), random_state=0).fit(X, y, sensitive_features=side)
    unseen = side.copy()
    unseen.loc[:99, "side"] = "middle"
    *_, rest = explain(model, X, sensitive_features=unseen).groups
    assert rest.heading == "Rows in no group: 100 rows (16.7% of all), served by the pooled classifier"
    assert any(member.name == "side = middle" and member.share == 1 for member in rest.members)


def test_a_group_of_a_partition_is_called_by_its_name():
    X, y, side = sided()
    model = DecoupledClassifier(AttributePartition(), random_state=0).fit(X, y, sensitive_features=side)
    names = {group.name for group in explain(model, X, sensitive_features=side).groups}
    assert {name.split("(")[1] for name in names} == {"side=left)", "side=right)"}


def test_a_group_without_rows_has_a_heading_only():
    first, second, third = words_for(lambda X: X["age"] > 40, serves=(0, 1, 2)).groups
    assert third.heading == "Group 2: 0 rows (0.0% of all), served by its own classifier"
    assert third.lines() == []
    assert first.lines()
    assert second.lines()


def test_all_rows_in_one_group_need_no_rule():
    (only,) = words_for(lambda X: X["age"] * 0, serves=(1,)).groups
    assert only.heading == "Group 0: 2,000 rows (100.0% of all), served by the pooled classifier"
    assert only.lines() == []


def test_nothing_is_said_of_classifiers_that_cannot_be_compared():
    group = words_for(lambda X: X["age"] > 40).groups[0]  # FakeGroups has no probabilities.
    assert group.difference is None
    assert not any("classifier" in line for line in group.lines())
    assert not Explanation((group,)).alike


def test_classifiers_that_differ_in_no_single_column_are_not_called_alike():
    X, y, side = sided(600)
    y = (np.random.default_rng(1).random(600) < np.where(side["side"] == "left", 0.2, 0.8)).astype(int)
    model = DecoupledClassifier(AttributePartition(), LogisticRegression(C=1e-4)).fit(X, y, sensitive_features=side)
    group = explain(model, X, sensitive_features=side).groups[0]
    assert group.effects == ()
    assert group.difference > 1
    assert f"differ from those of the pooled classifier by {group.difference:.2f} on average" in group.lines()[-2]


def test_classifiers_that_are_alike_are_called_so():
    X, _, side = sided(600)
    y = side.groupby("side").cumcount() % 2  # Half of each side, whatever the columns.
    always = DecoupledClassifier(AttributePartition(), LogisticRegression(C=1e-9)).fit(X, y, sensitive_features=side)
    words = explain(always, X, sensitive_features=side)
    assert words.alike
    assert "Its classifier barely differs from the pooled classifier." in words.groups[0].lines()


# ---- unusual columns ----


def test_booleans_are_categories():
    married = np.random.default_rng(0).random(400) < 0.5
    for values in (married, pd.array(married, dtype="boolean"), np.where(married, True, None)):
        group = words_for(lambda X: married, pd.DataFrame({"married": values})).groups[1]
        assert group.contrasts[0].text == "married is True in 100.0% of rows instead of 0.0%"
        assert group.rule.text in ("married is True", "married is not False", "married is not missing")


def test_averages_are_those_of_the_known_values():
    table = pd.DataFrame({"x": [1.0, 3.0, np.nan, np.nan] * 25, "g": [0, 0, 0, 1] * 25})
    table.loc[3::4, "x"] = [10.0, np.nan] * 12 + [10.0]
    texts = [contrast.text for contrast in words_for(lambda X: X["g"], table).groups[1].contrasts]
    assert "x averages 10 instead of 2" in texts


def test_the_value_that_a_group_has_more_of_is_the_one_that_is_named():
    X, y, side = sided()
    model = DecoupledClassifier(AttributePartition(), random_state=0).fit(X, y, sensitive_features=side)
    for group in explain(model, X, sensitive_features=side).groups:
        value = group.name.split("=")[1].rstrip(")")
        assert group.lines()[-1].startswith(f"Sensitive attributes: side = {value} in 100.0% of rows")


@pytest.mark.parametrize("empty", [np.nan, None, pd.NaT], ids=["nan", "none", "nat"])
def test_columns_without_values_and_constant_columns_are_never_mentioned(empty):
    half = np.arange(200) >= 100
    table = pd.DataFrame({"empty": [empty] * 200, "same": 7, "x": np.arange(200.0)})
    words = words_for(lambda X: half, table)
    assert words.groups[1].rule.text.startswith("x is ")
    assert "empty" not in str(words)
    assert "same" not in str(words)
    assert words_for(lambda X: half, table[["empty"]]).groups[1].rule is None


def test_nullable_numbers_are_described():
    numbers = pd.array([*range(199), None], dtype="Int64")
    assert (
        words_for(lambda X: np.arange(200) > 99, pd.DataFrame({"x": numbers})).groups[0].rule.text.startswith("x is ")
    )


def test_polars_frames_are_described_like_pandas_frames():
    polars = pytest.importorskip("polars")
    table = people(600)[["age", "job"]].assign(old=lambda t: t["age"] > 60)
    y = np.where(table["age"] > 40, "yes", "no")
    model = tabular_pipeline(DecoupledClassifier(random_state=0)).fit(table, y)
    one, other = explain(model, table), explain(model, polars.DataFrame({name: table[name] for name in table}))
    assert str(one) == str(other)


def test_attributes_of_another_length_are_refused():
    with pytest.raises(InputError, match="3 rows"):
        explain(FakeGroups(lambda X: X["age"] > 40), people(10), sensitive_features=["f", "m", "f"])
