"""Tables with groups in them, and their fits, for tests of rows in blocks."""

import functools

import numpy as np
import pandas as pd

from dafh import DAFHClassifier

FEATURES = ["x0", "x1", "x2", "age", "job"]
KNOWN = ("sample_weight", "persons", "time", "guard_features")


def grouped_table(n_rows, seed=0):
    """Numbers, categories, gaps, emoji and quotes; the effect of x2 depends on the job."""
    rng = np.random.default_rng(seed)
    # One digit each: most of the time would go into factorisations of many bins.
    table = pd.DataFrame({f"x{i}": rng.normal(size=n_rows).round(1) for i in range(3)})
    table["age"] = rng.integers(2, 9, n_rows) * 10.0
    table.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    table["job"] = rng.choice(["cook", "clerk", 'o\'neil "x"', "😀"], n_rows, p=[0.45, 0.35, 0.1, 0.1])
    table.loc[rng.random(n_rows) < 0.05, "job"] = None
    logit = table["x0"] - 0.5 * table["x1"] + np.where(table["job"].eq("cook"), 2.0, -1.5) * table["x2"]
    table["y"] = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    return table


def written_in_files(folder, table, n_files):
    """Write rows into so many files, in their order."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), n_files)):
        table.iloc[rows].to_parquet(folder / f"{number:02d}.parquet", index=False, row_group_size=700)
    return str(folder / "*.parquet")


def fitted(X, y="y", n_groups=2, **options):
    known = {name: options.pop(name) for name in KNOWN if name in options}
    return DAFHClassifier(n_groups, random_state=0, **options).fit(X, y, **known)


@functools.cache
def in_memory(n_rows):
    """The model of rows in memory, fitted once. Tests that call it take the small sample, and change nothing in it."""
    table = grouped_table(n_rows)
    return fitted(table[FEATURES], table["y"])


def coefficients(model):
    """All coefficients of a model with exceptions."""
    pooled = model.pooled_
    pooled = pooled[-1] if hasattr(pooled, "steps") else pooled
    own = model._trained.corrections
    if hasattr(pooled, "points_"):
        parts = [*pooled.points_, pooled.intercept_]
    else:
        parts = [pooled.coef_, pooled.intercept_] if hasattr(pooled, "coef_") else []
    parts += [*own.points, own.intercept] if hasattr(own, "points") else [own.weight, own.of_logits, own.intercept]
    return np.concatenate([np.ravel(part) for part in parts])


def assert_same_model(one, other, X):
    """Groups equal on every row, coefficients to 1e-6, guard reports equal."""
    assert one.n_groups_ == other.n_groups_
    np.testing.assert_array_equal(one.predict_group(X), other.predict_group(X))
    np.testing.assert_allclose(coefficients(one), coefficients(other), atol=1e-6)
    assert str(one.guard_report_) == str(other.guard_report_)
