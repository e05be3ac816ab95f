"""The verdict of an audit. Terminal, JSON, report and exit code all take it from here, so they cannot disagree."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from dafh.text import listed

Status = Literal["harm", "undecided", "no_harm", "unchanged", "unaudited"]

_HEADLINES: dict[Status, str] = {
    "harm": "Harm",
    "undecided": "Undecided",
    "no_harm": "No harm",
    "unchanged": "Unchanged",
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
    - ``"undecided"``: no harm is shown, but at least one question does not have enough data;
    - ``"no_harm"``: every question is satisfied.

    Examples
    --------
    >>> questions = pd.DataFrame({"group": [0, 1], "verdict": ["satisfied", "violated"]})
    >>> verdict = Verdict.of(questions)
    >>> verdict.status
    'harm'
    >>> print(verdict)
    HARM: group 1 is served worse than it could be.
    Questions about groups: 1 violated, 1 satisfied, 0 undecided.
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
        margin: float = 0.0,
    ) -> "Verdict":
        """Decide from the answers to all questions.

        Parameters
        ----------
        questions : data frame with the columns group and verdict
            About the groups that classifiers serve.
        named : data frame with the same columns, optional
            About named groups.
        unchanged : bool, default=False
            Whether the pooled classifier serves every group.
        margin : float, default=0
            Harm that was tolerated, as a share of rows.
        """
        details = [f"Questions about groups: {_tally(questions)}."]
        if named is not None:
            details.append(f"Questions about named groups: {_tally(named)}.")
        answers = pd.concat([questions["verdict"]] + ([] if named is None else [named["verdict"]]))
        n_undecided = int((answers == "undecided").sum())
        # Harm comes before "unchanged": a group that the pooled classifier serves cannot be worse off than with it, but
        # it can be shown to do better with a classifier that was audited and serves nobody.
        if (answers == "violated").any():
            return cls("harm", _HEADLINES["harm"], _harm_sentence(questions, named, margin), tuple(details))
        if unchanged:
            sentence = "the pooled classifier serves every group, so no group is worse or better off than with it."
            return cls("unchanged", _HEADLINES["unchanged"], sentence)
        # Undecided named groups count too. Otherwise "no harm" would be claimed for groups nobody could test.
        if n_undecided:
            tolerance = f" by more than {in_points(margin)}" if margin else ""
            sentence = (
                f"no group is shown to be served worse than it could be{tolerance}, but {n_undecided:,} of "
                f"{len(answers):,} questions {'is' if n_undecided == 1 else 'are'} undecided (not enough data)."
            )
            return cls("undecided", _HEADLINES["undecided"], sentence, tuple(details))
        within = f", within a margin of {in_points(margin)}" if margin else ""
        sentence = f"every group is shown to be served no worse than it could be{within}."
        return cls("no_harm", _HEADLINES["no_harm"], sentence, tuple(details))

    @classmethod
    def without_rows(cls, *details: str) -> "Verdict":
        """Verdict of a report that had no rows to test on.

        Examples
        --------
        >>> print(Verdict.without_rows())
        NOT AUDITED: there were no rows outside of training to test the model on.
        """
        sentence = "there were no rows outside of training to test the model on."
        return cls("unaudited", _HEADLINES["unaudited"], sentence, details)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"details": list(self.details)}

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join([f"{self.headline.upper()}: {self.sentence}", *self.details])


def _harm_sentence(questions: pd.DataFrame, named: pd.DataFrame | None, margin: float) -> str:
    """Name the groups that are served worse, those of the classifiers first."""
    clauses = []
    harmed = _harmed(questions)
    if harmed:
        one = len(harmed) == 1
        who = listed(_shortened(harmed))
        clauses.append(f"group{'' if one else 's'} {who} {'is' if one else 'are'} served worse than "
                       f"{'it' if one else 'they'} could be")  # fmt: skip
    harmed = [] if named is None else _harmed(named)
    if harmed:
        verb = "is" if len(harmed) == 1 else "are"
        clauses.append(f"{listed(_shortened(harmed))} {verb} served worse than by the pooled classifier")
    # A violated question shows harm, not that the harm exceeds the margin: that much is only not excluded.
    beyond = f", and this harm is not shown to be within the margin of {in_points(margin)}" if margin else ""
    return f"{'; '.join(clauses)}{beyond}."


def _harmed(questions: pd.DataFrame) -> list[str]:
    """Names of the groups with a violated question, each once."""
    return list(dict.fromkeys(str(name) for name in questions["group"][questions["verdict"] == "violated"]))


def _shortened(names: list[str]) -> list[str]:
    rest = len(names) - _MOST_NAMES
    return names[:_MOST_NAMES] + ([f"{rest} more"] if rest > 0 else [])


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
