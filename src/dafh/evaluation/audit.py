"""audit: would any group do better with another classifier? All answers, and the tables that people see."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.classifiers import GroupModel, final_classifier
from dafh.columns.bins import named_table
from dafh.evaluation.compared import ComparedRows, ServedPredictions
from dafh.evaluation.failures import Failures, Search
from dafh.evaluation.losses import ERROR, TITLES, Loss, LossName, check_losses, in_points, level_in_words, short_unit
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.named_groups import SMALLEST_SHOWN, NamedGroups
from dafh.evaluation.questions import (
    COLUMNS,
    answer,
    ask_groups,
    ask_named_groups,
    check_options,
    compose,
    decision_rates,
    divisions,
    pooled_levels,
    total_losses,
)
from dafh.evaluation.recommendation import Recommendation, weigh
from dafh.exceptions import InputError
from dafh.frames import MISSING, Table
from dafh.text import Readable, Section, clipped, percent, plain, points, shown
from dafh.validation import as_array, is_whole

# Lines of each table of a summary, and named groups on a page.
_MOST_FAILED, _MOST_DISCOVERED, _MOST_GROUPS, _MOST_NAMED_GROUPS = 5, 3, 20, 6
_MOST_ON_A_PAGE = 200
# More times the rows of the group than this are not named: nobody will collect them, and the estimate rests on a gap
# that is mostly noise.
_MOST_TIMES = 10


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(Readable):
    """Answers of an audit; prints as a summary, in a terminal and in a notebook. Made by `audit` or by `of`.

    Examples
    --------
    >>> from dafh import AuditResult, DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data, fresh = (make_paper_synthetic(2000, random_state=seed) for seed in (0, 1))
    >>> model = DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> result = AuditResult.of(model, fresh.X, fresh.y, sensitive_features=fresh.sensitive_features)
    >>> result.recommendation.kind
    'do_not_deploy'
    >>> print(f"{result.accuracy:.3f} instead of {result.pooled_accuracy:.3f}")
    0.651 instead of 0.545
    >>> result.by_group()["verdict"].head(2).tolist()
    ['satisfied', 'satisfied']
    >>> print(result.recommendation.headline)
    Do not deploy: s1 = -1 & s2 = 1 is shown to lose
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
    levels: pd.DataFrame
    """The main loss with the pooled classifier, of the same rows and groups: group, rows, pooled_loss, low, high."""
    losses: tuple[LossName, ...]
    """Losses that were asked about, the main one first."""
    attributes: tuple[str, ...]
    """Names of the sensitive attributes."""
    evidence: pd.DataFrame
    """One row per group, for the recommendation: `changed`, whether another classifier than the pooled one serves it;
    `p_loss`, small if it does not lose more than one percentage point; `p_no_gain`, small if it gains; and `supported`,
    whether its own classifier may be recommended."""
    trial: "AuditResult | None" = None
    """Audit of the same model with the pooled classifier for all groups but those that the rows support; None where
    they support all or none."""
    rules: tuple[str, ...] = ()
    """What defines each group, in words; empty where groups have no rules."""
    search: "Search | None" = None
    """What finds groups that nobody has named; None where features are not known."""

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
        judged = tuple(losses if losses is not None else getattr(final, "losses_", (ERROR,)))
        options: dict[str, Any] = {"losses": judged, "level": level, "margin": margin, "depth": depth}
        return cls.from_rows(rows, groups, rivals, sensitive_features, rules=rules_of(final), X=X, **options)

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
        rules: Sequence[str] = (),
        X: Table | None = None,
        with_features: NDArray[np.intp] | None = None,
    ) -> "AuditResult":
        """Ask all questions about rows that have been checked; `groups` and `rivals` are the names to show.

        X are the features of all rows, or of those at the positions `with_features`.
        """
        check_options(level, margin)
        if not is_whole(depth) or depth < 1:
            raise InputError(f"depth must be at least 1, got {shown(depth)}: 1 tests every attribute by itself.")
        named_groups = None if sensitive_features is None else NamedGroups.of(sensitive_features, len(rows.group))
        families = 1 if named_groups is None else 2
        about_groups = [ask_groups(rows, loss, groups, rivals, level, margin) for loss in losses]
        named = composition = trial = None
        if named_groups is not None:
            about_named = [ask_named_groups(rows, loss, named_groups, depth, level, margin) for loss in losses]
            named = answer(about_named, level, margin, families)[COLUMNS]
            composition = compose(rows, named_groups, groups)
        answered = answer(about_groups, level, margin, families)
        evidence = weigh(answered, rows.own != rows.right.shape[1] - 1, groups, level)
        chosen = evidence["supported"].to_numpy(bool)
        if chosen.any() and not chosen[evidence["changed"]].all():
            # The groups were chosen on the same rows, so that these figures are flattering, and a recommendation must
            # not rest on them. That no named group may lose here either is a stricter demand, not a weaker one.
            as_recommended = replace(rows, own=np.where(chosen, rows.own, rows.right.shape[1] - 1))
            options: dict[str, Any] = {"losses": losses, "level": level, "margin": margin, "depth": depth}
            options |= {"X": X, "with_features": with_features}
            trial = cls.from_rows(as_recommended, groups, rivals, sensitive_features, **options)
        search, divided = None, divisions(rows, groups, named_groups)
        if X is not None:
            rows_with_features = rows if with_features is None else rows.take(with_features)
            searched_names = (
                named_groups if named_groups is None or with_features is None else named_groups.take(with_features)
            )
            search = Search(
                rows_with_features, named_table(X).reset_index(drop=True), tuple(losses), searched_names, level, margin
            )
        return cls(
            matrix=PreferenceMatrix.from_rows(rows),
            questions=answered[COLUMNS],
            named=named,
            composition=composition,
            level=level,
            margin=margin,
            classifiers=tuple(str(rival) for rival in rivals),
            totals=total_losses(rows, losses, level),
            rates=decision_rates(rows, divided),
            levels=pooled_levels(rows, losses[0], divided, level),
            losses=tuple(loss.name for loss in losses),
            attributes=() if named_groups is None else tuple(attribute.name for attribute in named_groups.attributes),
            evidence=evidence,
            trial=trial,
            rules=tuple(rules) if len(rules) == len(groups) else (),
            search=search,
        )

    @functools.cached_property
    def recommendation(self) -> Recommendation:
        """What to do, and the figures that carry it: deploy, for whom, or keep the pooled classifier."""
        return Recommendation.of(self)

    @property
    def changed(self) -> bool:
        """Whether any group has another classifier than the pooled one."""
        return bool(self.evidence["changed"].any())

    @property
    def harm(self) -> bool:
        """Whether a group, learned or named, is shown to have a higher loss than with the pooled classifier.

        That a group would do better with another group's classifier is no harm.
        """
        questions = self.to_frame()
        return bool(((questions["verdict"] == "violated") & (questions["kind"] == "rationality")).any())

    @functools.cached_property
    def failures(self) -> Failures | None:
        """Groups that the model fails, found on one half of the rows and tested on the other; None without features."""
        return None if self.search is None else self.search.failures()

    @functools.cached_property
    def losers(self) -> pd.DataFrame:
        """Groups that nobody has named and that seem to lose against the pooled classifier; none without features.

        Columns as of `dafh.evaluation.discovery.discover`, group, which is the rule as a name, and same_as, the named
        group that has most of the same rows.
        """
        return pd.DataFrame() if self.search is None or not self.changed else self.search.losers()

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
        questions = self.questions if self.named is None else pd.concat([self.questions, self.named])
        rational = questions[(questions["kind"] == "rationality") & (questions["loss"] == self.losses[0])]
        named = rational.rename(columns={"n": "rows", "rival_loss": "pooled_loss", "gap": "gain"})
        columns = ["rows", "own_loss", "pooled_loss", "gain", "low", "high", "verdict"]
        return named.set_index(rational["group"].astype(str).rename("group"))[columns]

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
        questions = self.questions
        return {
            "point": self.matrix.violations,
            # A level is below one half, so that a p-value below it implies a negative gap.
            "significant": int((questions["p"] <= self.level).sum()),
            "corrected": int((questions["verdict"] == "violated").sum()),
        }

    def worst_named(self) -> pd.DataFrame:
        """Questions about named groups in the order in which readers want them; none without sensitive features.

        Those that are violated come first, then single attributes before intersections, each by evidence of harm.
        Groups of fewer than 50 rows come last: they are too small to tell.
        """
        if self.named is None or self.composition is None:
            return self.questions.head(0)
        spared, several = (
            self.named["verdict"] != "violated",
            ~self.named["group"].isin(self.composition["named_group"]),
        )
        small = (self.named["n"] < SMALLEST_SHOWN) & spared
        order = pd.DataFrame({"spared": spared, "small": small, "several": several, "p": self.named["p"]})
        return self.named.loc[order.sort_values(["spared", "small", "several", "p"], kind="stable").index]

    def cells(self) -> pd.DataFrame:
        """One row per group and classifier: error rate, and gap to the group's own error."""
        matrix, n = self.matrix, len(self.classifiers)
        groups = list(dict.fromkeys(self.questions["group"].astype(str)))
        table = pd.DataFrame(matrix.errors, index=groups, columns=list(self.classifiers))
        cells = table.rename_axis("group").reset_index().melt("group", var_name="classifier", value_name="error")
        is_own = (np.arange(n)[:, None] == matrix.own).ravel()
        gap = cells["error"] - np.tile(matrix.own_errors, n)
        return cells.assign(gap=gap, rows=np.tile(matrix.sizes, n), own=is_own)

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

    def sections(self, short: bool = True) -> list[Section]:
        """What to do, who is failed now, and who changes: the first lines of each table, or as many as a page shows."""
        failed, changes = failed_now(self), group_changes(self)
        named = None if self.named is None else named_changes(self)
        # Beside nothing else to show, there is room for more.
        limits = (1 + _MOST_FAILED * (1 if self.changed else 2), _MOST_DISCOVERED, _MOST_GROUPS, _MOST_NAMED_GROUPS)
        if not short:
            limits = (len(failed), 2 * _MOST_DISCOVERED, len(changes), _MOST_ON_A_PAGE)
        most_failed, most_discovered, most_groups, most_named = limits
        title = f"Who is failed now: highest {TITLES[self.losses[0]]} with the pooled classifier"
        sections = [
            Section(sentences=str(self.recommendation).splitlines()),
            Section(title, table=_display_failed(failed.head(most_failed), self.level), name="failed"),
        ]
        if self.failures is not None and self.failures.regions:
            discovered = self.failures.parts()[0][1].head(most_discovered).drop(columns="answer")
            title = "Groups that nobody named, and that are shown to be served worse than all rows"
            sections.append(Section(title, table=discovered))
        if not self.changed:
            return sections
        more = f", {most_groups} of {len(changes)}" if len(changes) > most_groups else ""
        title = f"Who changes{more}: groups of the model, by gain"
        sections.append(Section(title, table=_display_changes(changes.head(most_groups), self), name="changes"))
        if named is None:
            return sections
        more = f", {most_named} of {len(named):,}" if len(named) > most_named else ""
        title = f"Named groups{more}: those that lose or might lose first"
        if not len(named):
            sentence = f"All have fewer than {SMALLEST_SHOWN} rows, too few to tell."
            return [*sections, Section(title, [sentence], name="named")]
        return [*sections, Section(title, table=_display_named(named.head(most_named), self), name="named")]

    def detail_sections(self) -> list[Section]:
        """The metrics of the paper, all questions and answers, and kinds of error by group."""
        figures, counts = self.figures(), self.violations
        margin = f", margin {in_points(self.margin)}" if self.margin else ""
        groups = f"{figures['groups']} group{'' if figures['groups'] == 1 else 's'}"
        metrics = [
            f"{figures['rows']:,} rows, {groups}, level {self.level:g}{margin}",
            f"accuracy {percent(figures['accuracy'])}, pooled {percent(figures['pooled_accuracy'])}; "
            f"Pr without harm {percent(figures['pr_without_harm'])}, "
            f"classifiers disagree on {percent(figures['disagreement'])} of rows",
            f"comparisons in which a group looks worse off, with other groups' classifiers (envy) included: "
            f"{counts['point']} observed, {counts['significant']} significant, {counts['corrected']} after correction",
        ]
        title = "Is a group served worse than by the pooled classifier, or by another group's?"
        sections = [
            Section(sentences=metrics),
            _questions_section("questions", title, self.questions, self.level),
        ]
        if self.named is not None:
            title = "Is a named group served worse than by the pooled classifier?"
            sections.append(_questions_section("named_questions", title, self.worst_named(), self.level))
        if self.rates is not None:
            title = "Decisions with the pooled classifier and with this model (flagged: the second label is predicted)"
            sections.append(Section(title, table=_display_rates(self.rates), name="rates"))
        return sections

    def details(self) -> str:
        """Text for a terminal: all that the sections leave out, and the tests of groups that the model fails."""
        failures = [] if self.failures is None else [str(self.failures)]
        return "\n\n".join([*map(str, self.detail_sections()), *failures])


# ---- tables as readers see them ----


def failed_now(result: AuditResult) -> pd.DataFrame:
    """All rows, then groups of the model and of one attribute, the highest loss with the pooled classifier first.

    Columns: who, rows, loss, pooled_loss with low and high, and with two classes fpr_pooled and fnr_pooled. Groups of
    fewer than 50 rows are left out, and so is a group of the model that has all rows.
    """
    table, n_groups = result.levels, len(result.matrix.sizes)
    names = table["group"].tolist()
    learned = [f"group {name}" for name in names[1 : 1 + n_groups]]
    if result.rules:
        learned = [f"{name}: {rule}" for name, rule in zip(learned, result.rules, strict=True)]
    table = table.assign(who=[*names[:1], *learned, *names[1 + n_groups :]], loss=result.losses[0])
    if result.rates is not None:
        table = table.join(result.rates[["fpr_pooled", "fnr_pooled"]])
    groups = table.iloc[1 + (n_groups if n_groups == 1 else 0) :]
    groups = groups[groups["rows"] >= SMALLEST_SHOWN].sort_values("pooled_loss", ascending=False, kind="stable")
    return pd.concat([table.head(1), groups], ignore_index=True).drop(columns="group")


def group_changes(result: AuditResult) -> pd.DataFrame:
    """Groups of the model by gain: rule, share, loss with the pooled and with its own classifier, and who should serve.

    Columns as in `by_group`, and group; rule; share; changed; in_model, which classifier the model has for it;
    served_by, which one should serve it; action; and reason.
    """
    n_groups, advice = len(result.matrix.sizes), result.recommendation.groups
    table = result.by_group().iloc[:n_groups].reset_index()
    in_model = [result.classifiers[column] for column in result.matrix.own]
    servers = [
        "pooled" if name == "pooled" else "its own" if name == group else f"classifier {name}"
        for name, group in zip(in_model, table["group"], strict=True)
    ]
    table = table.assign(
        rule=result.rules or "",
        share=result.matrix.weights,
        changed=result.evidence["changed"],
        in_model=servers,
        served_by=[
            name if what_to_do.action == "deploy" else "pooled"
            for name, what_to_do in zip(servers, advice, strict=True)
        ],
        action=[what_to_do.action for what_to_do in advice],
        reason=[what_to_do.reason for what_to_do in advice],
    )
    return table.sort_values(["changed", "gain"], ascending=False, kind="stable", ignore_index=True)


def named_changes(result: AuditResult) -> pd.DataFrame:
    """Named groups: those that lose, those to check, then the others of one attribute from loss to gain.

    Columns as in `by_group`, and group and answer.
    """
    advice = result.recommendation
    table = result.by_group().iloc[len(result.matrix.sizes) :].reset_index()
    answers = {loss.group: "check" for loss in advice.checks} | {loss.group: "loses" for loss in advice.losing}
    assert result.composition is not None
    single = table["group"].isin(set(result.composition["named_group"])) & (table["rows"] >= SMALLEST_SHOWN)
    table = table.assign(answer=[answers.get(name, "") for name in table["group"]])
    table = table[single | (table["answer"] != "")]
    order = table["answer"].map({"loses": 0, "check": 1, "": 2})
    return (
        table.assign(order=order).sort_values(["order", "gain"], kind="stable", ignore_index=True).drop(columns="order")
    )


def _display_failed(table: pd.DataFrame, level: float) -> pd.DataFrame:
    loss: LossName = table["loss"].iloc[0]
    levels = table[["pooled_loss", "low", "high"]].itertuples(index=False)
    written = [[level_in_words(loss, value) for value in values] for values in levels]
    columns = {
        "who": [clipped(who, 60) for who in table["who"]],
        "rows": [f"{n:,.0f}" for n in table["rows"]],
        TITLES[loss]: [value for value, _, _ in written],
        f"{100 * (1 - level):g}% interval": [f"{low} to {high}" for _, low, high in written],
    }
    kinds: list[LossName] = [name for name in ("fpr", "fnr") if f"{name}_pooled" in table and name != loss]
    columns |= {TITLES[name]: [percent(value) for value in table[f"{name}_pooled"]] for name in kinds}
    return pd.DataFrame(columns)


def _display_changes(table: pd.DataFrame, result: AuditResult) -> pd.DataFrame:
    columns: dict[str, Any] = {"group": table["group"].astype(str)}
    if result.rules:
        columns["rule"] = [clipped(rule, 50) for rule in table["rule"]]
    columns["share"] = [percent(share) for share in table["share"]]
    return pd.DataFrame(columns | _losses_and_gain(table, result) | {"served by": table["served_by"]})


def _display_named(table: pd.DataFrame, result: AuditResult) -> pd.DataFrame:
    columns = {"group": [clipped(name, 60) for name in table["group"]], "rows": [f"{n:,.0f}" for n in table["rows"]]}
    return pd.DataFrame(columns | _losses_and_gain(table, result) | {"answer": table["answer"]})


def _losses_and_gain(table: pd.DataFrame, result: AuditResult) -> dict[str, list[str]]:
    """Loss with the pooled classifier and with the own one, and the gain with its interval."""
    loss = result.losses[0]
    limits = zip(table["gain"], table["low"], table["high"], strict=True)
    return {
        f"{TITLES[loss].removesuffix(' rate')}, pooled": [
            level_in_words(loss, value) for value in table["pooled_loss"]
        ],
        "own": [level_in_words(loss, value) for value in table["own_loss"]],
        f"gain, {short_unit(loss)} ({100 * (1 - result.level):g}% interval)": [
            f"{points(gain)} ({points(low)} to {points(high)})" for gain, low, high in limits
        ],
    }


def rules_of(final: Any) -> tuple[str, ...]:
    """Rules of a fitted model's groups; none where its groups have none, or where there is one group only."""
    exceptions = getattr(final, "exceptions_", None)
    return () if exceptions is None or exceptions.n_groups == 1 else tuple(exceptions.to_frame()["rule"])


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


def _questions_section(name: str, title: str, questions: pd.DataFrame, level: float) -> Section:
    """Questions and answers, with the number of each answer in the title."""
    counts = questions["verdict"].value_counts()
    tally = ", ".join(f"{int(counts.get(answer, 0)):,} {answer}" for answer in ("violated", "satisfied", "undecided"))
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
            "answer": [
                f"{verdict} (about {n_wanted} rows needed)" if n_wanted else verdict for verdict, n_wanted in answers
            ],
        }
    )
    if len(set(questions["loss"])) == 1:
        # One loss is named in the head of the table, not in every line.
        loss = TITLES[questions["loss"].iloc[0]].removesuffix(" rate")
        table = table.drop(columns="loss").rename(columns={"own": f"own {loss}", "rival": f"rival {loss}"})
    return Section(f"{title} {tally}", table=table, name=name)


def _gap_title(losses: set[str]) -> str:
    """Head of the column of gaps, with their unit: a cost is not a percentage."""
    if "cost" not in losses:
        return "gap, points"
    return "gap per 100 rows" if losses == {"cost"} else "gap, points or per 100 rows"


def _display_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Format the shares flagged and the kinds of error, each as "with the pooled classifier → with this model"."""
    columns = {"group": rates["group"], "rows": [f"{n:,.0f}" for n in rates["rows"]]}
    for name, title in (("flagged", "flagged"), ("fpr", "false positive rate"), ("fnr", "false negative rate")):
        pairs = zip(rates[f"{name}_pooled"], rates[name], strict=True)
        columns[f"{title}, pooled → own"] = [f"{percent(pooled)} → {percent(now)}" for pooled, now in pairs]
    return pd.DataFrame(columns)


def audit(
    y: ArrayLike,
    predictions: ArrayLike,
    groups: ArrayLike,
    *,
    pooled: ArrayLike,
    X: Table | None = None,
    sensitive_features: Table | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    persons: ArrayLike | None = None,
    losses: str | Sequence[str] = ("error",),
    costs: Mapping[str, float] | None = None,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
    own: ArrayLike | None = None,
) -> AuditResult:
    """Test whether any group is served worse than by the pooled classifier, or than by another group's classifier.

    The rows must be independent draws from the population in question, and must not have been used to train or select
    any of the classifiers. All answers hold together: the probability of any wrong "violated" is at most `level`, and
    so is that of any wrong "satisfied". With sensitive features, one half of the level is for the groups that the
    classifiers serve and one half for named groups. Each interval is for one question.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    predictions : array or data frame of shape (n, M), or array of shape (n,)
        Label predicted for every row by each group's classifier. With one column, the same classifier serves all
        groups, and these may have any names.
    groups : array of shape (n,)
        Group of each row: the number of its column, counted from 0; M for rows that the pooled classifier serves.
    pooled : array of shape (n,)
        Labels predicted by the pooled classifier.
    X : data frame or array with n rows, optional
        Features: the result then has `failures`, the groups that are served worse than all rows, as in `find_failures`.
    sensitive_features : data frame, series or array with n rows, optional
        Attributes that define named groups. Missing values form a group of their own, numbers with more than 12
        different values are cut at their quartiles, and beyond 50 categories the rarest are merged.
    sample_weight : array of shape (n,), optional
        Row weights.
    largest_weight : float, optional
        Largest weight of a row in the population, or of all rows of a person. All answers rest on it. By default it is
        the largest in `sample_weight`: a heavier row that the sample has missed could hide any harm.
    persons : array of shape (n,), optional
        Identifier of the person that each row belongs to, if persons have several rows. Tests then count persons.
    losses : name or sequence of names, default=("error",)
        Losses to test: "error", "fpr" (false positive rate), "fnr" (false negative rate) or "cost". All but "error"
        need two classes; the larger label is the positive one.
    costs : mapping, optional
        What a false positive and a false negative cost, such as ``{"fp": 1, "fn": 5}``; for the loss "cost".
    level : float, default=0.05
        Accepted probability of a wrong answer, between 0 and 0.5.
    margin : float, default=0
        Harm up to this size is tolerated: 0.01 is one percentage point of error. "violated" then means harm by more
        than the margin, "satisfied" harm by at most the margin.
    depth : int, default=2
        Largest number of attributes to intersect.
    own : array of int, optional
        Column that serves each group, if that is not column k for group k; M is the pooled classifier.

    Returns
    -------
    AuditResult
        With `verdict`, `summary()`, `to_frame()`, `to_dict()`, and the parts `matrix`, `questions`, `named` and
        `composition`.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y = np.tile([0, 1], 200)
    >>> groups = np.repeat([0, 1], 200)
    >>> right, coin = y, np.tile([0, 0, 1, 1], 100)
    >>> result = audit(y, np.column_stack([right, coin]), groups, pooled=coin)
    >>> result.to_frame()[["group", "kind", "rival", "gap", "verdict"]]
       group         kind   rival  gap    verdict
    0      0  rationality  pooled  0.5  satisfied
    1      0         envy       1  0.5  satisfied
    2      1  rationality  pooled  0.0  undecided
    3      1         envy       0 -0.5   violated
    >>> print(result.recommendation.headline)
    Deploy for group 0 only, and keep the pooled classifier for group 1
    """
    columns = as_array(predictions, "predictions")
    if not columns.ndim:
        raise InputError(f"predictions must have one row per sample, got {shown(predictions)}.")
    columns = columns[:, None] if columns.ndim == 1 else columns
    codes, labels, served_by = _number_groups(groups, columns.shape[1], own)
    judged = check_losses(losses, costs)
    rows = ComparedRows.check(
        y, columns, codes, pooled, served_by, sample_weight, persons=persons, largest_weight=largest_weight
    )
    rivals = [*range(columns.shape[1]), "pooled"]
    features = None if X is None else named_table(X)
    if features is not None and len(features) != len(rows.group):
        raise InputError(f"X has {len(features):,} rows, y has {len(rows.group):,}: give one row for each.")
    return AuditResult.from_rows(
        rows, labels, rivals, sensitive_features, losses=judged, level=level, margin=margin, depth=depth, X=features
    )


def _number_groups(
    groups: ArrayLike, n_models: int, own: ArrayLike | None
) -> tuple[NDArray[Any], Sequence[object], NDArray[np.intp]]:
    """Return the group of each row as a number, the names of the groups, and the column that serves each."""
    group = as_array(groups, "groups")
    if group.ndim != 1:
        raise InputError(f"groups must have one entry per sample, got shape {group.shape}.")
    # A column of group numbers read from a file with gaps elsewhere is often a float column.
    if group.dtype.kind == "b" or (group.dtype.kind == "f" and np.array_equal(group, np.floor(group))):
        group = group.astype(np.intp)
    if own is not None:
        served_by = as_array(own, "own")
        if served_by.ndim != 1:
            raise InputError(f"own must have one entry per group, got shape {served_by.shape}.")
        return group, range(len(served_by)), served_by
    if n_models == 1:
        try:
            codes, values = pd.factorize(group, sort=True)
        except TypeError as error:
            raise InputError("groups holds lists or records: a group is text or a number.") from error
        # Dates are written in more than one way, and a group has one name.
        names = [name if isinstance(name, str | int | float) else str(name) for name in pd.Index(values).tolist()]
        labels = [*names, *([MISSING] if (codes < 0).any() else [])]
        return np.where(codes < 0, len(labels) - 1, codes), labels, np.zeros(len(labels), np.intp)
    served_by_pooled = group.size and np.issubdtype(group.dtype, np.integer) and group.max() == n_models
    labels = [*range(n_models), *(["pooled"] if served_by_pooled else [])]
    return group, labels, np.arange(len(labels))
