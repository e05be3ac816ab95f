"""A fitted model taken apart into what SQL can express: regions, points, weights and cut-offs.

Nothing here knows SQL. What cannot be expressed is refused here, in one sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.prediction import LARGEST_LOGIT
from dafh.exceptions import InputError
from dafh.groups.corrections import LinearCorrections, PointCorrections
from dafh.groups.trained import ExceptionModel
from dafh.incumbents import Incumbent, IncumbentColumns
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard
from dafh.regions.conditions import Region
from dafh.tables.bins import Binning
from dafh.tables.column import Column
from dafh.tables.encoder import TableEncoder, TableReader
from dafh.tables.schema import TableSchema


@dataclass(frozen=True, eq=False)
class Points:
    """A score that adds points by bin."""

    binning: Binning
    points: tuple[NDArray[np.float64], ...]
    """By column, (bins, m)."""
    intercept: NDArray[np.float64]
    """(m,)."""


@dataclass(frozen=True, eq=False)
class Weights:
    """A score that is linear in the columns as numbers."""

    encoder: TableEncoder | None
    """None where the columns are numbers already."""
    weight: NDArray[np.float64]
    """(columns as numbers, m)."""
    intercept: NDArray[np.float64]
    """(m,)."""


Score = Points | Weights


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to the pooled logits of the rows of some groups."""

    groups: tuple[int, ...]
    score: Score
    of_logits: NDArray[np.float64]
    """What is added for the pooled logits themselves, (m, m) or (0, m)."""
    logit_points: tuple[tuple[Column, NDArray[np.float64]], ...] = ()
    """Bins of the pooled logits, and the points for them, (bins, m), where those have points instead."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that decides about a row."""

    columns: Mapping[str, str]
    """Name and kind of each column the model takes."""
    has_gap_words: bool
    """Whether words such as "NA" are gaps, as in files; in data frames they are text."""
    classes: NDArray[Any]
    pooled: Score
    pooled_cutoff: float
    """Logit above which the pooled classifier predicts the second of two classes."""
    regions: tuple[Region, ...] | None = None
    """Exceptions in order; None for a model without groups."""
    is_clipped: bool = False
    """Whether corrections start from the logits of clipped probabilities, and not from the score itself."""
    left_to_pooled: tuple[int, ...] = ()
    """Groups that the pooled classifier serves."""
    corrections: tuple[Correction, ...] = ()
    cutoff: float = 0.0
    """The same logit for own classifiers."""
    # Beyond e^700 to 1, some databases stop with an error instead of giving 0 or 1.
    largest_logit: float = 700.0
    """Larger logits count as this one."""

    @property
    def n_outputs(self) -> int:
        """Number of logits."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def scores(self) -> list[Score]:
        """All scores: of the pooled classifier, and of the corrections."""
        return [self.pooled, *(correction.score for correction in self.corrections)]

    @property
    def categories(self) -> dict[str, set[str]]:
        """Names of the categories that any part of the model knows, by column."""
        described: list[Column] = []
        for score in self.scores:
            described += _described(score) or []
        found: dict[str, set[str]] = {}
        for condition in (one for region in self.regions or () for one in region.conditions):
            if condition.is_category:
                found.setdefault(condition.column, set()).update(condition.values)
        for column in described:
            if column.is_category:
                found.setdefault(column.name, set()).update(column.categories)
        return found


def make_plan(model: Any, schema: TableSchema | None) -> Plan:
    """Take a fitted model apart: `DAFHClassifier`, `Scorecard` or logistic regression, alone or behind a table step."""
    check_is_fitted(model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    final = final_classifier(model)
    reader = steps[0] if len(steps) == 2 and isinstance(steps[0], TableReader) else None
    if isinstance(final, DAFHClassifier | Scorecard) and len(steps) > (1 if reader is None else 2):
        raise InputError(f"Steps before {type(final).__name__} cannot be exported, but for the one that reads tables.")
    if isinstance(final, DAFHClassifier):
        parts = _parts_of_groups(final)
    else:
        score, cutoff = _score_of(final if reader else model)
        parts = {"pooled": score, "pooled_cutoff": cutoff}
    columns = (
        schema.features if schema is not None else _known_kinds(parts, final) if reader is None else reader.columns_
    )
    plan = Plan(columns=columns, has_gap_words=schema is not None, classes=final.classes_, **parts)
    if "" in plan.columns:
        raise InputError(
            "A column of the model has no name, and no database has such a column: name it, and fit again."
        )
    if not all(_fits(score, list(columns)) for score in plan.scores):
        raise InputError(
            "The parts of this model, or its schema, call the columns by different names: it cannot be exported."
        )
    return plan


def _fits(score: Score, names: list[str]) -> bool:
    """Whether the columns of a score are those of the table."""
    described = _described(score)
    if described is not None:
        return {column.name for column in described} <= set(names)
    return isinstance(score, Weights) and len(score.weight) in (0, len(names))


def _described(score: Score) -> Sequence[Column] | None:
    """Columns that a score has learned something about; None where it takes them as they are."""
    if isinstance(score, Points):
        return score.binning.columns
    return None if score.encoder is None else score.encoder.columns_


def _known_kinds(parts: Mapping[str, Any], final: Any) -> dict[str, str]:
    """Name and kind of the columns by what a model has learned about them; those of an array are x0, x1, ..."""
    binning = final._view.binning if isinstance(final, DAFHClassifier) else None
    described = _described(parts["pooled"]) if binning is None else binning.columns
    if described is not None:
        return {column.name: column.kind for column in described}
    names = getattr(final, "feature_names_in_", [f"x{number}" for number in range(final.n_features_in_)])
    return {str(name): "number" for name in names}


def _parts_of_groups(model: DAFHClassifier) -> dict[str, Any]:
    if not isinstance(model._trained, ExceptionModel):
        raise InputError(
            "The groups of this model are found by a network, which cannot be exported: use method='exceptions'."
        )
    pooled, cutoff = _score_of(model.pooled_)
    if not np.array_equal(model.pooled_.classes_, model.classes_):
        raise InputError(
            "The pooled classifier of this model knows other labels than the model: it cannot be exported."
        )
    by_server: dict[int, list[int]] = {}
    for group, server in enumerate(model.serves_.tolist()):
        by_server.setdefault(server, []).append(group)
    left = by_server.pop(model.n_groups_, [])
    return {
        "regions": model._trained.regions,
        "pooled": pooled,
        "pooled_cutoff": cutoff,
        # As `pooled_logits` has it: only a scorecard whose bins are shared gives its score as it is.
        "is_clipped": not (isinstance(pooled, Points) and pooled.binning is model._view.binning),
        "left_to_pooled": tuple(left),
        "corrections": tuple(_correction(model, server, groups) for server, groups in by_server.items()),
        "cutoff": float(logit(model.threshold_)),
        "largest_logit": LARGEST_LOGIT,
    }


def _score_of(model: Any) -> tuple[Score, float]:
    """Return the score of a classifier for all rows, and its cut-off."""
    *before, last = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if isinstance(last, Scorecard) and not before:
        return Points(last.binning_, tuple(last.points_), last.intercept_), float(logit(last.threshold_))
    encoder = before[0] if len(before) == 1 and isinstance(before[0], TableEncoder) else None
    if isinstance(last, LogisticRegression) and len(before) == (encoder is not None) and _is_softmax(last):
        cutoff = float(logit(last.threshold_)) if isinstance(last, StandardizedLogisticRegression) else 0.0
        weight = np.asarray(last.coef_.toarray() if hasattr(last.coef_, "toarray") else last.coef_).T
        return Weights(encoder, weight, np.broadcast_to(last.intercept_, weight.shape[1])), cutoff
    if isinstance(last, IncumbentColumns):
        raise InputError(
            f"The pooled classifier of this model is read from columns of the table ({', '.join(last.columns)}), which "
            "cannot be exported: score with predict, or fit with a scorecard or a logistic regression."
        )
    last = last.model if isinstance(last, Incumbent) else last
    name = type(getattr(last, "trained_as", last)).__name__
    behind = f" behind a {type(before[-1]).__name__}" if before and isinstance(last, LogisticRegression) else ""
    raise InputError(
        f"This model needs a {name}{behind}, which cannot be exported: scorecards and logistic regressions can."
    )


def _is_softmax(model: LogisticRegression) -> bool:
    """Whether probabilities are the logistic function, or softmax, of the scores; older versions have other ways."""
    default = getattr(model, "multi_class", "auto") in ("auto", "deprecated")
    return default and (len(model.classes_) == 2 or model.solver != "liblinear")


def _correction(model: DAFHClassifier, server: int, groups: list[int]) -> Correction:
    corrections: Any = model._trained.corrections  # type: ignore[union-attr]
    intercept = corrections.intercept[server]
    nothing = np.zeros((0, len(intercept)))
    if isinstance(corrections, PointCorrections):
        assert model._view.binning is not None
        points = tuple(table[server] for table in corrections.points)
        n_columns = len(model._view.binning.columns)
        of_logits = tuple(zip(corrections.logits, points[n_columns:], strict=True))
        return Correction(tuple(groups), Points(model._view.binning, points[:n_columns], intercept), nothing, of_logits)
    assert isinstance(corrections, LinearCorrections)
    weight = corrections.weight[server]
    encoder = model._view.encoder if len(weight) else None
    return Correction(tuple(groups), Weights(encoder, weight, intercept), corrections.of_logits[server])
