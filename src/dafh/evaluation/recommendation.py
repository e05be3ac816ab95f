"""What to do with a model: deploy it, for whom, what to check first, or keep the pooled classifier.

Terminal, JSON, report and exit code all take it from `AuditResult.recommendation`, so that they cannot disagree. Harm
means that a group, learned or named, is shown to have a higher loss than with the pooled classifier. That another
group's classifier would serve a group better is no harm, and does not stand in the way.

First, for which groups the test rows support their own classifiers, and what these would do if they served alone; then
the recommendation; then its sentences.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import TITLES, Loss, LossName, in_points, level_in_words, tolerated
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.stats import holm
from dafh.text import listed, percent, plain, points

if TYPE_CHECKING:
    from dafh.evaluation.audit import AuditResult

Kind = Literal["deploy", "deploy_with_checks", "deploy_some", "keep", "do_not_deploy", "unaudited"]
Action = Literal["deploy", "keep", "pooled"]

SIGN_OF_LOSS = 0.2
"""A named group is to be checked if the p-value of a loss is up to this, a discovered one if the corrected p-value is.
A smaller value overlooks more losses, and a larger one asks for more checks where nobody loses
(`research.guarantees.recommendations`)."""
STEEP_RISE = 0.05
"""A kind of error that gets more frequent by more than this is to be checked: less is often chance."""
_KINDS_OF_ERROR: tuple[LossName, ...] = ("fpr", "fnr")
_ERRORS = {"fpr": "false positives", "fnr": "false negatives"}
# A sentence that lists more names is not read to its end; the tables have them all.
_MOST_NAMES = 3


def weigh(
    answered: pd.DataFrame, is_changed: NDArray[np.bool_], labels: Sequence[object], level: float
) -> pd.DataFrame:
    """Which groups may be served by another classifier than the pooled one, and why.

    Of each group returned are its name; `changed`, whether another classifier than the pooled one serves it; `p_loss`,
    small if no loss is higher than tolerated; `p_no_gain`, small if the main loss, the first one asked about, is lower
    than with the pooled classifier; and `supported`. Both p-values are corrected for the number of groups and losses
    (Holm), each in a family of its own.

    Three things are asked of a supported group: on the test rows its main loss is lower, or it is decided in the same
    way; a loss of more than is tolerated is ruled out, in every loss; and it is not shown to lose. The probability that
    any group is supported that loses more than is tolerated is at most `level`.
    """
    rational = answered[answered["kind"] == "rationality"]
    # One line for each loss, one column for each group.
    gap, n_rows, n_worse, n_better, p_small_loss, p_no_gain = (
        rational[name].to_numpy(np.float64).reshape(-1, len(labels))
        for name in ("gap", "n", "own_worse", "own_better", "p_small_loss", "p_no_gain")
    )
    is_harmed = (rational["verdict"] == "violated").to_numpy().reshape(-1, len(labels)).any(axis=0)
    is_alike = (n_worse + n_better).sum(axis=0) == 0
    # The tests of the audit are at the margin and share the level with envy and with named groups. These have another
    # bound, and there are few of them: a recommendation must not get weaker with every attribute tested.
    can_be_tested = is_changed & (n_rows > 0)
    p_loss = _corrected(p_small_loss, can_be_tested).max(axis=0)
    return pd.DataFrame(
        {
            "group": [str(label) for label in labels],
            "changed": is_changed,
            "p_loss": p_loss,
            "p_no_gain": _corrected(p_no_gain[0], can_be_tested[0]),
            "supported": is_changed & (p_loss <= level) & ((gap[0] > 0) | is_alike) & ~is_harmed,
        }
    )


def _corrected(p: NDArray[np.float64], tested: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Holm's correction of all tests that could be made; 1 for the others."""
    corrected = np.ones(p.shape)
    corrected[tested] = holm(p[tested])
    return corrected


@dataclass(frozen=True)
class GroupAdvice:
    """What to do about one group, and why."""

    group: str
    action: Action
    """Deploy its classifier; keep the pooled one; or "pooled": the model already serves it by that one."""
    reason: str
    """Why; reads on from a colon."""
    harmed: bool
    """Whether it is shown to lose with the classifier that the model has for it."""


@dataclass(frozen=True)
class NamedLoss:
    """A named or discovered group that is shown to lose, or that shows signs of it."""

    group: str
    loss: LossName
    rows: int
    gain: float
    low: float
    high: float

    def amount(self, level: float) -> str:
        """How much the group loses, as a positive number with its interval."""
        of_loss = "" if self.loss == "error" else f" in {TITLES[self.loss]}"
        interval = f"{_percentage(level)} interval {-100 * self.high:.2f} to {-100 * self.low:.2f}"
        return f"{-100 * self.gain:.2f} {Loss(self.loss).unit}{of_loss} ({interval})"


@dataclass(frozen=True)
class Recommendation:
    """What to do, and what it rests on. Made by `AuditResult.recommendation`.

    A kind is one of these:

    - ``"deploy"``: all groups that have another classifier than the pooled one gain on the test rows, and for all of
      them a loss of more than one percentage point (or the margin, if that is larger) is ruled out;
    - ``"deploy_with_checks"``: the same, but a named or discovered group shows signs of a loss, and for it one beyond
      that point is not ruled out; or a kind of error gets much more frequent;
    - ``"deploy_some"``: this holds for some of the groups only; the pooled classifier should serve the others;
    - ``"keep"``: keep the pooled classifier, because nothing is gained, or because the gain may be chance;
    - ``"do_not_deploy"``: some group, learned or named, is shown to lose, and no part of the model can be recommended;
    - ``"unaudited"``: there were no rows to test on.

    To deploy anything takes a gain that is shown: in total, or for a group. If nobody gains, the probability of such a
    recommendation is at most the level of the audit.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y, coin, group = np.ones(800, int), np.tile([0, 1], 400), np.repeat([0, 1], 400)
    >>> advice = audit(y, np.column_stack([y, 1 - y]), group, pooled=coin, own=[0, 1]).recommendation
    >>> print(advice.headline)
    Deploy for group 0 only, and keep the pooled classifier for group 1
    >>> advice.kind, advice.deploy, advice.keep, advice.harm
    ('deploy_some', ('0',), ('1',), True)
    """

    kind: Kind
    headline: str
    harm: bool = False
    """Whether a group, learned or named, is shown to lose with the model as it is."""
    sentences: tuple[str, ...] = ()
    """The figures in words: the gain, and how decisions change."""
    cautions: tuple[str, ...] = ()
    """What to check, why not for all groups, who loses, and what to do next."""
    groups: tuple[GroupAdvice, ...] = ()
    losing: tuple[NamedLoss, ...] = ()
    """Named groups that are shown to lose, the clearest case first."""
    checks: tuple[NamedLoss, ...] = ()
    """Named and discovered groups of 50 rows and more with signs of a loss, the largest loss first."""
    total: dict[str, Any] | None = None
    """Main loss of all rows with the model as recommended: a line of `AuditResult.totals`."""
    rates: dict[str, Any] | None = None
    """Decisions about all rows with the model as recommended: a line of `AuditResult.rates`."""

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
        chosen = result.evidence["supported"].to_numpy(bool)
        kind = _kind(result, chosen)
        if not kind.startswith("deploy"):
            chosen = np.zeros_like(chosen)
        # Figures are those of the model as it is recommended.
        figures = result.trial if kind == "deploy_some" and result.trial is not None else result
        losing, checks = _named_losses(figures)
        if kind.startswith("deploy"):
            discovered = _discovered_losses(figures, (*losing, *checks))
            checks = tuple(sorted((*checks, *discovered), key=lambda group_loss: group_loss.gain))
        groups = tuple(_advice(result, number, bool(yes)) for number, yes in enumerate(chosen))
        words = _Words(kind, result, figures, groups, losing, checks)
        if kind == "deploy" and (checks or words.steep()):
            kind = "deploy_with_checks"
        return cls(
            kind=kind,
            headline=words.headline(),
            harm=result.harm,
            sentences=words.sentences(),
            cautions=words.cautions(),
            groups=groups,
            losing=losing,
            checks=checks,
            total=dict(figures.totals.iloc[0]),
            rates=None if figures.rates is None else dict(figures.rates.iloc[0]),
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
        return cls("unaudited", headline, cautions=("Test it on rows that it has not seen.",))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        values = asdict(self) | {"deploy": self.deploy, "keep": self.keep}
        return {name: plain(value) for name, value in values.items()}

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join([f"RECOMMENDATION: {self.headline}.", *self.sentences, *self.cautions])


def _kind(result: "AuditResult", chosen: NDArray[np.bool_]) -> Kind:
    otherwise: Kind = "do_not_deploy" if result.harm else "keep"
    complete = bool(chosen[result.evidence["changed"].to_numpy(bool)].all())
    # A gain in total is evidence only if the groups were not chosen by their gains. One group of several is evidence
    # after correction for their number. Each gets half of the level.
    in_total = complete and float(result.totals["low"].iloc[0]) > 0
    of_a_group = bool((result.evidence["p_no_gain"].to_numpy()[chosen] <= result.level / 2).any())
    if not chosen.any() or not (in_total or of_a_group):
        return otherwise
    if complete:
        return "do_not_deploy" if otherwise == "do_not_deploy" else "deploy"
    return "deploy_some" if _trial_is_safe(result) else otherwise


def _trial_is_safe(result: "AuditResult") -> bool:
    """Whether no named group loses with the chosen groups alone; one that loses with all must not even seem to."""
    trial = result.trial
    if trial is None or trial.named is None or result.named is None:
        return trial is not None
    harmed = result.named.loc[result.named["verdict"] == "violated", "group"]
    again = trial.named[trial.named["group"].isin(set(harmed))]
    return bool((trial.named["verdict"] != "violated").all() and (again["gap"] >= 0).all())


def _named_losses(result: "AuditResult") -> tuple[tuple[NamedLoss, ...], tuple[NamedLoss, ...]]:
    """Named groups that are shown to lose, and those to check."""
    named = result.named
    if named is None or result.composition is None:
        return (), ()
    single = set(result.composition["named_group"])
    is_shown = named["verdict"] == "violated"
    is_sign = _signs_of_loss(named["loss"], named["n"], named["low"], named["p"], result.margin)
    by_loss = pd.concat([named[is_shown].sort_values("p"), named[is_sign & ~is_shown].sort_values("gap")])
    # Women who lose are named, and not also women of each region; but women of a region who are shown to lose are not
    # left out because all women show signs of it.
    wider = by_loss[by_loss["group"].isin(single)]
    is_inside = [
        group not in single
        and any(
            f" & {name} & " in f" & {group} & "
            for name in wider["group"][(wider["verdict"] == "violated") | (verdict != "violated")]
        )
        for group, verdict in zip(by_loss["group"], by_loss["verdict"], strict=True)
    ]
    distinct = by_loss[~np.array(is_inside, bool)].drop_duplicates("group")
    is_shown = distinct["verdict"] == "violated"
    return _records(distinct[is_shown]), _records(distinct[~is_shown])


def _discovered_losses(result: "AuditResult", mentioned: Sequence[NamedLoss]) -> tuple[NamedLoss, ...]:
    """Discovered groups to check, without those that are a named group which is mentioned already."""
    table = result.losers
    if not len(table):
        return ()
    # Rules were chosen among thousands, so that their p-values count after correction only.
    is_sign = _signs_of_loss(table["loss"], table["tested"], -table["high"], table["p_corrected"], result.margin)
    table = table[is_sign & ~table["same_as"].isin([group_loss.group for group_loss in mentioned])]
    table = table.assign(n=table["tested"], gap=-table["harm"], low=-table["high"], high=-table["low"])
    return _records(table.drop(columns="rows").drop_duplicates("group"))


def _signs_of_loss(
    loss: "pd.Series[str]", n_rows: "pd.Series[int]", low: "pd.Series[float]", p: "pd.Series[float]", margin: float
) -> "pd.Series[bool]":
    """Whether a loss of more than is tolerated is not ruled out, while the rows rather speak for one."""
    bound = np.array([-tolerated(name, margin) for name in loss])  # type: ignore[arg-type]
    return (n_rows >= SMALLEST_SHOWN) & (low < bound) & (p <= SIGN_OF_LOSS)


def _records(table: pd.DataFrame) -> tuple[NamedLoss, ...]:
    fields = [*NamedLoss.__dataclass_fields__]
    rows = table.rename(columns={"n": "rows", "gap": "gain"})[fields].to_dict("records")
    return tuple(NamedLoss(**{str(name): plain(value) for name, value in row.items()}) for row in rows)


def _advice(result: "AuditResult", number: int, chosen: bool) -> GroupAdvice:
    """What to do about one group, and why."""
    evidence = result.evidence.iloc[number]
    rational = result.questions[result.questions["kind"] == "rationality"]
    questions = rational[rational["group"].astype(str) == evidence["group"]]
    main, lost = questions.iloc[0], questions[questions["verdict"] == "violated"]
    action: Action = "deploy" if chosen else "keep" if evidence["changed"] else "pooled"
    if not evidence["changed"]:
        reason = "the pooled classifier already serves it"
    elif len(lost):
        reason = f"it is shown to lose {_records(lost.sort_values('p').head(1))[0].amount(result.level)}"
    elif not main["n"]:
        reason = "it has no test rows"
    elif chosen or evidence["p_loss"] > result.level:
        reason = f"{_any_loss(result)} is {'' if chosen else 'not '}ruled out"
    elif main["gap"] > 0 and result.harm:
        reason = "as a whole it does not lose, but some people in it or elsewhere do"
    else:
        reason = "no gain is shown" if main["gap"] > 0 else "it gains nothing on these rows"
    return GroupAdvice(str(evidence["group"]), action, reason, len(lost) > 0)


@dataclass(frozen=True)
class _Words:
    """The words of a recommendation, and what they are made from."""

    kind: str
    result: "AuditResult"
    figures: "AuditResult"
    """Audit of the model as recommended: the same, or one in which some groups only keep their classifiers."""
    groups: tuple[GroupAdvice, ...]
    losing: tuple[NamedLoss, ...]
    checks: tuple[NamedLoss, ...]

    def headline(self) -> str:
        """Say what to do, without a full stop."""
        total = self.result.totals.iloc[0]
        if self.kind == "do_not_deploy":
            names = [f"group {group.group}" for group in self.groups if group.harmed] + [
                group.group for group in self.losing
            ]
            return f"Do not deploy: {listed(_shortened(names))} {'are' if len(names) > 1 else 'is'} shown to lose"
        if self.kind == "keep" and not self.result.changed:
            return "Keep the pooled classifier: the model makes the same decisions"
        if self.kind == "keep":
            return f"Keep the pooled classifier: {'no gain is shown' if total['gain'] > 0 else 'nothing is gained'}"
        names = [group.group for group in self.checks] + [f"{_ERRORS[name]}{where}" for where, name, _ in self.steep()]
        check = f"check: {listed(_shortened(names))}" if names else ""
        if self.kind == "deploy":
            return f"Deploy, but {check}" if names else "Deploy"
        deployed, keeping = self._of("deploy"), self._of("keep")
        is_short = len(deployed) <= _MOST_NAMES
        n_groups = len(deployed) + len(keeping)
        whom = f"{groups_in_words(deployed)} only" if is_short else f"{len(deployed)} of {n_groups} groups"
        keeping_words = "the others" if len(keeping) > _MOST_NAMES else groups_in_words(keeping)
        return f"Deploy for {whom}, and keep the pooled classifier for {keeping_words}{f'; {check}' if names else ''}"

    def sentences(self) -> tuple[str, ...]:
        """Gain and decisions: the figures in words."""
        if not self.result.changed:
            return ()
        return tuple(sentence for sentence in (self._gain(), self._decisions()) if sentence)

    def cautions(self) -> tuple[str, ...]:
        """Say who loses, what to check, why not for all, and what to do next."""
        if not self.result.changed:
            return (f"Nobody gains or loses by it.{self._levels()}",)
        untested = "No sensitive attribute was given, so named groups, such as women, were not tested."
        untested = untested if self.result.named is None else ""
        sentences = (self._who_loses(), self._checks(), self._rising(), self._kept(), untested, self._next())
        return tuple(sentence for sentence in sentences if sentence)

    def _of(self, action: Action) -> list[str]:
        return [advice.group for advice in self.groups if advice.action == action]

    def _these(self) -> str:
        return "this group" if len(self._of("deploy")) == 1 else "these groups"

    def _gain(self) -> str:
        total = self.figures.totals.iloc[0]
        if np.isnan(total["gain"]):
            return ""
        pooled_level, own_level = (level_in_words(total["loss"], total[side]) for side in ("pooled_loss", "own_loss"))
        title = TITLES[total["loss"]] + (" of 100 rows" if total["loss"] == "cost" else "")
        change = f"the {title} {'falls' if total['gain'] > 0 else 'rises'} from {pooled_level} to {own_level}"
        change = change if total["gain"] else f"the {title} stays at {own_level}"
        whom = f" with {self._these()} alone" if self.kind == "deploy_some" else ""
        gain = f"gain {points(total['gain'])} {Loss(total['loss']).unit}"
        interval = f"{_percentage(self.result.level)} interval {points(total['low'])} to {points(total['high'])}"
        chance = "" if total["low"] > 0 or total["gain"] <= 0 else " That may be chance."
        n_rows = int(self.result.matrix.sizes.sum())
        return f"On {n_rows:,} test rows{whom}, {change}: {gain} ({interval}).{chance}"

    def _decisions(self) -> str:
        if self.figures.rates is None or self.kind == "keep":
            return ""
        row = self.figures.rates.iloc[0]
        flagged = f"{percent(row['flagged'])} of rows are flagged, before {percent(row['flagged_pooled'])}"
        kinds = [
            f"the {TITLES[name]} is {percent(row[name])}, before {percent(row[f'{name}_pooled'])}"
            for name in _KINDS_OF_ERROR
            if not np.isnan(row[name])  # Without rows of a label nothing is known about its errors.
        ]
        return f"{'; '.join([flagged, *kinds])}."

    def steep(self) -> list[tuple[str, LossName, float]]:
        """Kinds of error that get much more frequent and were not tested: where, which, and by how much.

        The error rate can hide them, because it counts every error alike.
        """
        rates, untested = self.figures.rates, [name for name in _KINDS_OF_ERROR if name not in self.result.losses]
        if rates is None or "cost" in self.result.losses or not self.kind.startswith("deploy"):
            return []
        deployed = [1 + line for line, advice in enumerate(self.groups) if advice.action == "deploy"]
        rises = []
        for line in [0, *(deployed if len(self.groups) > 1 else [])]:
            row, where = rates.iloc[line], f" in group {rates['group'].iloc[line]}" if line else ""
            rises += [(where, name, float(row[name] - row[f"{name}_pooled"])) for name in untested]
        return [rise for rise in rises if rise[2] > STEEP_RISE]

    def _rising(self) -> str:
        rises = [f"the {TITLES[name]}{where} rises by {100 * rise:.1f} points" for where, name, rise in self.steep()]
        return (
            _sentence(f"{'; '.join(_shortened(rises))}. If such errors cost more, audit with costs.") if rises else ""
        )

    def _who_loses(self) -> str:
        if self.kind != "do_not_deploy":
            return ""
        losses = [f"group {group.group}: {group.reason}" for group in self.groups if group.harmed]
        losses += [f"{group.group} loses {group.amount(self.result.level)}" for group in self.losing]
        return f"Who loses: {'; '.join(_shortened(losses))}."

    def _checks(self) -> str:
        if not self.kind.startswith("deploy") or not self.checks:
            return ""
        losses = [
            f"{group.group} ({group.rows:,} rows) seems to lose {group.amount(self.result.level)}"
            for group in self.checks
        ]
        return f"Check with more rows before you deploy: {'; '.join(_shortened(losses))}."

    def _kept(self) -> str:
        if self.kind != "deploy_some":
            return ""
        groups_by_reason: dict[str, list[str]] = {}
        for group in self.groups:
            if group.action == "keep":
                groups_by_reason.setdefault(group.reason, []).append(group.group)
        reasons = [f"{reason} ({groups_in_words(_shortened(names))})" for reason, names in groups_by_reason.items()]
        return f"Why not for all: {'; '.join(_shortened(reasons))}."

    def _levels(self) -> str:
        """Say how unequally the pooled classifier serves groups: that it stays is no all-clear."""
        levels = self.result.levels.iloc[1 + len(self.groups) :]
        levels = levels[levels["rows"] >= SMALLEST_SHOWN].sort_values("pooled_loss", kind="stable")
        if len(levels) < 2:
            return ""
        loss = self.result.losses[0]
        worst, best = (
            f"{level_in_words(loss, row['pooled_loss'])} ({row['group']})" for _, row in levels.iloc[[-1, 0]].iterrows()
        )
        return f" Among named groups, the {TITLES[loss]} of the pooled classifier runs from {best} to {worst}."

    def _next(self) -> str:
        if self.kind == "deploy_some":
            were = "was" if len(self._of("deploy")) == 1 else "were"
            return (
                f"{_sentence(self._these())} {were} chosen on the rows that the figures come from, so expect a little "
                "less: audit the model on new rows once the pooled classifier serves the others."
            )
        if self.kind == "do_not_deploy":
            protect = "with these attributes protected, or " if self.losing else ""
            return f"Fit again {protect}with more rows, and audit on new rows."
        if self.kind == "keep" and float(self.result.totals["gain"].iloc[0]) > 0:
            return "More test rows may show whether the gain is real."
        return ""


def groups_in_words(names: Sequence[str]) -> str:
    """Name learned groups.

    Examples
    --------
    >>> groups_in_words(["2"]), groups_in_words(["0", "1"])
    ('group 2', 'groups 0 and 1')
    """
    return f"group{'' if len(names) == 1 else 's'} {listed(list(names))}"


def _shortened(names: Sequence[str]) -> list[str]:
    """The first names of a list, and the number of the others."""
    n_more = len(names) - _MOST_NAMES
    return [*names[:_MOST_NAMES], *([f"{n_more} more"] if n_more > 0 else [])]


def _any_loss(result: "AuditResult") -> str:
    """A loss that is not tolerated, in words; any at all where only costs were asked about and no margin was given."""
    largest = max(tolerated(loss, result.margin) for loss in result.losses)
    return f"a loss of more than {in_points(largest)}" if largest else "a loss"


def _sentence(text: str) -> str:
    """Text with a capital letter at its beginning; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def _percentage(level: float) -> str:
    return f"{100 * (1 - level):g}%"
