"""Who serves whom from now on: what evidence asks for, and the guard's report that says so."""

import hashlib
from collections.abc import Mapping
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.guard import GuardReport, certificate_in_words, server_in_words
from dafh.frames import PlainTable
from dafh.monitor.evidence import Evidence
from dafh.monitor.ledger import Ledger
from dafh.monitor.notices import ServiceChange
from dafh.persistence import write_state


def fingerprint_of(final: Any) -> str:
    """Tell a fitted model, and who serves whom in it, from all others.

    By what a model file would hold. Models of other libraries that cannot be written unasked are told by joblib.
    """
    try:
        parts = [*write_state(final).values()]
    except ValueError:
        report = None if final.guard_report_ is None else final.guard_report_.table
        held = [final.pooled_, getattr(final, "estimators_", []), final.serves_, report]
        parts = [str(joblib.hash(held)).encode()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def changes_needed(evidence: Evidence) -> dict[int, tuple[bool, str]]:
    """Groups whose classifier is to be put into service (True) or taken out of it, each with the reason."""
    found: dict[int, tuple[bool, str]] = {}
    better = evidence.better_now()
    for g in range(evidence.n_groups):
        alarmed = evidence.alarmed[evidence.group == g]
        if not evidence.serving[g]:
            if better[g]:
                found[g] = (
                    True,
                    f"it is shown to be better than the pooled classifier, by rows up to {evidence.n_rows:,}",
                )
        elif alarmed.any():
            found[g] = (False, f"harm was shown at row {alarmed[alarmed > 0].min():,}")
    return found


def serve_as_shown(final: Any, watched: NDArray[np.intp], ledger: Ledger) -> list[ServiceChange]:
    """Change who serves whom in a model, and begin new terms in the books."""
    wanted = changes_needed(ledger.evidence)
    if not wanted:
        return []
    k, serves = int(final.n_groups_), np.array(final.serves_)
    for group, (puts_in, _) in wanted.items():
        serves[group] = watched[group] if puts_in else k
    before, after = ([server_in_words(g, int(s), k) for g, s in enumerate(who)] for who in (final.serves_, serves))
    new = [
        ServiceChange(g, before[g], after[g], ledger.evidence.n_rows, ledger.n_batches, reason)
        for g, (_, reason) in sorted(wanted.items())
    ]
    reasons = {change.group: change.reason for change in new}
    final._serve(report_of(ledger.evidence, serves, final.guard_report_, reasons))
    ledger.evidence.begin_term(np.array(sorted(wanted), np.intp), serves < k)
    ledger.levels.begin_term()
    ledger.service += new
    return new


def report_of(
    evidence: Evidence, serves: NDArray[np.intp], before: GuardReport | None, reasons: Mapping[int, str]
) -> GuardReport:
    """Put the evidence into the form of a guard's report, which models, model files and pages know."""
    checks = evidence.table()
    k = evidence.n_groups
    # A p-value that holds at any time is one over the evidence.
    checks["p_better"] = np.minimum(1.0, 1 / np.maximum(checks["benefit_evidence"], 1.0))
    checks["p_worse"] = np.minimum(1.0, 1 / np.maximum(checks["harm_evidence"], 1.0))
    checks["passed"] = (serves < k)[checks["group"]]
    table = checks[(checks["part"] == "") & (checks["loss"] == evidence.losses[0].name)].reset_index(drop=True)
    harm = np.where(serves == k, 0.0, -table["low"])
    kept = [_reason_to_stay(g, before, k, int(serves[g])) for g in range(k)]
    table = pd.DataFrame(
        {
            **{name: table[name] for name in ("rows", "own_loss", "pooled_loss", "gain", "low", "high")},
            "own_worse": table["own_worse"].astype(np.float64),
            "own_better": table["own_better"].astype(np.float64),
            "p_worse": table["p_worse"],
            "p_better": table["p_better"],
            # A shift is what a monitor watches for; its counts are of many looks.
            "robust_radius": np.full(k, np.nan),
            "served_by": [server_in_words(g, int(s), k) for g, s in enumerate(serves)],
            "excluded_harm": harm,
            "certificate": [certificate_in_words(h, int(s) == k) for h, s in zip(harm, serves, strict=True)],
            "reason": [reasons.get(g, kept[g]) for g in range(k)],
        }
    ).set_axis(pd.RangeIndex(k, name="group"), axis=0)
    columns = ["group", "part", "loss", "rows", "own_loss", "pooled_loss", "gain", "p_better", "p_worse", "passed"]
    kind = "evidence" if before is None else before.kind
    names = tuple(loss.name for loss in evidence.losses)
    tables = PlainTable.of(table), PlainTable.of(checks[columns])
    return GuardReport(kind, evidence.level, 0.0, serves.astype(np.intp), *tables, names)


def _reason_to_stay(group: int, before: GuardReport | None, n_groups: int, server: int) -> str:
    if before is not None and before.serves[group] == server:
        return str(before.table["reason"].iloc[group])
    return "the pooled classifier serves it" if server == n_groups else "no harm was shown"
