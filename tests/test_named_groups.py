"""Names of groups: quarters that can be told apart, and the same names from every file."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.named_groups import Attribute, NamedGroups
from dafh.exceptions import InputError
from dafh.tables.schema import TableSchema


def quarters(values):
    return Attribute.of(pd.Series(values, name="income")).values[:-1]


def test_quarters_of_large_numbers_have_different_names():
    assert quarters(10_000_000 + np.arange(40)) == [
        "10,000,000 to 10,000,009", "10,000,010 to 10,000,019", "10,000,020 to 10,000,029", "10,000,030 to 10,000,039",
    ]  # fmt: skip


@given(st.integers(0, 10**12), st.sampled_from([1e-6, 0.01, 1.0, 1e3]))
def test_quarters_are_told_apart_at_every_size(start, step):
    values = np.unique(start + step * np.arange(40))
    if len(values) > 12:
        names = quarters(values)
        assert len(set(names)) == len(names)


def test_quarters_of_one_day_are_named_by_their_time():
    names = quarters(pd.date_range("2020-01-01", periods=40, freq="min"))
    assert names[0] == "2020-01-01 00:00:00 to 2020-01-01 00:09:00"
    assert len(set(names)) == 4
    assert quarters(pd.date_range("2020-01-01", periods=40))[0] == "2020-01-01 to 2020-01-10"


def test_every_row_falls_into_the_quarter_that_its_value_is_named_by():
    values = pd.Series([*np.arange(30.0), np.nan, np.inf], name="age")
    attribute = Attribute.of(values)
    for value, code in zip(values[:30], attribute.codes, strict=False):
        low, high = map(float, attribute.values[code].split(" to "))
        assert low <= value <= high
    assert [attribute.values[code] for code in attribute.codes[30:]] == ["(missing)"] * 2


def test_a_frequent_value_leaves_fewer_quarters():
    assert quarters([0.0] * 60 + list(range(1, 21))) == ["0 to 0", "1 to 20"]


def test_few_numbers_are_named_one_by_one_whatever_their_type():
    for values in ([1, 2, 2], [1.0, 2.0, np.nan], pd.array([1, 2, None], dtype="Int64"), ["1", "2", "2"]):
        assert Attribute.of(pd.Series(values, name="n")).values == ["1", "2", "(missing)"]


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
    assert [a.values for a in groups[0].attributes] == [a.values for a in groups[1].attributes]
    assert groups[0].attributes[2].values == ["False", "True", "(missing)"]


def test_too_many_combinations_are_refused():
    table = pd.DataFrame({f"a{i}": [f"{j}" for j in range(40)] for i in range(20)})
    groups = NamedGroups.of(table, 40)
    with pytest.raises(InputError, match="too many combinations to be intersected: lower depth"):
        groups.tabulate(np.zeros(40, np.intp), 1, np.ones(40), depth=20)
