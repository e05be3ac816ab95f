"""The audit: hand-worked verdicts, laws, hard inputs, and what people see."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dafh import AuditResult, DecoupledClassifier, audit, tabular_pipeline
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition
from dafh.stats import excluded_harm, holm, mcnemar_p, paired_interval, rows_needed, share_interval

COLUMNS = [
    "group",
    "kind",
    "rival",
    "n",
    "own_error",
    "rival_error",
    "gap",
    "low",
    "high",
    "own_worse",
    "own_better",
    "p",
    "p_corrected",
    "verdict",
    "rows_needed",
]


def rows(n=2000, n_groups=2, errors=(0.3, 0.2), pooled_error=0.3, seed=0):
    """Labels, predictions that err at given rates, groups and pooled predictions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    wrong = rng.random((n, n_groups)) < np.resize(errors, n_groups)
    pooled = np.where(rng.random(n) < pooled_error, 1 - y, y)
    return y, np.where(wrong, 1 - y[:, None], y[:, None]), rng.integers(0, n_groups, n), pooled


def run(table, **options):
    y, predictions, groups, pooled = table
    return audit(y, predictions, groups, pooled=pooled, **options)


def verdicts(result):
    return result.to_frame().set_index(["group", "rival"])["verdict"].to_dict()


def test_every_question_is_one_row_with_the_promised_columns():
    frame = run(rows(n_groups=3)).to_frame()
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 3 + 3 * 2
    assert set(frame["kind"]) == {"rationality", "envy"}
    assert set(frame["verdict"]) <= {"satisfied", "violated", "undecided"}


def test_a_small_table_by_hand():
    """Group 0: own right on 12 of 16, pooled on 8; own wins 5, loses 1."""
    y = np.zeros(16, int)
    own = np.array([1] * 4 + [0] * 12)
    pooled = np.array([0] + [1] * 8 + [0] * 7)
    result = audit(y, own[:, None], np.zeros(16, int), pooled=pooled)
    row = result.to_frame().iloc[0]
    assert (row["n"], row["own_worse"], row["own_better"]) == (16, 1, 5)
    assert row["gap"] == pytest.approx(4 / 16)
    assert row["p"] == pytest.approx(mcnemar_p(1, 5)) == pytest.approx(63 / 64)
    assert row["verdict"] == "undecided"
    assert row["rows_needed"] > 16


def test_clear_cases_get_clear_verdicts():
    result = run(rows(4000, errors=(0.1, 0.4)))
    assert verdicts(result) == {
        (0, "pooled"): "satisfied",
        (0, 1): "satisfied",
        (1, "pooled"): "violated",
        (1, 0): "violated",
    }
    assert result.violations == {"point": 2, "significant": 2, "corrected": 2}
    assert result.verdict.sentence == "group 1 is served worse than it could be."


def test_few_rows_are_not_enough_data_and_say_how_many_would_be():
    result = run(rows(60, errors=(0.25, 0.25)))
    frame = result.to_frame()
    assert (frame["verdict"] == "undecided").all()
    assert (frame.loc[frame["gap"] != 0, "rows_needed"] > 60).all()
    assert result.verdict.status == "undecided"
    assert "undecided (about " in str(result)


def test_the_number_of_rows_needed_would_indeed_decide():
    small = run(rows(400, errors=(0.3, 0.27), seed=3)).to_frame().iloc[2]
    assert small["verdict"] == "undecided"
    assert small["gap"] > 0
    factor = int(np.ceil(small["rows_needed"] / small["n"])) + 1
    y, predictions, groups, pooled = (np.repeat(part, factor, axis=0) for part in rows(400, errors=(0.3, 0.27), seed=3))
    assert audit(y, predictions, groups, pooled=pooled).to_frame().iloc[2]["verdict"] == "satisfied"


def test_a_margin_turns_undecided_into_satisfied():
    table = rows(20_000, errors=(0.3, 0.3))
    assert set(verdicts(run(table)).values()) == {"undecided"}
    assert set(verdicts(run(table, margin=0.05)).values()) == {"satisfied"}


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=15)
def test_verdicts_agree_with_tests_and_intervals(seed, n_groups):
    errors = np.random.default_rng(seed).uniform(0.1, 0.5, n_groups)
    frame = run(rows(800, n_groups, errors, seed=seed)).to_frame()
    violated, satisfied = (frame["verdict"] == word for word in ("violated", "satisfied"))
    assert (frame["high"][violated] < 0).all()
    assert (frame["p_corrected"][violated] <= 0.05).all()
    assert (frame["low"][satisfied] >= 0).all()
    assert (frame["p_corrected"] >= frame["p"]).all()
    assert frame["rows_needed"].notna().sum() == (frame["verdict"] == "undecided").sum()


@st.composite
def audits(draw):
    """Audits of any kind: empty groups, groups served by the pooled classifier, weights, margins."""
    seed, n_groups = draw(st.integers(0, 10_000)), draw(st.integers(1, 3))
    rng = np.random.default_rng(seed)
    n = int(rng.choice([30, 300, 3000]))
    y, predictions, groups, pooled = rows(n, n_groups, rng.uniform(0.0, 0.6, n_groups), rng.uniform(0, 0.6), seed)
    own = draw(st.none() | st.lists(st.integers(0, n_groups), min_size=n_groups, max_size=n_groups + 1))
    options = {"level": draw(st.sampled_from([0.05, 0.2])), "margin": draw(st.sampled_from([0.0, 0.1]))}
    weight = rng.uniform(0.1, 1, n) if draw(st.booleans()) else None
    return audit(y, predictions, groups, pooled=pooled, own=own, sample_weight=weight, **options)


@given(audits())
def test_answers_follow_from_the_counts(result):
    asked, level, margin = result.questions, result.level, result.margin
    b, c, n, gap = (asked[name].to_numpy(float) for name in ("own_worse", "own_better", "n", "gap"))
    own = [result.classifiers[result.matrix.own[g]] for g in asked["group"]]
    same = (asked["rival"].astype(str) == own).to_numpy() & (n > 0)
    tested = (n > 0) & ~same
    share = level / max(tested.sum(), 1)
    np.testing.assert_allclose(asked["p"], mcnemar_p(b, c))
    np.testing.assert_allclose(asked["p_corrected"][tested], holm(mcnemar_p(b, c)[tested]))
    assert (asked["p_corrected"][~tested] == 1).all()
    low, high = paired_interval(b, c, n, 1 - level)
    np.testing.assert_allclose(asked["low"], np.where(same, 0, low))
    np.testing.assert_allclose(asked["high"], np.where(same, 0, high))
    satisfied = same | (tested & (excluded_harm(b, c, n, share) <= margin) & (asked["low"] >= -margin))
    violated = tested & (asked["p_corrected"] <= level) & (asked["high"] < 0) & ~satisfied
    expected = np.where(violated, "violated", np.where(satisfied, "satisfied", "undecided"))
    assert asked["verdict"].tolist() == expected.tolist()
    undecided = tested & (expected == "undecided")
    needed = rows_needed(np.maximum(gap, -gap - margin) + margin, (b + c) / np.maximum(n, 1), min(share, level / 2))
    np.testing.assert_allclose(asked["rows_needed"], np.where(undecided, needed, np.nan))


@given(audits())
def test_errors_gaps_and_counts_fit_together(result):
    asked = result.questions[result.questions["n"] > 0]
    np.testing.assert_allclose(asked["gap"], asked["rival_error"] - asked["own_error"])
    np.testing.assert_allclose(asked["gap"] * asked["n"], asked["own_better"] - asked["own_worse"], atol=1e-6)
    groups = asked["group"].to_numpy()
    np.testing.assert_allclose(asked["own_error"], result.matrix.own_errors[groups])
    rationality = (asked["rival"] == "pooled").to_numpy()
    np.testing.assert_allclose(asked["rival_error"][rationality], result.matrix.errors[groups[rationality], -1])
    assert (asked["kind"] == np.where(rationality, "rationality", "envy")).all()


def test_every_group_is_compared_with_the_pooled_classifier_and_all_others_once():
    asked = run(rows(n_groups=3)).questions
    assert list(zip(asked["group"], asked["rival"], strict=True)) == [
        (0, "pooled"), (0, 1), (0, 2), (1, "pooled"), (1, 0), (1, 2), (2, "pooled"), (2, 0), (2, 1),
    ]  # fmt: skip


def test_counts_are_whole_numbers_unless_rows_are_weighted():
    table = rows()
    assert run(table).questions[["n", "own_worse", "own_better"]].dtypes.tolist() == [np.int64] * 3
    weighted = run(table, sample_weight=np.random.default_rng(0).uniform(1, 2, 2000)).questions
    assert weighted[["n", "own_worse", "own_better"]].dtypes.tolist() == [np.float64] * 3


def lost_and_won(lost, won, n=1000, n_groups=1, **options):
    """Audit in which the classifier of group 0 loses and wins some of n rows; other groups have no such rows."""
    own, pooled = np.zeros(n * n_groups, int), np.zeros(n * n_groups, int)
    own[:lost], pooled[lost : lost + won] = 1, 1
    groups = np.repeat(np.arange(n_groups), n)
    return audit(np.zeros_like(own), own, groups, pooled=pooled, **options).questions


def test_a_small_p_value_is_not_enough_if_the_interval_includes_no_harm():
    asked = lost_and_won(9, 2)
    assert asked.loc[0, "p_corrected"] == mcnemar_p(9, 2) < 0.05
    assert asked.loc[0, "low"] < 0 < asked.loc[0, "high"]
    assert asked.loc[0, "verdict"] == "undecided"


def test_a_corrected_p_value_of_exactly_the_level_shows_harm():
    asked = lost_and_won(6, 0, n_groups=2, level=2**-5)
    assert asked.loc[0, "p_corrected"] == 2**-5
    assert asked.loc[0, "verdict"] == "violated"
    assert lost_and_won(6, 0, n_groups=2, level=2**-5 - 1e-9).loc[0, "verdict"] == "undecided"


def test_a_margin_that_is_met_exactly_is_met():
    margin = excluded_harm(5, 5, 1000, level=0.05 / 2)
    assert lost_and_won(5, 5, n_groups=2, margin=margin).loc[0, "verdict"] == "satisfied"
    assert lost_and_won(5, 5, n_groups=2, margin=np.nextafter(margin, 0)).loc[0, "verdict"] == "undecided"


def test_a_group_of_one_row_is_a_group():
    y, predictions, groups, pooled = rows(200)
    groups = np.r_[0, np.ones(199, int)]
    pooled[0] = 1 - predictions[0, 0]
    asked = audit(y, predictions, groups, pooled=pooled).questions
    assert np.isfinite(asked.loc[0, "rows_needed"])
    assert audit(y, predictions, groups, pooled=pooled, own=[2, 1]).questions.loc[0, "verdict"] == "satisfied"


def test_large_effective_numbers_are_not_rounded():
    weight = np.where(np.arange(100_000) % 2, 1.0, 0.995)
    y = np.zeros(100_000, int)
    (n,) = audit(y, y, y, pooled=1 - y, sample_weight=weight).questions["n"]
    assert n == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), abs=1e-6)
    assert n != round(n)


@given(st.permutations(range(3)))
@settings(max_examples=6)
def test_renumbering_groups_and_classifiers_changes_no_answer(order):
    y, predictions, groups, pooled = rows(900, 3, (0.2, 0.3, 0.4))
    place = np.argsort(order)
    renamed = audit(y, predictions[:, order], place[groups], pooled=pooled).to_frame()
    original = audit(y, predictions, groups, pooled=pooled).to_frame()
    renamed["group"] = [order[g] for g in renamed["group"]]
    renamed["rival"] = [order[r] if r != "pooled" else r for r in renamed["rival"]]
    key = ["group", "kind", "rival"]
    both = [frame.astype({"rival": str}).sort_values(key).reset_index(drop=True) for frame in (original, renamed)]
    pd.testing.assert_frame_equal(*both)


def test_the_order_of_rows_and_the_names_of_labels_mean_nothing():
    y, predictions, groups, pooled = rows()
    order = np.random.default_rng(1).permutation(len(y))
    names = np.array(["no", "yes"])
    same = audit(names[y][order], names[predictions][order], groups[order], pooled=names[pooled][order])
    pd.testing.assert_frame_equal(same.to_frame(), audit(y, predictions, groups, pooled=pooled).to_frame())


# ---- many ways to say the same ----


def test_named_columns_and_named_groups():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    named = np.array(["east", "west"])[groups]
    columns = {"east": predictions[:, 0], "west": predictions[:, 1]}
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        frame = audit(y, table, named, pooled=pooled).to_frame()
        assert list(frame["group"]) == ["east", "east", "west", "west"]
        assert list(frame["rival"]) == ["pooled", "west", "pooled", "east"]
        np.testing.assert_allclose(frame["p"], plain["p"])


def test_one_model_against_the_pooled_one_for_any_segments():
    y, predictions, groups, pooled = rows()
    result = audit(y, predictions[:, 1], np.array(["old", "new"])[groups], pooled=pooled)
    assert list(result.to_frame()["group"]) == ["new", "old"]
    assert set(result.to_frame()["kind"]) == {"rationality"}


def test_groups_may_be_booleans_whole_floats_and_missing():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    for same in (groups.astype(bool), groups.astype(float)):
        pd.testing.assert_frame_equal(audit(y, predictions, same, pooled=pooled).to_frame(), plain)
    strings = {"0": predictions[:, 0], "1": predictions[:, 1]}
    assert verdicts(audit(y, strings, groups, pooled=pooled)).keys() == {
        ("0", "pooled"),
        ("0", "1"),
        ("1", "pooled"),
        ("1", "0"),
    }
    segments = np.array(["a", None], dtype=object)[groups]
    one_column = pd.DataFrame({"model": predictions[:, 0]})
    asked = audit(y, one_column, segments, pooled=pooled).to_frame()
    assert asked["group"].tolist() == ["a", "(missing)"]
    assert asked["n"].tolist() == [(groups == 0).sum(), (groups == 1).sum()]


def test_the_scale_of_weights_means_nothing():
    table = rows()
    plain = run(table).to_frame()
    for weight in (1e200, 1e-200):
        pd.testing.assert_frame_equal(run(table, sample_weight=np.full(2000, weight)).to_frame(), plain)


def test_a_margin_turns_harm_into_no_harm():
    table = rows(20_000, errors=(0.31, 0.33))
    assert run(table).verdict.status == "harm"
    assert run(table, margin=0.1).verdict.status == "no_harm"


def test_groups_served_by_the_pooled_classifier_cannot_be_harmed_by_it():
    y, predictions, _, pooled = rows()
    groups = np.full(len(y), 2)
    groups[:900] = np.arange(900) % 2
    asked = verdicts(audit(y, predictions, groups, pooled=pooled))
    assert asked["pooled", "pooled"] == "satisfied"
    own = verdicts(audit(y, predictions, groups % 2, pooled=pooled, own=[2, 1]))
    assert own[0, "pooled"] == "satisfied"
    assert (0, 0) in own  # The classifier it does not use can still be preferred.


def test_classifiers_that_happen_to_agree_are_not_taken_for_one():
    y, predictions, groups, pooled = rows(errors=(0.1, 0.1))
    predictions[:, 1] = pooled
    frame = audit(y, predictions, groups, pooled=pooled).to_frame().iloc[2]
    assert frame["verdict"] == "undecided"  # They may differ on up to three in a thousand.
    assert 0.002 < -frame["low"] == frame["high"] < 0.006
    assert verdicts(audit(y, predictions, groups, pooled=pooled, margin=0.01))[1, "pooled"] == "satisfied"
    assert verdicts(audit(y, predictions, groups, pooled=pooled, own=[0, 2]))[1, "pooled"] == "satisfied"


def test_a_wrong_satisfied_is_as_rare_as_promised():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        own = (rng.random(100) < 0.01) * 1  # Errs on one in a hundred, the pooled classifier never.
        result = audit(np.zeros(100, int), own, np.zeros(100, int), pooled=np.zeros(100, int))
        wrong += result.to_frame()["verdict"].eq("satisfied").sum()
    assert wrong == 0


# ---- hard inputs ----


def test_empty_and_tiny_groups_say_that_nothing_is_known():
    y, predictions, _, pooled = rows(300, 3)
    groups = np.zeros(300, int)
    groups[0] = 1
    frame = audit(y, predictions, groups, pooled=pooled).to_frame().set_index(["group", "rival"])
    assert frame.loc[(2, "pooled"), "n"] == 0
    assert np.isnan(frame.loc[(2, "pooled"), "own_error"])
    assert tuple(frame.loc[(2, "pooled"), ["low", "high"]]) == (-1, 1)
    assert set(frame.loc[[1, 2], "verdict"]) == {"undecided"}
    assert frame.loc[(1, "pooled"), "n"] == 1


def test_empty_groups_do_not_make_the_correction_stricter():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    with_empty = audit(y, predictions, groups, pooled=pooled, own=[0, 1, 0]).to_frame()
    assert with_empty["n"].eq(0).sum() == 2
    np.testing.assert_array_equal(with_empty["p_corrected"][:4], plain["p_corrected"])


def test_one_class_one_row_and_predictions_that_never_differ():
    one_class = audit(np.ones(200, int), np.ones((200, 2), int), np.arange(200) % 2, pooled=np.ones(200, int))
    assert set(one_class.to_frame()["verdict"]) == {"undecided"}
    assert one_class.to_frame()["high"].max() < 0.05
    assert one_class.matrix.pr_without_harm == 1
    single = audit(["a"], [["a", "b"]], [0], pooled=["b"])
    assert set(single.to_frame()["verdict"]) == {"undecided"}
    for result in (one_class, single):
        assert result.summary()
        json.dumps(result.to_dict(), allow_nan=False)


def test_equal_weights_change_nothing_and_unequal_ones_cost_rows():
    table = rows()
    plain = run(table).to_frame()
    pd.testing.assert_frame_equal(run(table, sample_weight=np.full(2000, 7.5)).to_frame(), plain)
    weighted = run(table, sample_weight=np.random.default_rng(0).exponential(size=2000)).to_frame()
    assert (weighted["n"] < plain["n"]).all()
    assert (weighted["high"] - weighted["low"] > plain["high"] - plain["low"]).all()


def test_rows_of_weight_zero_are_as_good_as_absent():
    y, predictions, groups, pooled = rows()
    half = np.arange(2000) % 2 == 0
    kept = audit(y[half], predictions[half], groups[half], pooled=pooled[half]).to_frame()
    pd.testing.assert_frame_equal(run((y, predictions, groups, pooled), sample_weight=half * 1.0).to_frame(), kept)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 0.5}, "level must lie between 0 and 0.5"),
        ({"margin": 1}, "margin must be at least 0 and below 1"),
        ({"groups": np.array(["a", "b"])[np.arange(2000) % 2]}, "groups must be integers"),
        (
            {"predictions": {str(k): np.zeros(2000) for k in range(12)}, "groups": np.arange(2000) % 7 + 20},
            "groups holds 20, 21, 22, 23 and 24, but predictions has the columns 0, 1, 2, 3, 4, 5, 6, 7, 8 and 9:",
        ),
        ({"level": 0}, "level must lie between 0 and 0.5"),
        ({"margin": -0.1}, "margin must be at least 0 and below 1"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"groups": np.full(2000, 5)}, "groups must be integers from 0 to 1"),
        ({"groups": np.full(2000, 0.5)}, "groups must be integers"),
        ({"predictions": {"a": np.zeros(2000), "b": np.zeros(2000)}}, "groups holds 0 and 1, but .* columns a and b"),
        ({"predictions": np.zeros((2000, 2, 2))}, "one column per classifier"),
        ({"sensitive_features": pd.DataFrame({"sex": ["f"]})}, "has 1 rows, the data have 2000"),
        ({"y": np.full(2000, "0")}, "both must be of one kind"),
        ({"y": np.r_[np.nan, np.zeros(1999)]}, "y has missing values"),
        ({"pooled": np.r_[np.nan, np.zeros(1999)]}, "missing predictions"),
        ({"predictions": np.full((2000, 2), 0.3)}, "not probabilities"),
        ({"predictions": {"a": np.zeros(2000, int), "b": np.full(2000, "x")}}, "different kinds"),
        ({"predictions": pd.DataFrame(np.zeros((2000, 2), int), columns=["a", "a"])}, "two columns of the same name"),
        ({"y": [], "predictions": np.zeros((0, 2)), "groups": [], "pooled": []}, "no rows"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, message):
    y, predictions, groups, pooled = rows()
    arguments = {"y": y, "predictions": predictions, "groups": groups, "pooled": pooled} | change
    with pytest.raises(InputError, match=message):
        audit(**arguments)


def test_wrong_lengths_are_refused():
    y, predictions, groups, pooled = rows()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        audit(y[:-1], predictions, groups, pooled=pooled)


# ---- named groups ----


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["a", "b", "c"], n)})
    return table, rng


def harm_to(table, named, n=4000):
    """Predictions that are right for everybody, but for the people named, whom the pooled classifier serves well."""
    y = np.zeros(n, int)
    return y, np.where(named, 1, 0)[:, None], np.zeros(n, int), np.where(named, 0, 1 - np.arange(n) % 8 // 7)


def test_harm_to_an_intersection_is_found_and_named():
    table, _ = people()
    named = (table["sex"] == "f") & (table["race"] == "b")
    result = run(harm_to(table, named), sensitive_features=table)
    harmed = result.named[result.named["verdict"] == "violated"]["group"].tolist()
    assert "sex = f & race = b" in harmed
    assert not any(name.startswith(("sex = m", "race = a", "race = c")) for name in harmed)
    assert "sex = f & race = b" in result.verdict.sentence


def test_depth_chooses_how_many_attributes_are_intersected():
    table, _ = people()
    sizes = [len(run(rows(4000), sensitive_features=table, depth=depth).named) for depth in (1, 2, 5)]
    assert sizes == [2 + 3, 2 + 3 + 6, 2 + 3 + 6]
    three = table.assign(half=np.arange(4000) % 2)
    assert len(run(rows(4000), sensitive_features=three).named) == 2 + 3 + 2 + 6 + 4 + 6  # Pairs by default.


def test_counts_of_named_groups_are_those_of_a_group_by():
    table, _ = people()
    y, predictions, groups, pooled = rows(4000)
    served = predictions[np.arange(4000), groups]
    frame = audit(y, predictions, groups, pooled=pooled, sensitive_features=table).named.set_index("group")
    for (sex, race), members in table.groupby(["sex", "race"]).groups.items():
        row = frame.loc[f"sex = {sex} & race = {race}"]
        wrong, pooled_wrong = served[members] != y[members], pooled[members] != y[members]
        assert row["n"] == len(members)
        assert row["own_worse"] == (wrong & ~pooled_wrong).sum()
        assert row["own_error"] == pytest.approx(wrong.mean())
        assert row["rival_error"] == pytest.approx(pooled_wrong.mean())


def test_missing_values_are_a_group_numbers_are_cut_and_rare_categories_put_together():
    table, rng = people()
    table.loc[:99, "sex"] = None
    table["age"] = rng.integers(18, 90, 4000).astype(float)
    table.loc[100:149, "age"] = np.nan
    table["town"] = rng.integers(0, 900, 4000).astype(str)
    names = set(run(rows(4000), sensitive_features=table, depth=1).named["group"])
    assert {"sex = (missing)", "age = (missing)", "town = (other)"} <= names
    assert sum(name.startswith("age = ") for name in names) == 5
    assert sum(name.startswith("town = ") for name in names) == 50


@pytest.mark.parametrize(
    "attributes",
    [
        pd.Series(["x", "y"] * 100),
        np.array([["x", "y"] * 100]).T,
        pl.DataFrame({"a": ["x", None] * 100}),
        pd.DataFrame({0: pd.Categorical(["x", None] * 100), "b": [True, False] * 100}),
        pd.DataFrame({"all missing": [None] * 200}),
        pd.DataFrame({"number": [np.nan] * 200}),
        pd.DataFrame({"many": np.r_[np.arange(199.0), np.inf]}),
        pd.DataFrame({"when": pd.date_range("2020", periods=200)}),
        pd.DataFrame({"mixed": [1, "1", None, 2.5] * 50}),
    ],
)
def test_attributes_of_any_kind(attributes):
    result = run(rows(200), sensitive_features=attributes)
    assert result.named["n"].sum() >= 200
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.summary()


def test_dates_are_cut_into_quarters_and_too_many_combinations_are_refused():
    dates = pd.DataFrame({"born": pd.date_range("1950", periods=400, freq="W")})
    names = run(rows(400), sensitive_features=dates).named["group"].tolist()
    assert names[0] == "born = 1950-01-01 to 1951-11-25"
    assert len(names) == 4
    wide = pd.DataFrame(np.arange(2000)[:, None] // np.arange(1, 15) % 60).astype(str)
    with pytest.raises(InputError, match="lower depth"):
        run(rows(), sensitive_features=wide, depth=14)


def test_named_groups_are_answered_like_any_other():
    table, rng = people()
    y, predictions, groups, pooled = rows(4000, errors=(0.25, 0.35))
    for weight in (None, rng.uniform(0.2, 1, 4000)):
        options = {"level": 0.1, "margin": 0.02, "sample_weight": weight}
        named = audit(y, predictions, groups, pooled=pooled, sensitive_features=table[["race"]], **options).named
        # The same question with the races as segments and the labels as they are served.
        served = predictions[np.arange(4000), groups]
        direct = audit(y, served, "race = " + table["race"].to_numpy(), pooled=pooled, **options).questions
        pd.testing.assert_frame_equal(named, direct, check_dtype=False)


def test_named_groups_served_in_part_by_the_pooled_classifier_are_tested():
    table, _ = people()
    y, predictions, groups, pooled = rows(4000)
    named = audit(y, predictions, groups, pooled=pooled, own=[0, 2], sensitive_features=table).named
    assert (named["low"] < named["high"]).all()


def test_weights_count_in_the_composition():
    table = pd.DataFrame({"sex": ["f", "f", "f", "m"]})
    result = audit([0] * 4, [[0, 0]] * 4, [0, 1, 1, 1], pooled=[0] * 4, sensitive_features=table,
                   sample_weight=[2, 1, 1, 4])  # fmt: skip
    assert result.composition.columns.tolist() == ["named_group", "weight", "in_0", "in_1"]
    assert result.composition.to_numpy().tolist() == [["sex = f", 1.0, 0.5, 0.5], ["sex = m", 1.0, 0.0, 1.0]]


def test_people_served_by_the_pooled_classifier_alone_are_not_harmed_by_it():
    table, _ = people()
    y, predictions, _, pooled = rows(4000)
    groups = (table["sex"] == "m").to_numpy() * 1
    result = audit(y, predictions, groups, pooled=pooled, own=[0, 2], sensitive_features=table, depth=1)
    assert result.named.set_index("group").loc["sex = m", "verdict"] == "satisfied"


def test_fifty_columns_of_attributes():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 3, (3000, 50))).add_prefix("a")
    result = run(rows(3000), sensitive_features=table)
    assert len(result.named) == 50 * 3 + 50 * 49 // 2 * 9
    assert result.named["verdict"].eq("violated").sum() == 0


def test_composition_says_who_is_in_which_group():
    table, _ = people()
    y, predictions, _, pooled = rows(4000)
    groups = (table["sex"] == "m").to_numpy() * 1
    composition = audit(y, predictions, groups, pooled=pooled, sensitive_features=table).composition
    assert composition["named_group"].tolist() == ["sex = f", "sex = m", "race = a", "race = b", "race = c"]
    shares = composition.set_index("named_group")
    assert shares.loc["sex = f", ["in_0", "in_1"]].tolist() == [1, 0]
    assert shares.loc["sex = f", "weight"] == (table["sex"] == "f").sum()


# ---- what people see ----


def test_the_summary_reads_from_the_verdict_to_the_details():
    table, _ = people()
    text = run(rows(4000, errors=(0.1, 0.4)), sensitive_features=table).summary()
    assert text.startswith("HARM: group 1 is served worse")
    for part in ("4,000 rows, 2 groups", "Pr without harm", "after correction", "gap, points", "sex = f"):
        assert part in text
    assert max(len(line) for line in text.splitlines()[1:]) <= 140


SMALL = {
    "y": np.zeros(1200, int),
    "predictions": np.column_stack([np.arange(1200) % 12 < 1, np.arange(1200) % 12 < 5]).astype(int),
    "groups": np.arange(1200) // 600,
    "pooled": (np.arange(1200) % 12 < 3).astype(int),
}


SUMMARY = """\
HARM: group 1 is served worse than it could be, and this harm is not shown to be within the margin of 1 percentage point.
Questions about groups: 2 violated, 2 satisfied, 0 undecided.
Questions about named groups: 0 violated, 0 satisfied, 2 undecided.

1,200 rows, 2 groups, level 0.05, margin 1 percentage point
accuracy 75.0%, pooled 75.0%, gain +0.00 points; Pr without harm 83.3%, classifiers disagree on 33.3% of rows
questions about groups with a negative gap: 2 observed, 2 significant, 2 after correction for the number of questions

 group  against  rows  own error  rival error  gap, points      95% interval  corrected p  verdict
     0   pooled   600       8.3%        25.0%       +16.67  +13.71 to +19.89        1.000  satisfied
     0        1   600       8.3%        41.7%       +33.33  +29.52 to +37.26        1.000  satisfied
     1   pooled   600      41.7%        25.0%       -16.67  -19.89 to -13.71       <0.001  violated
     1        0   600      41.7%         8.3%       -33.33  -37.26 to -29.52       <0.001  violated

Named groups against the pooled classifier:

 group    against  rows  own error  rival error  gap, points    95% interval  corrected p  verdict
 sex = f   pooled   600      16.7%        16.7%        +0.00  -3.40 to +3.40        1.000  undecided (about 13,279 rows needed)
 sex = m   pooled   600      33.3%        33.3%        +0.00  -3.40 to +3.40        1.000  undecided (about 13,279 rows needed)"""  # noqa: E501


def test_the_whole_summary_of_a_small_audit():
    people = pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")})
    result = audit(**SMALL, sensitive_features=people, margin=0.01)
    assert str(result) == SUMMARY


def test_a_summary_shows_ten_named_groups_those_that_are_harmed_first():
    people = pd.DataFrame({"town": np.arange(1200) % 12, "half": np.arange(1200) // 600})
    result = audit(**SMALL, sensitive_features=people, depth=1)
    text = str(result).split("\n\n")
    assert text[-2] == "Named groups against the pooled classifier, the 10 of 14 with the most evidence of harm:"
    shown = [line.split("  ")[0].strip() for line in text[-1].splitlines()[1:]]
    assert len(shown) == 10
    assert set(shown[:3]) == {"half = 1", "town = 3", "town = 4"}
    assert set(result.named["group"][result.named["verdict"] == "violated"]) == set(shown[:3])


def test_violated_groups_are_shown_before_smaller_p_values_within_the_margin():
    """4,000 rows that lose 60 are within a margin of 5 points; 100 rows that lose 20 are not."""
    town = np.r_[np.zeros(4000, int), np.ones(100, int)]
    own = np.r_[np.ones(60, int), np.zeros(3940 + 80, int), np.ones(20, int)]
    y = np.zeros(4100, int)
    result = audit(y, own, y, pooled=y, sensitive_features=pd.DataFrame({"town": town}), margin=0.05)
    asked = result.named.set_index("group")
    assert asked["verdict"].tolist() == ["satisfied", "violated"]
    assert asked.loc["town = 0", "p"] < asked.loc["town = 1", "p"]
    assert [line.split("  ")[0].strip() for line in str(result).splitlines()[-2:]] == ["town = 1", "town = 0"]


def test_small_p_values_are_rounded_to_three_decimals():
    y, own = np.zeros(1000, int), np.r_[np.ones(9, int), np.zeros(991, int)]
    assert " 0.002 " in str(audit(y, own, y, pooled=y)).splitlines()[-1]  # 2**-9
    own[9] = 1
    assert " <0.001 " in str(audit(y, own, y, pooled=y)).splitlines()[-1]  # 2**-10


def test_the_figures_name_a_margin_only_if_there_is_one():
    assert str(audit(**SMALL)).splitlines()[3] == "1,200 rows, 2 groups, level 0.05"


def test_a_notebook_shows_what_the_terminal_shows():
    result = audit(**SMALL, sensitive_features=pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")}))
    page = result._repr_html_()
    assert page.count("<table") == 2
    for line in [*str(result.verdict).splitlines(), "Named groups against the pooled classifier:", "1,200 rows"]:
        assert line in page
    assert audit(**SMALL)._repr_html_().count("<table") == 1


def test_cells_hold_every_error_rate_with_its_exact_interval():
    result = audit(**SMALL, level=0.1)
    cells = result.cells().set_index(["group", "classifier"])
    assert cells.loc[("1", "0"), "error"] == pytest.approx(1 / 12)
    assert cells.loc[("1", "0"), "gap"] == pytest.approx(-4 / 12)
    assert cells.loc[("0", "pooled"), "gap"] == pytest.approx(2 / 12)
    assert cells["own"].to_dict() == {
        ("0", "0"): True, ("1", "0"): False, ("0", "1"): False, ("1", "1"): True,
        ("0", "pooled"): False, ("1", "pooled"): False,
    }  # fmt: skip
    assert (cells["rows"] == 600).all()
    low, high = share_interval(250, 600, 0.9)
    assert cells.loc[("1", "1"), ["low", "high"]].tolist() == pytest.approx([low, high])


def test_the_dict_holds_the_figures_of_the_matrix():
    content = audit(**SMALL).to_dict()
    assert content["rows"] == 1200
    assert content["groups"] == 2
    assert content["sizes"] == [600, 600]
    assert content["accuracy"] == pytest.approx(0.75)
    assert content["pooled_accuracy"] == pytest.approx(0.75)
    assert content["pr_without_harm"] == pytest.approx(10 / 12)
    assert content["disagreement"] == pytest.approx(4 / 12)
    assert content["errors"] == [pytest.approx([1 / 12, 5 / 12, 3 / 12])] * 2
    assert (content["level"], content["margin"]) == (0.05, 0.0)
    assert content["violations"] == {"point": 2, "significant": 2, "corrected": 2}
    assert (content["named_groups"], content["composition"]) == (None, None)
    assert content["questions"][0]["group"] == 0
    assert content["questions"][0]["rows_needed"] is None


def test_significant_means_by_the_test_alone_and_below_zero():
    """Group 0 loses 7 and wins 1 of 100 rows: p = 0.035, and 0.07 after correction for two questions."""
    y = np.zeros(200, int)
    own = np.r_[np.ones(7, int), np.zeros(193, int)]
    pooled = np.r_[np.zeros(7, int), 1, np.zeros(192, int)]
    result = audit(y, own, np.repeat([0, 1], 100), pooled=pooled)
    assert result.violations == {"point": 1, "significant": 1, "corrected": 0}
    assert audit(y, own, np.repeat([0, 1], 100), pooled=pooled, level=0.03).violations["significant"] == 0
    exactly = float(mcnemar_p(7, 1))
    assert audit(y, own, np.repeat([0, 1], 100), pooled=pooled, level=exactly).violations["significant"] == 1


def test_the_frame_of_an_audit_is_a_copy_with_named_groups_at_the_end():
    people = pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")})
    result = audit(**SMALL, sensitive_features=people)
    frame = result.to_frame()
    assert frame["group"].tolist() == [0, 0, 1, 1, "sex = f", "sex = m"]
    plain = audit(**SMALL)
    changed = plain.to_frame()
    changed.loc[0, "verdict"] = "changed"
    assert plain.questions.loc[0, "verdict"] == "satisfied"
    assert result.attributes == ("sex",)
    assert plain.attributes == ()
    assert result.classifiers == ("0", "1", "pooled")


def test_nothing_from_the_data_becomes_markup():
    table = pd.DataFrame({"<b>x</b>": ["<script>alert(1)</script>", "y"] * 100})
    page = run(rows(200), sensitive_features=table)._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


def test_the_dict_holds_plain_values_only():
    table, _ = people()
    content = run(rows(4000), sensitive_features=table).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert {"verdict", "accuracy", "pr_without_harm", "questions", "named_groups", "violations"} <= set(content)


class Served:
    """A fitted model of two groups: classifier 0 serves both, or the pooled one does."""

    n_groups_ = 2

    def __init__(self, serves=(0, 0)):
        self.serves_ = np.array(serves)

    def predict_group(self, X):
        return X[:, 0]

    def predict_all(self, X):
        served = np.where(self.serves_ == 2, X[:, 2:3], X[:, 1:2])
        return np.column_stack([served, X[:, 2]])


def served_rows():
    row = np.arange(600)
    return np.column_stack([row % 2, row % 12 < 3, row % 12 < 5]).astype(int), np.zeros(600, int)


def test_a_model_is_audited_like_its_predictions():
    X, y = served_rows()
    people, weight = pd.DataFrame(X[:, ::2] * [1, 0], columns=["a", "b"]).assign(c=X[:, 1]), 1 + X[:, 1]
    for options in ({}, {"level": 0.2, "margin": 0.01, "depth": 1, "sample_weight": weight}):
        direct = audit(y, X[:, 1], X[:, 0], pooled=X[:, 2], sensitive_features=people, **options)
        assert AuditResult.of(Served(), X, y, sensitive_features=people, **options) == direct


def test_checked_rows_are_audited_with_the_same_defaults():
    X, y = served_rows()
    people = pd.DataFrame({name: X[:, k] for k, name in enumerate("abc")})
    rows = ComparedRows.check(y, X[:, 1:2], X[:, 0], X[:, 2], own=[0, 0])
    direct = audit(y, X[:, 1], X[:, 0], pooled=X[:, 2], sensitive_features=people)
    assert AuditResult.from_rows(rows, [0, 1], [0, "pooled"], people) == direct


def test_only_a_model_whose_groups_are_all_served_by_the_pooled_classifier_changes_nothing():
    X, y = served_rows()
    assert AuditResult.of(Served([2, 2]), X, y).verdict.status == "unchanged"
    assert AuditResult.of(Served([0, 2]), X, y).verdict.status == "harm"  # Group 1 would do better with classifier 0.
    assert AuditResult.of(Served([0, 2]), X, X[:, 2]).verdict.status == "harm"  # The pooled one is always right.
    few = AuditResult.of(Served([0, 2]), X[:12], y[:12])
    assert few.verdict.status == "undecided"
    assert few.classifiers == ("0", "pooled")


def test_an_audit_that_changes_nothing_shows_no_table_of_zeros():
    X, y = served_rows()
    result = AuditResult.of(Served([2, 2]), X, y)
    assert str(result).startswith("UNCHANGED: ")
    assert len(str(result).splitlines()) == 5
    assert "<table" not in result._repr_html_()


def test_a_model_and_a_pipeline_can_be_audited(paper_data):
    model = DecoupledClassifier(IntersectionPartition())
    model.fit(paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    result = AuditResult.of(model, paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert result.matrix.accuracy == pytest.approx(
        model.score(paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    )
    frame = pd.DataFrame(paper_data.X).add_prefix("x")
    pipeline = tabular_pipeline(DecoupledClassifier(random_state=0)).fit(frame, paper_data.y)
    both = AuditResult.of(pipeline, frame, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert both.matrix.accuracy == pytest.approx(pipeline.score(frame, paper_data.y))


def test_memory_stays_below_four_times_the_input():
    y, predictions, groups, pooled = rows(200_000, 8)
    table, _ = people(200_000)
    inputs = sum(part.nbytes for part in (y, predictions, groups, pooled)) + table.memory_usage().sum()
    tracemalloc.start()
    run((y, predictions, groups, pooled), sensitive_features=table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * inputs
