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

HIDDEN, MOMENTUM = 100, 0.9


class Layer(NamedTuple):
    """Weights and biases of a linear layer."""

    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        """Outputs for rows."""
        return x @ self.weight + self.bias


class State(NamedTuple):
    """Group network θ, own classifiers h (one column for each group), and the velocity of h."""

    theta: tuple[Layer, ...]
    h: Layer
    velocity: Layer


class Setting(NamedTuple):
    """What varies inside a population."""

    group_rate: Any
    classifier_rate: Any
    penalty: Any


Objective = Callable[[Any, Any, Any, Any, Any, float], Any]


def group_logits(theta: tuple[Layer, ...], x: Any) -> Any:
    """Outputs of the group network before the softmax."""
    return theta[1](jax.nn.relu(theta[0](x)))


def paper_objective(theta: tuple[Layer, ...], h: Layer, x: Any, y: Any, penalty: Any, scale: float) -> Any:
    """Objective of the paper, with the absolute value and the sign that it lacks; `scale` times the mean over rows."""
    log_pi = jax.nn.log_softmax(group_logits(theta, x))
    n_groups = log_pi.shape[-1]
    loss = jnp.abs(jax.nn.sigmoid(jax.nn.sigmoid(h(x)) - 0.5) - y[:, None])
    share = jnp.exp(log_pi).mean(0)
    gamma = jnp.sum(share * jnp.log(share * n_groups + 1e-12))  # KL divergence from the uniform distribution
    return scale * ((1 - 2 * n_groups * jnp.exp(log_pi)) * loss).sum(1).mean() / n_groups**2 - penalty * gamma


def likelihood(theta: tuple[Layer, ...], h: Layer, x: Any, y: Any, penalty: Any, scale: float) -> Any:
    """Log-likelihood of logistic regression, so that the paper's SGD fits baselines too."""
    del theta, penalty, scale
    return -jax.nn.softplus(jnp.where(y[:, None] > 0, -1, 1) * h(x)).mean()


def start(n_features: int, n_groups: int, seed: int) -> State:
    """Draw the layers as `Recipe.paper` does: the paper does not say how."""
    rng = np.random.default_rng([seed, n_groups])

    def layer(inputs: int, outputs: int, variance: float) -> Layer:
        draw = rng.standard_normal((inputs, outputs)) * np.sqrt(variance / inputs)
        return Layer(draw.astype(np.float32), np.zeros(outputs, np.float32))

    own = layer(n_features, n_groups, 1)
    theta = (layer(n_features, HIDDEN, 2), layer(HIDDEN, n_groups, 1))
    return State(theta, own, Layer(np.zeros_like(own.weight), np.zeros_like(own.bias)))


def ascend(
    objective: Objective,
    first: State,
    settings: Setting,
    x: NDArray[Any],
    y: NDArray[Any],
    orders: list[NDArray[np.intp]],
    *,
    scale: float = 1.0,
) -> Iterator[State]:
    """Take gradient steps and yield the population after each order.

    Parameters
    ----------
    objective : function
        What is maximised.
    first : State
        Start of all settings.
    settings : Setting of arrays
        One value for each setting.
    x, y : arrays
        Rows, and labels 0 or 1.
    orders : list of arrays of shape (steps, rows of a step)
        Row numbers; single rows are Algorithm 1 as printed.
    scale : float, default=1
        1: the losses of a batch are their mean; the size of a batch: their sum.
    """
    population: Any = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(settings.penalty), *a.shape)), first)
    rows = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    varied = Setting(*(jnp.asarray(values, jnp.float32) for values in settings))
    for order in orders:
        population = _steps(objective, scale, population, varied, rows, jnp.asarray(order))
        yield population


@partial(jax.jit, static_argnums=(0, 1))
def _steps(objective: Objective, scale: float, population: State, settings: Setting, rows: Any, order: Any) -> State:
    def step(setting: Setting, state: State, chosen: Any) -> tuple[State, None]:
        x, y = rows[0][chosen], rows[1][chosen]
        gradient = jax.grad(objective, 0)(state.theta, state.h, x, y, setting.penalty, scale)
        theta = jax.tree.map(lambda a, g: a + setting.group_rate * g, state.theta, gradient)
        gradient = jax.grad(objective, 1)(theta, state.h, x, y, setting.penalty, scale)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, state.velocity, gradient)
        h = jax.tree.map(lambda a, v: a + setting.classifier_rate * v, state.h, velocity)
        return State(theta, h, velocity), None

    return jax.vmap(lambda state, setting: jax.lax.scan(partial(step, setting), state, order)[0])(population, settings)


def decisions(population: State, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group of each row, (settings, rows), and its label by each classifier, (settings, rows, K)."""
    groups, labels = _decisions(population, jnp.asarray(x, jnp.float32))
    return np.asarray(groups), np.asarray(labels)


@jax.jit
def _decisions(population: State, x: Any) -> tuple[Any, Any]:
    # Setting by setting: all at once would hold 16 hidden layers of every row in memory.
    groups = jax.lax.map(lambda theta: group_logits(theta, x).argmax(-1), population.theta)
    return groups, jax.lax.map(lambda h: (h(x) > 0).astype(jnp.int8), population.h)
