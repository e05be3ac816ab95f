"""Groups in words: size, rule, contrasts, differences between classifiers, and members.

Where a model divides rows by exceptions, their rules are exact. The groups of a network depend on all columns
together, and no short sentence can say that exactly: the rule that is searched for comes with its precision and
recall, measured on rows that the search has not used. Everything else compares the rows of a group with all other
rows.

To say something new about a group, compute it in `explain` and add a line to `GroupInWords.lines`.
"""

import inspect
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dafh.classifiers import (
    SMALLEST_PROBABILITY,
    GroupModel,
    class_probabilities,
    final_classifier,
    rows_at_once,
    split_pipeline,
)
from dafh.columns.bins import Binning, named_table
from dafh.columns.column import Column
from dafh.columns.kinds import is_ordered, kind_of
from dafh.evaluation.compared import ServedPredictions
from dafh.evaluation.losses import Loss, LossName
from dafh.evaluation.named_groups import NamedGroups
from dafh.exceptions import InputError
from dafh.frames import Table, dense, is_frame, take_rows, to_pandas
from dafh.groups.summary import EVERYBODY_ELSE
from dafh.regions.conditions import Condition, Region
from dafh.regions.search import RegionSearch
from dafh.text import Readable, Section, clipped, percent, plain, points, write_date, write_number

__all__ = [
    "Explanation",
    "GroupInWords",
    "Rule",
    "Stability",
    "adds_nothing",
    "explain",
    "stability",
    "worth_of_groups",
]

# Shares of this many rows are known to within half a percentage point; more rows would only take longer.
_MOST_ROWS = 50_000
# Differences below a tenth of a standard deviation are too small to characterise a group.
_SMALLEST_CONTRAST = 0.1
# In log-odds per standard deviation: this moves a probability by 1.25 percentage points at most.
_SMALLEST_EFFECT = 0.05
# For each group: columns in which it differs, columns that count differently in its classifier, and attributes.
_MOST_DIFFERENCES = 4
# Only the most frequent categories of a column are described.
_MOST_CATEGORIES = 20
# With conditions on more columns than this, a rule is no longer read as one sentence. An interval takes two steps.
_MOST_STEPS = 3
# A further condition must come this much of the way from "all rows" to a perfect rule, in F1, and a good rule that
# much. A fixed limit of F1 would praise useless rules of large groups: where half of the rows are members, calling
# every row a member already has an F1 of 0.67.
_WORTH_A_CONDITION, _GOOD_RULE = 0.1, 0.2
# With fewer rows than this, half of them are too few to measure a rule on.
_FEWEST_ROWS = 40
# An adjusted Rand index below each limit, in words.
_CHANGES = ((0.5, "change a lot"), (0.8, "change in part"), (0.95, "change little"), (np.inf, "barely change"))
# Share of the rows in a sample: half of them would ask what fewer rows find, not how sure these groups are.
_SAMPLED = 0.8
_POOLED, _OWN = "the pooled classifier", "its own classifier"


# ---- what is said about groups ----


@dataclass(frozen=True)
class Rule:
    """A rule that describes a group: exactly where it is the model's own, else approximately."""

    text: str
    precision: float
    """Share of the rows that the rule matches which are in the group."""
    recall: float
    """Share of the group's rows that the rule matches."""
    exact: bool = False
    """Whether the model itself divides rows by this rule; precision and recall are then 1."""


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
    contrasts: tuple[dict[str, Any], ...] = ()
    """Columns in which the group differs most from all other rows: column, text, and difference, that of the means in
    standard deviations of the column."""
    effects: tuple[dict[str, Any], ...] = ()
    """Columns that count differently in the classifier that serves the group: column; text; own and pooled, the change
    in the log-odds of the class `label` per standard deviation of the column."""
    members: tuple[dict[str, Any], ...] = ()
    """Values of sensitive attributes: attribute; name; text; share of the group's rows; overall, that of all rows; and
    more, their difference."""
    difference: float | None = None
    """Mean absolute difference in log-odds between the classifier that serves the group and the pooled one; None if one
    of them gives no probabilities."""
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
        """Rule, gain, contrasts, classifier and members, one line each; what is unknown is left out."""
        rule, lines = self.rule, []
        if rule is not None and rule.text == EVERYBODY_ELSE:
            lines.append("Everybody else: the rows of no exception above.")
        elif rule is not None and rule.exact:
            above = ", and no exception above holds" if self.group else ""
            lines.append(f"Exactly the rows for which {rule.text}{above}.")
        elif self.rows and self.share < 1:
            lines.append("No short rule was found for this group." if rule is None else self._approximate_rule(rule))
        if self.gain is not None:
            lines.append(self._gain_line(self.gain))
        if self.contrasts:
            lines.append(f"Compared with the other rows: {'; '.join(entry['text'] for entry in self.contrasts)}.")
        if self.effects:
            label = clipped(self.effects[0]["label"])
            differs = f"differs from the pooled one, in log-odds of class {label} per standard deviation"
            lines.append(f"Its classifier {differs}: {'; '.join(entry['text'] for entry in self.effects)}.")
        elif self.difference is not None and self.served_by != _POOLED:
            how = f"differ from those of the pooled classifier by {self.difference:.2f} on average"
            barely = "Its classifier barely differs from the pooled classifier."
            lines.append(barely if self.difference < _SMALLEST_EFFECT else f"Its log-odds {how}.")
        unusual: dict[str, str] = {}
        # Of two values that differ equally, as all pairs do, the one that the group has more of comes first, and then
        # the first by name; rounded, because the last bits of a share depend on the order of its sum.
        for member in sorted(self.members, key=lambda m: (-round(abs(m["more"]), 9), -round(m["more"], 9), m["name"])):
            unusual.setdefault(member["attribute"], member["text"])
        if unusual:
            lines.append(f"Sensitive attributes: {'; '.join(list(unusual.values())[:_MOST_DIFFERENCES])}.")
        return lines

    def _approximate_rule(self, rule: Rule) -> str:
        f1 = 2 * rule.precision * rule.recall / max(rule.precision + rule.recall, 1e-12)
        all_rows = 2 * self.share / (1 + self.share)
        good = f1 - all_rows >= _GOOD_RULE * (1 - all_rows)
        start = "Approximate rule" if good else "No short rule fits this group well. The best one found"
        return (
            f"{start}: {rule.text}. It matches {percent(rule.recall)} of the group, and {percent(rule.precision)} of "
            "the rows it matches are in the group."
        )

    def _gain_line(self, gain: float) -> str:
        who = "its classifier" if self.served_by.startswith(_OWN) else "its own classifier, which is not in use,"
        loss, limits = Loss(self.loss), ""
        if self.low is not None and self.high is not None:
            limits = f" (95% interval {points(self.low)} to {points(self.high)})"
        over = "over the pooled classifier on calibration rows"
        return f"Gain of {who} {over}: {points(gain)} {loss.unit}{loss.of_gain}{limits}."


@dataclass(frozen=True, repr=False)
class Explanation(Readable):
    """All groups in words; prints as text in a terminal and in a notebook. Made by `explain`.

    Examples
    --------
    >>> group = GroupInWords(0, "Group 0", 40, 0.4, "the pooled classifier", Rule("age is 30 or less", 0.9, 0.8))
    >>> print(Explanation((group,)))
    Group 0: 40 rows (40.0% of all), served by the pooled classifier
      Approximate rule: age is 30 or less. It matches 80.0% of the group, and 90.0% of the rows it matches are in the
    group.
    """

    groups: tuple[GroupInWords, ...]
    worth: str | None = None
    """What the groups are worth, in one sentence; None for models that were told their groups."""

    @property
    def alike(self) -> bool:
        """Whether the classifier of every group barely differs from the pooled one, as far as is known."""
        return all(group.difference is not None and group.difference < _SMALLEST_EFFECT for group in self.groups)

    @property
    def exact(self) -> bool:
        """Whether the rules are the model's own."""
        return any(group.rule is not None and group.rule.exact for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        groups = [
            vars(group) | {"rule": group.rule and vars(group.rule), "lines": group.lines()} for group in self.groups
        ]
        return dict(plain({"worth": self.worth, "exact": self.exact, "alike": self.alike, "groups": groups}))

    def sections(self) -> list[Section]:
        """What the groups are worth, and each group."""
        groups = [Section(group.heading, [f"  {line}" for line in group.lines()]) for group in self.groups]
        worth = [] if self.worth is None else [Section(self.worth)]
        return [*worth, *groups]


def server_words(final: GroupModel, group: int) -> str:
    """Say which classifier of a fitted model serves a group."""
    # Rows that belong to no group have the number after the last group; the pooled classifier serves them.
    serves = int(final.serves_[group]) if group < final.n_groups_ else final.n_groups_
    if serves == final.n_groups_:
        return _POOLED
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is not None:
        return str(exceptions.server(group))
    return _OWN if serves == group else f"the classifier of group {serves}"


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
    n_own = int((final.serves_ < final.n_groups_).sum())
    have = "has" if n_own == 1 else "have"
    return f"{final.n_groups_} groups were found; {n_own} of them {have} a classifier other than the pooled one."


# ---- describing the groups of a model ----


def explain(
    model: GroupModel | Pipeline,
    X: Table,
    *,
    sensitive_features: Table | None = None,
    random_state: int = 0,
) -> Explanation:
    """Describe the groups that a fitted model forms on some rows.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    X : data frame or array
        Rows as the model takes them. A pipeline is described in terms of its original columns.
    sensitive_features : data frame, series or array with as many rows, optional
        Attributes whose values are counted in each group. Required if the groups of the model depend on them.
    random_state : int, default=0
        Splits the rows into those that search for a rule and those that measure it.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from dafh import DAFHClassifier, explain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + rng.normal(size=600) > 0
    >>> words = explain(DAFHClassifier(2, random_state=0).fit(X, y), X)
    >>> len(words.groups), words.groups[0].rule.exact
    (2, True)
    """
    X = dense(X)
    table = named_table(X)
    if not len(table):
        raise InputError("There are no rows to describe the groups by: pass at least one.")
    attributes = None if sensitive_features is None else NamedGroups.of(sensitive_features, len(table))
    groups = ServedPredictions.of(model, X, sensitive_features).groups
    rng = np.random.default_rng(random_state)
    final = final_classifier(model)
    exceptions = getattr(final, "exceptions_", None)
    sample = np.sort(rng.permutation(len(table))[: rows_at_once(final, _MOST_ROWS)])
    numbers = _Numbers.of(table.iloc[sample])
    log_odds = _log_odds(model, X, sensitive_features, sample)
    described = []
    # A group may have no rows here, and rows that belong to no group are numbered after the last one.
    for group in range(max(final.n_groups_, int(groups.max()) + 1)):
        in_group = groups == group
        sampled = in_group[sample]
        difference, effects = _effects(numbers, sampled, log_odds, final.classes_)
        columns: list[str] = []
        details: dict[str, Any]
        if exceptions is not None and group < exceptions.n_groups > 1:
            gain = exceptions.to_frame().loc[group, ["gain", "low", "high"]].astype(float).dropna()
            details = {"rule": Rule(exceptions.rules[group], 1.0, 1.0, exact=True), "loss": exceptions.loss, **gain}
            # That the group differs in the columns of its rule goes without saying. Everybody else is who no exception
            # holds for, and depends on the columns of all.
            regions = exceptions.regions[group : group + 1] or exceptions.regions
            columns = [name for region in regions for name in region.columns]
        else:
            details = {"rule": _search_rule(table.iloc[sample], sampled, rng)}
        names = getattr(getattr(final, "partition_", None), "group_names_", None)
        name = f"Group {group}" if names is None or group >= len(names) else f"Group {group} ({clipped(names[group])})"
        described.append(
            GroupInWords(
                group,
                name if group < final.n_groups_ else "Rows in no group",
                rows=int(in_group.sum()),
                share=float(in_group.mean()),
                served_by=server_words(final, group),
                contrasts=_contrasts(numbers, sampled, set(map(clipped, columns))),
                effects=effects,
                members=() if attributes is None else _members(attributes, in_group),
                difference=difference,
                **details,
            )
        )
    return Explanation(tuple(described), worth=worth_of_groups(model))


class _View(NamedTuple):
    """What a column of `_Numbers` is about: values of a column, or whether it has one category or is missing."""

    column: str
    flag: str = ""
    """Says what holds where the number is 1, such as "job is cook"; empty for values."""
    is_date: bool = False


class _Numbers(NamedTuple):
    """A table as numbers: a view of each column of numbers or dates, of each frequent category, and of gaps."""

    views: list[_View]
    observed: NDArray[np.float64]
    """(n, views); NaN where a number is missing."""
    standardized: NDArray[np.float64]
    """The same with mean 0 and standard deviation 1, and medians where a number is missing."""

    @classmethod
    def of(cls, table: pd.DataFrame) -> "_Numbers":
        views, columns = [], []
        for position, name in enumerate(map(clipped, table.columns)):  # By position: names may occur twice.
            column = table.iloc[:, position]
            missing = column.isna().to_numpy()
            # Booleans are described as categories: "married is True in 70%", not "married averages 0.7".
            described = Column(name, kind_of(column))
            if is_ordered(described.kind):
                views.append(_View(name, is_date=described.is_date))
                columns.append(described.floats(column))
            else:
                texts = column.astype(str)
                for value in texts[~missing].value_counts().index[:_MOST_CATEGORIES]:
                    views.append(_View(name, f"{name} is {clipped(value)}"))
                    columns.append(((texts == value) & ~missing).to_numpy(float))
            if missing.any() and not missing.all():  # A flag that is the same for all rows says nothing.
                views.append(_View(name, f"{name} is missing"))
                columns.append(missing.astype(float))
        # A single column without any value has no views.
        if not views:
            return cls([], np.empty((len(table), 0)), np.empty((len(table), 0)))
        observed = np.column_stack(columns)
        scale = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
        return cls(views, observed, scale.fit_transform(observed))


def _contrasts(numbers: _Numbers, in_group: NDArray[np.bool_], left_out: set[str]) -> tuple[dict[str, Any], ...]:
    """Columns with the largest differences of means, in standard deviations; each once."""
    if in_group.all() or not in_group.any():
        return ()
    difference = numbers.standardized[in_group].mean(axis=0) - numbers.standardized[~in_group].mean(axis=0)
    contrasts: dict[str, dict[str, Any]] = {}
    # Of two views that differ equally (two categories of one column), the one that the group has more of comes first,
    # and then the first by name; rounded, because the last bits of a mean depend on the order of its sum.
    names = [view.flag or view.column for view in numbers.views]
    difference = difference.round(9)
    for position in np.lexsort((names, -difference, -np.abs(difference))):
        view, size = numbers.views[position], float(difference[position])
        if len(contrasts) == _MOST_DIFFERENCES or abs(size) < _SMALLEST_CONTRAST:
            break
        # Not of the values filled in: the average that is shown must be the one that a reader computes from the data.
        values = pd.Series(numbers.observed[:, position])
        mean, mean_outside = values[in_group].mean(), values[~in_group].mean()
        if view.column in left_out | contrasts.keys() or np.isnan(mean) or np.isnan(mean_outside):
            continue
        if view.flag:
            text = f"{view.flag} in {percent(mean)} of rows instead of {percent(mean_outside)}"
        else:
            write = write_date if view.is_date else write_number
            text = f"{view.column} averages {write(mean)} instead of {write(mean_outside)}"
        contrasts[view.column] = {"column": view.column, "text": text, "difference": size}
    return tuple(contrasts.values())


def _log_odds(
    model: GroupModel | Pipeline, X: Table, sensitive_features: Table | None, sample: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Log-odds of each class by the classifier that serves a row, and by the pooled one, (2, n, classes).

    None if one of them gives no probabilities, or if they know different classes.
    """
    final, encoded = split_pipeline(model, take_rows(X if is_frame(X) else np.asarray(X), sample))
    if not (hasattr(final, "predict_proba") and hasattr(final.pooled_, "predict_proba")):
        return None
    # An incumbent may know other classes than the groups' own classifiers, or list the same ones in another order.
    if np.setxor1d(final.pooled_.classes_, final.classes_).size:
        return None
    options = {}
    if sensitive_features is not None and "sensitive_features" in inspect.signature(final.predict_proba).parameters:
        options = {"sensitive_features": to_pandas(sensitive_features).iloc[sample]}
    serving = final.predict_proba(encoded, **options)
    if hasattr(final, "pooled_proba"):  # It knows which of the columns the pooled classifier takes.
        pooled = final.pooled_proba(encoded)
    else:
        pooled = class_probabilities(final.pooled_, encoded, final.classes_)
    # A classifier that is certain would have infinite log-odds.
    return np.asarray(logit(np.clip([serving, pooled], SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)))


def _effects(
    numbers: _Numbers,
    in_group: NDArray[np.bool_],
    log_odds: NDArray[np.float64] | None,
    classes: NDArray[Any],
) -> tuple[float | None, tuple[dict[str, Any], ...]]:
    """Mean absolute difference of a group's two log-odds, None if unknown, and columns whose effect differs most."""
    if log_odds is None or not in_group.any():
        return None, ()
    difference = np.abs(log_odds[0, in_group] - log_odds[1, in_group]).mean(axis=0)
    # Of two classes the second is described, of more the one whose log-odds differ most.
    label = 1 if len(classes) == 2 else int(difference.argmax())
    targets = log_odds[:, in_group, label].T
    effects: dict[str, dict[str, Any]] = {}
    # With fewer rows than this the weights below are mostly noise.
    if numbers.views and in_group.sum() >= 2 * len(numbers.views) and not np.allclose(targets[:, 0], targets[:, 1]):
        # The same linear fit to the log-odds of both, on the rows of the group: this compares classifiers of any kind,
        # and for linear ones it recovers their weights.
        own_weights, pooled_weights = Ridge(alpha=1.0).fit(numbers.standardized[in_group], targets).coef_
        change = np.abs(own_weights - pooled_weights).round(9)
        names = [view.flag or view.column for view in numbers.views]
        for position in np.lexsort((names, -change)):
            if len(effects) == _MOST_DIFFERENCES or change[position] < _SMALLEST_EFFECT:
                break
            view, weights = numbers.views[position], (float(own_weights[position]), float(pooled_weights[position]))
            name = view.flag or view.column
            text = f"{name} has {_effect_words(*weights)} ({weights[0]:+.2f} instead of {weights[1]:+.2f})"
            entry = {"column": name, "own": weights[0], "pooled": weights[1], "label": classes[label], "text": text}
            effects.setdefault(view.column, entry)
    return float(difference[label]), tuple(effects.values())


def _effect_words(own: float, pooled: float) -> str:
    if abs(own) <= _SMALLEST_EFFECT:
        return "almost no effect"
    if own * pooled < 0:
        return "the opposite effect"
    return "a stronger effect" if abs(own) > abs(pooled) else "a weaker effect"


def _members(attributes: NamedGroups, in_group: NDArray[np.bool_]) -> tuple[dict[str, Any], ...]:
    """How frequent each value of each attribute is in a group, and in all rows."""
    if not in_group.any():
        return ()
    members = []
    for attribute in attributes.attributes:
        codes = pd.Series(attribute.codes)
        overall, share = codes.value_counts(normalize=True), codes[in_group].value_counts(normalize=True)
        for code, name in enumerate(attribute.names):
            if code in overall:
                share_of_group, share_of_all = float(share.get(code, 0.0)), float(overall[code])
                text = f"{name} in {percent(share_of_group)} of rows (all rows: {percent(share_of_all)})"
                entry = {"attribute": attribute.name, "name": name, "text": text, "share": share_of_group}
                members.append({**entry, "overall": share_of_all, "more": share_of_group - share_of_all})
    return tuple(members)


def _search_rule(table: pd.DataFrame, in_group: NDArray[np.bool_], rng: np.random.Generator) -> Rule | None:
    """Search for the region that is most like a group on half of the rows, and measure it on the other half.

    Returns None if there are too few rows, or if no region is better than calling all rows members.
    """
    half = len(in_group) // 2
    if len(in_group) < _FEWEST_ROWS or in_group.all() or not in_group.any():
        return None
    order = rng.permutation(len(in_group))
    searched, measured = order[:half], order[half:]
    member = in_group[searched]
    if member.all() or not member.any():
        return None
    kinds = [kind_of(table.iloc[:, position]) for position in range(table.shape[1])]
    # True and false are categories: "married is True", not "married is above 0".
    columns = [
        Column.learn(table.iloc[:, position], "category" if kind == "flag" else kind, readable=True)
        for position, kind in enumerate(kinds)
    ]
    binning = Binning(tuple(columns))
    codes = binning.codes(table)
    search = RegionSearch(binning, codes[searched], np.column_stack([np.ones(half), member]), _f1, max(half // 50, 5))
    candidates = search.best(_MOST_STEPS)
    best = max((candidate.score for candidate in candidates), default=0.0)
    all_rows = 2 * member.mean() / (1 + member.mean())
    worth = _WORTH_A_CONDITION * (1 - all_rows)
    if best <= all_rows + worth:
        return None
    # The fewest conditions whose F1 is close to the best.
    close = [candidate for candidate in candidates if candidate.score >= best - worth]
    shortest = min(close, key=lambda candidate: (len(candidate.bins), -candidate.score))
    matched, member = shortest.rows(codes[measured]), in_group[measured]
    # Not `Candidate.region`, which takes columns of the same name for one column.
    region = Region(tuple(Condition.of_bins(binning.columns[column], bins) for column, bins in shortest.bins.items()))
    return Rule(
        str(region),
        precision=float(member[matched].mean()) if matched.any() else 0.0,
        recall=float(matched[member].mean()) if member.any() else 0.0,
    )


def _f1(matched: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 of regions, from the numbers of rows and of members."""
    return 2 * matched[:, 1] / (matched[:, 0] + matched[:, 1] + others[:, 1])


# ---- how sure groups are ----


class Stability(NamedTuple):
    """How alike the groups are that a model forms when it is fitted on other samples of the rows."""

    rand_index: float
    """Adjusted Rand index, its mean over all pairs of fits: 1 for the same groups, about 0 for unrelated ones."""
    n_fits: int

    def __str__(self) -> str:
        """Render for a terminal."""
        change = next(words for limit, words in _CHANGES if self.rand_index < limit)
        return (
            f"The groups {change} with the rows that they are learned from: the adjusted Rand index between "
            f"{self.n_fits} fits on random samples of {_SAMPLED:.0%} of the rows is {self.rand_index:.2f} (1: the same "
            "groups, 0: no more alike than random groups)."
        )


def stability(
    model: GroupModel | Pipeline,
    X: Table,
    y: ArrayLike,
    *,
    sensitive_features: Table | None = None,
    n_fits: int = 3,
    random_state: int = 0,
) -> Stability:
    """Fit copies of a model on random samples of the rows, and compare the groups that they form.

    Parameters
    ----------
    model : DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
        Fitted or not; it is left as it is.
    X, y
        The copies are fitted on samples of 80% of the rows of each class, and compared on all rows.
    sensitive_features : data frame, series or array with as many rows, optional
        For a model whose groups depend on them.
    n_fits : int, default=3
        Two or more.
    random_state : int, default=0
        Draws the samples; the copies keep the `random_state` of the model.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.explanation import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + rng.normal(size=1000) / 2 > 0
    >>> print(stability(DAFHClassifier(2, random_state=0), X, y))
    The groups barely change with the rows that they are learned from: ...
    """
    if n_fits < 2:
        raise InputError("n_fits must be at least 2: groups of one fit cannot be compared.")
    X = dense(X)
    X = X if is_frame(X) else np.asarray(X)
    labels, attributes = np.asarray(y), None if sensitive_features is None else to_pandas(sensitive_features)
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    groups = []
    samples = StratifiedShuffleSplit(n_fits, train_size=_SAMPLED, random_state=random_state)
    for sample, _ in samples.split(labels, labels):
        options = {} if attributes is None else {f"{prefix}sensitive_features": attributes.iloc[sample]}
        copy = clone(model).fit(take_rows(X, sample), labels[sample], **options)
        groups.append(ServedPredictions.of(copy, X, sensitive_features).groups)
    pairs = itertools.combinations(groups, 2)
    return Stability(float(np.mean([adjusted_rand_score(*pair) for pair in pairs])), n_fits)
