"""Models of hostile tables as SQL: names, categories and labels that would be code in a statement."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dafh import DAFHClassifier, Scorecard
from dafh.exceptions import InputError
from dafh.sql import DIALECTS, to_sql
from databases import ENGINES, HOSTILE, WORDS, check
from fuzz.cases import Case, Kind, refused, without_parts

_WORDS = [*HOSTILE, *WORDS, "a'b", "''", "a;b", "--", "/*", "*/", "`", "[a]", "\\", "%", "?", ":a", "@a", "$$", "{",
"é" * 40,
          "x" * 300, "select", "from", "group", "id ", "ID", "Id", "null", "rows", "0", "\u0000", "\ufeff"]  # fmt: skip


def draw(rng: np.random.Generator) -> Case:
    """Draw the words of a table, and what it is exported to."""
    chosen = [_WORDS[i] for i in rng.choice(len(_WORDS), int(rng.integers(1, 5)), replace=False)]
    # Databases do not tell names apart by case, and the table gets a column "id".
    names = list({name.lower(): name for name in chosen if name.lower() != "id"}.values()) or ["job"]
    words = [_WORDS[i] for i in rng.choice(len(_WORDS), int(rng.integers(2, 8)), replace=False)]
    labels = [_WORDS[i] for i in rng.choice(len(_WORDS), int(rng.choice([2, 2, 3])), replace=False)]
    engine = str(rng.choice(ENGINES))
    return {
        "names": names,
        "words": words,
        "labels": labels,
        "engine": engine,
        "dialect": str(rng.choice(list(DIALECTS))),
        "table": _WORDS[rng.integers(len(_WORDS))] if rng.random() < 0.5 else "people",
        "groups": bool(rng.random() < 0.3),
        "seed": int(rng.integers(1000)),
    }


def run_case(case: Case, folder: Path) -> str:
    """Fit a model, and compare what its statement says in a database; other dialects are only written."""
    rng = np.random.default_rng(case["seed"])
    n = 60
    table = pd.DataFrame({name: rng.choice(np.array(case["words"], object), n) for name in case["names"]})
    labels = np.array(case["labels"], object)
    y = labels[np.where(rng.random(n) < 0.8, table.iloc[:, 0].map(len).to_numpy() % len(labels), 0)]
    y[: len(labels)] = labels
    model = DAFHClassifier(2, groups="rules", pooled="linear", random_state=0) if case["groups"] else Scorecard()
    try:
        model.fit(table, y)
        to_sql(model, case["dialect"], case["table"])
        # No name of a column in a database has the letter NUL: such labels lose it in the name of their probability.
        if not any("\0" in label for label in case["labels"]):
            check(model, table, case["engine"])
    except InputError as error:
        return refused(error)
    return "accepted"


def smaller(case: Case) -> Iterator[Case]:
    """Leave out names, words and labels."""
    for entry, least in (("names", 1), ("words", 2), ("labels", 2)):
        for left in without_parts(case[entry]):
            if len(left) >= least:
                yield case | {entry: left}
    if case["table"] != "people":
        yield case | {"table": "people"}
    if case["groups"]:
        yield case | {"groups": False}


EXPORTS = Kind("exports", draw, run_case, smaller)
