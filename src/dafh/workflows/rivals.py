"""Rivals for commands: from a table and a name to a classifier, tuned on selection rows of the table."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard_report import GuardKind
from dafh.evaluation.losses import LossName
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard
from dafh.rivals.baselines import ModelClass, make_baseline
from dafh.rivals.tuning import Criterion, tune
from dafh.tables.encoder import TableEncoder
from dafh.workflows.reading import LargeTable
from dafh.workflows.training import TrainingTable

_BUDGET = 6
_MOST_ROWS_TO_TUNE = 10_000
"""Of more rows, so many are drawn to tune on; all of them train."""


def make_rival(
    table: TrainingTable | LargeTable,
    method: str,
    *,
    model: ModelClass = "linear",
    criterion: Criterion | None = "log-loss",
    n_groups: int | Literal["auto"] = "auto",
    pooled: Literal["scorecard", "linear", "boosting"] = "linear",
    guard: GuardKind | None = "veto",
    guard_losses: Sequence[LossName] = ("error",),
    seed: int = 0,
) -> tuple[DecoupledClassifier, str | None]:
    """Make the rival that a command asks for, and say which settings were chosen for it.

    Parameters
    ----------
    table : TrainingTable
    method : str
        A name of `dafh.rivals.baselines.RIVALS`.
    model : {"linear", "network"}
    criterion : {"log-loss", "antigone"} or None
        How its settings are tuned; None leaves them as they are.
    n_groups : int or "auto"
        Clusters by which the guard chooses between the rival and the pooled classifier.
    pooled : {"scorecard", "linear", "boosting"}
    guard, guard_losses, seed
        As in `make_classifier`.
    """
    if isinstance(table, LargeTable):
        raise InputError(f"{method} is trained in memory, on at most 200,000 rows: take a sample of the table.")
    if guard is None and table.schema.protected:
        raise InputError("Only the guard protects columns, and it is off: set it to veto or proof.")
    found = make_baseline(
        method,
        model=model,
        n_groups=None if n_groups == "auto" else n_groups,
        estimator=_pooled(pooled, seed),
        guard=guard,
        random_state=seed,
    )
    found.set_params(guard_losses=tuple(guard_losses))
    return found, None if criterion is None else _tune(table, found.estimator, criterion, seed)


def _tune(table: TrainingTable, rival: Any, criterion: Criterion, seed: int) -> str:
    """Set the parameters that selection rows choose, and say which."""
    columns = np.asarray(TableEncoder(table.schema.columns).fit_transform(table.features), np.float64)
    weight = table.guard_options.get("sample_weight")
    found = tune(
        rival,
        columns,
        table.y,
        budget=_BUDGET,
        max_rows=_MOST_ROWS_TO_TUNE,
        sample_weight=None if weight is None else np.asarray(weight, np.float64),
        random_state=seed,
    )
    chosen = found.best(criterion)
    rival.set_params(**chosen)
    words = ", ".join(f"{name} {value:g}" for name, value in chosen.items())
    return f"Of {len(found.settings)} settings, {criterion} on selection rows chooses {words}."


def _pooled(name: str, seed: int) -> Any:
    if name == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed)
    return Scorecard() if name == "scorecard" else StandardizedLogisticRegression()
