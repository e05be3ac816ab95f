"""Algorithm 1 written a second time, in NumPy with gradients by hand, against the engine."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from cases import checkerboard
from dafh import DAFHClassifier, Recipe
from dafh.engine.objective import Rows, Settings
from dafh.engine.population import Plan, init_population, train_population

D, HIDDEN, K, TAU = 4, 7, 3, 1.7


def surrogate_and_slope(z, y, kind):
    """Loss of classifier outputs z (n, K) and its derivative in z."""
    sign = np.where(y == 1, -1.0, 1.0)[:, None]
    if kind == "margin":
        s = expit(TAU * z)
        return np.abs(s - y[:, None]), sign * TAU * s * (1 - s)
    p = expit(z)
    s = expit(p - 0.5)
    return np.abs(s - y[:, None]), sign * s * (1 - s) * p * (1 - p)


def group_gradient(theta, loss, x, lam):
    w1, b1, w2, b2 = theta
    n = len(x)
    hidden = np.maximum(x @ w1 + b1, 0)
    pi = softmax(hidden @ w2 + b2, axis=1)
    d_pi = -2 * K * loss / (n * K**2) - lam / n * (np.log(pi.mean(0) * K) + 1)
    d_out = pi * (d_pi - (pi * d_pi).sum(1, keepdims=True))
    d_hidden = (d_out @ w2.T) * (hidden > 0)
    return [x.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_out, d_out.sum(0)]


def assignment(theta, x):
    w1, b1, w2, b2 = theta
    return softmax(np.maximum(x @ w1 + b1, 0) @ w2 + b2, axis=1)


def transcription(theta, h, batches, lam, rates, momentum, kind):
    """Yield θ and h after each step; θ moves first, then every h_k against the new θ."""
    velocity = [np.zeros_like(part) for part in h]
    for x, y in batches:
        z = x @ h[0].T + h[1]
        loss, slope = surrogate_and_slope(z, y, kind)
        theta = [p + rates[0] * g for p, g in zip(theta, group_gradient(theta, loss, x, lam), strict=True)]
        d_z = (1 - 2 * K * assignment(theta, x)) / (len(x) * K**2) * slope
        ascent = [d_z.T @ x, d_z.sum(0)]
        velocity = [momentum * v + g for v, g in zip(velocity, ascent, strict=True)]
        h = [p + rates[1] * v for p, v in zip(h, velocity, strict=True)]
        yield theta, h


def engine_parts(params):
    theta = [np.float64(part) for layer in params.group for part in layer]
    (layer,) = params.classifiers
    return theta, [np.float64(layer.weight[:, :, 0]), np.float64(layer.bias[:, 0])]


@pytest.mark.parametrize(("kind", "momentum"), checkerboard(["margin", "paper"], [0.0, 0.9]))
@pytest.mark.parametrize(("n", "batch"), [(64, 64), (150, 64)])
def test_engine_follows_algorithm_1_step_by_step(kind, momentum, n, batch):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(n, D)).astype(np.float32), rng.integers(2, size=n)
    one, block = np.ones(n, np.float32), np.zeros((n, 1), np.float32)
    rows = Rows(x, np.zeros((n, 1, 0)), y.astype(np.int32), block[..., None], block, one, fold=-one)
    plan = Plan((D, HIDDEN, K), (D, 1), surrogate=kind, optimizer="sgd", momentum=momentum, alternate=True)
    start = init_population(plan, np.array([0.8]), np.random.SeedSequence(1))
    lam, rates, epochs = 0.5, (0.3, 0.6), 12
    settings = Settings(*(np.array([v]) for v in (1.0, lam, TAU, 0.0, 0.0, *rates, -1.0, 0.0)))
    record = train_population(
        rows, rows, start, settings, plan, batch_size=batch, max_epochs=epochs, rng=np.random.default_rng(7)
    )

    order = np.random.default_rng(7)
    batches = []
    for _ in range(epochs):
        shuffled = order.permutation(n)
        batches += [(x[part], y[part]) for part in np.split(shuffled, range(batch, n, batch))]
    replica = type(start)(*([type(layer)(layer[0][0], layer[1][0]) for layer in network] for network in start))
    steps = list(transcription(*engine_parts(replica), batches, lam, rates, momentum, kind))
    per_epoch = len(batches) // epochs
    for epoch in range(epochs):
        theta, h = steps[(epoch + 1) * per_epoch - 1]
        mine_theta, mine_h = engine_parts(record.parameters(0, epoch))
        for expected, found in zip([*theta, *h], [*mine_theta, *mine_h], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)
    # The comparison means something only if the parameters have moved by much more than its tolerance.
    assert np.abs(h[0] - engine_parts(replica)[1][0]).max() > 1e-2


def test_the_recipe_of_the_paper_is_algorithm_1():
    """From the constructor to the predictions, against the transcription: last epoch, one start, printed order."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, D)) * [1, 10, 0.1, 3] + 2
    y = (X[:, 0] + rng.normal(size=150) > 2).astype(int)
    lam, rates, batch, epochs, n = 0.5, (0.3, 0.6), 64, 4, len(y)
    recipe = Recipe.paper(
        group_hidden=(HIDDEN,),
        batch_size=batch,
        max_epochs=epochs,
        penalty=lam,
        group_learning_rate=rates[0],
        classifier_learning_rate=rates[1],
    )
    model = DAFHClassifier(K, method="network", pooled="linear", guard=None, recipe=recipe, random_state=0).fit(X, y)

    seeds = np.random.SeedSequence(np.random.RandomState(0).randint(2**31, size=4).tolist()).spawn(4)
    start = init_population(Plan((D, HIDDEN, K), (D, 1)), np.array([1.0]), seeds[0])
    replica = type(start)(*([type(layer)(layer[0][0], layer[1][0]) for layer in network] for network in start))
    x, order = (X - X.mean(axis=0)) / X.std(axis=0), np.random.default_rng(seeds[2])
    parts = [part for _ in range(epochs) for part in np.split(order.permutation(n), range(batch, n, batch))]
    batches = [(x[part], y[part]) for part in parts]
    theta, h = list(transcription(*engine_parts(replica), batches, lam, rates, 0.9, "paper"))[-1]

    soft = assignment(theta, x)
    group = soft.argmax(axis=1)
    own = (x @ h[0].T + h[1])[np.arange(n), group]
    np.testing.assert_allclose(model.group_proba(X), soft, atol=1e-5)
    np.testing.assert_array_equal(model.predict_group(X), group)
    np.testing.assert_allclose(model.decision_function(X), own, atol=1e-4)
    assert model.best_epoch_ == epochs
    assert len(model.population_) == 1
