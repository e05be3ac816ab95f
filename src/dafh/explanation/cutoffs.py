"""Whether a model in use would make fewer errors at another cut-off than its own."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dafh.classifiers.pipelines import split_pipeline
from dafh.frames import Table
from dafh.incumbents import Incumbent, IncumbentColumns
from dafh.text import percent

# Less than this, one percentage point of accuracy, is not worth a word.
_SMALLEST_GAIN = 0.01
# Standard errors beyond which a difference on the same rows is no chance.
_SURE = 3.0


def cutoff_in_words(model: Any, X: Table, y: ArrayLike) -> str | None:
    """Say what the incumbent of a fitted DAFHClassifier, or of a pipeline that ends in one, would gain at one half.

    None if that is next to nothing, if the pooled classifier is none that the user brought, or if it has no
    probabilities of its own.

    Own classifiers keep the cut-off of the incumbent. A cut-off that is wrong is therefore not mended by groups, and
    whoever brought it should know; a cut-off that weighs errors differently is on purpose.

    Examples
    --------
    >>> import pandas as pd
    >>> from dafh import DAFHClassifier, IncumbentColumns
    >>> rows = pd.DataFrame({"score": np.tile(np.linspace(0.02, 0.98, 25), 20), "x": np.arange(500) % 7})
    >>> y = (rows["score"] > 0.5).astype(int)
    >>> model = DAFHClassifier(1, pooled=IncumbentColumns("score", threshold=0.1)).fit(rows, y)
    >>> print(cutoff_in_words(model, rows, y).split(", ")[1])
    and gets 60.0% of these rows right. At 0.5 it would be 100.0%.
    """
    final, rows = split_pipeline(model, X)
    pooled = getattr(final, "pooled_", None)
    brought = isinstance(pooled, Incumbent | IncumbentColumns) or getattr(final, "pooled", None) is pooled
    if not brought or len(final.classes_) != 2 or getattr(pooled, "_shares", None) is not None:
        return None
    if final.threshold is not None or final.costs is not None:  # Own classifiers have been told where to decide.
        return None
    positive = np.asarray(y) == final.classes_[1]
    decided = (final.predict_all(rows)[:, -1] == final.classes_[1]) == positive
    at_half = (final.pooled_proba(rows)[:, 1] > 0.5) == positive
    difference = at_half.astype(float) - decided
    gain, error = float(difference.mean()), float(difference.std()) / np.sqrt(len(difference))
    if gain < _SMALLEST_GAIN or gain < _SURE * error:
        return None
    return (
        f"The model in use decides at a probability of about {final.threshold_:.2g}, and gets "
        f"{percent(decided.mean())} of these rows right. At 0.5 it would be {percent(at_half.mean())}."
    )
