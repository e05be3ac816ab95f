"""Groups as a short ordered list of exceptions to the pooled classifier, each with a correction of its own.

The first exception that a row satisfies is its group; *everybody else* is the last group. An exception is a region of
at most two conditions where the pooled classifier leaves most to gain: a wrong level, or wrong effects. Its rows are
taken out, and the search goes on. How long the list is, how strongly corrections are held back, and whether everybody
else gets a correction too, is decided by held-out log-loss along lists that were grown without each fold.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.classifiers import residual
from dafh.columns.bins import Binning
from dafh.linear.designs import Design
from dafh.linear.newton import Regression, class_shares, fit_penalized, row_losses
from dafh.linear.threads import in_threads
from dafh.regions.conditions import Region, first_match
from dafh.regions.search import Candidate, RegionSearch

MOST_GROUPS = 9
STRENGTHS = (0.2, 1.0, 5.0, 25.0, 125.0, 1000.0)
"""Of the penalty on corrections, in rows: a coefficient that fewer rows speak for stays small."""
DEPTH = 2
# Smallest region: a group of fewer rows cannot be judged later.
_FEWEST_ROWS, _SMALLEST_SHARE = 30, 0.005
# Largest region, as a share of the rows that are left: what most rows need is a correction for everybody else.
_LARGEST_SHARE = 0.55
# Strength of the penalty in the search, where all regions are compared.
_SEARCH_STRENGTH = 20.0
# Directions of the columns in which wrong effects are looked for: those in which rows differ most.
_MOST_DIRECTIONS = 30
# Only so many rank candidates, those in which single conditions gain most. Chance in directions without an effect hides
# those with one: on Adult, 30 directions gained 0.78 points, 14 and 8 as much, 5 and 3 one point, and 1 only 0.42.
_SEARCH_DIRECTIONS = 5
# Rows in the search; of more, so many are taken evenly spread.
_MOST_SEARCHED = 50_000
# Candidates of each depth whose gain is computed with all curvatures.
_FINALISTS = 8
# Where the best candidate gains more than this share of the loss, effects are too large for the quadratic gain: it
# preferred "x is 0 or less", with a correction in u, to "u is 5 or less" with one in x, which was the truth. The loss
# itself then ranks, along the direction of the correction.
_LARGE_GAIN = 0.1
_MULTIPLES = (1.0, 2.0, 4.0, 8.0)
# Finalists whose gains differ by less than this share gain the same.
_TIE = 1e-3
# What a condition must gain, in log-likelihood: about the logarithm of the number of conditions it was chosen from.
_COST_OF_CONDITION = 6.0
# What is left to gain at the end of a fit, per unit of weight: of the final list, and where lists are only compared.
_TOLERANCE, _ROUGH_TOLERANCE = 1e-7, 1e-5
# Growing stops by itself where nothing is worth a condition, so that few candidates are left to look good by chance:
# with three standard errors, Arrest gained 0.1 instead of 0.5 points, and worlds without an effect were no better off.
_ERRORS_TO_LEAVE_POOLED = 2.0


@dataclass(frozen=True, eq=False)
class ExceptionRows:
    """Rows to learn exceptions from, and what belongs to each block: one for each fold, and the last for all rows."""

    binning: Binning
    codes: NDArray[Any]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]
    base: NDArray[np.float64]
    """Out-of-fold pooled logits, (n, m)."""
    design: Design
    """What corrections are linear in."""
    fold: NDArray[np.integer]
    selects: NDArray[np.bool_]
    """Whether a row chooses between candidates, when its fold is held out."""
    may_correct_all: bool = False
    """Whether a correction for everybody may come without any exception."""
    person: NDArray[np.intp] | None = None
    """Number of each row's person, where persons have several rows."""

    @property
    def n_folds(self) -> int:
        """Number of folds that are held out in turn."""
        return int(self.fold[self.selects].max(initial=-1)) + 1

    @property
    def regression(self) -> Regression:
        """All rows, as corrections see them."""
        return Regression(self.design, self.label, self.weight, self.base)

    def training(self, block: int) -> NDArray[np.intp]:
        """Rows that a block is trained on; the last one on all."""
        return np.arange(len(self.fold)) if block == self.n_folds else np.flatnonzero(self.fold != block)

    def judging(self, block: int) -> NDArray[np.intp]:
        """Rows that choose between candidates trained for a block."""
        return np.flatnonzero((self.fold == block) & self.selects)


class Settings(NamedTuple):
    """What held-out rows choose."""

    n_exceptions: int
    strength: float
    corrects_rest: bool
    """Whether everybody else has a correction, too."""

    @property
    def n_own(self) -> int:
        """Number of own classifiers."""
        return self.n_exceptions + self.corrects_rest


@dataclass(frozen=True, eq=False)
class ExceptionList:
    """Exceptions in order, and the correction of each group, everybody else last, (K, p, m)."""

    exceptions: tuple[Candidate, ...]
    corrections: NDArray[np.float64]

    def assign(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Group of each row, by the bins of its columns."""
        return first_match([candidate.rows(codes) for candidate in self.exceptions], len(codes))

    def regions(self, binning: Binning) -> tuple[Region, ...]:
        """The exceptions in conditions that hold for any table."""
        return tuple(candidate.region(binning) for candidate in self.exceptions)


@dataclass(frozen=True, eq=False)
class FittedExceptions:
    """The list chosen, and what it was chosen from."""

    chosen: ExceptionList
    settings: Settings | None
    """None where the pooled classifier alone serves everybody."""
    candidates: pd.DataFrame
    """Settings, held-out log-loss, its difference to the pooled classifier with the standard error."""
    held_out_gain: float = 0.0
    """Mean gain in log-loss of lists that were grown without each fold."""


# ---- growing a list ----


class _Growth:
    """Grows lists of exceptions, on all rows or without a fold, from values of the rows that are computed once."""

    def __init__(self, rows: ExceptionRows, depth: int) -> None:
        self.depth, n_rows = depth, len(rows.label)
        self.step = max(n_rows / _MOST_SEARCHED, 1.0)
        """Rows that each row of the search stands for."""
        # Evenly spread, and not the first ones: files are often sorted.
        searched = np.arange(0, n_rows, self.step).astype(np.intp)
        self.fold = rows.fold[searched]
        self.directions = _Directions.of(rows, searched, self.step)
        values, score = self.directions.values(), self.directions.score
        self.search = RegionSearch(
            rows.binning, rows.codes[searched], values, score, 1.0, _LARGEST_SHARE, intervals=False
        )

    def grow(self, without: int | None, most: int, *, may_stop: bool) -> list[Candidate]:
        """Find exceptions one after the other, on all rows or without a fold, until nothing is worth its conditions."""
        search, directions, step = copy(self.search), self.directions, self.step
        if without is not None:
            search.leave_out(self.fold == without)
        search.use_values(directions.strongest(search))
        search.smallest = max(_FEWEST_ROWS / step, _SMALLEST_SHARE * len(search.rows))
        exceptions: list[Candidate] = []
        remaining = directions.sums(search.rows)
        while len(exceptions) < most:
            finalists = search.best(self.depth, _FINALISTS)
            sums = [directions.sums(search.rows[search.inside(candidate)]) for candidate in finalists]
            # Two corrections, in the region and for the remaining rows, against one for both.
            costs = np.array([_COST_OF_CONDITION * len(candidate.bins) for candidate in finalists])
            gains = np.array([region.gain(step) + remaining.without(region).gain(step) for region in sums])
            gains = gains - remaining.gain(step) - costs
            if not len(gains) or (may_stop and gains.max() <= 0):
                break
            if gains.max() > _LARGE_GAIN * step * directions.loss(search.rows):
                gains = -costs
                for number, (candidate, region) in enumerate(zip(finalists, sums, strict=True)):
                    members = search.inside(candidate)
                    gains[number] += step * directions.gain_along(search.rows[members], region.correction(step))
                    correction = remaining.without(region).correction(step)
                    gains[number] += step * directions.gain_along(search.rows[~members], correction)
            # A region and its complement gain the same: "job is cook" is easier to say than "job is not cook".
            tied = np.flatnonzero(gains >= gains.max() - _TIE * abs(gains.max()))
            best = search.refined(min((finalists[number] for number in tied), key=search.wordiness))
            exceptions.append(best)
            members = search.inside(best)
            remaining = remaining.without(directions.sums(search.rows[members]))
            search.leave_out(members)
        return exceptions


@dataclass(frozen=True, eq=False)
class _Directions:
    """Directions of the columns in which rows differ most, the intercept first, with residuals and curvatures."""

    columns: NDArray[np.float32]
    """(n, q)."""
    pull: NDArray[np.float32]
    """Weight × residual, (n, m)."""
    curvature: NDArray[np.float32]
    """Weight × variance of the label, (n, m)."""
    rows: Regression
    """Labels, weights and out-of-fold logits of the same rows."""
    step: float
    """Rows that each row stands for, where a sample is searched."""

    @classmethod
    def of(cls, rows: ExceptionRows, trains: NDArray[np.intp], step: float) -> "_Directions":
        base, weight = rows.base[trains], rows.weight[trains, None]
        shares = class_shares(base)
        curvature = weight * shares * (1 - shares)
        # Principal directions of the columns, weighted by the curvature: a search in all coefficients would cost their
        # number squared for every candidate.
        dense = rows.design.take(trains).dense()[:, 1:]
        dense = (dense - np.average(dense, axis=0, weights=weight[:, 0])).astype(np.float32)
        n_directions = max(_MOST_DIRECTIONS // base.shape[1], 1)
        if dense.shape[1] > n_directions:
            spread = (dense * curvature.sum(axis=1)[:, None]).T @ dense
            dense = dense @ np.linalg.eigh(spread)[1][:, ::-1][:, :n_directions]
        columns = np.column_stack([np.ones(len(dense), np.float32), dense]).astype(np.float32)
        # Gradient and curvature of the log-likelihood by the logit, at the pooled logits. In single precision: a search
        # reads all of them for every node, and ranking needs no more digits.
        pull = weight * residual(base, rows.label[trains])
        return cls(columns, pull.astype(np.float32), curvature.astype(np.float32), rows.regression.take(trains), step)

    def values(self) -> NDArray[np.float32]:
        """Values of a `RegionSearch`: scores and their diagonal curvatures, (n, 2 m q)."""
        squares = self.columns**2
        values = [self.columns * self.pull[:, [output]] for output in range(self.pull.shape[1])]
        values += [squares * self.curvature[:, [output]] for output in range(self.pull.shape[1])]
        return np.hstack(values).astype(np.float32)

    def gains(self, region: NDArray[np.float64], complement: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gain of two corrections, in a region and outside of it, in each direction alone, (candidates, m q).

        With score s and curvature h, a coefficient with penalty λ gains s² / (2 (h + λ)). That leaves out what two
        directions share: the finalists are compared with all curvatures, for which there is no time here.
        """
        half, strength = region.shape[1] // 2, _SEARCH_STRENGTH / self.step
        first, second = (sums[:, :half] ** 2 / (sums[:, half:] + strength) / 2 for sums in (region, complement))
        return first + second

    def score(self, region: NDArray[np.float64], complement: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gain in all directions, each alone, summed up."""
        return self.gains(region, complement).sum(axis=1)

    def strongest(self, search: RegionSearch) -> NDArray[np.intp]:
        """Values of the directions in which a single condition gains most, that of the level always among them."""
        n_outputs, n_directions = self.pull.shape[1], self.columns.shape[1]
        highest = np.zeros(n_outputs * n_directions)

        def score(region: NDArray[np.float64], complement: NDArray[np.float64]) -> NDArray[np.float64]:
            gains = self.gains(region, complement)
            np.maximum(highest, gains.max(axis=0, initial=0.0), out=highest)
            return gains.sum(axis=1)

        observed = copy(search)
        observed.score = score
        observed.best(1)
        by_direction = highest.reshape(n_outputs, n_directions).sum(axis=0)
        by_direction[0] = np.inf  # A wrong level is what most regions have.
        directions = np.sort(np.argsort(-by_direction, kind="stable")[: 1 + _SEARCH_DIRECTIONS])
        return (np.arange(2 * n_outputs)[:, None] * n_directions + directions).ravel()

    def loss(self, rows: NDArray[np.intp]) -> float:
        """Loss of some rows with the pooled classifier."""
        return float(self.rows.weight[rows] @ row_losses(self.rows.offset[rows], self.rows.label[rows]))

    def gain_along(self, rows: NDArray[np.intp], correction: NDArray[np.float64]) -> float:
        """What the best multiple of a correction (q, m) gains on some rows."""
        label, offset, weight = self.rows.label[rows], self.rows.offset[rows], self.rows.weight[rows]
        change = self.columns[rows] @ correction
        lowest = min(float(weight @ row_losses(offset + multiple * change, label)) for multiple in _MULTIPLES)
        return float(weight @ row_losses(offset, label)) - lowest

    def sums(self, rows: NDArray[np.intp]) -> "_QuadraticSums":
        """Score and curvature in all directions, summed over some rows."""
        columns, outputs = self.columns[rows], range(self.pull.shape[1])
        curvatures = [(columns * self.curvature[rows, output, None]).T @ columns for output in outputs]
        return _QuadraticSums((columns.T @ self.pull[rows]).astype(np.float64), np.stack(curvatures).astype(np.float64))


class _QuadraticSums(NamedTuple):
    """Score (q, m) and curvature (m, q, q) of the log-likelihood of some rows where nothing is corrected."""

    pull: NDArray[np.float64]
    curvature: NDArray[np.float64]

    def without(self, removed: "_QuadraticSums") -> "_QuadraticSums":
        return _QuadraticSums(self.pull - removed.pull, self.curvature - removed.curvature)

    def correction(self, step: float) -> NDArray[np.float64]:
        """The correction with the largest quadratic gain, (H + λ)⁻¹s, (q, m)."""
        penalty = _SEARCH_STRENGTH / step * np.eye(len(self.pull))
        solved = np.linalg.solve(self.curvature + penalty, self.pull.T[:, :, None])
        return np.asarray(solved[:, :, 0].T, np.float64)

    def gain(self, step: float) -> float:
        """Gain of the best correction, ½ sᵀ(H + λ)⁻¹s, less what it gains by chance; a row stands for `step` rows."""
        # A correction fitted to noise gains ½ tr((H + λ)⁻¹H): half of its effective degrees of freedom.
        identity, total = np.eye(len(self.pull)), 0.0
        for pull, curvature in zip(self.pull.T, self.curvature, strict=True):
            penalized = curvature + _SEARCH_STRENGTH / step * identity
            solved = np.linalg.solve(penalized, np.column_stack([pull, curvature]))
            total += float(pull @ solved[:, 0]) / 2 - float(np.trace(solved[:, 1:])) / 2
        return total * step


# ---- how many, how strong ----


def fit_exceptions(rows: ExceptionRows, n_groups: int | None, depth: int = DEPTH) -> FittedExceptions:
    """Choose and fit a list of exceptions of at most `depth` conditions; without `n_groups`, 1 to 9 are chosen."""
    most, is_open = (MOST_GROUPS - 1, True) if n_groups is None else (n_groups - 1, False)
    growth = _Growth(rows, depth)
    exceptions = growth.grow(None, most, may_stop=is_open)
    # A list that is grown without a fold is compared as far as the one for all rows goes.
    grown = in_threads(
        lambda fold: growth.grow(fold, len(exceptions), may_stop=is_open), range(rows.n_folds), len(rows.label)
    )
    choice = _Choice(rows, grown, len(exceptions))
    settings = choice.choose(n_groups)
    table = choice.table()
    if settings is None:
        no_exceptions = ExceptionList((), np.zeros((1, rows.design.n_coefficients, rows.base.shape[1])))
        return FittedExceptions(no_exceptions, None, table)
    final = ListFit(rows, rows.n_folds, exceptions).fitted(settings)
    return FittedExceptions(final, settings, table, choice.gain(settings))


def fit_list(rows: ExceptionRows, block: int, fitted: ExceptionList, settings: Settings) -> ExceptionList:
    """Fit the corrections of a list anew, on the rows of a block."""
    return ListFit(rows, block, fitted.exceptions).fitted(settings)


class ListFit:
    """Corrections along the list of one block, fitted exactly: those of exceptions, and of everybody else after each.

    Solutions are kept. A fit starts at the solution for the nearest strength, with the curvature of no correction at
    all, and takes a few steps that only sum gradients.
    """

    def __init__(
        self, rows: ExceptionRows, block: int, exceptions: Sequence[Candidate], tolerance: float = _TOLERANCE
    ) -> None:
        training, self._tolerance = rows.training(block), tolerance
        self.exceptions, self.n_coefficients = tuple(exceptions), rows.design.n_coefficients
        self._group = first_match([region.rows(rows.codes[training]) for region in exceptions], len(training))
        self._rows = rows.regression.take(training)
        # Curvatures of every group at once, at the pooled logits: corrections are small, and steps converge with them.
        self._curvatures = self._rows.curvatures(self._rows.offset, self._group, len(exceptions) + 1)
        # Everybody else after k exceptions is in group k or later.
        self._rest_curvatures = np.cumsum(self._curvatures[::-1], axis=0)[::-1]
        self._members: dict[tuple[int, bool], Regression] = {}
        self._solutions: dict[tuple[int, bool], dict[float, NDArray[np.float64]]] = {}

    def _correction(self, number: int, strength: float, *, is_rest: bool = False) -> NDArray[np.float64]:
        """Correction (p, m) of an exception, or of everybody else after so many exceptions."""
        key = number, is_rest
        solutions = self._solutions.setdefault(key, {})
        if strength not in solutions:
            if key not in self._members:
                served = self._group >= number if is_rest else self._group == number
                self._members[key] = self._rows.take(np.flatnonzero(served))
            members = self._members[key]
            if not len(members.label):
                return np.zeros((self.n_coefficients, members.offset.shape[1]))
            nearest = min(solutions, key=lambda solved: abs(np.log(solved / strength)), default=None)
            solutions[strength] = fit_penalized(
                members,
                np.full(self.n_coefficients, strength),
                start=None if nearest is None else solutions[nearest],
                curvatures=(self._rest_curvatures if is_rest else self._curvatures)[number],
                free_intercept=False,
                tolerance=self._tolerance,
            ).coefficients
        return solutions[strength]

    def fitted(self, settings: Settings) -> ExceptionList:
        """The list with its corrections; one that ended earlier is taken at its end."""
        length = min(settings.n_exceptions, len(self.exceptions))
        corrections = [self._correction(number, settings.strength) for number in range(length)]
        of_rest = np.zeros((self.n_coefficients, self._rows.offset.shape[1]))
        if settings.corrects_rest:
            of_rest = self._correction(length, settings.strength, is_rest=True)
        return ExceptionList(self.exceptions[:length], np.stack([*corrections, of_rest]))


class _Choice:
    """Held-out losses of lists that were grown without each fold."""

    def __init__(self, rows: ExceptionRows, grown: Sequence[Sequence[Candidate]], most: int) -> None:
        self.rows, self.most = rows, most
        blocks = range(rows.n_folds)
        self.folds = in_threads(
            lambda block: ListFit(rows, block, grown[block], _ROUGH_TOLERANCE), blocks, len(rows.label)
        )
        members = [rows.judging(block) for block in blocks]
        self.judging = [rows.regression.take(judging) for judging in members]
        self.in_region = [
            [region.rows(rows.codes[judging]) for region in exceptions]
            for exceptions, judging in zip(grown, members, strict=True)
        ]
        in_order = np.concatenate([np.zeros(0, np.intp), *members])
        self.weight = rows.weight[in_order]
        self.person = None if rows.person is None else rows.person[in_order]
        self.pooled = row_losses(rows.base[in_order], rows.label[in_order])
        self.losses: dict[Settings, NDArray[np.float64]] = {}

    def choose(self, n_groups: int | None) -> Settings | None:
        """Return the shortest list within one standard error of the best; none unless it is worth it.

        The strength is chosen for the longest list, then the length, then the strength once more.
        """
        lengths = range(self.most + 1) if n_groups is None else [min(n_groups - 1, self.most)]
        if not self.rows.n_folds or (lengths[-1] == 0 and not self.rows.may_correct_all):
            return None if lengths[-1] == 0 else Settings(lengths[-1], _SEARCH_STRENGTH, False)
        # All lengths with all strengths would be fitted in vain: the best strength hardly depends on the length.
        first = self._best_strength(Settings(lengths[-1], _SEARCH_STRENGTH, True))
        shortest = self._shortest(
            [
                Settings(length, first.strength, corrects_rest)
                for length in lengths
                for corrects_rest in (False, True)
                if length or (corrects_rest and self.rows.may_correct_all)
            ]
        )
        chosen = self._best_strength(shortest)
        if n_groups is not None:
            return chosen
        # A stronger penalty may show a smaller gain more surely.
        stronger = [chosen._replace(strength=strength) for strength in STRENGTHS if strength >= chosen.strength]
        gains = (each for each in stronger if not self._near(self.pooled, self._loss(each), _ERRORS_TO_LEAVE_POOLED))
        return next(gains, None)

    def _best_strength(self, settings: Settings) -> Settings:
        """The strength with the lowest loss, found downhill: the loss has one valley along the strengths."""
        along = [settings._replace(strength=strength) for strength in STRENGTHS]
        position = int(np.argmin(np.abs(np.log(np.array(STRENGTHS) / settings.strength))))
        while (best := along.index(self._lowest(along[max(position - 1, 0) : position + 2]))) != position:
            position = best
        return along[position]

    def _shortest(self, candidates: Sequence[Settings]) -> Settings:
        """The fewest own classifiers within one standard error of the lowest loss (Breiman's rule)."""
        best = self._loss(self._lowest(candidates))
        near = [settings for settings in candidates if self._near(self._loss(settings), best, 1.0)]
        fewest = min(settings.n_own for settings in near)
        return self._lowest([settings for settings in near if settings.n_own == fewest])

    def _lowest(self, candidates: Sequence[Settings]) -> Settings:
        return min(candidates, key=lambda settings: float(self.weight @ self._loss(settings)))

    def _near(self, loss: NDArray[np.float64], best: NDArray[np.float64], n_errors: float) -> bool:
        mean, error = paired_mean(loss - best, self.weight, self.person)
        return mean <= n_errors * error

    def _loss(self, settings: Settings) -> NDArray[np.float64]:
        """Held-out loss of every row that judges, fold by fold."""
        if settings not in self.losses:
            blocks = range(len(self.folds))
            losses = in_threads(lambda block: self._loss_of_fold(block, settings), blocks, len(self.weight))
            self.losses[settings] = np.concatenate([np.zeros(0), *losses])
        return self.losses[settings]

    def _loss_of_fold(self, block: int, settings: Settings) -> NDArray[np.float64]:
        fitted, judging = self.folds[block].fitted(settings), self.judging[block]
        group = first_match(self.in_region[block][: len(fitted.exceptions)], len(judging.label))
        logits = judging.offset + judging.design.grouped_logits(fitted.corrections, group)
        return row_losses(logits, judging.label)

    def gain(self, settings: Settings) -> float:
        """Mean gain in held-out log-loss over the pooled classifier."""
        return paired_mean(self.pooled - self._loss(settings), self.weight)[0]

    def table(self) -> pd.DataFrame:
        """What was tried, with its mean loss and the difference to the pooled classifier, the best first."""
        lines = []
        for settings, loss in self.losses.items():
            mean, error = paired_mean(loss - self.pooled, self.weight, self.person)
            lines.append(
                (*settings, float(np.average(loss, weights=self.weight)) if len(loss) else np.nan, mean, error)
            )
        columns = [*Settings._fields, "log_loss", "difference", "standard_error"]
        return pd.DataFrame(lines, columns=columns).sort_values("log_loss", ignore_index=True)


def paired_mean(
    difference: NDArray[np.float64], weight: NDArray[np.float64], person: NDArray[np.intp] | None = None
) -> tuple[float, float]:
    """Weighted mean of differences by row, and its standard error; the rows of a person may err together."""
    if not len(difference):
        return 0.0, 0.0
    mean = float(np.average(difference, weights=weight))
    # Error of a weighted mean: √Σ w²d² / Σ w, with the sums of each person in place of rows (a sandwich estimate).
    deviation = weight * (difference - mean)
    if person is not None:
        deviation = np.bincount(person, deviation).astype(np.float64)
    return mean, float(np.sqrt(deviation @ deviation) / weight.sum())
