"""Algorithm 1 in plain NumPy: right by itself, and what the compiled network does, in all readings of an update."""

import numpy as np
import pytest

from dafh import DAFHClassifier, Recipe
from dafh.groups.algorithm import (
    H,
    Theta,
    algorithm_1,
    decoupled_classifiers,
    gradient_h,
    gradient_theta,
    group_classifier,
    obj,
    start,
    surrogate,
)
from dafh.groups.network import Parameters, train
from dafh.groups.objective import Batch, Settings

UPDATES = ("row", "batch_mean", "batch_sum")


def rows(n=150, d=4, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(np.float32), rng.integers(2, size=n)


# ---- by itself ----


def test_the_objective_by_hand():
    """One row of label 1, two groups: θ gives it shares of 3/4 and 1/4, both classifiers the probability ½."""
    theta = Theta(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), np.log([3.0, 1.0]))
    h, x, y = H(np.zeros((1, 2)), np.zeros(2)), np.zeros((1, 1)), np.ones(1)
    np.testing.assert_allclose(group_classifier(theta, x), [[0.75, 0.25]])
    np.testing.assert_allclose(surrogate(h, x, y), [[0.5, 0.5]])  # |Sigmoid(½ − ½) − 1|
    gamma = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    # 1/K² Σ_k (L − 2K π L) = ¼ (½ − 3·½ + ½ − ½) = −¼
    assert obj(theta, h, x, y, 2.0) == pytest.approx(-0.25 - 2 * gamma)


@pytest.mark.parametrize("mean", [True, False])
def test_the_gradients_are_finite_differences_of_the_objective(mean):
    x, y = rows(20)
    theta, h = start(4, 3, 5, np.random.default_rng(0))
    exact = [*gradient_theta(theta, h, x, y, 0.7, mean=mean), *gradient_h(theta, h, x, y, mean=mean)]
    for part, slope in zip([*theta, *h], exact, strict=True):
        for index in np.ndindex(part.shape):
            kept, values = part[index], []
            for step in (1e-6, -1e-6):
                part[index] = kept + step
                values.append(obj(theta, h, x, y, 0.7, mean=mean))
            part[index] = kept
            assert slope[index] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_an_update_takes_a_row_or_a_batch():
    x, y = rows(10)
    counts = {
        update: len(
            list(
                algorithm_1(
                    *start(4, 2, 3, np.random.default_rng(0)), x, y, update=update, batch_size=4, epochs=2,
                    rng=np.random.default_rng(0),
                )
            )
        )
        for update in UPDATES
    }  # fmt: skip
    assert counts == {"row": 20, "batch_mean": 6, "batch_sum": 6}


# ---- the compiled network ----


def as_parameters(theta, h):
    """The same networks as one replica of the compiled program."""

    def layer(weight, bias):
        return np.float32(weight)[None], np.float32(bias)[None]

    group = (layer(theta.W1, theta.b1[None]), layer(theta.W2, theta.b2[None]))
    return Parameters(group, (layer(h.w.T[:, :, None], h.b[:, None, None]),))


def assert_the_same(params, theta, h, atol):
    expected = as_parameters(theta, h)
    for found, wanted in zip(params.group + params.classifiers, expected.group + expected.classifiers, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=atol)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("lam", [10.0, 0.5])
def test_the_compiled_network_follows_algorithm_1_for_200_updates(update, lam):
    (x, y), K, epochs = rows(), 3, 2 if update == "row" else 68
    recipe = Recipe.paper(update, batch_size=1 if update == "row" else 64, penalty=lam)
    one = np.ones(len(y), np.float32)
    batch = Batch(x, y.astype(np.int32), np.zeros((len(y), 1), np.float32), one, -one)
    theta, h = start(4, K, 100, np.random.default_rng(1))
    settings = Settings(*(np.array([v]) for v in (1.0, lam, 1.0, 0.0, 0.0, 1e-3, 1e-2, -1.0)))
    populations = train(
        batch, as_parameters(theta, h), settings, recipe, max_epochs=epochs, rng=np.random.default_rng(7)
    )
    steps = list(
        algorithm_1(
            theta, h, np.float64(x), y, lam=lam, epochs=epochs, update=update, batch_size=64,
            rng=np.random.default_rng(7),
        )
    )  # fmt: skip
    assert len(steps) >= 200
    per_epoch = len(steps) // epochs
    for epoch, params in enumerate(populations):
        assert_the_same(params, *steps[(epoch + 1) * per_epoch - 1], atol=1e-5)
    # The comparison means something only if the parameters have moved by much more than its tolerance.
    assert np.abs(steps[-1][1].w - h.w).max() > 1e-3


def test_the_recipe_of_the_paper_is_algorithm_1():
    """From the constructor to the predictions: last epoch, one start, printed order, one row after the other."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4)) * [1, 10, 0.1, 3] + 2
    y = (X[:, 0] + rng.normal(size=150) > 2).astype(int)
    recipe = Recipe.paper(max_epochs=4)
    model = DAFHClassifier(3, method="network", pooled="linear", guard=None, recipe=recipe, random_state=0).fit(X, y)

    seeds = np.random.SeedSequence(np.random.RandomState(0).randint(2**31, size=4).tolist()).spawn(4)
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    theta, h = start(4, 3, 100, np.random.default_rng(seeds[0].spawn(1)[0]))
    *_, (theta, h) = algorithm_1(theta, h, x, y, epochs=4, rng=np.random.default_rng(seeds[2]))

    soft = group_classifier(theta, x)
    group = soft.argmax(axis=1)
    np.testing.assert_allclose(model.group_proba(X), soft, atol=1e-4)
    np.testing.assert_array_equal(model.predict_group(X), group)
    own = decoupled_classifiers(h, x)[np.arange(150), group]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], own, atol=1e-4)
    assert model.best_epoch_ == 4


def test_both_corrections_are_needed():
    """Without the absolute value nothing is learned; with the printed sign nearly all rows are in one group."""
    x, _ = rows(600, seed=1)
    y = x[:, 0] > 0

    def fitted(**changes):
        recipe = Recipe.paper(max_epochs=8, **changes)
        return DAFHClassifier(2, method="network", pooled="linear", guard=None, recipe=recipe, random_state=0).fit(x, y)

    right, without, sign = fitted(), fitted(surrogate="printed"), fitted(imbalance="printed")
    assert right.score(x, y) > 0.9 > 0.75 > without.score(x, y)
    assert np.bincount(right.predict_group(x), minlength=2).max() < 0.9 * len(x)
    assert np.bincount(sign.predict_group(x), minlength=2).max() > 0.95 * len(x)
