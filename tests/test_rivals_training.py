"""The trainer that all rivals share: gradients, convergence, and what a network can do that a line cannot."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dafh.linear.likelihood import row_losses
from dafh.rivals.dro import ChiSquareBall
from dafh.rivals.training import Network, Plan, TrainingRows, Weighting, losses_and_slopes, penalised_risk, train


def some_rows(n_classes=2, n_rows=60, dtype=np.float64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3)).astype(dtype)
    label = rng.integers(0, n_classes, n_rows)
    return TrainingRows(x, label, rng.uniform(0.5, 2, n_rows), n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("alpha", [1, 0.3])
def test_gradients_agree_with_finite_differences(n_classes, hidden, alpha):
    rows = some_rows(n_classes)
    network, weighting = Network(3, hidden, rows.n_outputs), ChiSquareBall(rows.share, alpha)
    at = np.random.default_rng(1).normal(size=len(network.start(np.random.default_rng(0))))
    error = check_grad(
        lambda at: penalised_risk(network, at, rows, weighting, 2.0)[0],
        lambda at: penalised_risk(network, at, rows, weighting, 2.0)[1],
        at,
    )
    assert error < 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_slopes_of_losses_agree_with_finite_differences(n_classes):
    rng = np.random.default_rng(0)
    logits, label = rng.normal(size=(6, 1 if n_classes == 2 else 3)), rng.integers(0, n_classes, 6)
    for column in range(logits.shape[1]):
        step = np.zeros(logits.shape[1])
        step[column] = 1e-6
        change = (row_losses(logits + step, label) - row_losses(logits - step, label)) / 2e-6
        losses, slopes = losses_and_slopes(logits, label)
        assert_allclose(slopes[:, column], change, atol=1e-8)
        assert_allclose(losses, row_losses(logits, label))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_model_is_logistic_regression_fitted_to_convergence(n_classes):
    rows = some_rows(n_classes)
    found = train(rows, Weighting(rows.share), Plan(0, 0.5, 1000, 1), np.random.default_rng(0))
    known = LogisticRegression(C=2, tol=1e-10, max_iter=10_000).fit(rows.x, rows.label, rows.weight)
    ((weight, bias),) = Network(3, 0, rows.n_outputs).layers(found.parameters)
    assert_allclose(weight.T, known.coef_, atol=1e-5)
    # With three classes the biases are known up to a number that all have in common.
    shift = 0 if n_classes == 2 else bias.mean() - known.intercept_.mean()
    assert_allclose(bias, known.intercept_ + shift, atol=1e-5)


def test_a_network_learns_what_no_line_can():
    rng = np.random.default_rng(0)
    x = StandardScaler().fit_transform(rng.uniform(-1, 1, (2000, 2)))
    rows = TrainingRows(x.astype(np.float32), (x[:, 0] * x[:, 1] > 0).astype(int), np.ones(2000), 2)
    right = {}
    for hidden in (0, 20):
        given = rows if hidden else TrainingRows(x, rows.label, rows.weight, 2)
        found = train(given, Weighting(rows.share), Plan(hidden, 1.0, 100, 20), np.random.default_rng(0))
        logits = Network(2, hidden, 1).forward(found.parameters, given.x)[-1]
        right[hidden] = ((logits[:, 0] > 0) == rows.label).mean()
    assert right[0] < 0.6 < 0.95 < right[20]


def test_a_penalty_holds_weights_back_and_leaves_biases_alone():
    rows = some_rows()
    found = train(rows, Weighting(rows.share), Plan(0, 1e9, 1000, 1), np.random.default_rng(0))
    ((weight, bias),) = Network(3, 0, 1).layers(found.parameters)
    share = rows.share @ rows.label
    assert_allclose(weight, 0, atol=1e-6)
    assert_allclose(bias, np.log(share / (1 - share)), atol=1e-6)
