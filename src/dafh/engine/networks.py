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


# Logit of a row's group in the copy of a tree; those of the other groups are 0. Soft groups share rows, which keeps
# their classifiers from overfitting: of 1 to 10, values from 1 to 2 gave the best log-loss on all five data sets. With
# 4, training made it worse on the three small ones, and Bank gained 0.0059 instead of 0.0075.
SHARPNESS = 1.5


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


Path = tuple[tuple[int, bool], ...]
"""The way to a leaf of a tree: the number of each question, and the answer that leads on."""


class Start(NamedTuple):
    """Groups and corrections that a replica starts from."""

    leaves: tuple[Path, ...]
    """The tree, leaf by leaf; without any leaf the group network starts at random."""
    group: Array
    """Group of each leaf."""
    weight: Array
    """Corrections of standardised columns, (K, d, m)."""
    bias: Array


def init_replica(
    rng: np.random.Generator,
    group_sizes: tuple[int, ...],
    classifier_sizes: tuple[int, ...],
    noise: float,
    start: Start | None = None,
) -> Parameters:
    """Draw one replica: a random group network, and classifiers that start near the base logits.

    `noise` is the standard deviation of their first corrections. Without any, all K classifiers would be the same and
    get the same gradients for ever. A start takes the place of what is drawn where the networks have room for it: a
    tree needs one hidden layer with a unit for each leaf, and corrections need classifiers without hidden layers, to
    which the noise is added.
    """
    n_groups = group_sizes[-1]
    group = init_network(rng, group_sizes, output_scale=1.0)
    classifiers = stack([init_network(rng, classifier_sizes, output_scale=noise) for _ in range(n_groups)])
    if start is None:
        return Parameters(group, classifiers)
    if start.leaves and len(group_sizes) == 3 and len(start.leaves) <= group_sizes[1]:
        group = plant_tree(group, classifier_sizes[0], start.leaves, start.group)
    if len(classifiers) == 1:
        drawn = classifiers[0]
        classifiers = (Layer(drawn.weight + np.float32(start.weight), drawn.bias + np.float32(start.bias)),)
    return Parameters(group, classifiers)


def plant_tree(network: Network, n_columns: int, leaves: tuple[Path, ...], leaf_group: Array) -> Network:
    """Turn the first hidden units of a group network into the leaves of a tree, whose groups it then assigns.

    The unit of a leaf is 1 for its rows and 0 for all others: of the conditions on a path of length l it counts those
    that hold, and subtracts l − 1. The other units keep their random inputs. Their outputs start at zero, which leaves
    the groups as the tree has them, and they learn from the first step on.
    """
    (hidden, output), n_leaves = network, len(leaves)
    weight, bias = hidden.weight.copy(), hidden.bias.copy()
    weight[:, :n_leaves] = 0
    for unit, path in enumerate(leaves):
        for question, answer in path:
            weight[n_columns + question, unit] += 1 if answer else -1
        # A condition that asks for "no" counts 1 − answer.
        bias[unit] = 1 - sum(answer for _, answer in path)
    outputs = np.zeros_like(output.weight)
    outputs[np.arange(n_leaves), leaf_group] = SHARPNESS
    return Layer(weight, bias), Layer(outputs, np.zeros_like(output.bias))


def apply_network(network: Network, x: Array) -> Array:
    """Forward pass with rectified hidden layers and a linear output: (rows, d) to (rows, outputs)."""
    for layer in network[:-1]:
        x = jax.nn.relu(x @ layer.weight + layer.bias)
    return x @ network[-1].weight + network[-1].bias


def apply_group_network(network: Network, x: Array, answers: Array) -> Array:
    """Output of the group network, (rows, K), for the columns (rows, d) followed by the answers (rows, s)."""
    first, d = network[0], x.shape[-1]
    # Apart, and not as one wide matrix: the columns are the same for all replicas, whose products with them are then
    # one large matrix product, while each block of replicas has answers of its own.
    outputs = x @ first.weight[:d] + answers @ first.weight[d:] + first.bias
    return apply_network(network[1:], jax.nn.relu(outputs)) if len(network) > 1 else outputs


def apply_classifiers(classifiers: Network, x: Array, base: Array) -> Array:
    """Logits of all K classifiers, (rows, K, m): the base logit plus the correction of each."""
    corrections = jax.vmap(apply_network, in_axes=(0, None), out_axes=1)(classifiers, x)
    return base[:, None, :] + corrections
