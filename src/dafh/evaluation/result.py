"""AuditResult: all answers of an audit, and the verdict that follows from them."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.checks.parameters import is_real, is_whole
from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.audit_tables import figure_lines, summary_tables, worst_first
from dafh.evaluation.deployment import Trial, supported, weigh
from dafh.evaluation.equality import EqualByValue
from dafh.evaluation.figures import AuditFigures
from dafh.evaluation.losses import ERROR, Loss, LossName
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.questions import answer, ask_groups, ask_named_groups, compose
from dafh.evaluation.rates import decision_rates, error_limits, total_losses
from dafh.evaluation.recommendation import Recommendation
from dafh.evaluation.served import ServedPredictions
from dafh.evaluation.verdict import Verdict
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.text import plain, render_html, render_text, shown


@dataclass(frozen=True, eq=False)
class AuditResult(AuditFigures, EqualByValue):
    """Answers of an audit; prints as a summary, in a terminal and in a notebook. Made by `audit` or by `of`.

    Examples
    --------
    >>> from dafh import AuditResult, DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data, fresh = (make_paper_synthetic(2000, random_state=seed) for seed in (0, 1))
    >>> model = DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> result = AuditResult.of(model, fresh.X, fresh.y, sensitive_features=fresh.sensitive_features)
    >>> result.verdict.status
    'harm'
    >>> print(f"{result.accuracy:.3f} instead of {result.pooled_accuracy:.3f}")
    0.651 instead of 0.545
    >>> result.by_group()["verdict"].head(2).tolist()
    ['satisfied', 'satisfied']
    >>> print(result.verdict.sentence.split(":")[0])
    for s1 = -1 & s2 = 1 the error rate is higher than with the pooled classifier
    >>> print(result.verdict.details[1])
    Questions about named groups: 1 violated, 6 satisfied, 1 undecided.
    """

    matrix: PreferenceMatrix
    """Error rates of all classifiers on all groups, and every metric that follows from them."""
    questions: pd.DataFrame
    """One row per question about the groups that the classifiers serve; columns as in `to_frame`."""
    named: pd.DataFrame | None
    """The same for named groups, against the pooled classifier; None without sensitive features."""
    composition: pd.DataFrame | None
    """For each value of each attribute, its rows and its share in every group; None without sensitive features."""
    level: float
    """Accepted probability of a wrong verdict."""
    margin: float
    """Tolerated harm, as a share of rows."""
    classifiers: tuple[str, ...]
    """Name of the classifier in each column of the matrix, the pooled one last."""
    totals: pd.DataFrame
    """One row per loss, over all rows: own_loss, pooled_loss, gain with its interval low to high, and p_no_gain."""
    rates: pd.DataFrame | None
    """How decisions change: for all rows, each group and each named group, the share flagged (predicted positive), the
    false positive rate and the false negative rate, each also with the pooled classifier; None without two classes."""
    limits: NDArray[np.float64]
    """Lower and upper limit of every error rate of the matrix, (2, G, M + 1)."""
    losses: tuple[LossName, ...]
    """Losses that were asked about, the main one first."""
    attributes: tuple[str, ...]
    """Names of the sensitive attributes."""
    evidence: pd.DataFrame
    """One row per group, for the recommendation: `changed`, whether another classifier than the pooled one serves it;
    `p_loss`, small if it does not lose more than one percentage point; `p_no_gain`, small if it gains."""
    trial: Trial | None
    """What a part of the groups alone would do, where the rows support their classifiers but not those of others."""

    @classmethod
    def of(
        cls,
        model: GroupModel,
        X: Table,
        y: ArrayLike,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        persons: ArrayLike | None = None,
        losses: Sequence[Loss] | None = None,
        level: float = 0.05,
        margin: float = 0.0,
        depth: int = 2,
    ) -> "AuditResult":
        """Audit a fitted model of this package, or a pipeline that ends in one; parameters as in `audit`.

        By default the losses are those that the model's guard was asked to protect.
        """
        served = ServedPredictions.of(model, X, sensitive_features)
        final: Any = final_classifier(model)
        rows = ComparedRows.check(
            y,
            served.predictions,
            served.groups,
            served.pooled,
            served.own,
            sample_weight,
            classes=getattr(final, "classes_", None),
            persons=persons,
        )
        groups, rivals = range(len(served.own)), [*served.classifiers, "pooled"]
        asked = tuple(losses if losses is not None else getattr(final, "losses_", (ERROR,)))
        return cls.from_rows(
            rows, groups, rivals, sensitive_features, losses=asked, level=level, margin=margin, depth=depth
        )

    @classmethod
    def from_rows(
        cls,
        rows: ComparedRows,
        groups: Sequence[object],
        rivals: Sequence[object],
        sensitive_features: Table | None = None,
        *,
        losses: Sequence[Loss] = (ERROR,),
        level: float = 0.05,
        margin: float = 0.0,
        depth: int = 2,
    ) -> "AuditResult":
        """Ask all questions about rows that have been checked; `groups` and `rivals` are the names to show."""
        _check_options(level, margin, depth)
        known = None if sensitive_features is None else NamedGroups.of(sensitive_features, len(rows.group))
        families = 1 if known is None else 2
        asked = [ask_groups(rows, loss, groups, rivals) for loss in losses]
        named = composition = trial = None
        if known is not None:
            named = answer([ask_named_groups(rows, loss, known, depth) for loss in losses], level, margin, families)
            composition = compose(rows, known, groups)
        questions, evidence = answer(asked, level, margin, families), weigh(rows, asked, groups, margin)
        chosen = supported(questions, evidence, level)
        if chosen.any() and not chosen[evidence["changed"]].all():
            asked_for: Any = {"losses": losses, "level": level, "margin": margin, "depth": depth}
            trial = Trial.of(rows, chosen, groups, known, **asked_for)
        return cls(
            matrix=PreferenceMatrix.from_rows(rows),
            questions=questions,
            named=named,
            composition=composition,
            level=level,
            margin=margin,
            classifiers=tuple(str(rival) for rival in rivals),
            totals=total_losses(rows, losses, level),
            rates=decision_rates(rows, groups, known),
            limits=error_limits(rows, level),
            losses=tuple(loss.name for loss in losses),
            attributes=() if known is None else tuple(attribute.name for attribute in known.attributes),
            evidence=evidence,
            trial=trial,
        )

    @functools.cached_property
    def recommendation(self) -> Recommendation:
        """What to do, and the figures that carry it: deploy, for whom, or keep the pooled classifier."""
        return Recommendation.of(self)

    @functools.cached_property
    def verdict(self) -> Verdict:
        """What was found: status, headline, sentence and details. Nothing else pronounces a verdict."""
        unchanged = bool((self.matrix.own == len(self.classifiers) - 1).all())
        gain = float(self.totals["gain"].iloc[0])
        return Verdict.of(
            self.questions, self.named, unchanged=unchanged, gain=gain, level=self.level, margin=self.margin
        )

    @property
    def violations(self) -> dict[str, int]:
        """Questions about groups with a negative gap: observed, significant, and significant after correction."""
        asked = self.questions
        return {
            "point": self.matrix.violations,
            # A level is below one half, so that a p-value below it implies a negative gap.
            "significant": int((asked["p"] <= self.level).sum()),
            "corrected": int((asked["verdict"] == "violated").sum()),
        }

    def worst_named(self) -> pd.DataFrame:
        """Questions about named groups in the order in which readers want them; none without sensitive features.

        Those that are violated come first, then single attributes before intersections, each by evidence of harm.
        Groups of fewer than 50 rows come last: they are too small to tell.
        """
        if self.named is None or self.composition is None:
            return self.questions.head(0)
        return worst_first(self.named, set(self.composition["named_group"]))

    def cells(self) -> pd.DataFrame:
        """One row per group and classifier: error rate with its interval, and gap to the group's own error.

        Each interval is for one error rate. To compare two of them use the tests in `questions`, which know that both
        come from the same rows and are therefore much sharper than two overlapping intervals.
        """
        matrix, n = self.matrix, len(self.classifiers)
        groups = list(dict.fromkeys(self.questions["group"].astype(str)))
        table = pd.DataFrame(matrix.errors, index=groups, columns=list(self.classifiers))
        cells = table.rename_axis("group").reset_index().melt("group", var_name="classifier", value_name="error")
        low, high = (limit.T.ravel() for limit in self.limits)
        own = (np.arange(n)[:, None] == matrix.own).ravel()
        gap = cells["error"] - np.tile(matrix.own_errors, n)
        return cells.assign(low=low, high=high, gap=gap, rows=np.tile(matrix.sizes, n), own=own)

    def to_frame(self) -> pd.DataFrame:
        """One row per question, those about named groups at the end.

        Columns: group; loss; kind (rationality or envy); rival; n, the rows of the group that count for the loss;
        own_loss and rival_loss; gap, rival loss minus own loss, negative for harm, with the limits low and high;
        own_worse (b) and own_better (c), the rows (or persons) that the rival or the own classifier serves better; p
        and p_corrected, small if the own classifier is worse by more than the margin; verdict (satisfied, violated or
        undecided); and rows_needed, the rows of this group that would decide an undecided question.
        """
        return self.questions.copy() if self.named is None else pd.concat([self.questions, self.named])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; unknown and infinite numbers become None."""
        frames = {
            "totals": self.totals,
            "rates": self.rates,
            "questions": self.questions,
            "named_groups": self.named,
            "composition": self.composition,
        }
        return {
            "recommendation": self.recommendation.to_dict(),
            "verdict": self.verdict.to_dict(),
            "level": self.level,
            "margin": self.margin,
            "losses": list(self.losses),
            **self.figures(),
            "violations": self.violations,
            "errors": plain(self.matrix.errors.tolist()),
            "sizes": self.matrix.sizes.tolist(),
            **{
                name: None if frame is None else [plain(row) for row in frame.to_dict("records")]
                for name, frame in frames.items()
            },
        }

    def summary(self) -> str:
        """Text for a terminal: recommendation, verdict, figures, all questions about groups, and named groups.

        Where nothing has changed, all gaps are zero, and the tables are left out.
        """
        parts = [str(self.recommendation), str(self.verdict), "\n".join(figure_lines(self))]
        for title, table, left in summary_tables(self):
            parts += [title] if title else []
            parts.append(render_text(table, left=left))
        return "\n\n".join(parts)

    __str__ = summary
    __repr__ = summary

    def _repr_html_(self) -> str:
        said = [*str(self.recommendation).splitlines(), *str(self.verdict).splitlines()]
        parts: list[str | pd.DataFrame] = [*said, *figure_lines(self)]
        for title, table, _ in summary_tables(self):
            parts += [title, table] if title else [table]
        return render_html(*parts)


def _check_options(level: float, margin: float, depth: int) -> None:
    if not is_real(level) or not 0 < level < 0.5:
        raise InputError(
            f"level must lie between 0 and 0.5, got {shown(level)}: 0.05 accepts one wrong audit in twenty."
        )
    if not is_real(margin) or not 0 <= margin < 1:
        raise InputError(f"margin must be at least 0 and below 1, got {shown(margin)}: 0.01 is one percentage point.")
    if not is_whole(depth) or depth < 1:
        raise InputError(f"depth must be at least 1, got {shown(depth)}: 1 tests every attribute by itself.")
