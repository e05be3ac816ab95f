"""A trained model of groups: who belongs to which group, and what each group's classifier adds to the pooled logits.

Networks are served in NumPy, without JAX and without compilation. Training sees standardised columns in single
precision. Serving takes the columns as they come, because a standardised copy of a million rows would cost more than
the prediction: center and scale become part of the first layer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dafh.groups.corrections import Corrections
from dafh.linear.designs import Standardization
from dafh.regions.conditions import Region, first_match
from dafh.rows.seen import SeenRows
from dafh.tables.bins import named_table

if TYPE_CHECKING:  # The engine imports JAX, which serving does without.
    from dafh.engine.networks import Network, Parameters

Weights = tuple[tuple[NDArray[Any], NDArray[Any]], ...]
# Rows at a time: few enough for the hidden layer to stay in the processor's cache.
_BLOCK_ROWS = 2048


def answers_of(regions: Sequence[Region], seen: SeenRows) -> NDArray[np.bool_]:
    """Whether each row lies in each region, (n, regions)."""
    table = named_table(seen.features)
    return np.column_stack([region.holds(table) for region in regions])


def assign_first(regions: Sequence[Region], seen: SeenRows) -> NDArray[np.intp]:
    """Number of the first region that each row lies in; their number for everybody else."""
    return first_match(list(answers_of(regions, seen).T), len(seen)) if regions else np.zeros(len(seen), np.intp)


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

    def assign(self, seen: SeenRows) -> NDArray[np.intp]:
        """Group of each row: the first region it lies in."""
        return assign_first(self.regions, seen)

    def group_proba(self, seen: SeenRows) -> NDArray[np.float64]:
        """1 for the group of each row, 0 for all others: regions leave no doubt."""
        return np.eye(self.n_groups)[self.assign(seen)]

    def every(self, seen: SeenRows, pooled: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Logits of every own classifier, (n, K, m)."""
        assert pooled is not None
        return np.stack([pooled + self.corrections.of_group(seen, pooled, k) for k in range(self.n_groups)], axis=1)

    def route(self, seen: SeenRows, pooled: NDArray[np.float64] | None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each row, and the logits of the classifier that serves it, (n, m)."""
        assert pooled is not None
        group, logits = self.assign(seen), pooled.copy()
        for k in np.unique(group):
            rows = np.flatnonzero(group == k)
            logits[rows] += self.corrections.of_group(seen.take(rows), pooled[rows], int(k))
        return group, logits

    def serving(self, serves: NDArray[np.intp]) -> "ExceptionModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K is the pooled one."""
        return replace(self, corrections=self.corrections.chosen(serves))


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
            yield rows, rows if answers is None else np.append(rows, answers[block].astype(np.float64), axis=1)

    def _logits(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        outputs = [_apply(tuple((w[k], b[k]) for w, b in self.classifiers), rows) for k in range(self.n_groups)]
        return np.stack(outputs, axis=1)


def _apply(network: Weights, x: NDArray[np.float64]) -> NDArray[np.float64]:
    for weight, bias in network[:-1]:
        x = x @ weight
        x += bias
        np.maximum(x, 0, out=x)
    outputs: NDArray[np.float64] = x @ network[-1][0] + network[-1][1]
    return outputs


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Groups by a network, with the regions whose answers it sees beside the columns."""

    model: CorrectionModel
    regions: tuple[Region, ...] = ()
    """None where it sees the columns alone."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.model.n_groups

    @property
    def contains_pooled(self) -> bool:
        """Whether own classifiers are corrections of the pooled one."""
        return self.model.contains_pooled

    def _answers(self, seen: SeenRows) -> NDArray[np.bool_] | None:
        return answers_of(self.regions, seen) if self.regions else None

    def _blocks(self, seen: SeenRows) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_] | None]]:
        """Numbers and answers of the rows, block by block."""
        for block in seen.blocks():
            yield block.numbers, self._answers(block)

    def assign(self, seen: SeenRows) -> NDArray[np.intp]:
        """Group of each row."""
        return self._group_logits(seen).argmax(axis=1)

    def group_proba(self, seen: SeenRows) -> NDArray[np.float64]:
        """Soft assignment of each row, (n, K)."""
        return softmax(self._group_logits(seen), axis=1)

    def _group_logits(self, seen: SeenRows) -> NDArray[np.float64]:
        return np.concatenate([self.model.group_logits(*block) for block in self._blocks(seen)])

    def every(self, seen: SeenRows, pooled: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Logits of every own classifier, (n, K, m)."""
        logits = self.model.logits(seen.numbers)
        return logits if pooled is None or not self.contains_pooled else logits + pooled[:, None]

    def route(self, seen: SeenRows, pooled: NDArray[np.float64] | None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each row, and the logits of the classifier that serves it, (n, m)."""
        routed = [self.model.route(*block) for block in self._blocks(seen)]
        group, own = (np.concatenate(parts) for parts in zip(*routed, strict=True))
        return group, own if pooled is None or not self.contains_pooled else own + pooled

    def serving(self, serves: NDArray[np.intp]) -> "NetworkModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K is the pooled one."""
        return replace(self, model=self.model.serving(serves))


TrainedGroups = ExceptionModel | NetworkModel
"""What `DAFHClassifier` asks of groups that were learned, whichever way."""
