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
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split

from dafh import compare, tabular_pipeline
from dafh.datasets import fetch_adult, fetch_arrest, fetch_bank, fetch_german, fetch_violent
from research.rivals import RIVALS, make_baseline

DATASETS = {
    "german": fetch_german,
    "arrest": fetch_arrest,
    "violent": fetch_violent,
    "bank": fetch_bank,
    "adult": fetch_adult,
}
SPLIT = 100


def losing_rows(y: NDArray[np.intp], old: NDArray[np.intp], new: NDArray[np.intp]) -> NDArray[np.intp]:
    """Loss of each row with the new model minus that with the old one."""
    return (new != y).astype(int) - (old != y)


def lines(name: str) -> list[dict[str, object]]:
    """One line for each rival on one data set."""
    data = DATASETS[name]()
    y = data.y.to_numpy().astype(int)
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=SPLIT)
    table, named = data.X.iloc[test].reset_index(drop=True), data.sensitive_features.iloc[test].reset_index(drop=True)
    encoder = tabular_pipeline(DummyClassifier())[:-1].fit(data.X.iloc[train])
    X, X_test = (np.asarray(encoder.transform(data.X.iloc[rows]), np.float64) for rows in (train, test))
    old = make_baseline("pooled").fit(X, y[train]).predict(X_test)
    found = []
    for rival in RIVALS:
        new = clone(make_baseline(rival, random_state=SPLIT)).fit(X, y[train]).predict(X_test)
        result = compare(y[test], old, new, table)
        assert result.losers is not None
        harm, caught = losing_rows(y[test], old, new), np.zeros(len(test), bool)
        caught |= bool((result.everybody["verdict"] == "violated").any())
        for region in result.regions:
            caught |= region.holds(table)
        answers = compare(y[test], old, new, None, named, depth=1).to_frame()
        losing = answers[(answers["kind"] == "named") & (answers["answer"] == "loses")]["group"]
        noticed = 0
        for group in losing:
            attribute, value = group.split(" = ", 1)
            value = value.strip("'")  # Values that could be mistaken for words of a sentence are quoted.
            member = named[attribute].astype(str).to_numpy() == value
            assert member.any(), group
            noticed += bool(harm[member & caught].sum() >= harm[member].sum() / 2)
        shown = result.losers.table[result.losers.table["shown"]]
        found.append(
            {
                "data": name,
                "rival": rival,
                "gain, points": round(100 * float(result.everybody["gap"].iloc[0]), 2),
                "all lose": str(result.everybody["verdict"].iloc[0]),
                "groups that lose": len(shown),
                "the first": "; ".join(f"{row.rule!s} ({100 * row.harm:+.1f})" for row in shown.head(2).itertuples())
                or "nobody",
                "named that lose": len(losing),
                "noticed": noticed,
            }
        )
        print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    table = pd.DataFrame([line for name in sys.argv[1:] or DATASETS for line in lines(name)])
    print(table.to_string(index=False))
    print(f"noticed: {table['noticed'].sum()} of {table['named that lose'].sum()} named groups that lose")
