import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.metrics import log_loss, normalized_mutual_info_score

from dafh.engine.networks import init_replica
from dafh.engine.objective import Rows, Settings, brier_score, cross_entropy, imbalance, objective, surrogate_loss
from dafh.engine.objective import row_totals as uncompiled_row_totals
from dafh.engine.population import Plan, normalized_mutual_information
from dafh.engine.population import loss_and_totals as uncompiled_loss_and_totals

row_totals = jax.jit(uncompiled_row_totals)
loss_and_totals = jax.jit(uncompiled_loss_and_totals, static_argnames="plan")  # As training does.


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


def settings(**changes):
    values = {"envy_weight": 0.7, "penalty": 0.4, "temperature": 1.5, "anchor": 0.8, "shrinkage": 0.1}
    return Settings(
        **(values | {"group_rate": 0.1, "classifier_rate": 0.1, "held_out": -1.0, "elsewhere": 0.0} | changes)
    )


def problem(n_classes, seed=0, n=40, d=3, n_groups=3):
    rng = np.random.default_rng(seed)
    n_outputs = 1 if n_classes == 2 else n_classes
    rows = Rows(
        x=rng.normal(size=(n, d)),
        answers=rng.integers(2, size=(n, 1, 2)),
        label=rng.integers(n_classes, size=n),
        base=rng.normal(size=(n, 1, n_outputs)),
        pooled_right=rng.integers(2, size=(n, 1)).astype(float),
        weight=rng.uniform(0.5, 2, size=n),
        fold=np.full(n, -1),
    )
    plan = Plan(group_sizes=(d + 2, 5, n_groups), classifier_sizes=(d, n_outputs))
    params = init_replica(rng, plan.group_sizes, plan.classifier_sizes, 1.0)
    return jax.tree.map(np.float64, params), rows, plan


def rows_by_hand(label, weight, pooled_right=None):
    """Rows as one replica sees them, without an axis of blocks."""
    n = len(label)
    right = np.zeros(n) if pooled_right is None else np.asarray(pooled_right, float)
    x, none = np.zeros((n, 1)), np.zeros((n, 0))
    return Rows(x, none, np.asarray(label), x, right, np.asarray(weight, float), -np.ones(n))


def central_difference(function, tree, step=1e-5):
    leaves, structure = jax.tree.flatten(tree)
    gradient = [np.zeros_like(leaf) for leaf in leaves]
    for leaf, slope in zip(leaves, gradient, strict=True):
        for index in np.ndindex(leaf.shape):
            kept = leaf[index]
            leaf[index] = kept + step
            above = float(function(structure.unflatten(leaves)))
            leaf[index] = kept - step
            slope[index] = (above - float(function(structure.unflatten(leaves)))) / (2 * step)
            leaf[index] = kept
    return structure.unflatten(gradient)


@pytest.mark.parametrize("surrogate", ["margin", "paper"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_of_the_classifiers_equals_finite_differences(double_precision, n_classes, surrogate):
    params, rows, plan = problem(n_classes)
    plan = Plan(plan.group_sizes, plan.classifier_sizes, surrogate=surrogate)

    def loss(classifiers):
        return loss_and_totals(params._replace(classifiers=classifiers), settings(elsewhere=0.3), rows, plan)[0]

    jax.tree.map(
        lambda exact, numeric: np.testing.assert_allclose(exact, numeric, atol=1e-8),
        jax.grad(loss)(params.classifiers),
        central_difference(loss, params.classifiers),
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_of_the_groups_equals_finite_differences(double_precision, n_classes):
    params, rows, plan = problem(n_classes)

    def loss(group):
        return loss_and_totals(params._replace(group=group), settings(), rows, plan)[0]

    jax.tree.map(
        lambda exact, numeric: np.testing.assert_allclose(exact, numeric, atol=1e-8),
        jax.grad(loss)(params.group),
        central_difference(loss, params.group),
    )


def test_the_likelihood_moves_a_row_to_the_classifier_that_serves_it_best():
    """Without surrogate and penalty: the difference of the two cross-entropies, times both shares of one half."""
    logits, s = np.array([[[2.0], [-1.0]]]), settings(penalty=0.0, anchor=1.0)

    def value(group_logits):
        totals = row_totals(group_logits, logits, rows_by_hand([1], [1.0]), s)
        return objective(totals._replace(fairness=0.0), s)

    slope = jax.grad(value)(np.zeros((1, 2)))
    difference = np.log1p(np.exp(1.0)) - np.log1p(np.exp(-2.0))
    np.testing.assert_allclose(slope, [[difference / 4, -difference / 4]], rtol=1e-5)


def test_objective_equals_the_formula_written_out_for_one_row():
    group_logits, z = np.array([[0.3, -0.2]]), np.array([[[0.5], [-1.0]]])
    rows = rows_by_hand([1], [1.0])
    s = settings()
    pi, loss, k = softmax(group_logits[0]), 1 - expit(1.5 * z[0, :, 0]), 2
    expected = sum(0.7 * loss - 2 * k * pi * loss) / k**2
    expected -= 0.4 * sum(pi * np.log(pi * k))
    expected -= 0.8 * sum(pi * -np.log(expit(z[0, :, 0])))
    assert float(objective(row_totals(group_logits, z, rows, s), s)) == pytest.approx(expected, abs=1e-6)


def test_a_classifier_is_held_near_the_pooled_one_on_rows_of_other_groups():
    group_logits, z = np.array([[0.3, -0.2]]), np.array([[[0.5], [-1.0]]])
    rows = rows_by_hand([1], [1.0])._replace(base=np.array([[0.4]]))
    pi, variance = softmax(group_logits[0]), expit(0.4) * expit(-0.4)
    without, held = (
        float(objective(row_totals(group_logits, z, rows, s), s)) for s in (settings(), settings(elsewhere=0.3))
    )
    expected = 0.8 * 0.3 / 2 * variance * sum((1 - pi) * (z[0, :, 0] - 0.4) ** 2)
    assert without - held == pytest.approx(expected, abs=1e-6)


def test_groups_do_not_move_to_hold_classifiers_near_the_pooled_one(double_precision):
    params, rows, plan = problem(2)

    def slope(elsewhere):
        s = settings(elsewhere=elsewhere)
        return jax.grad(lambda group: loss_and_totals(params._replace(group=group), s, rows, plan)[0])(params.group)

    jax.tree.map(np.testing.assert_array_equal, slope(0.0), slope(0.5))


@given(st.floats(-8, 8), st.integers(0, 1), st.floats(0.1, 5))
def test_margin_surrogate_is_the_absolute_difference_to_the_label(z, label, temperature):
    loss = surrogate_loss(np.array([[z]]), np.array([label]), temperature)
    assert float(loss[0]) == pytest.approx(abs(expit(temperature * z) - label), abs=1e-5)


@given(st.floats(-8, 8), st.integers(0, 1))
def test_paper_surrogate_is_the_printed_one_with_an_absolute_value(z, label):
    loss = surrogate_loss(np.array([[z]]), np.array([label]), 9.0, "paper")
    assert float(loss[0]) == pytest.approx(abs(expit(expit(z) - 0.5) - label), abs=1e-5)


@pytest.mark.parametrize("kind", ["margin", "paper"])
def test_two_classes_as_one_logit_or_as_two_are_the_same_problem(kind):
    z = np.linspace(-3, 3, 7)
    for label in (0, 1):
        labels = np.full(7, label)
        one = surrogate_loss(z[:, None], labels, 1.3, kind)
        two = surrogate_loss(np.column_stack([np.zeros(7), z]), labels, 1.3, kind)
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_penalty_is_zero_for_equal_groups_and_log_k_for_a_single_one():
    assert float(imbalance(np.array([5.0, 5.0, 5.0]))) == pytest.approx(0, abs=1e-6)
    assert float(imbalance(np.array([9.0, 0.0, 0.0]))) == pytest.approx(np.log(3), abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_multiply(n_classes):
    params, rows, plan = problem(n_classes)
    doubled = Rows(*(np.concatenate([field, field[:5]]) for field in rows))
    weighted = rows._replace(weight=np.where(np.arange(40) < 5, 2, 1) * 1.0)
    losses = [
        float(loss_and_totals(params, settings(), r, plan)[0]) for r in (doubled._replace(weight=np.ones(45)), weighted)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_log_loss_and_brier_score_agree_with_scikit_learn_and_a_count_by_hand(n_outputs):
    rng = np.random.default_rng(0)
    logits, label = rng.normal(size=(50, n_outputs)), rng.integers(max(n_outputs, 2), size=50)
    probability = expit(logits[:, 0]) if n_outputs == 1 else softmax(logits, axis=1)
    assert float(np.mean(cross_entropy(logits, label))) == pytest.approx(log_loss(label, probability), abs=1e-5)
    every = np.column_stack([1 - probability, probability]) if n_outputs == 1 else probability
    distance = ((every - np.eye(max(n_outputs, 2))[label]) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(brier_score(logits, label), distance, atol=1e-5)


def test_regret_counts_rows_where_own_is_wrong_and_another_right():
    # Row by row: own right; own wrong and the other right; both wrong and pooled right; all wrong.
    group_logits = np.tile([5.0, 0.0], (4, 1))
    logits = np.array([[1, -1], [-1, 1], [-1, -1], [-1, -1]], float)[..., None]
    rows = rows_by_hand([1, 1, 1, 1], np.ones(4), pooled_right=[0, 0, 1, 0])
    totals = row_totals(group_logits, logits, rows, settings())
    assert float(totals.right) == 1
    assert float(totals.regret) == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=40))
def test_label_information_is_the_normalised_mutual_information(pairs):
    groups, labels = np.array(pairs).T
    counts = np.zeros((3, 2))
    np.add.at(counts, (groups, labels), 1)
    constant = len(set(groups)) == 1 or len(set(labels)) == 1
    expected = 0.0 if constant else normalized_mutual_info_score(groups, labels)
    assert normalized_mutual_information(counts) == pytest.approx(expected, abs=1e-9)


# ---- worked out by hand ----


def test_the_terms_for_two_groups_by_hand():
    """Two rows, one of weight 3. Logits of log 3 are probabilities of 3/4 and 1/4."""
    log3 = np.log(3.0)
    group_logits = np.array([[log3, 0.0], [0.0, log3]])  # Assignments (3/4, 1/4) and (1/4, 3/4).
    logits = np.array([[[log3], [-log3]], [[log3], [log3]]])
    rows = rows_by_hand([1, 0], [1, 3])
    totals = row_totals(group_logits, logits, rows, settings(temperature=1.0, envy_weight=1.0))
    # Losses: row 1 has (1/4, 3/4), row 2, whose label is 0, has (3/4, 3/4).
    fairness = 1 * ((1 - 3) * 1 / 4 + (1 - 1) * 3 / 4) + 3 * ((1 - 1) * 3 / 4 + (1 - 3) * 3 / 4)
    assert float(totals.weight) == 4
    np.testing.assert_allclose(totals.mass, [3 / 4 + 3 / 4, 1 / 4 + 9 / 4], rtol=1e-6)
    assert float(totals.fairness) == pytest.approx(fairness, abs=1e-5)
    anchor = (3 / 4 * np.log(4 / 3) + 1 / 4 * np.log(4)) + 3 * np.log(4)
    assert float(totals.anchor) == pytest.approx(anchor, abs=1e-5)
    # The groups are 0 and 1: the first row is served rightly, the second, of weight 3, wrongly.
    assert float(totals.right) == 1
    assert float(totals.log_loss) == pytest.approx(np.log(4 / 3) + 3 * np.log(4), abs=1e-5)
    assert float(totals.brier) == pytest.approx(1 / 16 + 3 * 9 / 16, abs=1e-5)
    assert float(totals.regret) == 0  # Nobody is right about the second row.
    np.testing.assert_allclose(totals.decided, [[0, 1], [0, 3]])


def test_the_terms_for_three_groups_and_three_classes_by_hand():
    """One row of weight 2 and class 2; the three classifiers give it the probabilities 1/2, 1/4 and 1/4."""
    group_logits = np.log([[1.0, 1.0, 2.0]])  # Assignment (1/4, 1/4, 1/2): the row belongs to group 2.
    logits = np.log([[[1.0, 1.0, 2.0], [1.0, 2.0, 1.0], [2.0, 1.0, 1.0]]])
    s = settings(temperature=1.0, envy_weight=0.5, penalty=0.3, anchor=0.2)
    totals = row_totals(group_logits, logits, rows_by_hand([2], [2.0]), s)
    losses, assignment = np.array([1 / 2, 3 / 4, 3 / 4]), np.array([1 / 4, 1 / 4, 1 / 2])
    fairness = 2 * ((0.5 - 6 * assignment) * losses).sum()
    anchor = 2 * (1 / 4 * np.log(2) + 1 / 4 * np.log(4) + 1 / 2 * np.log(4))
    assert float(totals.fairness) == pytest.approx(fairness, abs=1e-5)
    assert float(totals.anchor) == pytest.approx(anchor, abs=1e-5)
    assert float(totals.regret) == 2  # Its own classifier says class 0, the first group's would be right.
    assert float(totals.brier) == pytest.approx(2 * ((1 / 2) ** 2 + (1 / 4) ** 2 + (3 / 4) ** 2) / 2, abs=1e-5)
    np.testing.assert_allclose(totals.decided, [[0, 0, 0], [0, 0, 0], [2, 0, 0]])
    imbalanced = (assignment * np.log(3 * assignment)).sum()
    expected = fairness / (2 * 9) - 0.3 * imbalanced - 0.2 * anchor / 2
    assert float(objective(totals, s)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_totals_of_all_rows_are_the_sums_over_any_two_parts(n_classes):
    rng = np.random.default_rng(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    group_logits, logits = rng.normal(size=(30, 2)), rng.normal(size=(30, 2, n_outputs))
    rows = rows_by_hand(rng.integers(n_classes, size=30), rng.uniform(0.5, 2, 30), rng.integers(2, size=30))
    whole, *parts = (
        row_totals(group_logits[part], logits[part], Rows(*(field[part] for field in rows)), settings())
        for part in (slice(None), slice(0, 11), slice(11, None))
    )
    for total, one, other in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(total, one + other, rtol=1e-4, atol=1e-4)


def test_the_numbers_of_the_groups_mean_nothing():
    rng = np.random.default_rng(0)
    group_logits, logits, order = rng.normal(size=(30, 3)), rng.normal(size=(30, 3, 1)), [2, 0, 1]
    rows = rows_by_hand(rng.integers(2, size=30), np.ones(30))
    plain, mixed = (row_totals(group_logits[:, k], logits[:, k], rows, settings()) for k in ([0, 1, 2], order))
    assert float(objective(mixed, settings())) == pytest.approx(float(objective(plain, settings())), abs=1e-5)
    np.testing.assert_allclose(mixed.mass, np.asarray(plain.mass)[order], rtol=1e-5)
    assert float(mixed.regret) == float(plain.regret)


@pytest.mark.parametrize("size", [1e3, 1e30])
def test_huge_logits_make_no_nan(size):
    logits = np.array([[[size], [-size]]])
    totals = row_totals(np.array([[size, -size]]), logits, rows_by_hand([0], [1]), settings())
    assert np.isfinite(float(totals.fairness))
    assert float(totals.brier) == 1.0
    assert float(totals.right) == 0.0


# ---- blocks ----


def test_a_replica_sees_the_block_of_the_fold_it_holds_out():
    rng = np.random.default_rng(0)
    rows = rows_by_hand([0, 1], [1, 1])
    rows = rows._replace(answers=rng.integers(2, size=(2, 3, 4)), base=rng.normal(size=(2, 3, 1)))
    rows = rows._replace(pooled_right=rng.integers(2, size=(2, 3)))
    for held_out, block in [(0, 0), (1, 1), (-1, 2)]:
        seen = rows.seen_by(np.float32(held_out))
        for name in ("answers", "base", "pooled_right"):
            np.testing.assert_allclose(getattr(seen, name), getattr(rows, name)[:, block])
