r"""The joint objective, as pure functions of what the two networks put out.

Over θ (group assignment π) and all decoupled classifiers :math:`h_k` together, DAFH maximises

.. math::

    \frac{1}{W K^2} \sum_i w_i \sum_k \left(w_{env} \tilde L_{ik} - 2K \pi_{ik} \tilde L_{ik}\right)
    - \lambda \, \mathrm{KL}(\bar\pi \,\|\, \mathrm{uniform})
    - c \, \frac{1}{W} \sum_i w_i \sum_k \mathrm{stop}(\pi_{ik}) \, \mathrm{CE}_{ik}

with row weights :math:`w_i`, :math:`W = \sum_i w_i`, the mean assignment :math:`\bar\pi`, the surrogate
:math:`\tilde L` of the 0-1 loss and the cross-entropy CE. The last term anchors every classifier to the likelihood
of its own group; no gradient of it reaches θ. The paper's objective is :math:`w_{env} = 1`, :math:`c = 0`.

Two things differ from the paper as printed. The surrogate is the *absolute* difference to the label (without it
both labels have the same gradient and nothing is learned), and the penalty is *subtracted* and taken of the mean
assignment (added, it would reward a single large group; taken row by row, it would blur every assignment).

Everything here is a sum over rows first (`row_totals`) and one value after (`objective`), so that a batch, an
epoch and a data set are judged by the same formula.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

Surrogate = Literal["margin", "paper"]
Array = Any  # jax.Array or numpy.ndarray: these functions take both

# Below this share a group counts as empty in the penalty; keeps its logarithm finite.
_SMALLEST_SHARE = 1e-7
# A batch of rows that are all held out from a replica has no weight, and moves nothing.
_SMALLEST_WEIGHT = 1e-9


class Rows(NamedTuple):
    """Rows as the engine sees them; leading axes may be (rows,) or (steps, rows)."""

    x: Array
    """Standardised features, (..., d); more columns after them are seen by the group network only."""
    label: Array
    """Index of the true class, (...)."""
    base: Array
    """Logits that the classifiers correct, (..., m): the pooled ones, or zeros for a cold start."""
    pooled_right: Array
    """Whether the pooled classifier is right, (...)."""
    weight: Array
    """Row weight, (...); zero for padding."""
    fold: Array
    """Fold of the row, (...): replicas that hold this fold out do not train on it. −1: every replica trains on it."""


class Settings(NamedTuple):
    """What may differ from replica to replica; each field has the shape (replicas,), or () for one replica."""

    envy_weight: Array
    penalty: Array
    temperature: Array
    anchor: Array
    shrinkage: Array
    group_rate: Array
    classifier_rate: Array
    held_out: Array
    """Fold that the replica does not train on, and is judged by; −1: it trains on, and is judged by, everything."""


class Totals(NamedTuple):
    """Weighted sums over rows, from which the objective and all curves are computed."""

    weight: Array
    mass: Array
    """Soft size of each group, (K,)."""
    fairness: Array
    anchor: Array
    log_loss: Array
    """Cross-entropy of the routed prediction."""
    brier: Array
    """Brier score of the routed prediction."""
    right: Array
    """Rows that their own classifier gets right."""
    regret: Array
    """Rows that their own classifier gets wrong and another one, or the pooled one, right."""
    decided: Array
    """Rows of each group by the label that their own classifier predicts, (K, classes)."""


def true_margin(logits: Array, label: Array) -> Array:
    """Logit of the true label against the other one, for two classes as one logit per classifier."""
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    return (2.0 * label - 1.0) * logits[..., 0]


def true_log_probability(logits: Array, label: Array) -> Array:
    """Log-probability of the true label under a softmax of several logits."""
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    is_true = label[..., None] == jnp.arange(logits.shape[-1])
    return jnp.where(is_true, logits, 0.0).sum(-1) - jax.nn.logsumexp(logits, axis=-1)


def cross_entropy(logits: Array, label: Array) -> Array:
    """Negative log-likelihood of the true label; one logit per classifier is a binary problem, several a softmax.

    Parameters
    ----------
    logits : array of shape (rows, ..., m)
        m = 1: the logit of class 1. m > 1: one logit per class.
    label : array of shape (rows,)

    Returns
    -------
    array of shape (rows, ...)
    """
    if logits.shape[-1] == 1:
        return jax.nn.softplus(-true_margin(logits, label))
    return -true_log_probability(logits, label)


def error_probability(logits: Array, label: Array) -> Array:
    """Probability that the classifier gives to all labels but the true one."""
    if logits.shape[-1] == 1:
        return jax.nn.sigmoid(-true_margin(logits, label))
    return 1.0 - jnp.exp(true_log_probability(logits, label))


def surrogate_loss(logits: Array, label: Array, temperature: Array, kind: Surrogate = "margin") -> Array:
    """Differentiable stand-in for the 0-1 loss, between 0 and 1.

    ``"margin"`` is 1 − softmax(τ·logits) at the true label, for two classes σ(−τ·margin). ``"paper"`` is
    ``abs(σ(p − ½) − y)`` with the probability p of label 1 inside; seen from the true label that is 1 − σ(p_y − ½),
    which is how it extends to several classes. It stays between 0.38 and 0.62 and ignores the temperature.
    """
    if kind == "paper":
        return jax.nn.sigmoid(error_probability(logits, label) - 0.5)
    return error_probability(temperature * logits, label)


def brier_score(logits: Array, label: Array) -> Array:
    """Half the squared distance between the predicted probabilities and the true label, between 0 and 1."""
    wrong = error_probability(logits, label)
    if logits.shape[-1] == 1:
        return wrong**2
    return ((jax.nn.softmax(logits) ** 2).sum(-1) + 2.0 * wrong - 1.0) / 2.0


def decision(logits: Array) -> Array:
    """Class with the largest logit; a tie goes to the first class, as in argmax."""
    return (logits[..., 0] > 0) * 1 if logits.shape[-1] == 1 else logits.argmax(-1)


def row_totals(
    group_logits: Array, logits: Array, rows: Rows, settings: Settings, kind: Surrogate = "margin"
) -> Totals:
    """Sum the terms of the objective, and the figures that are reported, over the rows.

    Parameters
    ----------
    group_logits : array of shape (rows, K)
    logits : array of shape (rows, K, m)
    """
    n_groups = group_logits.shape[-1]
    weight = rows.weight[:, None]
    assignment = jax.nn.softmax(group_logits)
    loss = surrogate_loss(logits, rows.label, settings.temperature, kind)
    likelihood = cross_entropy(logits, rows.label)
    anchor = jax.lax.stop_gradient(assignment) * likelihood

    # Figures that are only reported: cut off here, they cost the gradient nothing.
    group_logits, logits, likelihood = jax.lax.stop_gradient((group_logits, logits, likelihood))
    own = weight * (group_logits.argmax(-1)[:, None] == jnp.arange(n_groups))
    decided = decision(logits)
    right = decided == rows.label[:, None]
    some_right = (right.any(-1) | (rows.pooled_right > 0))[:, None]
    classes = jnp.arange(max(logits.shape[-1], 2))
    return Totals(
        weight=rows.weight.sum(),
        mass=(weight * assignment).sum(0),
        fairness=(weight * (settings.envy_weight - 2 * n_groups * assignment) * loss).sum(),
        anchor=(weight * anchor).sum(),
        log_loss=(own * likelihood).sum(),
        brier=(own * brier_score(logits, rows.label)).sum(),
        right=(own * right).sum(),
        regret=(own * (some_right & ~right)).sum(),
        decided=(own[..., None] * (decided[..., None] == classes)).sum(0),
    )


def imbalance(mass: Array) -> Array:
    """KL divergence of the share of each group from the uniform distribution."""
    share = mass / jnp.maximum(mass.sum(), _SMALLEST_WEIGHT)
    return (share * jnp.log(jnp.maximum(share, _SMALLEST_SHARE) * mass.shape[-1])).sum()


def objective(totals: Totals, settings: Settings) -> Array:
    """Value to maximise, from the sums of `row_totals`."""
    n_groups = totals.mass.shape[-1]
    weight = jnp.maximum(totals.weight, _SMALLEST_WEIGHT)
    return (
        totals.fairness / (weight * n_groups**2)
        - settings.penalty * imbalance(totals.mass)
        - settings.anchor * totals.anchor / weight
    )
