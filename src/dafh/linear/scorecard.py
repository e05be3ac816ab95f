"""Scorecard: an additive classifier that reads as a table of points."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import FEWEST_ROWS_TO_SPLIT, check_threshold, decide, stratified_folds
from dafh.columns.bins import Binning
from dafh.columns.column import MOST_BINS, Column
from dafh.columns.kinds import warn_of_numbers_as_text
from dafh.exceptions import EffectsLeftOutWarning, InputError
from dafh.frames import Table, is_frame, to_pandas
from dafh.linear.designs import Basis, BinnedDesign, make_basis, sum_points
from dafh.linear.effects import choose_effects
from dafh.linear.newton import Regression, Solution, fit_by_evidence, fit_penalized, out_of_fold_logits
from dafh.linear.threads import one_thread
from dafh.text import clipped, percent, quoted, render_text
from dafh.validation import (
    NOTHING,
    Allowed,
    Constraints,
    TakesTables,
    check_parameters,
    check_persons,
    check_table,
    check_weights,
    is_real,
    is_whole,
    number,
    one_of,
    unchanged_on_error,
    whole_number,
)

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
# A table that so many bins by column make narrow gets fewer bins, each with a coefficient. With effects chosen instead,
# effects that bend slowly lost 0.03 of AUC at 300 rows of 5 columns, and 0.005 at 2,000 of 10 and 4,000 of 20.
_ENOUGH_BINS = 16
_MOST_LINES = 6
_SMALLEST_SHARE = 1e-4


@dataclass(frozen=True)
class Scaling:
    """Points for people, in place of log-odds.

    Examples
    --------
    >>> scaling = Scaling(600, odds=50, doubling=20)
    >>> (scaling.start + scaling.factor(["no", "yes"]) * np.log([25, 50, 100])).round(9)
    array([580., 600., 620.])
    """

    points: float
    """Of a row with these odds."""
    odds: float
    """Of the favourable label against the other one."""
    doubling: float
    """Points that double the odds."""
    favourable: Any = None
    """The label that more points speak for; ``classes_[1]`` unless another is given."""

    def __post_init__(self) -> None:
        """Refuse what no scale can be."""
        if not (is_real(self.points) and all(is_real(value) and value > 0 for value in (self.odds, self.doubling))):
            raise InputError("A Scaling has a number of points, and odds and doubling above 0.")

    def factor(self, classes: Sequence[Any]) -> float:
        """Points for a log-odds of 1 more for ``classes[1]``."""
        label = classes[1] if self.favourable is None else self.favourable
        if label not in list(classes):
            raise InputError(f"The favourable label {label!r} of the scaling is no label of y.")
        return float(self.doubling / np.log(2) * (1 if label == classes[1] else -1))

    @property
    def start(self) -> float:
        """Points of a row with even odds."""
        return float(self.points - self.doubling / np.log(2) * np.log(self.odds))


_DIRECTIONS = Allowed(
    "a mapping from columns to 1 or -1",
    lambda value: isinstance(value, Mapping) and all(is_whole(each) and each in (1, -1) for each in value.values()),
)


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
    monotonic : mapping, optional
        For some columns of numbers, dates or flags, 1 if their points may not fall where values rise, and −1 if they
        may not rise: ``{"age": 1}``. For two classes. Strengths are chosen as without constraints.
    scaling : Scaling, optional
        Points for people: ``Scaling(600, odds=50, doubling=20)`` gives 600 points to odds of 50 to 1, and 20 more
        points to twice these odds. For two classes.

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
    strength_ : float
        The factor in use.
    threshold_ : float
        The cut-off in use.
    score_cuts_, score_shares_ : arrays
        Tenths of the scores of the training rows, by which `stability` compares later ones.
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
        "monotonic": (_DIRECTIONS, NOTHING),
        "scaling": (Allowed("a Scaling", lambda value: isinstance(value, Scaling)), NOTHING),
    }

    def __init__(
        self,
        n_bins: int = MOST_BINS,
        *,
        strength: float | str = "auto",
        threshold: float = 0.5,
        random_state: int = 0,
        monotonic: Mapping[str, int] | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.strength = strength
        self.threshold = threshold
        self.random_state = random_state
        self.monotonic = monotonic
        self.scaling = scaling

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
            if len(self.classes_) > 2 and (self.monotonic or self.scaling):
                raise InputError("Points are monotonic, or scaled, for two classes only: leave the parameter out.")
            if self.scaling is not None:
                self.scaling.factor(self.classes_.tolist())
            self.threshold_ = self.threshold
            person = check_persons(persons, len(labels))
            person = None if person is None else person[counted]
            table, weight = table.iloc[counted], weight[counted]
            # A row counts by its weight, for a weight of 2 is the row given twice; so many coefficients it pays for.
            most = np.clip(weight.sum() * _COEFFICIENTS_PER_ROW, _ALWAYS_COEFFICIENTS, _MOST_COEFFICIENTS)
            most = int(most // _n_outputs(self.classes_))
            self.binning_ = _learn_bins(table, weight, min(self.n_bins, MOST_BINS), most)
            fit = self._fit_bins(self.binning_.codes(table), label, weight, person, most)
            self.strength_ = fit.factor
            self.keep(fit, fit.solution)
        return fit

    def _fit_bins(
        self,
        codes: NDArray[Any],
        label: NDArray[np.intp],
        weight: NDArray[np.float64],
        person: NDArray[np.intp] | None,
        most: int,
    ) -> "ScorecardFit":
        basis = make_basis(self.binning_, codes, weight, smooth=True)
        offset = np.zeros((len(label), _n_outputs(self.classes_)))
        rows = Regression(BinnedDesign(codes, basis.tables), label, weight, offset)
        # Of a narrow table every bin has a coefficient, and so have lines, gaps and categories, which add a few.
        numbers = sum(column.n_bins - 1 for column in self.binning_.columns if not column.is_category)
        is_wide = numbers > most or len(basis.block) - 1 > 2 * most
        # Effects are chosen from all of them again without each fold, where the factor is chosen.
        all_effects, all_rows = basis, rows
        if is_wide:
            basis = choose_effects(all_rows, self.binning_, all_effects, most)
            rows = all_rows.with_tables(basis.tables)
        solution = fit_by_evidence(rows, basis.block)
        if self.strength != "auto":
            factor = float(self.strength)
        elif is_wide:
            factor = _choose_factor_of_wide(all_rows, self.binning_, all_effects, most, self.random_state, person)
        else:
            factor = _choose_factor(rows, solution, self.random_state, person)
        if self.monotonic:
            constraints = monotonic_constraints(self.binning_, basis.tables, self.monotonic)
            # From zeros, which satisfy the constraints. At 1e-10, logits were up to 2e-5 away from the optimum.
            solution = fit_penalized(rows, factor * solution.penalty, constraints=constraints, tolerance=1e-14)
        elif factor != 1:
            solution = fit_penalized(rows, factor * solution.penalty, start=solution.coefficients)
        return ScorecardFit(rows, factor, solution)

    def keep(self, fit: "ScorecardFit", solution: Solution) -> None:
        """Take the points from a solution, for the bins and the rows of a fit."""
        rows, design = fit.rows, fit.design
        points = design.points(solution.coefficients)
        for column, table in zip(self.binning_.columns, points, strict=True):
            sign = (self.monotonic or {}).get(column.name, 0)
            if sign:  # The solver keeps the constraint but for rounding.
                table[:-1] = sign * np.maximum.accumulate(sign * table[:-1])
        self.shares_ = [
            np.bincount(design.codes[:, position], rows.weight, len(table)) / rows.weight.sum()
            for position, table in enumerate(points)
        ]
        # Points are relative to the average row: a column that says nothing then has zeros, and not any constant. What
        # is taken from the points of all columns goes into the intercept, and scores stay as they are.
        means = [share @ table for share, table in zip(self.shares_, points, strict=True)]
        self.points_ = [table - mean for table, mean in zip(points, means, strict=True)]
        self.intercept_ = solution.coefficients[0] + np.sum(means, axis=0)
        scores = sum_points(design.codes, self.points_, self.intercept_)[:, 0]
        self.score_cuts_ = np.unique(np.quantile(scores, np.arange(1, 10) / 10))
        tenth = np.searchsorted(self.score_cuts_, scores)  # As `stability` finds it for later rows.
        self.score_shares_ = np.bincount(tenth, rows.weight, len(self.score_cuts_) + 1) / rows.weight.sum()

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
        tables = []
        for column, points, share in zip(self.binning_.columns, self.points_, self.shares_, strict=True):
            names = [column.words(code) for code in range(column.n_bins)]
            table = pd.DataFrame({"column": column.name, "bin": names, "rows": share})
            table = table.assign(**dict(zip(labels, points.T, strict=True)))
            if self.scaling is not None:
                table["scaled points"] = self.scaling.factor(self.classes_.tolist()) * points[:, 0]
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def scaled_points(self, X: Table) -> NDArray[np.float64]:
        """Points of each row on the scale that `scaling` chose.

        Examples
        --------
        >>> table = pd.DataFrame({"job": ["cook", "clerk"] * 50})
        >>> card = Scorecard(scaling=Scaling(600, odds=50, doubling=20)).fit(table, np.arange(100) % 4 == 0)
        >>> odds = np.exp(card.decision_function(table[:2]))
        >>> np.allclose(card.scaled_points(table[:2]), 600 + 20 * np.log2(odds / 50))
        True
        """
        check_is_fitted(self)
        if self.scaling is None:
            raise InputError("The scorecard has no scale: fit it with scaling=Scaling(600, odds=50, doubling=20).")
        return self.scaling.start + self.scaling.factor(self.classes_.tolist()) * self.decision_function(X)

    def reasons(self, X: Table, most: int | None = 4, *, favourable: Any = None) -> pd.DataFrame:
        """Columns that cost each row most points, as notices of adverse action name them.

        What a column costs is the points of the average training row minus those of the row, towards the favourable
        label: on the scale of `scaling` if there is one. The score of the average row minus the costs of all columns is
        that of the row. For two classes.

        Parameters
        ----------
        X : data frame or array of shape (n, d)
        most : int, optional
            Columns for each row, those that cost most first; None for all. Columns that cost nothing are left out
            unless all are asked for.
        favourable : label, optional
            That of `scaling`, or else ``classes_[1]``.

        Returns
        -------
        data frame
            One line for each row and column: position of the row, column, bin, cost.

        Examples
        --------
        >>> table = pd.DataFrame({"job": ["cook", "clerk"] * 50, "age": [20, 30, 40, 50] * 25})
        >>> card = Scorecard().fit(table, table["job"] == "cook")
        >>> card.reasons(table[:2], most=1)[["row", "column", "bin"]].to_numpy().tolist()
        [[1, 'job', 'clerk']]
        """
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise InputError("There are reasons for the scores of two classes only.")
        scaling = self.scaling or Scaling(0, 1, float(np.log(2)))
        scaling = scaling if favourable is None else replace(scaling, favourable=favourable)
        factor = scaling.factor(self.classes_.tolist())
        table, _ = check_table(self, X, reset=False)
        codes = self.binning_.codes(table)
        # Points have mean 0 over the training rows, so that minus the points is the cost against the average row.
        costs = np.zeros(codes.shape)
        for position, points in enumerate(self.points_):
            costs[:, position] -= factor * points[codes[:, position], 0]
        order = np.argsort(-costs, axis=1, kind="stable")[:, :most]
        row, at = np.repeat(np.arange(len(order)), order.shape[1]), order.ravel()
        costly = (costs[row, at] > 0) | (most is None)
        row, at = row[costly], at[costly]
        columns = [self.binning_.columns[each] for each in at]
        bins = [column.words(code) for column, code in zip(columns, codes[row, at].astype(int), strict=True)]
        names = [column.name for column in columns]
        return pd.DataFrame({"row": row, "column": names, "bin": bins, "cost": costs[row, at]})

    def stability(self, X: Table, period: ArrayLike) -> pd.DataFrame:
        """Population stability index of the score and of each column in each period, against the training rows.

        The index is Σ (share − training share) · ln(share / training share), over tenths of the score, up to ten
        ranges of a column of numbers, and categories; shares below 0.01% count as that. By convention, below 0.1 little
        has changed, and above 0.25 much. A column that is stable has about (ranges − 1) / rows by chance.

        Parameters
        ----------
        X : data frame or array of shape (n, d)
        period : array of shape (n,)
            Month, say, of each row.

        Returns
        -------
        data frame
            One line for each period; columns ``rows``, ``(score)`` (two classes only), and one for each column of X.

        Examples
        --------
        >>> table = pd.DataFrame({"job": ["cook", "clerk"] * 50})
        >>> card = Scorecard().fit(table, np.arange(100) % 4 == 0)
        >>> card.stability(table, ["May"] * 50 + ["June"] * 50)["job"].tolist()
        [0.0, 0.0]
        """
        check_is_fitted(self)
        table, _ = check_table(self, X, reset=False)
        codes = self.binning_.codes(table)
        periods = pd.Series(np.asarray(period))
        if len(periods) != len(codes) or periods.isna().any():
            raise InputError("stability needs the period of each row, without gaps.")
        # Range of each row, and share of the training rows in each range.
        ranges: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        if len(self.classes_) == 2:
            # Tenths of the training scores, as the index is defined; fewer where many rows have the same score.
            scores = sum_points(codes, self.points_, self.intercept_)[:, 0]
            ranges["(score)"] = np.searchsorted(self.score_cuts_, scores), self.score_shares_
        for position, (column, share) in enumerate(zip(self.binning_.columns, self.shares_, strict=True)):
            range_of_bin = np.arange(len(share)) if column.is_category else _ranges_of_bins(share, 10)
            shares = np.bincount(range_of_bin, share).astype(np.float64)
            ranges[column.name] = range_of_bin[codes[:, position]], shares
        lines = []
        for name, rows in periods.groupby(periods).indices.items():
            line = {"period": name, "rows": len(rows)}
            indices = {column: _stability_index(of_row[rows], shares) for column, (of_row, shares) in ranges.items()}
            lines.append(line | indices)
        return pd.DataFrame(lines).set_index("period")

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


def _n_outputs(classes: Sequence[Any] | NDArray[Any]) -> int:
    """Logits of a row: one for two classes, one for each of more."""
    return 1 if len(classes) == 2 else len(classes)


def _learn_bins(table: pd.DataFrame, weight: NDArray[np.float64], finest: int, most: int) -> Binning:
    """Divide the columns into bins: fewer where that makes a table narrow enough for a coefficient of each."""
    binning = Binning.learn(table, weight, finest)
    # A column of categories has one coefficient each, however many bins numbers have.
    sizes = np.array([0 if column.is_category else column.n_bins - 1 for column in binning.columns])
    for n_bins in range(finest, min(finest, _ENOUGH_BINS) - 1, -1):
        if np.minimum(sizes, n_bins).sum() <= most:
            return binning if n_bins == finest else Binning.learn(table, weight, n_bins)
    return binning


def monotonic_constraints(
    binning: Binning, tables: Sequence[NDArray[np.float64]], directions: Mapping[str, int]
) -> NDArray[np.float64]:
    """What a bin counts more than the one before it, for each coefficient, with the sign it must have."""
    columns = {column.name: column for column in binning.columns}
    for name in directions:
        if name not in columns or columns[name].is_category:
            problem = "is not in X" if name not in columns else "holds categories, which have no order"
            raise InputError(f"The column {quoted(name)} of 'monotonic' {problem}.")
    first = np.cumsum([1, *(table.shape[1] for table in tables)])
    constraints = [np.zeros((0, first[-1]))]
    for column, table, start in zip(binning.columns, tables, first, strict=False):
        # Points of the next bin less those of this one, as a row of coefficients. Gaps lie on neither side of a cut.
        # Neighbours that are alike need no constraint.
        rises = directions.get(column.name, 0) * np.unique(np.diff(table[:-1], axis=0), axis=0)
        padded = np.zeros((len(rises), first[-1]))
        padded[:, start : start + table.shape[1]] = rises
        constraints.append(padded[rises.any(axis=1)])
    return np.vstack(constraints)


def _ranges_of_bins(share: NDArray[np.float64], n_ranges: int) -> NDArray[np.intp]:
    """Put neighbouring bins of a column of numbers into ranges with about the same number of rows; gaps have the last.

    A range is found by the share of rows below the middle of a bin.
    """
    # By the share below the middle, a bin of many rows fills ranges alone, and no range is empty but by ties.
    middle = np.cumsum(share[:-1]) - share[:-1] / 2
    range_of_bin = (n_ranges * middle / max(share[:-1].sum(), 1e-300)).astype(np.intp).clip(0, n_ranges - 1)
    range_of_bin = np.unique(range_of_bin, return_inverse=True)[1]
    return np.append(range_of_bin, range_of_bin[-1] + 1)


def _stability_index(range_of_row: NDArray[np.intp], training_shares: NDArray[np.float64]) -> float:
    """Population stability index of rows against the shares of training rows."""
    # An empty range would make the index infinite.
    counts = np.bincount(range_of_row, minlength=len(training_shares))
    new = np.maximum(counts / len(range_of_row), _SMALLEST_SHARE)
    old = np.maximum(training_shares, _SMALLEST_SHARE)
    return float((new - old) @ np.log(new / old))


@dataclass(frozen=True, eq=False)
class ScorecardFit:
    """The rows of a scorecard, and its solution."""

    rows: Regression
    factor: float
    """On all strengths that evidence chooses."""
    solution: Solution

    @property
    def design(self) -> BinnedDesign:
        """What the rows count for each coefficient."""
        assert isinstance(self.rows.design, BinnedDesign)
        return self.rows.design


def _choose_factor(rows: Regression, solution: Solution, seed: int, person: NDArray[np.intp] | None) -> float:
    """Factor on the strengths with the lowest log-loss in cross-validation; 1 where too few rows can be left out."""
    folds = _folds(rows, _FOLDS if len(rows.label) < _MANY_ROWS else _FOLDS_OF_MANY, seed, person)
    if folds is None:
        return _FACTORS[0]
    fold = np.empty(len(rows.label), np.intp)
    for position, (_, members) in enumerate(folds):
        fold[members] = position
    # With the strengths that all rows chose: only the coefficients are fitted without each fold.
    losses = [rows.loss(logits) for logits in out_of_fold_logits(rows, solution, fold, _FACTORS)]
    return _FACTORS[int(np.argmin(losses))]


def _choose_factor_of_wide(
    rows: Regression, binning: Binning, basis: Basis, most: int, seed: int, person: NDArray[np.intp] | None
) -> float:
    """Return the same where effects are chosen: they are chosen without each fold, too.

    Effects that were chosen as the largest of many look larger than they are. The rows that chose them cannot tell.
    """
    folds = _folds(rows, _FOLDS_OF_MANY, seed, person)
    if folds is None:
        return _FACTORS_OF_WIDE[0]
    losses = np.zeros(len(_FACTORS_OF_WIDE))
    # One held-out part of many rows judges well enough, and three take longer than everything else.
    for training, members in folds[:1] if len(rows.label) >= _MANY_ROWS else folds:
        training_rows, held_out = rows.take(training), rows.take(members)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EffectsLeftOutWarning)
            chosen = choose_effects(training_rows, binning, basis, most)
        training_rows, held_out = (each.with_tables(chosen.tables) for each in (training_rows, held_out))
        solution = fit_by_evidence(training_rows, chosen.block)
        for position, factor in enumerate(_FACTORS_OF_WIDE):
            weaker = fit_penalized(training_rows, factor * solution.penalty, start=solution.coefficients)
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
    labels = ["points"] if len(model.classes_) == 2 else [clipped(name, 12) for name in model.classes_]
    by_name = {
        column.name: (column, points, share)
        for column, points, share in zip(model.binning_.columns, model.points_, model.shares_, strict=True)
    }
    lines = []
    for name in model.importance().index:
        if by_name[name][1].any():
            for number, (words, rows, values) in enumerate(_ranges(*by_name[name])):
                line = {"column": "" if number else clipped(name, 30), "bin": words, "rows": percent(rows)}
                lines.append(line | {label: f"{value:+.2f}" for label, value in zip(labels, values, strict=True)})
    start = ", ".join(f"{value:+.2f}" for value in model.intercept_)
    table = render_text(pd.DataFrame(lines), left=("column", "bin"))
    score = f"log-odds of {clipped(model.classes_[1], 30)}" if len(model.classes_) == 2 else "logit of each class"
    text = f"Scorecard: start at {start}, add the points of each column; the sum is the {score}.\n{table}"
    silent = sum(not points.any() for points in model.points_)
    if silent:
        text += f"\nNo points from {silent:,} of {len(by_name):,} columns."
    if (scaling := model.scaling) is not None:
        scale = f"{scaling.start:.1f} {scaling.factor(model.classes_.tolist()):+.1f} · log-odds"
        text += f"\nScaled points: {scale}, so that odds of {scaling.odds:g} to 1 are {scaling.points:g} points."
    return text


def _ranges(
    column: Column, points: NDArray[np.float64], share: NDArray[np.float64]
) -> list[tuple[str, float, NDArray[np.float64]]]:
    """Bins that training rows fall into: of numbers neighbours put together, of categories the most frequent ones."""
    present = np.flatnonzero(share > 0)
    if column.is_category:
        groups = [present[[number]] for number in np.argsort(-share[present], kind="stable")[:_MOST_LINES]]
    else:
        numbers, gaps = present[present < column.n_bins - 1], present[present == column.n_bins - 1]
        range_of_bin = np.arange(len(numbers))
        if len(numbers) > _MOST_LINES:
            range_of_bin = _ranges_of_bins(share, _MOST_LINES)[numbers]
        groups = [numbers[range_of_bin == number] for number in np.unique(range_of_bin)]
        groups += [gaps] if len(gaps) else []
    return [
        (
            _range_words(column, int(bins[0]), int(bins[-1])),
            float(share[bins].sum()),
            points[bins].T @ share[bins] / share[bins].sum(),
        )
        for bins in groups
    ]


def _range_words(column: Column, first: int, last: int) -> str:
    if first == last:
        return column.words(first)
    low = column.write(column.cuts[first - 1]) if first > 0 else None
    high = column.write(column.cuts[last]) if last < len(column.cuts) else None
    if low is None and high is None:
        return "any value"
    return f"up to {high}" if low is None else f"above {low}" if high is None else f"{low} to {high}"
