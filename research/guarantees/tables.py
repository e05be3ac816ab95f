"""All tables of docs/guarantee.md and docs/watch.md; those of the first take about an hour on one core."""

from collections.abc import Callable

import pandas as pd

from research.guarantees.alarms import batch_table, level_table
from research.guarantees.audits import audit_table
from research.guarantees.batches import files_table
from research.guarantees.coverage import cost_table, limit_table
from research.guarantees.delays import change_table, delay_table
from research.guarantees.evidence import evidence_table
from research.guarantees.fits import fit_table
from research.guarantees.limits import coverage_table, drift_table
from research.guarantees.proof import guard_table, radius_table, scenario_table
from research.guarantees.recommendations import recommendation_table
from research.guarantees.service import service_table
from research.pages import markdown

GUARANTEE: dict[str, Callable[[], pd.DataFrame]] = {
    "Limits that are missed at worst, by enumeration, rows that count alike": limit_table,
    "The same for costs (false positive 1, false negative 5)": cost_table,
    'Worlds harmed by "proof" at level 5%, by the repair of envy, and classifiers kept': guard_table,
    'Worlds harmed by "proof" at level 5%, by scenario': scenario_table,
    "Radius of robustness larger than the true one": radius_table,
    'Fits harmed by "proof" at level 5%, labels that cannot be predicted better': fit_table,
    'Own classifiers kept by "evidence"': evidence_table,
    "Audits with a wrong answer": audit_table,
    "Recommendations": recommendation_table,
}
WATCH: dict[str, Callable[[], pd.DataFrame]] = {
    "alarms": level_table,
    "books": batch_table,
    "files": files_table,
    "delays": delay_table,
    "changes": change_table,
    "limits": coverage_table,
    "drift": drift_table,
    "service": service_table,
}


def in_percent(table: pd.DataFrame) -> str:
    """Write a table of shares in percent; ratios, whole numbers and words are left alone."""
    shares = [name for name in table.select_dtypes("float") if "ratio" not in name]
    return as_markdown(table.assign(**{name: 100 * table[name] for name in shares}))


def as_markdown(table: pd.DataFrame) -> str:
    """Write numbers with as many digits as they mean."""

    def cell(value: object) -> str:
        if not isinstance(value, float):
            return f"{value:,}" if isinstance(value, int) else str(value)
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.2f}".rstrip("0").rstrip(".")

    return markdown(table.map(cell))
