"""AuditResult: all answers of an audit, and the only place that says what the verdict is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.questions import ask_groups, ask_named_groups, compose
from dafh.evaluation.served import ServedPredictions
from dafh.exceptions import InputError
from dafh.stats import share_interval
from dafh.text import listed, percent, plain, points, render_html, render_text

_MOST_NAMED_GROUPS_IN_SUMMARY = 10


@dataclass(frozen=True)
class AuditResult:
    """Answers of an audit; prints as a summary, in a terminal and in a notebook. Made by `audit`, or by `of`.

    Examples
    --------
    >>> from dafh import AuditResult, DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data, fresh = (make_paper_synthetic(2000, random_state=seed) for seed in (0, 1))
    >>> model = DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> result = AuditResult.of(model, fresh.X, fresh.y, sensitive_features=fresh.sensitive_features)
    >>> print(result.verdict())
    NO HARM: no group is served worse than it could be. NAMED GROUPS: s1 = -1 & s2 = 1 is served worse than by the \
pooled classifier.
    """

    matrix: PreferenceMatrix
    """Error rates of all classifiers on all groups, and every metric that follows."""
    questions: pd.DataFrame
    """One row per question about the groups that the classifiers serve; columns as in `to_frame`."""
    named: pd.DataFrame | None
    """The same for named groups, against the pooled classifier; None without sensitive features."""
    composition: pd.DataFrame | None
    """Who is in which group: for each value of each attribute its rows and its share in every group."""
    level: float
    margin: float
    classifiers: tuple[str, ...]
    """Name of the classifier in each column of the matrix, the pooled one last."""
    attributes: tuple[str, ...] = ()
    """Names of the sensitive attributes."""

    @classmethod
    def of(cls, model: Any, X: Any, y: ArrayLike, *, sensitive_features: Any = None, **options: Any) -> "AuditResult":
        """Audit a fitted model of this package, or a pipeline that ends in one; options as in `audit`."""
        served = ServedPredictions.of(model, X, sensitive_features)
        weight = options.pop("sample_weight", None)
        rows = ComparedRows.check(y, served.predictions, served.groups, served.pooled, served.own, weight)
        groups = list(range(len(served.own)))
        return cls.from_rows(rows, groups, [*served.classifiers, "pooled"], sensitive_features, **options)

    @classmethod
    def from_rows(
        cls,
        rows: ComparedRows,
        groups: list[Any],
        rivals: list[Any],
        sensitive_features: Any = None,
        *,
        level: float = 0.05,
        margin: float = 0.0,
        depth: int = 2,
    ) -> "AuditResult":
        """Ask all questions of rows that were checked before; `groups` and `rivals` are the names to show."""
        _check_options(level, margin, depth)
        named = composition = None
        attributes: tuple[str, ...] = ()
        if sensitive_features is not None:
            known = NamedGroups.of(sensitive_features, len(rows.group))
            named = ask_named_groups(rows, known, depth, level, margin)
            composition = compose(rows, known, groups)
            attributes = tuple(attribute.name for attribute in known.attributes)
        return cls(
            matrix=PreferenceMatrix.from_rows(rows),
            questions=ask_groups(rows.paired_counts(), rows.own, groups, rivals, level, margin),
            named=named,
            composition=composition,
            level=level,
            margin=margin,
            classifiers=tuple(str(rival) for rival in rivals),
            attributes=attributes,
        )

    @property
    def violations(self) -> dict[str, int]:
        """Questions with a negative gap: as point estimates, by the test alone, and after correction."""
        asked = self.questions
        return {
            "point": self.matrix.violations,
            "significant": int(((asked["p"] <= self.level) & (asked["gap"] < 0)).sum()),
            "corrected": int((asked["verdict"] == "violated").sum()),
        }

    def cells(self) -> pd.DataFrame:
        """One row per group and classifier: error rate with its exact interval, gap to the own one, and which is own.

        The intervals are for one error rate each; of two in a row, `questions` has the test.
        """
        matrix = self.matrix
        groups = list(dict.fromkeys(self.questions["group"].astype(str)))
        table = pd.DataFrame(matrix.errors, index=groups, columns=list(self.classifiers))
        cells = table.rename_axis("group").reset_index().melt("group", var_name="classifier", value_name="error")
        n = np.tile(matrix.sizes, len(self.classifiers))
        low, high = share_interval(cells["error"].to_numpy() * n, n, confidence=1 - self.level)
        own = (np.arange(len(self.classifiers))[:, None] == matrix.own).ravel()
        gap = cells["error"] - np.tile(matrix.own_errors, len(self.classifiers))
        return cells.assign(low=low, high=high, gap=gap, rows=n, own=own)

    def to_frame(self) -> pd.DataFrame:
        """One row per question, those about named groups at the end.

        Columns: group, kind (rationality or envy), rival, n, own_error, rival_error, gap (rival minus own: negative is
        harm) with low and high, own_worse (b), own_better (c), p and p_corrected of the exact test (small: own is
        worse), verdict (satisfied, violated, undecided) and rows_needed to decide it.
        """
        return self.questions.copy() if self.named is None else pd.concat([self.questions, self.named], axis=0)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON; what is unknown or infinite is None."""
        frames = {"questions": self.questions, "named_groups": self.named, "composition": self.composition}
        return {
            "status": self.status,
            "verdict": self.verdict(),
            "level": self.level,
            "margin": self.margin,
            **self.figures(),
            "violations": self.violations,
            "errors": plain(self.matrix.errors.tolist()),
            "sizes": self.matrix.sizes.tolist(),
            **{
                name: None if frame is None else [plain(row) for row in frame.to_dict("records")]
                for name, frame in frames.items()
            },
        }

    def figures(self) -> dict[str, Any]:
        """Return sizes, accuracy, and what Pr without harm must be read beside."""
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
    def status(self) -> str:
        """The verdict in one word: harm, open, fine, or same where the pooled classifier serves everybody."""
        if self._is_pooled:
            return "same"
        asked = set(self.questions["verdict"]) | (
            {"violated"} if self.named is not None and _harmed(self.named) else set()
        )
        return "harm" if "violated" in asked else "open" if "undecided" in asked else "fine"

    @property
    def _is_pooled(self) -> bool:
        return bool((self.matrix.own == len(self.classifiers) - 1).all())

    def verdict(self) -> str:
        """Say in one or two sentences what was found."""
        if self._is_pooled:
            return "NOTHING CHANGED: the pooled classifier serves every group; nobody is harmed, and nothing is gained."
        harmed, undecided = _harmed(self.questions), int((self.questions["verdict"] == "undecided").sum())
        than = f"than it could be{self._tolerance()}"
        if harmed:
            sentence = f"HARM: group {listed(harmed)} {_are(harmed)} served worse {than}."
        elif undecided:
            sentence = (
                f"NO HARM FOUND: no group is shown to be served worse {than}, but {undecided} of {len(self.questions)} "
                "questions need more rows."
            )
        else:
            sentence = f"NO HARM: no group is served worse {than}."
        return sentence if self.named is None else f"{sentence} {self.named_verdict()}"

    def _tolerance(self) -> str:
        return f" by more than {100 * self.margin:g} points" if self.margin else ""

    def named_verdict(self) -> str:
        """Say in one sentence what was found about named groups; nothing where there are none."""
        named = self.named
        if named is None:
            return ""
        harmed, decided = _harmed(named), int((named["verdict"] == "satisfied").sum())
        than = f"than by the pooled classifier{self._tolerance()}"
        if harmed:
            return f"NAMED GROUPS: {listed(harmed)} {_are(harmed)} served worse {than}."
        none = f"Of {len(named):,} named groups none is shown to be served worse {than}"
        return f"{none}, {decided:,} are shown not to be, and {len(named) - decided:,} are undecided."

    def summary(self) -> str:
        """Text for a terminal: verdict, figures, all questions about groups, the named groups that matter most."""
        parts = [
            self.verdict(),
            "\n".join(self._figure_lines()),
            render_text(_display(self.questions, self.level), ("verdict",)),
        ]
        if self.named is not None:
            shown, title = self._named_for_display()
            parts += [title, render_text(_display(shown, self.level), left=("group", "verdict"))]
        return "\n\n".join(parts)

    def _figure_lines(self) -> list[str]:
        """Sizes, accuracy and Pr with what it must be read beside, and the three counts of violations."""
        figures, counts = self.figures(), self.violations
        margin = f", margin {100 * self.margin:g} points" if self.margin else ""
        return [
            f"{figures['rows']:,} rows, {figures['groups']} groups, level {self.level:g}{margin}",
            f"accuracy {percent(figures['accuracy'])}, pooled {percent(figures['pooled_accuracy'])}, "
            f"gain {points(figures['accuracy'] - figures['pooled_accuracy'])}; "
            f"Pr without harm {percent(figures['pr_without_harm'])}, "
            f"classifiers disagree on {percent(figures['disagreement'])}",
            f"violations: {counts['point']} as point estimates, {counts['significant']} by the test alone, "
            f"{counts['corrected']} after correction",
        ]

    __str__ = summary
    __repr__ = summary

    def _named_for_display(self) -> tuple[pd.DataFrame, str]:
        """Named groups by how badly they may be served, the worst first."""
        assert self.named is not None
        order = self.named.iloc[np.lexsort((self.named["p"], self.named["verdict"] != "violated"))]
        shown = order.head(_MOST_NAMED_GROUPS_IN_SUMMARY)
        which = "" if len(shown) == len(order) else f"the {len(shown)} of {len(order):,} with the most evidence of harm"
        return shown, "Named groups against the pooled classifier" + (f", {which}:" if which else ":")

    def _repr_html_(self) -> str:
        parts: list[str | pd.DataFrame] = [self.verdict(), *self._figure_lines(), _display(self.questions, self.level)]
        if self.named is not None:
            shown, title = self._named_for_display()
            parts += [title, _display(shown, self.level)]
        return render_html(*parts)


def _harmed(questions: pd.DataFrame) -> list[str]:
    """Names of the groups with a violated question, not more than a sentence can hold."""
    names = list(dict.fromkeys(str(name) for name in questions["group"][questions["verdict"] == "violated"]))
    return names[:3] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _display(questions: pd.DataFrame, level: float) -> pd.DataFrame:
    gaps = zip(questions["low"], questions["high"], strict=True)
    return pd.DataFrame(
        {
            "group": questions["group"].astype(str),
            "against": questions["rival"].astype(str),
            "rows": [f"{n:,.0f}" for n in questions["n"]],
            "own error": [percent(e) for e in questions["own_error"]],
            "other's error": [percent(e) for e in questions["rival_error"]],
            "gap": [points(g) for g in questions["gap"]],
            f"{100 * (1 - level):g} % interval": [f"{points(low)} to {points(high)}" for low, high in gaps],
            "corrected p": [_p_text(p) for p in questions["p_corrected"]],
            "verdict": [
                _verdict_text(v, n) for v, n in zip(questions["verdict"], questions["rows_needed"], strict=True)
            ],
        }
    )


def _p_text(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _verdict_text(verdict: str, needed: float) -> str:
    if verdict != "undecided":
        return verdict
    return "not enough data" + (f" ({needed:,.0f} rows would do)" if np.isfinite(needed) else "")


def _check_options(level: float, margin: float, depth: int) -> None:
    if not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, got {level!r}: 0.05 accepts one wrong verdict in twenty.")
    if not 0 <= margin < 1:
        raise InputError(f"margin must be a share of rows from 0 up to 1, got {margin!r}: 0.01 is one point of error.")
    if depth < 1:
        raise InputError(f"depth must be at least 1, got {depth!r}: 1 asks every attribute by itself.")
