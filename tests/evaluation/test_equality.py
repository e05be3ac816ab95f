"""Records that hold arrays and tables are equal if their values are."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh import audit
from dafh.evaluation import ComparedRows, ServedPredictions, choose_servers

Y, GROUPS = np.tile([0, 1], 20), np.repeat([0, 1], 20)


def rows():
    return ComparedRows.check(Y, np.column_stack([Y, 1 - Y]), GROUPS, 1 - Y)


def audited():
    people = pd.DataFrame({"sex": np.where(Y, "f", "m")})
    # Group 2 has no rows: its error rates are NaN, which must not make a result differ from itself.
    return audit(Y, np.column_stack([Y, 1 - Y, Y]), GROUPS, pooled=1 - Y, sensitive_features=people)


RECORDS = {
    "ComparedRows": rows,
    "PreferenceMatrix": lambda: audited().matrix,
    "GuardReport": lambda: choose_servers(rows()),
    "AuditResult": audited,
    "ServedPredictions": lambda: ServedPredictions(Y[:, None], GROUPS, 1 - Y, np.array([0, 1]), [0]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_equals_its_copy_and_nothing_else(name):
    record = RECORDS[name]()
    assert record == copy.deepcopy(record) == RECORDS[name]()
    assert record != name
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ComparedRows", {"weight": np.full(40, 0.5)}),
        ("ComparedRows", {"person": GROUPS}),
        ("PreferenceMatrix", {"pr_without_harm": 0.25}),
        ("GuardReport", {"kind": "proof"}),
        ("GuardReport", {"table": pd.DataFrame({"rows": [20.0, 20.0]})}),
        ("AuditResult", {"named": None}),
        ("AuditResult", {"level": 0.1}),
        ("AuditResult", {"limits": np.zeros((2, 3, 4))}),
        ("ServedPredictions", {"pooled": np.where(Y, "yes", "no")}),
    ],
)
def test_one_other_value_makes_a_record_unequal(name, change):
    record = RECORDS[name]()
    assert record != replace(record, **change)
