"""Baselines by name, Zafar's classifiers, and the tuning that all rivals share."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.partitions import ClusterPartition, PooledPartition
from research.rivals import BASELINES, make_baseline
from research.rivals.tuning import Tuning, distance_between_means, tune
from research.rivals.zafar import Group, Problem, ZafarClassifier, parity_minimum, solve

# ---- by name ----


@pytest.fixture(scope="module")
def rows():
    """The sign of the rule depends on sex, and on nothing else."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "born": rng.choice(["here", "there"], 400)})
    X = rng.normal(size=(400, 2))
    return X, ((X[:, 0] > 0) == (table.sex == "f")).astype(int).to_numpy(), table


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_an_unfitted_classifier_that_can_be_cloned(name):
    model = make_baseline(name, random_state=0)
    assert isinstance(model, DecoupledClassifier)
    assert not hasattr(clone(model), "estimators_")


def test_a_seed_reaches_the_parts_of_a_control_and_other_names_are_refused():
    assert make_baseline("mlp", random_state=11).estimator.get_params()["mlpclassifier__random_state"] == 11
    with pytest.raises(InputError, match="There is no baseline 'LR-All': choose from pooled"):
        make_baseline("LR-All")


def test_a_rival_is_one_model_for_all_rows_and_judged_in_clusters_under_a_guard(rows):
    X, y, _ = rows
    model = make_baseline("dro", alpha=0.6)
    assert (type(model.partition), model.estimator.alpha) == (PooledPartition, 0.6)
    guarded = make_baseline("dro", guard="evidence", n_groups=3, random_state=0).fit(X, y)
    assert (type(guarded.partition), guarded.n_groups_, len(guarded.guard_report_.table)) == (ClusterPartition, 3, 3)


def test_zafar_by_name_has_the_group_as_last_column_and_the_pooled_classifier_does_not_see_it(rows):
    X, y, table = rows
    with_group = np.column_stack([X, table["sex"] == "m"])
    model = make_baseline("zafar", guard="evidence", random_state=0)
    model.fit(with_group, y, sensitive_features=table[["sex"]])
    assert model.score(with_group, y, sensitive_features=table[["sex"]]) > model.pooled_.score(with_group, y) + 0.2
    assert len(model.guard_report_.table) == 2
    expected = StandardizedLogisticRegression().fit(X, y).predict(X)
    np.testing.assert_array_equal(model.pooled_.predict(with_group), expected)


# ---- Zafar's problem ----


@pytest.fixture(scope="module")
def envious():
    """Two groups that need different columns, one of which is accepted far less often: it envies the other."""
    rng = np.random.default_rng(0)
    group, X = rng.integers(0, 2, 600), rng.normal(size=(600, 2))
    score = np.where(group == 1, X @ [0.3, 1.5] + 1.5, X @ [1.5, -1] - 1.5)
    return X, (score + rng.logistic(size=600) > 0).astype(int), group


def problem_of(X, y, group, least=(0.3, 0.4)):
    members = [group == value for value in (0, 1)]
    groups = [Group(np.column_stack([X[rows], np.ones(rows.sum())]), y[rows].astype(float)) for rows in members]
    return Problem(groups, np.mean(members, axis=1), 1e-2, np.array(least))


def test_gradients_agree_with_finite_differences_and_tangents_are_tighter(envious):
    problem = problem_of(*envious)
    point, at = np.random.default_rng(1).normal(size=(2, 6))
    numeric = approx_fprime(point, lambda p: problem.loss(p)[0], 1e-7)
    np.testing.assert_allclose(problem.loss(point)[1], numeric, atol=1e-5)
    slopes = problem.slopes(at)
    values, gradients = problem.violated(point, slopes)
    for number in range(4):
        numeric = approx_fprime(point, lambda p, number=number: problem.violated(p, slopes)[0][number], 1e-7)
        np.testing.assert_allclose(gradients[number], numeric, atol=1e-5)
    assert (values >= problem.violations(point) - 1e-12).all()


def test_tangents_lower_the_loss_step_by_step_and_the_constraint_costs(envious):
    problem = problem_of(*envious, least=(0.0, 0.0))
    start = np.tile(parity_minimum(problem.groups, problem.share, 1e-2), 2)
    solution, n_tangents = solve(problem, start)
    assert n_tangents > 1
    first = problem.convex_minimum(start)
    assert problem.violations(first).max() <= 1e-6
    free = minimize(problem.loss, start, jac=True, method="L-BFGS-B").fun
    assert free + 1e-3 < problem.loss(solution)[0] < problem.loss(first)[0] < problem.loss(start)[0]


def test_constraints_hold_within_tolerance_where_they_are_active(envious):
    X, y, group = envious
    with_group = np.column_stack([X, group])
    model = ZafarClassifier().fit(with_group, y)
    assert model.n_tangents_ > 0
    assert model.violations_.max() <= model.tolerance
    # The first group is accepted at least as often by its own classifier as by that of the other.
    first = with_group[group == 0]
    turned = np.column_stack([first[:, :2], np.ones(len(first))])
    own_score, rival_score = (np.log(1 / (1 / model.predict_proba(rows)[:, 1] - 1)) for rows in (first, turned))
    assert np.maximum(own_score, 0).mean() >= np.maximum(rival_score, 0).mean() - 1e-3


def test_swapping_the_labels_and_the_accepted_one_changes_nothing_else(envious):
    X, y, group = envious
    with_group = np.column_stack([X, group])
    straight = ZafarClassifier(accepted=1).fit(with_group, y).predict_proba(with_group)
    swapped = ZafarClassifier(accepted=0).fit(with_group, 1 - y).predict_proba(with_group)
    np.testing.assert_allclose(straight[:, 0], swapped[:, 1], atol=1e-3)


# ---- tuning ----


class Recorded(ClassifierMixin, BaseEstimator):
    """Answers with the same probability for everybody, and remembers what it was fitted on."""

    RANGES = {"share": (0.1, 0.4, 0.9), "unused": (1, 2)}  # noqa: RUF012
    fits: list = []  # noqa: RUF012

    def __init__(self, share=0.5, unused=0):
        self.share, self.unused = share, unused

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fits.append(X[:, 0].copy())
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share, self.share], (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_every_setting_sees_the_same_rows_and_none_of_the_selection_rows(rows):
    X, y, _ = rows
    Recorded.fits.clear()
    tuning = tune(Recorded(), X, y, random_state=3)
    assert len(tuning.settings) == len(Recorded.fits) == 6
    assert len(Recorded.fits[0]) == 300
    assert all(np.array_equal(rows, Recorded.fits[0]) for rows in Recorded.fits)
    share = y[~np.isin(X[:, 0], Recorded.fits[0])].mean()
    expected = -(share * np.log(0.4) + (1 - share) * np.log(0.6))
    assert tuning.trials["log_loss"][[s["share"] == 0.4 for s in tuning.settings]].to_numpy() == pytest.approx(expected)
    tune(Recorded(), X, y, max_rows=120)
    assert len(Recorded.fits[-1]) == 90


def test_antigone_prefers_the_setting_that_serves_the_errors_of_the_reference_within_five_points():
    trials = pd.DataFrame({"log_loss": [0.3, 0.4, 0.5], "accuracy": [0.90, 0.86, 0.60], "worst": [0.1, 0.3, 0.6]})
    tuning = Tuning([{"a": 1}, {"a": 2}, {"a": 3}], trials)
    assert (tuning.best("log-loss"), tuning.best("antigone")) == ({"a": 1}, {"a": 2})


def test_antigone_finds_the_setting_that_serves_a_minority_that_one_model_cannot_serve():
    """In a tenth of the rows the sign is turned: who knows the column serves them, a linear classifier cannot."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=3000), rng.random(3000) < 0.1])
    y = np.where(X[:, 1] == 1, X[:, 0] < 0, X[:, 0] > 0).astype(int)

    class Turned(StandardizedLogisticRegression):
        RANGES = {"turned": (False, True)}  # noqa: RUF012

        def __init__(self, turned=False, C=1.0, threshold=0.5):
            super().__init__(C, threshold=threshold)
            self.turned = turned

        def predict(self, X):
            decided = super().predict(X)
            return np.where((X[:, 1] == 1) & self.turned, 1 - decided, decided)

    tuning = tune(Turned(), X, y)
    assert tuning.trials["worst"].to_numpy() == pytest.approx([0.1, 0.95], abs=0.1)
    assert tuning.best("antigone") == {"turned": True}


def test_the_distance_between_pseudo_groups_is_that_of_their_means_within_classes():
    X, labels = np.array([[0.0], [2.0], [10.0], [10.0], [10.0], [14.0]]), np.array([0, 0, 1, 1, 1, 1])
    right = np.array([True, False, True, True, True, False])
    assert distance_between_means(X, labels, right) == pytest.approx((2 * 2 + 4 * 4) / 6)
