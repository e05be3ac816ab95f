"""Losses that decisions are judged by: errors of all kinds, false positives, false negatives, and costs.

Each is a mean over rows of what a wrong decision costs, so that one kind of test serves all of them:

- ``"error"``: 1 for every wrong decision, over all rows;
- ``"fpr"``: the false positive rate, over rows whose true label is negative;
- ``"fnr"``: the false negative rate, over rows whose true label is positive;
- ``"cost"``: the cost of a false positive or of a false negative, over all rows.

The positive class is ``classes_[1]``. All but the first need two classes. A new loss of this kind is a new entry of
`TITLES` and of `Loss.stakes`; tests, guard and audit then know it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.text import listed, percent, shown, write_number

LossName = Literal["error", "fpr", "fnr", "cost"]
LOSS_NAMES: tuple[LossName, ...] = get_args(LossName)
TITLES: dict[LossName, str] = {
    "error": "error rate",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
    "cost": "cost",
}
"""What each loss is called in sentences."""


@dataclass(frozen=True)
class Costs:
    """What a false positive and a false negative cost.

    Examples
    --------
    >>> Costs.check({"fp": 1, "fn": 4}).threshold
    0.2
    """

    fp: float
    fn: float

    @classmethod
    def check(cls, costs: "Mapping[str, float] | Costs") -> "Costs":
        """Take a mapping with the entries "fp" and "fn"."""
        if isinstance(costs, Costs):
            return costs
        if not isinstance(costs, Mapping) or set(costs) != {"fp", "fn"}:
            raise InputError(
                f"costs must have the entries 'fp' and 'fn', such as {{'fp': 1, 'fn': 5}}, got {shown(costs)}."
            )
        try:
            fp, fn = float(costs["fp"]), float(costs["fn"])
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"costs must be numbers, got {shown(dict(costs))}.") from None
        if not (0 < fp < np.inf and 0 < fn < np.inf):
            raise InputError(f"Both costs must be positive numbers, got {shown(dict(costs))}.")
        return cls(fp, fn)

    @property
    def threshold(self) -> float:
        """Probability of the positive class from which predicting it costs less: fp / (fp + fn)."""
        return self.fp / (self.fp + self.fn)

    def in_words(self) -> str:
        """Say what a cut-off implies, where that is how classifiers are judged.

        Examples
        --------
        >>> Costs(fp=1.0, fn=7 / 3).in_words()
        'Decisions at 0.3 imply that a false negative counts 2.3 false positives: classifiers are judged by that cost.'
        """
        names = ("negative", "positive") if self.fn > self.fp else ("positive", "negative")
        ratio = max(self.fn, self.fp) / min(self.fn, self.fp)
        counts = f"a false {names[0]} counts {write_number(ratio, 2)} false {names[1]}s"
        return f"Decisions at {self.threshold:.2g} imply that {counts}: classifiers are judged by that cost."


@dataclass(frozen=True)
class Loss:
    """One loss.

    Examples
    --------
    Of three rows, the second and third are positive; a wrong decision on the first is a false positive.

    >>> stake, counts = Loss("fpr").stakes(np.array([False, True, True]), 3)
    >>> stake, counts
    (array([1., 0., 0.]), array([ True, False, False]))
    """

    name: LossName = "error"
    costs: Costs | None = None
    """For the loss "cost"."""

    @property
    def title(self) -> str:
        """What it is called in sentences."""
        return TITLES[self.name]

    @property
    def unit(self) -> str:
        """Unit of 100 times the loss."""
        return "per 100 rows" if self.name == "cost" else "percentage points"

    @property
    def of_gain(self) -> str:
        """What follows the unit of a gain: nothing for the error rate, which gains are in unless they say otherwise."""
        return "" if self.name == "error" else f" in {self.title}"

    @property
    def worst(self) -> float:
        """Largest loss of a row."""
        return max(self.costs.fp, self.costs.fn) if self.costs else 1.0

    def stakes(self, positive: NDArray[np.bool_] | None, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What a wrong decision on each row costs, and which rows count in the mean.

        Parameters
        ----------
        positive : array of shape (n,), or None
            Whether the true label is the positive class; None where there are not two classes.
        n_rows : int
        """
        every_row = np.ones(n_rows, bool)
        if self.name == "error":
            return every_row.astype(np.float64), every_row
        if positive is None:
            raise InputError(f"The {self.title} needs two classes: with more, use the loss 'error'.")
        if self.name == "cost":
            assert self.costs is not None
            return np.where(positive, self.costs.fn, self.costs.fp), every_row
        counted = positive if self.name == "fnr" else ~positive
        return counted.astype(np.float64), counted


ERROR = Loss()


def check_losses(names: str | Sequence[str], costs: "Mapping[str, float] | Costs | None" = None) -> tuple[Loss, ...]:
    """Losses by their names, each once.

    Examples
    --------
    >>> [loss.title for loss in check_losses(("error", "fnr"))]
    ['error rate', 'false negative rate']
    """
    asked_names = [names] if isinstance(names, str) else list(names) if np.iterable(names) else [None]
    # Compared as text only: an array in the list would be compared cell by cell.
    unknown = [name for name in asked_names if not isinstance(name, str) or name not in LOSS_NAMES]
    if unknown or not asked_names:
        names_in_words = listed([repr(name) for name in LOSS_NAMES])
        raise InputError(f"Losses must be one or more of {names_in_words}, got {shown(names)}.")
    if "cost" in asked_names and costs is None:
        raise InputError("The loss 'cost' needs costs, such as costs={'fp': 1, 'fn': 5}.")
    checked = None if costs is None else Costs.check(costs)
    return tuple(Loss(name, checked if name == "cost" else None) for name in dict.fromkeys(asked_names))  # type: ignore[arg-type]


def level_in_words(loss: str, value: float) -> str:
    """Write a loss: a rate in percent, a cost as that of 100 rows."""
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)


def short_unit(loss: str) -> str:
    """Unit of 100 times a loss, in a table or a short sentence."""
    return "per 100 rows" if loss == "cost" else "points"


def in_points(margin: float) -> str:
    """Write a margin with its unit.

    Examples
    --------
    >>> in_points(0.01), in_points(0.025)
    ('1 percentage point', '2.5 percentage points')
    """
    return f"{100 * margin:g} percentage point{'' if 100 * margin == 1 else 's'}"


SMALL_LOSS = 0.01
"""A loss up to this size, one percentage point, does not stand in the way of a recommendation."""


def tolerated(loss: LossName, margin: float) -> float:
    """Loss that a recommendation tolerates: one percentage point or the margin, whichever is larger.

    A cost has no natural size, so that nothing beyond the margin is tolerated of it.

    Examples
    --------
    >>> tolerated("error", 0.0), tolerated("error", 0.02), tolerated("cost", 0.0)
    (0.01, 0.02, 0.0)
    """
    return margin if loss == "cost" else max(margin, SMALL_LOSS)
