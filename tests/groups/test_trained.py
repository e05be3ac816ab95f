"""What a served network computes, against the same networks written out with loops."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from dafh.groups.trained import NetworkModel
from dafh.linear.designs import Standardization

D, K, M = 3, 4, 2


class Trained(NamedTuple):
    """Networks as the engine hands them over."""

    group: tuple
    classifiers: tuple


def layers(rng, sizes, *lead):
    return tuple((rng.normal(size=(*lead, a, b)), rng.normal(size=(*lead, 1, b))) for a, b in itertools.pairwise(sizes))


def trained(group_hidden=(6, 5), classifier_hidden=(), seed=0):
    rng = np.random.default_rng(seed)
    return Trained(layers(rng, (D, *group_hidden, K)), layers(rng, (D, *classifier_hidden, M), K))


def forward(network, row):
    """Output of a network for one standardised row."""
    for number, (weight, bias) in enumerate(network, 1):
        row = [sum(row[i] * weight[i, j] for i in range(len(weight))) + bias[0, j] for j in range(bias.shape[1])]
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
    model = NetworkModel.from_parameters(*networks, Standardization(center, SCALE))
    X = rows(center=center, scale=SCALE)
    standard = (X - center) / SCALE
    np.testing.assert_allclose(model.group_logits(X), expected_groups(networks, standard), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.logits(X), expected_logits(networks, standard), rtol=1e-7, atol=1e-7)


def model_of(networks, **options):
    return NetworkModel.from_parameters(*networks, Standardization(CENTER, SCALE), **options)


@pytest.mark.parametrize("classifier_hidden", [(), (3, 2)])
def test_another_classifier_may_serve_a_group(classifier_hidden):
    model = model_of(trained((5,), classifier_hidden))
    X = rows(center=CENTER, scale=SCALE)
    every = model.logits(X)
    served = model.serving(np.array([3, K, 2, 2]))
    np.testing.assert_allclose(served.logits(X)[:, 0], every[:, 3], atol=1e-12)
    np.testing.assert_allclose(served.logits(X)[:, 1], 0, atol=1e-9)
    np.testing.assert_allclose(served.logits(X)[:, 2:], every[:, [2, 2]], atol=1e-12)
    np.testing.assert_array_equal(served.group_logits(X), model.group_logits(X))


# ---- rows ----


class Seen:
    """Rows as a served model asks for them, in blocks."""

    def __init__(self, numbers):
        self.numbers = numbers

    def blocks(self):
        for part in np.array_split(np.arange(len(self.numbers)), 3):
            yield Seen(self.numbers[part])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classifier_hidden", [(), (3,)])
def test_every_row_gets_the_output_of_the_classifier_of_its_group(classifier_hidden, dtype):
    networks = trained((6, 5), classifier_hidden, seed=18)  # All four groups have rows.
    model, X = model_of(networks), rows(200, CENTER, SCALE).astype(dtype)
    standard = (X.astype(np.float64) - CENTER) / SCALE
    expected = expected_groups(networks, standard).argmax(axis=1)
    group, own = model.route(Seen(X), None)
    assert set(expected) == set(range(K))
    np.testing.assert_array_equal(group, expected)
    logits = expected_logits(networks, standard)[np.arange(200), group]
    np.testing.assert_allclose(own, logits, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4)
    pooled = np.ones((200, M))
    np.testing.assert_allclose(model.route(Seen(X), pooled)[1], own + 1, rtol=1e-9)
    assert model.group_proba(Seen(X)).sum(axis=1) == pytest.approx(np.ones(200))


@pytest.mark.parametrize("n", [1, 2047, 2048, 2049, 20_000])
def test_any_number_of_rows_is_served_like_a_few(n):
    model, few = model_of(trained((6,))), rows(500, CENTER, SCALE)
    X = np.resize(few, (n, D))
    np.testing.assert_allclose(model.group_logits(X), np.resize(model.group_logits(few), (n, K)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.logits(X), np.resize(model.logits(few), (n, K, M)), rtol=1e-9, atol=1e-9)
