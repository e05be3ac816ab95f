"""A trained model of groups: who belongs to which group, and what each group's classifier adds to the pooled logits.

Networks are served in NumPy, without JAX and without compilation. Training sees standardised columns in single
precision. Serving takes the columns as they come, because a standardised copy of a million rows would cost more than
the prediction: center and scale become part of the first layer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dafh.columns.bins import named_table
from dafh.groups.corrections import Corrections
from dafh.linear.designs import Standardization
from dafh.regions.conditions import Region, first_match
from dafh.rows import EncodedRows

_BLOCK_ROWS = 2048


def assign_first(regions: Sequence[Region], rows: EncodedRows) -> NDArray[np.intp]:
    """Number of the first region that each row lies in; their number for everybody else."""
    if not regions:
        return np.zeros(len(rows), np.intp)
    table = named_table(rows.features)
    return first_match([region.holds(table) for region in regions], len(rows))


@dataclass(frozen=True, eq=False)
class ExceptionModel:
    """An ordered list of exceptions, with the correction of each group; everybody else is the last group."""

    regions: tuple[Region, ...]
    corrections: Corrections

    contains_pooled = True
    """Whether own classifiers are corrections of the pooled one; False where they started without it."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.corrections.n_groups

    def assign(self, rows: EncodedRows) -> NDArray[np.intp]:
        """Group of each row: the first region it lies in."""
        return assign_first(self.regions, rows)

    def group_proba(self, rows: EncodedRows) -> NDArray[np.float64]:
        """1 for the group of each row, 0 for all others: regions leave no doubt."""
        return np.eye(self.n_groups)[self.assign(rows)]

    def every(self, rows: EncodedRows, pooled: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Logits of every own classifier, (n, K, m)."""
        assert pooled is not None
        return np.stack([pooled + self.corrections.of_group(rows, pooled, k) for k in range(self.n_groups)], axis=1)

    def route(
        self, rows: EncodedRows, pooled: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each row, and the logits of the classifier that serves it, (n, m)."""
        assert pooled is not None
        # Each correction for the rows of its group only: K times less work than `every`.
        group, logits = self.assign(rows), pooled.copy()
        for k in np.unique(group):
            members = np.flatnonzero(group == k)
            logits[members] += self.corrections.of_group(rows.take(members), pooled[members], int(k))
        return group, logits

    def serving(self, serves: NDArray[np.intp]) -> "ExceptionModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K is the pooled one."""
        return replace(self, corrections=self.corrections.chosen(serves))


Network = tuple[tuple[Any, Any], ...]
"""Weights (inputs, outputs) and biases (1, outputs) of each layer; of several networks, all with more leading axes."""


def apply_network(network: Network, x: Any) -> Any:
    """Output of a network with rectified hidden layers, for NumPy and JAX arrays alike."""
    for weight, bias in network[:-1]:
        x = (x @ weight + bias).clip(0)
    return x @ network[-1][0] + network[-1][1]


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Groups by a network of the columns as numbers, and what own classifiers add to the pooled logits."""

    group: tuple[tuple[NDArray[Any], NDArray[Any]], ...]
    classifiers: tuple[tuple[NDArray[Any], NDArray[Any]], ...]
    """Every array has a leading axis over the K classifiers."""
    contains_pooled: bool = True
    """Whether outputs are added to the pooled logits; False where the classifiers started cold, without them."""

    @classmethod
    def from_parameters(
        cls, group: Network, classifiers: Network, columns: Standardization, *, contains_pooled: bool = True
    ) -> "NetworkModel":
        """Rewrite networks that were trained on standardised columns for the columns as they are served."""

        def unscaled(network: Network) -> tuple[tuple[NDArray[Any], NDArray[Any]], ...]:
            # ((x − center) / scale) W + b = x (W / scale) + b − center (W / scale).
            layers = [(np.asarray(weight, np.float64), np.asarray(bias, np.float64)) for weight, bias in network]
            weight = layers[0][0] / columns.scale[:, None]
            return (weight, layers[0][1] - columns.center[None] @ weight), *layers[1:]

        return cls(unscaled(group), unscaled(classifiers), contains_pooled)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1][1].shape[-1])

    def group_logits(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Output of the group network, (n, K)."""
        return np.concatenate([apply_network(self.group, block) for block in _blocks(X)])

    def logits(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Output of all classifiers, (n, K, m)."""
        return np.concatenate([np.swapaxes(apply_network(self.classifiers, block), 0, 1) for block in _blocks(X)])

    def assign(self, rows: EncodedRows) -> NDArray[np.intp]:
        """Group of each row."""
        return self.group_proba(rows).argmax(axis=1)

    def group_proba(self, rows: EncodedRows) -> NDArray[np.float64]:
        """Soft assignment of each row, (n, K)."""
        return softmax(np.concatenate([self.group_logits(block.numbers) for block in rows.blocks()]), axis=1)

    def every(self, rows: EncodedRows, pooled: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Logits of every own classifier, (n, K, m)."""
        logits = np.concatenate([self.logits(block.numbers) for block in rows.blocks()])
        return logits if pooled is None or not self.contains_pooled else logits + pooled[:, None]

    def route(
        self, rows: EncodedRows, pooled: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each row, and the logits of the classifier that serves it, (n, m)."""
        group = self.assign(rows)
        return group, self.every(rows, pooled)[np.arange(len(group)), group]

    def serving(self, serves: NDArray[np.intp]) -> "NetworkModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K corrects nothing."""

        def chosen(array: NDArray[Any]) -> NDArray[Any]:
            # A classifier of zeros after the others: what the pooled one adds to itself.
            return np.concatenate([array, np.zeros_like(array[:1])])[serves]

        return replace(self, classifiers=tuple((chosen(w), chosen(b)) for w, b in self.classifiers))


def _blocks(X: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """Few rows at a time, so that a hidden layer stays in the processor's cache."""
    for first in range(0, max(len(X), 1), _BLOCK_ROWS):
        yield np.asarray(X[first : first + _BLOCK_ROWS], np.float64)


TrainedGroups = ExceptionModel | NetworkModel
"""What `DAFHClassifier` asks of groups that were learned, whichever way."""
