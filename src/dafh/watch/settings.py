"""Settings of a monitor, checked once; plain values, so that a state can hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.checks.parameters import is_real
from dafh.checks.rows import check_weights
from dafh.evaluation.losses import Loss, check_losses
from dafh.exceptions import InputError
from dafh.text import shown

# Sums of so many rows, or of rows of such a weight, are still exact enough.
_LARGEST = 1e15


@dataclass(frozen=True)
class Settings:
    """What is watched, and how sure an alarm must be."""

    level: float
    losses: tuple[Loss, ...]
    largest_weight: float | None
    run_length: float
    drift_margin: float

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if not is_real(self.level) or not 0 < self.level < 0.5:
            raise InputError(f"level must lie between 0 and 0.5, got {shown(self.level)}.")
        if self.largest_weight is not None and not _is_finite(self.largest_weight, above=0):
            raise InputError(f"largest_weight must be a positive number, got {shown(self.largest_weight)}.")
        if not _is_finite(self.run_length) or self.run_length < 1:
            raise InputError(f"run_length is a number of rows, 1 or more, got {shown(self.run_length)}.")
        if not is_real(self.drift_margin) or not 0 <= self.drift_margin < 1:
            raise InputError(f"drift_margin is a share from 0 up to, but without, 1, got {shown(self.drift_margin)}.")

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        costs = next((loss.costs for loss in self.losses if loss.costs is not None), None)
        return {
            "level": self.level,
            "losses": [loss.name for loss in self.losses],
            "costs": None if costs is None else {"fp": costs.fp, "fn": costs.fn},
            "largest_weight": self.largest_weight,
            "run_length": self.run_length,
            "drift_margin": self.drift_margin,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Take what `to_dict` gave."""
        rest = {name: values[name] for name in ("largest_weight", "run_length", "drift_margin")}
        return cls(level=values["level"], losses=check_losses(values["losses"], values["costs"]), **rest)


def _is_finite(value: object, above: float = -np.inf) -> bool:
    """Whether a value is a number that a float can hold."""
    return is_real(value) and above < value <= _LARGEST  # type: ignore[operator]


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
