"""The sentences and figures of a recommendation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd

from dafh.evaluation.deployment import SMALL_LOSS, tolerated
from dafh.evaluation.losses import TITLES, LossName
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.rates import break_even
from dafh.evaluation.verdict import in_points, shortened, unit_of, who
from dafh.text import listed, percent, points

if TYPE_CHECKING:
    from dafh.evaluation.result import AuditResult

_ALL_ROWS = 0  # First line of the table of rates.
# A rate of a group that rises by more than this is pointed out: less is often chance.
_STEEP = 0.05


@dataclass(frozen=True)
class Figure:
    """One figure that carries a recommendation: with the pooled classifier, with the model as recommended, in words."""

    name: str
    value: str
    note: str
    pooled: float | None = None
    now: float | None = None


class _Advice(Protocol):
    """What is read of the advice on a group."""

    @property
    def group(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def reason(self) -> str: ...


def groups_in_words(names: Sequence[str]) -> str:
    """Name learned groups.

    Examples
    --------
    >>> groups_in_words(["2"]), groups_in_words(["0", "1"])
    ('group 2', 'groups 0 and 1')
    """
    return f"group{'' if len(names) == 1 else 's'} {listed(shortened(list(names)))}"


def reason(action: str, about: pd.DataFrame, main: pd.Series, p_loss: float, result: "AuditResult") -> str:
    """Say why a group gets this advice; `about` has all questions about it, `main` that about the main loss."""
    if action == "pooled":
        return "the pooled classifier already serves it"
    violated = about[about["verdict"] == "violated"]
    lost = violated[violated["kind"] == "rationality"]
    gain = f"{points(main['gap'])}, {_interval(main, result.level)}"
    if len(lost):
        worst = lost.iloc[int(lost["p"].argmin())]
        return f"it is shown to lose {_amount(worst, result.level)}"
    if len(violated):
        return f"classifier {violated['rival'].iloc[int(violated['p'].argmin())]} is shown to serve it better"
    if not main["n"]:
        return "it has no test rows"
    if p_loss > result.level:
        return f"{_any_loss(result)} is not ruled out (gain {gain})"
    if action == "deploy" and main["verdict"] == "satisfied" and not result.margin:
        return f"a loss is ruled out (gain {gain})"
    if action == "deploy":
        return f"{_any_loss(result)} is ruled out (gain {gain})"
    if main["gap"] > 0 and result.verdict.status == "harm":
        return f"as a whole it does not lose (gain {gain}), but some people in it or elsewhere do"
    return f"no gain is shown ({gain})" if main["gap"] > 0 else f"it gains nothing on these rows ({gain})"


@dataclass(frozen=True)
class Told:
    """All that a recommendation tells, and what it is told from: the audit, or what some groups alone would do."""

    kind: str
    result: "AuditResult"
    totals: pd.DataFrame
    rates: pd.DataFrame | None
    groups: Sequence[_Advice]
    losing: pd.DataFrame
    might: pd.DataFrame

    def headline(self) -> str:
        """Say what to do, without a full stop."""
        deployed, kept, unless = self._of("deploy"), self._of("keep"), self._unless()
        if self.kind == "deploy_some":
            return (
                f"Deploy for {groups_in_words(deployed)} only, and keep the pooled classifier for "
                + groups_in_words(kept)
                + unless
            )
        if self.kind == "deploy":
            n_groups = len(deployed)
            whom = "" if n_groups == 1 else f" for {'both' if n_groups == 2 else f'all {n_groups}'} groups"
            return f"Deploy{whom if n_groups == len(self.groups) else f' for {groups_in_words(deployed)}'}{unless}"
        if self.kind == "do_not_deploy":
            names, verb = self._losers()
            return f"Do not deploy: {listed(shortened(names))} {verb}"
        if self.result.verdict.status == "unchanged":
            return "Keep the pooled classifier: it serves every group already"
        nothing = float(self.totals["gain"].iloc[0]) <= 0
        return f"Keep the pooled classifier: {'nothing is gained' if nothing else 'no gain is shown'}"

    def sentences(self) -> tuple[str, ...]:
        """Gain and decisions: the figures in words."""
        if self.result.verdict.status == "unchanged":
            return ()
        return tuple(sentence for sentence in (self._gain(), self._decisions()) if sentence)

    def cautions(self) -> tuple[str, ...]:
        """Say which errors rise, why not for all, who loses, and what to do next."""
        if self.result.verdict.status == "unchanged":
            return ("Nothing changes for anybody, so there is nothing to deploy.",)
        found = (self._dearer(), self._kept(), self._who_loses(), self._next())
        return tuple(sentence for sentence in found if sentence)

    def figures(self) -> tuple[Figure, ...]:
        """The figures at the top of a page."""
        if self.result.verdict.status == "unchanged":
            return ()
        total = self.totals.iloc[0]
        interval = _interval(total, self.result.level)
        before, now = (_level_of(total["loss"], total[side]) for side in ("pooled_loss", "own_loss"))
        alone = f", with {self._these()} alone" if self.kind == "deploy_some" else ""
        found = [
            Figure(
                ("Gain" if total["loss"] == "error" else f"Gain in {TITLES[total['loss']]}") + alone,
                f"{points(total['gain'])} {'per 100 rows' if total['loss'] == 'cost' else 'points'}",
                f"{TITLES[total['loss']]} {before} → {now}; {interval}",
                float(total["pooled_loss"]),
                float(total["own_loss"]),
            )
        ]
        if self.rates is not None:
            row = self.rates.iloc[_ALL_ROWS]
            for name, title, note in _RATES:
                pooled, own = float(row[f"{name}_pooled"]), float(row[name])
                found.append(Figure(title, f"{percent(pooled)} → {percent(own)}", note, pooled, own))
        return (*found, self._loser_figure())

    def _of(self, action: str) -> list[str]:
        return [advice.group for advice in self.groups if advice.action == action]

    def _these(self) -> str:
        return "this group" if len(self._of("deploy")) == 1 else "these groups"

    def _losers(self) -> tuple[list[str], str]:
        """Who is harmed, the clearest case first: shown to lose, or else to do better with another classifier."""
        asked = self.result.to_frame()
        violated = asked[asked["verdict"] == "violated"]
        lost = violated[violated["kind"] == "rationality"]
        order = (lost if len(lost) else violated).sort_values(["p_corrected", "gap"])
        names = list(dict.fromkeys(who(row) for _, row in order.iterrows()))
        # Women who lose are named, and not also women of each region.
        names = [name for name in names if not self._is_intersection(name)] or names
        if len(lost):
            return names, f"{'are' if len(names) > 1 else 'is'} shown to lose"
        return names, "would do better with another classifier"

    def _is_intersection(self, name: str) -> bool:
        composition = self.result.composition
        return composition is not None and " & " in name and name not in set(composition["named_group"])

    def _kept(self) -> str:
        if self.kind != "deploy_some":
            return ""
        kept = [advice for advice in self.groups if advice.action == "keep"]
        why = [f"for group {advice.group}, {advice.reason}" for advice in kept[:3]]
        more = f"; and {len(kept) - 3} more" if len(kept) > 3 else ""
        return f"Why not for all: {'; '.join(why)}{more}."

    def _gain(self) -> str:
        total = self.totals.iloc[0]
        before, now = (_level_of(total["loss"], total[side]) for side in ("pooled_loss", "own_loss"))
        if np.isnan(total["gain"]):
            return ""
        title = TITLES[total["loss"]] + (" of 100 rows" if total["loss"] == "cost" else "")
        rows = f"{int(self.result.matrix.sizes.sum()):,} test rows"
        if total["gain"] == 0:
            change = f"the {title} stays at {now}"
        else:
            change = f"the {title} {'falls' if total['gain'] > 0 else 'rises'} from {before} to {now}"
        alone = f", with {self._these()} alone," if self.kind == "deploy_some" else ","
        chance = "" if total["low"] > 0 or total["gain"] <= 0 else " That may be chance."
        return (
            f"On {rows}{alone} {change}: gain {points(total['gain'])} {unit_of(total['loss'])} "
            f"({_interval(total, self.result.level)}).{chance}"
        )

    def _decisions(self) -> str:
        if self.rates is None or self.kind == "keep":
            return ""
        row = self.rates.iloc[_ALL_ROWS]
        flagged = f"{percent(row['flagged'])} of rows are flagged, before {percent(row['flagged_pooled'])}"
        kinds = [
            f"the {TITLES[name]} is {percent(row[name])}, before {percent(row[f'{name}_pooled'])}"
            for name in _KINDS
            if not np.isnan(row[name])  # Without rows of a label nothing is known about its errors.
        ]
        return f"{'; '.join([flagged, *kinds])}."

    def _rises(self) -> list[tuple[str, LossName, float, float]]:
        """Kinds of error that get more frequent and were not tested: where, which, by how much, and its break-even.

        The total can hide them: it counts every error alike.
        """
        tested = set(self.result.losses)
        if self.rates is None or "cost" in tested or not self.kind.startswith("deploy"):
            return []
        n_groups, deployed = len(self.groups), set(self._of("deploy"))
        found = []
        for place, row in self.rates.head(1 + n_groups).reset_index(drop=True).iterrows():
            if place != _ALL_ROWS and (n_groups == 1 or str(row["group"]) not in deployed):
                continue
            where, limit = ("", SMALL_LOSS) if place == _ALL_ROWS else (f" in group {row['group']}", _STEEP)
            found += [
                (where, name, float(row[name] - row[f"{name}_pooled"]), break_even(row, name))
                for name in _KINDS
                if name not in tested and row[name] - row[f"{name}_pooled"] > limit
            ]
        return found

    def _unless(self) -> str:
        """Condition of the recommendation where a kind of error gets much more frequent."""
        names = {name for _, name, risen, _ in self._rises() if risen > _STEEP}
        # Where both kinds rise, each in another group, no price of one against the other decides.
        if len(names) != 1:
            return ""
        (dear,) = names
        (cheap,) = set(_KINDS) - names
        return f", unless a {_ERROR[dear]} costs much more than a {_ERROR[cheap]}"

    def _dearer(self) -> str:
        told = []
        for where, name, risen, price in self._rises():
            (other,) = {*_KINDS} - {name}
            pays = f", which pays only while a {_ERROR[name]} costs less than {price:.1f} times a {_ERROR[other]}"
            told.append(
                f"the {TITLES[name]}{where} rises by {100 * risen:.1f} percentage points"
                + (pays if np.isfinite(price) else "")
            )
        if not told:
            return ""
        return f"Before you deploy: {'; '.join(told)}. If such errors may cost more, audit with these costs."

    def _who_loses(self) -> str:
        """Say who is shown to lose, and for whom a loss is not ruled out."""
        if self.kind == "do_not_deploy":
            return self._shown()
        alone = f"With {self._these()} alone, no" if self.kind == "deploy_some" else "No"
        shown = "" if self.kind == "keep" else f"{alone} group is shown to lose. "
        if self.result.named is None:
            return f"{shown}No sensitive attribute was given, so named groups, such as women, were not tested."
        if self.kind == "keep":
            return ""
        loss, (large, small, n_large) = _any_loss(self.result), self._sizes()
        few = f" {small:,} more {_have(small)} fewer than {SMALLEST_SHOWN} rows, too few to tell." if small else ""
        if not n_large:
            return f"{shown}All {small:,} named groups have fewer than {SMALLEST_SHOWN} rows, too few to tell."
        size = f" of {SMALLEST_SHOWN} rows and more" if small else ""
        if not len(large):
            all_of_them = "both" if n_large == 2 else f"all {n_large:,}"
            ruled_out = f"For {all_of_them} named groups{size}, {loss} is ruled out ({_each(self.result.level)})."
            return f"{shown}{ruled_out}{few}"
        told = [f"{row.group} ({row.n:,.0f} rows)" for row in large.head(3).itertuples()]
        among = f"{'among them ' if len(large) > len(told) else ''}{listed(told)}"
        return (
            f"{shown}Might lose: for {len(large):,} of {n_large:,} named groups{size}, {loss} is not ruled out, "
            f"{among}.{few}"
        )

    def _sizes(self) -> tuple[pd.DataFrame, int, int]:
        """Large groups that might lose, the number of small ones, too small to tell, and of all large ones."""
        assert self.result.named is not None
        rows = self.result.named.drop_duplicates("group")["n"]
        small = int((rows < SMALLEST_SHOWN).sum())
        return self.might[~self.might["small"]], small, len(rows) - small

    def _shown(self) -> str:
        asked = self.result.to_frame()
        violated = asked[asked["verdict"] == "violated"].sort_values(["p_corrected", "gap"])
        lost = violated[violated["kind"] == "rationality"]
        several = [self._is_intersection(str(name)) for name in lost["group"]]
        lost = lost.assign(several=several).sort_values("several", kind="stable")
        if not len(lost):
            worst = violated.iloc[0]
            return (
                f"{_sentence(who(worst))} would gain {points(-worst['gap'])} {unit_of(worst['loss'])} with "
                f"classifier {worst['rival']}."
            )
        first = lost.drop_duplicates("group").head(3)
        told = [f"{who(row)} loses {_amount(row, self.result.level)}" for _, row in first.iterrows()]
        n_more = lost["group"].nunique() - len(told)
        # The headline counts single attributes only, if any of them loses.
        crossed = " (combinations of attributes included)" if lost["several"].any() else ""
        more = f"; {n_more:,} more {'is' if n_more == 1 else 'are'} shown to lose{crossed}" if n_more else ""
        return f"Who loses: {'; '.join(told)}{more}."

    def _next(self) -> str:
        if self.kind == "deploy_some":
            chosen = f"{_sentence(self._these())} {'was' if len(self._of('deploy')) == 1 else 'were'} chosen"
            return (
                f"{chosen} on the rows that the figures come from, so expect a little less: audit the model on new "
                "rows once the pooled classifier serves the others."
            )
        if self.kind == "do_not_deploy":
            if len(self.losing):
                return "Fit again with these attributes protected, or with more rows, and audit on new rows."
            return "Fit again with more rows, or let another classifier serve these groups, and audit on new rows."
        alone = supported_alone(self.result)
        if self.kind == "keep" and alone:
            verb = "gains" if len(alone) == 1 else "gain"
            return f"{_sentence(groups_in_words(alone))} {verb} alone: audit a model that changes nobody else."
        if self.kind == "keep":
            real = float(self.totals["gain"].iloc[0]) > 0
            more = " More test rows may show whether the gain is real." if real else ""
            return f"If you keep it, nothing changes for anybody.{more}"
        return ""

    def _loser_figure(self) -> Figure:
        losers = self._losers()[0] if self.kind == "do_not_deploy" else []
        value = "nobody" if not losers else listed(shortened(losers))
        if self.result.named is None:
            return Figure("Shown to lose", value, "named groups were not tested")
        large, small, n_large = self._sizes()
        n_others = n_large - int((~self.losing["small"]).sum())
        might = "might, if it were deployed" if self.kind == "keep" else "might"
        note = f"{len(large):,} of {n_others:,} {'other ' if losers else ''}named groups {might}"
        note = note if n_large else "named groups"
        few = f"{';' if n_large else ':'} {small:,} {'more ' if n_large else ''}are too small to tell" if small else ""
        return Figure("Shown to lose", value, note + few)


_KINDS: tuple[LossName, ...] = ("fpr", "fnr")
_ERROR = {"fpr": "false positive", "fnr": "false negative"}
_RATES = (
    ("flagged", "Flagged", "of people get the positive label"),
    ("fpr", "False positive rate", "flagged, of those who should not be"),
    ("fnr", "False negative rate", "not flagged, of those who should be"),
)


def supported_alone(result: "AuditResult") -> list[str]:
    """Groups that are shown to gain by themselves, where the model as a whole is not recommended."""
    shown = result.evidence["p_no_gain"] <= result.level / 2
    violated = set(result.questions.loc[result.questions["verdict"] == "violated", "group"].astype(str))
    return [name for name in result.evidence["group"][shown] if name not in violated]


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _any_loss(result: "AuditResult") -> str:
    """A loss that is not tolerated, in words; any at all where only costs were asked about and no margin was given."""
    largest = max(tolerated(loss, result.margin) for loss in result.losses)
    return f"a loss of more than {in_points(largest)}" if largest else "a loss"


def _interval(row: pd.Series, level: float) -> str:
    return f"{_percentage(level)} interval {points(row['low'])} to {points(row['high'])}"


def _sentence(text: str) -> str:
    """Text with a capital letter at its beginning; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def _percentage(level: float) -> str:
    return f"{100 * (1 - level):g}%"


def _each(level: float) -> str:
    return f"{_percentage(level)} interval of each"


def _amount(question: pd.Series, level: float) -> str:
    """How much a group loses, as a positive number with its interval."""
    of_loss = "" if question["loss"] == "error" else f" in {TITLES[question['loss']]}"
    interval = f"{_percentage(level)} interval {100 * -question['high']:.2f} to {100 * -question['low']:.2f}"
    return f"{100 * -question['gap']:.2f} {unit_of(question['loss'])}{of_loss} ({interval})"


def _level_of(loss: str, value: float) -> str:
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)
