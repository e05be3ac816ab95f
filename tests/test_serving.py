"""The trained model in NumPy: it serves what the engine has trained, whatever the scale and offset of the columns."""

import numpy as np
import pytest

from dafh.engine.networks import apply_classifiers, apply_network, init_replica
from dafh.groups.cuts import Cuts
from dafh.groups.serving import CorrectionModel, Standardization

D, K, N = 3, 4, 500
CUTS = Cuts(np.array([0, 0, 2]), np.array([-0.5, 0.7, 0.1]))


class LinearBase:
    coef_ = np.array([[0.4, -1.0, 2.0]])
    intercept_ = np.array([0.3])


def parameters(group_hidden, classifier_hidden, n_seen, seed=0):
    """A random replica, with biases: those of a fresh one are zero."""
    rng = np.random.default_rng(seed)
    replica = init_replica(rng, (n_seen, *group_hidden, K), (D, *classifier_hidden, 1), noise=1.0)

    def with_biases(network):
        return tuple(layer._replace(bias=rng.normal(size=layer.bias.shape).astype(np.float32)) for layer in network)

    return type(replica)(with_biases(replica.group), with_biases(replica.classifiers))


def served_and_trained(group_hidden, classifier_hidden, offset=0.0, cuts=CUTS, linear_base=None, padding=5):
    """The served model and rows, and what the engine computes from the standardised rows."""
    X = np.random.default_rng(1).normal(size=(N, D)) * [1, 10, 0.1] + offset
    cuts = Cuts(cuts.column, cuts.threshold * np.array([1, 10, 0.1])[cuts.column] + offset)
    trained = parameters(group_hidden, classifier_hidden, D + len(cuts) + padding)
    columns = Standardization(X.mean(axis=0), X.std(axis=0))
    share = cuts.above(X).mean(axis=0)
    above = Standardization(share, np.sqrt(share * (1 - share)))
    standard = [(X - columns.center) / columns.scale, (cuts.above(X) - above.center) / above.scale]
    seen = np.column_stack([*standard, np.zeros((N, padding))]).astype(np.float32)
    base = np.zeros((N, 1)) if linear_base is None else X @ linear_base.coef_.T + linear_base.intercept_
    logits = np.asarray(apply_classifiers(trained.classifiers, seen, base), np.float64)
    group_logits = np.asarray(apply_network(trained.group, seen), np.float64)
    return (
        CorrectionModel.from_parameters(trained, columns, cuts, above, linear_base=linear_base),
        X,
        group_logits,
        logits,
    )


SHAPES = [((), ()), ((7,), ()), ((6, 5), (4, 3))]


@pytest.mark.parametrize("offset", [0.0, 50.0, 1e5])
@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_groups_and_corrections_are_those_of_the_engine(group_hidden, classifier_hidden, offset):
    model, X, group_logits, logits = served_and_trained(group_hidden, classifier_hidden, offset)
    np.testing.assert_allclose(model.group_logits(X), group_logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.logits(X), logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_a_linear_pooled_classifier_becomes_part_of_the_model(group_hidden, classifier_hidden):
    for offset in (0.0, 1e4):
        model, X, _, logits = served_and_trained(group_hidden, classifier_hidden, offset, linear_base=LinearBase())
        assert model.pooled == "inside"
        np.testing.assert_allclose(model.logits(X), logits, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_routing_takes_each_row_to_the_classifier_of_its_group(group_hidden, classifier_hidden):
    model, X, group_logits, _ = served_and_trained(group_hidden, classifier_hidden)
    group, own = model.route(X)
    np.testing.assert_array_equal(group, model.group_logits(X).argmax(axis=1))
    np.testing.assert_allclose(own, model.logits(X)[np.arange(N), group], rtol=1e-6, atol=1e-9)
    assert np.mean(group == group_logits.argmax(axis=1)) > 0.99
    assert len(np.unique(group)) > 1


def test_more_rows_than_one_block_are_routed_like_each_block_alone():
    model, X, *_ = served_and_trained((7,), ())
    many = np.tile(X, (40, 1))
    group, own = model.route(many)
    np.testing.assert_array_equal(group, np.tile(model.route(X)[0], 40))
    np.testing.assert_allclose(own, np.tile(model.route(X)[1], (40, 1)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("group_hidden", "classifier_hidden"), SHAPES)
def test_another_group_or_the_pooled_classifier_can_serve(group_hidden, classifier_hidden):
    model, X, _, _ = served_and_trained(group_hidden, classifier_hidden)
    every = model.logits(X)
    served = model.serving(np.array([1, 1, K, 0]))
    expected = np.stack([every[:, 1], every[:, 1], 0 * every[:, 0], every[:, 0]], axis=1)
    np.testing.assert_allclose(served.logits(X), expected, atol=1e-12)
    np.testing.assert_array_equal(served.group_logits(X), model.group_logits(X))


def test_where_the_pooled_classifier_is_inside_no_correction_leaves_it():
    model, X, _, _ = served_and_trained((7,), (), linear_base=LinearBase())
    pooled = X @ LinearBase.coef_.T + LinearBase.intercept_
    for k in range(K):
        np.testing.assert_allclose(model.serving(np.full(K, K)).logits(X)[:, k], pooled, rtol=1e-6, atol=1e-9)


def test_without_cuts_and_without_the_pooled_classifier():
    none = Cuts(np.array([], np.intp), np.array([]))
    model, X, group_logits, _ = served_and_trained((7,), (), cuts=none, padding=0)
    assert model.cuts is None
    assert model.pooled == "added"
    np.testing.assert_allclose(model.group_logits(X), group_logits, rtol=1e-4, atol=1e-4)


def test_single_precision_rows_go_to_the_same_groups_but_for_close_calls():
    model, X, *_ = served_and_trained((7,), ())
    assert np.mean(model.route(X)[0] == model.route(X.astype(np.float32))[0]) > 0.995
