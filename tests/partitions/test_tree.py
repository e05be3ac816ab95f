"""TreeLR: which splits are feasible, how a tree is grown, pruned and asked, checked on trees that are known."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dafh.exceptions import InputError
from dafh.partitions import NOBODY, TreePartition
from dafh.partitions.tree import Node, n_prunings, prunings, separation


class Counting(GaussianNB):
    """A classifier that remembers how often one of its kind was fitted, and with which weights."""

    weights = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.weights.append(sample_weight)
        return super().fit(X, y, sample_weight)


def rows_of(parts, seed=0):
    """Rows for a dictionary from attribute values to (number of rows, +1 or −1 for the sign of the rule)."""
    rng = np.random.default_rng(seed)
    blocks, labels, attributes = [], [], []
    for values, (n, sign) in parts.items():
        x = rng.normal(size=(n, 1))
        blocks.append(x)
        labels.append(sign * x[:, 0] > 0)
        attributes += [values] * n
    order = rng.permutation(len(attributes))
    table = pd.DataFrame(attributes, columns=["a", "b"][: len(attributes[0])]).iloc[order].reset_index(drop=True)
    return np.concatenate(blocks)[order], np.concatenate(labels)[order].astype(int), table


# ---- growing ----


def test_every_value_of_an_attribute_is_a_leaf_of_its_own():
    two = rows_of({("x",): (300, 1), ("y",): (300, -1), ("z",): (300, 1)})
    assert sorted(TreePartition(random_state=0).fit(*two).group_names_) == ["a=x", "a=y", "a=z"]


def test_a_nested_rule_needs_both_attributes_and_only_where_it_is_nested():
    parts = {("x", "p"): (400, 1), ("x", "q"): (400, -1), ("y", "p"): (400, 1), ("y", "q"): (400, 1)}
    X, y, table = rows_of(parts)
    partition = TreePartition(random_state=0).fit(X, y, table)
    served = {name: set(partition.assign(X, table)[(table.a + table.b) == name]) for name in ("xp", "xq", "yp", "yq")}
    assert all(len(codes) == 1 for codes in served.values())
    assert served["xq"] not in (served["xp"], served["yp"], served["yq"])


def test_a_part_needs_one_row_of_each_class_for_each_column():
    """Six columns, so that six rows of each class must be among those that grow the tree; five are too few."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    table = pd.DataFrame({"a": np.where(np.arange(300) < 20, "few", "many")})
    y = ((X[:, 0] > 0) ^ (table.a == "few")).astype(int).to_numpy()
    seen = {}
    for seed in range(30):
        grow, _ = train_test_split(np.arange(300), test_size=1 / 3, stratify=y, random_state=seed)
        n_rarest = int(np.bincount(y[grow[grow < 20]], minlength=2).min())
        partition = TreePartition(estimator=GaussianNB(), alpha=1e-9, random_state=seed)
        seen.setdefault(n_rarest, set()).add(partition.fit(X, y, table).n_groups_)
    assert (seen[5], seen[6]) == ({1}, {2})


def test_rows_of_one_class_need_two_rows_for_each_column():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.ones(60)
    table = pd.DataFrame({"a": np.where(np.arange(60) < 9, "few", "many")})
    seen = {}
    for seed in range(20):
        grow, _ = train_test_split(np.arange(60), test_size=1 / 3, stratify=y, random_state=seed)
        partition = TreePartition(random_state=seed).fit(X, y, table)
        seen.setdefault(int((grow < 9).sum()), set()).add(partition.n_groups_)
    assert (seen[5], seen[6]) == ({1}, {2})


def test_a_class_that_a_part_lacks_forbids_the_split():
    X, y, table = rows_of({("x",): (300, 1), ("y",): (300, -1)})
    y[(table.a == "y").to_numpy()] = 1  # No row of class 0 is left in y, and there is one in x.
    assert TreePartition(random_state=0).fit(X, y, table).group_names_ == ["everybody"]


def test_a_class_too_rare_to_be_divided_evenly_is_fitted_without_strata():
    X, y, table = rows_of({("x",): (200, 1), ("y",): (200, -1)})
    y[0] = 2
    partition = TreePartition(random_state=0).fit(X, y, table)
    assert set(partition.assign(X, table)) <= set(range(partition.n_groups_))


def test_an_attribute_with_one_value_is_never_split_by():
    X, y, table = rows_of({("x", "same"): (300, 1), ("y", "same"): (300, -1)})
    names = TreePartition(random_state=0).fit(X, y, table).group_names_
    assert sorted(names) == ["a=x", "a=y"]


def test_every_node_is_fitted_once_in_whatever_order_its_attributes_come():
    parts = {values: (150, 1 if values in (("x", "p"), ("y", "q")) else -1) for values in itertools.product("xy", "pq")}
    X, y, table = rows_of(parts)
    Counting.weights.clear()
    TreePartition(estimator=Counting(), random_state=0).fit(X, y, table)
    assert len(Counting.weights) == 1 + 2 + 2 + 4  # Root, each value of each attribute, each combination.


def test_the_weights_of_a_nodes_own_rows_reach_its_classifier():
    X, y, table = rows_of({("x",): (150, 1), ("y",): (150, -1)})
    Counting.weights.clear()
    weight = np.where(table.a == "x", 1.0, 7.0)
    TreePartition(estimator=Counting(), random_state=0).fit(X, y, table, weight)
    assert sorted(tuple(np.unique(w)) for w in Counting.weights) == [(1.0,), (1.0, 7.0), (7.0,)]


# ---- pruning ----


def test_more_attributes_than_prunings_can_be_compared_are_refused():
    """17 values, each of which is split again: 1 + 2^17 trees, none of which is made."""
    first, second = np.repeat(np.arange(17), 30), np.arange(510) // 15
    table = pd.DataFrame({"a": first, "b": second})
    X = np.random.default_rng(0).normal(size=(510, 1))
    y = ((X[:, 0] > 0) ^ (first % 2 == 0)).astype(int)
    with pytest.raises(InputError, match="too many prunings to compare: choose fewer attributes"):
        TreePartition(estimator=GaussianNB(), random_state=0).fit(X, y, table)


def full_tree(shape, path=()):
    """A tree with the given numbers of children, level by level."""
    node = Node(path, np.arange(0), np.zeros(0, bool))
    if shape:
        node.children = {i: full_tree(shape[1:], (*path, (str(len(path)), i))) for i in range(shape[0])}
    return node


@pytest.mark.parametrize(
    ("shape", "expected"), [((), 1), ((2,), 2), ((5,), 2), ((2, 2), 5), ((3, 2), 9), ((2, 2, 2), 26)]
)
def test_the_number_of_prunings_follows_the_recursion(shape, expected):
    """A node alone, or every choice of prunings of its children: p = 1 + the product over children."""
    tree = full_tree(shape)
    assert n_prunings(tree) == len(list(prunings(tree))) == expected


def test_every_pruning_has_the_root_alone_first_and_no_leaf_below_another():
    trees = list(prunings(full_tree((2, 2))))
    assert [leaf.path for leaf in trees[0]] == [()]
    for tree in trees:
        for one, other in itertools.permutations(tree, 2):
            assert other.path[: len(one.path)] != one.path


def test_leaves_that_all_agree_with_the_pooled_classifier_score_worst():
    right = np.ones(6, bool)
    root = Node((), np.arange(6), right)
    leaves = [Node((("a", k),), np.arange(3 * k, 3 * k + 3), right) for k in range(2)]
    assert separation(leaves, root) == 4 * 2 * 2  # Four for each pair of a leaf and a rival, and no gap anywhere.
    wrong = Node((), np.arange(6), ~right)
    assert separation(leaves, wrong) == pytest.approx(4 * 2 + 2 * 4 * np.exp(-3 / 2))


# ---- asking ----


@pytest.fixture(scope="module")
def nested():
    """A tree that splits by `a`, and by `b` below a=x only."""
    parts = {("x", "p"): (400, 1), ("x", "q"): (400, -1), ("y", "p"): (400, -1), ("y", "q"): (400, -1)}
    X, y, table = rows_of(parts)
    return TreePartition(random_state=0).fit(X, y, table), X, table


def test_members_are_the_rows_that_a_node_was_reached_by(nested):
    partition, X, table = nested
    groups = partition.assign(X, table)
    members = partition.members(X, table)
    for code in range(partition.n_groups_):
        np.testing.assert_array_equal(members[code], np.flatnonzero(groups == code))
    assert len(members) >= partition.n_groups_


def test_a_value_that_was_never_seen_stops_at_the_last_node_that_fits(nested):
    partition, _, _ = nested
    first = partition.tree_[0].path[0][0]
    strange = pd.DataFrame({"a": ["x"], "b": ["p"]}).assign(**{first: "new"})
    assert partition.assign(np.zeros((1, 1)), strange).tolist() == [NOBODY]


def test_no_rows_have_no_groups(nested):
    partition, _, table = nested
    assert partition.assign(np.zeros((0, 1)), table[:0]).shape == (0,)


def test_the_index_of_the_table_means_nothing(nested):
    partition, X, table = nested
    shuffled = table.set_axis(np.random.default_rng(0).permutation(len(table)), axis=0)
    np.testing.assert_array_equal(partition.assign(X, shuffled), partition.assign(X, table))


def test_renaming_the_values_changes_nothing_but_the_names():
    X, y, table = rows_of({values: (200, 1 if values[0] == "x" else -1) for values in itertools.product("xy", "pq")})
    other = table.replace({"x": "ä", "y": "0", "p": "1", "q": " "})
    first, second = (TreePartition(random_state=0).fit(X, y, t) for t in (table, other))
    np.testing.assert_array_equal(first.assign(X, table), second.assign(X, other))


def test_values_of_different_types_are_values_like_any_other():
    X, y, table = rows_of({(1,): (200, 1), ("one",): (200, -1), (None,): (200, 1)})
    partition = TreePartition(random_state=0).fit(X, y, table.astype(object).where(table.notna(), "(missing)"))
    assert sorted(partition.group_names_) == ["a=(missing)", "a=1", "a=one"]


def test_the_seed_deals_the_rows():
    X, y, table = rows_of({("x",): (60, 1), ("y",): (60, -1)})
    same = [TreePartition(random_state=3).fit(X, y, table).tree_[0].right.tolist() for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [([], "attributes is empty"), ("a", r"write \['a'\]"), (["c"], "no column 'c'; it has a")],
)
def test_columns_that_are_not_there_are_explained(attributes, message):
    X, y, table = rows_of({("x",): (20, 1), ("y",): (20, -1)})
    with pytest.raises(InputError, match=message):
        TreePartition(attributes).fit(X, y, table)
