"""audit: is any group served worse than it could be? For any models, any groups, and what the rows can tell.

Two kinds of question are asked of every group: *rationality*, is it served worse than by the pooled classifier, and
*envy*, is it served worse than another group would serve it. Each has an exact test, an interval, and one of three
verdicts. Named groups (sex, race, and their intersections) are asked the first question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh._text import listed, percent, plain, points, render_html, render_text
from dafh._validation import MISSING, is_frame
from dafh.exceptions import InputError
from dafh.named_groups import NamedGroups
from dafh.preference import ComparedRows, PairedCounts, PreferenceMatrix, ServedPredictions
from dafh.stats import excluded_harm, holm, mcnemar_p, paired_interval, rows_needed, share_interval

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
        return _audit_rows(
            rows, list(range(len(served.own))), [*served.classifiers, "pooled"], sensitive_features, **options
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


def audit(
    y: ArrayLike,
    predictions: Any,
    groups: ArrayLike,
    *,
    pooled: ArrayLike,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
    own: ArrayLike | None = None,
) -> AuditResult:
    """Ask whether any group is served worse than by the pooled classifier or by another group's.

    The rows must be independent draws from the population in question, and must not have trained or selected any of the
    classifiers. Verdicts of all groups hold together: the probability of any wrong "violated" is at most `level`, and
    so is that of any wrong "satisfied"; named groups are corrected among themselves. The intervals are for one question
    each.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    predictions : array of shape (n, M), data frame or mapping with M columns, or array of shape (n,)
        Label predicted for every row by each group's classifier. With one column only, the same classifier serves all
        groups, which then may have any names.
    groups : array of shape (n,)
        Group of each row: the number of its classifier from 0, or its name where `predictions` has named columns. M is
        for rows that the pooled classifier serves.
    pooled : array of shape (n,)
        Labels predicted by the pooled classifier.
    sensitive_features : data frame, series or array with n rows, optional
        Attributes that name groups. A missing value makes a group of its own; numbers with more than 12 values are cut
        into quarters; of more than 50 categories the rare ones are put together.
    sample_weight : array of shape (n,), optional
        Row weights. Tests and intervals then rest on effective numbers of rows, and are approximate.
    level : float, default=0.05
        Probability of a wrong verdict that is accepted.
    margin : float, default=0
        Harm up to this size is tolerated in "satisfied": 0.01 is one point of error.
    depth : int, default=2
        Largest number of attributes that are intersected.
    own : array of int, optional
        Column that serves each group, where that is not column k for group k; M is the pooled classifier.

    Returns
    -------
    AuditResult
        With `summary()`, `to_frame()`, `to_dict()`, and the parts `matrix`, `questions`, `named`, `composition`.

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
    """
    columns, names = _check_columns(predictions)
    codes, labels, own = _number_groups(groups, columns.shape[1], names, own)
    rows = ComparedRows.check(y, columns, codes, pooled, own, sample_weight)
    rivals = [*(range(columns.shape[1]) if names is None else names), "pooled"]
    return _audit_rows(rows, labels, rivals, sensitive_features, level=level, margin=margin, depth=depth)


def _audit_rows(
    rows: ComparedRows,
    labels: list[Any],
    rivals: list[Any],
    sensitive_features: Any,
    *,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
) -> AuditResult:
    _check_options(level, margin, depth)
    questions = _ask_groups(rows.paired_counts(), rows.own, labels, rivals, level, margin)
    named = composition = None
    known: tuple[str, ...] = ()
    if sensitive_features is not None:
        attributes = NamedGroups.of(sensitive_features, len(rows.group))
        named = _ask_named_groups(rows, attributes, depth, level, margin)
        composition = _compose(rows, attributes, labels)
        known = tuple(attribute.name for attribute in attributes.attributes)
    matrix, names = PreferenceMatrix.from_rows(rows), tuple(str(rival) for rival in rivals)
    return AuditResult(matrix, questions, named, composition, level, margin, names, known)


def _check_options(level: float, margin: float, depth: int) -> None:
    if not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, got {level!r}: 0.05 accepts one wrong verdict in twenty.")
    if not 0 <= margin < 1:
        raise InputError(f"margin must be a share of rows from 0 up to 1, got {margin!r}: 0.01 is one point of error.")
    if depth < 1:
        raise InputError(f"depth must be at least 1, got {depth!r}: 1 asks every attribute by itself.")


def _check_columns(predictions: Any) -> tuple[NDArray[Any], list[Any] | None]:
    """Predictions as an array with one column per classifier, and the names of the columns where they have some."""
    named = isinstance(predictions, Mapping) or is_frame(predictions)
    if not named:
        columns = np.asarray(predictions)
        return (columns[:, None] if columns.ndim == 1 else columns), None
    names = list(predictions) if isinstance(predictions, Mapping) else list(predictions.columns)
    if len(set(names)) < len(names):
        raise InputError("predictions has two columns of the same name: every group needs one of its own.")
    parts = [np.asarray(predictions[name]) for name in names]
    if len({part.dtype.kind in "OUS" for part in parts}) > 1:
        raise InputError(
            "The columns of predictions hold labels of different kinds: give all as text or all as numbers."
        )
    return np.column_stack(parts), names


def _number_groups(
    groups: Any, n_models: int, names: list[Any] | None, own: Any
) -> tuple[NDArray[Any], list[Any], NDArray[np.intp]]:
    """Group of each row as a number, the names of the groups, and the column that serves each."""
    groups = np.asarray(groups)
    if groups.dtype.kind == "b" or (groups.dtype.kind == "f" and np.array_equal(groups, np.floor(groups))):
        groups = groups.astype(np.intp)
    if own is not None:
        own = np.asarray(own)
        return groups, list(range(len(own))), own
    if n_models == 1:
        codes, values = pd.factorize(groups, sort=not pd.isna(groups).any())
        labels = [*pd.Index(values).tolist(), *([MISSING] if (codes < 0).any() else [])]
        return np.where(codes < 0, len(labels) - 1, codes), labels, np.zeros(len(labels), np.intp)
    if names is not None:
        return _match_names(groups, names), names, np.arange(n_models)
    served_by_pooled = groups.size and np.issubdtype(groups.dtype, np.integer) and groups.max() == n_models
    labels = [*range(n_models), *(["pooled"] if served_by_pooled else [])]
    return groups, labels, np.arange(len(labels))


def _match_names(groups: NDArray[Any], names: list[Any]) -> NDArray[np.intp]:
    """Find the column of each row's group; 0 and "0" name the same one."""
    codes = pd.Index([str(name) for name in names]).get_indexer(pd.Index([str(group) for group in groups.tolist()]))
    unknown = sorted({str(group) for group in groups[codes < 0].tolist()})
    if unknown:
        raise InputError(
            f"groups holds {listed(unknown[:5])}, but predictions has the columns "
            f"{listed([str(name) for name in names[:10]])}: every group needs a column of its name."
        )
    return codes


def _ask_groups(
    counts: PairedCounts, own: NDArray[np.intp], labels: list[Any], rivals: list[Any], level: float, margin: float
) -> pd.DataFrame:
    """Ask every group about the pooled classifier, then about every other group's."""
    pooled = counts.beats.shape[1] - 1
    pairs = [(g, r) for g in range(len(own)) for r in [pooled, *range(pooled)] if r == pooled or r != own[g]]
    group, rival = np.array(pairs).T
    mine = own[group]
    errors = counts.errors
    return _answer(
        {
            "group": [labels[g] for g in group],
            "kind": np.where(rival == pooled, "rationality", "envy"),
            "rival": [rivals[r] for r in rival],
            "n": counts.n_rows[group],
            "own_error": errors[group, mine],
            "rival_error": errors[group, rival],
            "own_worse": counts.beats[group, rival, mine],
            "own_better": counts.beats[group, mine, rival],
        },
        (mine == rival) & (counts.n_rows[group] > 0),
        level,
        margin,
    )


def _ask_named_groups(rows: ComparedRows, groups: NamedGroups, depth: int, level: float, margin: float) -> pd.DataFrame:
    """Ask every named group whether the classifiers that serve its people are worse for it than the pooled one."""
    by_pooled = rows.own[rows.group] == rows.right.shape[1] - 1
    outcome = 4 * by_pooled + 2 * rows.own_right.astype(np.intp) + rows.right[:, -1]
    table = groups.tabulate(outcome, 8, rows.weight, depth)
    weight = table.total.sum(axis=1)
    n_rows = weight**2 / table.squares
    shares = table.total.reshape(-1, 2, 4) / weight[:, None, None]
    both_wrong, worse, better, _ = shares.sum(axis=1).T
    return _answer(
        {
            "group": table.names,
            "kind": "rationality",
            "rival": "pooled",
            "n": n_rows,
            "own_error": both_wrong + worse,
            "rival_error": both_wrong + better,
            "own_worse": worse * n_rows,
            "own_better": better * n_rows,
        },
        shares[:, 0].sum(axis=1) == 0,  # Served by the pooled classifier, all of them.
        level,
        margin,
    )


def _answer(question: dict[str, Any], copies: NDArray[np.bool_], level: float, margin: float) -> pd.DataFrame:
    """Test, interval, verdict and rows needed for questions with their counts.

    `copies` are questions about one and the same classifier, which cannot harm. They, and questions without rows, are
    not tested, so the others are not corrected for them.
    """
    b, c, n = (np.asarray(question[name], np.float64) for name in ("own_worse", "own_better", "n"))
    asked = (n > 0) & ~copies
    share = level / max(int(asked.sum()), 1)
    p = np.asarray(mcnemar_p(b, c), np.float64)
    corrected = np.ones_like(p)
    corrected[asked] = holm(p[asked])
    low, high = paired_interval(b, c, n, confidence=1 - level)
    low, high = np.where(copies, 0.0, low), np.where(copies, 0.0, high)
    gap = question["rival_error"] - question["own_error"]
    # Also the interval must be clear of zero, or of the margin: verdict and interval never contradict each other.
    satisfied = copies | (asked & (excluded_harm(b, c, n, level=share) <= margin) & (low >= -margin))
    violated = asked & (corrected <= level) & (high < 0) & ~satisfied
    with np.errstate(invalid="ignore"):
        needed = rows_needed(np.maximum(gap + margin, -gap), (b + c) / n, level=min(share, level / 2))
    frame = pd.DataFrame(question)
    frame["n"], frame["own_worse"], frame["own_better"] = (_whole(counts) for counts in (n, b, c))
    frame.insert(6, "gap", gap)
    frame.insert(7, "low", low)
    frame.insert(8, "high", high)
    frame["p"], frame["p_corrected"] = p, corrected
    frame["verdict"] = np.select([violated, satisfied], ["violated", "satisfied"], "undecided")
    frame["rows_needed"] = np.where(asked & ~violated & ~satisfied, needed, np.nan)
    return frame


def _whole(counts: NDArray[np.float64]) -> NDArray[Any]:
    """Counts of rows as whole numbers, unless weights have made them effective numbers."""
    rounded = np.rint(counts)
    return rounded.astype(np.int64) if np.allclose(counts, rounded, rtol=0, atol=1e-6) else counts


def _compose(rows: ComparedRows, groups: NamedGroups, labels: list[Any]) -> pd.DataFrame:
    """For each value of each attribute: its rows, and the share of them that belongs to each group."""
    table = groups.tabulate(rows.group, len(labels), rows.weight, depth=1)
    frame = pd.DataFrame({"named_group": table.names, "weight": table.total.sum(axis=1)})
    shares = table.total / table.total.sum(axis=1, keepdims=True)
    return frame.join(pd.DataFrame(shares, columns=[f"in_{label}" for label in labels]))


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
