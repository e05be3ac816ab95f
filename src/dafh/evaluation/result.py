"""AuditResult: all answers of an audit, and the verdict that follows from them."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.checks.parameters import is_real, is_whole
from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.compare import failures_in_audit
from dafh.evaluation.comparison import Failures
from dafh.evaluation.losses import ERROR, TITLES, Loss, LossName
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.paired import ComparedRows, ServedPredictions
from dafh.evaluation.questions import (
    answer,
    ask_groups,
    ask_named_groups,
    compose,
    decision_rates,
    error_limits,
    total_losses,
)
from dafh.evaluation.recommendation import Recommendation, Trial, supported, weigh
from dafh.evaluation.verdict import Verdict, in_points, level_in_words
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.text import percent, plain, points, render_html, render_text, shown

_MOST_NAMED_GROUPS_IN_SUMMARY = 10
# More times the rows of the group than this are not named: nobody will collect them, and the estimate rests on a gap
# that is mostly noise.
_MOST_TIMES = 10


@dataclass(frozen=True, eq=False)
class AuditResult:
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
    search: Callable[[], Failures] | None = None
    """Finds the groups that the model fails; None where features are not known."""

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
            rows, groups, rivals, sensitive_features, losses=asked, level=level, margin=margin, depth=depth, X=X
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
        X: Table | None = None,
        with_features: NDArray[np.intp] | None = None,
    ) -> "AuditResult":
        """Ask all questions about rows that have been checked; `groups` and `rivals` are the names to show.

        X are the features of all rows, or of those at the positions `with_features`.
        """
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
        search = None
        if X is not None:
            some = rows if with_features is None else rows.take(with_features)
            names = known if known is None or with_features is None else known.take(with_features)
            search = functools.partial(failures_in_audit, some, X, losses, names, level)
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
            search=search,
        )

    @functools.cached_property
    def recommendation(self) -> Recommendation:
        """What to do, and the figures that carry it: deploy, for whom, or keep the pooled classifier."""
        return Recommendation.of(self)

    @functools.cached_property
    def failures(self) -> Failures | None:
        """Groups that the model fails, found on one half of the rows and tested on the other; None without features."""
        return None if self.search is None else self.search()

    @functools.cached_property
    def verdict(self) -> Verdict:
        """What was found: status, headline, sentence and details. Nothing else pronounces a verdict."""
        unchanged = bool((self.matrix.own == len(self.classifiers) - 1).all())
        gain = float(self.totals["gain"].iloc[0])
        return Verdict.of(
            self.questions, self.named, unchanged=unchanged, gain=gain, level=self.level, margin=self.margin
        )

    @property
    def accuracy(self) -> float:
        """Share of the rows that the classifiers of the groups get right."""
        return self.matrix.accuracy

    @property
    def pooled_accuracy(self) -> float:
        """Share of the rows that the pooled classifier gets right."""
        return self.matrix.pooled_accuracy

    @property
    def gain(self) -> float:
        """Loss of the pooled classifier minus loss now, in the first loss: 0.01 is one percentage point of error."""
        return float(self.totals["gain"].iloc[0])

    def by_group(self) -> pd.DataFrame:
        """One row per group, then per named group: its loss now and with the pooled classifier, and the answer.

        Columns: rows, those that count for the first loss; own_loss and pooled_loss; gain with its interval low to
        high; and verdict, the answer to whether the group is served at least as well as by the pooled classifier.
        """
        asked = self.questions if self.named is None else pd.concat([self.questions, self.named])
        found = asked[(asked["kind"] == "rationality") & (asked["loss"] == self.losses[0])]
        named = found.rename(columns={"n": "rows", "rival_loss": "pooled_loss", "gap": "gain"})
        kept = ["rows", "own_loss", "pooled_loss", "gain", "low", "high", "verdict"]
        return named.set_index(found["group"].astype(str).rename("group"))[kept]

    def figures(self) -> dict[str, Any]:
        """Return sizes, accuracy, Pr without harm, and the disagreement that it must be read together with."""
        matrix = self.matrix
        return {
            "rows": int(matrix.sizes.sum()),
            "groups": len(matrix.sizes),
            "accuracy": matrix.accuracy,
            "pooled_accuracy": matrix.pooled_accuracy,
            "pr_without_harm": matrix.pr_without_harm,
            "disagreement": matrix.disagreement,
        }

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
        own_worse (b) and own_better (c), the rows (or persons) that the rival or the own classifier serves better;
        robust_radius (see `dafh.stats.robust_radius`; for one question, and missing where rows do not count alike); p
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
        failures = None if self.failures is None else self.failures.to_dict()
        return {
            "recommendation": self.recommendation.to_dict(),
            "verdict": self.verdict.to_dict(),
            "level": self.level,
            "margin": self.margin,
            "losses": list(self.losses),
            "failures": failures,
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
        if self.failures is not None:
            parts.append(str(self.failures))
        return "\n\n".join(parts)

    __str__ = summary
    __repr__ = summary

    def _repr_html_(self) -> str:
        said = [*str(self.recommendation).splitlines(), *str(self.verdict).splitlines()]
        parts: list[str | pd.DataFrame] = [*said, *figure_lines(self)]
        for title, table, _ in summary_tables(self):
            parts += [title, table] if title else [table]
        return render_html(*parts) + ("" if self.failures is None else self.failures._repr_html_())


def _check_options(level: float, margin: float, depth: int) -> None:
    if not is_real(level) or not 0 < level < 0.5:
        raise InputError(
            f"level must lie between 0 and 0.5, got {shown(level)}: 0.05 accepts one wrong audit in twenty."
        )
    if not is_real(margin) or not 0 <= margin < 1:
        raise InputError(f"margin must be at least 0 and below 1, got {shown(margin)}: 0.01 is one percentage point.")
    if not is_whole(depth) or depth < 1:
        raise InputError(f"depth must be at least 1, got {shown(depth)}: 1 tests every attribute by itself.")


# ---- tables as readers see them ----


def figure_lines(result: AuditResult) -> list[str]:
    """Say in four lines how many rows were tested, how many are right, and how much is gained."""
    figures, counts = result.figures(), result.violations
    margin = f", margin {in_points(result.margin)}" if result.margin else ""
    total = result.totals.iloc[0]
    groups = f"{figures['groups']} group{'' if figures['groups'] == 1 else 's'}"
    lines = [
        f"{figures['rows']:,} rows, {groups}, level {result.level:g}{margin}",
        f"accuracy {percent(figures['accuracy'])}, pooled {percent(figures['pooled_accuracy'])}; "
        f"Pr without harm {percent(figures['pr_without_harm'])}, "
        f"classifiers disagree on {percent(figures['disagreement'])} of rows",
    ]
    if result.verdict.status == "unchanged":  # An interval around a gain that is zero by definition would mislead.
        return lines
    return [
        *lines,
        f"gain in {TITLES[total['loss']]} {points(total['gain'])} {Loss(total['loss']).unit} "
        f"({100 * (1 - result.level):g}% interval {points(total['low'])} to {points(total['high'])})",
        f"comparisons in which a group looks worse off: {counts['point']} observed, {counts['significant']} "
        f"significant, {counts['corrected']} after correction for the number of questions",
    ]


def summary_tables(result: AuditResult) -> list[tuple[str, pd.DataFrame, tuple[str, ...]]]:
    """Tables of the summary: title, table, and the columns to align at the left."""
    if result.verdict.status == "unchanged":  # Every gap would be zero.
        return []
    tables: list[tuple[str, pd.DataFrame, tuple[str, ...]]] = [
        ("", display_questions(result.questions, result.level), ("answer",))
    ]
    if result.named is not None:
        shown = result.worst_named().head(_MOST_NAMED_GROUPS_IN_SUMMARY)
        n_named = len(result.named)
        which = "" if len(shown) == n_named else f", {len(shown)} of {n_named:,} (single attributes first)"
        title = f"Named groups against the pooled classifier{which}:"
        tables.append((title, display_questions(shown, result.level), ("group", "answer")))
    if result.rates is not None:
        shown = result.rates.head(1 + len(result.matrix.sizes) + _MOST_NAMED_GROUPS_IN_SUMMARY)
        title = "Decisions with the pooled classifier and with this model (flagged: the second label is predicted):"
        tables.append((title, display_rates(shown), ("group",)))
    return tables


def worst_first(named: pd.DataFrame, single: set[str]) -> pd.DataFrame:
    """Named groups that are shown to lose, then those of 50 rows and more, single attributes first, by p-value."""
    order = pd.DataFrame(
        {
            "spared": named["verdict"] != "violated",
            "small": (named["n"] < SMALLEST_SHOWN) & (named["verdict"] != "violated"),
            "several": ~named["group"].isin(single),
            "p": named["p"],
        }
    )
    return named.loc[order.sort_values(["spared", "small", "several", "p"], kind="stable").index]


def rows_wanted(needed: float | None, rows: float) -> str:
    """Rows that would decide a question, to two digits; nothing where they are unknown or out of reach.

    Examples
    --------
    >>> rows_wanted(3_456, 1_000), rows_wanted(2_367_992, 1_000), rows_wanted(np.inf, 1_000)
    ('3,500', '', '')
    """
    if needed is None or not np.isfinite(needed) or needed > _MOST_TIMES * rows:
        return ""
    step = 10 ** max(len(str(int(needed))) - 2, 0)
    return f"{int(np.ceil(needed / step)) * step:,}"


def display_questions(questions: pd.DataFrame, level: float) -> pd.DataFrame:
    """Format a table of questions."""
    limits = zip(questions["low"], questions["high"], strict=True)
    answers = zip(questions["verdict"], map(rows_wanted, questions["rows_needed"], questions["n"]), strict=True)
    losses = zip(questions["loss"], questions["own_loss"], questions["rival_loss"], strict=True)
    written = [(level_in_words(loss, own), level_in_words(loss, rival)) for loss, own, rival in losses]
    table = pd.DataFrame(
        {
            "group": questions["group"].astype(str),
            "loss": [TITLES[name] for name in questions["loss"]],
            "against": questions["rival"].astype(str),
            "rows": [f"{n:,.0f}" for n in questions["n"]],
            "own": [own for own, _ in written],
            "rival": [rival for _, rival in written],
            _gap_title(set(questions["loss"])): [points(g) for g in questions["gap"]],
            f"{100 * (1 - level):g}% interval": [f"{points(low)} to {points(high)}" for low, high in limits],
            "corrected p": ["<0.001" if p < 0.001 else f"{p:.3f}" for p in questions["p_corrected"]],
            "answer": [f"{verdict} (about {wanted} rows needed)" if wanted else verdict for verdict, wanted in answers],
        }
    )
    if len(set(questions["loss"])) > 1:
        return table
    # One loss is named in the head of the table, not in every line.
    title = TITLES[questions["loss"].iloc[0]].removesuffix(" rate") if len(questions) else "error"
    return table.drop(columns="loss").rename(columns={"own": f"own {title}", "rival": f"rival {title}"})


def _gap_title(losses: set[str]) -> str:
    """Head of the column of gaps, with their unit: a cost is not a percentage."""
    if "cost" not in losses:
        return "gap, points"
    return "gap per 100 rows" if losses == {"cost"} else "gap, points or per 100 rows"


def display_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Format the shares flagged and the kinds of error, each as "with the pooled classifier → with this model"."""
    columns = {"group": rates["group"], "rows": [f"{n:,.0f}" for n in rates["rows"]]}
    for name, title in (("flagged", "flagged"), ("fpr", "false positive rate"), ("fnr", "false negative rate")):
        pairs = zip(rates[f"{name}_pooled"], rates[name], strict=True)
        columns[f"{title}, pooled → own"] = [f"{percent(before)} → {percent(now)}" for before, now in pairs]
    return pd.DataFrame(columns)
