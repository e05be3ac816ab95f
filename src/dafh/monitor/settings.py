"""What is settled before labels are looked at: what is watched, how sure an alarm must be, and for which subgroups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.column import Column
from dafh.evaluation.losses import Costs, Loss, LossName, check_losses
from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.text import shown
from dafh.validation import check_weights, is_real

_RANGES: dict[str, Any] = {
    "level": pd.Interval(0, 0.5, closed="neither"),
    "largest_weight": pd.Interval(0, 1e15, closed="right"),  # Sums of larger weights would lose rows to rounding.
    "drift_margin": pd.Interval(0, 1, closed="left"),
    "level_margin": pd.Interval(0, 1, closed="left"),
    "min_labelled": pd.Interval(0, 1, closed="both"),
}
NOT_DECLARED = -1
"""Code of a row whose value did not occur when subgroups were declared."""


@dataclass(frozen=True)
class DeclaredSubgroups:
    """Subgroups that are watched in every group: all rows of the group first, then the values of each attribute."""

    attributes: tuple[Column, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Table | None, n_rows: int) -> Self:
        """Declare every value of a table of attributes."""
        if sensitive_features is None:
            return cls()
        table = check_attributes(sensitive_features, n_rows)
        return cls(tuple(Column.of_subgroups(table.iloc[:, i]) for i in range(table.shape[1])))

    @property
    def names(self) -> list[str]:
        """Name of each subgroup; that of all rows is empty."""
        return ["", *(name for column in self.attributes for name in column.subgroups)]

    def codes(self, sensitive_features: Table | None, n_rows: int) -> NDArray[np.int16]:
        """Subgroup of each row by each attribute, (n, A), as a position in `names`, or `NOT_DECLARED`."""
        codes = np.empty((n_rows, len(self.attributes)), np.int16)
        if not self.attributes:
            return codes
        if sensitive_features is None:
            raise InputError(f"sensitive_features is missing: {self.attributes[0].name!r} declares subgroups.")
        table, first = check_attributes(sensitive_features, n_rows), 1
        for i, column in enumerate(self.attributes):
            if column.name not in table.columns:
                raise InputError(f"sensitive_features has no column {column.name!r}, which declares subgroups.")
            of_attribute = column.subgroup_codes(table[column.name])
            codes[:, i] = np.where(of_attribute < 0, NOT_DECLARED, first + of_attribute)
            first += len(column.subgroups)
        return codes

    def without_quarters(self, codes: NDArray[np.int16]) -> NDArray[np.int16]:
        """Codes of the rows that declare the subgroups: they do not count for quarters of a number.

        The cuts depend on these very rows, which are therefore no fresh evidence about what lies between the cuts.
        """
        is_cut = np.array([not column.is_category for column in self.attributes], bool)
        return np.where(is_cut, np.int16(NOT_DECLARED), codes)


@dataclass(frozen=True)
class MonitorSettings:
    """Parameters of a monitor that hold from its first row to its last."""

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
        """Refuse parameters out of range."""
        for name, allowed in _RANGES.items():
            value = getattr(self, name)
            if value is None and name == "largest_weight":
                continue
            if not (is_real(value) and value in allowed):
                words = f"a float in the range {allowed}"
                raise InputError(f"The {name!r} parameter of Monitor must be {words}. Got {shown(value)} instead.")

    def relative_weights(self, sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
        """Weights as shares of the largest one, so that no bet is about more than 1."""
        if sample_weight is None:
            return np.full(n_rows, 1 / (self.largest_weight or 1.0))
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
    guarded = {loss.name: loss for loss in final.losses_}
    if names is None:
        names = list(guarded) if costs is None or "cost" in guarded else ["cost"]
    costs_of_model = guarded["cost"].costs if "cost" in guarded else final.costs
    losses = check_losses(names, costs_of_model if costs is None else costs)
    for loss in losses:
        if loss.name != "error" and len(final.classes_) != 2:
            raise InputError(f"The {loss.title} needs two classes, and the model has {len(final.classes_)}.")
    return losses
