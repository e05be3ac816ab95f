"""What to do with a model, from the answers of an audit: deploy it, for whom, or keep the pooled classifier.

Terminal, JSON, report and exit code take the recommendation from `AuditResult.recommendation`, as they take the verdict
from `AuditResult.verdict`. The two agree: nothing is recommended for a group that is shown to lose.

First, for which groups the test rows support their own classifiers, and what these would do if they served alone; then
the recommendation; then its sentences and figures.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import TITLES, Loss, LossName
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.questions import Asked, answer, ask_named_groups, decision_rates, total_losses
from dafh.evaluation.verdict import in_points, level_in_words, shortened, who
from dafh.stats import holm
from dafh.text import listed, percent, plain, points

if TYPE_CHECKING:
    from dafh.evaluation.result import AuditResult

Kind = Literal["deploy", "deploy_some", "keep", "do_not_deploy", "unaudited"]
Action = Literal["deploy", "keep", "pooled"]
# Nobody reads a longer list, and intersections of many attributes would make it a hundred thousand lines long.
_MOST_NAMED = 25
_ALL_ROWS = 0  # First line of the table of rates.
# A rate of a group that rises by more than this is pointed out: less is often chance.
_STEEP = 0.05
_KINDS: tuple[LossName, ...] = ("fpr", "fnr")
_ERROR = {"fpr": "false positive", "fnr": "false negative"}
_RATES = (
    ("flagged", "Flagged", "of people get the positive label"),
    ("fpr", "False positive rate", "flagged, of those who should not be"),
    ("fnr", "False negative rate", "not flagged, of those who should be"),
)

SMALL_LOSS = 0.01
"""A loss up to this size, one percentage point, does not stand in the way of a recommendation."""


def tolerated(loss: LossName, margin: float) -> float:
    """Loss that a recommendation tolerates: one percentage point or the margin, whichever is larger.

    A cost has no natural size, so that nothing beyond the margin is tolerated of it.

    Examples
    --------
    >>> tolerated("error", 0.0), tolerated("error", 0.02), tolerated("cost", 0.0)
    (0.01, 0.02, 0.0)
    """
    return margin if loss == "cost" else max(margin, SMALL_LOSS)


def weigh(rows: ComparedRows, asked: Sequence[Asked], labels: Sequence[object], margin: float) -> pd.DataFrame:
    """Test for each group whether it loses more than is tolerated, and whether it gains.

    Parameters
    ----------
    rows : ComparedRows
    asked : sequence of Asked
        Questions about the groups, one entry for each loss, the main one first.
    labels : names of the groups
    margin : float

    Returns
    -------
    data frame
        One row per group: its name; `changed`, whether another classifier than the pooled one serves it; `p_loss`,
        small if no loss is higher than tolerated; `p_no_gain`, small if the main loss is lower than with the pooled
        classifier. Both are corrected for the number of groups and losses (Holm), each in a family of its own.
    """
    changed = rows.own != rows.right.shape[1] - 1
    loss_p, gain_p = [], np.ones(0)
    for one in asked:
        # The tests of the audit are at the margin and share the level with envy and with named groups. These have
        # another bound, and there are few of them: a recommendation must not get weaker with every attribute tested.
        found = one.differences.take(np.flatnonzero(one.table["kind"] == "rationality"))
        tested = changed & (found.total > 0)
        loss_p.append(np.where(tested, found.p_within(tolerated(one.table["loss"].iloc[0], margin)), np.nan))
        if not len(gain_p):
            gain_p = np.where(tested, found.p_within(0.0), np.nan)
    return pd.DataFrame(
        {
            "group": [str(label) for label in labels],
            "changed": changed,
            "p_loss": _corrected(np.stack(loss_p)).max(axis=0),
            "p_no_gain": _corrected(gain_p),
        }
    )


def _corrected(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's correction of all tests that could be made; 1 for the others."""
    corrected = np.ones(p.shape)
    known = ~np.isnan(p)
    corrected[known] = holm(p[known])
    return corrected


def supported(questions: pd.DataFrame, evidence: pd.DataFrame, level: float) -> NDArray[np.bool_]:
    """Groups that may be served by another classifier than the pooled one, (G,).

    Four things are asked of a group: the main loss is lower on the test rows; a loss of more than is tolerated is ruled
    out, in every loss; it is not shown to lose; and no other group's classifier is shown to serve it better. The
    probability that any group is chosen that loses more than is tolerated is at most `level`.
    """
    first = questions["loss"].iloc[0]
    main = questions[(questions["kind"] == "rationality") & (questions["loss"] == first)]
    violated = set(questions.loc[questions["verdict"] == "violated", "group"].astype(str))
    better = main["gap"].to_numpy(np.float64) > 0
    allowed = ~evidence["group"].isin(violated).to_numpy(bool)
    bounded = (evidence["p_loss"] <= level).to_numpy(bool)
    return evidence["changed"].to_numpy(bool) & bounded & better & allowed


@dataclass(frozen=True, eq=False)
class Trial:
    """What the test rows say about a model in which only some groups keep the classifiers that serve them."""

    deployed: tuple[str, ...]
    """Names of these groups; the pooled classifier serves all others."""
    totals: pd.DataFrame
    """As in `AuditResult`."""
    rates: pd.DataFrame | None
    """As in `AuditResult`."""
    named: pd.DataFrame | None
    """As in `AuditResult`."""

    @classmethod
    def of(
        cls,
        rows: ComparedRows,
        chosen: NDArray[np.bool_],
        labels: Sequence[object],
        known: NamedGroups | None,
        *,
        losses: Sequence[Loss],
        level: float,
        margin: float,
        depth: int,
    ) -> "Trial":
        """Let the chosen groups keep their classifiers, and ask about all rows and about named groups again.

        The groups were chosen on the same rows. The figures are therefore flattering, and a recommendation must not
        rest on the gain that is found here; that no named group may lose is a stricter demand, not a weaker one.
        """
        alone = replace(rows, own=np.where(chosen, rows.own, rows.right.shape[1] - 1))
        named = None
        if known is not None:
            named = answer([ask_named_groups(alone, loss, known, depth) for loss in losses], level, margin, 2)
        return cls(
            deployed=tuple(str(label) for label, yes in zip(labels, chosen, strict=True) if yes),
            totals=total_losses(alone, losses, level),
            rates=decision_rates(alone, labels, known),
            named=named,
        )


@dataclass(frozen=True)
class GroupAdvice:
    """What to do about one group, and why."""

    group: str
    action: Action
    """Deploy its classifier; keep the pooled one; or "pooled": the model already serves it by that one."""
    reason: str
    """Why; reads on from a colon."""
    rows: int
    gain: float
    """Gain in the main loss, with its interval; NaN for a group without rows."""
    low: float
    high: float


@dataclass(frozen=True)
class NamedLoss:
    """A named group that is shown to lose, or that might lose more than is tolerated."""

    group: str
    loss: str
    rows: int
    gain: float
    low: float
    high: float
    shown: bool
    """Whether the loss is shown; otherwise it is not ruled out."""
    single: bool
    """Whether one attribute defines the group."""


@dataclass(frozen=True)
class Figure:
    """One figure that carries a recommendation: with the pooled classifier, with the model as recommended, in words."""

    name: str
    value: str
    note: str
    pooled: float | None = None
    now: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """What to do, and the figures that carry it. Made by `AuditResult.recommendation`.

    A kind is one of these:

    - ``"deploy"``: all groups that have another classifier than the pooled one gain on the test rows, and for all of
      them a loss of more than one percentage point (or the margin, if that is larger) is ruled out;
    - ``"deploy_some"``: this holds for some of the groups only; the pooled classifier should serve the others;
    - ``"keep"``: keep the pooled classifier, because nothing is gained, or because the gain may be chance;
    - ``"do_not_deploy"``: some group, learned or named, is shown to lose, and no part of the model can be recommended;
    - ``"unaudited"``: there were no rows to test on.

    Both "deploy" and "deploy_some" need a gain that is shown: in total, or for a group. If nobody gains, the
    probability of either is at most the level of the audit. The verdict "harm" never goes with "deploy", and
    "do_not_deploy" goes with no other verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y, coin, group = np.ones(800, int), np.tile([0, 1], 400), np.repeat([0, 1], 400)
    >>> advice = audit(y, np.column_stack([y, 1 - y]), group, pooled=coin, own=[0, 1]).recommendation
    >>> print(advice.headline)
    Deploy for group 0 only, and keep the pooled classifier for group 1
    >>> advice.deploy, advice.keep
    (('0',), ('1',))
    """

    kind: Kind
    headline: str
    sentences: tuple[str, ...]
    """The figures in words: the gain, and how decisions change."""
    cautions: tuple[str, ...] = ()
    """Why not for all groups, who loses or might, and what to do next."""
    figures: tuple[Figure, ...] = ()
    groups: tuple[GroupAdvice, ...] = ()
    losing: tuple[NamedLoss, ...] = ()
    """Named groups that are shown to lose."""
    might_lose: tuple[NamedLoss, ...] = ()
    """Named groups for which a loss of more than is tolerated is not ruled out: the first 25, those of fewer than 50
    rows last and single attributes first."""
    n_might_lose: int = 0
    """How many there are."""
    bound: float = 0.0
    """Loss that is tolerated, as a share of rows; of costs, nothing beyond the margin is."""

    @property
    def deploy(self) -> tuple[str, ...]:
        """Groups to deploy for."""
        return tuple(advice.group for advice in self.groups if advice.action == "deploy")

    @property
    def keep(self) -> tuple[str, ...]:
        """Groups that should keep the pooled classifier although the model has another one for them."""
        return tuple(advice.group for advice in self.groups if advice.action == "keep")

    @classmethod
    def of(cls, result: "AuditResult") -> "Recommendation":
        """Draw the conclusion from an audit."""
        chosen = supported(result.questions, result.evidence, result.level)
        kind = _kind(result, chosen)
        if not kind.startswith("deploy"):
            chosen = np.zeros_like(chosen)
        trial = result.trial if kind == "deploy_some" else None
        seen = result if trial is None else trial
        named = _named_losses(seen.named, result)
        losing, might = named[named["shown"]], named[~named["shown"]]
        groups = tuple(_advice(result, place, bool(yes)) for place, yes in enumerate(chosen))
        told = _Told(kind, result, seen.totals, seen.rates, groups, losing, might)
        return cls(
            kind=kind,
            headline=told.headline(),
            sentences=told.sentences(),
            cautions=told.cautions(),
            figures=told.figures(),
            groups=groups,
            losing=_records(losing),
            might_lose=_records(might),
            n_might_lose=len(might),
            bound=tolerated("error", result.margin),
        )

    @classmethod
    def without_rows(cls) -> "Recommendation":
        """Recommendation of a report that had no rows to test on.

        Examples
        --------
        >>> print(Recommendation.without_rows())
        RECOMMENDATION: None, because no rows were given to test the model on.
        Test it on rows that it has not seen.
        """
        headline = "None, because no rows were given to test the model on"
        return cls("unaudited", headline, (), ("Test it on rows that it has not seen.",))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        values = asdict(self) | {"deploy": self.deploy, "keep": self.keep}
        return {name: plain(value) for name, value in values.items()}

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join([f"RECOMMENDATION: {self.headline}.", *self.sentences, *self.cautions])


def _kind(result: "AuditResult", chosen: np.ndarray) -> Kind:
    """Which of the five it is; the verdict has the first word."""
    status = result.verdict.status
    otherwise: Kind = "do_not_deploy" if status == "harm" else "keep"
    if status in ("unchanged", "nothing_gained") or not chosen.any():
        return otherwise
    changed = result.evidence["changed"].to_numpy(bool)
    complete = bool(chosen[changed].all())
    # A gain in total is evidence only if the groups were not chosen by their gains. One group of several is evidence
    # after correction for their number. Each gets half of the level.
    in_total = complete and float(result.totals["low"].iloc[0]) > 0
    of_a_group = bool((result.evidence["p_no_gain"].to_numpy()[chosen] <= result.level / 2).any())
    if not (in_total or of_a_group):
        return otherwise
    if complete:
        return "do_not_deploy" if status == "harm" else "deploy"
    return "deploy_some" if _trial_is_safe(result, chosen) else otherwise


def _trial_is_safe(result: "AuditResult", chosen: np.ndarray) -> bool:
    """Whether no named group loses with the chosen groups alone; one that loses with all must not even seem to."""
    trial = result.trial
    if trial is None or trial.deployed != tuple(result.evidence["group"][chosen]):
        return False
    if trial.named is None or result.named is None:
        return True
    if (trial.named["verdict"] == "violated").any():
        return False
    harmed = set(result.named.loc[result.named["verdict"] == "violated", "group"])
    again = trial.named[trial.named["group"].isin(harmed)]
    return bool((again["gap"] >= 0).all())


def _advice(result: "AuditResult", place: int, chosen: bool) -> GroupAdvice:
    about = result.questions[result.questions["group"].astype(str) == result.evidence["group"].iloc[place]]
    main = about[(about["kind"] == "rationality") & (about["loss"] == result.losses[0])].iloc[0]
    changed = bool(result.evidence["changed"].iloc[place])
    action: Action = "deploy" if chosen else "keep" if changed else "pooled"
    return GroupAdvice(
        group=str(main["group"]),
        action=action,
        reason=_reason(action, about, main, float(result.evidence["p_loss"].iloc[place]), result),
        rows=int(main["n"]),
        gain=float(main["gap"]),
        low=float(main["low"]),
        high=float(main["high"]),
    )


def _named_losses(named: pd.DataFrame | None, result: "AuditResult") -> pd.DataFrame:
    """Named groups that lose or might, each once with its clearest loss; `shown` and `single` are added to the columns.

    Those that are shown to lose come first, then groups that are large enough to say something, then single attributes.
    """
    if named is None or result.composition is None or result.verdict.status == "unchanged":
        return result.questions.head(0).assign(shown=False, single=False, small=False).astype({"shown": bool})
    limit = np.array([-tolerated(loss, result.margin) for loss in named["loss"]])
    table = named.assign(
        shown=named["verdict"] == "violated",
        single=named["group"].isin(set(result.composition["named_group"])),
        small=named["n"] < SMALLEST_SHOWN,
    )
    table = table[table["shown"] | (table["low"] < limit)]
    order = ["shown", "small", "single", "p"]
    return table.sort_values(order, ascending=[False, True, False, True], kind="stable").drop_duplicates("group")


def _records(table: pd.DataFrame) -> tuple[NamedLoss, ...]:
    return tuple(
        NamedLoss(
            group=str(row["group"]),
            loss=str(row["loss"]),
            rows=int(row["n"]),
            gain=float(row["gap"]),
            low=float(row["low"]),
            high=float(row["high"]),
            shown=bool(row["shown"]),
            single=bool(row["single"]),
        )
        for _, row in table.head(_MOST_NAMED).iterrows()
    )


def groups_in_words(names: Sequence[str]) -> str:
    """Name learned groups.

    Examples
    --------
    >>> groups_in_words(["2"]), groups_in_words(["0", "1"])
    ('group 2', 'groups 0 and 1')
    """
    return f"group{'' if len(names) == 1 else 's'} {listed(shortened(list(names)))}"


def _reason(action: str, about: pd.DataFrame, main: pd.Series, p_loss: float, result: "AuditResult") -> str:
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
class _Told:
    """All that a recommendation tells, and what it is told from: the audit, or what some groups alone would do."""

    kind: str
    result: "AuditResult"
    totals: pd.DataFrame
    rates: pd.DataFrame | None
    groups: Sequence[GroupAdvice]
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
        before, now = (level_in_words(total["loss"], total[side]) for side in ("pooled_loss", "own_loss"))
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
        before, now = (level_in_words(total["loss"], total[side]) for side in ("pooled_loss", "own_loss"))
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
            f"On {rows}{alone} {change}: gain {points(total['gain'])} {Loss(total['loss']).unit} "
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
                f"{_sentence(who(worst))} would gain {points(-worst['gap'])} {Loss(worst['loss']).unit} with "
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
    return f"{100 * -question['gap']:.2f} {Loss(question['loss']).unit}{of_loss} ({interval})"


def break_even(rates: pd.Series, name: str) -> float:
    """How many times as much an error of this kind may cost as one of the other kind, until nothing is gained.

    NaN if the other kind does not fall, or if nothing is known about it.

    Examples
    --------
    Of 100 rows, half of them positive: 5 misses more, and 15 false alarms fewer.

    >>> row = {"flagged": 0.3, "fpr": 0.1, "fpr_pooled": 0.4, "fnr": 0.5, "fnr_pooled": 0.4}
    >>> round(break_even(pd.Series(row), "fnr"), 2)
    3.0
    """
    known = 1 - rates["fnr"] - rates["fpr"]
    # The share of positive rows, from those flagged: flagged = fpr (1 − share) + (1 − fnr) share.
    share = (rates["flagged"] - rates["fpr"]) / known if abs(known) > 1e-9 else np.nan
    errors = {
        "fpr": (rates["fpr"] - rates["fpr_pooled"]) * (1 - share),
        "fnr": (rates["fnr"] - rates["fnr_pooled"]) * share,
    }
    fewer, more = -errors["fpr" if name == "fnr" else "fnr"], errors[name]
    return float(fewer / more) if fewer > 0 and more > 0 else np.nan
