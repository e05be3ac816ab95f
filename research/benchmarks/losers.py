"""Rivals against the pooled classifier on the five data sets: who loses, found without naming anybody.

    python -m research.benchmarks.losers [data sets]

Both models are fitted on three quarters of the rows (split 100) and compared on the last one. Beside it stands what
named attributes show, and how many of the named groups that lose would have been noticed: at least half of their harm
lies in groups that were found without them, or the loss of all rows is shown to rise.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from dafh import compare
from research.benchmarks.measure import DATASETS
from research.paper.study import load_split
from research.rivals import RIVALS, make_baseline

SPLIT = 100
"""Splits from here on are for development; those before are for the paper's tables."""


def lines(name: str) -> list[dict[str, object]]:
    """One line for each rival on one data set."""
    data = load_split(name, SPLIT)
    table, y, named = data.table_test, data.y_test, data.attributes_test.reset_index(drop=True)
    old = make_baseline("pooled").fit(data.X, data.y).predict(data.X_test)
    results = []
    for rival in RIVALS:
        new = make_baseline(rival, random_state=SPLIT).fit(data.X, data.y).predict(data.X_test)
        result = compare(y, old, new, table)
        assert result.losers is not None
        harm = (new != y).astype(int) - (old != y)
        caught = np.full(len(y), result.to_frame()["answer"][0] == "loses")
        for region in result.regions:
            caught |= region.holds(table)
        answers = compare(y, old, new, None, named, depth=1).to_frame()
        losing = answers[(answers["kind"] == "named") & (answers["answer"] == "loses")]["group"]
        noticed = 0
        for group in losing:
            attribute, value = group.split(" = ", 1)
            # Values that could be mistaken for words of a sentence are quoted.
            member = named[attribute].astype(str).to_numpy() == value.strip("'")
            assert member.any(), group
            noticed += bool(harm[member & caught].sum() >= harm[member].sum() / 2)
        shown = result.losers.table[result.losers.table["shown"]]
        first = [f"{row.rule!s} ({100 * row.harm:+.1f})" for row in shown.head(2).itertuples()]
        results.append(
            {
                "data": name,
                "rival": rival,
                "gain, points": round(100 * float(result.to_frame()["gain"][0]), 2),
                "all lose": result.to_frame()["answer"][0],
                "groups that lose": len(shown),
                "the first": "; ".join(first) or "nobody",
                "named that lose": len(losing),
                "noticed": noticed,
            }
        )
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    table = pd.DataFrame([line for name in sys.argv[1:] or DATASETS for line in lines(name)])
    print(table.to_string(index=False))
    print(f"noticed: {table['noticed'].sum()} of {table['named that lose'].sum()} named groups that lose")
