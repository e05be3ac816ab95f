"""What can be said about groups, as plain records that print."""

from dataclasses import asdict, dataclass
from typing import Any

from dafh.explanation.rules import Rule
from dafh.text import clipped, percent, plain, render_html

SMALLEST_EFFECT = 0.05
_POOLED = "the pooled classifier"


@dataclass(frozen=True)
class Contrast:
    """One column in which the people of a group differ from the others."""

    column: str
    text: str
    difference: float
    """In standard deviations of the column: positive where the group has more."""


@dataclass(frozen=True)
class Effect:
    """How much one column moves the classifier of a group, and how much it moves the pooled one."""

    column: str
    own: float
    """Change of the logit by one standard deviation of the column, in the group's classifier."""
    pooled: float
    label: Any
    """Class whose logit that is."""

    @property
    def text(self) -> str:
        """Say it in words."""
        if abs(self.own) <= SMALLEST_EFFECT:
            how = "hardly counts"
        elif self.own * self.pooled < 0:
            how = "counts the other way round"
        else:
            how = "counts more" if abs(self.own) > abs(self.pooled) else "counts less"
        return f"{self.column} {how}: {self.own:+.2f} instead of {self.pooled:+.2f}"


@dataclass(frozen=True)
class Member:
    """People with one value of a sensitive attribute."""

    attribute: str
    name: str
    """Attribute and value."""
    share: float
    """In the group."""
    overall: float
    """Among all rows."""


@dataclass(frozen=True)
class GroupInWords:
    """What can be said about one group."""

    group: int
    rows: int
    share: float
    served_by: str
    rule: Rule | None
    contrasts: tuple[Contrast, ...]
    effects: tuple[Effect, ...]
    members: tuple["Member", ...] = ()


@dataclass(frozen=True)
class Explanation:
    """All groups in words; prints as text, in a terminal and in a notebook. Made by `explain`.

    Examples
    --------
    >>> group = GroupInWords(0, 40, 0.4, "its own classifier", Rule("age up to 30", 0.9, 0.8), (), ())
    >>> print(Explanation((group,), stability=0.9))
    Group 0: 40 rows (40.0%), served by its own classifier.
      Roughly: age up to 30 (of these 90.0% are in the group; they are 80.0% of it).
      Its classifier hardly differs from the pooled one.
    The groups depend hardly on the seed of training: the adjusted Rand index between fits is 0.90 (1: the same groups,
    0: unrelated ones).
    """

    groups: tuple[GroupInWords, ...]
    stability: float | None = None
    """Adjusted Rand index between the groups of fits with different seeds: 1 the same groups, 0 unrelated ones."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON."""
        groups = []
        for group in self.groups:
            entry = asdict(group)
            for effect, values in zip(group.effects, entry["effects"], strict=True):
                values["text"] = effect.text
            groups.append(entry)
        return plain({"groups": groups, "stability": self.stability, "stability_text": self.stability_text()})

    def stability_text(self) -> str:
        """Say how far the groups depend on the seed."""
        if self.stability is None:
            return "How far the groups depend on the seed of training was not measured (--seeds 3 does)."
        strength = "much" if self.stability < 0.4 else "partly" if self.stability < 0.8 else "hardly"
        return (
            f"The groups depend {strength} on the seed of training: the adjusted Rand index between fits is "
            f"{self.stability:.2f} (1: the same groups, 0: unrelated ones)."
        )

    def _paragraphs(self) -> list[str]:
        found = []
        for group in self.groups:
            found.append(
                f"Group {group.group}: {group.rows:,} rows ({percent(group.share)}), served by {group.served_by}."
            )
            found += [f"  {line}" for line in group_lines(group)]
        return [*found, self.stability_text()] if self.stability is not None else found

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join(self._paragraphs())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(*self._paragraphs())


def group_lines(group: GroupInWords) -> list[str]:
    """Rule, contrasts, effects and members of a group, a line each; what is unknown is left out."""
    lines = []
    if group.rule is not None:
        lines.append(
            f"Roughly: {group.rule.text} (of these {percent(group.rule.precision)} are in the group; they are "
            f"{percent(group.rule.recall)} of it)."
        )
    if group.contrasts:
        lines.append(f"Unlike the others: {'; '.join(contrast.text for contrast in group.contrasts)}.")
    lines.append(effect_line(group))
    if group.members:
        odd = (f"{m.name}: {percent(m.share)} (of all {percent(m.overall)})" for m in _oddest(group.members)[:4])
        lines.append(f"Who: {'; '.join(odd)}.")
    return lines


def _oddest(members: tuple[Member, ...]) -> list[Member]:
    """For each attribute the value whose share differs most from that among all rows, the largest difference first."""
    found: dict[str, Member] = {}
    for member in sorted(members, key=lambda member: -abs(member.share - member.overall)):
        found.setdefault(member.attribute, member)
    return list(found.values())


def effect_line(group: GroupInWords) -> str:
    """Say how the classifier that serves a group differs from the pooled one."""
    if group.effects:
        unit = f"change of the log-odds of {clipped(group.effects[0].label)} by one standard deviation"
        return f"In its classifier {'; '.join(effect.text for effect in group.effects)} ({unit})."
    same = "is the pooled one" if group.served_by == _POOLED else "hardly differs from the pooled one"
    return f"Its classifier {same}."


def server_words(final: Any, group: int) -> str:
    """Say which classifier of a fitted model serves a group."""
    serves = int(final.serves_[group]) if group < len(final.serves_) else final.n_groups_
    if serves == group:
        return "its own classifier"
    return _POOLED if serves == final.n_groups_ else f"the classifier of group {serves}"
