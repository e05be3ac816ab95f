"""A trained model of groups: who belongs to which group, and what each group's classifier adds to the pooled logits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dafh.groups.corrections import Corrections
from dafh.groups.rules import RuleTree
from dafh.groups.serving import CorrectionModel
from dafh.rows.seen import SeenRows


@dataclass(frozen=True, eq=False)
class RuleModel:
    """Groups by rules, with exact corrections."""

    tree: RuleTree
    corrections: Corrections

    contains_pooled = True
    """Whether own classifiers are corrections of the pooled one; False where they started without it."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.corrections.n_groups

    def assign(self, seen: SeenRows) -> NDArray[np.intp]:
        """Group of each row: exactly its rule."""
        return self.tree.assign(seen.codes) if self.tree.questions else np.zeros(len(seen), np.intp)

    def group_proba(self, seen: SeenRows) -> NDArray[np.float64]:
        """1 for the group of each row, 0 for all others: rules leave no doubt."""
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

    def serving(self, serves: NDArray[np.intp]) -> "RuleModel":
        """Return the model in which classifier ``serves[k]`` serves group k; K is the pooled one."""
        return replace(self, corrections=self.corrections.chosen(serves))


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Groups by a network, with the tree whose answers it sees beside the columns."""

    model: CorrectionModel
    tree: RuleTree | None
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
        return None if self.tree is None else self.tree.answers(seen.codes)

    def _blocks(self, seen: SeenRows) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_] | None]]:
        """Numbers and answers of the rows, block by block."""
        if self.tree is not None:
            _ = seen.codes  # Of all rows at once: a block of them has then only to be cut out.
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


TrainedGroups = RuleModel | NetworkModel
"""What `DAFHClassifier` asks of groups that were learned, whichever way."""
