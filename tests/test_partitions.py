"""Given groups: what holds for any table of attributes, any seed and any rows, and who serves them."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh import DecoupledClassifier, PreferenceMatrix
from dafh.exceptions import InputError
from dafh.partitions import (
    NOBODY,
    ClusterPartition,
    IntersectionPartition,
)


def people(n=1200, seed=0):
    """One feature; its sign means the opposite for the two values of `side`; `hat` means nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"hat": rng.choice(["bowler", "cap"], n), "side": rng.choice(["left", "right"], n)})
    x = rng.normal(size=(n, 1))
    y = ((x[:, 0] > 0) == (table.side == "right")).astype(int).to_numpy()
    return x, y, table


# ---- rules that hold for all partitions ----


def test_groups_are_served_by_their_own_classifier():
    x, y, table = people()
    model = DecoupledClassifier(IntersectionPartition("side")).fit(x, y, sensitive_features=table)
    assert model.score(x, y, sensitive_features=table) > 0.98
    assert model.pooled_.score(x, y) < 0.6
    matrix = PreferenceMatrix.of(model, x, y, sensitive_features=table)
    assert matrix.violations == 0
    assert matrix.min_gain > 0.3


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


def test_a_partition_that_needs_attributes_says_so():
    x, y, table = people()
    with pytest.raises(InputError, match="IntersectionPartition"):
        DecoupledClassifier(IntersectionPartition()).fit(x, y)
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
    with pytest.raises(InputError, match="no column 'side'"):
        model.predict(x, table[["hat"]])


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


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([], "empty"),
        (3, "list of names of columns"),
        (["sex", "age"], "no column 'age'"),
    ],
)
def test_attributes_that_cannot_be_combined_are_explained(attributes, message):
    table = pd.DataFrame({"sex": ["f"], "born": ["here"]})
    with pytest.raises(InputError, match=message):
        IntersectionPartition(attributes).fit(None, None, table)


# ---- clusters ----


@pytest.mark.parametrize("n_groups", [0, -1])
def test_fewer_than_one_group_is_refused(n_groups):
    with pytest.raises(InputError, match="n_groups"):
        ClusterPartition(n_groups).fit(no_rows(3), None)


def test_clusters_do_not_depend_on_the_units_of_a_column():
    X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 40, axis=0)
    first, second = (ClusterPartition(3, random_state=0).fit(Z, None).assign(Z) for Z in (X, X * [1e-6, 1e5] + 3))
    assert pd.crosstab(first, second).gt(0).to_numpy().sum() == 3


def test_a_row_belongs_to_the_nearest_centre_in_standardised_columns():
    X = np.random.default_rng(3).normal(size=(60, 2)) * [1, 100]
    partition = ClusterPartition(4, random_state=0).fit(X, None)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    nearest = ((scaled[:, None] - partition.centers_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(partition.assign(X), nearest)
