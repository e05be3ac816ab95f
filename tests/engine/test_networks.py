"""Networks as they are drawn and applied: scales, shapes, and outputs worked out by hand."""

import itertools

import numpy as np
import pytest

from dafh.engine.networks import (
    SHARPNESS,
    Layer,
    Start,
    apply_classifiers,
    apply_group_network,
    apply_network,
    init_network,
    init_replica,
)
from dafh.engine.population import Plan


def drawn(sizes, scale=1.0, seed=0):
    return init_network(np.random.default_rng(seed), sizes, scale)


def test_hidden_layers_keep_the_size_of_the_signal():
    """He's scale: the mean square after each rectified layer stays what it was, however deep the network."""
    x = np.random.default_rng(1).normal(size=(300, 400)).astype(np.float32)
    outputs = np.asarray(apply_network(drawn((400, 400, 400, 400, 400)), x))
    assert np.mean(outputs**2) == pytest.approx(1.0, rel=0.2)


def test_a_network_by_hand():
    hidden = Layer(np.array([[1.0, -1.0], [2.0, 0.0]]), np.array([0.5, 0.0]))
    output = Layer(np.array([[2.0], [3.0]]), np.array([-1.0]))
    x = np.array([[1.0, 1.0], [-2.0, 0.0]])
    # Row 1: (3.5, −1) becomes (3.5, 0). Row 2: (−1.5, 2) becomes (0, 2).
    np.testing.assert_allclose(apply_network((hidden, output), x), [[6.0], [5.0]])


def test_classifiers_by_hand():
    classifiers = (Layer(np.array([[[1.0]], [[-2.0]]]), np.array([[0.0], [0.5]])),)
    logits = apply_classifiers(classifiers, np.array([[3.0]]), np.array([[10.0]]))
    np.testing.assert_allclose(logits, [[[13.0], [4.5]]])


def test_columns_and_answers_are_the_inputs_of_the_group_network():
    rng = np.random.default_rng(0)
    x, answers = rng.normal(size=(20, 3)), rng.integers(2, size=(20, 4))
    for sizes in ((7, 2), (7, 5, 2), (7, 5, 6, 2)):
        network = drawn(sizes)
        together = apply_network(network, np.column_stack([x, answers]))
        np.testing.assert_allclose(apply_group_network(network, x, answers), together, atol=1e-5)


# ---- starts ----

TREE = (
    ((0, True),),
    ((0, False), (1, True)),
    ((0, False), (1, False), (2, True)),
    ((0, False), (1, False), (2, False)),
)
LEAF_GROUP = np.array([1, 0, 1, 2])
EVERY_ANSWER = np.array(list(itertools.product([0, 1], repeat=3)))


def started(group_hidden=(6,), classifier_hidden=(), noise=0.0, leaves=TREE, seed=0):
    rng = np.random.default_rng(9)
    start = Start(leaves, LEAF_GROUP[: len(leaves)], rng.normal(size=(3, 2, 1)), rng.normal(size=(3, 1)))
    sizes = (2 + 16, *group_hidden, 3), (2, *classifier_hidden, 1)
    return start, init_replica(np.random.default_rng(seed), *sizes, noise, start)


def assigned(replica, seed=1):
    """Group logits of rows with every combination of answers, and any columns."""
    x = np.random.default_rng(seed).normal(size=(len(EVERY_ANSWER), 2)) * 100
    answers = np.column_stack([EVERY_ANSWER, np.zeros((len(EVERY_ANSWER), 13))])
    return np.asarray(apply_group_network(replica.group, x.astype(np.float32), answers.astype(np.float32)))


def leaf_of(answers):
    """Leaf by following the paths, one condition after the other."""
    return next(n for n, path in enumerate(TREE) if all(bool(answers[q]) == answer for q, answer in path))


@pytest.mark.parametrize("width", [4, 6, 100])
def test_the_group_network_starts_as_a_copy_of_the_tree(width):
    expected = np.zeros((len(EVERY_ANSWER), 3))
    expected[np.arange(len(EVERY_ANSWER)), [LEAF_GROUP[leaf_of(row)] for row in EVERY_ANSWER]] = SHARPNESS
    np.testing.assert_array_equal(assigned(started((width,))[1]), expected)


def test_a_tree_that_never_splits_puts_every_row_into_one_group():
    _, replica = started(leaves=((),))
    np.testing.assert_array_equal(assigned(replica), np.tile([0, SHARPNESS, 0], (len(EVERY_ANSWER), 1)))


@pytest.mark.parametrize("group_hidden", [(3,), (), (8, 8)])
def test_a_group_network_without_room_for_the_tree_starts_at_random(group_hidden):
    start, replica = started(group_hidden)
    plain = init_replica(np.random.default_rng(0), (18, *group_hidden, 3), (2, 1), 0.0)
    for mine, yours in zip(replica.group, plain.group, strict=True):
        np.testing.assert_array_equal(mine.weight, yours.weight)
    np.testing.assert_allclose(replica.classifiers[0].weight, start.weight, rtol=1e-6)


def test_corrections_start_as_given_with_noise_on_top():
    start, exact = started()
    np.testing.assert_allclose(exact.classifiers[0].weight, start.weight, rtol=1e-6)
    np.testing.assert_allclose(exact.classifiers[0].bias, start.bias, rtol=1e-6)
    off = started(noise=0.1)[1].classifiers[0].weight - start.weight
    assert 1e-3 < np.abs(off).max() < 0.5


# ---- the plan ----


def test_algorithm_1_moves_the_groups_first():
    assert Plan((2, 2), (2, 1)).update_order == (("group", "classifiers"),)
    assert Plan((2, 2), (2, 1), alternate=True).update_order == (("group",), ("classifiers",))


@pytest.mark.parametrize(
    ("part", "momentum", "second"), [("classifiers", 0.9, 1.9), ("classifiers", 0.0, 1.0), ("group", 0.9, 1.0)]
)
def test_momentum_is_for_the_classifiers_only(part, momentum, second):
    """Two gradients of 1: with momentum 0.9, the second step is 1 + 0.9."""
    change = Plan((2, 2), (2, 1), optimizer="sgd", momentum=momentum).transformation(part)
    gradient = np.ones(1)
    direction, state = change.update(gradient, change.init(gradient))
    assert float(direction[0]) == pytest.approx(1.0)
    assert float(change.update(gradient, state)[0][0]) == pytest.approx(second)
