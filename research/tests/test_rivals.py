"""Rivals: the trainer they share, the objective of each against another solver, and what each of them is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, check_grad, linprog, minimize, minimize_scalar
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from dafh.datasets import make_grouped_classification
from dafh.exceptions import InputError
from research.rivals.arl import ARLClassifier, LinearAdversary
from research.rivals.bpf import BlindParetoClassifier, project, worst_weights
from research.rivals.dro import ChiSquareBall, DROClassifier, worst_in_ball
from research.rivals.george import GeorgeClassifier
from research.rivals.influence_sampling import InfluenceSamplingClassifier
from research.rivals.jtt import JTTClassifier
from research.rivals.shared_latent import SharedLatentClassifier
from research.rivals.training import TrainingRows, Weighting, penalised_risk, row_losses, train

ONE_MODEL = (DROClassifier, ARLClassifier, BlindParetoClassifier, JTTClassifier, GeorgeClassifier)


def logits(model, X):
    return logit(model.predict_proba(X)[:, 1])


# ---- the trainer ----


def some_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    return TrainingRows(x, (x[:, 0] + rng.normal(size=60) > 0).astype(int))


def test_the_gradient_agrees_with_finite_differences():
    rows = some_rows()
    weighting, at = ChiSquareBall(rows.share, 0.3), np.random.default_rng(1).normal(size=4)

    def risk(at, position):
        return penalised_risk(at, rows, weighting, 2.0)[position]

    assert check_grad(lambda at: risk(at, 0), lambda at: risk(at, 1), at) < 1e-6


def test_without_weights_it_is_logistic_regression_fitted_to_convergence():
    rows = some_rows()
    theta = train(rows, Weighting(rows.share), 0.5)
    exact = LogisticRegression(C=2, tol=1e-10, max_iter=10_000).fit(rows.x, rows.label)
    assert_allclose(theta[:-1], exact.coef_[0], atol=1e-5)


# ---- what all of them do ----


@pytest.fixture(scope="module")
def grouped():
    return make_grouped_classification(300, n_features=4, random_state=0)


@pytest.mark.parametrize("rival", ONE_MODEL)
def test_words_are_predicted_and_the_scale_of_a_column_changes_nothing(rival, grouped):
    X, y = grouped.X, np.array(["a", "b"])[grouped.y]
    settings = {"random_state": 0} if rival is GeorgeClassifier else {}
    stretched = X * [1000, 1, 1, 0.01] + [5, 0, -3, 0]
    first, second = rival(**settings).fit(X, y), rival(**settings).fit(stretched, y)
    assert set(first.predict(X)) <= {"a", "b"}
    assert_allclose(first.predict_proba(X), second.predict_proba(stretched), atol=1e-5)


@pytest.mark.parametrize("rival", ONE_MODEL)
def test_ranges_hold_the_default_and_one_class_is_refused(rival, grouped):
    defaults = rival().get_params()
    assert all(defaults[name] in values for name, values in rival.RANGES.items())
    with pytest.raises(InputError, match="needs two classes"):
        rival().fit(grouped.X, np.zeros(300))


# ---- DRO ----


def dual(losses, share, factor, eta):
    return factor * np.sqrt(share @ np.maximum(losses - eta, 0) ** 2) + eta


@given(losses=st.lists(st.integers(0, 20), min_size=1, max_size=8), factor=st.floats(1.01, 8))
def test_the_worst_case_is_below_the_dual_form_everywhere_and_reaches_it(losses, factor):
    losses, share = np.array(losses) / 10, np.full(len(losses), 1 / len(losses))
    value, weights = worst_in_ball(losses, share, factor)
    assert all(value <= dual(losses, share, factor, eta) + 1e-7 for eta in np.linspace(-20, losses.max(), 200))
    lowest = minimize_scalar(
        lambda eta: dual(losses, share, factor, eta), bounds=(-20, losses.max()), options={"xatol": 1e-9}
    )
    assert value == pytest.approx(lowest.fun, abs=1e-6)
    assert weights.sum() == pytest.approx(1)


@pytest.fixture(scope="module")
def few_rows():
    """Two columns, noisy labels, and the columns as the models see them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X @ [2, 1] + rng.logistic(size=60) > 0).astype(int)
    return X, y, (X - X.mean(axis=0)) / X.std(axis=0)


def test_the_linear_model_of_dro_minimises_the_dual_form_over_model_and_threshold_at_once(few_rows):
    X, y, x = few_rows
    share, factor = np.full(60, 1 / 60), np.sqrt(2 * (1 / 0.8 - 1) ** 2 + 1)

    def objective(at):
        losses = row_losses(at[:3], TrainingRows(x, y))
        return dual(losses, share, factor, at[3]) + at[:2] @ at[:2] / 120

    options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 5000}
    optimum = minimize(objective, [0, 0, 0, -1], method="Nelder-Mead", options=options).x
    assert_allclose(logits(DROClassifier(0.8).fit(X, y), X), x @ optimum[:2] + optimum[2], atol=1e-4)


# ---- ARL and JTT ----


def minority(seed):
    """A sign that goes with the label, but for one row in ten: those have the label without the sign."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    y = (group > 0).astype(int)
    sign, hint = (group == 1) + rng.normal(0, 0.3, 1500), (2 * y - 1) + rng.normal(0, 1.5, 1500)
    return np.column_stack([sign, hint, rng.normal(size=1500)]), y, group


def test_arl_and_jtt_raise_the_accuracy_of_an_identifiable_minority():
    (X, y, _), (X_new, y_new, group) = minority(0), minority(1)

    def accuracy(rival):
        right = rival.fit(X, y).predict(X_new) == y_new
        return right[group == 2].mean(), right.mean()

    plain, overall = accuracy(DROClassifier(1))
    for rival in (ARLClassifier(), JTTClassifier()):
        lifted, mean = accuracy(rival)
        assert lifted > plain + 0.08
        assert mean > overall - 0.06


def test_jtt_counts_errors_as_if_their_rows_were_there_more_often():
    X, y, _ = minority(0)
    wrong = DROClassifier(1).fit(X, y).predict(X) != y
    assert JTTClassifier().fit(X, y).error_share_ == pytest.approx(wrong.mean())
    rows = np.repeat(np.arange(len(y)), np.where(wrong, 3, 1))
    # Without a penalty, which would be another one for columns that are standardised over other rows.
    repeated = DROClassifier(1, l2=0).fit(X[rows], y[rows])
    assert_allclose(JTTClassifier(3, l2=0).fit(X, y).predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_the_gradient_of_the_adversary_agrees_with_finite_differences():
    rows, rng = some_rows(), np.random.default_rng(1)
    adversary, losses = LinearAdversary(rows, 0.1), rng.exponential(size=60)
    inputs = np.column_stack([rows.x, rows.label, np.ones(60)])
    adversary.coefficients = rng.normal(size=inputs.shape[1])

    def weighted_loss(coefficients):
        score = expit(inputs @ coefficients)
        return rows.share @ (score * losses) / (rows.share @ score)

    expected = approx_fprime(adversary.coefficients, weighted_loss, 1e-7)
    assert_allclose(adversary.gradient(losses), expected, atol=1e-6)


# ---- blind Pareto fairness ----


@given(losses=st.lists(st.integers(0, 30), min_size=1, max_size=8), mean=st.floats(0.05, 1), ratio=st.floats(0, 0.99))
def test_the_worst_weights_solve_their_linear_programme_and_projections_are_the_nearest(losses, mean, ratio):
    losses, floor = np.array(losses) / 10, ratio * mean
    share = np.full(len(losses), 1 / len(losses))
    programme = linprog(-share * losses, A_eq=share[None], b_eq=[mean], bounds=(floor, 1))
    worst = worst_weights(losses, share, mean, floor)
    assert share @ (worst * losses) == pytest.approx(-programme.fun, abs=1e-9)
    assert share @ worst == pytest.approx(mean)
    near = project(losses, share, mean, floor)
    assert share @ near == pytest.approx(mean)
    # No allowed direction leads closer: the worst weights for what is left are the farthest one can go.
    towards = worst_weights(losses - near, share, mean, floor)
    assert share @ ((losses - near) * (towards - near)) <= 1e-9


def test_the_linear_model_of_blind_pareto_fairness_minimises_the_worst_weighted_loss(few_rows):
    X, y, x = few_rows
    share, alpha, floor = np.full(60, 1 / 60), 0.7, 0.05

    def objective(at):
        losses = row_losses(at[:3], TrainingRows(x, y))
        return share @ (worst_weights(losses, share, alpha, floor) * losses) / alpha + at[:2] @ at[:2] / 120

    optimum = minimize(objective, [1, 1, 0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    model = BlindParetoClassifier(alpha, floor=floor).fit(X, y)
    scaled = np.append(model.coef_ * X.std(axis=0), model.intercept_ + X.mean(axis=0) @ model.coef_)
    assert objective(scaled) == pytest.approx(optimum.fun, abs=1e-4)
    assert 0 <= model.gap_ < 1e-4


# ---- GEORGE ----


def test_george_finds_planted_subclasses():
    rng = np.random.default_rng(0)
    subclass = rng.choice(4, 400, p=[0.4, 0.1, 0.35, 0.15])
    X = np.array([[-3, 0], [3, 4], [0, -3], [3, -4]])[subclass] + rng.normal(0, 0.6, (400, 2))
    model = GeorgeClassifier(4, random_state=0).fit(X, subclass > 1)
    assert adjusted_rand_score(subclass, model.clusters_) > 0.9


def test_the_linear_model_of_george_minimises_the_largest_loss_of_a_cluster(few_rows):
    X, y, x = few_rows
    model = GeorgeClassifier(2).fit(X, y)
    members = [model.clusters_ == cluster for cluster in np.unique(model.clusters_)]

    def below_the_bound(at):
        losses = row_losses(at[:3], TrainingRows(x, y))
        return at[3] - np.array([losses[rows].mean() for rows in members])

    optimum = minimize(
        lambda at: at[3] + at[:2] @ at[:2] / 120,
        [1, 1, 0, 2],
        constraints={"type": "ineq", "fun": below_the_bound},
        options={"ftol": 1e-12, "maxiter": 1000},
    ).x
    assert_allclose(logits(model, X), x @ optimum[:2] + optimum[2], atol=5e-3)
    assert model.gap_ < 1e-4
    assert_allclose(GeorgeClassifier(1).fit(X, y).clusters_, y)


# ---- rivals that need the attribute of some rows ----


@pytest.fixture(scope="module")
def unequal():
    """Rows whose first column tells the group, and a label that depends on both columns."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 4000)
    X = np.column_stack([rng.normal(group, 0.5), rng.normal(size=4000)])
    return X, (X.sum(axis=1) > rng.logistic(size=4000)).astype(int), group


def mean_gap(model, X, group):
    positive = model.predict_proba(X)[:, 1]
    return abs(positive[group == 1].mean() - positive[group == 0].mean())


def test_shared_latent_asks_for_parity_on_an_attribute_that_it_has_on_source_rows_only(unequal):
    X, y, group = unequal
    plain, model = LogisticRegression().fit(X, y), SharedLatentClassifier().fit(X, y, group)
    assert mean_gap(model, X, group) < mean_gap(plain, X, group) / 3
    assert model.score(X, y) < plain.score(X, y)
    # Neither labels of source rows nor attributes of target rows are used.
    source = np.random.default_rng(0).random(4000) < 0.25
    turned = SharedLatentClassifier().fit(X, np.where(source, 1 - y, y), np.where(source, group, 1 - group))
    assert_allclose(turned.predict_proba(X), model.predict_proba(X))


def test_acquired_rows_count_only_where_validation_accuracy_does_not_fall(unequal):
    X, y, group = unequal
    model = InfluenceSamplingClassifier(acquired_share=0.02).fit(X, y, group)
    assert model.accuracies_ == sorted(model.accuracies_)
    assert len(model.accuracies_) + model.n_rejected_ <= 11
    # The attribute is used on validation rows only: the order of rows is drawn first.
    order = np.random.default_rng(0).permutation(4000)
    not_validation = np.delete(order, np.arange(1200, 2000))
    turned = group.copy()
    turned[not_validation] = 1 - turned[not_validation]
    refitted = InfluenceSamplingClassifier(acquired_share=0.02).fit(X, y, turned)
    assert_allclose(refitted.predict_proba(X), model.predict_proba(X))
