"""Group network and decoupled classifiers: parameters made by NumPy, applied by JAX.

Both are multi-layer perceptrons; without hidden layers that is a linear map. Parameters start on the host because a
fresh process then compiles one program less before its first training step.
"""

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

Array = Any


class Layer(NamedTuple):
    """One affine map."""

    weight: Array
    bias: Array


Network = tuple[Layer, ...]


class Parameters(NamedTuple):
    """All that is learned in one replica; in a population every array has a leading replica axis."""

    group: Network
    classifiers: Network
    """Every array has a leading axis over the K classifiers."""


def init_network(rng: np.random.Generator, sizes: tuple[int, ...], output_scale: float) -> Network:
    """Draw a network with layers of the given sizes.

    Hidden layers get He's scale, which keeps the variance of rectified units; the output layer gets
    ``output_scale / sqrt(inputs)``, so that on standardised inputs a linear map has outputs of that deviation.
    """
    layers = []
    for position, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        scale = output_scale if position == len(sizes) - 2 else np.sqrt(2.0)
        weight = rng.standard_normal((n_in, n_out)) * (scale / np.sqrt(n_in))
        layers.append(Layer(weight.astype(np.float32), np.zeros(n_out, np.float32)))
    return tuple(layers)


def stack(trees: list[Any]) -> Any:
    """Stack equal trees of arrays along a new leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def init_replica(
    rng: np.random.Generator,
    group_sizes: tuple[int, ...],
    classifier_sizes: tuple[int, ...],
    noise: float,
) -> Parameters:
    """Draw one replica: a random group network, and classifiers whose corrections have deviation `noise`."""
    n_groups = group_sizes[-1]
    group = init_network(rng, group_sizes, output_scale=1.0)
    classifiers = [init_network(rng, classifier_sizes, output_scale=noise) for _ in range(n_groups)]
    return Parameters(group, stack(classifiers))


def apply_network(network: Network, x: Array) -> Array:
    """Rectified hidden layers, linear output: (rows, d) to (rows, outputs)."""
    for layer in network[:-1]:
        x = jax.nn.relu(x @ layer.weight + layer.bias)
    return x @ network[-1].weight + network[-1].bias


def apply_classifiers(classifiers: Network, x: Array, base: Array) -> Array:
    """Logits of all K classifiers, each the base logit plus its correction: (rows, K, m).

    Columns beyond those that the classifiers were made for are the group network's alone.
    """
    x = x[:, : classifiers[0].weight.shape[-2]]
    corrections = jax.vmap(apply_network, in_axes=(0, None), out_axes=1)(classifiers, x)
    return base[:, None, :] + corrections
