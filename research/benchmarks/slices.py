"""`compare` beside SliceLine and DivExplorer: how often a planted group is found, and what they name where none loses.

    pip install sliceline divexplorer
    python -m research.benchmarks.slices

All three get the same rows, groups of at least 1% of them, at most two conditions and ten groups to name. SliceLine
gets the rows that only the new model decides wrongly, DivExplorer the difference of the losses. Both take bins: either
quintiles and single categories, or bins that are cut exactly where the planted group begins, which nobody would know.

DivExplorer enumerates all frequent patterns, also of more conditions. Here patterns of up to two are enumerated by a
product of matrices, and in the first world of each cell of 5,000 rows, its own results are checked to be the same.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from dafh import compare
from research.guarantees.discoveries import Planted

MOST_NAMED = 10
SMALLEST = 0.01
OVERLAP = 0.5
BINS = ("quintiles", "fitting")
Mask = NDArray[np.bool_]


def discretise(table: pd.DataFrame, bins: str, share: float) -> pd.DataFrame:
    """Numbers of bins and of categories: quintiles, or bins of about equal size that end where a planted group does."""
    side = np.sqrt(share)
    quantiles = np.linspace(0, 1, 6)[1:-1]
    if bins == "fitting":
        quantiles = np.linspace(0, 1 - side, max(round(1 / side), 2))[1:]
    # All planted categories together are one item, as the last bin of a number is.
    n_merged = max(1, round(8 * side)) if bins == "fitting" else 1
    coded = {}
    for name, column in table.items():
        if column.dtype.kind in "fi":
            coded[name] = np.searchsorted(column.quantile(quantiles), column)
        else:
            coded[name] = np.maximum(column.map("abcdefgh".index) - n_merged + 1, 0)
    return pd.DataFrame(coded) + 1


def sliceline(coded: pd.DataFrame, is_worse: Mask) -> list[Mask]:
    """Slices in the order of their scores, with the weight that its paper recommends."""
    from sliceline.slicefinder import Slicefinder

    finder = Slicefinder(alpha=0.95, k=MOST_NAMED, max_l=2, min_sup=round(SMALLEST * len(coded)), verbose=False)
    finder.fit(coded.to_numpy(), is_worse.astype(float))
    values = coded.to_numpy()
    return [
        np.logical_and.reduce([values[:, i] == value for i, value in enumerate(cut) if value is not None])
        for cut in finder.top_slices_[:MOST_NAMED]
    ]


def divexplorer(coded: pd.DataFrame, harm: NDArray[np.float64]) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Welch's t of every pattern of one or two items, as its package computes it; and the items, (n, I)."""
    dummies = pd.get_dummies(coded, columns=coded.columns, dtype=float)
    items = dummies.to_numpy()
    support, total, squares = (items.T @ (items * weight[:, None]) for weight in (np.ones(len(harm)), harm, harm**2))
    first, second = np.triu_indices(items.shape[1])
    frequent = support[first, second] >= SMALLEST * len(harm)
    first, second = first[frequent], second[frequent]
    n = support[first, second]
    mean = total[first, second] / n
    spread = squares[first, second] / n - mean**2
    t = (mean - harm.mean()) / np.sqrt(spread / n + harm.var() / len(harm))
    return pd.DataFrame({"first": first, "second": second, "t": t}), items


def check_divexplorer(coded: pd.DataFrame, harm: NDArray[np.float64]) -> None:
    """Compare with the results of the package itself."""
    from divexplorer import DivergenceExplorer

    patterns, _ = divexplorer(coded, harm)
    theirs = DivergenceExplorer(coded.assign(harm=harm)).get_pattern_divergence(
        SMALLEST, quantitative_outcomes=["harm"]
    )
    theirs = theirs[theirs["length"].between(1, 2)]
    np.testing.assert_allclose(np.sort(theirs["harm_t"]), np.sort(patterns["t"].abs()), rtol=1e-6)


def is_hit(masks: Sequence[Mask], member: Mask) -> bool:
    """Whether any of the groups shares half of its rows, and of theirs, with the planted one."""
    return any((mask & member).sum() >= OVERLAP * (mask | member).sum() for mask in masks)


def by_compare(table: pd.DataFrame, rows: dict[str, NDArray[np.intp]], seed: int) -> dict[str, list[Mask]]:
    """Groups that `compare` shows to lose, and the first ten rules that it tests."""
    losers = compare(**rows, X=table, random_state=seed).losers
    assert losers is not None
    answers = {"dafh, shown": losers.shown_regions, "dafh, first ten": losers.regions[:MOST_NAMED]}
    return {name: [region.holds(table) for region in regions] for name, regions in answers.items()}


def world(planted: Planted, seed: int) -> dict[str, bool]:
    """Whether the planted group is among those that each names in one world; any group at all where none loses."""
    table, member, rows = planted.draw(seed)
    harm = (rows["new"] != rows["y"]).astype(float) - (rows["old"] != rows["y"])
    answers = by_compare(table, rows, seed)
    for bins in BINS:
        coded = discretise(table, bins, planted.share)
        patterns, items = divexplorer(coded, harm)
        if seed == 0 and planted.n_rows <= 5_000:  # Beyond, its package takes minutes.
            check_divexplorer(coded, harm)
        best = patterns.sort_values("t", ascending=False).head(MOST_NAMED)
        masks = [items[:, line.first] * items[:, line.second] > 0 for line in best.itertuples()]
        # Two-sided, as the package's t has no sign.
        significant = int((best["t"] >= norm.isf(0.025)).sum())
        corrected = int((best["t"] >= norm.isf(0.025 / len(patterns))).sum())
        answers |= {
            f"SliceLine, first ten, {bins}": sliceline(coded, harm > 0),
            f"DivExplorer, first ten, {bins}": masks,
            f"DivExplorer, t ≥ 1.96, {bins}": masks[:significant],
            f"DivExplorer, Bonferroni, {bins}": masks[:corrected],
        }
    return {tool: is_hit(masks, member) if planted.loss else bool(masks) for tool, masks in answers.items()}


def cells() -> Iterator[Planted]:
    """Planted groups, and worlds in which none loses."""
    for n_rows in (5_000, 20_000):
        yield Planted(n_rows, 0.05, 0.0)
        for share in (0.02, 0.05, 0.1):
            for loss in (0.05, 0.1, 0.2):
                yield Planted(n_rows, share, loss)


def slice_table(n_worlds: int = 50) -> pd.DataFrame:
    """Share of worlds in which each names the planted group; any group, where the loss is 0."""
    lines = []
    for planted in cells():
        shares = pd.DataFrame([world(planted, seed) for seed in range(n_worlds)]).mean()
        lines.append({"rows": planted.n_rows, "share": planted.share, "loss": planted.loss, **shares})
        print(lines[-1], flush=True)
    return pd.DataFrame(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(slice_table(int(sys.argv[1]) if sys.argv[1:] else 50).round(2).to_string(index=False))
