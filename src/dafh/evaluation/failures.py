"""find_failures: whom one model fails, without being told whom to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from threadpoolctl import threadpool_limits

from dafh.columns.bins import Binning
from dafh.columns.labels import find_labels
from dafh.evaluation.compared import ComparedRows, RowHarm
from dafh.evaluation.decisions import compare_two, decide, features_of
from dafh.evaluation.discovery import Discovered, discover, memberships
from dafh.evaluation.losses import ERROR, SMALL_LOSS, TITLES, Loss, check_losses, level_in_words, short_unit
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.questions import check_options
from dafh.frames import Table
from dafh.regions.conditions import Region
from dafh.stats import holm
from dafh.text import Readable, Section, clipped, listed, plain, points
from dafh.validation import as_array, check_times

_MOST_DISCOVERED, _MOST_NAMED, _MOST_HELPED = 10, 8, 5
_RATES = {"above": "observed above predicted rate", "below": "observed below predicted rate"}
# Predicted rates are compared with outcomes to a fifth of a percentage point, rounded towards "no difference".
_STEPS_OF_RATES = 500
# Boosting tells what a strong model would reach: on at most so many rows, in so many folds.
_MOST_BOOSTED, _FOLDS = 20_000, 3


@dataclass(frozen=True, eq=False, repr=False)
class Failures(Readable):
    """Groups that one model fails; prints as a summary. Made by `find_failures`.

    Examples
    --------
    >>> from dafh import find_failures
    >>> y, older = np.tile([0, 1], 500), np.repeat(["no", "yes"], 500)
    >>> result = find_failures(y, np.where(older == "yes", 1 - y, y), pd.DataFrame({"older": older}), losses="error")
    >>> result.headline, result.regions
    ('Served worse than all rows: 1 group', (older is yes,))
    """

    discovered: Discovered
    """Rules that searches have found, tested on other rows; `harm` is the loss. With a pooled classifier also gain,
    gain_low and gain_high, what own classifiers gain over it on the same rows; n_differ, units for which that matters;
    and strong_loss, that of boosting on the same columns."""
    named: pd.DataFrame | None
    """Loss of each named group with limits, those that fail first; None without sensitive features."""
    overall: dict[str, float]
    """Each loss over all rows."""
    n_rows: int
    level: float

    @property
    def regions(self) -> tuple[Region, ...]:
        """Discovered groups that are shown to fail, the largest excess for its size first."""
        return self.discovered.shown_regions

    @property
    def headline(self) -> str:
        """How many groups are shown to fail."""
        n_failing = len(self.regions)
        n_named = 0 if self.named is None else int(self.named.loc[self.named["shown"], "group"].nunique())
        if not n_failing + n_named:
            return "No group is shown to be served worse than all rows"
        groups = f"{n_failing} group{'' if n_failing == 1 else 's'}"
        named = f" and {n_named} named group{'s' * (n_named > 1)}" if n_named else ""
        return f"Served worse than all rows: {groups}{named}"

    def sentences(self) -> list[str]:
        """How the model does on all rows."""
        losses = [name for name in self.overall if name in TITLES]
        levels = [f"{TITLES[name]} {level_in_words(name, self.overall[name])}" for name in losses]
        return [f"All {self.n_rows:,} rows: {listed(levels)}."]

    def helped(self) -> list[str]:
        """For each failing group, whether own classifiers helped there, where the pooled one is known."""
        table = self.discovered.table
        if "gain" not in table:
            return []
        return [_help(row) for _, row in table[table["shown"]].head(_MOST_HELPED).iterrows()]

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and tables: discovered groups, then named ones."""
        table = self.discovered.table
        failing = table[table["shown"]].rename(columns={"rule": "group"}).head(_MOST_DISCOVERED)
        listing = [("Groups that the model fails:", failing)]
        if self.named is not None:
            named = self.named[self.named["rows"] >= SMALLEST_SHOWN]
            listing.append(("Named groups, by evidence:", named.head(_MOST_NAMED)))
        return [(title, self._display(table)) for title, table in listing if len(table)]

    def _display(self, table: pd.DataFrame) -> pd.DataFrame:
        def written(*names: str) -> list[list[str]]:
            return [[level_in_words(row["loss"], row[name]) for name in names] for _, row in table.iterrows()]

        return pd.DataFrame(
            {
                "group": [clipped(group, 100) for group in table["group"]],
                "what": [_RATES.get(loss) or TITLES[loss] for loss in table["loss"]],
                "rows": [f"{n:,}" for n in table["rows"]],
                "level": [level for (level,) in written("harm")],
                "limits": [f"{low} to {high}" for low, high in written("low", "high")],
                "all rows": [level_in_words(loss, self.overall[loss]) for loss in table["loss"]],
                "answer": np.where(table["shown"], "fails", "not shown"),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; unknown and infinite numbers become None."""
        return {
            "headline": self.headline,
            "sentences": self.sentences(),
            "method": self.discovered.method(self.level),
            "helped": self.helped(),
            "overall": plain(self.overall),
            "groups": [plain(row) for row in self.discovered.table.to_dict("records")],
            "named": None if self.named is None else [plain(row) for row in self.named.to_dict("records")],
        }

    def sections(self) -> list[Section]:
        """What to read, from the headline down."""
        closing = [self.helped(), [self.discovered.method(self.level)]]
        return [
            Section(sentences=[f"{self.headline}."]),
            Section(sentences=self.sentences()),
            *(Section(title, table=table) for title, table in self.parts()),
            *(Section(sentences=sentences) for sentences in closing if sentences),
        ]


def _help(row: "pd.Series[Any]") -> str:
    """Say whether own classifiers helped in a failing group, if not why, and what a strong model would reach."""
    who, strong = clipped(row["rule"], 100), row.get("strong_loss", np.nan)
    beside = "" if np.isnan(strong) else f" Boosting on the same columns: {level_in_words(row['loss'], strong)}."
    if not row["n_differ"]:
        return f"{who}: decided as by the pooled classifier; no better classifier was found.{beside}"
    gain, low, high = (points(row[name]) for name in ("gain", "gain_low", "gain_high"))
    answers = ("they help", "the pooled classifier is better", "no relevant gain", "too few rows to tell")
    holds = (row["gain_low"] > 0, row["gain_high"] < 0, row["gain_high"] < SMALL_LOSS, True)
    answer = answers[holds.index(True)]
    return f"{who}: own classifiers gain {gain} {short_unit(row['loss'])} there ({low} to {high}): {answer}.{beside}"


def find_failures(
    y: ArrayLike,
    prediction: Any,
    X: Table,
    *,
    sensitive_features: Table | None = None,
    sample_weight: ArrayLike | None = None,
    persons: ArrayLike | None = None,
    time: ArrayLike | None = None,
    losses: str | Sequence[str] | None = None,
    costs: Mapping[str, float] | None = None,
    level: float = 0.05,
    cutoff: float = 0.5,
) -> Failures:
    """Find the groups that one model fails, without being told whom to look at.

    A group fails where its loss is shown to be higher than that of all rows. Rules are found on one half of the rows,
    and tested and measured on the other, and the reverse: the probability of any group that is shown to fail and does
    not is at most `level`.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    prediction : array of shape (n,) or fitted classifier
        Labels, or scores from 0 to 1 for the second label in sorted order; or the model itself. With scores, predicted
        rates are compared with observed ones, too.
    X : data frame or array with n rows
        What rules may be about.
    sensitive_features, sample_weight, persons, time, costs, level
        As in `compare`.
    losses : name or sequence of names, optional
        By default the error rate, and with two classes also false positive and false negative rate.
    cutoff : float, default=0.5
        Scores above it predict the second label.

    Returns
    -------
    Failures
        With `discovered`, `named`, `summary()`, `to_dict()` and `regions`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(20, 70, 4000), "job": rng.choice(["cook", "clerk"], 4000)})
    >>> y = rng.integers(0, 2, 4000)
    >>> prediction = np.where(rng.random(4000) < np.where(X["age"] > 50, 0.6, 0.9), y, 1 - y)
    >>> find_failures(y, prediction, X, losses="error").regions
    (age is above 50,)
    """
    check_options(level)
    (decided,), classes = decide(y, {"prediction": (prediction, cutoff)}, X)
    n_rows = len(decided.codes)
    truth = find_labels(pd.Series(as_array(y, "y")), classes)[0]
    if losses is None:
        losses = ("error", "fpr", "fnr") if len(classes) == 2 else "error"
        losses = (*losses, "cost") if costs and len(classes) == 2 else losses
    return _find(
        compare_two(truth, decided.codes, truth, classes, sample_weight, persons),
        features_of(X, n_rows),
        check_losses(losses, costs),
        None if sensitive_features is None else NamedGroups.of(sensitive_features, n_rows),
        score=decided.score,
        time=check_times(time, n_rows),
        level=level,
    )


@dataclass(frozen=True, eq=False)
class Search:
    """What an audit searches for groups that nobody has named: whom the model fails, and who loses by it."""

    rows: ComparedRows
    table: pd.DataFrame
    """What rules may be about."""
    losses: tuple[Loss, ...]
    named_groups: NamedGroups | None
    level: float
    margin: float

    def failures(self) -> Failures:
        """Groups that the model fails, and whether own classifiers help there; always in kinds of error, too."""
        losses = self.losses
        if self.rows.positive is not None:
            losses = tuple({loss.name: loss for loss in (*losses, ERROR, Loss("fpr"), Loss("fnr"))}.values())
        failures = _find(self.rows, self.table, losses, self.named_groups, level=self.level)
        discovered = _with_gains(failures.discovered, self.rows, losses, self.level)
        return replace(failures, discovered=_with_strong_model(discovered, self.rows, losses, self.table))

    def losers(self) -> pd.DataFrame:
        """Groups with most evidence of harm beside the pooled classifier, and the named group that each is, if any."""
        harms = [self.rows.harm(loss, self.rows.own_right, self.rows.right[:, -1]) for loss in self.losses]
        discovered = discover(self.table, [replace(harm, margin=self.margin) for harm in harms], level=self.level)
        members = memberships(self.table, discovered.regions)
        return discovered.table.assign(
            # Written like intersections of named groups: sentences join names of groups by "and".
            group=[" & ".join(map(str, region.conditions)) for region in discovered.regions],
            same_as=[self._named_alike(member) for member in members.T],
        )

    def _named_alike(self, member: NDArray[np.bool_]) -> str:
        """Name of the named group that shares more than half of all rows of both; empty if there is none."""
        for names, group in () if self.named_groups is None else self.named_groups.divisions(depth=2):
            size, shared = np.bincount(group, minlength=len(names)), np.bincount(group[member], minlength=len(names))
            overlap = shared / (size + member.sum() - shared)
            if overlap.max() > 0.5:
                return names[overlap.argmax()]
        return ""


def _find(
    rows: ComparedRows,
    table: pd.DataFrame,
    losses: Sequence[Loss],
    named_groups: NamedGroups | None,
    *,
    score: NDArray[np.float64] | None = None,
    time: NDArray[np.float64] | None = None,
    level: float,
) -> Failures:
    harms = [rows.harm(loss, rows.own_right) for loss in losses]
    if score is not None and rows.positive is not None:
        harms += _rate_harms(rows.positive, score, rows.harm(ERROR, rows.own_right))
    # Named and discovered groups share the level.
    share = level if named_groups is None else level / 2
    return Failures(
        discovered=discover(table, harms, level=share, time=time),
        named=None if named_groups is None else _failing_names(rows, losses, named_groups, share),
        overall={harm.name: harm.mean(np.ones(len(table), bool)) for harm in harms},
        n_rows=len(table),
        level=level,
    )


def _rate_harms(positive: NDArray[np.bool_], score: NDArray[np.float64], like: RowHarm) -> list[RowHarm]:
    """Observed above predicted rates, and the reverse, both rounded so that the difference is not overstated."""
    up, down = (step(score * _STEPS_OF_RATES) / _STEPS_OF_RATES for step in (np.ceil, np.floor))
    above = replace(like, name="above", difference=like.size * (positive - up), worst=1.0, margin=0.0)
    return [above, replace(above, name="below", difference=like.size * (down - positive))]


def _failing_names(rows: ComparedRows, losses: Sequence[Loss], groups: NamedGroups, level: float) -> pd.DataFrame:
    """Loss of each named group with limits, and whether it is shown to be above that of all rows."""
    tables = []
    for loss in losses:
        harm = rows.harm(loss, rows.own_right)
        # A twentieth of the level is for the limit of everybody's loss, the rest for the groups.
        reference = harm.among([np.ones(len(harm.size), bool)]).upper(level / 20 / len(losses))[0]
        for names, group in groups.divisions(depth=2):
            differences = harm.by_group(group, len(names))
            columns = {
                "group": names,
                "loss": loss.name,
                "rows": rows.losses_by_group(loss, rows.own_right, rows.own_right, group, len(names))["n"],
                "harm": differences.harm,
                "low": differences.lower(level / 2),
                "high": differences.upper(level / 2),
                "p": np.minimum(differences.p_beyond(reference) / 0.95, 1.0),
                "reference": reference,
            }
            tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True).query("rows > 0")
    corrected = holm(table["p"].to_numpy(np.float64))
    table = table.assign(p_corrected=corrected, shown=corrected <= level)
    return table.sort_values(["shown", "p"], ascending=[False, True], kind="stable", ignore_index=True)


# ---- what own classifiers, or a strong model, would do in a failing group ----


def _with_gains(discovered: Discovered, rows: ComparedRows, losses: Sequence[Loss], level: float) -> Discovered:
    """Add what own classifiers gain over the pooled one in each group, with an interval."""
    harms = {loss.name: rows.harm(loss, rows.own_right, rows.right[:, -1]) for loss in losses}
    columns: dict[str, list[float]] = {name: [] for name in ("gain", "gain_low", "gain_high", "n_differ")}
    for name, mask in zip(discovered.table["loss"], discovered.judged, strict=True):
        differences = harms[name].among([mask])
        low, high = differences.gain_limits(level / 2)
        n_differ = int(differences.own_worse[0] + differences.own_better[0])
        for column, value in zip(columns.values(), (differences.gain[0], low[0], high[0], n_differ), strict=True):
            column.append(value)
    return discovered.with_columns(**columns)


def _with_strong_model(
    discovered: Discovered, rows: ComparedRows, losses: Sequence[Loss], table: pd.DataFrame
) -> Discovered:
    """Add the loss that boosting has in each group, cross-fitted on these rows, where there are two classes."""
    if (
        rows.positive is None
        or not discovered.shown_regions
        or min(rows.positive.sum(), (~rows.positive).sum()) < _FOLDS
    ):
        return discovered
    sample = np.arange(0, len(table), -(-len(table) // _MOST_BOOSTED))
    person = np.arange(len(table)) if rows.person is None else rows.person
    fold = np.random.default_rng(0).integers(0, _FOLDS, int(person.max()) + 1)[person[sample]]
    features, positive = Binning.learn(table).codes(table.iloc[sample]), rows.positive[sample]
    if any(len(np.unique(positive[fold != held_out])) < 2 for held_out in range(_FOLDS)):
        return discovered
    booster = HistGradientBoostingClassifier(max_leaf_nodes=15, early_stopping=True, random_state=0)
    # Several threads wait for each other on a busy machine, much longer than one works.
    with threadpool_limits(1):
        predicted = cross_val_predict(booster, features, positive, cv=PredefinedSplit(fold))
    sampled = rows.take(sample)
    harms: dict[str, RowHarm] = {loss.name: sampled.harm(loss, predicted == positive) for loss in losses}
    judged = tuple(mask[sample] for mask in discovered.judged)
    return discovered.with_columns(strong_loss=replace(discovered, judged=judged).means(harms))
