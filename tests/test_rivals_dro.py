"""DRO: the worst case of a chi-square ball, exactly; the convex problem against scipy; two populations over time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize, minimize_scalar

from dafh.exceptions import InputError
from dafh.linear.likelihood import row_losses
from dafh.rivals import DROClassifier
from dafh.rivals.dro import worst_in_ball


def dual(losses, share, factor, eta):
    return factor * np.sqrt(share @ np.maximum(losses - eta, 0) ** 2) + eta


@given(
    losses=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    factor=st.floats(1.01, 8),
    counts=st.lists(st.integers(1, 5), min_size=8, max_size=8),
)
def test_the_worst_case_is_the_minimum_of_the_dual_form(losses, factor, counts):
    losses, share = np.array(losses) / 10, np.array(counts[: len(losses)]) / sum(counts[: len(losses)])
    found = worst_in_ball(losses, share, factor)
    best = minimize_scalar(
        lambda eta: dual(losses, share, factor, eta),
        bounds=(losses.max() - 50, losses.max()),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found.value <= best.fun + 1e-6
    assert found.value >= dual(losses, share, factor, found.eta) - 1e-9
    assert found.weights.sum() == pytest.approx(1)


def test_the_worst_weights_maximise_the_mean_loss_inside_the_ball():
    losses, share, factor = np.array([0.1, 0.5, 0.7, 2.0]), np.array([0.4, 0.3, 0.2, 0.1]), 1.5
    best = minimize(
        lambda weights: -(weights @ losses),
        share,
        bounds=[(0, 1)] * 4,
        constraints=[
            LinearConstraint(np.ones(4), 1, 1),
            NonlinearConstraint(lambda weights: (weights**2 / share).sum(), 0, factor**2),
        ],
        options={"ftol": 1e-12},
    )
    found = worst_in_ball(losses, share, factor)
    assert_allclose(found.weights, best.x, atol=1e-4)
    assert (found.weights**2 / share).sum() == pytest.approx(factor**2)


def test_the_linear_model_minimises_the_dual_form_over_model_and_threshold_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X @ [2, 1] + rng.logistic(size=80) > 0).astype(int)
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    share, factor = np.full(80, 1 / 80), np.sqrt(2 * (1 / 0.8 - 1) ** 2 + 1)

    def objective(at):
        losses = row_losses((x @ at[:2] + at[2])[:, None], y)
        return dual(losses, share, factor, at[3]) + at[:2] @ at[:2] / 160

    known = minimize(
        objective, [0, 0, 0, -1], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 5000}
    )
    model = DROClassifier(0.8).fit(X, y)
    assert_allclose(model.decision_function(X), x @ known.x[:2] + known.x[2], atol=1e-4)


@pytest.fixture(scope="module")
def two_populations():
    """Two groups of 200 rows, each separable by a direction of its own."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 2)), np.repeat([0, 1], 200)
    directions = np.array([[1, 0], [np.cos(1.2), np.sin(1.2)]])
    return X, ((X * directions[group]).sum(axis=1) > 0).astype(int), group


def losses_over_time(alpha, rows, n_rounds=8):
    """Loss of the smaller group while people leave at a rate that grows with their loss, and new ones arrive."""
    X, y, group = rows
    size, course = np.array([0.7, 0.3]), []
    for _ in range(n_rounds):
        model = DROClassifier(alpha).fit(X, y, sample_weight=size[group])
        losses = row_losses(model.decision_function(X)[:, None], y)
        mean = np.array([losses[group == k].mean() for k in (0, 1)])
        size = size * np.exp(-mean) + [0.5, 0.2]
        course.append(mean[1])
    return course


def test_plain_risk_lets_the_loss_of_the_smaller_population_grow_and_dro_does_not(two_populations):
    plain, robust = losses_over_time(1, two_populations), losses_over_time(0.6, two_populations)
    assert (np.diff(plain) > 0.03).all()
    assert (np.diff(robust) <= 0).all()
    assert robust[-1] < 0.65 < 1 < plain[-1]


def test_a_group_that_may_be_small_makes_the_answer_one_half_for_everybody(two_populations):
    """With noise, some group of that size has the wrong labels: no answer serves it better than a coin."""
    X, y, _ = two_populations
    assert_allclose(DROClassifier(0.3).fit(X, y).predict_proba(X), 0.5, atol=1e-3)


def test_a_network_lowers_the_loss_of_the_smaller_population_too(two_populations):
    X, y, group = two_populations
    weight = np.array([0.8, 0.2])[group]
    loss = {}
    for alpha in (1, 0.7):
        model = DROClassifier(alpha, model="network", hidden=2, l2=1, epochs=30, random_state=0).fit(X, y, weight)
        loss[alpha] = row_losses(model.decision_function(X)[:, None], y)[group == 1].mean()
    assert loss[0.7] < loss[1] - 0.05


def test_an_impossible_share_is_refused(two_populations):
    X, y, _ = two_populations
    with pytest.raises(InputError, match=r"'alpha' parameter of DROClassifier must be a float in the range \(0, 1\]"):
        DROClassifier(0).fit(X, y)
