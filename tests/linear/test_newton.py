"""Penalised regression against two other solvers, and strengths chosen by evidence."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from dafh.columns.bins import Binning
from dafh.linear.designs import BinnedDesign, DenseDesign, make_basis
from dafh.linear.newton import Regression, fit_by_evidence, fit_penalized, out_of_fold_logits, row_losses

EXACT = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-9}


def problem(n_classes=2, n=120, seed=0, *, weights=True, offsets=True, kind="dense"):
    """Rows whose labels depend on two columns, with weights and offsets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    label = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > np.arange(n) % 2).astype(np.intp)
    if n_classes == 3:
        label = label + (X[:, 2] > 0.5)
    design = DenseDesign(X) if kind == "dense" else binned(X)
    weight = rng.uniform(0.2, 3, n) if weights else np.ones(n)
    outputs = 1 if n_classes == 2 else n_classes
    return Regression(design, label, weight, rng.normal(size=(n, outputs)) if offsets else np.zeros((n, outputs)))


def binned(X):
    binning = Binning.learn(pd.DataFrame(X.round(1)))
    codes = binning.codes(X.round(1))
    return BinnedDesign(codes, make_basis(binning, codes, np.ones(len(X)), smooth=True).tables)


def objective(rows, penalty):
    """Weighted log-loss plus half the penalty, for coefficients in one line."""
    matrix, outputs = rows.design.dense(), rows.offset.shape[1]

    def value(flat):
        coefficients = flat.reshape(-1, outputs)
        losses = row_losses(rows.offset + matrix @ coefficients, rows.label)
        return rows.weight @ losses + penalty @ (coefficients**2).sum(axis=1) / 2

    return value


def solved(rows, penalty):
    """Solution of a general optimiser, with a gradient written for the dense matrix."""
    matrix, outputs = rows.design.dense(), rows.offset.shape[1]

    def gradient(flat):
        logits = rows.offset + matrix @ flat.reshape(-1, outputs)
        padded = np.hstack([np.zeros((len(logits), 1)), logits]) if outputs == 1 else logits
        residual = np.eye(padded.shape[1])[rows.label] - softmax(padded, axis=1)
        residual = residual[:, 1:] if outputs == 1 else residual
        return (penalty[:, None] * flat.reshape(-1, outputs) - matrix.T @ (rows.weight[:, None] * residual)).ravel()

    start = np.zeros(len(penalty) * outputs)
    return minimize(objective(rows, penalty), start, jac=gradient, method="L-BFGS-B", options=EXACT).x


# ---- the solution ----


@pytest.mark.parametrize("kind", ["dense", "binned"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_solution_is_that_of_a_general_optimiser(n_classes, kind):
    rows = problem(n_classes, kind=kind)
    penalty = np.random.default_rng(2).uniform(0.5, 5, rows.design.n_coefficients)
    found = fit_penalized(rows, penalty, free_intercept=False, tolerance=1e-15)
    np.testing.assert_allclose(found.coefficients.ravel(), solved(rows, penalty), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@given(seed=st.integers(0, 50), factor=st.floats(0.3, 3))
def test_borrowed_curvatures_lead_to_the_same_solution(n_classes, seed, factor):
    rows, others = problem(n_classes, n=60), problem(n_classes, n=60, seed=seed)
    borrowed = factor * others.curvatures(others.offset)[0]
    plain = fit_penalized(rows, np.ones(5), tolerance=1e-13)
    other = fit_penalized(rows, np.ones(5), curvatures=borrowed, tolerance=1e-13)
    np.testing.assert_allclose(other.coefficients[1:], plain.coefficients[1:], atol=1e-5)


def test_a_row_of_weight_2_is_fitted_as_the_row_twice():
    rows = problem()
    weight = np.arange(120) % 3.0
    weighted = Regression(rows.design, rows.label, weight, rows.offset)
    repeated = rows.take(np.repeat(np.arange(120), weight.astype(int)))
    repeated = Regression(repeated.design, repeated.label, np.ones(len(repeated.label)), repeated.offset)
    one, two = (fit_penalized(each, np.ones(5)).coefficients for each in (weighted, repeated))
    np.testing.assert_allclose(one, two, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_rows_have_a_finite_solution(n_classes):
    X = np.linspace(-1, 1, 30)[:, None] * 100
    label = np.repeat(np.arange(n_classes), 30 // n_classes)
    rows = Regression(DenseDesign(X), label, np.ones(30), np.zeros((30, 1 if n_classes == 2 else 3)))
    found = fit_penalized(rows, np.full(2, 1e-3))
    assert np.isfinite(found.coefficients).all()
    assert rows.loss(rows.design.logits(found.coefficients)) < 3


def test_constant_columns_and_single_rows_do_not_break_the_solver():
    rows = Regression(DenseDesign(np.ones((1, 3))), np.array([1]), np.ones(1), np.zeros((1, 1)))
    found = fit_penalized(rows, np.ones(4), free_intercept=False)
    # By symmetry all four coefficients are b, with b = 1 − expit(4 b).
    b = found.coefficients[0, 0]
    np.testing.assert_allclose(found.coefficients, b, atol=1e-6)
    assert b == pytest.approx(1 / (1 + np.exp(4 * b)), abs=1e-6)


def test_a_free_intercept_meets_the_share_of_positives():
    rows = Regression(DenseDesign(np.zeros((8, 1))), np.array([1, 1, 0, 0, 0, 0, 0, 0]), np.ones(8), np.zeros((8, 1)))
    assert fit_penalized(rows, np.full(2, 50.0)).coefficients[0, 0] == pytest.approx(np.log(1 / 3), abs=1e-4)


# ---- out of fold ----

FOLD = np.arange(120) % 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_out_of_fold_logits_are_those_of_fits_without_the_fold(n_classes):
    rows = problem(n_classes)
    by_factor = out_of_fold_logits(rows, fit_penalized(rows, np.full(5, 2.0)), FOLD, (1.0, 10.0))
    for logits, strength in zip(by_factor, (2.0, 20.0), strict=True):
        plain = fit_penalized(rows.take(np.flatnonzero(FOLD != 1)), np.full(5, strength), tolerance=1e-13)
        held_out = rows.take(np.flatnonzero(FOLD == 1))
        expected = held_out.offset + held_out.design.logits(plain.coefficients)
        # Logits of several classes may share a constant.
        difference = logits[FOLD == 1] - expected
        assert np.abs(difference - difference.mean(axis=1, keepdims=True) * (n_classes > 2)).max() < 5e-4


def test_labels_of_the_fold_change_none_of_its_logits():
    rows = problem()
    turned = Regression(rows.design, np.where(FOLD == 1, 1 - rows.label, rows.label), rows.weight, rows.offset)
    logits = [
        out_of_fold_logits(each, fit_penalized(each, np.full(5, 2.0)), FOLD, tolerance=1e-13)[0][FOLD == 1]
        for each in (rows, turned)
    ]
    np.testing.assert_allclose(*logits, atol=1e-6)


# ---- strengths by evidence ----


def signal_and_noise(n=1500, seed=0):
    """One column that matters, one that does not, and three categories that matter."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"signal": rng.normal(size=n), "noise": rng.normal(size=n), "job": rng.choice(list("abc"), n)})
    score = 1.5 * table.signal + table.job.map({"a": -1, "b": 0, "c": 1})
    return table, (score + rng.logistic(size=n) > 0).to_numpy(np.intp)


def evidence_of(table, label):
    binning = Binning.learn(table, most=24)
    codes = binning.codes(table)
    basis = make_basis(binning, codes, np.ones(len(table)), smooth=True)
    rows = Regression(BinnedDesign(codes, basis.tables), label, np.ones(len(table)), np.zeros((len(table), 1)))
    return rows, basis, fit_by_evidence(rows, basis.block)


def test_strengths_are_a_fixed_point_of_the_evidence():
    """Where data determine a block: strength = number of determined coefficients over their sum of squares."""
    rows, basis, found = evidence_of(*signal_and_noise())
    logits = rows.design.logits(found.coefficients)
    variance = np.diag(np.linalg.inv(rows.curvatures(logits)[0, 0] + np.diag(found.penalty)))
    checked = 0
    for block in range(basis.block.max() + 1):
        inside = basis.block == block
        determined = (1 - found.penalty[inside] * variance[inside]).sum()
        if determined > 0.5:
            strength = determined / (found.coefficients[inside] ** 2).sum()
            assert np.log(strength / found.penalty[inside][0]) == pytest.approx(0, abs=0.15)
            checked += 1
    assert checked >= 2
