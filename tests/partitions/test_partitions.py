import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from dafh import DecoupledClassifier, PreferenceMatrix
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.partitions import (
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
    RandomPartition,
    RulePartition,
    TreePartition,
    paper_manual_partition,
)
from dafh.partitions.tree import Node, n_prunings, prunings, separation
from dafh.rivals.baselines import BASELINES, make_baseline
from dafh.stats import mcnemar_p


def people(n=1200, seed=0, noise=0.0):
    """One feature; its sign means the opposite for the two values of `side`; `hat` means nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"hat": rng.choice(["bowler", "cap"], n), "side": rng.choice(["left", "right"], n)})
    x = rng.normal(size=(n, 1))
    y = ((x[:, 0] > 0) == (table.side == "right")).astype(int).to_numpy()
    flipped = rng.uniform(size=n) < noise
    return x, np.where(flipped, 1 - y, y), table


# ---- rules that hold for all partitions ----


def test_groups_are_served_by_their_own_classifier():
    x, y, table = people()
    model = DecoupledClassifier(AttributePartition("side")).fit(x, y, sensitive_features=table)
    assert model.score(x, y, sensitive_features=table) > 0.98
    assert model.pooled_.score(x, y) < 0.6
    matrix = PreferenceMatrix.of(model, x, y, sensitive_features=table)
    assert matrix.violations == 0
    assert matrix.min_gain > 0.3


def test_a_group_with_one_label_gets_that_label():
    x, y, table = people()
    y = np.where(table.side == "left", 1, y)
    model = DecoupledClassifier(AttributePartition("side")).fit(x, y, sensitive_features=table)
    left = table.side == "left"
    assert (model.predict(x, table)[left] == 1).all()
    np.testing.assert_array_equal(model.predict_proba(x, table)[left], [[0, 1]] * left.sum())


def test_a_tiny_group_is_served_by_the_pooled_classifier():
    x, y, table = people()
    table.loc[:4, "hat"] = "crown"
    model = DecoupledClassifier(AttributePartition("hat"), min_group_size=10).fit(x, y, sensitive_features=table)
    crown = model.partition_.group_names_.index("hat=crown")
    assert model.estimators_[crown] is model.pooled_
    np.testing.assert_array_equal(model.predict_all(x)[:, crown], model.predict_all(x)[:, -1])


def test_a_combination_not_seen_in_training_is_served_by_the_pooled_classifier():
    x, y, table = people()
    seen = ~((table.hat == "cap") & (table.side == "left"))
    model = DecoupledClassifier(IntersectionPartition()).fit(x[seen], y[seen], sensitive_features=table[seen])
    assert model.n_groups_ == 3
    assert (model.predict_group(x, table)[~seen] == 3).all()
    np.testing.assert_array_equal(model.predict(x, table)[~seen], model.pooled_.predict(x[~seen]))
    matrix = PreferenceMatrix.of(model, x, y, sensitive_features=table)
    assert matrix.sizes[3] == (~seen).sum()
    assert matrix.gains[3] == 0


@pytest.mark.parametrize(
    "partition",
    [AttributePartition(), IntersectionPartition(), TreePartition(), RulePartition({"all": lambda t: t.hat != ""})],
)
def test_a_partition_that_needs_attributes_says_so(partition):
    x, y, table = people()
    with pytest.raises(InputError, match=f"{type(partition).__name__} divides rows by sensitive attributes") as caught:
        DecoupledClassifier(partition).fit(x, y)
    assert "\n" not in str(caught.value)
    model = DecoupledClassifier(IntersectionPartition()).fit(x, y, sensitive_features=table)
    with pytest.raises(InputError, match="pass sensitive_features"):
        model.predict(x)


@pytest.mark.parametrize(
    "as_given",
    [pd.DataFrame, lambda t: pl.DataFrame(t.to_dict("list")), lambda t: t.to_dict("list"), lambda t: t.to_numpy()],
)
def test_attributes_come_in_any_table(as_given):
    x, y, table = people()
    model = DecoupledClassifier(IntersectionPartition()).fit(x, y, sensitive_features=as_given(table))
    assert model.n_groups_ == 4
    assert model.score(x, y, sensitive_features=as_given(table)) > 0.98


def test_the_order_of_attribute_columns_does_not_matter_and_a_missing_one_is_named():
    x, y, table = people()
    model = DecoupledClassifier(IntersectionPartition()).fit(x, y, sensitive_features=table)
    np.testing.assert_array_equal(model.predict(x, table), model.predict(x, table[["side", "hat"]]))
    for fitted in (
        model,
        DecoupledClassifier(TreePartition(["side"], random_state=0)).fit(x, y, sensitive_features=table),
    ):
        with pytest.raises(InputError, match="no column 'side'"):
            fitted.predict(x, table[["hat"]])


def test_one_seed_makes_partition_and_classifiers_reproducible():
    x, y, _ = people(300)
    first, again = (make_baseline("mlp", random_state=3).fit(x, y).predict_proba(x) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_missing_attribute_is_a_value_of_its_own():
    x, y, table = people()
    table.loc[:99, "side"] = None
    model = DecoupledClassifier(AttributePartition("side")).fit(x, y, sensitive_features=table)
    assert "side=(missing)" in model.partition_.group_names_


@pytest.mark.parametrize(
    ("partition", "table", "message"),
    [
        (AttributePartition("sex"), None, "no column 'sex'; it has hat, side"),
        (AttributePartition(), None, "Choose the attribute"),
        (IntersectionPartition(), pd.DataFrame({"a": [1]}), "has 1 rows, the data have 1200"),
        (IntersectionPartition(), pd.DataFrame(index=range(1200)), "no columns"),
    ],
)
def test_attributes_that_cannot_be_used(partition, table, message):
    x, y, attributes = people()
    with pytest.raises(InputError, match=message):
        DecoupledClassifier(partition).fit(x, y, sensitive_features=attributes if table is None else table)


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(max_depth=2), LinearSVC()])
def test_any_classifier_can_be_decoupled(estimator):
    x, y, table = people()
    model = DecoupledClassifier(AttributePartition("side"), estimator).fit(x, y, sensitive_features=table)
    assert model.score(x, y, sensitive_features=table) > 0.95
    assert hasattr(model, "predict_proba") == hasattr(estimator, "predict_proba")


def test_weights_reach_the_classifiers():
    x, y, table = people(noise=0.3)
    only = (table.hat == "cap").to_numpy().astype(float)
    weighted = DecoupledClassifier(AttributePartition("side")).fit(x, y, sensitive_features=table, sample_weight=only)
    removed = DecoupledClassifier(AttributePartition("side")).fit(
        x[only > 0], y[only > 0], sensitive_features=table[only > 0]
    )
    np.testing.assert_allclose(weighted.predict_proba(x, table), removed.predict_proba(x, table), atol=1e-6)


# ---- one by one ----


def test_everybody_is_one_group():
    x, y, _ = people()
    model = DecoupledClassifier(PooledPartition()).fit(x, y)
    assert model.n_groups_ == 1
    np.testing.assert_array_equal(model.predict(x), model.pooled_.predict(x))


def test_a_random_group_is_for_good_and_of_equal_size():
    x, y, _ = people(3000)
    partition = RandomPartition(3, random_state=0).fit(x, y)
    groups = partition.assign(x)
    np.testing.assert_array_equal(groups[100:200], partition.assign(x[100:200]))
    assert np.abs(np.bincount(groups) / 3000 - 1 / 3).max() < 0.05
    assert (groups != RandomPartition(3, random_state=1).fit(x, y).assign(x)).mean() > 0.5


def test_clusters_are_what_looks_alike():
    x = np.concatenate([np.full((50, 2), -5.0), np.full((50, 2), 5.0)]) + np.random.default_rng(0).normal(size=(100, 2))
    groups = ClusterPartition(2, random_state=0).fit(x, None).assign(x)
    assert len(set(groups[:50])) == len(set(groups[50:])) == 1
    assert groups[0] != groups[-1]


def test_the_manual_partition_of_the_paper():
    table = pd.DataFrame(
        {
            "race_group": ["other", "other", "other", "Caucasian", "other"],
            "sex": ["Male", "Female", "Female", "Male", "Male"],
            "age_group": ["less than 25", "25 - 45", "less than 25", "25 - 45", "greater than 45"],
        }
    )
    partition = paper_manual_partition(random_state=0)
    seen = {tuple(partition.fit(x, None, table).assign(x, table)) for x in np.arange(200).reshape(40, 5, 1)}
    assert {groups[:2] for groups in seen} == {(0, 1)}
    assert {groups[2] for groups in seen} == {groups[3] for groups in seen} == {groups[4] for groups in seen} == {0, 1}


# ---- the tree ----


def test_the_tree_finds_the_attribute_that_matters_and_leaves_the_other():
    x, y, table = people()
    partition = TreePartition(random_state=0).fit(x, y, table)
    assert sorted(partition.group_names_) == ["side=left", "side=right"]
    model = DecoupledClassifier(TreePartition(random_state=0)).fit(x, y, sensitive_features=table)
    assert model.score(x, y, sensitive_features=table) > 0.98


def test_where_no_attribute_matters_everybody_is_served_by_one_model():
    x, y, table = people()
    constant = table.assign(side="both", hat="none")
    partition = TreePartition(random_state=0).fit(x, y, constant)
    assert partition.group_names_ == ["everybody"]
    assert (partition.assign(x, constant) == 0).all()


def test_a_tree_that_harms_a_group_is_discarded():
    # One rule for all rows, and too few rows on the left to learn it again in 40 columns.
    x = np.random.default_rng(0).normal(size=(2000, 40))
    table = pd.DataFrame({"side": np.where(np.arange(2000) < 240, "left", "right")})
    strict, blind = (TreePartition(alpha=alpha, random_state=0).fit(x, x[:, 0] > 0, table) for alpha in (0.1, 1e-300))
    assert sorted(blind.group_names_) == ["side=left", "side=right"]
    assert strict.group_names_ == ["everybody"]


def test_a_split_into_a_part_that_is_too_small_is_not_made():
    x, y, table = people(400)
    x = np.column_stack([x, np.random.default_rng(0).normal(size=(400, 59))])  # 2d = 120 rows, d = 60 of each class
    table = table.assign(rare=np.where(np.arange(400) < 60, "few", "many"))
    assert TreePartition(["rare"], random_state=0).fit(x, y, table).group_names_ == ["everybody"]


def test_an_unseen_value_is_served_by_the_deepest_ancestor_that_fits():
    x, y, table = people(3000)
    y = np.where(table.hat == "cap", y, x[:, 0] > 0)  # the side matters to those with a cap only
    model = DecoupledClassifier(TreePartition(random_state=0)).fit(x, y, sensitive_features=table)
    first = model.partition_.tree_[0].path[0][0]
    second = {"hat": "side", "side": "hat"}[first]
    value = next(name.split(", ")[0].split("=")[1] for name in model.partition_.group_names_ if ", " in name)
    inner = (table[first] == value).to_numpy()
    strange = table.assign(**{second: "never seen"})
    ancestor = StandardizedLogisticRegression().fit(x[inner], y[inner])
    assert (ancestor.predict(x[inner]) != model.pooled_.predict(x[inner])).any()
    np.testing.assert_array_equal(model.predict(x, strange)[inner], ancestor.predict(x[inner]))
    assert (model.predict_group(x, strange)[inner] == model.n_groups_).all()
    lost = table.assign(**{first: "never seen"})
    np.testing.assert_array_equal(model.predict(x, lost), model.pooled_.predict(x))


def test_the_score_is_the_formula_written_out():
    right = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 1]], bool)
    root = Node((), np.arange(4), right[0])
    leaves = [Node((("a", 1),), np.array([0, 1]), right[1]), Node((("a", 2),), np.array([2, 3]), right[2])]
    # leaf 1: own error 1/2, pooled 0, other 1; leaf 2: own 0, pooled 1/2, other 0
    gaps = [0.5, -0.5, -0.5, 0.0]
    assert separation(leaves, root) == pytest.approx(sum(4 * np.exp(-2 * gap**2 / 2) for gap in gaps))


def leaf_sets(node):
    """Prunings counted another way: all sets of nodes that cover every path exactly once."""

    def nodes(part):
        return [part, *itertools.chain.from_iterable(nodes(child) for child in part.children.values())]

    def leaves(part):
        return [part] if not part.children else [leaf for c in part.children.values() for leaf in leaves(c)]

    ends = [leaf.path for leaf in leaves(node)]
    every = nodes(node)
    for size in range(1, len(ends) + 1):
        for chosen in itertools.combinations(every, size):
            if all(sum(end[: len(n.path)] == n.path for n in chosen) == 1 for end in ends):
                yield frozenset(n.path for n in chosen)


def test_prunings_are_all_trees_that_cover_everybody_once():
    def grow(path, shape):
        node = Node(path, np.arange(0), np.zeros(0, bool))
        node.children = {i: grow((*path, (str(len(path)), i)), sub) for i, sub in enumerate(shape)}
        return node

    root = grow((), [[[], []], [], [[], [], []]])
    mine = [frozenset(leaf.path for leaf in tree) for tree in prunings(root)]
    assert len(mine) == len(set(mine)) == n_prunings(root) == 5
    assert set(mine) == set(leaf_sets(root))


@pytest.mark.parametrize("seed", range(6))
def test_pruning_takes_the_best_harmless_tree_of_an_enumeration(seed):
    x, y, table = people(900, seed=seed, noise=0.35)
    partition = TreePartition(random_state=seed).fit(x, y, table)
    chosen = {leaf.path for leaf in partition.tree_}

    # Everything again from the definition: models by path, gains and tests by atomic group.
    grow, prune = train_test_split(np.arange(900), test_size=1 / 3, stratify=y, random_state=seed)

    def follows(path, rows):
        return np.all([table[a].to_numpy()[rows] == v for a, v in path] or [np.ones(len(rows), bool)], axis=0)

    def right(path, judged=prune):
        rows = grow[follows(path, grow)]
        return StandardizedLogisticRegression().fit(x[rows], y[rows]).predict(x[judged]) == y[judged]

    # The first split is the one with the smaller score; with one column, every node can be split to the end.
    def score(attribute):
        paths = [((attribute, value),) for value in dict.fromkeys(table[attribute].to_numpy()[grow])]
        leaves = [Node(path, np.flatnonzero(follows(path, grow)), right(path, grow)) for path in paths]
        return separation(leaves, Node((), np.arange(len(grow)), right((), grow)))

    first, second = sorted(["hat", "side"], key=score)
    values = {"hat": ["bowler", "cap"], "side": ["left", "right"]}
    below = [
        [[((first, one),)], [((first, one), (second, other)) for other in values[second]]] for one in values[first]
    ]
    trees = [frozenset(left + right_hand) for left, right_hand in itertools.product(*below)]

    pooled, best = right(()), None
    for paths in trees:
        rights = {path: right(path) for path in paths}
        gains, smallest_p = [], 1.0
        for hat, side in itertools.product(["bowler", "cap"], ["left", "right"]):
            rows = follows((("hat", hat), ("side", side)), prune)
            (own,) = [p for p in paths if all({"hat": hat, "side": side}[a] == v for a, v in p)]
            gains.append(rights[own][rows].mean() - pooled[rows].mean())
            for rival in [pooled, *(rights[p] for p in paths if p != own)]:
                b, c = (~rights[own][rows] & rival[rows]).sum(), (rights[own][rows] & ~rival[rows]).sum()
                if b + c:
                    smallest_p = min(smallest_p, binomtest(int(c), int(b + c), 0.5, alternative="less").pvalue)
        key = (min(gains), max(gains), np.median(gains))
        if smallest_p >= 0.10 / (4 * (len(paths) - 1) + 4) and (best is None or key > best[0]):
            best = key, paths
    assert chosen == (set(best[1]) if best else {()})


def test_mcnemar_equals_scipy_s_binomial_test():
    for b, c in itertools.product(range(6), range(6)):
        expected = binomtest(c, b + c, 0.5, alternative="less").pvalue if b + c else 1.0
        assert mcnemar_p(b, c) == pytest.approx(expected)


# ---- by name ----


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_by_name_has_the_same_interface(name):
    x, y, table = people(600)
    table = table.assign(race_group="other", sex="Male", age_group="25 - 45")
    if name in ("trivial", "zafar"):
        table = table[["side"]]
    model = make_baseline(name, random_state=0)
    model.fit(x, y, sensitive_features=table)
    assert model.predict_all(x).shape == (600, model.n_groups_ + 1)
    assert 0 <= PreferenceMatrix.of(model, x, y, sensitive_features=table).accuracy <= 1


def test_capacity_controls_are_compared_with_logistic_regression():
    x, y, _ = people(600)
    y = (np.abs(x[:, 0]) > 0.7).astype(int)
    for name, gains in (("majority", False), ("mlp", True), ("boosting", True)):
        matrix = PreferenceMatrix.of(make_baseline(name, random_state=0).fit(x, y), x, y)
        assert (matrix.min_gain > 0.1) == gains
    own = make_baseline("boosting", estimator=LogisticRegression(C=0.1)).fit(x, y)
    assert own.pooled_.C == 0.1


def test_an_unknown_baseline_is_explained():
    with pytest.raises(InputError, match="no baseline 'best': choose from pooled, trivial"):
        make_baseline("best")


def test_the_guide_s_own_partition_works(capsys):
    path = Path(__file__).parent.parent / "examples" / "own_partition.py"
    spec = importlib.util.spec_from_file_location("own_partition", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert "error_pooled" in capsys.readouterr().out


def test_random_partitions_with_different_seeds_are_unrelated():
    X = np.arange(4000.0)[:, None]
    one, other = (RandomPartition(2, random_state=seed).fit(X, None).assign(X) for seed in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06
