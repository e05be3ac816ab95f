"""Declared subgroups, and what training rows looked like: the same in another session, and in later rows."""

import numpy as np
import pandas as pd

from dafh.monitor.settings import NOT_DECLARED, DeclaredSubgroups


def test_subgroups_are_those_of_the_rows_that_declare_them():
    table = pd.DataFrame(
        {"age": np.arange(100.0), "flag": [True, False] * 50, "level": [1, 2, 3, None] * 25, "job": ["a", "b"] * 50}
    )
    parts = DeclaredSubgroups.of(table, 100)
    assert parts.names[5:] == [
        "flag = False", "flag = True", "level = 1", "level = 2", "level = 3", "level = (missing)", "job = a", "job = b",
    ]  # fmt: skip
    later = table.assign(job="c", level=2)
    assert (parts.codes(later, 100)[:, 3] == NOT_DECLARED).all()
    assert len(set(parts.codes(later, 100)[:, 2])) == 1


def test_quarters_are_cut_once_and_later_rows_fall_into_them():
    parts = DeclaredSubgroups.of(pd.DataFrame({"age": np.arange(100.0)}), 100)
    assert parts.names == ["", "age = up to 24", "age = 24 to 49", "age = 49 to 74", "age = above 74"]
    later = pd.DataFrame({"age": [24.0, 24.5, 1000.0, np.nan]})
    assert parts.codes(later, 4)[:, 0].tolist() == [1, 2, 4, NOT_DECLARED]
    assert (parts.without_quarters(parts.codes(later, 4)) == NOT_DECLARED).all()
