r"""The joint objective, as pure functions of the outputs of the two networks.

DAFH maximises, over the group network θ (which gives the group assignment π) and all own classifiers :math:`h_k`
together,

.. math::

    \frac{1}{W K^2} \sum_i w_i \sum_k \left(w_{env} \tilde L_{ik} - 2K \pi_{ik} \tilde L_{ik}\right)
    - \lambda \, \mathrm{KL}(\bar\pi \,\|\, \mathrm{uniform})
    - c \, \frac{1}{W} \sum_i w_i \sum_k \left(\pi_{ik} \, \mathrm{CE}_{ik}
    + \frac{e}{2} (1 - \pi_{ik}) \, v_i \, \delta_{ik}^2\right)

with row weights :math:`w_i`, their sum :math:`W = \sum_i w_i`, the mean assignment :math:`\bar\pi`, a surrogate
:math:`\tilde L` of the 0-1 loss and the cross-entropy CE. The last term anchors each classifier to the likelihood of
its own group and, unless it is stopped there, the groups to the classifiers that make the labels of their rows likely.
With :math:`e > 0` it also holds each classifier near the pooled one on rows of other groups: :math:`\delta_{ik}` is the
difference of their logits, and :math:`v_i` the variance of the label under the pooled classifier. The paper's objective
has :math:`w_{env} = 1` and :math:`c = 0`.

Two things differ from the paper as printed:

- The surrogate is the *absolute* difference from the label. Without the absolute value both labels have the same
  gradient, and nothing is learned.
- The penalty is *subtracted*, and is computed from the mean assignment. Added, it would reward one large group;
  computed row by row, it would pull every row's assignment towards uniform.

`row_totals` sums over rows, `objective` turns the sums into one value. Batches, epochs and whole data sets are
therefore measured by the same formula.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from dafh.classifiers.logits import decide
from dafh.engine.networks import Array

Surrogate = Literal["margin", "paper"]

# The penalty takes the logarithm of each group's share; this floor keeps it finite for an empty group.
_SMALLEST_SHARE = 1e-7
# A batch may consist of rows that a replica holds out; its weight is then 0, and dividing by this floor gives no NaN.
_SMALLEST_WEIGHT = 1e-9


class Rows(NamedTuple):
    """Rows in the form that training takes; the leading axes are (rows,) or (steps, rows).

    What others have learned from labels, such as the pooled logits, comes once for each block of replicas: those that
    hold out a fold must not see what its rows have taught.
    """

    x: Array
    """Standardised features, (..., d)."""
    answers: Array
    """Answers (0 or 1) to questions about the row that only the group network sees, (..., blocks, s)."""
    label: Array
    """Index of the true class, (...)."""
    base: Array
    """Logits that the classifiers correct, (..., blocks, m): the pooled ones, or zeros for a cold start."""
    pooled_right: Array
    """Whether the pooled classifier is right, (..., blocks)."""
    weight: Array
    """Row weight, (...); zero for padding."""
    fold: Array
    """Fold of the row, (...): replicas that hold out this fold do not train on the row; −1: every replica does."""

    def seen_by(self, held_out: Array) -> "Rows":
        """Return the rows as a replica sees them that holds out a fold: its own block, without the axis of blocks.

        Block f was made without the rows of fold f. The last block is for replicas that train on all rows, and a
        single block is for every replica.
        """
        last = self.base.shape[-2] - 1
        block = jnp.where(held_out < 0, last, jnp.minimum(held_out, last)).astype(int)
        return self._replace(
            answers=self.answers[..., block, :].astype(self.x.dtype),
            base=self.base[..., block, :],
            pooled_right=self.pooled_right[..., block],
        )


class Settings(NamedTuple):
    """Settings that may differ between replicas; each field has the shape (replicas,), or () for a single replica."""

    envy_weight: Array
    penalty: Array
    temperature: Array
    anchor: Array
    shrinkage: Array
    group_rate: Array
    classifier_rate: Array
    held_out: Array
    """Fold that the replica does not train on, and is evaluated on; −1: it trains and is evaluated on all rows."""
    elsewhere: Array
    """What a row counts for the classifiers of other groups, which are held near the pooled one there."""


class Totals(NamedTuple):
    """Weighted sums over rows; the objective and all training curves are computed from them."""

    weight: Array
    mass: Array
    """Soft size of each group, (K,)."""
    fairness: Array
    anchor: Array
    elsewhere: Array
    """Half the squared change of the pooled logits, times the variance of the label, by classifiers of other groups."""
    log_loss: Array
    """Cross-entropy of the prediction by each row's own classifier."""
    brier: Array
    """Brier score of the same prediction."""
    right: Array
    """Rows whose own classifier is right."""
    regret: Array
    """Rows whose own classifier is wrong while another one, or the pooled one, is right."""
    decided: Array
    """Rows of each group, counted by the class that their own classifier predicts, (K, classes)."""


def true_margin(logits: Array, label: Array) -> Array:
    """Logit of the true class against the other one, for two classes (one logit per classifier)."""
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    return (2.0 * label - 1.0) * logits[..., 0]


def true_log_probability(logits: Array, label: Array) -> Array:
    """Log-probability of the true class, for several classes (one logit per class)."""
    label = label.reshape(label.shape + (1,) * (logits.ndim - 2))
    # Compared instead of indexed: the comparison broadcasts over any axes between rows and classes, and is as fast.
    is_true = label[..., None] == jnp.arange(logits.shape[-1])
    return jnp.where(is_true, logits, 0.0).sum(-1) - jax.nn.logsumexp(logits, axis=-1)


def cross_entropy(logits: Array, label: Array) -> Array:
    """Negative log-likelihood of the true class.

    Parameters
    ----------
    logits : array of shape (rows, ..., m)
        m = 1: two classes, and the logit of the second. m > 1: one logit per class.
    label : array of shape (rows,)

    Returns
    -------
    array of shape (rows, ...)
    """
    if logits.shape[-1] == 1:
        return jax.nn.softplus(-true_margin(logits, label))
    return -true_log_probability(logits, label)


def error_probability(logits: Array, label: Array) -> Array:
    """Probability that the classifier gives to all classes but the true one."""
    if logits.shape[-1] == 1:
        return jax.nn.sigmoid(-true_margin(logits, label))
    return 1.0 - jnp.exp(true_log_probability(logits, label))


def surrogate_loss(logits: Array, label: Array, temperature: Array, kind: Surrogate = "margin") -> Array:
    """Differentiable surrogate of the 0-1 loss, between 0 and 1.

    ``"margin"`` is 1 − softmax(τ·logits) at the true class; for two classes that is σ(−τ·margin). ``"paper"`` is
    ``abs(σ(p − ½) − y)``, where p is the probability of class 1. In terms of the true class it is 1 − σ(p_y − ½), which
    extends to several classes. It stays between 0.38 and 0.62, and does not use the temperature.
    """
    if kind == "paper":
        return jax.nn.sigmoid(error_probability(logits, label) - 0.5)
    return error_probability(temperature * logits, label)


def brier_score(logits: Array, label: Array) -> Array:
    """Half the squared distance between the predicted probabilities and the true class, between 0 and 1."""
    wrong = error_probability(logits, label)
    if logits.shape[-1] == 1:
        return wrong**2
    return ((jax.nn.softmax(logits) ** 2).sum(-1) + 2.0 * wrong - 1.0) / 2.0


def row_totals(
    group_logits: Array,
    logits: Array,
    rows: Rows,
    settings: Settings,
    kind: Surrogate = "margin",
    *,
    moves_groups: bool = True,
) -> Totals:
    """Sum the terms of the objective, and the figures for the training curves, over the rows.

    Parameters
    ----------
    group_logits : array of shape (rows, K)
    logits : array of shape (rows, K, m)
    moves_groups : bool
        Whether the anchor sends a gradient to the groups, too.
    """
    n_groups = group_logits.shape[-1]
    weight = rows.weight[:, None]
    assignment = jax.nn.softmax(group_logits)
    loss = surrogate_loss(logits, rows.label, settings.temperature, kind)
    likelihood = cross_entropy(logits, rows.label)
    # Left to the surrogate alone, groups that start from rules follow labels more than probabilities: Bank's log-loss
    # rises by 0.009 to 0.013, and falls by 0.002 to 0.003 if the anchor moves them. Groups that start at random
    # are better left to the surrogate: with the anchor, single starts on the paper's synthetic data fell to 95.3%.
    anchor = (assignment if moves_groups else jax.lax.stop_gradient(assignment)) * likelihood
    shares = jax.nn.sigmoid(rows.base) if rows.base.shape[-1] == 1 else jax.nn.softmax(rows.base)
    changes = ((shares * (1 - shares))[:, None] * (logits - rows.base[:, None]) ** 2).sum(-1) / 2
    # Groups are not to move for this: a large group would leave fewer rows to be held near the pooled classifier.
    elsewhere = (1 - jax.lax.stop_gradient(assignment)) * changes

    # The rest is reported and not optimised: without this cut, the gradient would be computed through it.
    group_logits, logits, likelihood = jax.lax.stop_gradient((group_logits, logits, likelihood))
    own = weight * (group_logits.argmax(-1)[:, None] == jnp.arange(n_groups))
    decided = decide(logits)
    right = decided == rows.label[:, None]
    some_right = (right.any(-1) | (rows.pooled_right > 0))[:, None]
    classes = jnp.arange(max(logits.shape[-1], 2))
    return Totals(
        weight=rows.weight.sum(),
        mass=(weight * assignment).sum(0),
        fairness=(weight * (settings.envy_weight - 2 * n_groups * assignment) * loss).sum(),
        anchor=(weight * anchor).sum(),
        elsewhere=(weight * elsewhere).sum(),
        log_loss=(own * likelihood).sum(),
        brier=(own * brier_score(logits, rows.label)).sum(),
        right=(own * right).sum(),
        regret=(own * (some_right & ~right)).sum(),
        decided=(own[..., None] * (decided[..., None] == classes)).sum(0),
    )


def imbalance(mass: Array) -> Array:
    """KL divergence of the groups' shares from the uniform distribution."""
    share = mass / jnp.maximum(mass.sum(), _SMALLEST_WEIGHT)
    return (share * jnp.log(jnp.maximum(share, _SMALLEST_SHARE) * mass.shape[-1])).sum()


def objective(totals: Totals, settings: Settings) -> Array:
    """Return the value to maximise, from the sums of `row_totals`."""
    n_groups = totals.mass.shape[-1]
    weight = jnp.maximum(totals.weight, _SMALLEST_WEIGHT)
    return (
        totals.fairness / (weight * n_groups**2)
        - settings.penalty * imbalance(totals.mass)
        - settings.anchor * (totals.anchor + settings.elsewhere * totals.elsewhere) / weight
    )
