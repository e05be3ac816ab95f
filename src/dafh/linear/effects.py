"""Effects that are worth a coefficient, where a table is too wide for all of them.

A column of numbers has a hundred steps that it might take, and a table of two hundred columns twenty thousand: solved
exactly, they would take a matrix of 20,000², and most of them would be fitted to noise. Few matter. Where few columns
say something by themselves, each of them gets a line and some evenly spread steps first, for curves that bend slowly.
Then, in rounds, as in orthogonal matching pursuit, the effects with the largest gain join them, such as a step far out
in a tail, and all are fitted again. The gain of a coefficient is the quadratic approximation of what it adds to the
log-likelihood, (Σ residual · value)² / (2 Σ curvature · value²), after the effects of the same column that were chosen
already. Sums by bin are all that is needed of the rows: time and memory are linear in rows times columns.
"""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dafh.classifiers import residual
from dafh.columns.bins import Binning
from dafh.exceptions import EffectsLeftOutWarning
from dafh.linear.designs import Basis, BinnedDesign
from dafh.linear.newton import Regression, class_shares, fit_penalized

# Gain in log-likelihood that a coefficient must promise: this and the logarithm of the number of columns, the best of
# which is looked at, but at most 6. With 8, weak effects of 400 columns were missed; with 4, noise came in.
_LEAST_GAIN = 2.0
_ENOUGH_GAIN = 6.0
_MOST_ROUNDS = 5
_MOST_PER_COLUMN = 8
"""In one round."""
# The first round sees every column alone, and takes columns that only resemble others. It leaves room to correct that.
_FIRST_SHARE = 0.5
# Less curvature is that of a handful of rows, where a quadratic approximation says nothing.
_LEAST_CURVATURE = 1.0
# What earlier effects of the column explain of one to this part is the same effect once more.
_LEAST_NEW = 1e-3
# Between rounds, strengths need not be chosen: what matters is what the effects leave unexplained.
_STRENGTH = 3.0
# A column with a threshold or two needs no more than as many steps; one that seems to need this many bends slowly.
_BENDS = 3
# Spread steps of a column, and of all columns together. In wide tables with few rows, those of columns that only
# resemble others did more harm than good.
_FEWEST_SPREAD, _MOST_SPREAD = 6, 16
_MOST_SPREAD_IN_ALL = 300


Effect = tuple[float, int, int]
"""Gain, column, and number of the effect in the table of the column."""


def choose_effects(rows: Regression, binning: Binning, basis: Basis, most: int) -> Basis:
    """Choose at most so many coefficients of a smooth basis of the binning, and return the basis of these.

    The design of the rows has the tables of the basis.
    """
    chosen = _Chosen([[] for _ in basis.tables], [[] for _ in basis.tables])
    candidates = _candidates(rows, _fitted_logits(rows, _subset(basis, chosen)), chosen)
    # Seen alone, columns matter that only resemble others: there must be room to correct that.
    for _, column, effect in sorted(candidates, reverse=True)[: int(most * _FIRST_SHARE)]:
        chosen.effects[column].append(effect)
    _spread_steps(chosen, binning, most)
    n_left_out = 0
    for _ in range(_MOST_ROUNDS):
        smaller = _subset(basis, chosen)
        candidates = _candidates(rows, _fitted_logits(rows, smaller), chosen)
        room = most + 1 - len(smaller.block)
        n_left_out = max(len(candidates) - room, 0)
        if not candidates or room <= 0:
            break
        for _, column, effect in sorted(candidates, reverse=True)[:room]:
            chosen.effects[column].append(effect)
    if n_left_out:
        warnings.warn(
            f"These rows pay for {most:,} effects of columns, and at least {n_left_out:,} weaker ones are left out of "
            "the scorecard: leave out columns that say the same as others.",
            EffectsLeftOutWarning,
            stacklevel=2,
        )
    return _subset(basis, chosen)


class _Chosen(NamedTuple):
    """Coefficients of each column by their number in its table."""

    effects: list[list[int]]
    """Lines, steps that stand out, categories and gaps."""
    spread: list[list[int]]
    """Evenly spread steps, which bend slowly."""


def _spread_steps(chosen: _Chosen, binning: Binning, most: int) -> None:
    """Give columns of numbers that matter by themselves a line and spread steps, in place of single steps."""
    n_columns = max(sum(len(effects) >= _BENDS for effects in chosen.effects), 1)
    n_spread = min(min(most, _MOST_SPREAD_IN_ALL) // n_columns - 1, _MOST_SPREAD)
    if n_spread < _FEWEST_SPREAD:
        return
    for column, effects, spread in zip(binning.columns, chosen.effects, chosen.spread, strict=True):
        if len(effects) >= _BENDS and not column.is_category and column.n_bins > _FEWEST_SPREAD:
            # `make_basis` puts the line first, then the steps, then gaps.
            steps = np.linspace(1, column.n_bins - 2, n_spread + 2)[1:-1].astype(int)
            spread += dict.fromkeys(steps.tolist())
            effects[:] = [0, *(effect for effect in effects if effect > column.n_bins - 2)]


def _subset(basis: Basis, chosen: _Chosen) -> Basis:
    """Keep the chosen coefficients, with the spread steps of a column in a block of their own."""
    tables, block, first = [], [-1], 1
    for table, effects, spread in zip(basis.tables, chosen.effects, chosen.spread, strict=True):
        column_block = basis.block[first : first + table.shape[1]]
        first += table.shape[1]
        # A step that is spread and stands out, too, is free to stand out.
        numbered = [(2 * column_block[effect], effect) for effect in effects]
        numbered += [(2 * column_block[step] + 1, step) for step in spread if step not in effects]
        numbered.sort()
        tables.append(table[:, [effect for _, effect in numbered]])
        block += [number for number, _ in numbered]
    # Blocks are numbered anew, in the order of their coefficients.
    return Basis(tables, np.unique(block, return_inverse=True)[1] - 1)


def _fitted_logits(rows: Regression, basis: Basis) -> NDArray[np.float64]:
    """Logits of a fit with the chosen coefficients."""
    smaller = rows.with_tables(basis.tables)
    solution = fit_penalized(smaller, np.full(len(basis.block), _STRENGTH), tolerance=1e-4)
    return rows.offset + smaller.design.logits(solution.coefficients)


def _candidates(rows: Regression, logits: NDArray[np.float64], chosen: _Chosen) -> list[Effect]:
    """Effects with a gain that is worth a coefficient."""
    design = rows.design
    assert isinstance(design, BinnedDesign)
    shares = class_shares(logits)
    slopes = rows.weight[:, None] * residual(logits, rows.label)
    curvatures = rows.weight[:, None] * shares * (1 - shares)
    least_gain = min(_LEAST_GAIN + np.log(len(design.tables)), _ENOUGH_GAIN)
    # One coefficient for each output: as unlikely by chance as this gain is with one output.
    least_gain = float(chi2.isf(chi2.sf(2 * least_gain, 1), logits.shape[1])) / 2
    candidates: list[Effect] = []
    for column, table in enumerate(design.tables):
        if table.shape[1]:
            bins = design.codes[:, column].astype(np.intp)
            slope, curvature = (
                np.column_stack([np.bincount(bins, values, len(table)).astype(np.float64) for values in sums.T])
                for sums in (slopes, curvatures)
            )
            in_use = chosen.effects[column] + chosen.spread[column]
            gains = _gains_of_column(table, slope, curvature, in_use, least_gain)
            candidates += [(gain, column, effect) for gain, effect in gains]
    return candidates


def _gains_of_column(
    table: NDArray[np.float64],
    slope: NDArray[np.float64],
    curvature: NDArray[np.float64],
    chosen: list[int],
    least_gain: float,
) -> list[tuple[float, int]]:
    """Gains of the effects of one column, each after those before it, from sums by bin (bins, m)."""
    # Least squares by bin: divided by the root of the curvature, a gain is half a squared projection of the target on
    # what an effect counts; each effect chosen is projected out of all others (Gram-Schmidt).
    root = np.sqrt(curvature)
    values = root.T[:, :, None] * table
    target = np.where(root > 0, slope / np.where(root > 0, root, 1.0), 0.0).T
    length = np.square(values).sum(axis=1)

    def project_out(direction: NDArray[np.float64]) -> None:
        """Remove from target and values what a direction, (m, bins), explains of them."""
        nonlocal values, target
        unit = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-150)
        values = values - unit[:, :, None] * np.einsum("mb,mbc->mc", unit, values)[:, None]
        target = target - unit * (unit * target).sum(axis=1, keepdims=True)

    project_out(root.T)
    for effect in chosen:
        project_out(values[:, :, effect])
    gains = []
    for _ in range(_MOST_PER_COLUMN):
        remaining = np.square(values).sum(axis=1)
        usable = (remaining > _LEAST_NEW * length) & (remaining > _LEAST_CURVATURE)
        squares = np.einsum("mb,mbc->mc", target, values) ** 2
        gain = np.where(usable, squares / np.where(usable, remaining, 1.0) / 2, 0.0).sum(axis=0)
        best = int(gain.argmax())
        if gain[best] < least_gain:
            break
        gains.append((float(gain[best]), best))
        project_out(values[:, :, best])
    return gains
