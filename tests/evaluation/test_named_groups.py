"""Groups that attributes name: quarters, categories and gaps, alike in an audit and in a monitor."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.schema import TableSchema
from dafh.evaluation.named_groups import Attribute, NamedGroups
from dafh.exceptions import InputError
from dafh.monitor.settings import DeclaredSubgroups


def names_of(values, name="x"):
    return [subgroup.removeprefix(f"{name} = ") for subgroup in Attribute.of(pd.Series(values, name=name)).names]


def test_quarters_are_named_by_round_cuts():
    assert names_of(10_000_000 + np.arange(40)) == [
        "up to 10,000,009", "10,000,009 to 10,000,019", "10,000,019 to 10,000,029", "above 10,000,029",
    ]  # fmt: skip
    assert names_of(pd.date_range("2020-01-01", periods=40))[0] == "up to 2020-01-10"
    assert names_of(pd.date_range("2020-01-01", periods=40, freq="min"))[0] == "up to 2020-01-01 00:09:00"


@given(st.integers(0, 10**12), st.sampled_from([1e-6, 0.01, 1.0, 1e3]))
def test_quarters_are_told_apart_at_every_size(start, step):
    values = np.unique(start + step * np.arange(40))
    assert len(set(names_of(values))) == len(names_of(values))


def test_rows_without_a_number_are_a_subgroup_behind_the_quarters():
    attribute = Attribute.of(pd.Series([*np.arange(30.0), np.nan, np.inf], name="age"))
    assert [attribute.names[code] for code in attribute.codes[[0, 29, 30, 31]]] == [
        "age = up to 6", "age = above 21", "age = (missing)", "age = (missing)",
    ]  # fmt: skip


def test_a_frequent_value_takes_no_room_from_the_others():
    assert names_of([0.0] * 60 + list(range(1, 21))) == ["up to 0", "0 to 10", "above 10"]


def test_audit_and_monitor_name_the_same_subgroups():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "since": pd.date_range("2020-01-01", periods=200),
            "job": rng.choice(["cook", "clerk", None], 200),
            "level": rng.integers(1, 4, 200),
        }
    )
    audited, watched = NamedGroups.of(table, 200), DeclaredSubgroups.of(table, 200)
    assert [name for attribute in audited.attributes for name in attribute.names] == watched.names[1:]
    parts, first = watched.codes(table, 200), 1
    for number, attribute in enumerate(audited.attributes):
        np.testing.assert_array_equal(parts[:, number], attribute.codes + first)
        first += len(attribute.names)


def test_attributes_have_the_same_names_from_text_and_from_types():
    rng = np.random.default_rng(0)
    typed = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "income": 1e7 + rng.normal(size=200).round(3),
            "member": rng.random(200) < 0.5,
            "since": pd.date_range("2020-01-01", periods=200),
            "grade": rng.integers(1, 4, 200),
        }
    )
    text = typed.astype(str).astype(object)
    names = list(typed.columns)
    groups = [NamedGroups.of(TableSchema("y", {}).attributes_of(t, names), 200) for t in (typed, text)]
    assert [a.names for a in groups[0].attributes] == [a.names for a in groups[1].attributes]
    assert groups[0].attributes[2].names == ["member = False", "member = True"]


def test_too_many_combinations_are_refused():
    table = pd.DataFrame({f"a{i}": [f"{j}" for j in range(40)] for i in range(20)})
    groups = NamedGroups.of(table, 40)
    with pytest.raises(InputError, match="too many combinations to be intersected: lower depth"):
        list(groups.divisions(depth=20))


# ---- tables of groups ----

ATTRIBUTE = st.sampled_from(["a", "b", "c", None])


def rows_by_hand(table, depth):
    """Positions of the rows of every named group."""
    members = {}
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(table.columns, size):
            for row in range(len(table)):
                values = ["(missing)" if pd.isna(v) else v for v in table.loc[row, list(chosen)]]
                name = " & ".join(f"{column} = {value}" for column, value in zip(chosen, values, strict=True))
                members.setdefault(name, []).append(row)
    return members


@given(st.lists(st.tuples(ATTRIBUTE, ATTRIBUTE, ATTRIBUTE), min_size=1, max_size=40), st.integers(1, 4))
def test_groups_have_the_rows_that_they_have_by_hand_alone_and_intersected(rows, depth):
    table = pd.DataFrame(rows, columns=["x", "y", "z"], dtype=object)
    divided = list(NamedGroups.of(table, len(rows)).divisions(depth))
    members = {name: np.flatnonzero(group == k).tolist() for names, group in divided for k, name in enumerate(names)}
    assert members == rows_by_hand(table, min(depth, 3))


def test_names_are_sorted_spellings_of_one_code_are_one_group_and_written_gaps_are_gaps():
    attribute = Attribute.of(pd.Series(["b", "1", "1.0", "(missing)", None, "10"], name="x", dtype=object))
    assert attribute.names == ["x = 1", "x = 10", "x = b", "x = (missing)"]
    assert attribute.codes.tolist() == [2, 0, 0, 3, 3, 1]


@pytest.mark.parametrize(("n_values", "has_other"), [(58, False), (60, True), (90, True)])
def test_of_many_categories_the_rare_ones_are_put_together(n_values, has_other):
    values = [f"v{i:02d}" for i in range(n_values)]
    names = names_of([*values, *values[:5], "(missing)"])
    assert ("(other)" in names) is has_other
    assert len(names) == min(n_values + 1, 61 if "(missing)" in names else 60)
    assert set(values[:5]) <= set(names)  # Those with two rows each.


@pytest.mark.parametrize(("n_values", "n_groups"), [(12, 12), (13, 4)])
def test_more_than_twelve_numbers_are_cut_into_quarters(n_values, n_groups):
    assert len(names_of(np.arange(n_values))) == n_groups
    assert len(names_of(pd.date_range("2020-01-01", periods=n_values))) == n_groups


@pytest.mark.parametrize(
    ("table", "sentence"),
    [(pd.DataFrame({"x": ["a"]}), "has 1 rows, the data have 2"), (pd.DataFrame(index=[0, 1]), "no columns")],
)
def test_tables_that_do_not_fit_the_data_are_refused(table, sentence):
    with pytest.raises(InputError, match=sentence):
        NamedGroups.of(table, 2)
