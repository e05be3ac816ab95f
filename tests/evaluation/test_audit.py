"""The audit: hand-worked answers, laws, every loss, and inputs that are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited import rows, run, verdicts
from cases import checkerboard, examples
from dafh import audit
from dafh.stats import Differences, holm, mcnemar_p, rows_needed


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
    assert result.recommendation.keep == ("1",)


def test_the_number_of_rows_needed_would_indeed_decide():
    small = run(rows(400, errors=(0.3, 0.27), seed=3)).to_frame().iloc[2]
    assert small["verdict"] == "undecided"
    assert small["gap"] > 0
    factor = int(np.ceil(small["rows_needed"] / small["n"])) + 1
    y, predictions, groups, pooled = (np.repeat(part, factor, axis=0) for part in rows(400, errors=(0.3, 0.27), seed=3))
    assert audit(y, predictions, groups, pooled=pooled).to_frame().iloc[2]["verdict"] == "satisfied"


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
    low, high = Differences.of_counts(b, c, n).gain_limits(level / 2)
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


def test_every_group_is_compared_with_the_pooled_classifier_and_all_others_once():
    asked = run(rows(n_groups=3)).questions
    assert list(zip(asked["group"], asked["rival"], strict=True)) == [
        (0, "pooled"), (0, 1), (0, 2), (1, "pooled"), (1, 0), (1, 2), (2, "pooled"), (2, 0), (2, 1),
    ]  # fmt: skip


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


def test_a_corrected_p_value_of_exactly_the_level_shows_harm():
    asked = lost_and_won(6, 0, n_groups=2, level=2**-5 + 1e-9)
    assert asked.loc[0, "p_corrected"] == pytest.approx(2**-5)
    assert asked.loc[0, "verdict"] == "violated"
    assert lost_and_won(6, 0, n_groups=2, level=2**-5 - 1e-9).loc[0, "verdict"] == "undecided"


def test_violated_means_more_than_the_margin_and_not_more_than_nothing():
    """100 of 1,000 rows lost: harm for sure, by about 10 points."""
    words = {margin: lost_and_won(100, 0, margin=margin).loc[0, "verdict"] for margin in (0.0, 0.05, 0.1, 0.15)}
    assert words == {0.0: "violated", 0.05: "violated", 0.1: "undecided", 0.15: "satisfied"}


def test_learned_and_named_groups_share_the_level():
    people = pd.DataFrame({"sex": np.where(np.arange(1000) % 2, "f", "m")})
    alone, beside = lost_and_won(8, 0), lost_and_won(8, 0, sensitive_features=people)
    assert beside.loc[0, "p"] == alone.loc[0, "p"]
    assert beside.loc[0, "p_corrected"] == pytest.approx(2 * alone.loc[0, "p_corrected"])


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


# ---- many ways to say the same ----


def test_one_model_against_the_pooled_one_for_any_segments():
    y, predictions, groups, pooled = rows()
    result = audit(y, predictions[:, 1], np.array(["old", "new"])[groups], pooled=pooled)
    assert list(result.to_frame()["group"]) == ["new", "old"]
    assert set(result.to_frame()["kind"]) == {"rationality"}


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
    assert 0.002 < frame["high"] < 0.006
    assert -frame["low"] == pytest.approx(frame["high"], rel=1e-9)
    assert verdicts(audit(y, predictions, groups, pooled=pooled, margin=0.01))[1, "pooled"] == "satisfied"
    assert verdicts(audit(y, predictions, groups, pooled=pooled, own=[0, 2]))[1, "pooled"] == "satisfied"


# ---- hard inputs ----


def test_empty_and_tiny_groups_say_that_nothing_is_known():
    y, predictions, _, pooled = rows(300, 3)
    groups = np.zeros(300, int)
    groups[0] = 1
    frame = audit(y, predictions, groups, pooled=pooled).to_frame().set_index(["group", "rival"])
    assert frame.loc[(2, "pooled"), "n"] == 0
    assert np.isnan(frame.loc[(2, "pooled"), "own_loss"])
    assert tuple(frame.loc[(2, "pooled"), ["low", "high"]]) == (-1, 1)
    assert set(frame.loc[[1, 2], "verdict"]) == {"undecided"}
    assert frame.loc[(1, "pooled"), "n"] == 1


def test_empty_groups_do_not_make_the_correction_stricter():
    y, predictions, groups, pooled = rows()
    plain = audit(y, predictions, groups, pooled=pooled).to_frame()
    with_empty = audit(y, predictions, groups, pooled=pooled, own=[0, 1, 0]).to_frame()
    assert with_empty["n"].eq(0).sum() == 2
    np.testing.assert_array_equal(with_empty["p_corrected"][:4], plain["p_corrected"])


def test_equal_weights_change_nothing_and_unequal_ones_cost_rows():
    table = rows()
    plain = run(table).to_frame()
    pd.testing.assert_frame_equal(run(table, sample_weight=np.full(2000, 7.5)).to_frame(), plain)
    weighted = run(table, sample_weight=np.random.default_rng(0).choice([0.1, 1, 4], 2000)).to_frame()
    assert (weighted["n"] == plain["n"]).all()
    assert (weighted["high"] - weighted["low"] > plain["high"] - plain["low"]).all()


def test_rows_of_weight_zero_are_as_good_as_absent():
    y, predictions, groups, pooled = rows()
    half = np.arange(2000) % 2 == 0
    kept = audit(y[half], predictions[half], groups[half], pooled=pooled[half]).to_frame()
    pd.testing.assert_frame_equal(run((y, predictions, groups, pooled), sample_weight=half * 1.0).to_frame(), kept)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"level": 0.5}, "level"),
        ({"margin": 1}, "margin"),
        ({"depth": 0}, "depth"),
        ({"groups": np.array(["a", "b"])[np.arange(2000) % 2]}, "integers"),
        ({"groups": np.full(2000, 5)}, "from 0 to 1"),
        ({"predictions": {"a": np.zeros(2000), "b": np.zeros(2000)}}, "one row per sample"),
        ({"predictions": np.zeros((2000, 2, 2))}, "one column per classifier"),
        ({"sensitive_features": pd.DataFrame({"sex": ["f"]})}, "1 rows"),
        ({"y": np.full(2000, "0")}, "one kind"),
        ({"y": np.r_[np.nan, np.zeros(1999)]}, "y has missing"),
        ({"pooled": np.r_[np.nan, np.zeros(1999)]}, "missing predictions"),
        ({"predictions": np.full((2000, 2), 0.3)}, "not probabilities"),
        ({"y": [], "predictions": np.zeros((0, 2)), "groups": [], "pooled": []}, "no rows"),
        ({"predictions": np.zeros(2000, int), "groups": np.array([{}] * 2000)}, "lists or records"),
        ({"own": 0}, "one entry per group"),
        ({"y": np.zeros(1999, int)}, "inconsistent"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, word):
    y, predictions, groups, pooled = rows()
    arguments = {"y": y, "predictions": predictions, "groups": groups, "pooled": pooled} | change
    with pytest.raises(ValueError, match=word):
        audit(**arguments)


LOSSES = ("error", "fpr", "fnr", "cost")
COSTS = {"fp": 1, "fn": 5}

# Of the negative rows with a weight the own classifier gets one more wrong than the pooled one, of the positive rows
# one less.
EIGHT_ROWS = {
    "y": [0, 0, 0, 0, 1, 1, 1, 1],
    "predictions": [[1], [1], [0], [0], [0], [1], [1], [1]],
    "groups": [0] * 8,
    "pooled": [1, 0, 0, 0, 0, 0, 1, 1],
    "sample_weight": [1, 1, 1, 0, 1, 1, 1, 1],
}
BY_HAND = {
    "loss": list(LOSSES),
    "rival": ["pooled"] * 4,
    "kind": ["rationality"] * 4,
    "n": [7, 3, 4, 7],
    "own_loss": [3 / 7, 2 / 3, 1 / 4, (2 * 1 + 1 * 5) / 7],
    "rival_loss": [3 / 7, 1 / 3, 2 / 4, (1 * 1 + 2 * 5) / 7],
    "gap": [0, -1 / 3, 1 / 4, 4 / 7],
    "own_worse": [1, 1, 0, 1],
    "own_better": [1, 0, 1, 1],
}


def random_rows(n=120):
    """Rows of two groups with a classifier each, a named attribute, weights, and persons with three rows each."""
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, n), rng.integers(0, 2, n)
    predictions, pooled = (rng.random((n, 2)) < 0.3 + 0.3 * y[:, None]) * 1, (rng.random(n) < 0.3 + 0.4 * y) * 1
    town = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    return y, predictions, groups, pooled, town, rng.choice([0.25, 1.0], n), np.arange(n) // 3


@pytest.mark.parametrize(("weighted", "by_person"), checkerboard([False, True], [True, False]))
def test_named_groups_are_answered_for_every_loss_as_if_they_were_segments(weighted, by_person):
    y, predictions, groups, pooled, town, weight, person = random_rows()
    options = {
        "losses": LOSSES,
        "costs": COSTS,
        "margin": 0.01,
        "sample_weight": weight if weighted else None,
        "persons": person if by_person else None,
    }
    named = audit(y, predictions, groups, pooled=pooled, sensitive_features=pd.DataFrame({"town": town}), **options)
    served = predictions[np.arange(len(y)), groups]
    direct = audit(y, served, np.char.add("town = ", town), pooled=pooled, **options).questions
    # Named groups have half of the level beside learned ones.
    shared = ["p_corrected", "rows_needed"]
    pd.testing.assert_frame_equal(named.named.drop(columns=shared), direct.drop(columns=shared), check_dtype=False)
    np.testing.assert_allclose(named.named["p_corrected"], np.minimum(2 * direct["p_corrected"], 1))
