"""Trees on the errors of the pooled classifier, against scikit-learn and against all questions there are."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from cases import examples
from dafh.groups.growing import grow_tree, standardized_scores
from dafh.tables.bins import Binning


def grown(table, scores, most_leaves, weight=None):
    binning = Binning.learn(table)
    codes = binning.codes(table)
    scores = np.asarray(scores, float).reshape(len(table), -1)
    return grow_tree(binning, codes, scores, np.ones(len(table)) if weight is None else weight, most_leaves), codes


def same_partition(one, other):
    """Whether two numberings of rows divide them alike."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


def worth(scores, parts):
    return sum(scores[part].sum(axis=0) @ scores[part].sum(axis=0) / part.sum() for part in parts if part.any())


def random_numbers(n, seed, values=40):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"x{c}": rng.integers(0, values, n) for c in range(3)}), rng


# ---- numbers ----


@given(seed=st.integers(0, 10_000), most_leaves=st.integers(2, 12))
def test_trees_on_numbers_are_those_of_scikit_learn(seed, most_leaves):
    table, rng = random_numbers(700, seed)
    scores = rng.normal(size=700) + (table.x0 > 20) * (table.x1 > 10)
    tree, codes = grown(table, scores, most_leaves)
    other = DecisionTreeRegressor(max_leaf_nodes=most_leaves, min_samples_leaf=30, random_state=0).fit(table, scores)
    assert same_partition(tree.leaves(codes).tolist(), other.apply(table).tolist())


@examples(0.75)
@given(seed=st.integers(0, 10_000))
def test_the_first_leaves_of_a_tree_are_a_smaller_tree(seed):
    table, rng = random_numbers(500, seed)
    scores = rng.normal(size=500)
    large, codes = grown(table, scores, 9)
    for n_leaves in range(1, large.n_leaves + 1):
        small, _ = grown(table, scores, n_leaves)
        assert small.questions == large.cut_back(n_leaves, np.arange(n_leaves)).questions
        np.testing.assert_array_equal(small.leaves(codes), large.parents(n_leaves)[large.leaves(codes)])


@pytest.mark.parametrize("n_few", [29, 30])
def test_a_leaf_has_30_rows_or_more(n_few):
    table = pd.DataFrame({"x": np.repeat([0.0, 1.0], [n_few, 500])})
    tree, _ = grown(table, table.x, 2)
    assert tree.n_leaves == (2 if n_few == 30 else 1)


def test_no_question_is_asked_where_none_gains():
    table, _ = random_numbers(300, 0)
    assert grown(table, np.ones(300), 8)[0].n_leaves == 1
    assert grown(table, np.zeros(300), 8)[0].n_leaves == 1


# ---- categories ----


@given(seed=st.integers(0, 10_000), n_categories=st.integers(2, 7))
def test_no_other_two_sets_of_categories_gain_more(seed, n_categories):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"job": rng.choice(list("abcdefg")[:n_categories], 300)})
    scores = (
        rng.normal(size=(300, 1))
        + table.job.map(dict(zip("abcdefg", rng.normal(size=7), strict=True))).to_numpy()[:, None]
    )
    tree, codes = grown(table, scores, 2)
    found = worth(scores, [tree.leaves(codes) == leaf for leaf in range(2)])
    names, best = sorted(set(table.job)), -np.inf
    for size in range(1, len(names)):
        for chosen in itertools.combinations(names, size):
            inside = table.job.isin(chosen).to_numpy()
            if min(inside.sum(), (~inside).sum()) >= 30:
                best = max(best, worth(scores, [inside, ~inside]))
    assert tree.n_leaves == 1 or found == pytest.approx(best)
    assert tree.n_leaves == 2 or best == -np.inf


def test_several_scores_divide_categories_by_the_direction_in_which_they_differ():
    job = np.repeat(list("abcd"), 50)
    scores = np.column_stack([np.where(np.isin(job, ["a", "c"]), 2.0, -2.0), np.tile([0.1, -0.1], 100)])
    tree, codes = grown(pd.DataFrame({"job": job}), scores, 2)
    assert same_partition(tree.leaves(codes).tolist(), np.isin(job, ["a", "c"]).tolist())


@pytest.mark.parametrize("larger", ["a", "b"])
def test_unseen_categories_go_with_the_larger_side(larger):
    job = np.repeat(["a", "b"], [200, 100] if larger == "a" else [100, 200])
    table = pd.DataFrame({"job": job})
    tree, _ = grown(table, job == "a", 2)
    new = tree.binning.codes(pd.DataFrame({"job": ["new", larger]}))
    assert tree.leaves(new)[0] == tree.leaves(new)[1]


# ---- gaps ----


@pytest.mark.parametrize("n_low", [40, 160])
def test_gaps_that_training_has_not_go_with_the_larger_side(n_low):
    table = pd.DataFrame({"x": np.repeat([0.0, 1.0], [n_low, 200 - n_low])})
    tree, _ = grown(table, table.x, 2)
    codes = tree.binning.codes(pd.DataFrame({"x": [np.nan, 0.0 if n_low == 160 else 1.0]}))
    assert tree.leaves(codes)[0] == tree.leaves(codes)[1]


@given(seed=st.integers(0, 10_000))
def test_no_other_place_of_gaps_and_no_other_cut_gains_more(seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, 1.0, 2.0, 3.0, np.nan], 300)
    scores = rng.normal(size=(300, 1))
    tree, codes = grown(pd.DataFrame({"x": x}), scores, 2)
    gaps = np.isnan(x)
    sides = [gaps, *(x <= cut for cut in range(3)), *((x <= cut) | gaps for cut in range(3))]
    best = max(worth(scores, [side, ~side]) for side in sides if 30 <= side.sum() <= 270)
    assert worth(scores, [tree.leaves(codes) == leaf for leaf in range(2)]) == pytest.approx(best)


# ---- scores ----


def test_mean_scores_have_variance_1_where_the_pooled_classifier_is_right():
    rng = np.random.default_rng(0)
    share = rng.uniform(0.1, 0.9, (20_000, 1))
    residual = (rng.random((20_000, 1)) < share) - share
    scores = standardized_scores("mean", residual, share * (1 - share), np.ones((20_000, 1)), np.ones(20_000))
    assert (scores.mean(), scores.std()) == pytest.approx((0, 1), abs=0.03)


def test_only_the_criterion_score_sees_that_an_effect_turns_round():
    """A residual of mean 0 on both sides of x, whose relation to z changes its sign."""
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 10, 2000), rng.choice([-1.0, 1.0], 2000)
    residual = (0.4 * z * np.where(x < 5, 1, -1))[:, None] + rng.normal(0, 0.1, (2000, 1))
    curvature, columns = np.full((2000, 1), 0.25), np.column_stack([np.ones(2000), z])
    table = pd.DataFrame({"x": x})
    gains = []
    for criterion in ("mean", "score"):
        scores = standardized_scores(criterion, residual, curvature, columns, np.ones(2000))
        tree, codes = grown(table, scores, 2)
        gains.append(worth(scores, [tree.leaves(codes) == leaf for leaf in range(tree.n_leaves)]))
        if criterion == "score":
            assert same_partition(tree.leaves(codes).tolist(), (x < 5).tolist())
    assert gains[1] > 100 * gains[0]
