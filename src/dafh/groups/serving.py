"""The trained model in NumPy: serving needs no JAX, no compilation and little memory.

Training sees standardised columns in single precision. Serving takes the columns as they come, because a standardised
copy of a million rows would cost more than the prediction: center and scale become part of the first layer.

Beside the columns, the group network sees the answers to the questions of a tree. Who serves rows asks these questions
and passes the answers on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dafh.linear.designs import Standardization
from dafh.linear.threads import one_thread

if TYPE_CHECKING:  # The engine imports JAX, which serving does without.
    from dafh.engine.networks import Network, Parameters

Weights = tuple[tuple[NDArray[Any], NDArray[Any]], ...]
# Rows at a time: few enough for the hidden layer to stay in the processor's cache.
_BLOCK_ROWS = 8192
# Offsets up to this many standard deviations leave single precision enough digits.
_MILD_OFFSET = 100.0
# Two groups closer than this, relative to their logits, are told apart in double precision.
_CLOSE_CALL = 1e-3


class Linear(Protocol):
    """A linear classifier, fitted: one row of coefficients per logit."""

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CorrectionModel:
    """Group network, corrections of the pooled logits and, where that is linear, the pooled classifier itself.

    Methods that need groups take the answers that the group network sees beside the columns, (n, s); None where it
    sees none.
    """

    center: NDArray[np.float64] | None
    """Subtracted from every row first, where single precision needs that; else it is part of the biases."""
    group: Weights
    classifiers: Weights
    """Every array has a leading axis over the K classifiers."""
    pooled: Literal["added", "inside", "unused"] = "added"
    """Where the pooled logits come in: "added" to the outputs by the caller; "inside", as part of the model, because
    the pooled classifier is linear; "unused", because the classifiers started cold and do not contain it."""
    base: Weights = ()
    """The pooled classifier as one linear layer where it is inside, else empty."""

    @classmethod
    def from_parameters(
        cls,
        parameters: "Parameters",
        columns: Standardization,
        n_answers: int = 0,
        *,
        warm: bool = True,
        linear_base: Linear | None = None,
    ) -> "CorrectionModel":
        """Rewrite networks that were trained on standardised columns for the columns as they are served.

        Parameters
        ----------
        parameters : Parameters of the engine, of one replica
        columns : Standardization
            Of the columns.
        n_answers : int
            Inputs of the group network after the columns, which are 0 or 1. After those it was given zeros, whose
            weights are dropped.
        warm : bool
            Whether the classifiers are corrections of the pooled one.
        linear_base : linear classifier, optional
            The pooled classifier, of columns as they are served, to become part of the model.
        """
        center, scale = columns
        keep_center = bool((np.abs(center) > _MILD_OFFSET * scale).any())
        shift = center * 0 if keep_center else center

        def unscaled(network: "Network", shift: NDArray[Any], scale: NDArray[Any]) -> Weights:
            layers = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in network]
            weight = layers[0][0][..., : len(scale), :] / scale[:, None]
            layers[0] = (weight, layers[0][1] - shift @ weight)
            return tuple(layers)

        base: Weights = ()
        if linear_base is not None:
            weight = linear_base.coef_.T.astype(np.float64)
            base = ((weight, linear_base.intercept_ + (center - shift) @ weight),)
        # Answers were seen as they are.
        group = unscaled(parameters.group, np.append(shift, np.zeros(n_answers)), np.append(scale, np.ones(n_answers)))
        classifiers = unscaled(parameters.classifiers, shift, scale)
        kept_center = np.asarray(center) if keep_center else None
        pooled: Any = "inside" if base else "added" if warm else "unused"
        return cls(kept_center, group, classifiers, pooled, base)

    @property
    def n_groups(self) -> int:
        """Number of groups, and of own classifiers."""
        return int(self.group[-1][1].shape[-1])

    def serving(self, serves: NDArray[np.intp]) -> "CorrectionModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K is the base, without any correction."""

        def chosen(part: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([part, np.zeros_like(part[:1])])[serves]

        return replace(self, classifiers=tuple((chosen(w), chosen(b)) for w, b in self.classifiers))

    def group_logits(self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Output of the group network in double precision, (n, K)."""
        return np.concatenate(
            [_apply(self.group, np.asarray(seen, np.float64)) for _, seen in self._blocks(X, answers)]
        )

    def route(self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row (n,), and the correction, or logit where the base is here, of its own classifier (n, m).

        Single precision is enough to tell most groups apart, and twice as fast; close calls are settled in double, so
        that a row's group does not depend on the rows it comes with.
        """
        groups = np.empty(len(X), np.intp)
        n_logits = self.classifiers[-1][1].shape[-1]
        own = np.empty((len(X), n_logits), X.dtype)
        network, linear = _Folded(self.group, len(X)), self._as_one_linear_map(X.dtype)
        with one_thread():
            for number, (rows, seen) in enumerate(self._blocks(X, answers)):
                block = slice(number * _BLOCK_ROWS, number * _BLOCK_ROWS + len(rows))
                groups[block] = self._settle(seen, network(seen))
                outputs = self._logits(rows) if linear is None else (rows @ linear).reshape(-1, self.n_groups, n_logits)
                own[block] = outputs[np.arange(len(rows)), groups[block]]
        return groups, own if linear is None else own + self._biases(X.dtype)[groups]

    def logits(self, X: NDArray[Any]) -> NDArray[Any]:
        """Corrections, or logits where the base is here, of all classifiers, (n, K, m)."""
        return np.concatenate([self._logits(rows) for rows, _ in self._blocks(X)])

    def _blocks(
        self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Rows as the classifiers see them, and as the group network does."""
        center = None if self.center is None else np.asarray(self.center, X.dtype)
        for first in range(0, len(X), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            rows = X[block] if center is None else X[block] - center
            yield rows, rows if answers is None else np.append(rows, answers[block].astype(X.dtype), axis=1)

    def _logits(self, rows: NDArray[Any]) -> NDArray[Any]:
        classifiers = _cast(self.classifiers, rows.dtype)
        outputs = [_apply(tuple((w[k], b[k]) for w, b in classifiers), rows) for k in range(self.n_groups)]
        corrections = np.stack(outputs, axis=1)
        return corrections + _apply(_cast(self.base, rows.dtype), rows)[:, None] if self.base else corrections

    def _as_one_linear_map(self, dtype: DTypeLike) -> NDArray[Any] | None:
        """All classifiers side by side, the base included, as one matrix; None where they are not linear."""
        if len(self.classifiers) > 1:
            return None
        weight = self.classifiers[0][0] + (self.base[0][0] if self.base else 0)
        return np.concatenate(list(weight), axis=1).astype(dtype)

    def _biases(self, dtype: DTypeLike) -> NDArray[Any]:
        return (self.classifiers[0][1] + (self.base[0][1] if self.base else 0)).astype(dtype)

    def _settle(self, seen: NDArray[Any], group_logits: NDArray[np.float32]) -> NDArray[np.intp]:
        """Group of each row, from its logits in single precision where they leave no doubt."""
        # Column by column: argmax along a short axis would take longer than the network.
        groups = np.zeros(len(seen), np.intp)
        first, second = group_logits[:, 0].copy(), np.full(len(seen), -np.inf, np.float32)
        for k in range(1, self.n_groups):
            column = group_logits[:, k]
            groups[column > first] = k
            second = np.maximum(second, np.minimum(first, column))
            first = np.maximum(first, column)
        close = np.flatnonzero(first - second < _CLOSE_CALL * np.maximum(np.abs(first), 1))
        if len(close):
            groups[close] = _apply(self.group, seen[close].astype(np.float64)).argmax(axis=1)
        return groups


class _Folded:
    """A network in single precision that adds its biases late and writes into memory of its own.

    max(z + b, 0) = max(z, −b) + b, and that b can wait for the next layer: one pass less over every hidden layer.
    """

    def __init__(self, network: Weights, n_rows: int) -> None:
        self.layers = []
        carried = np.zeros(network[0][0].shape[0])
        for weight, bias in network:
            carried = bias + carried @ weight
            buffer = np.empty((min(n_rows, _BLOCK_ROWS), weight.shape[1]), np.float32)
            self.layers.append((weight.astype(np.float32), carried.astype(np.float32), buffer))

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        x = np.asarray(rows, np.float32)
        for position, (weight, bias, buffer) in enumerate(self.layers, 1):
            x = np.matmul(x, weight, out=buffer[: len(rows)])
            if position < len(self.layers):
                np.maximum(x, -bias, out=x)
        x += self.layers[-1][1]
        return x


def _cast(network: Weights, dtype: DTypeLike) -> Weights:
    return tuple((np.asarray(w, dtype), np.asarray(b, dtype)) for w, b in network)


def _apply(network: Weights, x: NDArray[Any]) -> NDArray[Any]:
    for weight, bias in network[:-1]:
        x = np.maximum(x @ weight + bias, 0)
    return x @ network[-1][0] + network[-1][1]
