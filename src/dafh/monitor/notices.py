"""What the monitor has to say: alarms, proofs and drift, what an update has changed, and its table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from dafh.evaluation.losses import TITLES, Loss, LossName
from dafh.text import clipped, percent, plain, points

Kind = Literal["harm", "benefit", "level", "drift", "shock", "model"]
ALARMS = ("harm", "level")
_SENTENCES = {
    "model": "The model was changed, and not by this monitor: evidence starts anew.",
    "shock": "The difference between the classifiers varies more from batch to batch than between rows of a batch: the "
    "promises hold for independent rows only. Begin anew with by_batch=True, which counts batches.",
}


HEADINGS = {
    "harm": "Alarm",
    "level": "Alarm",
    "benefit": "Proof",
    "drift": "Drift",
    "shock": "Warning",
    "model": "New start",
}


@dataclass(frozen=True)
class Notice:
    """One thing that was shown, and when.

    Examples
    --------
    >>> print(Notice("harm", 1, "sex = f", "error", row=812, batch=3, onset=510, gain=-0.024))
    Alarm: sex = f in group 1 is worse off than with the pooled classifier, in error rate, since about row 510. Shown at
    row 812, in batch 3. Gain of all rows so far: -2.40 percentage points.
    """

    kind: Kind
    """"harm" is an alarm, "benefit" a proof; "level" is an alarm about the model in use by itself,
    "drift" one of the input; "shock" warns of batches whose rows are not independent, "model" of another model."""
    group: int | None
    part: str
    """Declared subgroup; empty for all rows of the group. Of drift and levels, what has changed."""
    loss: LossName | None
    row: int
    """Labelled rows so far, and for drift all rows."""
    batch: int
    onset: int | None = None
    """Row at which harm has begun, by estimate; 0 for the start."""
    gain: float | None = None
    """Of all rows so far: still positive where harm came after a good start."""
    in_service: bool = True
    """Of a proof: whether the classifier serves already."""

    def sentence(self) -> str:
        """Say it."""
        when = f"at row {self.row:,}, in batch {self.batch}"
        if self.kind in _SENTENCES:
            return f"{_SENTENCES[self.kind]} Noticed {when}."
        if self.kind in ("drift", "level"):
            return f"{self.part} Shown {when}."
        if self.kind == "benefit":
            would = "is" if self.in_service else "would be"
            return (
                f"Group {self.group} {would} better off with its own classifier than with the pooled one. Shown {when}."
            )
        assert self.loss is not None
        title, unit = Loss(self.loss).title, Loss(self.loss).unit
        since = f"since about row {self.onset:,}" if self.onset else "since the start"
        gain = "" if self.gain is None else f" Gain of all rows so far: {points(self.gain)} {unit}."
        who = f"{self.part} in group {self.group}" if self.part else f"Group {self.group}"
        return f"{who} is worse off than with the pooled classifier, in {title}, {since}. Shown {when}.{gain}"

    def __str__(self) -> str:
        """Say it, after its kind."""
        return f"{HEADINGS[self.kind]}: {self.sentence()}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**plain(asdict(self)), "sentence": self.sentence()}


@dataclass(frozen=True)
class ServiceChange:
    """A group that another classifier serves from now on.

    Examples
    --------
    >>> print(ServiceChange(group=1, before="its own", after="pooled", row=812, batch=3, reason="harm was shown"))
    Group 1: served by the pooled classifier instead of its own, from row 812 on (batch 3), because harm was shown.
    """

    group: int
    before: str
    after: str
    row: int
    """Labelled rows until then."""
    batch: int
    reason: str

    def __str__(self) -> str:
        """Say it."""
        server, previous = ("the pooled classifier" if s == "pooled" else s for s in (self.after, self.before))
        when = f"from row {self.row:,} on (batch {self.batch})"
        return f"Group {self.group}: served by {server} instead of {previous}, {when}, because {self.reason}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**plain(asdict(self)), "sentence": str(self)}


@dataclass(frozen=True)
class Update:
    """What a batch has changed; prints as sentences.

    Examples
    --------
    >>> counts = {"n_rows": 50, "n_labelled": 40, "n_late": 0, "n_repeated": 0, "n_waiting": 10}
    >>> print(Update(2, "March", **counts, n_held=0, n_left_out=0, notices=[]))
    Batch 2 (March), 50 rows: 40 labelled. 10 rows wait for labels.
    Nothing new is shown.
    """

    batch: int
    name: str
    """Empty where the batch has none."""
    n_rows: int
    n_labelled: int
    """Rows that were counted with their labels, those of earlier batches included."""
    n_late: int
    """Labels of earlier rows."""
    n_repeated: int
    """Rows that were given before, and left out."""
    n_waiting: int
    """Rows that still wait for their labels, of all batches."""
    n_held: int
    """Rows with labels whose batch waits for more of them."""
    n_left_out: int
    """Labelled rows that do not count as evidence: of no group, or further rows of a person."""
    notices: Sequence[Notice]

    @property
    def alarms(self) -> list[Notice]:
        """Alarms that this batch has raised."""
        return [notice for notice in self.notices if notice.kind in ALARMS]

    def headline(self) -> str:
        """Say how many rows there were, and what became of them."""
        counts = {
            "labelled": self.n_labelled,
            "late labels": self.n_late,
            "given before and left out": self.n_repeated,
            "not counted (no group, or another row of a person)": self.n_left_out,
        }
        counted = ", ".join(f"{n:,} {words}" for words, n in counts.items() if n)
        title = f"Batch {self.batch}" + (f" ({clipped(self.name)})" if self.name else "")
        sentences = [f"{title}, {self.n_rows:,} rows{f': {counted}' if counted else ''}."]
        if self.n_waiting:
            sentences.append(f"{self.n_waiting:,} row{'s wait' if self.n_waiting != 1 else ' waits'} for labels.")
        if self.n_held:
            sentences.append(f"{self.n_held:,} with labels count when their batch has nearly all of its labels.")
        return " ".join(sentences)

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join([self.headline(), *(map(str, self.notices) if self.notices else ["Nothing new is shown."])])

    def counts(self) -> dict[str, Any]:
        """Plain values, without the notices."""
        return {name: value for name, value in asdict(self).items() if name != "notices"}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.counts(), "notices": [notice.to_dict() for notice in self.notices]}


# ---- the table, for readers ----


def display(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """One line per question, as text; columns that say the same in every line are left out."""
    is_cost = table["loss"] == "cost"
    limits = [limits_in_words(*line) for line in zip(table["gain"], table["low"], table["high"], strict=True)]
    lines = pd.DataFrame(
        {
            "group": table["group"],
            "subgroup": table["part"].replace("", "all rows"),
            "loss": table["loss"].map(TITLES),
            "rows": [f"{n:,}" for n in table["rows"]],
            "own": _levels(table["own_loss"], is_cost),
            "pooled": _levels(table["pooled_loss"], is_cost),
            "gain, per 100 rows" if is_cost.all() else "gain, points": [points(value) for value in table["gain"]],
            f"{100 * (1 - level):g}% limits": limits,
            "evidence of harm": [evidence_in_words(value) for value in table["harm_evidence"]],
            "of benefit": [evidence_in_words(value) for value in table["benefit_evidence"]],
            "in service": ["yes" if value else "no" for value in table["in_service"]],
            "alarm": [f"row {row:,}" if row else "–" for row in table["alarm_row"]],
        }
    )
    # Most monitors watch whole groups by their error rate.
    usual = {"subgroup": "all rows", "loss": TITLES["error"]}
    return lines[[name for name in lines if name not in usual or not (lines[name] == usual[name]).all()]]


def has_changed(gain: float, low: float, high: float) -> bool:
    """Whether limits and gain contradict each other: then the gain has not been the same at all times."""
    return bool(low > high or gain < low or gain > high)


def limits_in_words(gain: float, low: float, high: float) -> str:
    """Write limits, unless they hold for no gain that has stayed the same.

    Examples
    --------
    >>> limits_in_words(0.02, -0.01, 0.05), limits_in_words(-0.01, 0.03, 0.05)
    ('-1.00 to +5.00', 'it has changed')
    """
    return "it has changed" if has_changed(gain, low, high) else f"{points(low)} to {points(high)}"


def _levels(values: "pd.Series[float]", is_cost: "pd.Series[bool]") -> list[str]:
    return [points(value).lstrip("+") if cost else percent(value) for value, cost in zip(values, is_cost, strict=True)]


def evidence_in_words(value: float | None) -> str:
    """Write a capital: two digits are enough, and beyond a million none.

    Examples
    --------
    >>> [evidence_in_words(value) for value in (0.0123, 1.0, 47.81, 5e8)]
    ['0.012', '1.0', '48', 'over 1,000,000']
    """
    if value is None or value > 1e6:  # None is what a file has for infinity.
        return "over 1,000,000"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"
