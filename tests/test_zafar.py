"""Preference-based fairness (Zafar et al. 2017): constraints, convex steps, and when they change nothing."""

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, approx_fprime, minimize

from dafh.exceptions import InputError
from dafh.rivals.convex_concave import Group, Problem, constrained_minimum, minimum, parity_minimum, solve
from dafh.rivals.zafar import ZafarClassifier


@pytest.fixture(scope="module")
def envious():
    """Two groups that need different columns, one of which is accepted far less often: it envies the other."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 600)
    X = rng.normal(size=(600, 2))
    score = np.where(sex == "m", X @ [0.3, 1.5] + 1.5, X @ [1.5, -1] - 1.5)
    y = (score + rng.logistic(size=600) > 0).astype(int)
    return X, y, sex


def problem_of(X, y, sex, **options):
    groups = []
    for value in ("f", "m"):
        rows = sex == value
        columns = np.column_stack([X[rows], np.ones(rows.sum())])
        groups.append(Group(columns, y[rows].astype(float), np.full(rows.sum(), 1 / rows.sum())))
    return Problem(groups, np.array([(sex == "f").mean(), (sex == "m").mean()]), 1e-2, **options)


def classifier_of(model, value):
    (place,) = [k for k, name in enumerate(model.partition_.group_names_) if name.endswith(f"={value}")]
    return model.estimators_[place]


# ---- functions ----


def test_gradients_agree_with_finite_differences(envious):
    problem = problem_of(*envious, least=np.array([0.3, 0.4]))
    rng = np.random.default_rng(1)
    point, at = rng.normal(size=(2, 6))
    np.testing.assert_allclose(
        problem.loss(point)[1], approx_fprime(point, lambda p: problem.loss(p)[0], 1e-7), atol=1e-5
    )
    tangents = problem.tangents(at)
    values, gradients = tangents(point)
    assert len(values) == 4
    for place in range(4):
        numeric = approx_fprime(point, lambda p, place=place: tangents(p)[0][place], 1e-7)
        np.testing.assert_allclose(gradients[place], numeric, atol=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tangent_lies_below_the_benefit_so_that_its_constraint_is_tighter(envious, sign):
    problem = problem_of(*envious, sign=sign, least=np.array([0.3, 0.4]))
    rng = np.random.default_rng(2)
    for at, point in rng.normal(size=(20, 2, 6)):
        assert (problem.tangents(at)(point)[0] >= problem.violations(point) - 1e-12).all()
        np.testing.assert_allclose(problem.tangents(at)(at)[0], problem.violations(at))


# ---- solutions ----


def test_a_convex_step_is_what_a_solver_of_scipy_finds(envious):
    problem = problem_of(*envious)
    start = np.tile(parity_minimum(problem.groups, problem.share, 1e-2), 2)
    tangents = problem.tangents(start)
    ours, multipliers = constrained_minimum(problem.loss, tangents, start, 1e-7)
    assert (multipliers >= 0).all()
    rule = NonlinearConstraint(lambda p: tangents(p)[0], -np.inf, 0, jac=lambda p: tangents(p)[1])
    theirs = minimize(
        problem.loss, start, jac=True, method="SLSQP", constraints=rule, options={"ftol": 1e-12, "maxiter": 500}
    )
    # The loss is flat and the benefit has kinks: the values agree to four digits, the points to two.
    assert problem.loss(ours)[0] == pytest.approx(theirs.fun, abs=5e-5)
    np.testing.assert_allclose(ours, theirs.x, atol=2e-2)
    assert tangents(ours)[0].max() <= 1e-6
    assert problem.loss(ours)[0] > problem.loss(minimum(problem.loss, start))[0] + 1e-3  # The constraint costs.


def test_the_parity_classifier_has_the_same_mean_score_in_all_groups_and_is_the_best_such(envious):
    problem = problem_of(*envious)
    theta = parity_minimum(problem.groups, problem.share, 1e-2)
    means = [group.weight @ group.X @ theta for group in problem.groups]
    assert means[0] == pytest.approx(means[1], abs=1e-9)
    gap = problem.groups[0].weight @ problem.groups[0].X - problem.groups[1].weight @ problem.groups[1].X
    theirs = minimize(
        lambda p: (
            sum(s * Problem([g], np.ones(1), 0).loss(p)[0] for g, s in zip(problem.groups, problem.share, strict=True))
            + 0.005 * p[:-1] @ p[:-1]
        ),
        np.zeros(3),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda p: gap @ p},
        options={"ftol": 1e-12},
    )
    np.testing.assert_allclose(theta, theirs.x, atol=1e-3)


@pytest.mark.parametrize("preference", ["impact", "treatment", "both"])
def test_constraints_hold_within_tolerance_and_cost_loss_where_they_are_active(envious, preference):
    X, y, sex = envious
    model = ZafarClassifier(preference=preference).fit(X, y, sensitive_features=sex)
    assert model.n_tangents_ > 0
    assert model.violations_.max() <= model.tolerance
    # Women are accepted at least as often by their own classifier as by that of men.
    women = X[sex == "f"]
    own, other = (classifier_of(model, value).decision_function(women) for value in ("f", "m"))
    if preference != "impact":
        assert np.maximum(own, 0).mean() >= np.maximum(other, 0).mean() - 1e-3
    assert model.score(X, y, sensitive_features=sex) < 0.85


def test_where_groups_prefer_their_own_classifiers_anyway_nothing_changes():
    rng = np.random.default_rng(3)
    sex, X = rng.choice(["f", "m"], 600), rng.normal(size=(600, 2))
    # Each group has one column in which it differs, and which matters for it: its own classifier has larger scores.
    X *= np.where((sex == "f")[:, None], [2, 0.5], [0.5, 2])
    score = np.where(sex == "f", X[:, 0], X[:, 1])
    y = (score + rng.logistic(size=600) > 0).astype(int)
    model = ZafarClassifier(preference="treatment").fit(X, y, sensitive_features=sex)
    problem = problem_of((X - X.mean(0)) / X.std(0), y, sex)
    free = minimum(problem.loss, np.zeros(6))
    assert (problem.violations(free) < 0).all()
    assert model.n_tangents_ == 0
    assert (model.violations_ < 0).all()


def test_each_tangent_lowers_the_loss_of_a_point_that_satisfies_the_constraints(envious):
    problem = problem_of(*envious)
    start = np.tile(parity_minimum(problem.groups, problem.share, 1e-2), 2)
    found, n_tangents = solve(problem, start)
    assert n_tangents > 1
    assert problem.violations(found).max() <= 1e-4
    assert problem.loss(found)[0] < problem.loss(start)[0]


# ---- the estimator ----


def test_swapping_the_labels_and_the_accepted_one_changes_nothing_else(envious):
    X, y, sex = envious
    fitted = {
        (swapped, label): ZafarClassifier(preference="impact", accepted=label)
        .fit(X, 1 - y if swapped else y, sensitive_features=sex)
        .predict_proba(X, sex)
        for swapped, label in ((False, 1), (True, 0), (False, 0))
    }
    np.testing.assert_allclose(fitted[False, 1][:, 0], fitted[True, 0][:, 1], atol=1e-3)
    assert np.abs(fitted[False, 1] - fitted[False, 0]).max() > 0.01


def test_the_guard_judges_group_by_group_and_leaves_the_figures_of_the_fit(envious):
    X, y, sex = envious
    plain = ZafarClassifier(preference="impact").fit(X, y, sensitive_features=sex)
    guarded = ZafarClassifier(preference="impact", guard="veto", random_state=0).fit(X, y, sensitive_features=sex)
    assert len(guarded.guard_report_.table) == 2
    np.testing.assert_array_equal(guarded.violations_, plain.violations_)
    assert (guarded.serves_ == [0, 1]).all()  # Both make fewer errors than the pooled classifier here.


def test_three_classes_and_an_unknown_label_are_refused(envious):
    X, y, sex = envious
    with pytest.raises(InputError, match="needs two classes"):
        ZafarClassifier().fit(X, np.arange(600) % 3, sensitive_features=sex)
    with pytest.raises(InputError, match="accepted is 'yes'"):
        ZafarClassifier(accepted="yes").fit(X, y, sensitive_features=sex)
    with pytest.raises(InputError, match="'preference' parameter"):
        ZafarClassifier(preference="all").fit(X, y, sensitive_features=sex)
