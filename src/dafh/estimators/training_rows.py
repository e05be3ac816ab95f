"""The rows of a fit: all of them where they are few; else a sample to choose by, and all of them in blocks."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Blocks
from dafh.blocks.memory import MemoryBlocks, row_slices
from dafh.blocks.sampling import EVERYTHING, Part, Repeated, Wanted, count_rows, draw_rows
from dafh.blocks.sources import as_blocks
from dafh.checks.rows import check_weights
from dafh.classifiers.fitting import is_fitted
from dafh.exceptions import FittedOnSampleWarning, InputError
from dafh.frames import is_frame, to_pandas
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard
from dafh.rows.checked import CheckedRows
from dafh.rows.roles import Roles, as_table, in_order_of_values
from dafh.text import quoted

MOST_ROWS = 200_000
"""Bins, groups, and all that is chosen about them, come from this many rows at most; coefficients from all rows."""
# Of so many rows, intervals are about 0.1 percentage points wide: more would show nothing new.
_MOST_JUDGES = 1_000_000

Check = Callable[[pd.DataFrame, NDArray[Any], dict[str, Any]], CheckedRows]
"""Makes checked rows of features, labels, and what else is known."""


@dataclass(frozen=True, eq=False)
class Weighing:
    """What rows count in training."""

    roles: Roles
    repeated: Repeated
    part: Part
    """The part of the rows that trains."""

    def weights(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """What each row of a table counts; 0 for rows that are held out."""
        weight = self.roles.weights(table)
        return weight if self.part == EVERYTHING else weight * self.part.weights(self.roles.keys(table), self.repeated)


@dataclass(frozen=True, eq=False)
class AllRows:
    """More rows than a sample holds, in blocks of tables."""

    blocks: Blocks[pd.DataFrame]
    weighing: Weighing


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a fit learns from."""

    few: CheckedRows
    """All rows, or a sample of them."""
    judges: CheckedRows | None = None
    """Rows that are held out of everything, where there are more than a sample of the others."""
    everything: AllRows | None = None
    """All rows that train, where they are more than the sample."""
    whole: Callable[[], CheckedRows] | None = None
    """The same at once, where they are in memory."""


def gather_rows(
    check: Check,
    X: Any,
    y: Any,
    *,
    held_out: float,
    sample_weight: Any,
    guard_features: Any,
    persons: Any,
    time: Any,
) -> TrainingRows:
    """Rows of a fit, in memory or as `dafh.blocks.sources` knows them.

    Parameters
    ----------
    check : function
        Makes checked rows of features, labels, and what else is known.
    held_out : float
        Share of the rows to hold out of everything, where there are more than a sample.
    """
    known = {"sample_weight": sample_weight, "guard_features": guard_features, "persons": persons, "time": time}
    blocks = as_blocks(X)
    if blocks is not None:
        roles = _named_roles(y, **known).of_table(blocks.columns)
        if roles.weight is not None:  # How many rows count is known only by looking at them.
            blocks = blocks.through(_RowsThatCount(roles), n_rows=None)
        return from_blocks(blocks, roles, held_out, check)
    rows = check(X, y, known)
    if len(rows) <= MOST_ROWS:
        return TrainingRows(in_order_of_values(rows))
    if persons is not None:
        counted = check_weights(sample_weight, len(to_pandas(persons))) > 0
        persons = to_pandas(persons).iloc[:, 0].to_numpy()[counted]
    table, roles = as_table(rows, persons)
    found = from_blocks(
        MemoryBlocks(row_slices(len(table))).through(lambda some: table.iloc[some], n_rows=len(table)),
        roles,
        held_out,
        lambda features, *rest: check(features if is_frame(X) else features.to_numpy(), *rest),
    )
    assert found.everything is not None
    part = found.everything.weighing.part
    return replace(found, whole=lambda: in_order_of_values(rows.take(np.flatnonzero(part.holds(roles.keys(table))))))


@dataclass(frozen=True, eq=False)
class _RowsThatCount:
    """Leaves out rows of weight 0."""

    roles: Roles

    def __call__(self, table: pd.DataFrame) -> pd.DataFrame:
        weight = self.roles.weights(table)
        if not (weight >= 0).all():  # Written so that a gap fails, too.
            raise InputError(f"Weights must be numbers from 0 on: the column {quoted(self.roles.weight)} has others.")
        return table[weight > 0]


def _named_roles(y: Any, *, sample_weight: Any, guard_features: Any, persons: Any, time: Any) -> Roles:
    """Roles of the columns of files, which are known by name."""
    if not isinstance(y, str):
        raise InputError("Where X is files or a collection, y is the name of its target column.")
    for role, name in {"sample_weight": sample_weight, "persons": persons, "time": time}.items():
        if not (name is None or isinstance(name, str)):
            raise InputError(f"Where X is files or a collection, {role} is the name of one of its columns.")
    declared = (guard_features,) if isinstance(guard_features, str) else tuple(guard_features or ())
    if not all(isinstance(name, str) for name in declared):
        raise InputError("Where X is files or a collection, guard_features are names of its columns.")
    return Roles(y, sample_weight, persons, time, declared)


def from_blocks(blocks: Blocks[pd.DataFrame], roles: Roles, held_out: float, check: Check) -> TrainingRows:
    """Rows in blocks: a pass to draw the sample, and one before it where nobody knows how many there are."""
    n_rows = count_rows(blocks)
    if n_rows <= MOST_ROWS:
        (table,), _ = draw_rows(blocks, roles.keys, n_rows, [Wanted(EVERYTHING, MOST_ROWS)])
        return TrainingRows(in_order_of_values(_checked(table, roles, check)))
    part, rest = _divided(blocks, roles, n_rows, held_out)
    wanted = [Wanted(part, MOST_ROWS)] if rest is None else [Wanted(part, MOST_ROWS), Wanted(rest, _MOST_JUDGES)]
    alone = roles.person is None and roles.time is None
    tables, repeated = draw_rows(blocks, roles.keys, n_rows, wanted, each_for_itself=alone)
    few, *judges = [_checked(table, roles, check) for table in tables]
    return TrainingRows(
        in_order_of_values(few), judges[0] if judges else None, AllRows(blocks, Weighing(roles, repeated, part))
    )


def fresh_rows(
    blocks: Blocks[pd.DataFrame], y: Any, *, sample_weight: Any, guard_features: Any, persons: Any
) -> tuple[pd.DataFrame, NDArray[Any], dict[str, Any]]:
    """Rows for the guard out of blocks, a million at most: features, labels, and what else is known."""
    named = _named_roles(y, sample_weight=sample_weight, guard_features=guard_features, persons=persons, time=None)
    roles = named.of_table(blocks.columns)
    wanted = [Wanted(EVERYTHING, _MOST_JUDGES)]
    (table,), _ = draw_rows(blocks, roles.keys, count_rows(blocks), wanted, each_for_itself=roles.person is None)
    known = roles.known(table)
    del known["time"]
    return table[list(roles.features)], table[roles.label].to_numpy(), known


def _divided(blocks: Blocks[pd.DataFrame], roles: Roles, n_rows: int, held_out: float) -> tuple[Part, Part | None]:
    """The part that trains, and the part that is held out: rows at random, or the last ones where time counts."""
    if not held_out:
        return EVERYTHING, None
    cut = 1 - held_out
    if roles.time is not None:
        (sample,), _ = draw_rows(blocks, roles.keys, n_rows, [Wanted(EVERYTHING, MOST_ROWS)], each_for_itself=False)
        cut = float(np.quantile(roles.keys(sample).places, cut))
    return Part(high=cut, size=1 - held_out), Part(low=cut, size=held_out)


def _checked(table: pd.DataFrame, roles: Roles, check: Check) -> CheckedRows:
    return check(table[list(roles.features)], table[roles.label].to_numpy(), roles.known(table))


def warn_if_sampled(training: TrainingRows, pooled: Any) -> None:
    """Warn the caller of `fit` if its pooled classifier has seen a sample of the rows only."""
    ours = isinstance(pooled, Scorecard | StandardizedLogisticRegression) or is_fitted(pooled)
    if training.everything is not None and training.whole is None and not ours:
        warnings.warn(
            f"The rows are not in memory: {type(pooled).__name__} was fitted on a sample of {len(training.few):,} of "
            "them. Bring it fitted if it should know more.",
            FittedOnSampleWarning,
            stacklevel=3,
        )
