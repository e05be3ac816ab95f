"""The audit: hand-worked answers, laws, and what a wrong answer costs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited import rows, run, verdicts
from cases import examples
from dafh import audit
from dafh.evaluation.questions import COLUMNS
from dafh.stats import Differences, excluded_harm, holm, mcnemar_p, paired_interval, rows_needed


def test_every_question_is_one_row_with_the_promised_columns():
    frame = run(rows(n_groups=3)).to_frame()
    assert tuple(frame.columns) == COLUMNS
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


def test_accuracy_gain_and_figures_by_group_are_those_of_the_rows():
    y, predictions, groups, pooled = rows(1000)
    sex = pd.DataFrame({"sex": np.arange(1000) % 2})
    result = audit(y, predictions, groups, pooled=pooled, sensitive_features=sex, losses=("error", "fnr"))
    own = predictions[np.arange(1000), groups] == y
    assert result.accuracy == pytest.approx(own.mean())
    assert result.pooled_accuracy == pytest.approx((pooled == y).mean())
    assert result.gain == pytest.approx(result.accuracy - result.pooled_accuracy)
    table = result.by_group()
    assert table.index.tolist() == ["0", "1", "sex = 0", "sex = 1"]
    for name, inside in {"1": groups == 1, "sex = 0": sex["sex"] == 0}.items():
        gain = own[inside].mean() - (pooled == y)[inside].mean()
        assert (table["rows"][name], table["gain"][name]) == (inside.sum(), pytest.approx(gain))
        assert table["low"][name] < gain < table["high"][name]
        assert table["own_loss"][name] == pytest.approx(1 - own[inside].mean())


def test_clear_cases_get_clear_verdicts():
    result = run(rows(4000, errors=(0.1, 0.4)))
    assert verdicts(result) == {
        (0, "pooled"): "satisfied",
        (0, 1): "satisfied",
        (1, "pooled"): "violated",
        (1, 0): "violated",
    }
    assert result.violations == {"point": 2, "significant": 2, "corrected": 2}
    assert result.verdict.sentence.startswith("for group 1 the error rate is higher than with the pooled classifier:")


def test_few_rows_are_not_enough_data_and_say_how_many_would_be():
    result = run(rows(60, errors=(0.25, 0.25)))
    frame = result.to_frame()
    assert (frame["verdict"] == "undecided").all()
    assert (frame.loc[frame["gap"] != 0, "rows_needed"] > 60).all()
    assert result.verdict.status == "undecided"
    assert "rows needed" not in str(result)  # More than ten times as many as there are.
    text = str(run(rows(1000, errors=(0.24, 0.24))))
    assert text.count("rows needed)") == 3  # Not 24,225, for a question with 490 rows.
    assert "undecided (about 2,300 rows needed)" in text


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
@examples(0.75)
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
def audits(draw, weighted=False):
    """Audits of any kind: empty groups, groups served by the pooled classifier, weights, margins."""
    seed, n_groups = draw(st.integers(0, 10_000)), draw(st.integers(1, 3))
    rng = np.random.default_rng(seed)
    n = int(rng.choice([30, 300]))
    y, predictions, groups, pooled = rows(n, n_groups, rng.uniform(0.0, 0.6, n_groups), rng.uniform(0, 0.6), seed)
    own = draw(st.none() | st.lists(st.integers(0, n_groups), min_size=n_groups, max_size=n_groups + 1))
    options = {"level": draw(st.sampled_from([0.05, 0.2])), "margin": draw(st.sampled_from([0.0, 0.1]))}
    weight = rng.choice([0.2, 1, 3], n) if weighted else None
    return audit(y, predictions, groups, pooled=pooled, own=own, sample_weight=weight, **options)


@given(audits())
def test_answers_follow_from_the_counts(result):
    asked, level, margin = result.questions, result.level, result.margin
    b, c, n, gap = (asked[name].to_numpy(float) for name in ("own_worse", "own_better", "n", "gap"))
    found = Differences.of_counts(b, c, n)
    own = [result.classifiers[result.matrix.own[g]] for g in asked["group"]]
    same = (asked["rival"].astype(str) == own).to_numpy() & (n > 0)
    tested = (n > 0) & ~same
    np.testing.assert_allclose(asked["p"], found.p_beyond(margin))
    np.testing.assert_allclose(asked["p_corrected"][tested], holm(found.p_beyond(margin)[tested]))
    assert (asked["p_corrected"][~tested] == 1).all()
    low, high = paired_interval(b, c, n, 1 - level)
    np.testing.assert_allclose(asked["low"], np.where(same, 0, low), atol=1e-9)
    np.testing.assert_allclose(asked["high"], np.where(same, 0, high), atol=1e-9)
    within = np.ones(len(asked))
    within[tested] = holm(found.p_within(margin)[tested])
    satisfied = same | (tested & (within <= level) & (asked["low"] >= -margin))
    violated = tested & (asked["p_corrected"] <= level) & (asked["high"] < -margin)
    expected = np.where(violated, "violated", np.where(satisfied, "satisfied", "undecided"))
    assert asked["verdict"].tolist() == expected.tolist()
    undecided = tested & (expected == "undecided")
    share = min(level / max(tested.sum(), 1), level / 2)
    needed = rows_needed(gap + margin, (b + c) / np.maximum(n, 1), share)
    np.testing.assert_allclose(asked["rows_needed"], np.where(undecided, needed, np.nan))


@given(audits(weighted=True))
def test_errors_and_gaps_fit_together(result):
    asked = result.questions[result.questions["n"] > 0]
    np.testing.assert_allclose(asked["gap"], asked["rival_loss"] - asked["own_loss"], atol=1e-12)
    groups = asked["group"].to_numpy()
    np.testing.assert_allclose(asked["own_loss"], result.matrix.own_errors[groups])
    rationality = (asked["rival"] == "pooled").to_numpy()
    np.testing.assert_allclose(asked["rival_loss"][rationality], result.matrix.errors[groups[rationality], -1])
    assert (asked["kind"] == np.where(rationality, "rationality", "envy")).all()


@given(audits())
def test_gaps_and_counts_fit_together(result):
    asked = result.questions[result.questions["n"] > 0]
    np.testing.assert_allclose(asked["gap"] * asked["n"], asked["own_better"] - asked["own_worse"], atol=1e-6)


def test_every_group_is_compared_with_the_pooled_classifier_and_all_others_once():
    asked = run(rows(n_groups=3)).questions
    assert list(zip(asked["group"], asked["rival"], strict=True)) == [
        (0, "pooled"), (0, 1), (0, 2), (1, "pooled"), (1, 0), (1, 2), (2, "pooled"), (2, 0), (2, 1),
    ]  # fmt: skip


def test_counts_are_whole_numbers_also_of_weighted_rows():
    table = rows()
    weight = np.where(np.arange(2000) % 3, 1.0, 2.5)
    for asked in (run(table).questions, run(table, sample_weight=weight).questions):
        assert asked[["n", "own_worse", "own_better"]].dtypes.tolist() == [np.int64] * 3
        assert asked["n"].sum() == 4000  # Two questions about every row.


def lost_and_won(lost, won, n=1000, n_groups=1, **options):
    """Audit in which the classifier of group 0 loses and wins some of n rows; other groups have no such rows."""
    own, pooled = np.zeros(n * n_groups, int), np.zeros(n * n_groups, int)
    own[:lost], pooled[lost : lost + won] = 1, 1
    groups = np.repeat(np.arange(n_groups), n)
    return audit(np.zeros_like(own), own, groups, pooled=pooled, **options).questions


def test_a_small_p_value_is_not_enough_if_the_interval_includes_no_harm():
    asked = lost_and_won(9, 2)
    assert asked.loc[0, "p_corrected"] == pytest.approx(mcnemar_p(9, 2))
    assert asked.loc[0, "p_corrected"] < 0.05
    assert asked.loc[0, "low"] < 0 < asked.loc[0, "high"]
    assert asked.loc[0, "verdict"] == "undecided"


def test_a_small_p_value_is_not_enough_if_the_interval_includes_harm_within_the_margin():
    """Harm of more than the margin with p = 0.0375: below 5%, but above the 2.5% of one side of the interval."""
    margin = float(Differences.of_counts(100, 0, 1000).lower(0.0375)[0])
    asked = lost_and_won(100, 0, margin=margin)
    assert asked.loc[0, "p_corrected"] == pytest.approx(0.0375)
    assert -0.1 < -margin < asked.loc[0, "high"] < 0
    assert asked.loc[0, "verdict"] == "undecided"


def test_a_corrected_p_value_of_exactly_the_level_shows_harm():
    asked = lost_and_won(6, 0, n_groups=2, level=2**-5 + 1e-9)
    assert asked.loc[0, "p_corrected"] == pytest.approx(2**-5)
    assert asked.loc[0, "verdict"] == "violated"
    assert lost_and_won(6, 0, n_groups=2, level=2**-5 - 1e-9).loc[0, "verdict"] == "undecided"


def test_a_margin_that_is_met_exactly_is_met():
    margin = excluded_harm(5, 5, 1000, level=0.05 / 2)
    assert lost_and_won(5, 5, n_groups=2, margin=margin + 1e-7).loc[0, "verdict"] == "satisfied"
    assert lost_and_won(5, 5, n_groups=2, margin=margin - 1e-7).loc[0, "verdict"] == "undecided"


def test_violated_means_more_than_the_margin_and_not_more_than_nothing():
    """100 of 1,000 rows lost: harm for sure, by about 10 points."""
    words = {margin: lost_and_won(100, 0, margin=margin).loc[0, "verdict"] for margin in (0.0, 0.05, 0.1, 0.15)}
    assert words == {0.0: "violated", 0.05: "violated", 0.1: "undecided", 0.15: "satisfied"}


def test_learned_and_named_groups_share_the_level():
    people = pd.DataFrame({"sex": np.where(np.arange(1000) % 2, "f", "m")})
    alone, beside = lost_and_won(8, 0), lost_and_won(8, 0, sensitive_features=people)
    assert beside.loc[0, "p"] == alone.loc[0, "p"]
    assert beside.loc[0, "p_corrected"] == pytest.approx(2 * alone.loc[0, "p_corrected"])


def test_satisfied_needs_the_share_of_the_level_too():
    """Six rows won: p = 2**-6, 0.031 after correction for two questions, and 0.063 beside named groups."""
    people = pd.DataFrame({"sex": np.where(np.arange(2000) % 2, "f", "m")})
    assert lost_and_won(0, 6, n_groups=2).loc[0, "verdict"] == "satisfied"
    assert lost_and_won(0, 6, n_groups=2, sensitive_features=people).loc[0, "verdict"] == "undecided"


def test_a_margin_as_large_as_the_largest_loss_is_always_met():
    costs = {"fp": 0.5, "fn": 0.5}
    words = [lost_and_won(3, 0, 3, losses="cost", costs=costs, margin=m).loc[0, "verdict"] for m in (0.5, 0.49)]
    assert words == ["satisfied", "undecided"]


def test_a_group_of_one_row_is_a_group():
    y, predictions, groups, pooled = rows(200)
    groups = np.r_[0, np.ones(199, int)]
    pooled[0] = 1 - predictions[0, 0]
    asked = audit(y, predictions, groups, pooled=pooled).questions
    assert np.isfinite(asked.loc[0, "rows_needed"])
    assert audit(y, predictions, groups, pooled=pooled, own=[2, 1]).questions.loc[0, "verdict"] == "satisfied"


@given(st.permutations(range(3)))
@examples(0.3)
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
