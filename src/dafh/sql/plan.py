"""A fitted model taken apart into what SQL can express: regions, points and cut-offs.

Nothing here knows SQL. What cannot be expressed is refused here, in one sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import final_classifier
from dafh.columns.bins import Binning
from dafh.columns.encoder import TableReader
from dafh.columns.schema import TableSchema
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.prediction import LARGEST_LOGIT
from dafh.exceptions import InputError
from dafh.groups.trained import ExceptionModel
from dafh.incumbents import Incumbent
from dafh.linear.scorecard import Scorecard
from dafh.regions.conditions import Region


@dataclass(frozen=True, eq=False)
class Points:
    """A score that adds points by bin."""

    binning: Binning
    points: tuple[NDArray[np.float64], ...]
    """By column, (bins, m)."""
    intercept: NDArray[np.float64]
    """(m,)."""


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to the pooled logits of the rows of some groups."""

    groups: tuple[int, ...]
    score: Points


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that decides about a row."""

    columns: Mapping[str, str]
    """Name and kind of each column the model takes."""
    has_gap_words: bool
    """Whether words such as "NA" are gaps, as in files; in data frames they are text."""
    classes: NDArray[Any]
    pooled: Points
    pooled_cutoff: float
    """Logit above which the pooled classifier predicts the second of two classes."""
    regions: tuple[Region, ...] | None = None
    """Exceptions in order; None for a model without groups."""
    left_to_pooled: tuple[int, ...] = ()
    """Groups that the pooled classifier serves."""
    corrections: tuple[Correction, ...] = ()
    cutoff: float = 0.0
    """The same logit for own classifiers."""
    # Beyond e^700 to 1, some databases stop with an error instead of giving 0 or 1.
    largest_logit: float = 700.0
    """Larger logits count as this one."""
    points: tuple[float, float] | None = None
    """Scaled points: those of even odds, and those of a logit of 1."""

    @property
    def n_outputs(self) -> int:
        """Number of logits."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def categories(self) -> dict[str, set[str]]:
        """Names of the categories that any part of the model knows, by column."""
        found: dict[str, set[str]] = {}
        for condition in (one for region in self.regions or () for one in region.conditions):
            if condition.is_category:
                found.setdefault(condition.column, set()).update(condition.values)
        for column in self.pooled.binning.columns:
            if column.is_category:
                found.setdefault(column.name, set()).update(column.categories)
        return found


def make_plan(model: Any, schema: TableSchema | None) -> Plan:
    """Take a fitted model apart: `DAFHClassifier` or `Scorecard`, alone or behind a step that reads tables."""
    check_is_fitted(model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    final = final_classifier(model)
    reader = steps[0] if len(steps) == 2 and isinstance(steps[0], TableReader) else None
    if len(steps) > (1 if reader is None else 2):
        raise InputError(f"Steps before {type(final).__name__} cannot be exported, but for the one that reads tables.")
    parts = _parts_of_groups(final) if isinstance(final, DAFHClassifier) else _parts_of_scorecard(final)
    if isinstance(final, Scorecard) and final.scaling is not None:
        parts["points"] = final.scaling.start, final.scaling.factor(final.classes_.tolist())
    learned = {column.name: column.kind for column in parts["pooled"].binning.columns}
    columns = schema.features if schema is not None else learned if reader is None else reader.columns_
    if "" in columns:
        raise InputError(
            "A column of the model has no name, and no database has such a column: name it, and fit again."
        )
    if not set(learned) <= set(columns):
        raise InputError(
            "The parts of this model, or its schema, call the columns by different names: it cannot be exported."
        )
    return Plan(columns=columns, has_gap_words=schema is not None, classes=final.classes_, **parts)


def _parts_of_groups(model: DAFHClassifier) -> dict[str, Any]:
    if not isinstance(model._trained, ExceptionModel):
        raise InputError(
            "The groups of this model are found by a network, which cannot be exported: use method='exceptions'."
        )
    parts = _parts_of_scorecard(model.pooled_)
    if not np.array_equal(model.pooled_.classes_, model.classes_):
        raise InputError(
            "The pooled classifier of this model knows other labels than the model: it cannot be exported."
        )
    by_server: dict[int, list[int]] = {}
    for group, server in enumerate(model.serves_.tolist()):
        by_server.setdefault(server, []).append(group)
    left = by_server.pop(model.n_groups_, [])
    return {
        **parts,
        "regions": model._trained.regions,
        "left_to_pooled": tuple(left),
        "corrections": tuple(_correction(model, server, groups) for server, groups in by_server.items()),
        "cutoff": float(logit(model.threshold_)),
        "largest_logit": LARGEST_LOGIT,
    }


def _parts_of_scorecard(model: Any) -> dict[str, Any]:
    """Return the score of a classifier for all rows, and its cut-off."""
    if not isinstance(model, Scorecard):
        raise InputError(f"This model needs a {_name(model)}, which cannot be exported: only scorecards can.")
    score = Points(model.binning_, tuple(model.points_), model.intercept_)
    return {"pooled": score, "pooled_cutoff": float(logit(model.threshold_))}


def _name(model: Any) -> str:
    """Name a classifier by what people know it by: not by its wrapper, nor by the encoder before it."""
    last = final_classifier(model)
    last = last.model if isinstance(last, Incumbent) else last
    return type(getattr(last, "trained_as", last)).__name__


def _correction(model: DAFHClassifier, server: int, groups: list[int]) -> Correction:
    corrections: Any = model._trained.corrections  # type: ignore[union-attr]
    assert model._view.binning is not None
    points = tuple(table[server] for table in corrections.points)
    return Correction(tuple(groups), Points(model._view.binning, points, corrections.intercept[server]))
