"""Groups that nobody has named: regions found on one half of the rows, and tested on the other.

A search that looks at thousands of regions finds some that look bad by chance. What it finds here is therefore judged
by rows that it has not seen. The two halves exchange their roles: the rules of the first half are tested on the second
and the reverse, each family of tests with half of the level. Given the rows of a search its rules are fixed, so that
Holm's correction within a family makes P(any false claim of the family) ≤ level / 2, and that of any in both ≤ level.
With times, rules are found on earlier rows and tested on later ones only.

Tests and limits are those of the audit (`dafh.stats.Differences`): exact for rows that count alike, with weights and
costs allowed for, and persons as units. A limit holds for all tested rules together (Bonferroni), and therefore also
for those that are shown because they look bad.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.evaluation.compared import RowHarm
from dafh.exceptions import InputError
from dafh.regions.conditions import Region
from dafh.regions.search import Candidate, RegionSearch, Score
from dafh.stats import Differences, holm
from dafh.text import percent

RULES = 5
"""Rules of each search that are tested. More rules find more groups and leave less of the level for each."""
MOST_SEARCHED = 100_000
"""Rows that a search looks at. Tests use all rows of the other half."""
_FEWEST_ROWS = 25
# Two rules that share more of their rows than this are taken for one, of which the better is kept.
_SAME = 0.5
_CANDIDATES = 40
# In standard errors: a further condition has to add more than this, or it says nothing that a reader should remember.
_COST_OF_CONDITION = 0.3
# Share of a direction's level for the limit of everybody's loss, above which a group's loss must lie to be a failure.
_SHARE_OF_REFERENCE = 0.05


COLUMNS = (
    "rule", "loss", "rows", "share", "tested", "harm", "low", "high", "worse", "better", "p", "p_corrected", "shown",
    "reference", "direction",
)  # fmt: skip
"""Columns of a table of discovered groups; `discover` says what they mean."""


@dataclass(frozen=True, eq=False)
class Discovered:
    """Groups that searches have found, with what the rows that were not searched say about them."""

    table: pd.DataFrame
    """One row for each group, in the order of `regions`; columns as in `discover`."""
    regions: tuple[Region, ...]
    tested: tuple[NDArray[np.bool_], ...]
    """Rows that judged the rules of each search, (n,) each."""
    judged: tuple[NDArray[np.bool_], ...]
    """Rows of each group that judged it, (n,) each."""
    n_tests: int
    """Tests that were corrected for together."""
    n_searched: int
    """Rows that each search looked at, on average."""
    smallest: float
    """Smallest share of the rows in a group."""
    depth: int
    """Most conditions of a rule."""

    @property
    def shown_regions(self) -> tuple[Region, ...]:
        """Rules of the groups whose harm is shown."""
        return tuple(self.regions[number] for number in np.flatnonzero(self.table["shown"]))

    def means(self, harms: Mapping[str, RowHarm]) -> list[float]:
        """Mean of another harm, or loss, on the rows that judged each group; `harms` by the name of the loss."""
        return [harms[name].mean(mask) for name, mask in zip(self.table["loss"], self.judged, strict=True)]

    def with_columns(self, **columns: Any) -> "Discovered":
        """The same with more columns in the table."""
        return replace(self, table=self.table.assign(**columns))

    def method(self, level: float) -> str:
        """Say how groups were found and tested."""
        how = (
            "found on the earlier half of the rows and tested on the later one"
            if len(self.tested) == 1
            else "found on each half of the rows and tested on the other"
        )
        conditions = "1 condition" if self.depth == 1 else f"up to {self.depth} conditions"
        return (
            f"Rules of {conditions} and at least {percent(self.smallest)} of the rows were {how} ({self.n_tests} "
            f"tests; {self.n_searched:,} rows searched at a time). Figures beside a rule are about tested rows; each "
            f"of its limits holds for all rules together with {100 * (1 - level):g}%."
        )


def discover(
    table: pd.DataFrame,
    harms: Sequence[RowHarm],
    *,
    level: float,
    smallest: float = 0.01,
    depth: int = 2,
    time: NDArray[np.float64] | None = None,
    random_state: int = 0,
) -> Discovered:
    """Find the regions with most harm on one half of the rows, and test them on the other; then the other way round.

    The questions share the level, which is the accepted probability of any group that is shown to be harmed and is not.
    With the time of each row, rules are found on the earlier half and tested on the later one, and not exchanged.

    The table of the result has the columns rule; loss; rows and share, of all rows; tested, the rows that count in the
    test; harm on these, with low and high, each of which holds for all rules together with a probability of 1 − level;
    worse and better, tested units with more or less loss; p, p_corrected and shown, the answer at the level; reference,
    the harm beyond which a group is shown to be harmed; and direction, which search found the rule.
    """
    person = harms[0].person
    directions = list(_halves(len(table), person, time, np.random.default_rng(random_state)))
    tables: list[pd.DataFrame] = []
    regions: list[Region] = []
    n_searched = []
    for direction, (searched, tested) in enumerate(directions):
        sample = np.flatnonzero(searched)
        sample = sample[:: max(-(-len(sample) // MOST_SEARCHED), 1)]
        n_searched.append(len(sample))
        candidates = _search(table.iloc[sample], sample, harms, smallest, depth)
        members = memberships(table, [region for _, region in candidates])
        answers = _tested(members, candidates, searched, tested, harms, level, len(directions))
        tables.append(answers.assign(direction=direction))
        # In the order of the answers: by question.
        regions += [candidates[position][1] for position in answers["position"]]
    together = pd.concat(tables, ignore_index=True)
    members = memberships(table, regions)
    order = _distinct(together, members, harms)
    return Discovered(
        table=together.loc[order, list(COLUMNS)].reset_index(drop=True),
        regions=tuple(regions[i] for i in order),
        tested=tuple(tested for _, tested in directions),
        judged=tuple(members[:, i] & directions[together["direction"][i]][1] for i in order),
        n_tests=sum(len(answers) for answers in tables),
        n_searched=int(np.mean(n_searched)),
        smallest=smallest,
        depth=depth,
    )


def memberships(table: pd.DataFrame, regions: Sequence[Region]) -> NDArray[np.bool_]:
    """Whether each row lies in each region, (n, R)."""
    columns = [region.holds(table) for region in regions]
    return np.column_stack(columns) if columns else np.zeros((len(table), 0), bool)


def _halves(
    n_rows: int, person: NDArray[np.intp] | None, time: NDArray[np.float64] | None, rng: np.random.Generator
) -> Iterable[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Rows that are searched and rows that are tested, in each direction. A person's rows are in one half."""
    unit = np.arange(n_rows) if person is None else person
    n_units = int(unit.max()) + 1
    if time is not None:
        last = np.full(n_units, -np.inf)
        np.maximum.at(last, unit, time)
        # Whoever has rows in both halves is tested: the search must not have seen them.
        earlier = (last <= np.quantile(time, 0.5))[unit]
        yield earlier, ~earlier
        return
    first = np.zeros(n_units, bool)
    first[rng.permutation(n_units)[: n_units // 2]] = True
    half = first[unit]
    yield half, ~half
    yield ~half, half


def _search(
    table: pd.DataFrame, sample: NDArray[np.intp], harms: Sequence[RowHarm], smallest: float, depth: int
) -> list[tuple[int, Region]]:
    """Number of the question, and the region, of the best rules that differ from each other."""
    if len(table) < 2 * _FEWEST_ROWS:
        return []
    binning = Binning.learn(table, readable=True)
    values = []
    for harm in harms:
        reference = harm.mean(sample) if harm.margin is None else harm.margin
        excess = harm.difference[sample] - reference * harm.size[sample]
        values += [excess, harm.size[sample] ** 2]
    search = RegionSearch(
        binning,
        binning.codes(table),
        np.column_stack(values).astype(np.float32),
        _score(0),
        max(_FEWEST_ROWS, smallest * len(table)),
    )
    regions: list[tuple[int, Region]] = []
    for number, (excess, squares) in enumerate(zip(values[::2], values[1::2], strict=True)):
        search.score = _score(number)
        cost = _COST_OF_CONDITION * float(np.sqrt((excess**2).sum() / max(squares.sum(), 1e-12)))
        regions += [(number, candidate.region(binning)) for candidate in _best_distinct(search, depth, cost)]
    return regions


def _score(number: int) -> Score:
    """Sum of the harm over the root of the sum of squared sizes: the mean in standard errors, but for a factor.

    The spread is taken to be the same everywhere. That of the region itself, as in McNemar's test, favours regions that
    add rows without any difference to the harmed ones, which makes them easy to find and hard to recognise.
    """

    def score(sums: NDArray[np.float64], _: NDArray[np.float64]) -> NDArray[np.float64]:
        excess, squares = sums[:, 2 * number], sums[:, 2 * number + 1]
        return np.where(squares > 0, excess / np.sqrt(np.maximum(squares, 1e-12)), -np.inf)

    return score


def _best_distinct(search: RegionSearch, depth: int, cost: float) -> list[Candidate]:
    """The best candidates that differ from each other; each further condition costs some of the score."""
    chosen: list[tuple[Candidate, NDArray[np.bool_]]] = []
    for candidate in sorted(search.best(depth, _CANDIDATES), key=lambda rule: cost * len(rule.bins) - rule.score):
        if candidate.score <= 0 or len(chosen) == RULES:
            break
        if _is_new(search.inside(candidate), chosen):
            refined = search.refined(candidate)
            members = search.inside(refined)
            if _is_new(members, chosen):
                chosen.append((refined, members))
    return [candidate for candidate, _ in chosen]


def _is_new(members: NDArray[np.bool_], chosen: Iterable[tuple[Any, NDArray[np.bool_]]]) -> bool:
    return all((members & earlier).sum() <= _SAME * (members | earlier).sum() for _, earlier in chosen)


def _tested(
    members: NDArray[np.bool_],
    regions: Sequence[tuple[int, Region]],
    searched: NDArray[np.bool_],
    tested: NDArray[np.bool_],
    harms: Sequence[RowHarm],
    level: float,
    n_families: int,
) -> pd.DataFrame:
    """Test the rules of one search on the other rows, corrected for all of them and for the other family."""
    tables = []
    for number, harm in enumerate(harms):
        positions = [position for position, (question, _) in enumerate(regions) if question == number]
        masks = [members[:, position] & tested for position in positions]
        differences = harm.among(masks)
        strict, reference = level / n_families, harm.margin or 0.0
        if harm.margin is None and positions:
            reference = float(harm.among([searched]).upper(_SHARE_OF_REFERENCE * strict)[0])
            strict *= 1 - _SHARE_OF_REFERENCE
        each = strict / max(len(regions), 1)
        tables.append(
            pd.DataFrame(
                {
                    "position": np.array(positions, np.intp),
                    "rule": [str(regions[position][1]) for position in positions],
                    "loss": harm.name,
                    "rows": members[:, positions].sum(axis=0),
                    "share": members[:, positions].mean(axis=0),
                    "tested": np.array([(harm.size[mask] > 0).sum() for mask in masks], np.intp),
                    "harm": differences.harm,
                    "low": differences.lower(each),
                    "high": differences.upper(each),
                    "worse": differences.own_worse.astype(np.int64),
                    "better": differences.own_better.astype(np.int64),
                    # What the reference has used up of the level is missing here.
                    "p": np.minimum(differences.p_beyond(reference) * level / (strict * n_families), 1.0),
                    "reference": reference,
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    corrected = np.minimum(holm(table["p"].to_numpy(np.float64)) * n_families, 1.0)
    is_shown = corrected <= level
    # Limits that agree with Holm's tests: below the reference lies none of those that are shown (Guilbaud 2008).
    low = np.where(is_shown, np.maximum(table["low"], table["reference"]), table["low"])
    return table.assign(low=low, p_corrected=corrected, shown=is_shown)


def _distinct(table: pd.DataFrame, members: NDArray[np.bool_], harms: Sequence[RowHarm]) -> list[int]:
    """Positions of groups to list: those shown first, without those that lose only because they contain these.

    What is left out was tested and counted all the same: a list that is shorter makes no claim that is new.
    """
    # By the score of the search: p-values put a wide group that contains the harmed one before it.
    score = (table["harm"] - table["reference"]) * np.sqrt(table["tested"])
    listed: list[int] = []
    for position in table.assign(hidden=~table["shown"], score=-score).sort_values(["hidden", "score"]).index:
        same = [members[:, earlier] for earlier in listed if table["loss"][earlier] == table["loss"][position]]
        if not _is_new(members[:, position], [(None, rows) for rows in same]):
            continue
        if table["shown"][position] and same:
            harm = next(harm for harm in harms if harm.name == table["loss"][position])
            excess = harm.difference - table["reference"][position] * harm.size
            elsewhere = members[:, position] & ~np.logical_or.reduce(same)
            if excess[elsewhere].sum() < _SAME * excess[members[:, position]].sum():
                continue
        listed.append(int(position))
    return listed


_BINS = 8
_ROWS_AT_A_TIME = 50_000


@dataclass(frozen=True)
class EveryRule:
    """A limit that holds for all rules of a class together."""

    share: float
    """Smallest share of the rows in a group."""
    n_rules: int
    """Rules of at least this size."""
    limit: float
    """Harm that no rule exceeds."""
    level: float


def limit_every_rule(table: pd.DataFrame, harm: RowHarm, *, share: float, level: float) -> EveryRule:
    """Limit the harm of every rule that at least a share of the rows satisfies.

    Rows must count alike, each as a person of its own; `level` is the probability that any of the limits is too low.
    """
    counted = np.unique(harm.size[harm.size > 0])
    if harm.person is not None or len(counted) > 1:
        raise InputError("A limit for every rule needs rows that count alike: leave persons and weights out.")
    kinds = np.unique(harm.difference)
    counts = count_rules(table, harm, kinds)
    counts = counts[counts.sum(axis=1) >= share * max((harm.size > 0).sum(), 1)]
    if not len(counts):
        raise InputError(f"No rule has {share:.0%} of the rows: lower every_rule.")
    differences = Differences(kinds, np.full(len(kinds), counted[0]), counts, harm.worst, harm.largest)
    return EveryRule(share, len(counts), _largest_limit(differences.distinct()[0], level / len(counts)), level)


def _largest_limit(differences: Differences, level: float) -> float:
    """Largest of the limits of all questions.

    A limit takes seven evaluations of a test, and whether it lies above another takes one: those with the largest
    normal approximations are computed, then those that one test shows to lie above these.
    """
    units = differences.counts.sum(axis=1) + 1
    approximate = differences.harm + 4 * np.sqrt((differences.spread + 1 / units) / units)
    largest = differences.take(np.argsort(-approximate)[:20]).upper(level).max()
    above = np.flatnonzero(differences.p_within(largest) > level)
    return float(np.append(differences.take(above).upper(level), largest).max())


def count_rules(table: pd.DataFrame, harm: RowHarm, kinds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of rows with each difference, for every rule of one condition or two, (M, V)."""
    binning = Binning.learn(table, most=_BINS, readable=True)
    first = np.concatenate([[0], np.cumsum(binning.n_bins)]).astype(np.intp)
    allowed = np.column_stack(list(_conditions(binning)))
    pairs = np.zeros((len(kinds), first[-1], first[-1]))
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        codes = binning.codes(table.iloc[rows]) + first[:-1]
        one_hot = np.zeros((len(codes), first[-1]), np.float32)
        np.put_along_axis(one_hot, codes, 1.0, axis=1)
        kind, is_counted = np.searchsorted(kinds, harm.difference[rows]), harm.size[rows] > 0
        for number in range(len(kinds)):
            # Whole numbers below 2²⁴ are exact in single precision.
            rows_of_kind = one_hot[is_counted & (kind == number)]
            pairs[number] += rows_of_kind.T @ rows_of_kind
    both = np.stack([allowed.T @ pair @ allowed for pair in pairs], axis=-1)
    return both[np.triu_indices(allowed.shape[1])]


def _conditions(binning: Binning) -> Iterator[NDArray[np.float64]]:
    """Bins that each condition allows, of all columns one after the other."""
    first = np.concatenate([[0], np.cumsum(binning.n_bins)])
    for number, column in enumerate(binning.columns):
        bin_number = np.arange(column.n_bins)
        if column.is_category:
            sides = [bin_number == code for code in range(len(column.categories))]
            sides += [~side for side in sides] if len(sides) > 2 else []
        else:
            # The last bin holds missing values.
            sides = [(bin_number <= cut) & (bin_number < column.n_bins - 1) for cut in range(column.n_bins - 2)]
            sides += [~side & (bin_number < column.n_bins - 1) for side in sides]
        for side in sides:
            allowed = np.zeros(first[-1])
            allowed[first[number] : first[number + 1]] = side
            yield allowed
