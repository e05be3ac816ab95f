"""Rivals: the trainer they share, the objective of each against another solver, and what each of them is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, NonlinearConstraint, approx_fprime, check_grad, linprog, minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, log_loss

from dafh.datasets import make_grouped_classification
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from research.rivals.arl import ARLClassifier, LinearAdversary
from research.rivals.bpf import BlindParetoClassifier, project, worst_weights
from research.rivals.dro import ChiSquareBall, DROClassifier, worst_in_ball
from research.rivals.george import GeorgeClassifier
from research.rivals.influence_sampling import InfluenceSamplingClassifier
from research.rivals.jtt import JTTClassifier
from research.rivals.residual_boosting import ResidualBoostingClassifier
from research.rivals.shared_latent import SharedLatentClassifier
from research.rivals.training import Network, Plan, TrainingRows, Weighting, penalised_risk, row_losses, train

ONE_MODEL = (DROClassifier, ARLClassifier, BlindParetoClassifier, JTTClassifier, GeorgeClassifier)


def logit(model, X):
    return np.log(model.predict_proba(X) @ [[0], [1]])[:, 0] - np.log(model.predict_proba(X) @ [[1], [0]])[:, 0]


# ---- the trainer ----


def some_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    return TrainingRows(x, (x[:, 0] + rng.normal(size=60) > 0).astype(int))


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("alpha", [1, 0.3])
def test_gradients_agree_with_finite_differences(hidden, alpha):
    rows = some_rows()
    network, weighting = Network(3, hidden), ChiSquareBall(rows.share, alpha)
    at = np.random.default_rng(1).normal(size=len(network.start(np.random.default_rng(0))))

    def risk(at, position):
        return penalised_risk(network, at, rows, weighting, 2.0)[position]

    assert check_grad(lambda at: risk(at, 0), lambda at: risk(at, 1), at) < 1e-6


def test_a_linear_model_is_logistic_regression_fitted_to_convergence():
    rows = some_rows()
    found = train(rows, Weighting(rows.share), Plan(0, 0.5), np.random.default_rng(0))
    known = LogisticRegression(C=2, tol=1e-10, max_iter=10_000).fit(rows.x, rows.label)
    ((weight, _),) = Network(3, 0).layers(found)
    assert_allclose(weight.T, known.coef_, atol=1e-5)


def test_a_network_learns_what_no_line_can():
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    line, network = (DROClassifier(1, model=kind, l2=1, random_state=0).fit(x, y) for kind in ("linear", "network"))
    assert line.score(x, y) < 0.6 < 0.95 < network.score(x, y)


# ---- what all of them do ----


@pytest.fixture(scope="module")
def grouped():
    return make_grouped_classification(300, n_features=4, random_state=0)


@pytest.mark.parametrize("rival", ONE_MODEL)
def test_a_network_learns_words_and_the_same_again(rival, grouped):
    X, y = grouped.X, np.array(["a", "b"])[grouped.y]
    model = rival(model="network", epochs=4, random_state=0)
    probabilities = model.fit(X, y).predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert set(model.predict(X)) <= {"a", "b"}
    assert_allclose(clone(model).fit(X, y).predict_proba(X), probabilities)


@pytest.mark.parametrize("rival", ONE_MODEL)
def test_the_scale_of_a_column_changes_nothing(rival, grouped):
    X, y = grouped.X, grouped.y
    stretched = X * [1000, 1, 1, 0.01] + [5, 0, -3, 0]
    expected = rival(random_state=0).fit(X, y).predict_proba(X)
    assert_allclose(rival(random_state=0).fit(stretched, y).predict_proba(stretched), expected, atol=1e-5)


@pytest.mark.parametrize("rival", ONE_MODEL)
def test_ranges_hold_the_default_and_mistakes_are_refused(rival, grouped):
    defaults = rival().get_params()
    assert all(defaults[name] in values for name, values in rival.RANGES.items())
    with pytest.raises(InputError, match="model must be"):
        rival(model="forest").fit(grouped.X, grouped.y)
    with pytest.raises(InputError, match="needs two classes"):
        rival().fit(grouped.X, np.zeros(300))


# ---- DRO ----


def dual(losses, share, factor, eta):
    return factor * np.sqrt(share @ np.maximum(losses - eta, 0) ** 2) + eta


@given(losses=st.lists(st.integers(0, 20), min_size=1, max_size=8), factor=st.floats(1.01, 8))
def test_the_worst_case_is_below_the_dual_form_everywhere_and_reaches_it(losses, factor):
    losses, share = np.array(losses) / 10, np.full(len(losses), 1 / len(losses))
    worst = worst_in_ball(losses, share, factor)
    assert all(worst.value <= dual(losses, share, factor, eta) + 1e-9 for eta in np.linspace(-20, losses.max(), 200))
    assert worst.value >= dual(losses, share, factor, worst.eta) - 1e-9
    assert worst.weights.sum() == pytest.approx(1)


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
    assert_allclose(worst_in_ball(losses, share, factor).weights, best.x, atol=1e-4)


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
        losses = row_losses((x @ at[:2] + at[2])[:, None], y)
        return dual(losses, share, factor, at[3]) + at[:2] @ at[:2] / 120

    options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 5000}
    optimum = minimize(objective, [0, 0, 0, -1], method="Nelder-Mead", options=options).x
    assert_allclose(logit(DROClassifier(0.8).fit(X, y), X), x @ optimum[:2] + optimum[2], atol=1e-4)


def test_plain_risk_lets_the_loss_of_the_smaller_population_grow_and_dro_does_not():
    """People leave at a rate that grows with their loss, and new ones arrive, as in the authors' simulation."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 2)), np.repeat([0, 1], 200)
    directions = np.array([[1, 0], [np.cos(1.2), np.sin(1.2)]])
    y = ((X * directions[group]).sum(axis=1) > 0).astype(int)
    courses = {}
    for alpha in (1, 0.6):
        size, courses[alpha] = np.array([0.7, 0.3]), []
        for _ in range(8):
            weight = size[group]
            ball = ChiSquareBall(weight / weight.sum(), alpha)
            trained = train(TrainingRows(X, y), ball, Plan(0, 400 / weight.sum()), rng)
            losses = row_losses(Network(2, 0).forward(trained, X)[-1], y)
            mean = np.array([losses[group == k].mean() for k in (0, 1)])
            size = size * np.exp(-mean) + [0.5, 0.2]
            courses[alpha].append(mean[1])
    assert (np.diff(courses[1]) > 0.03).all()
    assert (np.diff(courses[0.6]) <= 0).all()
    # Where some group of that size has the wrong labels, no answer serves it better than a coin.
    assert_allclose(DROClassifier(0.3).fit(X, y).predict_proba(X), 0.5, atol=1e-3)


# ---- ARL and JTT ----


def minority(seed):
    """A sign that goes with the label, but for one row in ten: those have the label without the sign."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    y = (group > 0).astype(int)
    sign, hint = (group == 1) + rng.normal(0, 0.3, 1500), (2 * y - 1) + rng.normal(0, 1.5, 1500)
    return np.column_stack([sign, hint, rng.normal(size=1500)]), y, group


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_arl_and_jtt_raise_the_accuracy_of_an_identifiable_minority(kind):
    (X, y, _), (X_new, y_new, group) = minority(0), minority(1)

    def accuracy(rival):
        right = rival.set_params(model=kind, random_state=0).fit(X, y).predict(X_new) == y_new
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
    assert_allclose(adversary.gradient(inputs, rows.share, losses), expected, atol=1e-6)


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
        losses = row_losses((x @ at[:2] + at[2])[:, None], y)
        return share @ (worst_weights(losses, share, alpha, floor) * losses) / alpha + at[:2] @ at[:2] / 120

    optimum = minimize(objective, [1, 1, 0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    model = BlindParetoClassifier(alpha, floor=floor).fit(X, y)
    ((weight, bias),) = model.layers_
    scaled = np.append(weight[:, 0] * X.std(axis=0), bias[0] + X.mean(axis=0) @ weight[:, 0])
    assert objective(scaled) == pytest.approx(optimum.fun, abs=1e-4)
    assert 0 <= model.gap_ < 1e-4


# ---- GEORGE ----


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_george_finds_planted_subclasses(kind):
    rng = np.random.default_rng(0)
    subclass = rng.choice(4, 400, p=[0.4, 0.1, 0.35, 0.15])
    X = np.array([[-3, 0], [3, 4], [0, -3], [3, -4]])[subclass] + rng.normal(0, 0.6, (400, 2))
    model = GeorgeClassifier(4, model=kind, random_state=0).fit(X, subclass > 1)
    assert adjusted_rand_score(subclass, model.clusters_) > 0.9


def test_the_linear_model_of_george_minimises_the_largest_loss_of_a_cluster(few_rows):
    X, y, x = few_rows
    model = GeorgeClassifier(2).fit(X, y)
    members = [model.clusters_ == cluster for cluster in np.unique(model.clusters_)]

    def below_the_bound(at):
        losses = row_losses((x @ at[:2] + at[2])[:, None], y)
        return at[3] - np.array([losses[rows].mean() for rows in members])

    optimum = minimize(
        lambda at: at[3] + at[:2] @ at[:2] / 120,
        [1, 1, 0, 2],
        constraints={"type": "ineq", "fun": below_the_bound},
        options={"ftol": 1e-12, "maxiter": 1000},
    ).x
    assert_allclose(logit(model, X), x @ optimum[:2] + optimum[2], atol=5e-3)
    assert model.gap_ < 1e-4
    assert_allclose(GeorgeClassifier(1).fit(X, y).clusters_, y)


# ---- boosting on residuals ----


@pytest.fixture(scope="module")
def curved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    return X, (X[:, 0] + 2 * (X[:, 1] > 0) * X[:, 2] + 0.3 * rng.normal(size=1200) > 0).astype(int)


def test_what_is_not_linear_is_learned_on_top_of_the_pooled_classifier(curved):
    X, y = curved
    model = ResidualBoostingClassifier(random_state=0).fit(X[:800], y[:800])
    assert model.n_rounds_ > 0
    assert model.score(X[800:], y[800:]) > model.pooled_.score(X[800:], y[800:]) + 0.05
    pooled_loss, loss = (log_loss(y[800:], m.predict_proba(X[800:])) for m in (model.pooled_, model))
    assert loss < pooled_loss
    assert len(model.trees_) == model.n_rounds_


def test_a_linear_truth_leaves_the_pooled_classifier_as_it_is():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] + rng.logistic(size=1500) > 0).astype(int)
    model = ResidualBoostingClassifier(random_state=0).fit(X, y)
    assert model.n_rounds_ <= 1
    assert_allclose(model.predict_proba(X), model.pooled_.predict_proba(X), atol=0.1)


def test_no_leaf_moves_far_where_the_pooled_classifier_is_certain():
    """A few labels far from the border are turned: there is hardly any curvature, and a plain Newton step is huge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * [4, 1]
    y = (X[:, 0] + 2 * (X[:, 1] > 0) * np.sign(X[:, 0]) > 3).astype(int)
    y[(X[:, 0] < -8) & (rng.random(3000) < 0.03)] = 1
    model = ResidualBoostingClassifier(random_state=0).fit(X, y)
    assert model.n_rounds_ > 5
    assert max(np.abs(tree.value).max() for tree in model.trees_) < 3


def test_residual_boosting_decides_at_the_cut_off_of_the_pooled_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] + rng.normal(size=1500) > 0.8).astype(int)
    pooled = StandardizedLogisticRegression(threshold=0.2)
    model = ResidualBoostingClassifier(pooled, random_state=0).fit(X, y)
    assert model.threshold_ == pytest.approx(0.2, abs=0.01)
    probability = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), probability > model.threshold_)
    assert abs(model.predict(X).mean() - model.pooled_.predict(X).mean()) < 0.05


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
