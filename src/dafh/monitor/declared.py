"""What is settled before labels are looked at: what is watched, how sure an alarm must be, and for which subgroups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.columns.column import Column
from dafh.evaluation.losses import Costs, Loss, LossName, check_losses
from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.text import shown
from dafh.validation import check_weights, is_real

# Sums of rows of such a weight are still exact enough.
_LARGEST = 1e15
NOT_DECLARED = -1
"""Part of a row whose value was not there when subgroups were declared."""


@dataclass(frozen=True)
class DeclaredParts:
    """All parts of a group that are watched: all of it, then the subgroups of each attribute."""

    attributes: tuple[Column, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Table | None, n_rows: int) -> Self:
        """Declare every attribute of a table."""
        if sensitive_features is None:
            return cls()
        table = check_attributes(sensitive_features, n_rows)
        return cls(tuple(Column.of_subgroups(table.iloc[:, i]) for i in range(table.shape[1])))

    @property
    def names(self) -> list[str]:
        """Name of each part; the first is empty and means all rows of a group."""
        return ["", *(name for column in self.attributes for name in column.subgroups)]

    def of_rows(self, sensitive_features: Table | None, n_rows: int) -> NDArray[np.int16]:
        """Part of each row by each attribute, (n, A), numbered as in `names`; `NOT_DECLARED` for none."""
        if not self.attributes:
            return np.zeros((n_rows, 0), np.int16)
        if sensitive_features is None:
            raise InputError(f"sensitive_features is missing: {self.attributes[0].name!r} declares subgroups.")
        table = check_attributes(sensitive_features, n_rows)
        # Column by column, as they are counted later.
        parts, first = np.empty((n_rows, len(self.attributes)), np.int16, order="F"), 1
        for i, column in enumerate(self.attributes):
            if column.name not in table.columns:
                raise InputError(f"sensitive_features has no column {column.name!r}, which declares subgroups.")
            codes = column.subgroup_codes(table[column.name])
            parts[:, i] = np.where(codes < 0, NOT_DECLARED, first + codes)
            first += len(column.subgroups)
        return parts

    def without_cuts(self, parts: NDArray[np.int16]) -> NDArray[np.int16]:
        """Parts for the rows that have declared them: quarters of a number do not count there.

        Where a quarter ends depends on these very rows, so that they are no fresh rows of it.
        """
        cut = [not column.is_category for column in self.attributes]
        return np.where(cut, np.int16(NOT_DECLARED), parts) if any(cut) else parts


@dataclass(frozen=True)
class Settings:
    """What is watched, and how sure an alarm must be."""

    level: float
    losses: tuple[LossName, ...]
    costs: Costs | None
    """For the loss "cost"."""
    largest_weight: float | None
    drift_margin: float
    level_margin: float
    min_labelled: float
    by_batch: bool

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if not is_real(self.level) or not 0 < self.level < 0.5:
            raise InputError(f"level must lie between 0 and 0.5, got {shown(self.level)}.")
        if self.largest_weight is not None and not (
            is_real(self.largest_weight) and 0 < self.largest_weight <= _LARGEST
        ):
            raise InputError(f"largest_weight must be a positive number, got {shown(self.largest_weight)}.")
        for name in ("drift_margin", "level_margin"):
            if not is_real(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is a share from 0 up to, but without, 1, got {shown(getattr(self, name))}.")
        if not is_real(self.min_labelled) or not 0 <= self.min_labelled <= 1:
            raise InputError(f"min_labelled is a share of rows from 0 to 1, got {shown(self.min_labelled)}.")

    def weights(self, sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
        """Weights relative to the largest that was declared."""
        if sample_weight is None:
            return np.ones(n_rows) if self.largest_weight is None else np.full(n_rows, 1 / self.largest_weight)
        if self.largest_weight is None:
            raise InputError("Set largest_weight of the monitor: bets need to know the largest weight in advance.")
        weight = check_weights(sample_weight, n_rows)
        if (weight > self.largest_weight).any():
            raise InputError(f"sample_weight holds {weight.max():g}, more than largest_weight={self.largest_weight:g}.")
        return weight / self.largest_weight


def losses_to_watch(
    final: Any, names: Sequence[str] | str | None, costs: Mapping[str, float] | None
) -> tuple[Loss, ...]:
    """Losses by their names; by default those that the model's guard was asked to protect."""
    protected = {loss.name: loss for loss in final.losses_}
    if names is None:
        names = list(protected) if costs is None or "cost" in protected else ["cost"]
    known = protected["cost"].costs if "cost" in protected else final.costs
    losses = check_losses(names, known if costs is None else costs)
    for loss in losses:
        if loss.name != "error" and len(final.classes_) != 2:
            raise InputError(f"The {loss.title} needs two classes, and the model has {len(final.classes_)}.")
    return losses
