"""The trained model in NumPy: it serves what the engine has trained, whatever the scale and offset of the columns."""

import numpy as np
import pytest

from dafh.engine.networks import apply_classifiers, apply_group_network, init_replica
from dafh.groups.trained import CorrectionModel
from dafh.linear.designs import Standardization

D, K, N = 3, 4, 500


def parameters(group_hidden, classifier_hidden, n_seen, seed=0):
    """A random replica, with biases: those of a fresh one are zero."""
    rng = np.random.default_rng(seed)
    replica = init_replica(rng, (n_seen, *group_hidden, K), (D, *classifier_hidden, 1), noise=1.0)

    def with_biases(network):
        return tuple(layer._replace(bias=rng.normal(size=layer.bias.shape).astype(np.float32)) for layer in network)

    return type(replica)(with_biases(replica.group), with_biases(replica.classifiers))


def served_and_trained(group_hidden, classifier_hidden, offset=0.0, n_answers=3, padding=5):
    """The served model with rows and answers, and what the engine computes from the standardised rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, D)) * [1, 10, 0.1] + offset
    answers = rng.integers(2, size=(N, n_answers)).astype(bool)
    trained = parameters(group_hidden, classifier_hidden, D + n_answers + padding)
    columns = Standardization(X.mean(axis=0), X.std(axis=0))
    standard = ((X - columns.center) / columns.scale).astype(np.float32)
    asked = np.column_stack([answers, np.zeros((N, padding))]).astype(np.float32)
    base = np.zeros((N, 1))
    logits = np.asarray(apply_classifiers(trained.classifiers, standard, base), np.float64)
    group_logits = np.asarray(apply_group_network(trained.group, standard, asked), np.float64)
    model = CorrectionModel.from_parameters(trained, columns, n_answers)
    return model, X, answers, group_logits, logits


SHAPES = [((), ()), ((7,), ()), ((6, 5), (4, 3))]


@pytest.mark.parametrize("offset", [0.0, 50.0, 1e5])
@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_groups_and_corrections_are_those_of_the_engine(group_hidden, classifier_hidden, offset):
    model, X, answers, group_logits, logits = served_and_trained(group_hidden, classifier_hidden, offset)
    np.testing.assert_allclose(model.group_logits(X, answers), group_logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.logits(X), logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_routing_takes_each_row_to_the_classifier_of_its_group(group_hidden, classifier_hidden):
    model, X, answers, group_logits, _ = served_and_trained(group_hidden, classifier_hidden)
    group, own = model.route(X, answers)
    np.testing.assert_array_equal(group, model.group_logits(X, answers).argmax(axis=1))
    np.testing.assert_allclose(own, model.logits(X)[np.arange(N), group], rtol=1e-6, atol=1e-9)
    assert np.mean(group == group_logits.argmax(axis=1)) > 0.99
    assert len(np.unique(group)) > 1


@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_another_group_or_the_pooled_classifier_can_serve(group_hidden, classifier_hidden):
    model, X, answers, *_ = served_and_trained(group_hidden, classifier_hidden)
    every = model.logits(X)
    served = model.serving(np.array([1, 1, K, 0]))
    expected = np.stack([every[:, 1], every[:, 1], 0 * every[:, 0], every[:, 0]], axis=1)
    np.testing.assert_allclose(served.logits(X), expected, atol=1e-12)
    np.testing.assert_array_equal(served.group_logits(X, answers), model.group_logits(X, answers))
