"""Blind Pareto fairness and GEORGE: their weights and their saddle points against scipy, and planted subclasses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize
from sklearn.metrics import adjusted_rand_score

from dafh.exceptions import InputError
from dafh.linear.likelihood import row_losses
from dafh.rivals import BlindParetoClassifier, DROClassifier, GeorgeClassifier
from dafh.rivals.bpf import project, worst_weights
from dafh.rivals.george import find_clusters


def capped_problems():
    """Losses, shares, mean and floor of a problem with a few rows."""
    return {
        "losses": st.lists(st.integers(0, 30), min_size=1, max_size=8),
        "counts": st.lists(st.integers(1, 5), min_size=8, max_size=8),
        "mean": st.floats(0.05, 1),
        "ratio": st.floats(0, 0.99),
    }


def shares(counts, n_rows):
    return np.array(counts[:n_rows]) / sum(counts[:n_rows])


@given(**capped_problems())
def test_the_worst_weights_solve_their_linear_programme(losses, counts, mean, ratio):
    losses, share, floor = np.array(losses) / 10, shares(counts, len(losses)), ratio * mean
    known = linprog(-share * losses, A_eq=share[None], b_eq=[mean], bounds=(floor, 1))
    found = worst_weights(losses, share, mean, floor)
    assert share @ (found * losses) == pytest.approx(-known.fun, abs=1e-9)
    assert share @ found == pytest.approx(mean)
    assert found.min() >= floor - 1e-12
    assert found.max() <= 1 + 1e-12


@given(**capped_problems())
def test_the_projection_is_the_nearest_point(losses, counts, mean, ratio):
    point, share, floor = np.array(losses) / 10, shares(counts, len(losses)), ratio * mean
    found = project(point, share, mean, floor)
    assert share @ found == pytest.approx(mean)
    assert found.min() >= floor
    assert found.max() <= 1
    # Nearest: no allowed direction leads closer. The worst weights for the rest are the farthest one can go there.
    towards = worst_weights(point - found, share, mean, floor)
    assert share @ ((point - found) * (towards - found)) <= 1e-9


@pytest.fixture(scope="module")
def few_rows():
    """Two columns, noisy labels, and the columns as the models see them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X @ [2, 1] + rng.logistic(size=60) > 0).astype(int)
    return X, y, (X - X.mean(axis=0)) / X.std(axis=0)


def best_upper_bound(x, y, risks):
    """Minimise the largest of several risks by SLSQP: a bound above all of them, as low as possible."""

    def excess(at):
        return at[3] - risks(row_losses((x @ at[:2] + at[2])[:, None], y))

    return minimize(
        lambda at: at[3] + at[:2] @ at[:2] / (2 * len(y)),
        [1, 1, 0, 2],
        constraints={"type": "ineq", "fun": excess},
        options={"ftol": 1e-12, "maxiter": 1000},
    ).x


def test_the_linear_model_of_blind_pareto_fairness_minimises_the_worst_weighted_loss(few_rows):
    X, y, x = few_rows
    share, alpha, floor = np.full(60, 1 / 60), 0.7, 0.05

    def objective(at):
        losses = row_losses((x @ at[:2] + at[2])[:, None], y)
        return share @ (worst_weights(losses, share, alpha, floor) * losses) / alpha + at[:2] @ at[:2] / 120

    known = minimize(objective, [1, 1, 0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    model = BlindParetoClassifier(alpha, floor=floor).fit(X, y)
    (weight, bias) = model.layers_[0]
    scaled = np.append(weight[:, 0] * X.std(axis=0), bias[0] + X.mean(axis=0) @ weight[:, 0])
    assert objective(scaled) == pytest.approx(known.fun, abs=1e-4)
    assert 0 <= model.gap_ < 1e-4


def test_everybody_in_the_worst_group_is_plain_training(few_rows):
    X, y, _ = few_rows
    plain = DROClassifier(1).fit(X, y).predict_proba(X)
    assert_allclose(BlindParetoClassifier(1).fit(X, y).predict_proba(X), plain, atol=1e-6)


def test_a_small_worst_group_of_noisy_rows_makes_the_answer_one_half_for_everybody(few_rows):
    X, y, _ = few_rows
    assert_allclose(BlindParetoClassifier(0.1, floor=0).fit(X, y).predict_proba(X), 0.5, atol=0.02)


def test_a_floor_above_the_mean_weight_is_refused(few_rows):
    X, y, _ = few_rows
    with pytest.raises(InputError, match=r"A floor of 0.5 is above the mean weight, alpha = 0.3: choose a smaller"):
        BlindParetoClassifier(0.3, floor=0.5).fit(X, y)


def test_a_network_lowers_the_loss_of_the_worst_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + rng.logistic(size=600) > 0).astype(int)
    tails = {}
    for alpha in (1, 0.5):
        model = BlindParetoClassifier(alpha, model="network", hidden=5, random_state=0).fit(X, y)
        losses = np.sort(row_losses(model.decision_function(X)[:, None], y))
        tails[alpha] = losses[300:].mean()
    assert tails[0.5] < tails[1] - 0.02


@pytest.fixture(scope="module")
def subclasses():
    """Two classes of two subclasses each, one of them rare."""
    rng = np.random.default_rng(0)
    subclass = rng.choice(4, 400, p=[0.4, 0.1, 0.35, 0.15])
    centres = np.array([[-3, 0], [3, 4], [0, -3], [3, -4]])
    return centres[subclass] + rng.normal(0, 0.6, (400, 2)), (subclass > 1).astype(int), subclass


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_george_finds_planted_subclasses(kind, subclasses):
    X, y, subclass = subclasses
    model = GeorgeClassifier(4, model=kind, hidden=20, random_state=0).fit(X, y)
    assert adjusted_rand_score(subclass, model.clusters_) > 0.9
    assert all(len(np.unique(y[model.clusters_ == cluster])) == 1 for cluster in np.unique(model.clusters_))


def test_a_row_without_weight_has_no_cluster(subclasses):
    X, y, subclass = subclasses
    model = GeorgeClassifier(4).fit(X, y, sample_weight=(subclass != 1).astype(float))
    assert len(model.clusters_) == (subclass != 1).sum()


def test_the_linear_model_of_george_minimises_the_largest_loss_of_a_cluster(few_rows):
    X, y, x = few_rows
    model = GeorgeClassifier(2).fit(X, y)
    members = [model.clusters_ == cluster for cluster in np.unique(model.clusters_)]
    known = best_upper_bound(x, y, lambda losses: np.array([losses[rows].mean() for rows in members]))
    assert_allclose(model.decision_function(X), x @ known[:2] + known[2], atol=5e-3)
    assert model.gap_ < 1e-4
    assert model.cluster_weights_.sum() == pytest.approx(1)


def test_one_cluster_for_each_class_is_where_the_search_may_end(few_rows):
    X, y, _ = few_rows
    assert_allclose(GeorgeClassifier(1).fit(X, y).clusters_, y)


def test_a_cluster_of_one_point_adds_nothing_to_the_silhouette():
    x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    assert_allclose(find_clusters(x, np.ones(6), most=5), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("n_points", [1, 2, 3])
def test_there_are_fewer_clusters_than_different_points(n_points):
    points = np.random.default_rng(0).normal(size=(n_points, 3))[np.arange(30) % n_points]
    noise = np.random.default_rng(1).uniform(-1e-15, 1e-15, points.shape)
    assert find_clusters(points + noise, np.ones(30), most=5).max() + 1 <= max(n_points - 1, 1)


def test_clusters_take_weights_for_row_counts(subclasses):
    X = subclasses[0][:100]
    counts = np.random.default_rng(0).integers(1, 4, 100)
    repeated = find_clusters(np.repeat(X, counts, axis=0), np.ones(counts.sum()), most=6)
    assert_allclose(np.repeat(find_clusters(X, counts.astype(float), most=6), counts), repeated)
