"""compare: who gains and who loses from a change of model, and find_failures: whom one model fails.

Both take decisions of any models. Groups that attributes name are tested as in an audit; groups that nobody has named
are found and tested by `dafh.evaluation.discovery`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from threadpoolctl import threadpool_limits

from dafh.columns.bins import Binning, named_table
from dafh.columns.labels import find_labels
from dafh.evaluation.compared import ComparedRows, RowHarm
from dafh.evaluation.discovery import Discovered, EveryRule, discover, limit_every_rule, memberships
from dafh.evaluation.losses import ERROR, TITLES, Loss, check_losses, in_points, level_in_words
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.questions import COLUMNS, answer, ask_groups, ask_named_groups
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.regions.conditions import Region
from dafh.stats import holm
from dafh.text import clipped, listed, percent, plain, points, quoted, render_html, render_text, shown
from dafh.validation import as_array, check_times, is_real

Status = Literal["harm", "unchanged", "better", "undecided", "different"]
# Harm of this size is worth a line where it is not ruled out.
_WORTH_A_LINE = 0.01
_MOST_LINES = 5
_MOST_NAMED = 8
_RATES = {"above": "observed above predicted rate", "below": "observed below predicted rate"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Who gains and who loses from a change of model; prints as a summary. Made by `compare`.

    Examples
    --------
    >>> from dafh import compare
    >>> y, older = np.tile([0, 1], 500), np.repeat(["no", "yes"], 500)
    >>> result = compare(y, y, np.where(older == "yes", 1 - y, y), pd.DataFrame({"older": older}))
    >>> result.headline, result.regions
    ('Do not release: the loss over all rows rises and 1 group loses', (older is yes,))
    >>> result.to_frame()[["group", "gain", "answer"]].head(2)
              group  gain answer
    0     everybody  -0.5  loses
    1  older is yes  -1.0  loses
    """

    is_labelled: bool
    """Whether true labels were given. Without them, "loss" means the share that is not flagged."""
    everybody: pd.DataFrame
    """The question about all rows, for each loss; columns as in `AuditResult.to_frame`."""
    named: pd.DataFrame | None
    """The same for named groups; None without sensitive features."""
    losers: Discovered | None
    """Rules that searches for harm have found, tested on other rows; None without features."""
    gainers: Discovered | None
    """Rules that searches for gain have found; their `harm` is the gain."""
    every_rule: EveryRule | None
    """One limit for every rule, where it was asked for."""
    n_rows: int
    differ: float
    """Share of the rows that the models decide differently."""
    log_loss: tuple[float, float] | None
    """Mean log-loss of the old and the new model, where both give scores."""
    cutoffs: tuple[tuple[str, float], ...]
    """Models that give scores, and where these are cut."""
    flagged: str
    """The label that is predicted for a flagged row, where there are two."""
    level: float
    margin: float

    def to_frame(self) -> pd.DataFrame:
        """One row for everybody, then for each discovered and each named group.

        Columns: group; kind (everybody, discovered or named); loss; rows and share, of all rows; tested, the rows that
        the figures are about; old_loss and new_loss; gain, old minus new, with the limits low and high; p_corrected;
        and answer: loses, gains, not worse or undecided. Limits of discovered groups hold for all rules together,
        others are for one question. Without labels the losses are shares that are not flagged.
        """
        parts = [_of_questions(self.everybody, "everybody", self.n_rows)]
        for found, sign, verdict in ((self.losers, -1.0, "loses"), (self.gainers, 1.0, "gains")):
            parts += [] if found is None else [_of_discovered(found, sign, verdict)]
        parts += [] if self.named is None else [_of_questions(self.named, "named", self.n_rows)]
        return pd.concat([part for part in parts if len(part)], ignore_index=True)

    @property
    def regions(self) -> tuple[Region, ...]:
        """Discovered groups that are shown to lose, the largest harm for its size first."""
        return () if self.losers is None else self.losers.shown_regions

    @property
    def status(self) -> Status:
        """What was found, as one word.

        ``"harm"``: some group is shown to lose. ``"unchanged"``: both models decide alike. ``"better"``: nobody is
        shown to lose, and the loss of all rows is shown to be lower. ``"undecided"``: neither. ``"different"``:
        without labels, some group is shown to be flagged more or less often.
        """
        table = self.to_frame()
        if not self.is_labelled:
            return "different" if table["answer"].isin(["loses", "gains"]).any() else "undecided"
        if (table["answer"] == "loses").any():
            return "harm"
        if self.differ == 0:
            return "unchanged"
        first = self.everybody.iloc[0]
        return "better" if first["verdict"] == "satisfied" and first["low"] > 0 else "undecided"

    @property
    def headline(self) -> str:
        """What to do, in one line."""
        table = self.to_frame()
        is_group = table["kind"] != "everybody"
        n_losing = table.loc[is_group & (table["answer"] == "loses"), "group"].nunique()
        first = self.everybody.iloc[0]
        if self.status == "harm":
            overall = [] if (self.everybody["verdict"] != "violated").all() else ["the loss over all rows rises"]
            groups = [f"{n_losing} group{' loses' if n_losing == 1 else 's lose'}"] if n_losing else []
            return f"Do not release: {listed([*overall, *groups])}"
        if self.status == "unchanged":
            return "Nothing changes: both models decide alike on all rows"
        if self.status == "better":
            is_gained = f"{_unit(first['loss'])} {'is' if abs(first['gap']) == 1 else 'are'} gained overall"
            return f"Release: no group is shown to lose, and {points(first['gap'])} {is_gained}"
        if self.status == "undecided" and self.is_labelled:
            return "No group is shown to lose, and no gain is shown"
        if self.status == "undecided":
            return "No group is shown to be decided differently"
        n_more = table.loc[is_group & (table["answer"] == "gains"), "group"].nunique()
        return f"{_counted(n_losing)} flagged less often, {_counted(n_more)} flagged more often"

    def sentences(self) -> list[str]:
        """How much changes in all, and what is ruled out."""
        first = self.everybody.iloc[0]
        said = [f"{self.n_rows:,} rows, of which the models decide {percent(self.differ)} differently."]
        for _, one in self.everybody.iterrows():
            title, old, new, gain = self._levels(one["loss"], one["rival_loss"], one["own_loss"], one["gap"])
            limits = f"{points(one['low'])} to {points(one['high'])}"
            what = "change" if not self.is_labelled else "gain"
            said.append(f"All rows: {title} {old} → {new}, {what} {points(gain)} {_unit(one['loss'])} ({limits}).")
        if self.log_loss is not None:
            said.append(f"Log-loss {self.log_loss[0]:.4f} → {self.log_loss[1]:.4f}.")
        if self.cutoffs:
            cut = listed([f"{cutoff:g} ({name})" for name, cutoff in self.cutoffs])
            said.append(f"Scores above {cut} predict {clipped(self.flagged, 40)}.")
        if self.margin:
            said.append(f"Harm of up to {in_points(self.margin)} is tolerated.")
        if self.every_rule is not None:
            every = self.every_rule
            said.append(
                f"No group of at least {percent(every.share)} of the rows that two conditions describe loses more than "
                f"{100 * every.limit:.1f} {_unit(first['loss'])} ({every.n_rules:,} rules; all limits together hold "
                f"with {100 * (1 - every.level):g}%)."
            )
        return said

    @property
    def method(self) -> str:
        """How groups were found and tested."""
        if self.losers is None:
            return "No groups were searched for: pass X, the columns that rules may be about."
        return _method(self.losers, self.level)

    def _levels(self, loss: str, old: float, new: float, gain: float) -> tuple[str, str, str, float]:
        if not self.is_labelled:
            return "flagged", percent(1 - old), percent(1 - new), gain
        return TITLES[loss], level_in_words(loss, old), level_in_words(loss, new), gain  # type: ignore[index]

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and tables of groups: those that lose, might lose and gain, then named ones."""
        table = self.to_frame()
        titles = ("Who loses:", "Who gains:") if self.is_labelled else ("Flagged less often:", "Flagged more often:")
        discovered = table[table["kind"] == "discovered"]
        losing = table[(table["answer"] == "loses") & (table["kind"] != "everybody")].sort_values("gain")
        gaining = discovered[discovered["answer"] == "gains"].sort_values("gain", ascending=False)
        bound = -max(self.margin, _WORTH_A_LINE)
        might = table[(table["answer"] == "undecided") & (table["gain"] < 0) & (table["low"] < bound)]
        might = might[
            (might["kind"] == "discovered") | ((might["kind"] == "named") & (might["tested"] >= SMALLEST_SHOWN))
        ]
        named = table[(table["kind"] == "named") & (table["tested"] >= SMALLEST_SHOWN)]
        listing = [
            (titles[0], losing.head(2 * _MOST_LINES)),
            (titles[1], gaining.head(_MOST_LINES)),
            ("Who might lose (not shown, and not ruled out):", might.sort_values("gain").head(_MOST_LINES)),
            ("Named groups:", named.sort_values("gain").head(_MOST_NAMED)),
        ]
        if not self.is_labelled:
            del listing[2]
        return [(title, self._display(rows)) for title, rows in listing if len(rows)]

    def _display(self, table: pd.DataFrame) -> pd.DataFrame:
        levels = [
            self._levels(*values)
            for values in zip(table["loss"], table["old_loss"], table["new_loss"], table["gain"], strict=True)
        ]
        limits = zip(table["low"], table["high"], strict=True)
        unlabelled = {"loses": "less often", "gains": "more often", "not worse": "not less often"}
        words = {} if self.is_labelled else unlabelled
        columns = {"group": [clipped(group, 100) for group in table["group"]]}
        if self.is_labelled and len(self.everybody) > 1:
            columns["loss"] = [level[0] for level in levels]
        columns |= {
            "rows": [f"{n:,}" for n in table["rows"]],
            "old": [level[1] for level in levels],
            "new": [level[2] for level in levels],
            "gain" if self.is_labelled else "change": [points(level[3]) for level in levels],
            "limits": [f"{points(low)} to {points(high)}" for low, high in limits],
            "answer": [words.get(answer, answer) for answer in table["answer"]],
        }
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; unknown and infinite numbers become None."""
        groups = self.to_frame()
        return {
            "status": self.status,
            "headline": self.headline,
            "sentences": self.sentences(),
            "method": self.method,
            "is_labelled": self.is_labelled,
            "rows": self.n_rows,
            "differ": self.differ,
            "log_loss": plain(self.log_loss),
            "level": self.level,
            "margin": self.margin,
            "groups": [plain(row) for row in groups.to_dict("records")],
            "every_rule": None if self.every_rule is None else plain(vars(self.every_rule)),
        }

    def summary(self) -> str:
        """Text for a terminal: what to do, who loses, who gains, who might lose, and named groups."""
        headline = self.headline.upper() if self.is_labelled else self.headline
        return _as_text(headline, self.sentences(), self.parts(), [self.method])

    __str__ = summary
    __repr__ = summary

    def _repr_html_(self) -> str:
        tables = [part for one in self.parts() for part in one]
        return render_html(f"{self.headline}.", *self.sentences(), *tables, self.method)


@dataclass(frozen=True, eq=False)
class Failures:
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
        named = f" and {n_named} named group{'s' * (n_named > 1)}" if n_named else ""
        return f"Served worse than all rows: {_counted(n_failing)}{named}"

    @property
    def method(self) -> str:
        """How groups were found and tested."""
        return _method(self.discovered, self.level)

    def sentences(self) -> list[str]:
        """How the model does on all rows."""
        levels = [
            f"{_title(loss)} {level_in_words(loss, value)}" for loss, value in self.overall.items() if loss in TITLES
        ]
        return [f"All {self.n_rows:,} rows: {listed(levels)}."]

    def helped(self) -> list[str]:
        """For each failing group, whether own classifiers helped there, where the pooled one is known."""
        table = self.discovered.table
        if "gain" not in table:
            return []
        return [_help(row) for _, row in table[table["shown"]].head(_MOST_LINES).iterrows()]

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and tables: discovered groups, then named ones."""
        found = self.discovered.table
        shown = found[found["shown"]].rename(columns={"rule": "group"}).head(2 * _MOST_LINES)
        listing = [("Groups that the model fails:", shown)]
        if self.named is not None:
            named = self.named[self.named["rows"] >= SMALLEST_SHOWN]
            listing.append(("Named groups, by evidence:", named.head(_MOST_NAMED)))
        return [(title, self._display(table)) for title, table in listing if len(table)]

    def _display(self, table: pd.DataFrame) -> pd.DataFrame:
        limits = zip(table["loss"], table["low"], table["high"], strict=True)
        levels = zip(table["loss"], table["harm"], strict=True)
        return pd.DataFrame(
            {
                "group": [clipped(group, 100) for group in table["group"]],
                "what": [_title(loss) for loss in table["loss"]],
                "rows": [f"{n:,}" for n in table["rows"]],
                "level": [level_in_words(loss, value) for loss, value in levels],
                "limits": [
                    f"{level_in_words(loss, low)} to {level_in_words(loss, high)}" for loss, low, high in limits
                ],
                "all rows": [level_in_words(loss, self.overall[loss]) for loss in table["loss"]],
                "answer": ["fails" if is_shown else "not shown" for is_shown in table["shown"]],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; unknown and infinite numbers become None."""
        return {
            "headline": self.headline,
            "sentences": self.sentences(),
            "method": self.method,
            "helped": self.helped(),
            "overall": plain(self.overall),
            "groups": [plain(row) for row in self.discovered.table.to_dict("records")],
            "named": None if self.named is None else [plain(row) for row in self.named.to_dict("records")],
        }

    def summary(self) -> str:
        """Text for a terminal."""
        helped = "\n".join(self.helped())
        return _as_text(self.headline, self.sentences(), self.parts(), [helped, self.method])

    __str__ = summary
    __repr__ = summary

    def _repr_html_(self) -> str:
        tables = [part for one in self.parts() for part in one]
        return render_html(f"{self.headline}.", *self.sentences(), *tables, *self.helped(), self.method)


# ---- words ----


def _as_text(headline: str, sentences: list[str], tables: list[tuple[str, pd.DataFrame]], closing: list[str]) -> str:
    parts = [f"{headline}.", "\n".join(sentences)]
    parts += [f"{title}\n{render_text(table, left=('group', 'loss', 'what', 'answer'))}" for title, table in tables]
    return "\n\n".join([*parts, *filter(None, closing)])


def _of_questions(asked: pd.DataFrame, kind: str, n_rows: int) -> pd.DataFrame:
    rational = asked[asked["kind"] == "rationality"]
    answers = {"violated": "loses", "satisfied": "not worse", "undecided": "undecided"}
    table = rational.rename(columns={"rival_loss": "old_loss", "own_loss": "new_loss", "gap": "gain", "n": "rows"})
    table = table.assign(
        kind=kind, share=table["rows"] / n_rows, tested=table["rows"], answer=table["verdict"].map(answers)
    )
    return table[list(_FRAME)]


_FRAME = (
    "group", "kind", "loss", "rows", "share", "tested", "old_loss", "new_loss", "gain", "low", "high", "p_corrected",
    "answer",
)  # fmt: skip


def _of_discovered(found: Discovered, sign: float, answer: str) -> pd.DataFrame:
    table = found.table.rename(columns={"rule": "group"})
    low, high = (table["low"], table["high"]) if sign > 0 else (-table["high"], -table["low"])
    answers = np.where(table["shown"], answer, "undecided")
    return table.assign(kind="discovered", gain=sign * table["harm"], low=low, high=high, answer=answers)[list(_FRAME)]


def _method(found: Discovered, level: float) -> str:
    """Say how groups were found and tested."""
    how = (
        "found on the earlier half of the rows and tested on the later one"
        if len(found.tested) == 1
        else "found on each half of the rows and tested on the other"
    )
    conditions = "1 condition" if found.depth == 1 else f"up to {found.depth} conditions"
    return (
        f"Rules of {conditions} and at least {percent(found.smallest)} of the rows were {how} ({found.n_tests} tests; "
        f"{found.n_searched:,} rows searched at a time). Figures beside a rule are about tested rows; each of its "
        f"limits holds for all rules together with {100 * (1 - level):g}%."
    )


def _help(row: "pd.Series[Any]") -> str:
    """Say whether own classifiers helped in a failing group, if not why, and what a strong model would reach."""
    who, strong = clipped(row["rule"], 100), row.get("strong_loss", np.nan)
    beside = "" if np.isnan(strong) else f" Boosting on the same columns: {level_in_words(row['loss'], strong)}."
    if not row["n_differ"]:
        return f"{who}: decided as by the pooled classifier; no better classifier was found.{beside}"
    gain, low, high = (points(row[name]) for name in ("gain", "gain_low", "gain_high"))
    answers = ("they help", "the pooled classifier is better", "no relevant gain", "too few rows to tell")
    holds = (row["gain_low"] > 0, row["gain_high"] < 0, row["gain_high"] < _WORTH_A_LINE, True)
    answer = answers[holds.index(True)]
    return f"{who}: own classifiers gain {gain} {_unit(row['loss'])} there ({low} to {high}): {answer}.{beside}"


def _title(loss: str) -> str:
    return _RATES.get(loss) or TITLES[loss]  # type: ignore[index]


def _unit(loss: str) -> str:
    return "points" if loss != "cost" else Loss(loss).unit  # type: ignore[arg-type]


def _counted(number: int) -> str:
    return f"{number} group{'' if number == 1 else 's'}"


EVERYBODY = "everybody"
# Parts of the level for groups that are fixed in advance: one question about everybody needs little of it.
_PARTS_WITHOUT_NAMES, _PARTS_WITH_NAMES = 5, 2
# Predicted rates are compared with outcomes to a fifth of a percentage point, rounded towards "no difference".
_STEPS_OF_RATES = 500
# Boosting tells what a strong model would reach: on at most so many rows, in so many folds.
_MOST_BOOSTED, _FOLDS = 20_000, 3


def compare(
    y: ArrayLike | None,
    old: Any,
    new: Any,
    X: Table | None = None,
    sensitive_features: Table | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    persons: ArrayLike | None = None,
    time: ArrayLike | None = None,
    losses: str | Sequence[str] | None = None,
    costs: Mapping[str, float] | None = None,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
    smallest: float = 0.01,
    old_cutoff: float = 0.5,
    new_cutoff: float = 0.5,
    every_rule: float | None = None,
    random_state: int = 0,
) -> Comparison:
    """Find who gains and who loses when a new model replaces an old one, without being told whom to look at.

    Rules for groups that lose are found on one half of the rows and tested on the other, and the reverse. The
    probability of any group that is shown to lose and does not is at most `level`, over all rules, named groups and
    losses together; the same holds for groups that are shown to gain. Use rows that neither model was trained on.

    Parameters
    ----------
    y : array of shape (n,) or None
        True labels. Without them, the answer is who is decided differently: flagged less or more often.
    old, new : array of shape (n,) or fitted classifier
        Labels, or scores from 0 to 1 for the second label in sorted order, by each model; or the models themselves.
    X : data frame or array with n rows, optional
        What rules may be about. Without it only named groups are tested.
    sensitive_features : data frame, series or array with n rows, optional
        Attributes that define named groups, as in `audit`.
    sample_weight : array of shape (n,), optional
        Row weights.
    persons : array of shape (n,), optional
        Identifier of the person that each row belongs to. Tests then count persons.
    time : array of shape (n,), optional
        Time of each row: rules are found on the earlier half and tested on the later one.
    losses : name or sequence of names, optional
        As in `audit`; by default "error", and "cost" where costs are given.
    costs : mapping, optional
        What a false positive and a false negative cost, such as ``{"fp": 1, "fn": 5}``.
    level : float, default=0.05
        Accepted probability of any wrong "loses", and of any wrong "gains".
    margin : float, default=0
        Harm up to this size is tolerated: 0.01 is one percentage point of error.
    depth : int, default=2
        Most conditions of a rule, and most attributes to intersect.
    smallest : float, default=0.01
        Smallest share of the rows in a discovered group.
    old_cutoff, new_cutoff : float, default=0.5
        Scores above it predict the second label.
    every_rule : float, optional
        A share of the rows: also give one limit for the harm of every group of at least this size that two conditions
        describe.
    random_state : int, default=0
        Divides the rows into halves.

    Returns
    -------
    Comparison
        With `status`, `headline`, `summary()`, `to_frame()`, `to_dict()`, and `regions`, the groups that lose.

    Examples
    --------
    The new model is wrong about a third of those above 50, where the old one was right.

    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(20, 70, 4000), "job": rng.choice(["cook", "clerk"], 4000)})
    >>> y = rng.integers(0, 2, 4000)
    >>> old = np.where(rng.random(4000) < 0.8, y, 1 - y)
    >>> new = np.where((X["age"] > 50) & (rng.random(4000) < 0.33), 1 - y, old)
    >>> result = compare(y, old, new, X)
    >>> result.status, result.regions[0]
    ('harm', age is above 50)
    """
    _check_options(level, margin, smallest, every_rule)
    (old_decided, new_decided), classes = decide(y, {"old": (old, old_cutoff), "new": (new, new_cutoff)}, X)
    n_rows = len(new_decided.codes)
    table = None if X is None else _features(X, n_rows)
    # Without labels, every row counts as positive: the error rate is then the share that is not flagged.
    truth = np.ones(n_rows, np.intp) if y is None else find_labels(pd.Series(as_array(y, "y")), classes)[0]
    checked = _check_rows(truth, new_decided.codes, old_decided.codes, classes, sample_weight, persons)
    if y is None and losses is not None:
        raise InputError("Losses need labels: pass y, or leave losses out to see who is decided differently.")
    names = losses if losses is not None else "cost" if costs and y is not None else "error"
    asked = check_losses(names, costs if y is not None else None)
    known = None if sensitive_features is None else NamedGroups.of(sensitive_features, n_rows)
    parts = 1 if table is None else _PARTS_WITHOUT_NAMES if known is None else _PARTS_WITH_NAMES
    fixed = [ask_groups(checked, loss, [EVERYBODY], ["new", "old"], level, margin) for loss in asked]
    if known is not None:
        fixed += [ask_named_groups(checked, loss, known, depth, level, margin) for loss in asked]
    answered = answer(fixed, level, margin, parts)[COLUMNS]
    is_everybody = answered["group"].eq(EVERYBODY) & (answered.index < len(asked))
    losers = gainers = limits = None
    if table is not None:
        harms = [checked.harm(loss, checked.right[:, 0], checked.right[:, 1]) for loss in asked]
        options: dict[str, Any] = {"level": level * (1 - 1 / parts), "smallest": smallest, "depth": depth}
        options |= {"time": check_times(time, n_rows), "random_state": random_state}
        losers = discover(table, [replace(harm, margin=margin) for harm in harms], **options)
        gainers = discover(table, [replace(harm, difference=-harm.difference) for harm in harms], **options)
        losers, gainers = (_with_levels(one, checked, asked, table) for one in (losers, gainers))
        if every_rule is not None:
            limits = limit_every_rule(table, harms[0], share=every_rule, level=level)
    return Comparison(
        is_labelled=y is not None,
        everybody=answered[is_everybody].reset_index(drop=True),
        named=None if known is None else answered[~is_everybody].reset_index(drop=True),
        losers=losers,
        gainers=gainers,
        every_rule=limits,
        n_rows=n_rows,
        differ=float(np.average(checked.differ[:, 0], weights=checked.weight)),
        log_loss=_log_losses(truth, old_decided, new_decided, checked.weight) if y is not None else None,
        cutoffs=tuple(
            (name, cutoff)
            for name, one, cutoff in (("old", old_decided, old_cutoff), ("new", new_decided, new_cutoff))
            if one.score is not None
        ),
        flagged=str(classes[1]) if len(classes) == 2 else "",
        level=level,
        margin=margin,
    )


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
    _check_options(level)
    (decided,), classes = decide(y, {"prediction": (prediction, cutoff)}, X)
    n_rows = len(decided.codes)
    truth = find_labels(pd.Series(as_array(y, "y")), classes)[0]
    if losses is None:
        losses = ("error", "fpr", "fnr") if len(classes) == 2 else "error"
        losses = (*losses, "cost") if costs and len(classes) == 2 else losses
    return _failures(
        _check_rows(truth, decided.codes, truth, classes, sample_weight, persons),
        _features(X, n_rows),
        check_losses(losses, costs),
        None if sensitive_features is None else NamedGroups.of(sensitive_features, n_rows),
        score=decided.score,
        time=check_times(time, n_rows),
        level=level,
    )


def failures_in_audit(
    rows: ComparedRows, X: Table, losses: Sequence[Loss], known: NamedGroups | None, level: float
) -> Failures:
    """Find the groups that a model fails, and say whether own classifiers help there; always in kinds of error, too."""
    if rows.positive is not None:
        losses = tuple({loss.name: loss for loss in (*losses, ERROR, Loss("fpr"), Loss("fnr"))}.values())
    table = named_table(X).reset_index(drop=True)
    failures = _failures(rows, table, losses, known, level=level)
    discovered = _with_gains(failures.discovered, rows, losses, table, level)
    return replace(failures, discovered=_with_strong_model(discovered, rows, losses, table))


def _failures(
    rows: ComparedRows,
    table: pd.DataFrame,
    losses: Sequence[Loss],
    known: NamedGroups | None,
    *,
    score: NDArray[np.float64] | None = None,
    time: NDArray[np.float64] | None = None,
    level: float,
) -> Failures:
    n_rows = len(rows.group)
    harms = [rows.harm(loss, rows.own_right) for loss in losses]
    parts = 1 if known is None else 2
    if score is not None and rows.positive is not None:
        harms += _rate_harms(rows.positive, score, rows.harm(ERROR, rows.own_right))
    return Failures(
        discovered=discover(table, harms, level=level / parts, time=time),
        named=None if known is None else _failing_names(rows, losses, known, level / parts),
        overall={harm.name: harm.mean(np.ones(n_rows, bool)) for harm in harms},
        n_rows=n_rows,
        level=level,
    )


def _features(X: Table, n_rows: int) -> pd.DataFrame:
    """What rules may be about, one row for each decision."""
    table = named_table(X).reset_index(drop=True)
    if len(table) != n_rows:
        raise InputError(f"X has {len(table):,} rows, and there are {n_rows:,} decisions: give one row for each.")
    return table


def _check_rows(
    truth: NDArray[np.intp],
    own: NDArray[np.intp],
    rival: NDArray[np.intp],
    classes: NDArray[Any],
    sample_weight: ArrayLike | None,
    persons: ArrayLike | None,
) -> ComparedRows:
    """Decisions beside those of a rival, in one group of all rows; labels are positions of classes."""
    group, positions = np.zeros(len(own), np.intp), np.arange(len(classes))
    return ComparedRows.check(
        truth, own[:, None], group, rival, sample_weight=sample_weight, classes=positions, persons=persons
    )


def _check_options(level: float, margin: float = 0.0, smallest: float = 0.01, every_rule: float | None = None) -> None:
    if not is_real(level) or not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, got {shown(level)}: 0.05 accepts one error in twenty.")
    if not is_real(margin) or not 0 <= margin < 1:
        raise InputError(f"margin must be at least 0 and below 1, got {shown(margin)}: 0.01 is one percentage point.")
    for name, share in (("smallest", smallest), ("every_rule", 0.05 if every_rule is None else every_rule)):
        if not is_real(share) or not 0 < share < 0.5:
            raise InputError(f"{name} is a share of the rows between 0 and 0.5, got {shown(share)}.")


# ---- decisions ----


@dataclass(frozen=True, eq=False)
class Decided:
    """Decisions of one model, as positions of classes, and the scores behind them."""

    codes: NDArray[np.intp]
    score: NDArray[np.float64] | None = None


def decide(
    y: ArrayLike | None, deciders: Mapping[str, tuple[Any, float]], X: Any
) -> tuple[list[Decided], NDArray[Any]]:
    """Decisions of each model, given with its cut-off, and the classes they decide between.

    What holds only labels of y is labels; numbers from 0 to 1 otherwise are scores, cut at the cut-off.

    Examples
    --------
    >>> (old, new), classes = decide(["no", "yes"], {"old": (["no", "no"], 0.5), "new": ([0.2, 0.9], 0.5)}, None)
    >>> old.codes, new.codes, classes.tolist()
    (array([0, 0]), array([0, 1]), ['no', 'yes'])
    """
    columns = {name: _outputs(one, name, X) for name, (one, _) in deciders.items()}
    if y is not None:
        truth = as_array(y, "y")
        if truth.ndim != 1 or not len(truth):
            raise InputError(f"y must have one label for each row, got shape {truth.shape}.")
        if pd.isna(truth).any():
            raise InputError("y has missing values: leave those rows out.")
        classes = np.unique(truth)
        for name, values in columns.items():
            if len(values) != len(truth):
                raise InputError(f"{name} has {len(values):,} decisions for {len(truth):,} labels in y.")
    else:
        labels = [values for values in columns.values() if not _is_score(values, np.array([0, 1]))]
        classes = np.unique(np.concatenate(labels)) if labels else np.array([0, 1])
        if len(classes) != 2:
            raise InputError("Without y, old and new must decide between two labels, or be scores from 0 to 1.")
        if len({len(values) for values in columns.values()}) > 1:
            raise InputError("old and new have different numbers of rows: both must decide about the same rows.")
    return [_decided(values, name, deciders[name][1], classes) for name, values in columns.items()], classes


def _outputs(decider: Any, name: str, X: Any) -> NDArray[Any]:
    """Labels or scores as an array; those of a model are its own decisions about X."""
    if hasattr(decider, "predict"):
        if X is None:
            raise InputError(f"{name} is a model: pass the rows X that it decides about.")
        decider = decider.predict(X)
    values = as_array(decider, name)
    if values.ndim != 1 or not len(values):
        raise InputError(f"{name} must have one label or score for each row, got shape {values.shape}.")
    if pd.isna(values).any():
        raise InputError(f"{name} has missing values: a model has to decide about every row.")
    return values


def _decided(values: NDArray[Any], name: str, cutoff: float, classes: NDArray[Any]) -> Decided:
    if _is_score(values, classes):
        if len(classes) != 2:
            raise InputError(f"{name} holds scores, and y has {len(classes)} labels: scores need two.")
        if not is_real(cutoff) or not 0 <= cutoff < 1:
            raise InputError(f"The cut-off of {name} must be at least 0 and below 1, got {shown(cutoff)}.")
        score = values.astype(np.float64)
        return Decided((score > cutoff).astype(np.intp), score)
    codes, strange = find_labels(pd.Series(values), classes)
    if strange is not None:
        known = listed([quoted(label) for label in classes[:5]])
        raise InputError(
            f"{name} holds {quoted(strange)}, which is neither a label of y ({known}) nor a score from 0 to 1."
        )
    return Decided(codes)


def _is_score(values: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether values are numbers from 0 to 1 that are not all labels."""
    if values.dtype.kind not in "fiu" or np.isin(values, classes).all():
        return False
    return bool(((values >= 0) & (values <= 1)).all())


def _log_losses(
    truth: NDArray[np.intp], old: Decided, new: Decided, weight: NDArray[np.float64]
) -> tuple[float, float] | None:
    """Mean log-loss of both, where both give scores."""
    if old.score is None or new.score is None:
        return None
    scores = [np.clip(one.score, 1e-12, 1 - 1e-12) for one in (old, new)]  # type: ignore[arg-type]
    losses = [-np.log(np.where(truth == 1, score, 1 - score)) for score in scores]
    return float(np.average(losses[0], weights=weight)), float(np.average(losses[1], weights=weight))


# ---- figures beside rules ----


def _tested_members(found: Discovered, table: pd.DataFrame) -> list[NDArray[np.bool_]]:
    """Rows of each group that judged it, (n,) each."""
    members = memberships(table, found.regions)
    return [members[:, number] & found.tested_rows(number) for number in range(len(found.regions))]


def _levels(
    found: Discovered,
    tested: Sequence[NDArray[np.bool_]],
    rows: ComparedRows,
    losses: Sequence[Loss],
    right: NDArray[np.bool_],
) -> list[float]:
    """Loss of decisions on the tested rows of each group."""
    by_name = {loss.name: rows.harm(loss, right) for loss in losses}
    return [by_name[name].mean(mask) for name, mask in zip(found.table["loss"], tested, strict=True)]


def _with_levels(found: Discovered, rows: ComparedRows, losses: Sequence[Loss], table: pd.DataFrame) -> Discovered:
    """Add the losses of both models on the tested rows of each group."""
    tested = _tested_members(found, table)
    new, old = (_levels(found, tested, rows, losses, rows.right[:, column]) for column in (0, 1))
    return replace(found, table=found.table.assign(old_loss=old, new_loss=new))


def _with_gains(
    found: Discovered, rows: ComparedRows, losses: Sequence[Loss], table: pd.DataFrame, level: float
) -> Discovered:
    """Add what own classifiers gain over the pooled one in each group, with an interval."""
    by_name = {loss.name: rows.harm(loss, rows.own_right, rows.right[:, -1]) for loss in losses}
    parts = []
    for name, mask in zip(found.table["loss"], _tested_members(found, table), strict=True):
        differences = by_name[name].among([mask])
        low, high = differences.gain_limits(level / 2)
        n_differ = differences.own_worse[0] + differences.own_better[0]
        parts.append((differences.gain[0], low[0], high[0], int(n_differ)))
    gains = pd.DataFrame(parts, columns=["gain", "gain_low", "gain_high", "n_differ"], index=found.table.index)
    return replace(found, table=found.table.join(gains))


def _with_strong_model(
    found: Discovered, rows: ComparedRows, losses: Sequence[Loss], table: pd.DataFrame
) -> Discovered:
    """Add the loss that boosting has in each group, cross-fitted on these rows, where there are two classes."""
    if rows.positive is None or not found.shown_regions or min(rows.positive.sum(), (~rows.positive).sum()) < _FOLDS:
        return found
    sample = np.arange(0, len(table), -(-len(table) // _MOST_BOOSTED))
    person = np.arange(len(table)) if rows.person is None else rows.person
    fold = np.random.default_rng(0).integers(0, _FOLDS, int(person.max()) + 1)[person[sample]]
    features, positive = Binning.learn(table).codes(table.iloc[sample]), rows.positive[sample]
    if any(len(np.unique(positive[fold != held_out])) < 2 for held_out in range(_FOLDS)):
        return found
    booster = HistGradientBoostingClassifier(max_leaf_nodes=15, early_stopping=True, random_state=0)
    # Several threads wait for each other on a busy machine, much longer than one works.
    with threadpool_limits(1):
        predicted = cross_val_predict(booster, features, positive, cv=PredefinedSplit(fold))
    tested = [mask[sample] for mask in _tested_members(found, table)]
    strong = _levels(found, tested, rows.take(sample), losses, predicted == positive)
    return replace(found, table=found.table.assign(strong_loss=strong))


def _rate_harms(positive: NDArray[np.bool_], score: NDArray[np.float64], like: RowHarm) -> list[RowHarm]:
    """Observed above predicted rates, and the reverse, both rounded so that the difference is not overstated."""
    up, down = (step(score * _STEPS_OF_RATES) / _STEPS_OF_RATES for step in (np.ceil, np.floor))
    size = like.size
    above = replace(like, name="above", difference=size * (positive - up), worst=1.0, margin=0.0)
    return [above, replace(above, name="below", difference=size * (down - positive))]


def _failing_names(rows: ComparedRows, losses: Sequence[Loss], known: NamedGroups, level: float) -> pd.DataFrame:
    """Loss of each named group with limits, and whether it is shown to be above that of all rows."""
    tables = []
    for loss in losses:
        harm = rows.harm(loss, rows.own_right)
        reference = harm.among([np.ones(len(harm.size), bool)]).upper(level / 20 / len(losses))[0]
        for names, group in known.divisions(depth=2):
            differences = harm.by_group(group, len(names))
            columns = {
                "group": names,
                "loss": loss.name,
                "rows": rows.count(loss, group, len(names)),
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
