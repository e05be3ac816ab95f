"""What a served model computes, against the same networks written out with loops."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from dafh.groups.trained import CorrectionModel
from dafh.linear.designs import Standardization

D, K, M = 3, 4, 2


class Trained(NamedTuple):
    """Networks as the engine hands them over."""

    group: tuple
    classifiers: tuple


def layers(rng, sizes, *lead):
    return tuple((rng.normal(size=(*lead, a, b)), rng.normal(size=(*lead, b))) for a, b in itertools.pairwise(sizes))


def trained(group_hidden=(6, 5), classifier_hidden=(), n_seen=D, seed=0):
    rng = np.random.default_rng(seed)
    return Trained(layers(rng, (n_seen, *group_hidden, K)), layers(rng, (D, *classifier_hidden, M), K))


def forward(network, row):
    """Output of a network for one standardised row."""
    for number, (weight, bias) in enumerate(network, 1):
        row = [sum(row[i] * weight[i, j] for i in range(len(weight))) + bias[j] for j in range(len(bias))]
        row = row if number == len(network) else [max(value, 0.0) for value in row]
    return row


def expected_groups(networks, seen):
    return np.array([forward(networks.group, row) for row in seen])


def expected_logits(networks, standard):
    own = [tuple((weight[k], bias[k]) for weight, bias in networks.classifiers) for k in range(K)]
    return np.array([[forward(network, row) for network in own] for row in standard])


def rows(n=40, center=0.0, scale=1.0, seed=1):
    return np.random.default_rng(seed).normal(size=(n, D)) * scale + center


CENTER, SCALE = np.array([1.0, -20.0, 0.3]), np.array([2.0, 5.0, 0.1])


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), [((), ()), ((6, 5), ()), ((4,), (3, 2))])
def test_networks_of_standardised_columns_serve_the_columns_as_they_are(group_hidden, classifier_hidden, offset):
    networks, center = trained(group_hidden, classifier_hidden), CENTER + offset * SCALE
    model = CorrectionModel.from_parameters(networks, Standardization(center, SCALE))
    X = rows(center=center, scale=SCALE)
    standard = (X - center) / SCALE
    np.testing.assert_allclose(model.group_logits(X), expected_groups(networks, standard), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.logits(X), expected_logits(networks, standard), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_answers_come_after_the_columns_as_they_are(offset):
    """An answer keeps its weight and bias."""
    networks, center = trained(n_seen=D + 3 + 2), CENTER + offset * SCALE  # Two inputs of zeros fill the width up.
    model = CorrectionModel.from_parameters(networks, Standardization(center, SCALE), 3)
    X = rows(center=center, scale=SCALE)
    answers = np.random.default_rng(2).integers(2, size=(len(X), 3)).astype(bool)
    seen = np.column_stack([(X - center) / SCALE, answers, np.zeros((len(X), 2))])
    expected = expected_groups(networks, seen)
    np.testing.assert_allclose(model.group_logits(X, answers), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(model.route(X, answers)[0], expected.argmax(axis=1))
    assert np.abs(model.group_logits(X, ~answers) - expected).max() > 0.1
    assert model.group[0][0].shape[0] == D + 3


def test_a_column_and_an_answer_by_hand():
    group = ((np.array([[1.0, 0.0], [2.0, -3.0], [9.0, 9.0]]), np.array([0.5, 0.0])),)
    classifiers = ((np.zeros((2, 1, 1)), np.zeros((2, 1))),)
    columns = Standardization(np.array([8.0]), np.array([4.0]))
    model = CorrectionModel.from_parameters(Trained(group, classifiers), columns, 1)
    # Column: (x − 8) / 4, so −1 and 1. The answer counts as 0 and 1, and the input after it is dropped.
    logits = model.group_logits(np.array([[4.0], [12.0]]), np.array([[False], [True]]))
    np.testing.assert_allclose(logits, [[-0.5, 0.0], [3.5, -3.0]])


def test_a_tree_without_questions_has_no_answers():
    model, X = model_of(trained()), rows(50, CENTER, SCALE)
    np.testing.assert_array_equal(model.group_logits(X, np.zeros((50, 0), bool)), model.group_logits(X, None))


def model_of(networks, **options):
    return CorrectionModel.from_parameters(networks, Standardization(CENTER, SCALE), **options)


@pytest.mark.parametrize("classifier_hidden", [(), (3, 2)])
def test_another_classifier_may_serve_a_group(classifier_hidden):
    model = model_of(trained((5,), classifier_hidden))
    X = rows(center=CENTER, scale=SCALE)
    every = model.logits(X)
    served = model.serving(np.array([3, K, 2, 2]))
    np.testing.assert_allclose(served.logits(X)[:, 0], every[:, 3], atol=1e-12)
    np.testing.assert_allclose(served.logits(X)[:, 1], 0, atol=1e-9)
    np.testing.assert_allclose(served.logits(X)[:, 2:], every[:, [2, 2]], atol=1e-12)
    np.testing.assert_array_equal(served.route(X)[0], model.route(X)[0])


# ---- routing ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classifier_hidden", [(), (3,)])
def test_every_row_gets_the_output_of_the_classifier_of_its_group(classifier_hidden, dtype):
    networks = trained((6, 5), classifier_hidden, seed=18)  # All four groups have rows.
    model, X = model_of(networks), rows(200, CENTER, SCALE).astype(dtype)
    standard = (X.astype(np.float64) - CENTER) / SCALE
    expected = expected_groups(networks, standard).argmax(axis=1)
    group, own = model.route(X)
    assert set(expected) == set(range(K))
    np.testing.assert_array_equal(group, expected)
    logits = expected_logits(networks, standard)[np.arange(200), group]
    np.testing.assert_allclose(own, logits, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4)


def test_equal_groups_go_to_the_first_of_them():
    group = ((np.zeros((1, 3)), np.array([1.0, 2.0, 2.0])),)
    model = CorrectionModel(group, ((np.zeros((3, 1, 1)), np.array([[0.0], [5.0], [7.0]])),))
    groups, own = model.route(np.zeros((4, 1)))
    assert groups.tolist() == [1] * 4
    assert own.tolist() == [[5.0]] * 4


def test_one_group_takes_every_row():
    model = CorrectionModel(((np.ones((2, 1)), np.zeros(1)),), ((np.ones((1, 2, 1)), np.array([[0.5]])),))
    groups, own = model.route(np.array([[1.0, 2.0], [-3.0, 0.0]]))
    assert groups.tolist() == [0, 0]
    np.testing.assert_allclose(own, [[3.5], [-2.5]])


@pytest.mark.parametrize("n", [1, 8191, 8192, 8193, 20_000])
def test_any_number_of_rows_is_served_like_a_few(n):
    model = model_of(trained((6,)))
    few = rows(500, CENTER, SCALE)
    X = np.resize(few, (n, D))
    group, own = model.route(X)
    np.testing.assert_array_equal(group, np.resize(model.route(few)[0], n))
    np.testing.assert_allclose(own, np.resize(model.route(few)[1], (n, M)), rtol=1e-9, atol=1e-9)
    assert model.group_logits(X).shape == (n, K)
    assert model.logits(X).shape == (n, K, M)


def test_rows_are_not_changed_by_serving_them():
    model = model_of(trained((6, 5)))
    X = rows(50, CENTER, SCALE).astype(np.float32)
    before = X.copy()
    model.route(X)
    model.logits(X)
    model.group_logits(X)
    np.testing.assert_array_equal(X, before)
