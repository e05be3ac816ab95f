"""Tables with groups in them, for tests of fits in blocks."""

import numpy as np
import pandas as pd


def grouped_table(n_rows, seed=0, weights=False, digits=1):
    """Numbers, categories, gaps, emoji and quotes; the effect of x2 depends on the job."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"x{i}": rng.normal(size=n_rows) for i in range(4)})
    # One column has as many bins as there can be. With four of them, most of the time goes into factorisations.
    if digits is not None:
        table[["x1", "x2", "x3"]] = table[["x1", "x2", "x3"]].round(digits)
    table["age"] = rng.integers(18, 90, n_rows).astype(float)
    table.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    table["job"] = rng.choice(["cook", "clerk", 'o\'neil "x"', "😀"], n_rows, p=[0.45, 0.35, 0.1, 0.1])
    table.loc[rng.random(n_rows) < 0.05, "job"] = None
    logit = table["x0"] - 0.5 * table["x1"] + np.where(table["job"].eq("cook"), 2.0, -1.5) * table["x2"]
    table["y"] = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    if weights:
        table["weight"] = rng.choice([0.0, 0.5, 1.0, 3.0], n_rows)
    return table


def written_in_files(folder, table, n_files, seed=1):
    """Write rows in another order, into so many files."""
    folder.mkdir()
    order = np.random.default_rng(seed).permutation(len(table))
    for number, rows in enumerate(np.array_split(order, n_files)):
        table.iloc[rows].to_parquet(folder / f"{number:02d}.parquet", index=False, row_group_size=700)
    return str(folder / "*.parquet")


def coefficients(model):
    """All coefficients of a model with groups by rules."""
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
