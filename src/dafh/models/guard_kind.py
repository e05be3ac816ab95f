"""What the guard decided, and the losses it was asked about.

These are parts of an estimator and of nothing else, so they are no `Kind`. A report is shown to people as a promise, so
that a file whose tables contradict each other is refused, however well each of them is formed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.guard import ALL_ROWS, choose_servers
from dafh.evaluation.guard_report import GuardKind, GuardReport, server_in_words
from dafh.evaluation.losses import LOSS_NAMES, Costs, Loss, check_losses
from dafh.evaluation.paired import ComparedRows
from dafh.models.container import Json
from dafh.models.description import LARGEST_FLOAT, Fields, Writer
from dafh.models.values import read_table, write_table

_CHECKS = {
    "group": "i", "part": "text", "loss": "text", "rows": "i", "own_loss": "f", "pooled_loss": "f", "gain": "f",
    "p_better": "f", "p_worse": "f", "passed": "b",
}  # fmt: skip
"""Columns of the table of checks, and what they hold."""


# ---- losses ----


def write_losses(losses: Sequence[Loss]) -> Json:
    """Describe the losses that must not get worse."""
    costs = next((loss.costs for loss in losses if loss.costs is not None), None)
    return {
        "names": [loss.name for loss in losses],
        "costs": None if costs is None else {"fp": float(costs.fp), "fn": float(costs.fn)},
    }


def read_losses(fields: Fields, n_classes: int) -> tuple[Loss, ...]:
    """Return the losses that must not get worse; all but the error rate need two classes."""
    inner = fields.fields("losses")
    names = inner.texts("names")
    costs = None
    if inner.has("costs"):
        given = inner.fields("costs")
        # Zero is not in their range; the smallest positive number is.
        costs = Costs(*(given.number(name, np.nextafter(0, 1), LARGEST_FLOAT) for name in ("fp", "fn")))
        given.close()
    inner.close()
    if not names or len(set(names)) < len(names) or not set(names) <= set(LOSS_NAMES):
        raise fields.refuse("losses")
    if (costs is not None) != ("cost" in names):
        raise fields.refuse("losses", "has costs without their loss, or the loss without costs")
    if n_classes != 2 and names != ["error"]:
        raise fields.refuse("losses", "needs two classes")
    return check_losses(names, costs)


# ---- the report ----


def write_report(report: GuardReport | None, writer: Writer) -> Json:
    """Describe what the guard decided; its losses are those of the model."""
    if report is None:
        return None
    return {
        "kind": report.kind,
        "level": float(report.level),
        "margin": float(report.margin),
        "serves": writer.array(report.serves),
        "table": write_table(report.table, writer),
        "checks": write_table(report.checks, writer) if len(report.checks) else None,
        "cross_fitted": bool(report.cross_fitted),
    }


def read_report(fields: Fields, n_groups: int, losses: Sequence[Loss]) -> GuardReport | None:
    """Return what the guard decided, with tables that agree with each other."""
    if not fields.has("guard_report"):
        return None
    inner = fields.fields("guard_report")
    # The report of a guard that had nothing to judge has the same columns, of the same types.
    nothing = choose_servers(ComparedRows.none(1))
    report = GuardReport(
        kind=inner.choice("kind", get_args(GuardKind)),  # type: ignore[arg-type]
        level=inner.number("level", 0, 1),
        margin=inner.number("margin", 0, 1),
        serves=inner.wholes("serves", n_groups, least=0, most=n_groups).astype(np.intp),
        table=read_table(inner, "table"),
        checks=read_table(inner, "checks") if inner.has("checks") else nothing.checks,
        losses=tuple(loss.name for loss in losses),
        cross_fitted=inner.flag("cross_fitted"),
    )
    inner.close()
    columns = {str(name): _holds(column) for name, column in nothing.table.items()}
    if not _is_sound_table(report, columns, n_groups):
        raise fields.refuse("guard_report")
    if not _are_sound_checks(report, losses):
        raise fields.refuse("guard_report", "has checks that do not fit its decisions")
    return report


def _is_sound_table(report: GuardReport, columns: Mapping[str, str], n_groups: int) -> bool:
    table = report.table
    if not _has_columns(table, columns) or list(table.index) != [*range(n_groups)]:
        return False
    served = [server_in_words(group, int(server), n_groups) for group, server in enumerate(report.serves)]
    return table["served_by"].tolist() == served and _are_counts(table["rows"]) and _are_shares(table)


def _are_sound_checks(report: GuardReport, losses: Sequence[Loss]) -> bool:
    """Whether every group that was checked was asked about each loss, and keeps its classifier only if all passed."""
    checks, n_groups = report.checks, len(report.serves)
    keeps = [group for group in range(n_groups) if report.serves[group] == group]
    if not len(checks):  # No rows, no own classifier.
        return not keeps
    if not _has_columns(checks, _CHECKS) or list(checks.index) != [*range(len(checks))]:
        return False
    if not (_are_counts(checks["rows"]) and _are_shares(checks) and checks["group"].between(0, n_groups - 1).all()):
        return False
    if checks.duplicated(["group", "part", "loss"]).any():
        return False
    whole = checks[checks["part"] == ALL_ROWS]
    asked = {(group, loss.name) for group in checks["group"].unique() for loss in losses}
    if set(zip(whole["group"], whole["loss"], strict=True)) != asked or not set(checks["loss"]) <= set(report.losses):
        return False
    passed = checks.groupby("group")["passed"].all()
    return all(bool(passed.get(group, False)) for group in keeps)


def _has_columns(table: pd.DataFrame, expected: Mapping[str, str]) -> bool:
    return {str(name): _holds(column) for name, column in table.items()} == dict(expected) and list(
        table.columns
    ) == list(expected)


def _holds(column: "pd.Series[Any]") -> str:
    """What a column holds: numbers of a kind, truth values, or texts without gaps."""
    kind = column.dtype.kind
    if kind in "fib":
        return kind
    return "text" if all(isinstance(value, str) for value in column) else "gaps"


def _are_counts(column: "pd.Series[Any]") -> bool:
    return bool((column >= 0).all())


def _are_shares(table: pd.DataFrame) -> bool:
    """Whether p-values lie between 0 and 1, and no loss is negative; losses of no rows are unknown."""
    p: NDArray[np.float64] = table[["p_better", "p_worse"]].to_numpy()
    losses = table[["own_loss", "pooled_loss"]].to_numpy()
    return bool(((p >= 0) & (p <= 1)).all() and not (losses < 0).any() and not np.isinf(losses).any())
