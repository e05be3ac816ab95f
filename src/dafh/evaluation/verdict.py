"""The verdict of an audit. Terminal, JSON, report and exit code all take it from here, so they cannot disagree."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from dafh.evaluation.losses import TITLES, Loss
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.text import listed, percent, points

Status = Literal["harm", "unchanged", "nothing_gained", "undecided", "no_harm", "unaudited"]

_HEADLINES: dict[Status, str] = {
    "harm": "Harm",
    "unchanged": "Unchanged",
    "nothing_gained": "Nothing gained",
    "undecided": "Undecided",
    "no_harm": "No harm",
    "unaudited": "Not audited",
}
_ANSWERS = ("violated", "satisfied", "undecided")
# A sentence that lists more names is not read to its end; the tables have them all.
_MOST_NAMES = 3


@dataclass(frozen=True)
class Verdict:
    """What an audit found: one word for programs, one sentence for readers, and the counts behind it.

    A status is the first of these that applies:

    - ``"unaudited"``: there were no rows to test on;
    - ``"harm"``: at least one question is violated. Named groups count as much as the groups that classifiers serve;
    - ``"unchanged"``: the pooled classifier serves every group, so no group can be worse off than with it;
    - ``"nothing_gained"``: no harm is shown and not all of it is ruled out, and on these rows the own classifiers are
      not better in total than the pooled one. Keep that one;
    - ``"undecided"``: no harm is shown, but at least one question does not have enough data;
    - ``"no_harm"``: every question is satisfied.

    Examples
    --------
    >>> from dafh import audit
    >>> import numpy as np
    >>> y, coin = np.ones(200), np.tile([0, 1], 100)
    >>> verdict = audit(y, np.column_stack([coin, y]), np.repeat([0, 1], 100), pooled=y).verdict
    >>> verdict.status
    'harm'
    >>> print(verdict.details[0])
    Questions about groups: 2 violated, 1 satisfied, 1 undecided.
    """

    status: Status
    headline: str
    """The status in words."""
    sentence: str
    """What was found; reads on from the headline and a colon."""
    details: tuple[str, ...] = ()
    """Further sentences: how many questions got which answer."""

    @classmethod
    def of(
        cls,
        questions: pd.DataFrame,
        named: pd.DataFrame | None = None,
        *,
        unchanged: bool = False,
        gain: float = 1.0,
        level: float = 0.05,
        margin: float = 0.0,
    ) -> "Verdict":
        """Draw the conclusion from all answers.

        Parameters
        ----------
        questions : data frame as in `AuditResult.to_frame`
            About the groups that classifiers serve.
        named : data frame with the same columns, optional
            About named groups.
        unchanged : bool, default=False
            Whether the pooled classifier serves every group.
        gain : float
            Gain over the pooled classifier on all rows, in the first loss.
        level : float, default=0.05
            Accepted probability of a wrong answer.
        margin : float, default=0
            Harm that was tolerated, as a share of rows.
        """
        details = [f"Questions about groups: {_tally(questions)}."]
        if named is not None:
            details.append(f"Questions about named groups: {_tally(named)}.")
        answers = pd.concat([questions] + ([] if named is None else [named]), ignore_index=True)

        def verdict(status: Status, sentence: str, *more: str) -> "Verdict":
            return cls(status, _HEADLINES[status], sentence, more)

        # Harm comes before "unchanged": a group that the pooled classifier serves cannot be worse off than with it, but
        # it can be shown to do better with a classifier that was audited and serves nobody.
        if (answers["verdict"] == "violated").any():
            return verdict("harm", _harm_sentence(answers, level, margin), *details)
        if unchanged:
            sentence = "the pooled classifier serves every group, so no group is worse or better off than with it."
            return verdict("unchanged", sentence)
        # Undecided named groups count too. Otherwise "no harm" would be claimed for groups nobody could test.
        undecided = answers[answers["verdict"] == "undecided"]
        if not len(undecided):
            return verdict("no_harm", _no_harm_sentence(answers, level, margin), *details)
        doubts = _doubts(answers, undecided, level, margin)
        if gain <= 0 and not margin:
            loss = TITLES[answers["loss"].iloc[0]]
            total = "no change" if gain == 0 else f"{points(gain)} {Loss(answers['loss'].iloc[0]).unit}"
            sentence = (
                f"keep the pooled classifier. In total, the own classifiers do not lower the {loss} of these rows "
                f"({total}), and {doubts}."
            )
            return verdict("nothing_gained", sentence, *details)
        return verdict("undecided", f"{doubts}.", *details)

    @classmethod
    def without_rows(cls, *details: str) -> "Verdict":
        """Verdict of a report that had no rows to test on.

        Examples
        --------
        >>> print(Verdict.without_rows())
        NOT AUDITED: no rows were given to test the model on.
        """
        sentence = "no rows were given to test the model on."
        return cls("unaudited", _HEADLINES["unaudited"], sentence, details)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"details": list(self.details)}

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join([f"{self.headline.upper()}: {self.sentence}", *self.details])


def _harm_sentence(answers: pd.DataFrame, level: float, margin: float) -> str:
    """Say of the clearest case who is harmed, by which loss, how much and how sure; then name the others."""
    violated = answers[answers["verdict"] == "violated"]
    # Against the pooled classifier first: this is what every reader asks.
    order = violated.assign(envy=violated["kind"] == "envy").sort_values(["envy", "p_corrected", "gap"])
    worst = order.iloc[0]
    beyond = f" by more than {in_points(margin)}" if margin else ""
    p = "p < 0.001" if worst["p_corrected"] < 0.001 else f"p = {worst['p_corrected']:.3f}"
    interval = f"{100 * (1 - level):g}% interval {100 * -worst['high']:.2f} to {100 * -worst['low']:.2f}"
    sentence = (
        f"for {who(worst)} the {TITLES[worst['loss']]} is higher than with {whose(worst)}{beyond}: by "
        f"{100 * -worst['gap']:.2f} {Loss(worst['loss']).unit} "
        f"({interval}; {p} after correction for {_number(answers)})."
    )
    others = list(dict.fromkeys(who(row) for _, row in order.iloc[1:].iterrows()))
    others = [name for name in others if name != who(worst)]
    return f"{sentence} Also harmed: {listed(shortened(others))}." if others else sentence


def _no_harm_sentence(answers: pd.DataFrame, level: float, margin: float) -> str:
    losses = " or ".join(TITLES[name] for name in dict.fromkeys(answers["loss"]))
    rivals = (
        "the pooled classifier or another group's" if (answers["kind"] == "envy").any() else "the pooled classifier"
    )
    within = f" by more than {in_points(margin)}" if margin else ""
    return (
        f"no group has a higher {losses} than with {rivals}{within}. This is shown with {100 * (1 - level):g}% "
        f"confidence for the {_number(answers)}{'' if len(answers) == 1 else ' together'}."
    )


def _doubts(answers: pd.DataFrame, undecided: pd.DataFrame, level: float, margin: float) -> str:
    """Say how many questions are undecided, and how much harm is not ruled out."""
    beyond = f" by more than {in_points(margin)}" if margin else ""
    start = (
        f"no group is shown to be harmed{beyond}, but for {len(undecided):,} of {len(answers):,} questions there is "
        "not enough data to rule it out"
    )
    # A group of three rows has the widest interval of all, and says the least.
    large = undecided[undecided["n"] >= SMALLEST_SHOWN]
    interval = f"{100 * (1 - level):g}% interval"
    if len(large) and (large["low"] >= -margin).all():
        return f"{start}. The {interval} of no group with at least {SMALLEST_SHOWN} rows reaches as far as harm{beyond}"
    of_size = f", of groups with at least {SMALLEST_SHOWN} rows" if 0 < len(large) < len(undecided) else ""
    worst = (large if len(large) else undecided).sort_values("low", kind="stable").iloc[0]
    return (
        f"{start}. In the worst case that is not ruled out{of_size}, the {TITLES[worst['loss']]} of {who(worst)} is "
        f"{100 * -worst['low']:.2f} {Loss(worst['loss']).unit} higher than with {whose(worst)} "
        f"(limit of the {interval})"
    )


def who(question: pd.Series) -> str:
    """Name the group of a question; learned groups have numbers."""
    name = str(question["group"])
    return name if " = " in name else f"group {name}"


def whose(question: pd.Series) -> str:
    """Name the rival of a question."""
    return "the pooled classifier" if question["kind"] == "rationality" else f"classifier {question['rival']}"


def level_in_words(loss: str, value: float) -> str:
    """Write a loss: a rate in percent, a cost as that of 100 rows."""
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)


def _number(answers: pd.DataFrame) -> str:
    return "1 question" if len(answers) == 1 else f"{len(answers):,} questions"


def shortened(names: Sequence[str]) -> list[str]:
    """The first names of a list, and the number of the others."""
    rest = len(names) - _MOST_NAMES
    return [*names[:_MOST_NAMES], *([f"{rest} more"] if rest > 0 else [])]


def _tally(questions: pd.DataFrame) -> str:
    counts = questions["verdict"].value_counts()
    return ", ".join(f"{int(counts.get(answer, 0)):,} {answer}" for answer in _ANSWERS)


def in_points(margin: float) -> str:
    """Write a margin with its unit.

    Examples
    --------
    >>> in_points(0.01), in_points(0.025)
    ('1 percentage point', '2.5 percentage points')
    """
    return f"{100 * margin:g} percentage point{'' if 100 * margin == 1 else 's'}"
