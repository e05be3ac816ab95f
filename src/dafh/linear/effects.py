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


def choose_effects(rows: Regression, binning: Binning, basis: Basis, most: int) -> Basis:
    """Choose at most so many coefficients of a smooth basis of the binning, and return the basis of these.

    The design of the rows has the tables of the basis.
    """
    found = _candidates(rows, _fitted(rows, _subset(basis, _Chosen.none(basis))), _Chosen.none(basis))
    chosen = _Chosen.first(binning, basis, found, most)
    left_out = 0
    for _ in range(_MOST_ROUNDS):
        smaller = _subset(basis, chosen)
        found = _candidates(rows, _fitted(rows, smaller), chosen)
        room = most + 1 - len(smaller.block)
        left_out = max(len(found) - room, 0)
        if not found or room <= 0:
            break
        for _, column, effect in sorted(found, reverse=True)[:room]:
            chosen.effects[column].append(effect)
    if left_out:
        warnings.warn(
            f"These rows pay for {most:,} effects of columns, and at least {left_out:,} weaker ones are left out of "
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

    @classmethod
    def none(cls, basis: Basis) -> "_Chosen":
        return cls([[] for _ in basis.tables], [[] for _ in basis.tables])

    @classmethod
    def first(cls, binning: Binning, basis: Basis, found: list[tuple[float, int, int]], most: int) -> "_Chosen":
        """Choose the columns that matter by themselves: of numbers the line and spread steps, of others the best."""
        chosen = cls.none(basis)
        # Seen alone, columns matter that only resemble others: there must be room to correct that.
        for _, number, effect in sorted(found, reverse=True)[: int(most * _FIRST_SHARE)]:
            chosen.effects[number].append(effect)
        n_columns = max(sum(len(effects) >= _BENDS for effects in chosen.effects), 1)
        n_spread = min(min(most, _MOST_SPREAD_IN_ALL) // n_columns - 1, _MOST_SPREAD)
        for column, effects, spread in zip(binning.columns, chosen.effects, chosen.spread, strict=True):
            if (
                len(effects) >= _BENDS
                and n_spread >= _FEWEST_SPREAD
                and not column.is_category
                and column.n_bins > _FEWEST_SPREAD
            ):
                # `make_basis` puts the line first, then the steps, then gaps.
                steps = np.linspace(1, column.n_bins - 2, n_spread + 2)[1:-1].astype(int)
                spread += dict.fromkeys(steps.tolist())
                effects[:] = [0, *(effect for effect in effects if effect > column.n_bins - 2)]
        return chosen


def _subset(basis: Basis, chosen: _Chosen) -> Basis:
    """Keep the chosen coefficients, with the spread steps of a column in a block of their own."""
    tables, block, first = [], [-1], 1
    for table, effects, spread in zip(basis.tables, chosen.effects, chosen.spread, strict=True):
        part = basis.block[first : first + table.shape[1]]
        first += table.shape[1]
        # A step that is spread and stands out, too, is free to stand out.
        kept = [(2 * part[effect], effect) for effect in effects]
        kept += [(2 * part[step] + 1, step) for step in spread if step not in effects]
        kept.sort()
        tables.append(table[:, [effect for _, effect in kept]])
        block += [number for number, _ in kept]
    # Blocks are numbered anew, in the order of their coefficients.
    return Basis(tables, np.unique(block, return_inverse=True)[1] - 1)


def _fitted(rows: Regression, basis: Basis) -> NDArray[np.float64]:
    """Logits of a fit with the chosen coefficients."""
    part = rows.with_tables(basis.tables)
    penalty = np.full(len(basis.block), _STRENGTH)
    return rows.offset + part.design.logits(fit_penalized(part, penalty, tolerance=1e-4).coefficients)


def _candidates(rows: Regression, logits: NDArray[np.float64], chosen: _Chosen) -> list[tuple[float, int, int]]:
    """Effects with a gain that is worth a coefficient: gain, column, and number of the effect in it."""
    design = rows.design
    assert isinstance(design, BinnedDesign)
    shares = class_shares(logits)
    slopes = rows.weight[:, None] * residual(logits, rows.label)
    curvatures = rows.weight[:, None] * shares * (1 - shares)
    least = min(_LEAST_GAIN + np.log(len(design.tables)), _ENOUGH_GAIN)
    # One coefficient for each output: as unlikely by chance as this gain is with one output.
    least = float(chi2.isf(chi2.sf(2 * least, 1), logits.shape[1])) / 2
    found = []
    for column, table in enumerate(design.tables):
        if table.shape[1]:
            code = design.codes[:, column].astype(np.intp)
            slope, curvature = (
                np.column_stack([np.bincount(code, values, len(table)).astype(np.float64) for values in sums.T])
                for sums in (slopes, curvatures)
            )
            found += [
                (gain, column, effect)
                for gain, effect in _of_column(
                    table, slope, curvature, chosen.effects[column] + chosen.spread[column], least
                )
            ]
    return found


def _of_column(
    table: NDArray[np.float64],
    slope: NDArray[np.float64],
    curvature: NDArray[np.float64],
    chosen: list[int],
    least: float,
) -> list[tuple[float, int]]:
    """Gains of the effects of one column, one after the other, from sums by bin (bins, m)."""
    # Rows of all outputs below each other; in these units a gain is half a squared projection.
    root = np.sqrt(curvature)
    values = root.T[:, :, None] * table
    target = np.where(root > 0, slope / np.where(root > 0, root, 1.0), 0.0).T
    length = np.square(values).sum(axis=1)

    def remove(direction: NDArray[np.float64]) -> None:
        """Remove from target and values what a direction, (m, bins), explains of them."""
        nonlocal values, target
        unit = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-150)
        values = values - unit[:, :, None] * np.einsum("mb,mbc->mc", unit, values)[:, None]
        target = target - unit * (unit * target).sum(axis=1, keepdims=True)

    remove(root.T)
    for effect in chosen:
        remove(values[:, :, effect])
    found = []
    for _ in range(_MOST_PER_COLUMN):
        left = np.square(values).sum(axis=1)
        usable = (left > _LEAST_NEW * length) & (left > _LEAST_CURVATURE)
        gains = np.where(usable, np.einsum("mb,mbc->mc", target, values) ** 2 / np.where(usable, left, 1.0) / 2, 0.0)
        gain = gains.sum(axis=0)
        best = int(gain.argmax())
        if gain[best] < least:
            break
        found.append((float(gain[best]), best))
        remove(values[:, :, best])
    return found
