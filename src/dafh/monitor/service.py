"""Who serves whom from now on: what evidence asks for, and the guard's report that says so."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.guard import GuardReport, certificate_in_words, server_in_words
from dafh.frames import PlainTable
from dafh.monitor.evidence import Evidence
from dafh.monitor.ledger import Ledger
from dafh.monitor.notices import ServiceChange


def changes_needed(evidence: Evidence) -> dict[int, tuple[bool, str]]:
    """Groups whose classifier is to be put into service (True) or taken out of it, each with the reason."""
    changes: dict[int, tuple[bool, str]] = {}
    better = evidence.better_now()
    for g in range(evidence.n_groups):
        alarms = evidence.alarmed[(evidence.group == g) & (evidence.alarmed > 0)]
        if evidence.serving[g] and len(alarms):
            changes[g] = False, f"harm was shown at row {alarms.min():,}"
        elif better[g] and not evidence.serving[g]:
            by = f"by rows up to {evidence.n_rows:,}"
            changes[g] = True, f"it is shown to be better than the pooled classifier, {by}"
    return changes


def serve_as_shown(final: Any, watched: NDArray[np.intp], ledger: Ledger) -> list[ServiceChange]:
    """Change who serves whom in a model, and begin new terms in the books."""
    needed = changes_needed(ledger.evidence)
    if not needed:
        return []
    k, serves = int(final.n_groups_), np.array(final.serves_)
    for group, (enters_service, _) in needed.items():
        serves[group] = watched[group] if enters_service else k
    changes = [
        ServiceChange(
            group,
            server_in_words(group, int(final.serves_[group]), k),
            server_in_words(group, int(serves[group]), k),
            ledger.evidence.n_rows,
            ledger.n_batches,
            reason,
        )
        for group, (_, reason) in needed.items()
    ]
    reasons = {change.group: change.reason for change in changes}
    final._serve(report_of(ledger.evidence, serves, final.guard_report_, reasons))
    # What was shown is about another division of service: each change costs a part of the capital.
    ledger.evidence.begin_term(np.array(list(needed), np.intp), serves < k)
    ledger.levels.begin_term()
    ledger.service += changes
    return changes


def report_of(
    evidence: Evidence, serves: NDArray[np.intp], previous: GuardReport | None, reasons: Mapping[int, str]
) -> GuardReport:
    """Put the evidence into the form of a guard's report, which models, model files and pages know."""
    checks, k = evidence.table(), evidence.n_groups
    # One over an e-process is a p-value that holds at any time (Ville's inequality).
    checks["p_better"] = np.minimum(1.0, 1 / np.maximum(checks["benefit_evidence"], 1.0))
    checks["p_worse"] = np.minimum(1.0, 1 / np.maximum(checks["harm_evidence"], 1.0))
    checks["passed"] = (serves < k)[checks["group"]]
    table = checks[(checks["part"] == "") & (checks["loss"] == evidence.losses[0].name)]
    names = ["rows", "own_loss", "pooled_loss", "gain", "low", "high", "own_worse", "own_better", "p_worse", "p_better"]
    harm = np.where(serves == k, 0.0, -table["low"])
    table = table[names].astype({"own_worse": np.float64, "own_better": np.float64})
    table = table.set_axis(pd.RangeIndex(k, name="group"), axis=0).assign(
        robust_radius=np.nan,  # It is about a shift, which a monitor watches for instead; its counts are of many looks.
        served_by=[server_in_words(g, int(server), k) for g, server in enumerate(serves)],
        excluded_harm=harm,
        certificate=[certificate_in_words(h, int(server) == k) for h, server in zip(harm, serves, strict=True)],
        reason=[reasons.get(g) or _reason_to_stay(g, previous, k, int(server)) for g, server in enumerate(serves)],
    )
    columns = ["group", "part", "loss", "rows", "own_loss", "pooled_loss", "gain", "p_better", "p_worse", "passed"]
    tables = PlainTable.of(table), PlainTable.of(checks[columns])
    kind = "evidence" if previous is None else previous.kind
    losses = tuple(loss.name for loss in evidence.losses)
    return GuardReport(kind, evidence.level, 0.0, serves.astype(np.intp), *tables, losses)


def _reason_to_stay(group: int, previous: GuardReport | None, n_groups: int, server: int) -> str:
    if previous is not None and previous.serves[group] == server:
        return str(previous.table["reason"].iloc[group])
    return "the pooled classifier serves it" if server == n_groups else "no harm was shown"
