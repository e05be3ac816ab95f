r"""The objective of the network, on one page; read it beside equation (5) of the paper.

For rows :math:`(x_i, y_i)` with weights :math:`w_i` and :math:`W = \sum_i w_i`, groups :math:`k = 1 \dots K`, the
assignment :math:`\tilde\pi_i^k = \theta(x_i)[k]` and a surrogate :math:`\tilde L_i^k` of the 0-1 loss of classifier
:math:`h_k`, training maximises

.. math::

    \frac{1}{W K^2} \sum_i w_i \sum_k \left(e \, \tilde L_i^k - 2K \tilde\pi_i^k \tilde L_i^k\right)
    - \lambda \, \Gamma(\theta)
    - c \, \frac{1}{W} \sum_i w_i \sum_k \tilde\pi_i^k \, \mathrm{CE}_i^k
    - \frac{s}{2} \sum_k \lVert h_k \rVert^2 .

The paper has :math:`e = 1` and :math:`c = s = 0`. The last two terms are ours: the anchor, which is the likelihood of
each classifier on the rows of its own group, and shrinkage towards the pooled classifier. The sums run over the rows of
one update: one row, or a batch. With ``reduction="sum"`` nothing is divided by W.

Two corrections of what the paper prints (`dafh.groups.algorithm` has the reasons) can be switched off, to show what
happens without them: ``surrogate="printed"`` and ``imbalance="printed"``.

To change the objective, pass functions: ``Recipe(surrogate=f, imbalance=g)``, with the arguments of those below.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dafh.exceptions import InputError

Array = Any
"""A `jax.Array` or a `numpy.ndarray`: inside a compiled program the one, before and after it the other."""
Surrogate = Callable[[Array, Array, Array], Array]
"""Loss of each classifier (rows, K) from logits (rows, K, m), labels (rows,) and the temperature."""
Imbalance = Callable[[Array], Array]
"""Γ, from the share of each group (K,)."""

# The penalty takes the logarithm of each group's share; this floor keeps it finite for an empty group.
_SMALLEST_SHARE = 1e-7
# All rows of a batch may be held out by a replica: dividing by this floor gives no NaN.
_SMALLEST_WEIGHT = 1e-9


class Batch(NamedTuple):
    """Rows of one update, of a chunk of updates, or of a data set."""

    x: Array
    """Standardised columns, (..., d)."""
    label: Array
    """Index of the true class, (...)."""
    base: Array
    """Logits that the classifiers correct, (..., m): those of the pooled classifier, or zeros."""
    weight: Array
    """Row weight, (...); 0 for padding."""
    fold: Array
    """Fold of the row, (...): replicas that hold it out do not train on the row; −1: all do."""


class Settings(NamedTuple):
    """What may differ between replicas: arrays of shape (replicas,), or () for a single one."""

    envy_weight: Array
    penalty: Array
    temperature: Array
    anchor: Array
    shrinkage: Array
    group_learning_rate: Array
    classifier_learning_rate: Array
    held_out: Array
    """Fold that the replica does not train on; −1: it trains on all rows."""


@dataclass(frozen=True)
class Form:
    """What is compiled into the program, and therefore the same for all replicas."""

    surrogate: Surrogate
    imbalance: Imbalance
    sums: bool
    """Whether rows are summed up, and not averaged."""
    anchor_moves_groups: bool


def log_likelihood(logits: Array, label: Array) -> Array:
    """Log-probability of the true class: (rows, ...) from logits (rows, ..., m), where m = 1 stands for two classes."""
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    if logits.shape[-1] == 1:
        return -jax.nn.softplus((1.0 - 2.0 * label) * logits[..., 0])
    # Compared instead of indexed: the comparison broadcasts over any axes between rows and classes, and is as fast.
    is_true = label[..., None] == jnp.arange(logits.shape[-1])
    return jnp.where(is_true, logits, 0.0).sum(-1) - jax.nn.logsumexp(logits, axis=-1)


def margin_loss(logits: Array, label: Array, temperature: Array) -> Array:
    """1 − softmax(τ · logits) at the true class, which for two classes is σ(−τ · margin)."""
    return -jnp.expm1(log_likelihood(temperature * logits, label))


def paper_loss(logits: Array, label: Array, _: Array) -> Array:
    """The paper's ``|σ(p − ½) − y|`` with the probability p of class 1; τ is not used.

    By the probability of the true class it is 1 − σ(p_y − ½), which extends to several classes. It stays between 0.38
    and 0.62.
    """
    return jax.nn.sigmoid(0.5 - jnp.exp(log_likelihood(logits, label)))


def printed_loss(logits: Array, label: Array, _: Array) -> Array:
    """The same without the absolute value, σ(p − ½) − y, as the paper prints it."""
    if logits.shape[-1] != 1:
        raise InputError('surrogate="printed" needs two classes: take "paper" for more of them.')
    return jax.nn.sigmoid(jax.nn.sigmoid(logits[..., 0]) - 0.5) - label[:, None]


def divergence(share: Array) -> Array:
    """Kullback-Leibler divergence of the groups' shares from the uniform distribution."""
    return (share * jnp.log(jnp.maximum(share, _SMALLEST_SHARE) * share.shape[-1])).sum()


SURROGATES: Mapping[str, Surrogate] = {"margin": margin_loss, "paper": paper_loss, "printed": printed_loss}
# "printed" has the sign of the paper, which rewards one large group.
IMBALANCES: Mapping[str, Imbalance] = {"kl": divergence, "printed": lambda share: -divergence(share)}


def objective(group_logits: Array, logits: Array, batch: Batch, settings: Settings, form: Form) -> Array:
    """Return the value to maximise, but for the shrinkage, from outputs (rows, K) and (rows, K, m) of one replica."""
    n_groups, weight = group_logits.shape[-1], batch.weight[:, None]
    total = jnp.maximum(weight.sum(), _SMALLEST_WEIGHT)
    assignment = jax.nn.softmax(group_logits)
    loss = form.surrogate(logits, batch.label, settings.temperature)
    fairness = (weight * (settings.envy_weight - 2 * n_groups * assignment) * loss).sum() / n_groups**2
    # On the mean assignment: taken row by row, the penalty would pull the assignment of every row towards uniform.
    penalty = settings.penalty * form.imbalance((weight * assignment).sum(0) / total)
    # Left to the surrogate alone, groups that start at something sensible follow labels more than probabilities. Groups
    # that start at random are better left to it.
    moving = assignment if form.anchor_moves_groups else jax.lax.stop_gradient(assignment)
    anchor = -(weight * moving * log_likelihood(logits, batch.label)).sum()
    return (fairness - settings.anchor * anchor) / (1.0 if form.sums else total) - penalty
