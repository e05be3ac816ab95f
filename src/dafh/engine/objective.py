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


class Rows(NamedTuple):
    """Rows as the engine sees them; leading axes may be (rows,) or (steps, rows)."""

    x: Array
    """Standardised features, (..., d)."""
    label: Array
    """Index of the true class, (...)."""
    base: Array
    """Logits that the classifiers correct, (..., m): the pooled ones, or zeros for a cold start."""
    pooled_right: Array
    """Whether the pooled classifier is right, (...)."""
    weight: Array
    """Row weight, (...); zero for padding."""


class Settings(NamedTuple):
    """What may differ from replica to replica; each field has the shape (replicas,), or () for one replica."""

    envy_weight: Array
    penalty: Array
    temperature: Array
    anchor: Array
    shrinkage: Array
    group_rate: Array
    classifier_rate: Array


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


def log_likelihood(logits: Array, label: Array) -> Array:
    """Log-probability of the true label; one logit per classifier is a binary problem, several are a softmax.

    Parameters
    ----------
    logits : array of shape (rows, ..., m)
        m = 1: the logit of class 1. m > 1: one logit per class.
    label : array of shape (rows,)

    Returns
    -------
    array of shape (rows, ...)
    """
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    if logits.shape[-1] == 1:
        return jax.nn.log_sigmoid(jnp.where(label == 1, 1.0, -1.0) * logits[..., 0])
    is_true = label[..., None] == jnp.arange(logits.shape[-1])
    return jnp.where(is_true, logits, 0.0).sum(-1) - jax.nn.logsumexp(logits, axis=-1)


def surrogate_loss(logits: Array, label: Array, temperature: Array, kind: Surrogate = "margin") -> Array:
    """Differentiable stand-in for the 0-1 loss, between 0 and 1.

    ``"margin"`` is 1 − softmax(τ·logits) at the true label, for two classes σ(−τ·margin). ``"paper"`` is
    ``abs(σ(p − ½) − y)`` with the probability p of label 1 inside; seen from the true label that is 1 − σ(p_y − ½),
    which is how it extends to several classes. It stays between 0.38 and 0.62 and ignores the temperature.
    """
    if kind == "paper":
        return 1.0 - jax.nn.sigmoid(jnp.exp(log_likelihood(logits, label)) - 0.5)
    return 1.0 - jnp.exp(log_likelihood(temperature * logits, label))


def brier_score(logits: Array, label: Array) -> Array:
    """Half the squared distance between the predicted probabilities and the true label, between 0 and 1."""
    true = jnp.exp(log_likelihood(logits, label))
    if logits.shape[-1] == 1:
        return (1.0 - true) ** 2
    return ((jax.nn.softmax(logits) ** 2).sum(-1) - 2.0 * true + 1.0) / 2.0


def decision(logits: Array) -> Array:
    """Class with the largest logit; a tie goes to the first class, as in argmax."""
    return (logits[..., 0] > 0).astype(int) if logits.shape[-1] == 1 else logits.argmax(-1)


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
    assignment = jax.nn.softmax(group_logits)
    loss = surrogate_loss(logits, rows.label, settings.temperature, kind)
    cross_entropy = -log_likelihood(logits, rows.label)
    own = jax.nn.one_hot(group_logits.argmax(-1), n_groups)
    decided = decision(logits)
    right = decided == rows.label[:, None]
    own_right = (own * right).sum(-1)
    any_right = jnp.maximum(right.max(-1), rows.pooled_right)

    def total(values: Array) -> Array:
        return (rows.weight * values).sum()

    return Totals(
        weight=rows.weight.sum(),
        mass=(rows.weight[:, None] * assignment).sum(0),
        fairness=total(((settings.envy_weight - 2 * n_groups * assignment) * loss).sum(-1)),
        anchor=total((jax.lax.stop_gradient(assignment) * cross_entropy).sum(-1)),
        log_loss=total((own * cross_entropy).sum(-1)),
        brier=total((own * brier_score(logits, rows.label)).sum(-1)),
        right=total(own_right),
        regret=total((1 - own_right) * any_right),
        decided=jnp.einsum("b,bk,bkc->kc", rows.weight, own, jax.nn.one_hot(decided, max(logits.shape[-1], 2))),
    )


def imbalance(mass: Array) -> Array:
    """KL divergence of the share of each group from the uniform distribution."""
    share = mass / mass.sum()
    return (share * jnp.log(jnp.maximum(share, _SMALLEST_SHARE) * mass.shape[-1])).sum()


def objective(totals: Totals, settings: Settings) -> Array:
    """Value to maximise, from the sums of `row_totals`."""
    n_groups = totals.mass.shape[-1]
    return (
        totals.fairness / (totals.weight * n_groups**2)
        - settings.penalty * imbalance(totals.mass)
        - settings.anchor * totals.anchor / totals.weight
    )
