"""Describe the groups of a fitted model: size, rule, contrasts, differences between classifiers, members.

Where a model divides rows by exceptions, their rules are exact. The groups of a network depend on all columns
together, and no short sentence can say that exactly: the rule that is found for each comes with its precision and
recall, measured on rows that were not used to find it. Everything else compares the rows of a group with all other
rows.
"""

import functools
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from dafh.classifiers import (
    SMALLEST_PROBABILITY,
    GroupModel,
    class_probabilities,
    final_classifier,
    rows_at_once,
    split_pipeline,
)
from dafh.columns.bins import named_table
from dafh.columns.column import Column
from dafh.columns.kinds import is_ordered, kind_of
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ServedPredictions
from dafh.exceptions import InputError
from dafh.explanation.rules import find_rule, own_rule
from dafh.explanation.words import (
    SMALLEST_EFFECT,
    Contrast,
    Effect,
    Explanation,
    GroupInWords,
    Member,
    group_name,
    server_words,
    worth_of_groups,
)
from dafh.frames import Table, dense, is_frame, take_rows, to_pandas
from dafh.text import clipped, percent, write_date, write_number

# Shares of this many rows are known to within half a percentage point; more rows would only take longer.
_MOST_ROWS = 50_000
# Differences below a tenth of a standard deviation are too small to characterise a group.
_SMALLEST_CONTRAST = 0.1
# Only the most frequent categories of a column are described.
_MOST_CATEGORIES = 20


def explain(
    model: GroupModel | Pipeline,
    X: Table,
    *,
    sensitive_features: Table | None = None,
    n_contrasts: int = 4,
    random_state: int = 0,
) -> Explanation:
    """Describe the groups that a fitted model forms on some rows.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    X : data frame or array
        Rows as the model takes them. A pipeline is described in terms of its original columns.
    sensitive_features : data frame, series or array with as many rows, optional
        Attributes whose values are counted in each group. Required if the groups of the model depend on them.
    n_contrasts : int, default=4
        For each group, the number of contrasts, and of differences between the classifiers, to name.
    random_state : int, default=0
        Splits the rows into those that find a rule and those that measure it.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from dafh import DAFHClassifier, explain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + rng.normal(size=600) > 0
    >>> words = explain(DAFHClassifier(2, random_state=0).fit(X, y), X)
    >>> len(words.groups), words.groups[0].rule.exact
    (2, True)
    """
    if n_contrasts < 1:
        raise InputError(f"n_contrasts must be at least 1, got {n_contrasts!r}.")
    X = dense(X)
    table = named_table(X)
    if not len(table):
        raise InputError("There are no rows to describe the groups by: pass at least one.")
    attributes = None if sensitive_features is None else NamedGroups.of(sensitive_features, len(table))
    groups = ServedPredictions.of(model, X, sensitive_features).groups
    rng = np.random.default_rng(random_state)
    final = final_classifier(model)
    kept = np.sort(rng.permutation(len(table))[: rows_at_once(final, _MOST_ROWS)])
    some = table.iloc[kept]
    seen = _Described.of(some)
    log_odds = _log_odds(model, X, sensitive_features, kept)
    described = []
    # A group may have no rows here, and rows that belong to no group are numbered after the last one.
    for group in range(max(final.n_groups_, int(groups.max()) + 1)):
        everywhere = groups == group
        inside = everywhere[kept]
        difference, effects = _compared(seen, inside, log_odds, n_contrasts)
        described.append(
            GroupInWords(
                group,
                group_name(final, group),
                rows=int(everywhere.sum()),
                share=float(everywhere.mean()),
                served_by=server_words(final, group),
                rule=own_rule(final, group) or find_rule(some, inside, rng),
                contrasts=_contrasts(seen, inside, n_contrasts, _told_columns(final, group)),
                effects=effects,
                members=() if attributes is None else _members(attributes, everywhere),
                difference=difference,
                **_gain(final, group),
                loss=getattr(getattr(final, "exceptions_", None), "loss", "error"),
            )
        )
    return Explanation(tuple(described), worth=worth_of_groups(model))


def _gain(final: Any, group: int) -> dict[str, float]:
    """Gain of a group's own classifier with its limits, where groups are exceptions and a guard has tested them."""
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is None or exceptions.gain is None or not group < exceptions.n_groups > 1:
        return {}
    found = exceptions.to_frame().iloc[group]
    return {name: float(found[name]) for name in ("gain", "low", "high") if not np.isnan(found[name])}


@dataclass(frozen=True)
class _View:
    """How one number per row, made from a column, is put into words.

    A column of numbers or dates has one view, a column of categories one for each frequent category; gaps have another.
    """

    column: str
    category: str | None = None
    is_date: bool = False
    is_gap: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether the number is 0 or 1: for one category, or for gaps."""
        return self.category is not None or self.is_gap

    @property
    def flag(self) -> str:
        """Say that a flag is set."""
        return f"{self.column} is {'missing' if self.is_gap else clipped(self.category)}"

    def amount(self, value: float) -> str:
        """Write a number or a date with a few digits."""
        return write_date(value) if self.is_date else write_number(value)


@dataclass(frozen=True)
class _Described:
    """A table as numbers, one column per view."""

    views: list[_View]
    observed: NDArray[np.float64]
    """NaN where a number is missing."""

    @classmethod
    def of(cls, table: pd.DataFrame) -> "_Described":
        """Split every column into numbers, categories and gaps."""
        found: list[tuple[_View, NDArray[np.float64]]] = []
        for position, name in enumerate(table.columns):  # By position: names may occur twice.
            found += _views(clipped(name), table.iloc[:, position])
        columns = [numbers for _, numbers in found]
        # A table may have no views at all: a single column without any value has none.
        return cls([view for view, _ in found], np.column_stack(columns) if columns else np.empty((len(table), 0)))

    @functools.cached_property
    def values(self) -> NDArray[np.float64]:
        """All views without gaps: a missing number is replaced by the median of its column."""
        missing = np.isnan(self.observed)
        middle = np.zeros(len(self.views))
        known = ~missing.all(axis=0)
        middle[known] = np.nanmedian(self.observed[:, known], axis=0)
        return np.where(missing, middle, self.observed)

    @functools.cached_property
    def standardized(self) -> NDArray[np.float64]:
        """All views with mean 0 and standard deviation 1."""
        spread = self.values.std(axis=0)
        return (self.values - self.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _views(name: str, column: pd.Series) -> list[tuple[_View, NDArray[np.float64]]]:
    gaps = column.isna().to_numpy()
    # A flag that is the same for all rows says nothing.
    flags = [(_View(name, is_gap=True), gaps.astype(float))] if gaps.any() and not gaps.all() else []
    # Booleans are described as categories: "married is True in 70%", not "married averages 0.7".
    described = Column(name, kind_of(column))
    if is_ordered(described.kind):
        return [(_View(name, is_date=described.is_date), described.floats(column)), *flags]
    texts = column.astype(str)
    frequent = texts[~gaps].value_counts().index[:_MOST_CATEGORIES]
    return [*((_View(name, str(value)), ((texts == value) & ~gaps).to_numpy(float)) for value in frequent), *flags]


def _told_columns(final: Any, group: int) -> set[str]:
    """Columns that the model's own rule is about: that the group differs in them goes without saying."""
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is None or group >= exceptions.n_groups:
        return set()
    # Everybody else is who no exception holds for, and depends on all of their columns.
    regions = exceptions.regions[group : group + 1] or exceptions.regions
    return {clipped(name) for region in regions for name in region.columns}


def _contrasts(seen: _Described, inside: NDArray[np.bool_], n_contrasts: int, told: set[str]) -> tuple[Contrast, ...]:
    """Columns with the largest differences of means, in standard deviations; each once, and none that is told."""
    if inside.all() or not inside.any():
        return ()
    standard = seen.standardized
    difference = standard[inside].mean(axis=0) - standard[~inside].mean(axis=0)
    found: dict[str, Contrast] = {}
    # Of two views that differ equally (two categories of one column), the one that the group has more of comes first.
    for position in np.lexsort((-difference, -np.abs(difference).round(9))):
        view, size = seen.views[position], float(difference[position])
        if len(found) == n_contrasts or abs(size) < _SMALLEST_CONTRAST:
            break
        text = "" if view.column in told else _contrast_text(view, seen.observed[:, position], inside)
        if text:
            found.setdefault(view.column, Contrast(view.column, text, size))
    return tuple(found.values())


def _contrast_text(view: _View, values: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
    """Compare averages of the values that are known; empty if one side has none."""
    # Not of the filled values: the average that is shown must be the one that a reader finds in the data.
    known = ~np.isnan(values)
    here, there = values[inside & known], values[~inside & known]
    if not len(here) or not len(there):
        return ""
    if view.is_flag:
        return f"{view.flag} in {percent(here.mean())} of rows instead of {percent(there.mean())}"
    return f"{view.column} averages {view.amount(here.mean())} instead of {view.amount(there.mean())}"


@dataclass(frozen=True)
class _LogOdds:
    """Log-odds of each class by the classifier that serves each row, and by the pooled classifier, (rows, classes)."""

    own: NDArray[np.float64]
    pooled: NDArray[np.float64]
    classes: NDArray[Any]


def _log_odds(
    model: GroupModel | Pipeline, X: Table, sensitive_features: Table | None, kept: NDArray[np.intp]
) -> _LogOdds | None:
    """Ask both classifiers about some rows; None if one of them gives no probabilities."""
    final, encoded = split_pipeline(model, take_rows(X if is_frame(X) else np.asarray(X), kept))
    if not (hasattr(final, "predict_proba") and hasattr(final.pooled_, "predict_proba")):
        return None
    options = {}
    if sensitive_features is not None and "sensitive_features" in inspect.signature(final.predict_proba).parameters:
        options = {"sensitive_features": to_pandas(sensitive_features).iloc[kept]}
    # An incumbent may know other classes than the groups' own classifiers, or list the same ones in another order.
    if np.setxor1d(final.pooled_.classes_, final.classes_).size:
        return None
    own = final.predict_proba(encoded, **options)
    asked = getattr(final, "pooled_proba", None)  # It knows which of the columns the pooled classifier takes.
    pooled = class_probabilities(final.pooled_, encoded, final.classes_) if asked is None else asked(encoded)
    # A classifier that is certain would have infinite log-odds.
    limits = (SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    return _LogOdds(logit(own.clip(*limits)), logit(pooled.clip(*limits)), final.classes_)


def _compared(
    seen: _Described, inside: NDArray[np.bool_], log_odds: _LogOdds | None, n_effects: int
) -> tuple[float | None, tuple[Effect, ...]]:
    """Compare the classifier that serves a group with the pooled one on its rows.

    Returns the mean absolute difference, None if it is not known, and the columns whose effect differs most.
    """
    if log_odds is None or not inside.any():
        return None, ()
    # Of two classes the second is described, of more the one whose log-odds differ most.
    difference = np.abs(log_odds.own[inside] - log_odds.pooled[inside]).mean(axis=0)
    label = 1 if len(log_odds.classes) == 2 else int(difference.argmax())
    both = np.column_stack([log_odds.own[inside, label], log_odds.pooled[inside, label]])
    found: dict[str, Effect] = {}
    # With fewer rows than this the weights below are mostly noise.
    if seen.views and inside.sum() >= 2 * len(seen.views) and not np.allclose(both[:, 0], both[:, 1]):
        # The same linear fit to the log-odds of both, on the rows of the group: this compares classifiers of any kind,
        # and for linear ones it finds their weights.
        own, pooled = Ridge(alpha=1.0).fit(seen.standardized[inside], both).coef_
        change = np.abs(own - pooled)
        for position in np.argsort(-change, kind="stable"):
            view = seen.views[position]
            if len(found) == n_effects or change[position] < SMALLEST_EFFECT:
                break
            name = view.flag if view.is_flag else view.column
            effect = Effect(name, float(own[position]), float(pooled[position]), log_odds.classes[label])
            found.setdefault(view.column, effect)
    return float(difference[label]), tuple(found.values())


def _members(attributes: NamedGroups, inside: NDArray[np.bool_]) -> tuple[Member, ...]:
    """How frequent each value of each attribute is in a group, and in all rows."""
    if not inside.any():
        return ()
    found = []
    for attribute in attributes.attributes:
        alone = NamedGroups([attribute]).tabulate(inside.astype(np.intp), 2, np.ones(len(inside)), depth=1)
        for name, (outside, members) in zip(alone.names, alone.total, strict=True):
            shares = float(members / inside.sum()), float((outside + members) / len(inside))
            found.append(Member(attribute.name, name, *shares))
    return tuple(found)
