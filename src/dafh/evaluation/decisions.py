"""Decisions of any models about the same rows: labels, scores that are cut, or models that are asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.bins import named_table
from dafh.columns.labels import find_labels
from dafh.evaluation.compared import ComparedRows
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.text import listed, quoted, shown
from dafh.validation import as_array, is_real


@dataclass(frozen=True, eq=False)
class Decided:
    """Decisions of one model, as positions of classes, and the scores behind them."""

    codes: NDArray[np.intp]
    score: NDArray[np.float64] | None = None


def decide(
    y: ArrayLike | None, deciders: Mapping[str, tuple[Any, float]], X: Any
) -> tuple[list[Decided], NDArray[Any]]:
    """Decisions of each model, given with its cut-off, and the classes they decide between.

    What holds only labels of y is labels; numbers from 0 to 1 otherwise are scores, cut at the cut-off.

    Examples
    --------
    >>> (old, new), classes = decide(["no", "yes"], {"old": (["no", "no"], 0.5), "new": ([0.2, 0.9], 0.5)}, None)
    >>> old.codes, new.codes, classes.tolist()
    (array([0, 0]), array([0, 1]), ['no', 'yes'])
    """
    columns = {name: _outputs(decider, name, X) for name, (decider, _) in deciders.items()}
    if y is not None:
        truth = as_array(y, "y")
        if truth.ndim != 1 or not len(truth):
            raise InputError(f"y must have one label for each row, got shape {truth.shape}.")
        if pd.isna(truth).any():
            raise InputError("y has missing values: leave those rows out.")
        classes = np.unique(truth)
        for name, values in columns.items():
            if len(values) != len(truth):
                raise InputError(f"{name} has {len(values):,} decisions for {len(truth):,} labels in y.")
    else:
        labels = [values for values in columns.values() if not _is_score(values, np.array([0, 1]))]
        classes = np.unique(np.concatenate(labels)) if labels else np.array([0, 1])
        if len(classes) != 2:
            raise InputError("Without y, old and new must decide between two labels, or be scores from 0 to 1.")
        if len({len(values) for values in columns.values()}) > 1:
            raise InputError("old and new have different numbers of rows: both must decide about the same rows.")
    return [_decided(values, name, deciders[name][1], classes) for name, values in columns.items()], classes


def _outputs(decider: Any, name: str, X: Any) -> NDArray[Any]:
    """Labels or scores as an array; those of a model are its own decisions about X."""
    if hasattr(decider, "predict"):
        if X is None:
            raise InputError(f"{name} is a model: pass the rows X that it decides about.")
        decider = decider.predict(X)
    values = as_array(decider, name)
    if values.ndim != 1 or not len(values):
        raise InputError(f"{name} must have one label or score for each row, got shape {values.shape}.")
    if pd.isna(values).any():
        raise InputError(f"{name} has missing values: a model has to decide about every row.")
    return values


def _decided(values: NDArray[Any], name: str, cutoff: float, classes: NDArray[Any]) -> Decided:
    if _is_score(values, classes):
        if len(classes) != 2:
            raise InputError(f"{name} holds scores, and y has {len(classes)} labels: scores need two.")
        if not is_real(cutoff) or not 0 <= cutoff < 1:
            raise InputError(f"The cut-off of {name} must be at least 0 and below 1, got {shown(cutoff)}.")
        score = values.astype(np.float64)
        return Decided((score > cutoff).astype(np.intp), score)
    codes, strange = find_labels(pd.Series(values), classes)
    if strange is not None:
        labels = listed([quoted(label) for label in classes[:5]])
        raise InputError(
            f"{name} holds {quoted(strange)}, which is neither a label of y ({labels}) nor a score from 0 to 1."
        )
    return Decided(codes)


def _is_score(values: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether values are numbers from 0 to 1 that are not all labels."""
    if values.dtype.kind not in "fiu" or np.isin(values, classes).all():
        return False
    return bool(((values >= 0) & (values <= 1)).all())


def compare_two(
    truth: NDArray[np.intp],
    own: NDArray[np.intp],
    rival: NDArray[np.intp],
    classes: NDArray[Any],
    sample_weight: ArrayLike | None,
    persons: ArrayLike | None,
) -> ComparedRows:
    """Decisions beside those of a rival, in one group of all rows; labels are positions of classes."""
    group, positions = np.zeros(len(own), np.intp), np.arange(len(classes))
    return ComparedRows.check(
        truth, own[:, None], group, rival, sample_weight=sample_weight, classes=positions, persons=persons
    )


def features_of(X: Table, n_rows: int) -> pd.DataFrame:
    """What rules may be about, one row for each decision."""
    table = named_table(X).reset_index(drop=True)
    if len(table) != n_rows:
        raise InputError(f"X has {len(table):,} rows, and there are {n_rows:,} decisions: give one row for each.")
    return table
