"""What to do with a model, from the answers of an audit: deploy it, for whom, or keep the pooled classifier.

Terminal, JSON, report and exit code take the recommendation from `AuditResult.recommendation`, as they take the verdict
from `AuditResult.verdict`. The two agree: nothing is recommended for a group that is shown to lose.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dafh.evaluation import recommendation_words as words
from dafh.evaluation.deployment import supported, tolerated
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.recommendation_words import Figure
from dafh.text import plain

if TYPE_CHECKING:
    from dafh.evaluation.result import AuditResult

Kind = Literal["deploy", "deploy_some", "keep", "do_not_deploy", "unaudited"]
Action = Literal["deploy", "keep", "pooled"]
# Nobody reads a longer list, and intersections of many attributes would make it a hundred thousand lines long.
_MOST_NAMED = 25


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
        told = words.Told(kind, result, seen.totals, seen.rates, groups, losing, might)
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
        reason=words.reason(action, about, main, float(result.evidence["p_loss"].iloc[place]), result),
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
