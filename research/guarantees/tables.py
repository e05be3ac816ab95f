"""All tables of the check, in the order of docs/guarantee.md."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from research.guarantees.audits import audit_table
from research.guarantees.coverage import cost_table, limit_table, weighted_table
from research.guarantees.fits import fit_table
from research.guarantees.proof import guard_table, power_table, scenario_table
from research.guarantees.recommendations import recommendation_table
from research.guarantees.veto import bias_table, veto_table
from dafh.text import markdown

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "Limits that are missed at worst, by enumeration, rows that count alike": limit_table,
    "The same for costs (false positive 1, false negative 5)": cost_table,
    "The same by simulation for weights that are related to what is compared": weighted_table,
    'Worlds harmed by "proof" at level 5%, by number of groups': guard_table,
    'Worlds harmed by "proof" at level 5%, by scenario': scenario_table,
    'Fits harmed by "proof" at level 5%, labels that cannot be predicted better': fit_table,
    "Own classifiers kept by Bonferroni's method and by Holm's": power_table,
    'Gain that "veto" judges, and the true one': bias_table,
    'Own classifiers kept by "veto"': veto_table,
    "Audits with a wrong answer": audit_table,
    "Recommendations": recommendation_table,
}


def as_markdown(table: pd.DataFrame) -> str:
    """Write a table of shares in percent; ratios, whole numbers and words are left alone."""

    def text(value: object, name: str) -> str:
        if isinstance(value, (int, np.integer)):
            return f"{value:,}"
        if isinstance(value, str):
            return value
        return f"{value:.3f}" if "ratio" in name else f"{100 * float(str(value)):.2f}"

    return markdown(pd.DataFrame({name: [text(v, str(name)) for v in table[name].tolist()] for name in table}), "---:")


def written() -> Iterator[str]:
    """Write one table after the other; all of them take half an hour on one core."""
    for title, make in TABLES.items():
        yield f"{title}, in percent:\n\n{as_markdown(make())}\n"
