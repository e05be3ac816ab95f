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
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition
from dafh.stats import mcnemar_p

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
    assert set(audit(y, one_column, segments, pooled=pooled).to_frame()["group"]) == {"a", "(missing)"}


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


def test_a_model_and_a_pipeline_can_be_audited(paper_data):
    model = DecoupledClassifier(IntersectionPartition())
    model.fit(paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    result = AuditResult.of(model, paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert result.matrix.accuracy == pytest.approx(
        model.score(paper_data.X, paper_data.y, paper_data.sensitive_features)
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
