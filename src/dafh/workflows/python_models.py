"""Models that were saved from Python, for commands: what their columns hold is known, what else there is, is not."""

from typing import Any

from sklearn.pipeline import Pipeline

from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.incumbents import IncumbentColumns
from dafh.linear.scorecard import Scorecard
from dafh.tables.encoder import TableEncoder
from dafh.tables.reader import TableReader
from dafh.tables.schema import TableSchema
from dafh.text import quoted


def schema_of_model(model: Any, target: str) -> TableSchema:
    """Make a schema of what a model has learned about its columns.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "job": ["cook", "clerk"] * 50})
    >>> schema_of_model(DAFHClassifier(1).fit(people, [0, 0, 1, 1] * 25), "hired").features
    {'age': 'number', 'job': 'category'}
    """
    final = final_classifier(model)
    if isinstance(final, Scorecard):
        raise InputError("This file holds one scorecard, and commands work on groups: use it in Python, or export it.")
    kinds = _kinds(model[0] if isinstance(model, Pipeline) else model)
    aside = getattr(final, "_aside", None) or ()
    pooled = {name: kinds.get(name) or _kind_aside(name, final.pooled_) for name in aside}
    return TableSchema(target, {name: kind for name, kind in kinds.items() if name not in pooled}, pooled=pooled)


def _kinds(first: Any) -> dict[str, str]:
    """Name and kind of the columns that a step takes."""
    if isinstance(first, TableReader):
        return dict(first.columns_)
    if isinstance(first, TableEncoder):
        return {column.name: column.kind for column in first.columns_}
    if not hasattr(first, "feature_names_in_"):
        raise InputError(
            "This model was fitted on an array in Python and does not know its columns by name: fit it on a data frame."
        )
    names = [str(name) for name in first.feature_names_in_]
    binning = first._view.binning if isinstance(first, DAFHClassifier) else None
    # Whatever else stands first takes numbers.
    found = ["number"] * len(names) if binning is None else [column.kind for column in binning.columns]
    return dict(zip(names, found, strict=True))


def _kind_aside(name: str, pooled: Any) -> str:
    """Kind of a column that only the pooled classifier sees, which nobody has looked at."""
    if isinstance(pooled, IncumbentColumns):
        return "number" if name == pooled.score else "category"
    raise InputError(
        f"This model does not say what the column {quoted(name)} of its pooled classifier holds: fit it behind "
        "tabular_pipeline, which keeps that."
    )
