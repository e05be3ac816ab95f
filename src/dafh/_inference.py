"""Forward pass of a trained model in NumPy: serving needs no JAX, no compilation and little memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = tuple[tuple[NDArray[Any], NDArray[Any]], ...]

# Rows at a time: the hidden layer of a block stays in the processor's cache.
_BLOCK_ROWS = 512


@dataclass(frozen=True)
class CorrectionModel:
    """Group network and corrections of the pooled logits, on raw features."""

    center: NDArray[np.float64]
    group: Weights
    classifiers: Weights
    """Every array has a leading axis over the K classifiers."""

    @classmethod
    def from_parameters(cls, parameters: Any, center: NDArray[Any], scale: NDArray[Any]) -> "CorrectionModel":
        """Fold the division by `scale` into the first layers of networks trained on standardised features."""

        def unscaled(network: Any) -> Weights:
            layers = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in network]
            layers[0] = (layers[0][0] / scale[:, None], layers[0][1])
            return tuple(layers)

        return cls(np.asarray(center, np.float64), unscaled(parameters.group), unscaled(parameters.classifiers))

    @property
    def n_groups(self) -> int:
        """Number of groups, and of decoupled classifiers."""
        return self.group[-1][1].shape[-1]

    @property
    def n_outputs(self) -> int:
        """Logits per classifier: 1 for two classes."""
        return self.classifiers[-1][1].shape[-1]

    def forward(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Group logits (n, K) and corrections (n, K, m) in the precision of X."""
        model = self._astype(X.dtype)
        group_logits = np.empty((len(X), self.n_groups), X.dtype)
        corrections = np.empty((len(X), self.n_groups, self.n_outputs), X.dtype)
        for first in range(0, len(X), _BLOCK_ROWS):
            rows = slice(first, first + _BLOCK_ROWS)
            centred = X[rows] - model.center
            group_logits[rows] = _apply(model.group, centred)
            for k in range(self.n_groups):
                corrections[rows, k] = _apply([(w[k], b[k]) for w, b in model.classifiers], centred)
        return group_logits, corrections

    def _astype(self, dtype: Any) -> "CorrectionModel":
        if dtype == self.center.dtype:
            return self

        def cast(network: Weights) -> Weights:
            return tuple((w.astype(dtype), b.astype(dtype)) for w, b in network)

        return CorrectionModel(self.center.astype(dtype), cast(self.group), cast(self.classifiers))


def _apply(network: Any, x: NDArray[Any]) -> NDArray[Any]:
    for weight, bias in network[:-1]:
        x = x @ weight
        x += bias
        np.maximum(x, 0, out=x)
    weight, bias = network[-1]
    return x @ weight + bias
