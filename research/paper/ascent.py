"""Algorithm 1 for many settings at once, with a checkpoint wherever one is wanted: for the grid and the convergence.

`Recipe.paper` fits one setting and returns one model; the grid needs the 48 settings of every split, and the figure the
model after every step. Settings with different rates and penalties are one population here, and fewer epochs are
checkpoints of the longest run. tests/test_paper.py compares both on the same data.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

HIDDEN, MOMENTUM, STEP = 100, 0.9, 1024
"""Hidden units, momentum of the classifiers, and rows of a batch, as the paper prints them."""
Layer = tuple[Any, Any]
"""Weights and biases of a linear layer."""


class State(NamedTuple):
    """Group network θ, own classifiers h (one column for each group), and the velocity of h."""

    theta: tuple[Layer, Layer]
    h: Layer
    velocity: Layer


class Setting(NamedTuple):
    """What varies inside a population: a list of each."""

    group_rate: Any
    classifier_rate: Any
    penalty: Any


def affine(layer: Layer, x: Any) -> Any:
    """Outputs of a linear layer."""
    return x @ layer[0] + layer[1]


def group_logits(theta: tuple[Layer, Layer], x: Any) -> Any:
    """Outputs of the group network before the softmax."""
    return affine(theta[1], jax.nn.relu(affine(theta[0], x)))


def paper_objective(theta: tuple[Layer, Layer], h: Layer, x: Any, y: Any, penalty: Any, scale: float) -> Any:
    """Objective of the paper, with the absolute value and the sign that it lacks; `scale` times the mean over rows."""
    pi = jax.nn.softmax(group_logits(theta, x))
    loss = jnp.abs(jax.nn.sigmoid(jax.nn.sigmoid(affine(h, x)) - 0.5) - y[:, None])
    k, share = pi.shape[-1], pi.mean(0)
    # KL divergence from the uniform distribution; an empty group has a share of 0, and the logarithm needs a floor.
    gamma = jnp.sum(share * jnp.log(share * k + 1e-12))
    return scale * ((1 - 2 * k * pi) * loss).sum(1).mean() / k**2 - penalty * gamma


def likelihood(_theta: tuple[Layer, Layer], h: Layer, x: Any, y: Any, _penalty: Any, _scale: float) -> Any:
    """Log-likelihood of logistic regression, so that the paper's SGD fits baselines too."""
    return -jax.nn.softplus(jnp.where(y[:, None] > 0, -1, 1) * affine(h, x)).mean()


def start(n_features: int, n_groups: int, seed: int) -> State:
    """Draw the layers as `Recipe.paper` does: the paper does not say how."""
    rng = np.random.default_rng([seed, n_groups])

    def layer(inputs: int, outputs: int, variance: float) -> Layer:
        draw = rng.standard_normal((inputs, outputs)) * np.sqrt(variance / inputs)
        return draw.astype(np.float32), np.zeros(outputs, np.float32)

    h = layer(n_features, n_groups, 1)
    theta = (layer(n_features, HIDDEN, 2), layer(HIDDEN, n_groups, 1))
    return State(theta, h, jax.tree.map(np.zeros_like, h))


def orders(n: int, size: int, epochs: int, seed: int) -> list[NDArray[np.intp]]:
    """Row numbers of each epoch, in random order and in batches; what does not fill a batch is left out."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n)[: n - n % size].reshape(-1, size) for _ in range(epochs)]


def ascend(
    objective: Callable[..., Any],
    first: State,
    settings: Setting,
    x: NDArray[Any],
    y: NDArray[Any],
    batches: list[NDArray[np.intp]],
    *,
    scale: float = 1.0,
) -> Iterator[State]:
    """Maximise an objective for all settings from the same start; yield the population after each array of batches.

    Batches of one row are Algorithm 1 as printed. With a scale of 1 the losses of a batch are their mean, with the size
    of a batch their sum.
    """
    population: Any = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(settings.penalty), *a.shape)), first)
    rows = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    varied = Setting(*(jnp.asarray(values, jnp.float32) for values in settings))
    for steps in batches:
        population = _steps(objective, scale, population, varied, rows, jnp.asarray(steps))
        yield population


@partial(jax.jit, static_argnums=(0, 1))
def _steps(
    objective: Callable[..., Any], scale: float, population: State, settings: Setting, rows: Any, batches: Any
) -> State:
    def step(setting: Setting, state: State, batch: Any) -> tuple[State, None]:
        arguments = (rows[0][batch], rows[1][batch], setting.penalty, scale)
        gradient = jax.grad(objective, 0)(state.theta, state.h, *arguments)
        theta = jax.tree.map(lambda a, g: a + setting.group_rate * g, state.theta, gradient)
        # The classifiers move against the new groups, as Algorithm 1 is printed.
        gradient = jax.grad(objective, 1)(theta, state.h, *arguments)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, state.velocity, gradient)
        h = jax.tree.map(lambda a, v: a + setting.classifier_rate * v, state.h, velocity)
        return State(theta, h, velocity), None

    return jax.vmap(lambda state, setting: jax.lax.scan(partial(step, setting), state, batches)[0])(
        population, settings
    )


@jax.jit
def _decisions(population: State, x: Any) -> tuple[Any, Any]:
    # Setting by setting: all at once would hold 16 hidden layers of every row in memory.
    groups = jax.lax.map(lambda theta: group_logits(theta, x).argmax(-1), population.theta)
    return groups, jax.lax.map(lambda h: (affine(h, x) > 0).astype(jnp.int8), population.h)


def decisions(population: State, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group of each row, (settings, rows), and its label by each classifier, (settings, rows, K)."""
    groups, labels = _decisions(population, jnp.asarray(x, jnp.float32))
    return np.asarray(groups), np.asarray(labels)
