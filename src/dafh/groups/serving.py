"""The trained model in NumPy: serving needs no JAX, no compilation and little memory.

Training sees standardised columns in single precision. Serving takes the columns as they come, because a standardised
copy of a million rows would cost more than the prediction: center and scale become part of the first layer.

Beside the columns, the group network sees the answers to the questions of a tree. Who serves rows asks these questions
and passes the answers on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dafh.linear.standard import Standardization

if TYPE_CHECKING:  # The engine imports JAX, which serving does without.
    from dafh.engine.networks import Network, Parameters

Weights = tuple[tuple[NDArray[Any], NDArray[Any]], ...]
# Rows at a time: few enough for the hidden layer to stay in the processor's cache.
_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class CorrectionModel:
    """Group network, and corrections of the pooled logits.

    Methods that need groups take the answers that the group network sees beside the columns, (n, s); None where it
    sees none.
    """

    group: Weights
    classifiers: Weights
    """Every array has a leading axis over the K classifiers."""
    contains_pooled: bool = True
    """Whether outputs are to be added to the pooled logits; False where the classifiers started cold, without them."""

    @classmethod
    def from_parameters(
        cls,
        parameters: "Parameters",
        columns: Standardization,
        n_answers: int = 0,
        *,
        contains_pooled: bool = True,
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
        contains_pooled : bool
            Whether the classifiers are corrections of the pooled one.
        """

        def unscaled(network: "Network", center: NDArray[Any], scale: NDArray[Any]) -> Weights:
            layers = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in network]
            weight = layers[0][0][..., : len(scale), :] / scale[:, None]
            layers[0] = (weight, layers[0][1] - center @ weight)
            return tuple(layers)

        center, scale = columns
        # Answers were seen as they are.
        group = unscaled(parameters.group, np.append(center, np.zeros(n_answers)), np.append(scale, np.ones(n_answers)))
        return cls(group, unscaled(parameters.classifiers, center, scale), contains_pooled)

    @property
    def n_groups(self) -> int:
        """Number of groups, and of own classifiers."""
        return int(self.group[-1][1].shape[-1])

    def serving(self, serves: NDArray[np.intp]) -> "CorrectionModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K corrects nothing."""

        def chosen(part: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([part, np.zeros_like(part[:1])])[serves]

        return replace(self, classifiers=tuple((chosen(w), chosen(b)) for w, b in self.classifiers))

    def group_logits(self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Output of the group network, (n, K)."""
        return np.concatenate([_apply(self.group, seen) for _, seen in self._blocks(X, answers)])

    def route(
        self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each row (n,), and the correction by its own classifier (n, m)."""
        groups, own = [], []
        for rows, seen in self._blocks(X, answers):
            groups.append(_apply(self.group, seen).argmax(axis=1))
            own.append(self._logits(rows)[np.arange(len(rows)), groups[-1]])
        return np.concatenate(groups), np.concatenate(own)

    def logits(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Corrections by all classifiers, (n, K, m)."""
        return np.concatenate([self._logits(rows) for rows, _ in self._blocks(X)])

    def _blocks(
        self, X: NDArray[Any], answers: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Rows as the classifiers see them, and as the group network does."""
        for first in range(0, max(len(X), 1), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            rows = np.asarray(X[block], np.float64)
            yield rows, rows if answers is None else np.append(rows, answers[block], axis=1)

    def _logits(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        outputs = [_apply(tuple((w[k], b[k]) for w, b in self.classifiers), rows) for k in range(self.n_groups)]
        return np.stack(outputs, axis=1)


def _apply(network: Weights, x: NDArray[np.float64]) -> NDArray[np.float64]:
    for weight, bias in network[:-1]:
        x = np.maximum(x @ weight + bias, 0)
    outputs: NDArray[np.float64] = x @ network[-1][0] + network[-1][1]
    return outputs
