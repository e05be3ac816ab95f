"""The objective of the network: gradients against finite differences, laws, and values worked out by hand."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.metrics import log_loss

from dafh.exceptions import InputError
from dafh.groups.network import Parameters, draw_replica, training_loss
from dafh.groups.objective import (
    IMBALANCES,
    SURROGATES,
    Batch,
    Form,
    Settings,
    divergence,
    log_likelihood,
    margin_loss,
    objective,
    paper_loss,
    printed_loss,
)


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


def settings(**changes):
    values = {"envy_weight": 0.7, "penalty": 0.4, "temperature": 1.5, "anchor": 0.8, "shrinkage": 0.1}
    return Settings(
        **(values | {"group_learning_rate": 0.1, "classifier_learning_rate": 0.1, "held_out": -1.0} | changes)
    )


def form(surrogate=margin_loss, imbalance=divergence, *, sums=False, moves=True):
    return Form(surrogate, imbalance, sums, moves)


def problem(n_classes, seed=0, n=40, d=3, n_groups=3):
    rng = np.random.default_rng(seed)
    n_outputs = 1 if n_classes == 2 else n_classes
    batch = Batch(
        x=rng.normal(size=(n, d)),
        label=rng.integers(n_classes, size=n),
        base=rng.normal(size=(n, n_outputs)),
        weight=rng.uniform(0.5, 2, size=n),
        fold=np.full(n, -1),
    )
    return jax.tree.map(np.float64, draw_replica(rng, (d, 5, n_groups), (d, n_outputs), 1.0)), batch


def batch_of(label, weight):
    x = np.zeros((len(label), 1))
    return Batch(x, np.asarray(label), x, np.asarray(weight, float), -np.ones(len(label)))


def value(group_logits, logits, batch, s=None, f=None):
    return float(objective(np.asarray(group_logits), np.asarray(logits), batch, s or settings(), f or form()))


# ---- gradients ----


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


@pytest.mark.parametrize("part", Parameters._fields)
@pytest.mark.parametrize(
    ("n_classes", "surrogate"), [(2, "margin"), (3, "margin"), (2, "paper"), (3, "paper"), (2, "printed")]
)
def test_gradients_equal_finite_differences(double_precision, n_classes, surrogate, part):
    params, batch = problem(n_classes)
    f = form(SURROGATES[surrogate], sums=n_classes == 3)
    loss = jax.jit(lambda active: training_loss(params._replace(**{part: active}), batch, settings(), f))
    exact, numeric = jax.grad(loss)(getattr(params, part)), central_difference(loss, getattr(params, part))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-7), exact, numeric)


def test_the_anchor_moves_a_row_to_the_classifier_that_serves_it_best_or_no_row_at_all():
    """Without surrogate and penalty: the difference of the two cross-entropies, times both shares of one half."""
    logits, s = np.array([[[2.0], [-1.0]]]), settings(penalty=0.0, anchor=1.0)

    def slope(moves):
        f = form(lambda logits, label, _: 0.0 * logits[..., 0], moves=moves)
        return jax.grad(lambda groups: objective(groups, logits, batch_of([1], [1.0]), s, f))(np.zeros((1, 2)))

    difference = np.log1p(np.exp(1.0)) - np.log1p(np.exp(-2.0))
    np.testing.assert_allclose(slope(True), [[difference / 4, -difference / 4]], rtol=1e-5)
    np.testing.assert_array_equal(slope(False), 0.0)


# ---- surrogates and penalties ----


@given(st.floats(-8, 8), st.integers(0, 1), st.floats(0.1, 5))
def test_surrogates_are_differences_from_the_label(z, label, temperature):
    logits, labels = np.array([[[z]]]), np.array([label])
    printed = expit(expit(z) - 0.5) - label
    for name, expected in {
        "margin": abs(expit(temperature * z) - label),
        "paper": abs(printed),
        "printed": printed,
    }.items():
        assert float(SURROGATES[name](logits, labels, temperature)[0, 0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("surrogate", [margin_loss, paper_loss])
@pytest.mark.parametrize("label", [0, 1])
def test_two_classes_as_one_logit_or_as_two_are_the_same_problem(surrogate, label):
    z, labels = np.linspace(-3, 3, 7), np.full(7, label)
    one = surrogate(z[:, None, None], labels, 1.3)
    two = surrogate(np.column_stack([np.zeros(7), z])[:, None], labels, 1.3)
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_the_printed_surrogate_has_one_gradient_for_both_labels_and_needs_two_of_them():
    slope = jax.grad(lambda z, label: printed_loss(z[None, None, None], label[None], 1.0).sum())
    assert float(slope(0.3, np.array(0))) == float(slope(0.3, np.array(1))) != 0
    with pytest.raises(InputError, match="two classes"):
        printed_loss(np.zeros((1, 1, 3)), np.array([0]), 1.0)


def test_penalty_is_zero_for_equal_groups_and_log_k_for_a_single_one():
    assert float(divergence(np.full(3, 1 / 3))) == pytest.approx(0, abs=1e-6)
    assert float(divergence(np.array([1.0, 0.0, 0.0]))) == pytest.approx(np.log(3), abs=1e-5)
    assert float(IMBALANCES["printed"](np.array([1.0, 0.0, 0.0]))) == pytest.approx(-np.log(3), abs=1e-5)
    assert set(IMBALANCES) == {"kl", "printed"}


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_likelihood_agrees_with_scikit_learn(n_outputs):
    rng = np.random.default_rng(0)
    logits, label = rng.normal(size=(50, n_outputs)), rng.integers(max(n_outputs, 2), size=50)
    probability = expit(logits[:, 0]) if n_outputs == 1 else softmax(logits, axis=1)
    assert -float(np.mean(log_likelihood(logits, label))) == pytest.approx(log_loss(label, probability), abs=1e-5)


# ---- worked out by hand ----


@pytest.mark.parametrize("sums", [False, True])
def test_two_groups_by_hand(sums):
    """Two rows, one of weight 3. Logits of log 3 are probabilities of 3/4 and 1/4."""
    log3 = np.log(3.0)
    group_logits = np.array([[log3, 0.0], [0.0, log3]])  # Assignments (3/4, 1/4) and (1/4, 3/4).
    logits = np.array([[[log3], [-log3]], [[log3], [log3]]])
    # Losses: row 1 has (1/4, 3/4), row 2, whose label is 0, has (3/4, 3/4).
    fairness = 1 * ((1 - 3) * 1 / 4 + (1 - 1) * 3 / 4) + 3 * ((1 - 1) * 3 / 4 + (1 - 3) * 3 / 4)
    anchor = (3 / 4 * np.log(4 / 3) + 1 / 4 * np.log(4)) + 3 * np.log(4)
    share = np.array([3 / 4 + 3 / 4, 1 / 4 + 9 / 4]) / 4
    expected = (fairness / 4 - 0.8 * anchor) / (1 if sums else 4) - 0.4 * (share * np.log(2 * share)).sum()
    s = settings(temperature=1.0, envy_weight=1.0)
    assert value(group_logits, logits, batch_of([1, 0], [1, 3]), s, form(sums=sums)) == pytest.approx(
        expected, abs=1e-5
    )


def test_three_groups_and_three_classes_by_hand():
    """One row of weight 2 and class 2; the three classifiers give it the probabilities 1/2, 1/4 and 1/4."""
    group_logits = np.log([[1.0, 1.0, 2.0]])  # Assignment (1/4, 1/4, 1/2).
    logits = np.log([[[1.0, 1.0, 2.0], [1.0, 2.0, 1.0], [2.0, 1.0, 1.0]]])
    losses, assignment = np.array([1 / 2, 3 / 4, 3 / 4]), np.array([1 / 4, 1 / 4, 1 / 2])
    fairness = ((0.5 - 6 * assignment) * losses).sum()
    anchor = 1 / 4 * np.log(2) + 1 / 4 * np.log(4) + 1 / 2 * np.log(4)
    expected = fairness / 9 - 0.3 * (assignment * np.log(3 * assignment)).sum() - 0.2 * anchor
    s = settings(temperature=1.0, envy_weight=0.5, penalty=0.3, anchor=0.2)
    assert value(group_logits, logits, batch_of([2], [2.0]), s) == pytest.approx(expected, abs=1e-5)


# ---- laws ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_multiply(n_classes):
    params, batch = problem(n_classes)
    doubled = Batch(*(np.concatenate([field, field[:5]]) for field in batch))._replace(weight=np.ones(45))
    weighted = batch._replace(weight=np.where(np.arange(40) < 5, 2, 1) * 1.0)
    one, other = (float(training_loss(params, rows, settings(), form())) for rows in (doubled, weighted))
    assert one == pytest.approx(other, abs=1e-6)


def test_the_numbers_of_the_groups_mean_nothing():
    rng = np.random.default_rng(0)
    group_logits, logits, order = rng.normal(size=(30, 3)), rng.normal(size=(30, 3, 1)), [2, 0, 1]
    batch = batch_of(rng.integers(2, size=30), np.ones(30))
    mixed = value(group_logits[:, order], logits[:, order], batch)
    assert mixed == pytest.approx(value(group_logits, logits, batch), abs=1e-5)


@pytest.mark.parametrize("size", [1e3, 1e30])
def test_huge_logits_make_no_nan(size):
    f = form(paper_loss)
    for surrogate in (form(), f):
        loss = value([[size, -size]], [[[size], [-size]]], batch_of([0], [1]), settings(anchor=0.0), surrogate)
        assert np.isfinite(loss)


def test_rows_that_are_all_held_out_make_no_nan():
    assert value(np.zeros((2, 2)), np.zeros((2, 2, 1)), batch_of([0, 1], [0.0, 0.0])) == 0.0
