"""Descriptions of groups, as plain records that print, and sentences about a whole model."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from dafh.classifiers import GroupModel, final_classifier
from dafh.evaluation.losses import Loss, LossName
from dafh.explanation.rules import Rule
from dafh.groups.summary import EVERYBODY_ELSE
from dafh.text import clipped, percent, plain, points, render_html

SMALLEST_EFFECT = 0.05
"""Smaller differences in log-odds are not mentioned: this one moves a probability by 1.25 percentage points at most."""
_POOLED = "the pooled classifier"
OWN = "its own classifier"
"""Who serves a group that has its own classifier; more may follow on what that is like."""
# A good rule comes this much of the way from "all rows" to a perfect rule, in F1. A fixed limit of F1 would praise
# useless rules of large groups: for half of the rows, calling every row a member already gives an F1 of 0.67.
_GOOD_RULE = 0.2
_MOST_ATTRIBUTES = 4
# Adjusted Rand indices below each limit, in words.
_CHANGES = ((0.5, "change a lot"), (0.8, "change in part"), (0.95, "change little"), (np.inf, "barely change"))


@dataclass(frozen=True)
class Contrast:
    """One column in which the rows of a group differ from all other rows."""

    column: str
    text: str
    difference: float
    """Difference of the means in standard deviations of the column; positive if the group has more."""


@dataclass(frozen=True)
class Effect:
    """How much one column moves the prediction for a group, compared with the pooled classifier."""

    column: str
    own: float
    """Change in the log-odds of `label` per standard deviation of the column, for the classifier serving the group."""
    pooled: float
    """The same change for the pooled classifier."""
    label: Any
    """Class whose log-odds these are."""

    @property
    def text(self) -> str:
        """The comparison in words."""
        if abs(self.own) <= SMALLEST_EFFECT:
            how = "almost no effect"
        elif self.own * self.pooled < 0:
            how = "the opposite effect"
        else:
            how = "a stronger effect" if abs(self.own) > abs(self.pooled) else "a weaker effect"
        return f"{self.column} has {how} ({self.own:+.2f} instead of {self.pooled:+.2f})"


@dataclass(frozen=True)
class Member:
    """How frequent one value of a sensitive attribute is in a group."""

    attribute: str
    name: str
    """Attribute and value."""
    share: float
    """Share of the group's rows that have this value."""
    overall: float
    """Share of all rows that have it."""

    @property
    def text(self) -> str:
        """Both shares in words."""
        return f"{self.name} in {percent(self.share)} of rows (all rows: {percent(self.overall)})"


@dataclass(frozen=True)
class GroupInWords:
    """Everything that `explain` says about one group."""

    group: int
    """Number of the group; `n_groups_` of the model for rows that belong to none."""
    name: str
    rows: int
    share: float
    """Share of all rows."""
    served_by: str
    rule: Rule | None = None
    """None if no short rule was found."""
    contrasts: tuple[Contrast, ...] = ()
    effects: tuple[Effect, ...] = ()
    members: tuple[Member, ...] = ()
    difference: float | None = None
    """Mean absolute difference in log-odds between the classifier that serves the group and the pooled one.

    None if they could not be compared, because one of them gives no probabilities.
    """
    gain: float | None = None
    """Pooled loss minus the loss of the own classifier, on calibration rows; None if that is not known."""
    low: float | None = None
    high: float | None = None
    """Limits of the 95% interval of the gain, where they are known."""
    loss: LossName = "error"
    """What the gain is a gain in."""

    @property
    def heading(self) -> str:
        """Name, size and classifier of the group."""
        return f"{self.name}: {self.rows:,} rows ({percent(self.share)} of all), served by {self.served_by}"

    def lines(self) -> list[str]:
        """Rule, gain and details, one line each; what is unknown is left out."""
        exact = self.rule is not None and self.rule.exact
        if not self.rows and not exact:  # Nothing can be said about a group without rows, but for its own rule.
            return []
        lines = [self._rule_line()] if exact or self.share < 1 else []
        if self.gain is not None:
            lines.append(self._gain_line(self.gain))
        return [*lines, *self.details()]

    def details(self) -> list[str]:
        """Contrasts, classifier and members, one line each; what is unknown is left out."""
        if not self.rows:
            return []
        lines = []
        if self.contrasts:
            lines.append(f"Compared with the other rows: {'; '.join(contrast.text for contrast in self.contrasts)}.")
        lines += self._classifier_lines()
        if self.members:
            told = (member.text for member in _most_unusual(self.members)[:_MOST_ATTRIBUTES])
            lines.append(f"Sensitive attributes: {'; '.join(told)}.")
        return lines

    def _gain_line(self, gain: float) -> str:
        who = "its classifier" if self.served_by.startswith(OWN) else "its own classifier, which is not in use,"
        loss = Loss(self.loss)
        over = "over the pooled classifier on calibration rows"
        limits = ""
        if self.low is not None and self.high is not None:
            limits = f" (95% interval {points(self.low)} to {points(self.high)})"
        return f"Gain of {who} {over}: {points(gain)} {loss.unit}{loss.of_gain}{limits}."

    def _rule_line(self) -> str:
        if self.rule is None:
            return "No short rule was found for this group."
        if self.rule.exact and self.rule.text == EVERYBODY_ELSE:
            return "Everybody else: the rows of no exception above."
        if self.rule.exact:
            return (
                f"Exactly the rows for which {self.rule.text}{', and no exception above holds' if self.group else ''}."
            )
        precision, recall = self.rule.precision, self.rule.recall
        f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
        all_rows = 2 * self.share / (1 + self.share)
        good = f1 - all_rows >= _GOOD_RULE * (1 - all_rows)
        start = "Approximate rule" if good else "No short rule fits this group well. The best one found"
        return (
            f"{start}: {self.rule.text}. It matches {percent(recall)} of the group, and {percent(precision)} of the "
            "rows it matches are in the group."
        )

    def _classifier_lines(self) -> list[str]:
        """Say how the classifier that serves the group differs from the pooled one, unless it is the pooled one."""
        if self.served_by == _POOLED or self.difference is None:
            return []
        if self.effects:
            told = "; ".join(effect.text for effect in self.effects)
            label = clipped(self.effects[0].label)
            unit = f"in log-odds of class {label} per standard deviation"
            return [f"Its classifier differs from the pooled one, {unit}: {told}."]
        if self.difference < SMALLEST_EFFECT:
            return ["Its classifier barely differs from the pooled classifier."]
        return [f"Its log-odds differ from those of the pooled classifier by {self.difference:.2f} on average."]


@dataclass(frozen=True)
class Explanation:
    """All groups in words; prints as text in a terminal and in a notebook. Made by `explain`.

    Examples
    --------
    >>> group = GroupInWords(0, "Group 0", 40, 0.4, "the pooled classifier", Rule("age is 30 or less", 0.9, 0.8))
    >>> print(Explanation((group,), stability=0.9))
    Group 0: 40 rows (40.0% of all), served by the pooled classifier.
      Approximate rule: age is 30 or less. It matches 80.0% of the group, and 90.0% of the rows it matches are in the
    group.
    The groups change little with the seed: the adjusted Rand index between fits is 0.90 (1: the same groups, 0: no more
    alike than random groups).
    """

    groups: tuple[GroupInWords, ...]
    stability: float | None = None
    """Adjusted Rand index between the groups of several fits; None if it was not measured."""
    resampled: bool = False
    """Whether those fits differ in their rows; else they differ in their seeds."""
    worth: str | None = None
    """What the groups are worth, in one sentence; None for models that were told their groups."""
    n_fits: int = 0
    """Number of those fits; 0 if it is not known."""

    @property
    def alike(self) -> bool:
        """Whether the classifier of every group barely differs from the pooled one, as far as is known."""
        return all(group.difference is not None and group.difference < SMALLEST_EFFECT for group in self.groups)

    @property
    def exact(self) -> bool:
        """Whether the rules are the model's own."""
        return any(group.rule is not None and group.rule.exact for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        groups = []
        for group in self.groups:
            entry = asdict(group)
            for effect, values in zip(group.effects, entry["effects"], strict=True):
                values["text"] = effect.text
            groups.append({**entry, "lines": group.lines(), "details": group.details()})
        return plain(
            {
                "worth": self.worth,
                "exact": self.exact,
                "groups": groups,
                "alike": self.alike,
                "stability": self.stability,
                "n_fits": self.n_fits,
                "stability_text": self.stability_text(),
            }
        )

    def stability_text(self) -> str:
        """Say how much the groups change with the seed, or with the rows they are learned from."""
        cause = "rows they are learned from" if self.resampled or (self.stability is None and self.exact) else "seed"
        if self.stability is None:
            return f"How much the groups change with the {cause} was not measured."
        change = next(words for limit, words in _CHANGES if self.stability < limit)
        number = f"{self.n_fits} " if self.n_fits else ""
        fits = f"{number}fits on random samples of 80% of the rows" if self.resampled else f"{number}fits"
        return (
            f"The groups {change} with the {cause}: the adjusted Rand index between {fits} is {self.stability:.2f} "
            "(1: the same groups, 0: no more alike than random groups)."
        )

    def _paragraphs(self) -> list[str]:
        found = [] if self.worth is None else [self.worth]
        for group in self.groups:
            found += [f"{group.heading}.", *(f"  {line}" for line in group.lines())]
        return [*found, self.stability_text()] if self.stability is not None else found

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join(self._paragraphs())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(*self._paragraphs())


def _most_unusual(members: tuple[Member, ...]) -> list[Member]:
    """For each attribute the value whose share differs most from its share in all rows, largest difference first."""
    found: dict[str, Member] = {}
    # Of two values that differ equally, the one that the group has more of comes first.
    for member in sorted(members, key=lambda m: (-round(abs(m.share - m.overall), 9), m.overall - m.share)):
        found.setdefault(member.attribute, member)
    return list(found.values())


def server_words(final: GroupModel, group: int) -> str:
    """Say which classifier of a fitted model serves a group."""
    # Rows that belong to no group have the number after the last group; the pooled classifier serves them.
    serves = int(final.serves_[group]) if group < final.n_groups_ else final.n_groups_
    if serves == final.n_groups_:
        return _POOLED
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is not None:
        return str(exceptions.server(group))
    return OWN if serves == group else f"the classifier of group {serves}"


def group_name(final: GroupModel, group: int) -> str:
    """Number of a group of a fitted model, with its name if the partition gives it one."""
    if group >= final.n_groups_:
        return "Rows in no group"
    names = getattr(getattr(final, "partition_", None), "group_names_", None)
    return f"Group {group}" if names is None else f"Group {group} ({clipped(names[group])})"


def adds_nothing(model: GroupModel | Pipeline) -> bool:
    """Whether the pooled classifier serves every group of a fitted model."""
    final = final_classifier(model)
    return bool((final.serves_ == final.n_groups_).all())


def worth_of_groups(model: GroupModel | Pipeline) -> str | None:
    """Say what the groups that a model has learned are worth; None for a model that was told its groups."""
    final = final_classifier(model)
    if not hasattr(final, "method_"):  # Only groups that were learned are worth more or less.
        return None
    if getattr(final, "exceptions_", None) is not None:
        return str(final.exceptions_.sentence())
    if adds_nothing(final) and final.n_groups_ > 1:
        none = "but the guard let none keep its own classifier: the pooled one serves all rows"
        return f"{final.n_groups_} groups were found, {none}."
    if adds_nothing(final):
        return "Groups add nothing to the pooled classifier, which serves everybody."
    if final.n_groups_ == 1:  # Without a guard, the one classifier of a single group stays.
        return "There is one group: one classifier serves all rows."
    own = int((final.serves_ < final.n_groups_).sum())
    have = "has" if own == 1 else "have"
    return f"{final.n_groups_} groups were found; {own} of them {have} a classifier other than the pooled one."
