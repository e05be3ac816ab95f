"""Rivals against the pooled classifier on the five data sets: who loses, and whom the pooled one fails, without names.

    python -m research.benchmarks.losers [data sets]

Rivals are linear models, tuned without attributes by Antigone. Both models are fitted on three quarters of the rows and
compared on the last one. Beside it stands what named attributes show, and how many of the named groups that lose would
have been noticed without them: at least half of their harm lies in discovered groups that are shown to lose, or the
loss of all rows is shown to rise.
"""

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dafh import compare, find_failures
from dafh.evaluation.failures import Failures
from research.paper.plan import DATASETS
from research.paper.study import Split, load_split
from research.rivals import RIVALS, make_baseline
from research.rivals.tuning import tune

SPLITS = (100, 101, 102)
"""Splits from 100 on are for development; those before are for the paper's tables."""
_TUNING_ROWS = 10_000


def rival_decisions(name: str, data: Split, split: int) -> np.ndarray:
    """Decisions of a tuned rival about the test rows."""
    unfitted = make_baseline(name, random_state=split).estimator
    setting = tune(unfitted, data.X, data.y, max_rows=_TUNING_ROWS, random_state=split).best("antigone")
    return make_baseline(name, random_state=split, **setting).fit(data.X, data.y).predict(data.X_test)


def comparisons(dataset: str, split: int) -> Iterator[dict[str, object]]:
    """One line for each rival."""
    data = load_split(dataset, split)
    table, y = data.table_test, data.y_test
    # Two groups of races stand beside the races themselves.
    attributes = data.attributes_test.drop(columns="race_group", errors="ignore").reset_index(drop=True)
    old = make_baseline("pooled").fit(data.X, data.y).predict(data.X_test)
    for rival in RIVALS:
        new = rival_decisions(rival, data, split)
        result = compare(y, old, new, table)
        assert result.losers is not None
        harm = (new != y).astype(int) - (old != y)
        discovered = np.logical_or.reduce([np.zeros(len(y), bool), *(rule.holds(table) for rule in result.regions)])
        answers = compare(y, old, new, None, attributes, depth=1).to_frame()
        losing = answers[(answers["kind"] == "named") & (answers["answer"] == "loses")].sort_values("gain")
        n_discovered = 0
        for group in losing["group"]:
            attribute, value = group.split(" = ", 1)
            # Values that could be mistaken for words of a sentence are quoted.
            member = attributes[attribute].astype(str).to_numpy() == value.strip("'")
            assert member.any(), group
            n_discovered += bool(harm[member & discovered].sum() >= harm[member].sum() / 2)
        rules = result.losers.table[result.losers.table["shown"]]
        all_lose = result.to_frame()["answer"][0] == "loses"
        yield {
            "data": dataset,
            "split": split,
            "rival": rival,
            "gain, points": round(100 * float(result.to_frame()["gain"][0]), 2),
            "all rows lose": all_lose,
            "discovered groups that lose": len(rules),
            "the first": f"{rules['rule'].iloc[0]} ({-100 * rules['harm'].iloc[0]:+.1f})" if len(rules) else "nobody",
            "named groups that lose": len(losing),
            "the worst": f"{losing['group'].iloc[0]} ({100 * losing['gain'].iloc[0]:+.1f})"
            if len(losing)
            else "nobody",
            "noticed by rules": n_discovered,
            "noticed": len(losing) if all_lose else n_discovered,
        }


def failures(dataset: str, split: int = SPLITS[0]) -> tuple[Failures, pd.DataFrame]:
    """Groups that the pooled classifier fails on the test rows, and these rows with labels and decisions."""
    data = load_split(dataset, split)
    predicted = make_baseline("pooled").fit(data.X, data.y).predict(data.X_test)
    found = find_failures(data.y_test, predicted, data.table_test, sensitive_features=data.attributes_test)
    return found, data.table_test.assign(_y=data.y_test, _predicted=predicted)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or DATASETS
    for name in names:
        print(name, failures(name)[0], sep="\n\n", end="\n\n")
    lines = pd.DataFrame([line for name in names for split in SPLITS for line in comparisons(name, split)])
    print(lines.to_string(index=False))
    n_losing = lines["named groups that lose"].sum()
    print(
        f"{n_losing} named groups lose; noticed: {lines['noticed'].sum()}, {lines['noticed by rules'].sum()} by rules"
    )
