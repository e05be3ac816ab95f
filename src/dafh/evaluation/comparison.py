"""Answers of `compare` and `find_failures`: tables, sentences, and the one word that scripts ask for."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dafh.evaluation.discovery import Discovered
from dafh.evaluation.every_rule import EveryRule
from dafh.evaluation.losses import TITLES, Loss, in_points, level_in_words
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.regions.conditions import Region
from dafh.text import clipped, listed, percent, plain, points, render_html, render_text

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
        for found, sign, answer in ((self.losers, -1.0, "loses"), (self.gainers, 1.0, "gains")):
            parts += [] if found is None else [_of_discovered(found, sign, answer)]
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
