"""Scorecard: an additive classifier that reads as a table of points."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh.checks.parameters import Constraints, check_parameters, number, one_of, whole_number
from dafh.checks.rows import TakesTables, check_persons, check_table, check_weights, unchanged_on_error
from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT, stratified_folds
from dafh.classifiers.logits import check_threshold, decide
from dafh.exceptions import EffectsLeftOutWarning, InputError
from dafh.frames import PlainTable, Table, is_frame, to_pandas
from dafh.linear.crossfit import Folds
from dafh.linear.designs import Basis, BinnedDesign, make_basis, sum_points
from dafh.linear.effects import choose_effects
from dafh.linear.newton import Regression, Solution, fit_by_evidence, fit_penalized
from dafh.linear.threads import one_thread
from dafh.tables.bins import Binning
from dafh.tables.column import MOST_BINS
from dafh.tables.values import warn_of_numbers_as_text
from dafh.text import clipped, percent, render_text

# Evidence takes the columns for independent. Where they are many for the rows, three times its strengths predict
# better.
_FACTORS = (1.0, 3.0)
_FACTORS_OF_WIDE = (1.0, 3.0, 10.0, 30.0)
# Folds of the cross-validation; with many rows, fewer of them judge as surely.
_FOLDS, _FOLDS_OF_MANY, _MANY_ROWS = 5, 3, 20_000
# Coefficients, times the outputs, are at most so many: a step costs their number cubed, and with more than one for two
# rows nothing is gained. Of a table with more, the effects that matter get one.
_MOST_COEFFICIENTS = 800
_ALWAYS_COEFFICIENTS = 200
_COEFFICIENTS_PER_ROW = 0.5
_FEWEST_BINS = 2
_MOST_LINES = 6


class Scorecard(TakesTables, ClassifierMixin, BaseEstimator):
    """Additive classifier: every column adds points by the bin a value falls into, and the sum is the score.

    A penalised logistic regression on finely binned columns, solved exactly. Points of neighbouring bins are tied
    together by a penalty with a strength of its own for each column: the one under which the labels are most probable.
    One more factor for all columns is chosen by cross-validated log-loss. Numbers, dates, flags, categories and text
    are taken as they are; missing values have a bin.

    Parameters
    ----------
    n_bins : int, default=128
        Bins of a column of numbers, at most. More are no better; fewer make shorter tables. Cuts are placed without the
        labels, at round numbers between values.
    strength : float or "auto", default="auto"
        Factor on all strengths of the penalty. "auto": 1 or 3, whichever has the lower log-loss in cross-validation.
    threshold : float, default=0.5
        With two classes, the probability above which `predict` says ``classes_[1]``: the cut-off of the scorecard.
    random_state : int, default=0
        Draws the folds of the cross-validation.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    binning_ : Binning
        The bins of each column.
    points_ : list of arrays of shape (bins, m)
        Points by column, bin and logit. Two classes have one logit, that of ``classes_[1]``; more have one per class.
        The mean over the training rows is 0 in every column.
    intercept_ : array of shape (m,)
        Score of a row with 0 points everywhere.
    strengths_ : data frame
        Strength of the penalty by column and part: line, steps, categories, gaps.
    strength_ : float
        The factor in use.
    threshold_ : float
        The cut-off in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from dafh import Scorecard
    >>> table = pd.DataFrame({"age": [20, 30, 40, None] * 25, "job": ["cook", "clerk"] * 50})
    >>> model = Scorecard().fit(table, (table["age"] > 25) & (table["job"] == "cook"))
    >>> model.predict(pd.DataFrame({"age": [44], "job": ["cook"]}))
    array([ True])
    >>> model.table().query("column == 'job'")["bin"].tolist()
    ['clerk', 'cook', 'never seen']
    """

    _constraints: ClassVar[Constraints] = {
        "n_bins": (whole_number(_FEWEST_BINS),),
        "strength": (number(0), one_of("auto")),
        "threshold": (number(0, 1),),
        "random_state": (whole_number(0),),
    }

    def __init__(
        self,
        n_bins: int = MOST_BINS,
        *,
        strength: float | str = "auto",
        threshold: float = 0.5,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.strength = strength
        self.threshold = threshold
        self.random_state = random_state

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *, persons: ArrayLike | None = None
    ) -> Self:
        """Divide the columns into bins, and give points to them.

        Parameters
        ----------
        X : data frame or array of shape (n, d)
            Numbers, dates, flags, categories or text; missing values where there are some.
        y : array of shape (n,)
            Labels of any type, two or more different ones.
        sample_weight : array of shape (n,), optional
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to: cross-validation keeps a person's rows together.
        """
        self.fit_keeping_sums(X, y, sample_weight, persons)
        if is_frame(X):
            warn_of_numbers_as_text(to_pandas(X))
        return self

    def fit_keeping_sums(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, persons: ArrayLike | None = None
    ) -> "ScorecardFit":
        """Fit, and return the rows and the solution, so that the same can be fitted again without some of the rows."""
        with unchanged_on_error(self), one_thread():
            check_parameters(self, self._constraints)
            table, labels = check_table(self, X, y, reset=True)
            check_classification_targets(labels)
            weight = check_weights(sample_weight, len(labels))
            counted = np.flatnonzero(weight > 0)
            self.classes_, label = np.unique(labels[counted], return_inverse=True)
            if len(self.classes_) < 2:
                only = self.classes_.tolist()[0]
                raise InputError(
                    f"y holds one class only ({only!r}): at least two classes are needed to learn anything."
                )
            check_threshold(self.threshold, len(self.classes_))
            self.threshold_ = self.threshold
            person = check_persons(persons, len(labels))
            person = None if person is None else person[counted]
            table, weight = table.iloc[counted], weight[counted]
            self.binning_ = Binning.learn(table, weight, min(self.n_bins, MOST_BINS))
            found = self._fit_bins(self.binning_.codes(table), label, weight, person)
            self.strength_ = found.factor
            self.keep(found, found.solution)
        return found

    def _fit_bins(
        self,
        codes: NDArray[Any],
        label: NDArray[np.intp],
        weight: NDArray[np.float64],
        person: NDArray[np.intp] | None,
    ) -> "ScorecardFit":
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        basis = make_basis(self.binning_, codes, weight, smooth=True)
        rows = Regression(BinnedDesign(codes, basis.tables), label, weight, np.zeros((len(label), n_outputs)))
        # A row counts by its weight: a weight of 2 is the row given twice.
        most = np.clip(weight.sum() * _COEFFICIENTS_PER_ROW, _ALWAYS_COEFFICIENTS, _MOST_COEFFICIENTS) // n_outputs
        is_wide = len(basis.block) - 1 > most
        every, all_rows = basis, rows
        if is_wide:
            basis = choose_effects(all_rows, self.binning_, every, int(most))
            rows = all_rows.with_tables(basis.tables)
        solution = fit_by_evidence(rows, basis.block)
        if self.strength != "auto":
            factor = float(self.strength)
        elif is_wide:
            factor = _choose_factor_of_wide(all_rows, self.binning_, every, int(most), self.random_state, person)
        else:
            factor = _choose_factor(rows, solution, self.random_state, person)
        if factor != 1:
            solution = fit_penalized(rows, factor * solution.penalty, start=solution.coefficients)
        return ScorecardFit(rows, basis.block, factor, solution)

    def keep(self, fit: "ScorecardFit", found: Solution) -> None:
        """Take the points from a solution, for the bins and the rows of a fit."""
        rows, design = fit.rows, fit.design
        points = design.points(found.coefficients)
        shares = [
            np.bincount(design.codes[:, position], rows.weight, len(table)) / rows.weight.sum()
            for position, table in enumerate(points)
        ]
        # Points are relative to the average row: a column that says nothing then has zeros, and not any constant.
        means = [share @ table for share, table in zip(shares, points, strict=True)]
        self.points_ = [table - mean for table, mean in zip(points, means, strict=True)]
        self.intercept_ = found.coefficients[0] + np.sum(means, axis=0)
        self.shares_ = shares
        self._strengths = self._strength_table(design, fit.block, found.penalty)

    def _strength_table(
        self, design: BinnedDesign, block: NDArray[np.intp], penalty: NDArray[np.float64]
    ) -> PlainTable:
        lines = []
        for column, place in zip(self.binning_.columns, design.places, strict=True):
            for part in np.unique(block[place]):
                inside = np.flatnonzero(block == part)
                lines.append((column.name, len(inside), float(penalty[inside[0]])))
        return PlainTable.of(pd.DataFrame(lines, columns=["column", "coefficients", "strength"]))

    @property
    def strengths_(self) -> pd.DataFrame:
        """Strength of the penalty by column and part."""
        return self._strengths.to_frame()

    # ---- prediction ----

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Score of each row: the logit of ``classes_[1]`` (two classes) or of every class."""
        check_is_fitted(self)
        table, _ = check_table(self, X, reset=False)
        logits = sum_points(self.binning_.codes(table), self.points_, self.intercept_)
        return logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; columns as in `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return softmax(scores, axis=1)
        positive = expit(scores)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row."""
        scores = self.decision_function(X)
        return self.classes_[decide(scores[:, None] if scores.ndim == 1 else scores, self.threshold_)]

    # ---- reading ----

    def table(self) -> pd.DataFrame:
        """Points by column and bin, with the share of the training rows in each bin.

        The score of a row is `intercept_` plus the points of its bin in each column.
        """
        check_is_fitted(self)
        labels = ["points"] if len(self.classes_) == 2 else [f"points for {clipped(c, 30)}" for c in self.classes_]
        parts = []
        for column, points, share in zip(self.binning_.columns, self.points_, self.shares_, strict=True):
            names = [column.words(code) for code in range(column.n_bins)]
            part = pd.DataFrame({"column": column.name, "bin": names, "rows": share})
            parts.append(part.assign(**dict(zip(labels, points.T, strict=True))))
        return pd.concat(parts, ignore_index=True)

    def importance(self) -> pd.Series:
        """Mean absolute points of each column over the training rows, the largest first."""
        check_is_fitted(self)
        sizes = [
            float(share @ np.abs(points).mean(axis=1)) for share, points in zip(self.shares_, self.points_, strict=True)
        ]
        names = [column.name for column in self.binning_.columns]
        return pd.Series(sizes, pd.Index(names, name="column"), name="importance").sort_values(
            ascending=False, kind="stable"
        )

    def __str__(self) -> str:
        """Print the points, of long columns in a few ranges; `table` has every bin."""
        if not hasattr(self, "points_"):
            return repr(self)
        return _scorecard_text(self)


@dataclass(frozen=True, eq=False)
class ScorecardFit:
    """The rows of a scorecard with the blocks of its coefficients, and its solution."""

    rows: Regression
    block: NDArray[np.intp]
    factor: float
    """On all strengths that evidence chooses."""
    solution: Solution

    @property
    def design(self) -> BinnedDesign:
        """What the rows count for each coefficient."""
        assert isinstance(self.rows.design, BinnedDesign)
        return self.rows.design


def _choose_factor(rows: Regression, found: Solution, seed: int, person: NDArray[np.intp] | None) -> float:
    """Factor on the strengths with the lowest log-loss in cross-validation; 1 where too few rows can be left out."""
    folds = _folds(rows, _FOLDS if len(rows.label) < _MANY_ROWS else _FOLDS_OF_MANY, seed, person)
    if folds is None:
        return _FACTORS[0]
    fold = np.empty(len(rows.label), np.intp)
    for position, (_, members) in enumerate(folds):
        fold[members] = position
    divided = Folds(rows, found, fold)
    losses = [rows.loss(divided.out_of_fold(factor * found.penalty)) for factor in _FACTORS]
    return _FACTORS[int(np.argmin(losses))]


def _choose_factor_of_wide(
    rows: Regression, binning: Binning, every: Basis, most: int, seed: int, person: NDArray[np.intp] | None
) -> float:
    """Return the same where effects are chosen: they are chosen without each fold, too.

    Effects that were chosen as the largest of many look larger than they are. The rows that chose them cannot tell.
    """
    folds = _folds(rows, _FOLDS_OF_MANY, seed, person)
    if folds is None:
        return _FACTORS_OF_WIDE[0]
    losses = np.zeros(len(_FACTORS_OF_WIDE))
    # One held-out part of many rows judges well enough, and three take longer than all the rest.
    for training, members in folds[:1] if len(rows.label) >= _MANY_ROWS else folds:
        part, held_out = rows.take(training), rows.take(members)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EffectsLeftOutWarning)
            basis = choose_effects(part, binning, every, most)
        part, held_out = part.with_tables(basis.tables), held_out.with_tables(basis.tables)
        solution = fit_by_evidence(part, basis.block)
        for position, factor in enumerate(_FACTORS_OF_WIDE):
            weaker = fit_penalized(part, factor * solution.penalty, start=solution.coefficients)
            losses[position] += held_out.loss(held_out.design.logits(weaker.coefficients))
    return _FACTORS_OF_WIDE[int(np.argmin(losses))]


def _folds(
    rows: Regression, n_folds: int, seed: int, person: NDArray[np.intp] | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]] | None:
    """Training and held-out rows of each fold; None where too few rows can be left out."""
    if len(rows.label) < FEWEST_ROWS_TO_SPLIT:
        return None
    folds = stratified_folds(rows.label, n_folds, seed, person)
    return None if folds is None else list(folds)


def _scorecard_text(model: Scorecard) -> str:
    """Write a scorecard: columns by importance, and at most six ranges of a column of numbers."""
    lines = []
    order = {name: position for position, name in enumerate(model.importance().index)}
    columns = sorted(
        zip(model.binning_.columns, model.points_, model.shares_, strict=True), key=lambda c: order[c[0].name]
    )
    heads = ["points"] if len(model.classes_) == 2 else [clipped(name, 12) for name in model.classes_]
    for column, points, share in columns:
        first = True
        for words, rows, values in _ranges(column, points, share):
            shown = {"column": clipped(column.name, 30) if first else "", "bin": words, "rows": percent(rows)}
            lines.append(shown | {head: f"{value:+.2f}" for head, value in zip(heads, values, strict=True)})
            first = False
    start = ", ".join(f"{value:+.2f}" for value in model.intercept_)
    table = render_text(pd.DataFrame(lines), left=("column", "bin"))
    what = f"log-odds of {clipped(model.classes_[1], 30)}" if len(model.classes_) == 2 else "logit of each class"
    return f"Scorecard: start at {start}, add the points of each column; the sum is the {what}.\n{table}"


def _ranges(column: Any, points: NDArray[np.float64], share: NDArray[np.float64]) -> list[tuple[str, float, Any]]:
    """Bins that training rows fall into: of numbers neighbours put together, of categories the most frequent ones."""
    present = np.flatnonzero(share > 0)
    if column.is_category:
        kept = present[np.argsort(-share[present], kind="stable")[:_MOST_LINES]]
        return [(column.words(int(code)), float(share[code]), points[code]) for code in kept]
    numbers = present[present < column.n_bins - 1]
    parts = np.array_split(numbers, min(_MOST_LINES, len(numbers))) if len(numbers) else []
    # Ranges with about the same number of rows, not of bins.
    if len(numbers) > _MOST_LINES:
        cumulated = np.cumsum(share[numbers]) - share[numbers] / 2
        place = (cumulated / share[numbers].sum() * _MOST_LINES).astype(int)
        parts = [numbers[place == part] for part in np.unique(place)]
    found = [
        (
            _range_words(column, int(part[0]), int(part[-1])),
            float(share[part].sum()),
            np.average(points[part], 0, share[part]),
        )
        for part in parts
    ]
    gaps = column.n_bins - 1
    return [*found, (column.words(gaps), float(share[gaps]), points[gaps])] if share[gaps] > 0 else found


def _range_words(column: Any, first: int, last: int) -> str:
    if first == last:
        return str(column.words(first))
    low = column.write(column.cuts[first - 1]) if first > 0 else None
    high = column.write(column.cuts[last]) if last < len(column.cuts) else None
    if low is None and high is None:
        return "any value"
    return f"up to {high}" if low is None else f"above {low}" if high is None else f"{low} to {high}"
