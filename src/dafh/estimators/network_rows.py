"""All rows for a network that a sample has chosen: brought into lanes, and learned from."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Arrays, Blocks
from dafh.blocks.lanes import LaneWriter, Shape, copy_of
from dafh.blocks.sampling import is_drawn_last
from dafh.classifiers.logits import decide
from dafh.classifiers.pipelines import final_classifier
from dafh.engine.ranks import Ranks
from dafh.estimators import training_rows
from dafh.estimators.learning import LearnedGroups
from dafh.estimators.looks import Looks, PooledLogits
from dafh.estimators.pooled import PooledFit
from dafh.estimators.training_rows import Weighing
from dafh.groups.continuation import go_on
from dafh.groups.network import ChosenReplica
from dafh.groups.rules import RuleTree
from dafh.groups.trained import NetworkModel
from dafh.linear.standard import Standardization
from dafh.tables.hashes import mixed, value_hashes

# Rows that decide whether all rows have made the network better: enough to see 0.0005 of log-loss, a twentieth at most.
_MOST_JUDGES, _SHARE_OF_JUDGES = 50_000, 0.05
# With fewer, the rows beside the sample are too few to learn from, either.
_FEWEST_JUDGES = 100
_ROUNDED = 2.0**12


def network_encoder(looks: Looks, learned: LearnedGroups) -> Callable[[pd.DataFrame], Arrays]:
    """Return the function that makes of a block what is kept of it for a network."""
    assert isinstance(learned.model, NetworkModel)
    return _Encode(looks, learned.model.tree, _chosen(learned).columns)


def continue_network(
    learned: LearnedGroups, weighing: Weighing, pooled: PooledFit, kept: Blocks[Arrays], seed: int, verbose: int = 0
) -> LearnedGroups:
    """Let the network go on learning, from all rows, beside the pooled classifier of all rows."""
    assert isinstance(learned.model, NetworkModel)
    chosen = _chosen(learned)
    inside = learned.model.model.pooled == "inside"
    linear: Any = final_classifier(pooled.model) if inside else None
    parameters, continuation = chosen.parameters, None
    n_rows, weight = (float(total) for total in kept.total(_size))
    n_beside = max(n_rows - training_rows.MOST_ROWS, 0.0)
    share = min(_SHARE_OF_JUDGES, _MOST_JUDGES / n_rows, n_beside / n_rows)
    if share * n_rows >= _FEWEST_JUDGES:
        shape = Shape(len(chosen.columns.scale), chosen.width_of_answers, chosen.plan.classifier_sizes[-1])
        as_rows = _AsRows(PooledLogits.of(pooled), chosen.columns, shape, weight / n_rows, chosen.warm, weighing, share)
        ranks = Ranks.in_use()
        with ranks.folder() as folder, closing(LaneWriter(shape, int(n_rows), folder)) as writer:
            judges = _fill(writer, kept, as_rows, share)
            lanes, n_groups = writer.finish(), learned.model.n_groups
            if lanes.n_rows.all() and len(judges):
                how: dict[str, Any] = {"seed": seed, "ranks": ranks, "folder": folder, "verbose": verbose}
                continuation = go_on(chosen, lanes, judges, n_groups=n_groups, **how)
                parameters = continuation.parameters
    population = learned.population
    assert population is not None
    return replace(
        learned,
        model=replace(learned.model, model=chosen.served(parameters, linear)),
        population=replace(population, continuation=continuation),
    )


def _chosen(learned: LearnedGroups) -> ChosenReplica:
    assert learned.population is not None
    assert learned.population.chosen is not None
    return learned.population.chosen


@dataclass(frozen=True, eq=False)
class _Encode:
    """What is kept of a block of rows: numbers, answers, labels, weights, hashes, and what pooled logits need."""

    looks: Looks
    tree: RuleTree | None
    columns: Standardization

    def __call__(self, block: pd.DataFrame) -> Arrays:
        block, seen, kept = self.looks.at(block)
        roles = self.looks.weighing.roles
        keys = roles.keys(block)
        # Rows share a place if they are equal in all that training sees. Persons and times tell further rows apart.
        place = keys.hashes if roles.person is None else replace(roles, person=None).keys(block).hashes
        place = mixed(place ^ mixed(value_hashes(pd.Series(kept["weight"]))))
        if roles.person is not None:
            place = mixed(place ^ mixed(keys.hashes, 1))
        if roles.time is not None:
            place = mixed(place ^ mixed(value_hashes(pd.Series(keys.places)), 2))
        kept |= {"key": keys.hashes, "place": place}
        if self.tree is not None:
            kept["answers"] = self.tree.answers(seen.codes)
        # A linear pooled classifier is fitted on the numbers as they are; else single precision is enough.
        if self.looks.kind == "columns":
            return {**kept, "numbers": seen.numbers}
        return {**kept, "x": _standardized(seen.numbers, self.columns)}


def _standardized(numbers: NDArray[Any], columns: Standardization) -> NDArray[np.float32]:
    return columns.of_rows(numbers).astype(np.float32)


def _size(block: Arrays) -> tuple[NDArray[Any], ...]:
    return np.asarray(len(block["label"])), block["weight"].sum()


@dataclass(frozen=True, eq=False)
class _AsRows:
    """Makes rows, as lanes hold them, of what is kept of a block."""

    base: PooledLogits
    columns: Standardization
    shape: Shape
    mean_weight: float
    warm: bool
    weighing: Weighing
    share: float

    def __call__(self, block: Arrays) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows, whether each judges, and whether it is repeated so often that its copies are told apart."""
        base = self.base.of_block(block)
        rows = np.zeros(len(block["label"]), self.shape.dtype)
        rows["place"] = block["place"]
        rows["x"] = block["x"] if "x" in block else _standardized(block["numbers"], self.columns)
        # Rounded far above the last digits, in which sums over blocks differ: training would make much of them.
        rows["base"] = np.round(base * _ROUNDED) / _ROUNDED if self.warm else 0.0
        rows["weight"] = block["weight"] / self.mean_weight
        rows["label"] = block["label"]
        rows["pooled_right"] = decide(base) == block["label"]
        if "answers" in block:
            rows["answers"][:, : block["answers"].shape[1]] = block["answers"]
        often = self.weighing.repeated.holds(block["key"])
        return rows, is_drawn_last(block["key"], self.share) & ~often, often


def _fill(writer: LaneWriter, kept: Blocks[Arrays], as_rows: _AsRows, share: float) -> NDArray[Any]:
    """Write all rows into lanes, but for some that judge, which are returned."""
    copies, judging = _Copies(), []
    for rows, judges, often in kept.each(as_rows):
        if often.any():
            rows["place"][often] = copies.places(rows["place"][often])
            judges = judges | (often & is_drawn_last(rows["place"], share))
        judging.append(rows[judges])
        writer.write(rows[~judges])
    found = np.concatenate(judging)
    return found[np.argsort(found["place"], kind="stable")]


class _Copies:
    """Numbers the copies of rows that are repeated often, so that they are spread over all lanes and shards."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def places(self, place: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Places of further copies."""
        kinds, kind, counts = np.unique(place, return_inverse=True, return_counts=True)
        before = np.array([self.counts.get(int(one), 0) for one in kinds])
        self.counts |= {int(one): int(n) for one, n in zip(kinds, before + counts, strict=True)}
        order = np.argsort(kind, kind="stable")
        number = np.empty(len(place), np.int64)
        number[order] = np.arange(len(place)) - np.repeat(counts.cumsum() - counts, counts) + before[kind[order]]
        return copy_of(place, number)
