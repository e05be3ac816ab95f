"""Rows to audit, and people with attributes, shared by the tests of the audit."""

import numpy as np
import pandas as pd

from dafh import audit


def rows(n=2000, n_groups=2, errors=(0.3, 0.2), pooled_error=0.3, seed=0):
    """Labels, predictions that err at given rates, groups and pooled predictions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    wrong = rng.random((n, n_groups)) < np.resize(errors, n_groups)
    pooled = np.where(rng.random(n) < pooled_error, 1 - y, y)
    return y, np.where(wrong, 1 - y[:, None], y[:, None]), rng.integers(0, n_groups, n), pooled


def run(table, **options):
    y, predictions, groups, pooled = table
    return audit(y, predictions, groups, pooled=pooled, **options)


def verdicts(result):
    return result.to_frame().set_index(["group", "rival"])["verdict"].to_dict()


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["a", "b", "c"], n)})
    return table, rng


SMALL = {
    "y": np.zeros(1200, int),
    "predictions": np.column_stack([np.arange(1200) % 12 < 1, np.arange(1200) % 12 < 5]).astype(int),
    "groups": np.arange(1200) // 600,
    "pooled": (np.arange(1200) % 12 < 3).astype(int),
}
