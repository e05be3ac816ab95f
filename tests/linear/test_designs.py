"""Designs of bins and of columns: sums over rows against the plain matrix computation."""

import numpy as np
import pandas as pd
import pytest

from dafh.columns.bins import Binning
from dafh.linear.designs import BinnedDesign, DenseDesign, Standardization, make_basis
from dafh.linear.newton import class_shares, row_losses

WIDTHS = {"narrow": (3, 1, 5), "wide": (20, 30), "mixed": (14, 2, 0, 25, 12, 13)}


def binned(widths=WIDTHS["mixed"], n=60, seed=0):
    """A design with random bins and tables; column c has as many coefficients as `widths` says."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(width + 1, width)) for width in widths]
    codes = np.column_stack([rng.integers(0, len(table), n) for table in tables]).astype(np.uint8)
    return BinnedDesign(np.asfortranarray(codes), tables)


def columns(n=60, seed=0):
    return DenseDesign(np.random.default_rng(seed).normal(size=(n, 4)))


def stepped(*, smooth, n=60, seed=0):
    """Lines, with steps or without, beside categories and a flag, as scorecards and corrections have them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(list("pqr"), n), "c": rng.integers(0, 2, n)})
    table = table.assign(d=np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)))
    binning = Binning.learn(table)
    codes = binning.codes(table)
    return BinnedDesign(codes, make_basis(binning, codes, np.ones(n), smooth=smooth).tables)


BINNED = {name: binned(widths) for name, widths in WIDTHS.items()}
BINNED |= {"steps": stepped(smooth=True), "lines": stepped(smooth=False)}
ALL = [pytest.param(design, id=name) for name, design in (BINNED | {"dense": columns()}).items()]


@pytest.mark.parametrize("design", ALL)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_logits_and_gradients_are_matrix_products(design, n_outputs):
    rng = np.random.default_rng(1)
    matrix = design.dense()
    coefficients, residual = (rng.normal(size=(size, n_outputs)) for size in (design.n_coefficients, len(design)))
    np.testing.assert_allclose(design.logits(coefficients), matrix @ coefficients, atol=1e-12)
    np.testing.assert_allclose(design.gradient(residual), matrix.T @ residual, atol=1e-12)


@pytest.mark.parametrize("design", ALL)
def test_the_curvature_is_the_weighted_product_of_the_matrix_with_itself(design):
    weight = np.random.default_rng(1).uniform(size=len(design))
    matrix = design.dense()
    np.testing.assert_allclose(design.curvatures(weight)[0], matrix.T @ (weight[:, None] * matrix), atol=1e-12)


@pytest.mark.parametrize("design", ALL)
def test_sums_by_group_are_those_of_the_rows_of_each_group(design):
    rng = np.random.default_rng(1)
    group, weight = rng.choice([0, 2, 3], len(design)), rng.uniform(size=(len(design), 2))
    gradients, curvatures = design.gradients(weight, group, 4), design.curvatures(weight[:, 0], group, 4)
    for number in range(4):  # Group 1 is empty.
        rows = np.flatnonzero(group == number)
        members = design.take(rows)
        np.testing.assert_allclose(gradients[number], members.gradient(weight[rows]), atol=1e-12)
        np.testing.assert_allclose(curvatures[number], members.curvatures(weight[rows, 0])[0], atol=1e-12)


@pytest.mark.parametrize("design", ALL)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_grouped_logits_are_those_of_each_rows_group(design, n_outputs):
    rng = np.random.default_rng(1)
    coefficients, group = rng.normal(size=(4, design.n_coefficients, n_outputs)), rng.integers(0, 4, len(design))
    expected = np.stack([design.dense() @ part for part in coefficients])[group, np.arange(len(design))]
    np.testing.assert_allclose(design.grouped_logits(coefficients, group), expected, atol=1e-12)


# ---- likelihood ----


@pytest.mark.parametrize("m", [1, 2, 4])
def test_losses_are_the_logarithm_of_the_probability_of_the_label(m):
    rng = np.random.default_rng(m)
    logits, label = rng.uniform(-30, 30, (50, m)), rng.integers(max(m, 2), size=50)
    shares = class_shares(logits)
    if m == 1:
        shares = np.hstack([class_shares(-logits), shares])
    np.testing.assert_allclose(row_losses(logits, label), -np.log(shares[np.arange(50), label]), atol=1e-9)


# ---- what bins count for coefficients ----


def basis_of(table, weight=None, *, smooth=True):
    binning = Binning.learn(table)
    weight = np.ones(len(table)) if weight is None else weight
    return make_basis(binning, binning.codes(table), weight, smooth=smooth), binning


def test_a_line_and_steps_are_two_blocks_and_gaps_a_third():
    basis, _ = basis_of(pd.DataFrame({"x": [1.0, 2.0, 4.0, np.nan]}))
    np.testing.assert_array_equal(basis.tables[0][:, 1:], [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
    assert basis.block.tolist() == [-1, 0, 1, 1, 2]


def test_a_line_has_mean_0_and_variance_1_over_the_rows():
    rng = np.random.default_rng(0)
    table, weight = pd.DataFrame({"x": rng.lognormal(size=90)}), rng.uniform(1, 3, 90)
    basis, binning = basis_of(table, weight, smooth=False)
    line = basis.tables[0][binning.codes(table)[:, 0], 0]
    np.testing.assert_allclose(
        [np.average(line, weights=weight), np.average(line**2, weights=weight)], [0, 1], atol=1e-9
    )


def test_a_constant_column_has_no_coefficient():
    basis, _ = basis_of(pd.DataFrame({"x": [3.0, 3.0], "y": ["a", "b"]}))
    assert [table.shape[1] for table in basis.tables] == [0, 2]
    assert basis.block.tolist() == [-1, 0, 0]


def test_unseen_categories_count_for_nothing():
    basis, _ = basis_of(pd.DataFrame({"y": ["a", "b"]}))
    np.testing.assert_array_equal(basis.tables[0], [[1, 0], [0, 1], [0, 0]])


# ---- standardised columns ----


def test_a_row_of_weight_three_counts_as_three_rows():
    X = np.array([[0.0, 5.0], [4.0, 5.0]])
    columns = Standardization.of(X, np.array([3.0, 1.0]))
    assert columns.center.tolist() == [1, 5]
    assert columns.scale.tolist() == [np.sqrt(3), 1]  # (3 · 1² + 3²) / 4; a constant column keeps its scale.
    np.testing.assert_allclose(columns.of_rows(X), [[-1 / np.sqrt(3), 0], [np.sqrt(3), 0]])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_coefficients_give_the_same_logits_on_both_sides(n_outputs):
    rng = np.random.default_rng(1)
    X, coef, intercept = rng.normal(size=(20, 5)), rng.normal(size=(n_outputs, 5)), rng.normal(size=n_outputs)
    columns = Standardization(rng.normal(size=5), rng.uniform(0.5, 2, 5))
    stacked = columns.stacked(intercept, coef)
    np.testing.assert_allclose(stacked[0] + columns.of_rows(X) @ stacked[1:], intercept + X @ coef.T)
    for found, expected in zip(columns.unstacked(stacked), (intercept, coef), strict=True):
        np.testing.assert_allclose(found, expected)
