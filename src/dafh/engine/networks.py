"""The group network and the classifiers of the groups: parameters drawn by NumPy, forward pass in JAX.

Both are multi-layer perceptrons; without hidden layers they are linear maps. NumPy draws the parameters because drawing
them with JAX would cost a fresh process one more compilation before its first training step.
"""

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

Array = Any
"""A `jax.Array` or a `numpy.ndarray`: inside a compiled program the one, before and after it the other.

A union of the two does not type-check, because their methods have different signatures.
"""


class Layer(NamedTuple):
    """Weights and biases of one layer."""

    weight: Array
    bias: Array


Network = tuple[Layer, ...]


class Parameters(NamedTuple):
    """Everything that one replica learns; in a population every array has a leading replica axis."""

    group: Network
    classifiers: Network
    """All K classifiers, stacked: every array has a leading axis of length K."""


def init_network(rng: np.random.Generator, sizes: tuple[int, ...], output_scale: float) -> Network:
    """Draw a network with layers of the given sizes.

    Hidden layers use He's scale, which keeps the variance of rectified units from layer to layer. The output layer uses
    ``output_scale / sqrt(inputs)``: on standardised inputs, the outputs of a linear map then have the standard
    deviation `output_scale`.
    """
    layers = []
    for position, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        scale = output_scale if position == len(sizes) - 2 else np.sqrt(2.0)
        weight = rng.standard_normal((n_in, n_out)) * (scale / np.sqrt(n_in))
        layers.append(Layer(weight.astype(np.float32), np.zeros(n_out, np.float32)))
    return tuple(layers)


def stack(trees: list[Any]) -> Any:
    """Stack trees of arrays of equal shapes along a new leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def init_replica(
    rng: np.random.Generator,
    group_sizes: tuple[int, ...],
    classifier_sizes: tuple[int, ...],
    noise: float,
) -> Parameters:
    """Draw one replica: a random group network, and classifiers that start near the base logits.

    `noise` is the standard deviation of their first corrections. Without any, all K classifiers would be the same and
    get the same gradients for ever.
    """
    n_groups = group_sizes[-1]
    group = init_network(rng, group_sizes, output_scale=1.0)
    classifiers = [init_network(rng, classifier_sizes, output_scale=noise) for _ in range(n_groups)]
    return Parameters(group, stack(classifiers))


def apply_network(network: Network, x: Array) -> Array:
    """Forward pass with rectified hidden layers and a linear output: (rows, d) to (rows, outputs)."""
    for layer in network[:-1]:
        x = jax.nn.relu(x @ layer.weight + layer.bias)
    return x @ network[-1].weight + network[-1].bias


def apply_classifiers(classifiers: Network, x: Array, base: Array) -> Array:
    """Logits of all K classifiers, (rows, K, m): the base logit plus the correction of each.

    Only the group network sees the columns after the first ones, such as cuts.
    """
    x = x[:, : classifiers[0].weight.shape[-2]]
    corrections = jax.vmap(apply_network, in_axes=(0, None), out_axes=1)(classifiers, x)
    return base[:, None, :] + corrections
