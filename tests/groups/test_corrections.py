"""Corrections as they are fitted and as they are served: both add the same to the pooled logits."""

import numpy as np
import pandas as pd
import pytest

from dafh.groups.corrections import CorrectionDesign
from dafh.groups.trained import ExceptionModel
from dafh.regions.conditions import Condition, Region
from dafh.rows import TableEncoding

N, K = 80, 3
KINDS = ("points", "columns", "logits")


def seen_rows(seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"age": rng.integers(18, 60, N) * 1000.0, "flag": rng.random(N) < 0.1, "job": rng.choice(list("abc"), N)}
    )
    table.loc[::9, "age"] = np.nan
    return TableEncoding.learn(table, np.ones(N)).encode(table)


def fitted_and_served(kind, n_outputs=1, seed=0):
    """Pooled logits, what random coefficients add to them as they are fitted, and the same as it is served."""
    rng, seen = np.random.default_rng(seed), seen_rows()
    base = rng.normal(size=(N, n_outputs))
    design = CorrectionDesign(kind, seen, np.ones(N), base)
    coefficients = rng.normal(size=(K, design.design.n_coefficients, n_outputs))
    fitted = np.stack([design.design.logits(part) for part in coefficients], axis=1)
    return seen, base, fitted, design.served(coefficients)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_corrections_add_the_same_when_they_are_fitted_and_when_they_are_served(kind, n_outputs):
    seen, base, fitted, served = fitted_and_served(kind, n_outputs)
    assert served.n_groups == K
    for k in range(K):
        np.testing.assert_allclose(served.of_group(seen, base, k), fitted[:, k], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_may_be_served_by_another_classifier_or_by_none(kind):
    seen, base, fitted, served = fitted_and_served(kind)
    chosen = served.chosen(np.array([2, K, 0]))
    np.testing.assert_allclose(chosen.of_group(seen, base, 0), fitted[:, 2], atol=1e-9)
    np.testing.assert_array_equal(chosen.of_group(seen, base, 1), np.zeros((N, 1)))
    np.testing.assert_allclose(chosen.of_group(seen, base, 2), fitted[:, 0], atol=1e-9)


def test_a_classifier_that_is_too_sure_of_itself_can_be_corrected_by_its_own_logits():
    """Points for bins of the logits, which the columns do not have."""
    seen, base, _, served = fitted_and_served("logits")
    assert [len(served.points), len(served.logits)] == [4, 1]
    surer = served.of_group(seen, 5 * base, 0)
    assert (surer != served.of_group(seen, base, 0)).any()


def test_with_very_many_columns_the_logits_are_shifted_and_stretched_and_nothing_else():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 260)), columns=[f"x{number}" for number in range(260)])
    seen, base = TableEncoding.learn(table, np.ones(N)).encode(table), rng.normal(size=(N, 1))
    for kind in KINDS:
        design = CorrectionDesign(kind, seen, np.ones(N), base)
        assert (design.has_columns, design.design.n_coefficients) == (False, 2)
        np.testing.assert_allclose(design.served(np.array([[[1.0], [0.5]]])).of_group(seen, base, 0), 1 + 0.5 * base)


# ---- served with exceptions ----


def exception_model(kind="columns"):
    """Groups by job: a, b, and everybody else."""
    seen, base, fitted, served = fitted_and_served(kind)
    regions = tuple(Region((Condition("job", "category", values=(job,)),)) for job in "ab")
    return ExceptionModel(regions, served), seen, base, fitted


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_served_by_the_classifier_of_its_group(kind):
    model, seen, base, fitted = exception_model(kind)
    group, logits = model.route(seen, base)
    np.testing.assert_array_equal(group, seen.X.job.map({"a": 0, "b": 1, "c": 2}))
    np.testing.assert_array_equal(model.assign(seen), group)
    np.testing.assert_array_equal(model.group_proba(seen), np.eye(K)[group])
    np.testing.assert_allclose(logits, base + fitted[np.arange(N), group], atol=1e-9)
    np.testing.assert_allclose(model.every(seen, base), base[:, None] + fitted, atol=1e-9)


def test_a_group_that_the_pooled_classifier_serves_gets_its_logits():
    model, seen, base, _ = exception_model()
    group, logits = model.serving(np.array([K, 1, K])).route(seen, base)
    np.testing.assert_array_equal(logits[group != 1], base[group != 1])
    assert (logits[group == 1] != base[group == 1]).all()
