"""Given groups: what holds for any table of attributes, any seed and any rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from dafh.exceptions import InputError
from dafh.partitions import (
    NOBODY,
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    Partition,
    PooledPartition,
    RandomPartition,
    RulePartition,
    paper_manual_partition,
)

values = st.sampled_from(["a", "b", "ü", "", "a b", 1, 2.5, True])
tables = st.lists(st.tuples(values, values), min_size=1, max_size=30).map(
    lambda rows: pd.DataFrame(rows, columns=["one", "two"], dtype=object)
)


def no_rows(n):
    return np.zeros((n, 1))


# ---- by attributes ----


@given(tables)
def test_rows_share_a_group_exactly_where_they_share_all_values(table):
    groups = IntersectionPartition().fit(None, None, table).assign(None, table)
    rows = list(table.itertuples(index=False, name=None))
    for (i, one), (j, other) in itertools.combinations(enumerate(rows), 2):
        assert (groups[i] == groups[j]) == (one == other)


@given(tables)
def test_groups_are_numbered_without_gaps_and_named_once_each(table):
    partition = IntersectionPartition().fit(None, None, table)
    assert set(partition.assign(None, table)) == set(range(partition.n_groups_))
    assert partition.n_groups_ == len(table.drop_duplicates())


@given(tables, tables)
def test_a_row_belongs_to_no_group_exactly_where_its_combination_was_not_seen(seen, asked):
    groups = IntersectionPartition().fit(None, None, seen).assign(None, asked)
    known = set(seen.itertuples(index=False, name=None))
    expected = [row in known for row in asked.itertuples(index=False, name=None)]
    np.testing.assert_array_equal(groups != NOBODY, expected)


@given(tables, st.randoms(use_true_random=False))
def test_relabelling_the_values_relabels_nothing_but_the_names(table, random):
    known = list(dict.fromkeys(table.to_numpy().ravel().tolist()))
    renamed = {value: f"v{i}" for i, value in enumerate(random.sample(known, len(known)))}
    other = table.map(renamed.get)
    np.testing.assert_array_equal(
        IntersectionPartition().fit(None, None, table).assign(None, table),
        IntersectionPartition().fit(None, None, other).assign(None, other),
    )


@given(tables)
def test_members_are_the_rows_that_assign_puts_into_each_group(table):
    partition = IntersectionPartition(["one"]).fit(None, None, table)
    groups = partition.assign(None, table)
    members = partition.members(None, table)
    assert sorted(np.concatenate(members).tolist()) == list(range(len(table)))
    assert all((groups[rows] == k).all() for k, rows in enumerate(members))


def test_one_attribute_alone_is_the_intersection_of_that_attribute():
    table = pd.DataFrame({"sex": ["f", "m", "f"], "born": ["here", "here", "there"]})
    one = AttributePartition("born").fit(None, None, table)
    many = IntersectionPartition(["born"]).fit(None, None, table)
    assert one.group_names_ == many.group_names_ == ["born=here", "born=there"]
    assert one.assign(None, table).tolist() == many.assign(None, table).tolist() == [0, 0, 1]


def test_columns_that_are_not_asked_for_may_change_or_go_away():
    table = pd.DataFrame({"sex": ["f", "m"], "note": [1, 2]})
    partition = AttributePartition("sex").fit(None, None, table)
    assert partition.assign(None, table[["sex"]]).tolist() == [0, 1]
    assert partition.assign(None, table.assign(note="other")).tolist() == [0, 1]


def test_a_column_that_is_named_twice_counts_once():
    table = pd.DataFrame({"sex": ["f", "m", "f"]})
    partition = IntersectionPartition(["sex", "sex"]).fit(None, None, table)
    assert partition.group_names_ == ["sex=f", "sex=m"]
    assert partition.assign(None, table).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([], "attributes is empty: name at least one column"),
        ("sex", r"attributes must be a list of columns: write \['sex'\]"),
        (["sex", "age"], "no column 'age'; it has sex, born"),
    ],
)
def test_attributes_that_cannot_be_combined_are_explained(attributes, message):
    table = pd.DataFrame({"sex": ["f"], "born": ["here"]})
    with pytest.raises(InputError, match=message):
        IntersectionPartition(attributes).fit(None, None, table)


def test_a_fit_that_fails_leaves_the_former_groups():
    table = pd.DataFrame({"sex": ["f", "m"]})
    partition = AttributePartition("sex").fit(None, None, table)
    with pytest.raises(InputError, match="no column 'sex'"):
        partition.fit(None, None, pd.DataFrame({"born": ["here"]}))
    assert partition.assign(None, table).tolist() == [0, 1]


# ---- by a hash ----


@given(st.integers(1, 9), st.integers(0, 2**31 - 2))
def test_random_groups_are_about_equal_in_size_for_every_seed(n_groups, seed):
    X = np.arange(3000.0).reshape(1500, 2)
    counts = np.bincount(RandomPartition(n_groups, random_state=seed).fit(X, None).assign(X), minlength=n_groups)
    # Five standard deviations of a fair draw.
    assert np.abs(counts - 1500 / n_groups).max() <= 5 * np.sqrt(1500 / n_groups)


def test_the_group_of_a_row_does_not_depend_on_the_other_rows():
    X = np.random.default_rng(0).normal(size=(200, 3))
    partition = RandomPartition(4, random_state=0).fit(X[:1], None)
    alone = [partition.assign(row[None])[0] for row in X]
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_array_equal(partition.assign(X), alone)
    np.testing.assert_array_equal(partition.assign(X[order]), np.array(alone)[order])


@pytest.mark.parametrize("as_given", [np.float32, np.int64, np.float64])
def test_equal_rows_are_in_one_group_whatever_their_type(as_given):
    X = np.arange(-50, 50).reshape(50, 2)
    partition = RandomPartition(5, random_state=0).fit(X, None)
    np.testing.assert_array_equal(partition.assign(X.astype(as_given)), partition.assign(X.astype(float)))


def test_minus_zero_is_zero():
    X = np.column_stack([np.arange(40.0), np.zeros(40)])
    partition = RandomPartition(8, random_state=0).fit(X, None)
    np.testing.assert_array_equal(partition.assign(X), partition.assign(X * [1, -1]))


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_the_groups_of_two_seeds_are_independent(n_groups):
    X = np.arange(6000.0)[:, None]
    one, other = (RandomPartition(n_groups, random_state=seed).fit(X, None).assign(X) for seed in (5, 6))
    table = pd.crosstab(one, other).to_numpy()
    assert np.abs(table - 6000 / n_groups**2).max() <= 5 * np.sqrt(6000 / n_groups**2)


def test_the_same_seed_gives_the_same_groups_forever():
    """A model file keeps the seed of the hash only, so that the hash itself must never change."""
    X = np.array([[0.0, 1.0], [2.5, -1.0], [1e300, 1e-300], [7.0, 7.0]])
    groups = [RandomPartition(10, random_state=seed).fit(X, None).assign(X).tolist() for seed in (0, 1)]
    assert groups == [[7, 4, 1, 3], [1, 8, 1, 4]]


@pytest.mark.parametrize("partition", [RandomPartition(0), ClusterPartition(0), RandomPartition(-1)])
def test_fewer_than_one_group_is_refused(partition):
    with pytest.raises(InputError, match="needs n_groups of at least 1, and at most 10,000; got"):
        partition.fit(no_rows(3), None)


# ---- clusters ----


def test_clusters_do_not_depend_on_the_units_of_a_column():
    X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 40, axis=0)
    first, second = (ClusterPartition(3, random_state=0).fit(Z, None).assign(Z) for Z in (X, X * [1e-6, 1e5] + 3))
    assert pd.crosstab(first, second).gt(0).to_numpy().sum() == 3


def test_a_weight_of_three_is_the_row_three_times_in_clusters_too():
    X = np.random.default_rng(1).normal(size=(40, 2))
    times = np.random.default_rng(2).integers(1, 4, 40)
    weighted = ClusterPartition(3, random_state=0).fit(X, None, sample_weight=times.astype(float))
    repeated = ClusterPartition(3, random_state=0).fit(np.repeat(X, times, axis=0), None)
    np.testing.assert_allclose(weighted.centers_, repeated.centers_)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_)


def test_a_row_belongs_to_the_nearest_centre_in_standardised_columns():
    X = np.random.default_rng(3).normal(size=(60, 2)) * [1, 100]
    partition = ClusterPartition(4, random_state=0).fit(X, None)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    nearest = ((scaled[:, None] - partition.centers_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(partition.assign(X), nearest)


def test_there_are_no_more_clusters_than_distinct_rows():
    X = np.array([[0.0], [0.0], [5.0]])
    partition = ClusterPartition(4, random_state=0).fit(X, None)
    assert partition.n_groups_ == 2
    assert partition.group_names_ == ["cluster 0", "cluster 1"]
    groups = partition.assign(X)
    assert groups[0] == groups[1] != groups[2]


# ---- rules ----


def test_the_first_rule_that_holds_decides():
    ages = pd.DataFrame({"age": [10, 20, 30, 40]})
    rules = {"young": lambda t: t.age < 25, "all": lambda t: np.ones(len(t)), "late": lambda t: t.age < 15}
    partition = RulePartition(rules)
    assert partition.fit(no_rows(4), None, ages).assign(no_rows(4), ages).tolist() == [0, 0, 1, 1]


def test_rows_without_a_rule_are_spread_over_all_groups_and_stay_there():
    X, ages = np.arange(600.0)[:, None], pd.DataFrame({"age": [50] * 600})
    partition = RulePartition({"a": lambda t: t.age < 0, "b": lambda t: t.age < 0}, rest="random", random_state=0)
    groups = partition.fit(X, None, ages).assign(X, ages)
    assert np.abs(np.bincount(groups) - 300).max() <= 5 * np.sqrt(300)
    np.testing.assert_array_equal(partition.assign(X[::-1], ages), groups[::-1])


def test_a_rule_that_answers_for_other_rows_is_named():
    ages = pd.DataFrame({"age": [10, 20, 30]})
    partition = RulePartition({"young": lambda t: (t.age < 25)[:2]}).fit(no_rows(3), None, ages)
    with pytest.raises(InputError, match=r"The rule 'young' must return one boolean for each of the 3 rows"):
        partition.assign(no_rows(3), ages)


def test_a_rule_may_answer_for_all_rows_at_once():
    ages = pd.DataFrame({"age": [10, 20]})
    assert RulePartition({"all": lambda t: True}).fit(None, None, ages).assign(None, ages).tolist() == [0, 0]


@pytest.mark.parametrize(("rules", "rest"), [({}, "pooled"), ({"a": lambda t: True}, "nobody")])
def test_rules_that_cannot_work_are_refused(rules, rest):
    with pytest.raises(InputError, match="at least one rule, and rest='pooled' or rest='random'"):
        RulePartition(rules, rest=rest).fit(None, None, pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("race", "sex", "age", "group"),
    [
        ("other", "Male", "less than 25", 0),
        ("other", "Male", "25 - 45", 0),
        ("other", "Female", "25 - 45", 1),
    ],
)
def test_the_manual_partition_has_fixed_groups_for_these_whatever_the_seed(race, sex, age, group):
    table = pd.DataFrame({"race_group": [race], "sex": [sex], "age_group": [age]})
    for seed in range(20):
        partition = paper_manual_partition(random_state=seed).fit(no_rows(1), None, table)
        assert partition.assign(no_rows(1), table).tolist() == [group]


# ---- all of them ----


@pytest.mark.parametrize(
    "partition", [PooledPartition(), RandomPartition(3, random_state=1), ClusterPartition(3, random_state=1)]
)
def test_a_partition_of_features_ignores_attributes_and_labels(partition):
    X = np.random.default_rng(4).normal(size=(50, 2))
    table = pd.DataFrame({"sex": ["f", "m"] * 25})
    plain = clone(partition).fit(X, None).assign(X)
    np.testing.assert_array_equal(clone(partition).fit(X, np.arange(50), table).assign(X, table), plain)
    assert plain.dtype == np.intp
    assert not partition.needs_sensitive_features


def test_what_a_subclass_must_define_is_not_defined_here():
    for call in (lambda p: p.fit(no_rows(1), None), lambda p: p.assign(no_rows(1))):
        with pytest.raises(NotImplementedError):
            call(Partition())
