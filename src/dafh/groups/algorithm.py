r"""Algorithm 1 of the paper in plain NumPy, to be read beside it.

`dafh` trains with a compiled program, and the tests compare the two.

======================================  ================================================================
in the paper                            here
======================================  ================================================================
:math:`x_i, y_i, n, K`                  rows of ``x`` (n, d), ``y`` (n,) with 0 and 1, ``n``, ``K``
:math:`\theta(x_i)[k]`                  ``group_classifier(theta, x)[i, k]``: a softmax over one hidden layer
:math:`h_k(x_i)[1]`                     ``decoupled_classifiers(h, x)[i, k]``: logistic regression
:math:`\widetilde L_i^k`                ``L[i, k]``, above equation (5), with the absolute value
:math:`\widetilde \pi_i^k`              ``pi[i, k]``, above equation (5)
:math:`\Gamma(\theta)`                  ``Gamma(pi)``: KL divergence of the groups' shares from uniform
:math:`\widetilde{\mathrm{obj}}`        ``obj(theta, h, x, y, lam)``, equation (5), with − λ Γ
:math:`\alpha, \lambda`                 ``alpha``: one rate for θ, one for all h_k; ``lam``
======================================  ================================================================

Two corrections: the absolute value in L̃, without which rows of both labels have the same gradient and nothing is
learned, and the sign of λ Γ, which added rewards one group of all rows. The second sum of equation (5) is over k. The
pooled classifier h_0 of equations (1) and (2) does not depend on θ and h, and has left equation (5).
Where the paper leaves a choice:

- y is 0 or 1, as L̃ needs it; the text has ±1;
- rows come in a new random order in every pass, as in every stochastic gradient method;
- the number of passes is fixed, as in the paper's table of settings; "while obj not converge" names no test;
- weights start at random: He's scale in the hidden layer, and outputs of standard deviation 1 (`start`); the paper does
  not say how;
- an update takes one row, as the algorithm is printed; ``update="batch_mean"`` or ``"batch_sum"`` takes the batches of
  the table of settings, where the sum of L̃ has no 1/n, and λ Γ is as for the mean;
- n and the shares in Γ are those of the rows of an update: of a single row, Γ draws θ(x_i) to uniform.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

Array = NDArray[np.float64]
Update = Literal["row", "batch_mean", "batch_sum"]


class Theta(NamedTuple):
    """Group classifier: a hidden layer of rectified units, and a softmax layer."""

    W1: Array
    b1: Array
    W2: Array
    b2: Array


class H(NamedTuple):
    """All K decoupled classifiers: weights (d, K) and intercepts (K,)."""

    w: Array
    b: Array


def hidden_layer(theta: Theta, x: Array) -> Array:
    """Outputs of the hidden units."""
    return np.maximum(x @ theta.W1 + theta.b1, 0)


def group_classifier(theta: Theta, x: Array) -> Array:
    """θ(x_i)[k], the probability that row i belongs to group k."""
    return softmax(hidden_layer(theta, x) @ theta.W2 + theta.b2, axis=1)


def decoupled_classifiers(h: H, x: Array) -> Array:
    """h_k(x_i)[1], the probability of label 1."""
    return expit(x @ h.w + h.b)


def surrogate(h: H, x: Array, y: Array) -> Array:
    """L̃_i^k = | Sigmoid(h_k(x_i)[1] − ½) − y_i |."""
    return np.abs(expit(decoupled_classifiers(h, x) - 0.5) - y[:, None])


def Gamma(pi: Array) -> float:  # noqa: N802 - as in the paper
    """Γ(θ) = Σ_k q_k log(K q_k), with the share q_k of group k in the rows of one update."""
    q = pi.mean(axis=0)
    return float((q * np.log(len(q) * q)).sum())


def obj(theta: Theta, h: H, x: Array, y: Array, lam: float, *, mean: bool = True) -> float:
    """obj̃ = 1/(n K²) Σ_i Σ_k (L̃_i^k − 2K π̃_i^k L̃_i^k) − λ Γ(θ); without 1/n where rows are summed up."""
    pi, L = group_classifier(theta, x), surrogate(h, x, y)
    (n, K) = pi.shape
    return float((L - 2 * K * pi * L).sum() / ((n if mean else 1) * K**2) - lam * Gamma(pi))


def gradient_theta(theta: Theta, h: H, x: Array, y: Array, lam: float, *, mean: bool = True) -> Theta:
    """∇_θ obj̃, by the chain rule."""
    pi, L = group_classifier(theta, x), surrogate(h, x, y)
    (n, K) = pi.shape
    by_pi = -2 * K * L / ((n if mean else 1) * K**2) - lam * (np.log(K * pi.mean(axis=0)) + 1) / n
    by_output = pi * (by_pi - (pi * by_pi).sum(axis=1, keepdims=True))  # Through the softmax.
    hidden = hidden_layer(theta, x)
    by_hidden = (by_output @ theta.W2.T) * (hidden > 0)
    return Theta(x.T @ by_hidden, by_hidden.sum(axis=0), hidden.T @ by_output, by_output.sum(axis=0))


def gradient_h(theta: Theta, h: H, x: Array, y: Array, *, mean: bool = True) -> H:
    """∇_{h_k} obj̃ for every k; no h_k occurs in the gradient of another, so all can be updated at once."""
    pi, p = group_classifier(theta, x), decoupled_classifiers(h, x)
    (n, K) = pi.shape
    s = expit(p - 0.5)
    by_L = (1 - 2 * K * pi) / ((n if mean else 1) * K**2)
    by_output = by_L * np.sign(s - y[:, None]) * s * (1 - s) * p * (1 - p)  # Through |·|, Sigmoid and Sigmoid.
    return H(x.T @ by_output, by_output.sum(axis=0))


def start(d: int, K: int, hidden: int, rng: np.random.Generator) -> tuple[Theta, H]:
    """Draw θ and all h_k at random."""
    W1 = rng.standard_normal((d, hidden)) * np.sqrt(2 / d)
    W2 = rng.standard_normal((hidden, K)) / np.sqrt(hidden)
    return Theta(W1, np.zeros(hidden), W2, np.zeros(K)), H(rng.standard_normal((K, d)).T / np.sqrt(d), np.zeros(K))


def algorithm_1(
    theta: Theta,
    h: H,
    x: Array,
    y: Array,
    *,
    alpha: tuple[float, float] = (1e-3, 1e-2),
    momentum: float = 0.9,
    lam: float = 10.0,
    epochs: int = 3,
    update: Update = "row",
    batch_size: int = 1024,
    rng: np.random.Generator,
) -> Iterator[tuple[Theta, H]]:
    """Yield θ and all h_k after each update; the last ones are the output.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 2))
    >>> y = (x[:, 0] > 0).astype(float)
    >>> *_, (theta, h) = algorithm_1(*start(2, 2, 100, rng), x, y, rng=rng)
    >>> k = group_classifier(theta, x).argmax(axis=1)
    >>> bool(np.mean((decoupled_classifiers(h, x)[np.arange(1000), k] > 0.5) == y) > 0.95)
    True
    """
    mean, size = update == "batch_mean", 1 if update == "row" else batch_size
    velocity = H(np.zeros_like(h.w), np.zeros_like(h.b))
    for _ in range(epochs):  # while obj not converge
        order = rng.permutation(len(x))
        for first in range(0, len(x), size):  # for i = 1, …, n
            i = order[first : first + size]
            ascent = gradient_theta(theta, h, x[i], y[i], lam, mean=mean)
            theta = Theta(*(array + alpha[0] * step for array, step in zip(theta, ascent, strict=True)))
            # for k = 1, …, K: against the new θ, and with the momentum of the table of settings.
            ascent_h = gradient_h(theta, h, x[i], y[i], mean=mean)
            velocity = H(*(momentum * v + step for v, step in zip(velocity, ascent_h, strict=True)))
            h = H(*(array + alpha[1] * v for array, v in zip(h, velocity, strict=True)))
            yield theta, h
