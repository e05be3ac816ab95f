"""How often each group is flagged, and which errors are made: by the classifiers that serve, and by the pooled one."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import Loss
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows, LossUnits, mean_loss

ALL_ROWS = "all rows"


def decision_rates(rows: ComparedRows, labels: Sequence[object], named: NamedGroups | None) -> pd.DataFrame | None:
    """One row for all rows together, each group and each value of an attribute; None without two classes.

    Columns: group, rows, and flagged, fpr and fnr, each followed by the same with the pooled classifier.
    """
    if rows.positive is None:
        return None
    parts = [([ALL_ROWS], np.zeros(len(rows.group), np.int64)), ([str(label) for label in labels], rows.group)]
    parts += [] if named is None else list(named.cells(depth=1))
    return pd.concat([_rates(rows, names, cell) for names, cell in parts], ignore_index=True)


def _rates(rows: ComparedRows, names: list[str], cell: NDArray[np.integer]) -> pd.DataFrame:
    flagged = rows.flagged
    assert flagged is not None
    every = np.arange(len(cell))
    own = rows.own[rows.group]
    total = np.bincount(cell, rows.weight, minlength=len(names))
    columns: dict[str, object] = {"group": names, "rows": np.bincount(cell[rows.weight > 0], minlength=len(names))}
    with np.errstate(invalid="ignore"):
        for name, chosen in (("flagged", flagged[every, own]), ("flagged_pooled", flagged[:, -1])):
            columns[name] = np.bincount(cell, rows.weight * chosen, minlength=len(names)) / total
    for kind in ("fpr", "fnr"):
        columns[kind] = mean_loss(rows, Loss(kind), ~rows.own_right, cell, len(names))
        columns[f"{kind}_pooled"] = mean_loss(rows, Loss(kind), ~rows.right[:, -1], cell, len(names))
    return pd.DataFrame(columns)


def break_even(rates: pd.Series, name: str) -> float:
    """How many times as much an error of this kind may cost as one of the other kind, until nothing is gained.

    NaN if the other kind does not fall, or if nothing is known about it.

    Examples
    --------
    Of 100 rows, half of them positive: 5 misses more, and 15 false alarms fewer.

    >>> row = {"flagged": 0.3, "fpr": 0.1, "fpr_pooled": 0.4, "fnr": 0.5, "fnr_pooled": 0.4}
    >>> round(break_even(pd.Series(row), "fnr"), 2)
    3.0
    """
    known = 1 - rates["fnr"] - rates["fpr"]
    # The share of positive rows, from those flagged: flagged = fpr (1 − share) + (1 − fnr) share.
    share = (rates["flagged"] - rates["fpr"]) / known if abs(known) > 1e-9 else np.nan
    errors = {
        "fpr": (rates["fpr"] - rates["fpr_pooled"]) * (1 - share),
        "fnr": (rates["fnr"] - rates["fnr_pooled"]) * share,
    }
    fewer, more = -errors["fpr" if name == "fnr" else "fnr"], errors[name]
    return float(fewer / more) if fewer > 0 and more > 0 else np.nan


def total_losses(rows: ComparedRows, losses: Sequence[Loss], level: float) -> pd.DataFrame:
    """One row per loss, over all rows: own_loss, pooled_loss, gain with its interval low to high, and p of no gain."""
    every, everybody = np.arange(len(rows.group)), np.zeros(len(rows.group), np.intp)
    table = []
    for loss in losses:
        units = LossUnits.of(rows, loss)
        found = units.differences([units.tally(every, rows.own_right, rows.right[:, -1])])
        own, pooled = (mean_loss(rows, loss, ~right, everybody, 1)[0] for right in (rows.own_right, rows.right[:, -1]))
        low, high = found.gain_limits(level / 2)
        table.append((loss.name, own, pooled, found.gain[0], low[0], high[0], found.p_within(0.0)[0]))
    return pd.DataFrame(table, columns=["loss", "own_loss", "pooled_loss", "gain", "low", "high", "p_no_gain"])


def error_limits(rows: ComparedRows, level: float) -> NDArray[np.float64]:
    """Lower and upper limit of every classifier's error rate in every group, (2, G, M + 1).

    For rows that count alike they are Clopper and Pearson's; weights and persons with several rows are allowed for.
    """
    units, n_groups = LossUnits.of(rows, Loss()), len(rows.own)
    members = [np.flatnonzero(rows.group == g) for g in range(n_groups)]
    # Against a rival that is never wrong the harm is the error rate; with right and wrong exchanged, the accuracy. All
    # limits are found in one search: with two for each classifier they were most of the time of a small audit.
    tallies = [
        units.tally_all(m, decided[m], np.ones((len(m), 1), bool))
        for decided in (~rows.right, rows.right)
        for m in members
    ]
    distinct, place = units.differences(tallies).distinct()
    limits = distinct.upper(level / 2)[place].reshape(2, n_groups, -1)
    return np.stack([1 - limits[0], limits[1]])
