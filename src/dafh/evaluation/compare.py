"""compare: who gains and who loses from a change of model, without being told whom to look at.

Groups that attributes name are tested as in an audit; groups that nobody has named are found and tested by
`dafh.evaluation.discovery`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.bins import named_table
from dafh.columns.labels import find_labels
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.decisions import Decided, compare_two, decide, features_of
from dafh.evaluation.discovery import Discovered, EveryRule, discover, limit_every_rule, memberships
from dafh.evaluation.losses import SMALL_LOSS, TITLES, Loss, check_losses, in_points, level_in_words, short_unit
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.questions import answer, ask_groups, ask_named_groups, check_options
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.regions.conditions import Region
from dafh.text import Readable, Section, clipped, listed, percent, plain, points, shown
from dafh.validation import as_array, check_times, is_real

Status = Literal["harm", "unchanged", "better", "undecided", "different"]
EVERYBODY = "everybody"
# Parts of the level for groups that are fixed in advance: one question about everybody needs little of it.
_PARTS_WITHOUT_NAMES, _PARTS_WITH_NAMES = 5, 2
_MOST_LOSING, _MOST_GAINING, _MOST_UNCERTAIN, _MOST_NAMED = 10, 5, 5, 8
_COLUMNS = [
    "group", "kind", "loss", "rows", "share", "tested", "old_loss", "new_loss", "gain", "low", "high", "p_corrected",
    "answer",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Readable):
    """Who gains and who loses from a change of model; prints as a summary. Made by `compare`.

    Examples
    --------
    >>> from dafh import compare
    >>> y, older = np.tile([0, 1], 500), np.repeat(["no", "yes"], 500)
    >>> X = pd.DataFrame({"older": older})
    >>> result = compare(y, y, np.where(older == "yes", 1 - y, y), X)
    >>> result.headline, result.regions
    ('Do not release: the loss over all rows rises and 1 group loses', (older is yes,))
    >>> result.to_frame()[["group", "gain", "answer"]].head(2)
              group  gain answer
    0     everybody  -0.5  loses
    1  older is yes  -1.0  loses
    >>> result.membership(X)["older is yes"].value_counts().to_dict()
    {'no': 500, 'yes': 500}
    """

    groups: pd.DataFrame
    """What `to_frame` returns."""
    is_labelled: bool
    """Whether true labels were given. Without them, "loss" means the share that is not flagged."""
    losers: Discovered | None
    """Rules that searches for harm have found, tested on other rows; None without features."""
    every_rule: EveryRule | None
    """One limit for every rule, where it was asked for."""
    n_rows: int
    differ: float
    """Share of the rows that the models decide differently."""
    log_loss: tuple[float, float] | None
    """Mean log-loss of the old and the new model, where both give scores."""
    cut: str
    """How scores were turned into decisions, in a sentence; empty without scores."""
    level: float
    margin: float

    def to_frame(self) -> pd.DataFrame:
        """One row for everybody, then for each discovered and each named group.

        Columns: group; kind (everybody, discovered or named); loss; rows and share, of all rows; tested, the rows that
        the figures are about; old_loss and new_loss; gain, old minus new, with the limits low and high; p_corrected;
        and answer: loses, gains, not worse or undecided. Limits of discovered groups hold for all rules together,
        others are for one question. Without labels the losses are shares that are not flagged.
        """
        return self.groups.copy()

    @property
    def regions(self) -> tuple[Region, ...]:
        """Discovered groups that are shown to lose, the largest harm for its size first."""
        return () if self.losers is None else self.losers.shown_regions

    def membership(self, X: Table) -> pd.DataFrame:
        """Whether each row of a table belongs to each discovered group that loses, "yes" or "no", one column a group.

        As the `sensitive_features` of a `Monitor` it declares these groups, so that they are watched from now on.
        """
        members = memberships(named_table(X), self.regions)
        return pd.DataFrame(np.where(members, "yes", "no"), columns=[str(region) for region in self.regions])

    @property
    def status(self) -> Status:
        """What was found, as one word.

        ``"harm"``: some group is shown to lose. ``"unchanged"``: both models decide alike. ``"better"``: nobody is
        shown to lose, and the loss of all rows is shown to be lower. ``"undecided"``: neither. ``"different"``:
        without labels, some group is shown to be flagged more or less often.
        """
        answers = set(self.groups["answer"])
        if not self.is_labelled:
            return "different" if answers & {"loses", "gains"} else "undecided"
        if "loses" in answers:
            return "harm"
        if self.differ == 0:
            return "unchanged"
        all_rows = self.groups.iloc[0]
        return "better" if all_rows["answer"] == "not worse" and all_rows["low"] > 0 else "undecided"

    @property
    def headline(self) -> str:
        """What to do, in one line."""
        table, all_rows, status = self.groups, self.groups.iloc[0], self.status
        is_group = table["kind"] != EVERYBODY
        n_losing, n_gaining = (
            table.loc[is_group & (table["answer"] == word), "group"].nunique() for word in ("loses", "gains")
        )
        if status == "harm":
            rises = ["the loss over all rows rises"] if (table.loc[~is_group, "answer"] == "loses").any() else []
            losing = [f"{n_losing} group{' loses' if n_losing == 1 else 's lose'}"] if n_losing else []
            return f"Do not release: {listed([*rises, *losing])}"
        if status == "unchanged":
            return "Nothing changes: both models decide alike on all rows"
        if status == "better":
            is_gained = f"{short_unit(all_rows['loss'])} {'is' if abs(all_rows['gain']) == 1 else 'are'} gained overall"
            return f"Release: no group is shown to lose, and {points(all_rows['gain'])} {is_gained}"
        if status == "undecided" and self.is_labelled:
            return "No group is shown to lose, and no gain is shown"
        if status == "undecided":
            return "No group is shown to be decided differently"
        less, more = (f"{number} group{'' if number == 1 else 's'}" for number in (n_losing, n_gaining))
        return f"{less} flagged less often, {more} flagged more often"

    def sentences(self) -> list[str]:
        """How much changes in all, and what is ruled out."""
        sentences = [f"{self.n_rows:,} rows, of which the models decide {percent(self.differ)} differently."]
        for _, row in self.groups[self.groups["kind"] == EVERYBODY].iterrows():
            title = TITLES[row["loss"]] if self.is_labelled else "flagged"
            old, new = self._levels(row)
            limits = f"{points(row['low'])} to {points(row['high'])}"
            gain = f"{'gain' if self.is_labelled else 'change'} {points(row['gain'])} {short_unit(row['loss'])}"
            sentences.append(f"All rows: {title} {old} → {new}, {gain} ({limits}).")
        if self.log_loss is not None:
            sentences.append(f"Log-loss {self.log_loss[0]:.4f} → {self.log_loss[1]:.4f}.")
        if self.cut:
            sentences.append(self.cut)
        if self.margin:
            sentences.append(f"Harm of up to {in_points(self.margin)} is tolerated.")
        if self.every_rule is not None:
            every = self.every_rule
            sentences.append(
                f"No group of at least {percent(every.share)} of the rows that two conditions describe loses more than "
                f"{100 * every.limit:.1f} {short_unit(self.groups['loss'].iloc[0])} ({every.n_rules:,} rules; all "
                f"limits together hold with {100 * (1 - every.level):g}%)."
            )
        return sentences

    @property
    def method(self) -> str:
        """How groups were found and tested."""
        if self.losers is None:
            return "No groups were searched for: pass X, the columns that rules may be about."
        return self.losers.method(self.level)

    def _levels(self, row: "pd.Series[Any]") -> list[str]:
        """Loss with the old and the new model; without labels, the share that is flagged."""
        losses = (row["old_loss"], row["new_loss"])
        return [level_in_words(row["loss"], loss) if self.is_labelled else percent(1 - loss) for loss in losses]

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and tables of groups: those that lose, might lose and gain, then named ones."""
        table = self.groups[self.groups["kind"] != EVERYBODY].sort_values("gain", kind="stable")
        is_named = table["kind"] == "named"
        is_large = ~is_named | (table["tested"] >= SMALLEST_SHOWN)
        is_uncertain = (table["answer"] == "undecided") & (table["gain"] < 0)
        is_uncertain &= is_large & (table["low"] < -max(self.margin, SMALL_LOSS))
        is_gaining = ~is_named & (table["answer"] == "gains")
        losing, gaining = (
            ("Who loses", "Who gains") if self.is_labelled else ("Flagged less often", "Flagged more often")
        )
        listing = [
            (f"{losing}:", table[table["answer"] == "loses"].head(_MOST_LOSING)),
            (f"{gaining}:", table[is_gaining].iloc[::-1].head(_MOST_GAINING)),
            ("Who might lose (not shown, and not ruled out):", table[is_uncertain].head(_MOST_UNCERTAIN)),
            ("Named groups:", table[is_named & is_large].head(_MOST_NAMED)),
        ]
        if not self.is_labelled:
            del listing[2]
        return [(title, self._display(rows)) for title, rows in listing if len(rows)]

    def _display(self, table: pd.DataFrame) -> pd.DataFrame:
        levels = [self._levels(row) for _, row in table.iterrows()]
        words = {"loses": "less often", "gains": "more often", "not worse": "not less often"}
        columns = {"group": [clipped(group, 100) for group in table["group"]]}
        if self.is_labelled and (self.groups["kind"] == EVERYBODY).sum() > 1:
            columns["loss"] = [TITLES[loss] for loss in table["loss"]]
        columns |= {
            "rows": [f"{n:,}" for n in table["rows"]],
            "old": [old for old, _ in levels],
            "new": [new for _, new in levels],
            "gain" if self.is_labelled else "change": [points(gain) for gain in table["gain"]],
            "limits": [f"{points(low)} to {points(high)}" for low, high in table[["low", "high"]].to_numpy()],
            "answer": [answer if self.is_labelled else words.get(answer, answer) for answer in table["answer"]],
        }
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; unknown and infinite numbers become None."""
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
            "groups": [plain(row) for row in self.groups.to_dict("records")],
            "every_rule": None if self.every_rule is None else plain(vars(self.every_rule)),
        }

    def sections(self) -> list[Section]:
        """What to do, who loses, who gains, who might lose, named groups, and how they were found."""
        headline = self.headline.upper() if self.is_labelled else self.headline
        return [
            Section(sentences=[f"{headline}."]),
            Section(sentences=self.sentences()),
            *(Section(title, table=table) for title, table in self.parts()),
            Section(sentences=[self.method]),
        ]


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
    check_options(level, margin)
    for name, share in (("smallest", smallest), ("every_rule", 0.05 if every_rule is None else every_rule)):
        if not is_real(share) or not 0 < share < 0.5:
            raise InputError(f"{name} is a share of the rows between 0 and 0.5, got {shown(share)}.")
    decided, classes = decide(y, {"old": (old, old_cutoff), "new": (new, new_cutoff)}, X)
    n_rows = len(decided[0].codes)
    table = None if X is None else features_of(X, n_rows)
    # Without labels, every row counts as positive: the error rate is then the share that is not flagged.
    truth = np.ones(n_rows, np.intp) if y is None else find_labels(pd.Series(as_array(y, "y")), classes)[0]
    rows = compare_two(truth, decided[1].codes, decided[0].codes, classes, sample_weight, persons)
    if y is None and losses is not None:
        raise InputError("Losses need labels: pass y, or leave losses out to see who is decided differently.")
    names = losses if losses is not None else "cost" if costs and y is not None else "error"
    judged = check_losses(names, costs if y is not None else None)
    named_groups = None if sensitive_features is None else NamedGroups.of(sensitive_features, n_rows)
    n_shares = 1 if table is None else _PARTS_WITHOUT_NAMES if named_groups is None else _PARTS_WITH_NAMES
    questions = [ask_groups(rows, loss, [EVERYBODY], ["new", "old"], level, margin) for loss in judged]
    if named_groups is not None:
        questions += [ask_named_groups(rows, loss, named_groups, depth, level, margin) for loss in judged]
    answers = _of_questions(answer(questions, level, margin, n_shares), len(judged), n_rows)
    groups, losers, limits = [answers[answers["kind"] == EVERYBODY]], None, None
    if table is not None:
        harms = [rows.harm(loss, rows.right[:, 0], rows.right[:, 1]) for loss in judged]
        options: dict[str, Any] = {"level": level * (1 - 1 / n_shares), "smallest": smallest, "depth": depth}
        options |= {"time": check_times(time, n_rows), "random_state": random_state}
        losers = discover(table, [replace(harm, margin=margin) for harm in harms], **options)
        gainers = discover(table, [replace(harm, difference=-harm.difference) for harm in harms], **options)
        groups += [_of_discovered(losers, rows, judged, "loses"), _of_discovered(gainers, rows, judged, "gains")]
        if every_rule is not None:
            limits = limit_every_rule(table, harms[0], share=every_rule, level=level)
    groups.append(answers[answers["kind"] == "named"])
    return Comparison(
        groups=pd.concat([table for table in groups if len(table)], ignore_index=True),
        is_labelled=y is not None,
        losers=losers,
        every_rule=limits,
        n_rows=n_rows,
        differ=float(np.average(rows.differ[:, 0], weights=rows.weight)),
        log_loss=_log_losses(truth, decided, rows.weight) if y is not None else None,
        cut=_cut_in_words(decided, (old_cutoff, new_cutoff), classes),
        level=level,
        margin=margin,
    )


def _of_questions(answered: pd.DataFrame, n_losses: int, n_rows: int) -> pd.DataFrame:
    """Answers about everybody, one for each loss at the top, and about named groups."""
    words = {"violated": "loses", "satisfied": "not worse", "undecided": "undecided"}
    table = answered.rename(columns={"rival_loss": "old_loss", "own_loss": "new_loss", "gap": "gain", "n": "rows"})
    return table.assign(
        kind=np.where(np.arange(len(table)) < n_losses, EVERYBODY, "named"),
        share=table["rows"] / n_rows,
        tested=table["rows"],
        answer=table["verdict"].map(words),
    )[_COLUMNS]


def _of_discovered(
    discovered: Discovered, rows: ComparedRows, losses: Sequence[Loss], answer: Literal["loses", "gains"]
) -> pd.DataFrame:
    """Groups that a search for harm, or for gain, has found, with the losses of both models on their tested rows."""
    old, new = (
        discovered.means({loss.name: rows.harm(loss, rows.right[:, column]) for loss in losses}) for column in (1, 0)
    )
    table = discovered.table.rename(columns={"rule": "group"}).assign(kind="discovered", old_loss=old, new_loss=new)
    table = table.assign(gain=table["harm"], answer=np.where(table["shown"], answer, "undecided"))
    if answer == "loses":
        table = table.assign(gain=-table["harm"], low=-table["high"], high=-table["low"])
    return table[_COLUMNS]


def _log_losses(
    truth: NDArray[np.intp], decided: Sequence[Decided], weight: NDArray[np.float64]
) -> tuple[float, float] | None:
    """Mean log-loss of both, where both give scores."""
    scores = [np.clip(model.score, 1e-12, 1 - 1e-12) for model in decided if model.score is not None]
    if len(scores) < 2:
        return None
    old, new = (-np.log(np.where(truth == 1, score, 1 - score)) for score in scores)
    return float(np.average(old, weights=weight)), float(np.average(new, weights=weight))


def _cut_in_words(decided: Sequence[Decided], cutoffs: Sequence[float], classes: NDArray[Any]) -> str:
    named = zip(("old", "new"), decided, cutoffs, strict=True)
    cut = [f"{cutoff:g} ({name})" for name, model, cutoff in named if model.score is not None]
    return f"Scores above {listed(cut)} predict {clipped(classes[1], 40)}." if cut else ""
