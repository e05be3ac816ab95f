"""Groups in words: how large each is, a short rule for it, what sets it apart, and how its classifier differs.

The groups are what the group classifier makes of all columns together; no short sentence says that exactly. So every
rule comes with its fidelity, measured on rows that did not make it, and all the rest are plain comparisons of the
people in a group with those outside.
"""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score, f1_score
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from dafh._text import percent, plain, render_html
from dafh._validation import to_pandas
from dafh.exceptions import InputError
from dafh.named_groups import NamedGroups
from dafh.preference import ServedPredictions

# Of more categories than this in a column, only the frequent ones are described.
_MOST_CATEGORIES = 20
# Rows that are enough to describe groups by; more only take time.
_MOST_ROWS = 50_000
_RULE_DEPTH = 3
# Gain in F1 for which a rule may get one condition longer.
_WORTH_A_LEVEL = 0.04
_SMALLEST_PROBABILITY = 1e-6
# Differences below a tenth of a standard deviation are nothing to speak of.
_SMALLEST_CONTRAST = 0.1
_SMALLEST_EFFECT = 0.05
_POOLED = "the pooled classifier"


@dataclass(frozen=True)
class Rule:
    """A short description of a group, and how well it describes."""

    text: str
    precision: float
    """Share of the rows it names that are in the group, on rows that did not make the rule."""
    recall: float
    """Share of the group that it names, on the same rows."""


@dataclass(frozen=True)
class Contrast:
    """One column in which the people of a group differ from the others."""

    column: str
    text: str
    difference: float
    """In standard deviations of the column: positive where the group has more."""


@dataclass(frozen=True)
class Effect:
    """How much one column moves the classifier of a group, and how much it moves the pooled one."""

    column: str
    own: float
    """Change of the logit by one standard deviation of the column, in the group's classifier."""
    pooled: float
    label: Any
    """Class whose logit that is."""

    @property
    def text(self) -> str:
        """Say it in words."""
        if self.own * self.pooled < 0 and min(abs(self.own), abs(self.pooled)) > _SMALLEST_EFFECT:
            how = "counts the other way round"
        else:
            how = "counts more" if abs(self.own) > abs(self.pooled) else "counts less"
        return f"{self.column} {how}: {self.own:+.2f} instead of {self.pooled:+.2f}"


@dataclass(frozen=True)
class GroupInWords:
    """What can be said about one group."""

    group: int
    rows: int
    share: float
    served_by: str
    rule: Rule | None
    contrasts: tuple[Contrast, ...]
    effects: tuple[Effect, ...]
    members: tuple[tuple[str, float, float], ...] = ()
    """For each value of each sensitive attribute: its name, its share in the group and its share among all rows."""


@dataclass(frozen=True)
class Explanation:
    """All groups in words; prints as text, in a terminal and in a notebook. Made by `explain`.

    Examples
    --------
    >>> group = GroupInWords(0, 40, 0.4, "its own classifier", Rule("age up to 30", 0.9, 0.8), (), ())
    >>> print(Explanation((group,), stability=0.9))
    Group 0: 40 rows (40.0%), served by its own classifier.
      Roughly: age up to 30 (of these 90.0% are in the group; they are 80.0% of it).
      Its classifier hardly differs from the pooled one.
    The groups depend hardly on the seed of training: the adjusted Rand index between fits is 0.90 (1: the same groups,
    0: unrelated ones).
    """

    groups: tuple[GroupInWords, ...]
    stability: float | None = None
    """Adjusted Rand index between the groups of fits with different seeds: 1 the same groups, 0 unrelated ones."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON."""
        groups = []
        for group in self.groups:
            entry = asdict(group)
            for effect, values in zip(group.effects, entry["effects"], strict=True):
                values["text"] = effect.text
            groups.append(entry)
        return plain({"groups": groups, "stability": self.stability, "stability_text": self.stability_text()})

    def stability_text(self) -> str:
        """Say how far the groups depend on the seed."""
        if self.stability is None:
            return "How far the groups depend on the seed was not measured."
        strength = "much" if self.stability < 0.4 else "partly" if self.stability < 0.8 else "hardly"
        return (
            f"The groups depend {strength} on the seed of training: the adjusted Rand index between fits is "
            f"{self.stability:.2f} (1: the same groups, 0: unrelated ones)."
        )

    def _paragraphs(self) -> list[str]:
        found = []
        for group in self.groups:
            found.append(
                f"Group {group.group}: {group.rows:,} rows ({percent(group.share)}), served by {group.served_by}."
            )
            found += [f"  {line}" for line in group_lines(group)]
        return [*found, self.stability_text()] if self.stability is not None else found

    def __str__(self) -> str:
        """Render for a terminal."""
        return "\n".join(self._paragraphs())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(*self._paragraphs())


def group_lines(group: GroupInWords) -> list[str]:
    """Rule, contrasts, effects and members of a group, a line each; what is unknown is left out."""
    lines = []
    if group.rule is not None:
        lines.append(
            f"Roughly: {group.rule.text} (of these {percent(group.rule.precision)} are in the group; they are "
            f"{percent(group.rule.recall)} of it)."
        )
    if group.contrasts:
        lines.append(f"Unlike the others: {'; '.join(contrast.text for contrast in group.contrasts)}.")
    lines.append(effect_line(group))
    if group.members:
        odd = _oddest(group.members)[:4]
        lines.append(
            f"Who: {'; '.join(f'{name} {percent(here)} (of all {percent(all_rows)})' for name, here, all_rows in odd)}."
        )
    return lines


def _oddest(members: tuple[tuple[str, float, float], ...]) -> list[tuple[str, float, float]]:
    """For each attribute the value whose share differs most from that among all rows, the largest difference first."""
    found: dict[str, tuple[str, float, float]] = {}
    for member in sorted(members, key=lambda member: -abs(member[1] - member[2])):
        found.setdefault(member[0].split(" = ")[0], member)
    return list(found.values())


def effect_line(group: GroupInWords) -> str:
    """Say how the classifier that serves a group differs from the pooled one."""
    if group.effects:
        return f"In its classifier {'; '.join(effect.text for effect in group.effects)}."
    same = "is the pooled one" if group.served_by == _POOLED else "hardly differs from the pooled one"
    return f"Its classifier {same}."


def explain(
    model: Any,
    X: Any,
    *,
    sensitive_features: Any = None,
    n_contrasts: int = 4,
    random_state: int = 0,
) -> Explanation:
    """Describe the groups that a fitted model makes of some rows.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    X : data frame or array
        Rows as the model takes them. For a pipeline these are the original columns, and so are those in the words.
    sensitive_features : data frame, series or array with as many rows, optional
        Attributes, to say who is in which group.
    n_contrasts : int, default=4
        Contrasts, and differences of the classifier, to name for each group.
    random_state : int, default=0
        Divides rows into those that make a rule and those that measure it.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from dafh import DAFHClassifier, explain
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(2000, random_state=0)
    >>> model = DAFHClassifier(random_state=0).fit(data.X, data.y)
    >>> words = explain(model, data.X)
    >>> len(words.groups), words.groups[0].rule.precision > 0.8
    (2, True)
    """
    if n_contrasts < 1:
        raise InputError(f"n_contrasts must be at least 1, got {n_contrasts!r}.")
    rng = np.random.default_rng(random_state)
    table = to_pandas(X).reset_index(drop=True)
    if not len(table):
        raise InputError("There are no rows to describe the groups by.")
    attributes = None if sensitive_features is None else to_pandas(sensitive_features).reset_index(drop=True)
    groups = ServedPredictions.of(model, X, sensitive_features).groups
    kept = np.sort(rng.permutation(len(table))[:_MOST_ROWS])
    seen = _Described.of(table.iloc[kept])
    logits = None if len(kept) < 2 else _logits(model, table.iloc[kept], X, kept, attributes)
    final = model[-1] if isinstance(model, Pipeline) else model
    described = []
    for group in range(int(groups.max()) + 1):
        inside = groups[kept] == group
        described.append(
            GroupInWords(
                group,
                int((groups == group).sum()),
                float((groups == group).mean()),
                _server(final, group),
                _rule(seen, inside, rng),
                _contrasts(seen, inside, n_contrasts),
                _effects(seen, inside, logits, final.classes_, n_contrasts),
                _members(attributes, groups == group),
            )
        )
    return Explanation(tuple(described))


def stability(model: Any, X: Any, y: ArrayLike, *, seeds: Sequence[int] = (0, 1, 2), **fit_options: Any) -> float:
    """Mean adjusted Rand index between the groups of copies of a model, fitted on the same rows with different seeds.

    Parameters
    ----------
    model : DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    X, y
        Rows to fit the copies on, and to compare their groups on.
    seeds : sequence of int, default=(0, 1, 2)
        Two or more; every seed costs one fit.
    fit_options
        Passed to `fit`.
    """
    if len(set(seeds)) < 2:
        raise InputError("At least two different seeds are needed to compare groups.")
    name = f"{model.steps[-1][0]}__random_state" if isinstance(model, Pipeline) else "random_state"
    copies = (clone(model).set_params(**{name: seed}).fit(X, y, **fit_options) for seed in seeds)
    parts = [ServedPredictions.of(copy, X, fit_options.get("sensitive_features")).groups for copy in copies]
    pairs = itertools.combinations(parts, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


def _server(final: Any, group: int) -> str:
    serves = int(final.serves_[group]) if group < len(final.serves_) else final.n_groups_
    if serves == group:
        return "its own classifier"
    return _POOLED if serves == final.n_groups_ else f"the classifier of group {serves}"


# ---- the columns, as numbers that can be put into words ----


@dataclass(frozen=True)
class _View:
    """One number per row, made from a column, and how to speak about it."""

    column: str
    category: str | None = None
    is_date: bool = False
    is_gap: bool = False

    @property
    def is_flag(self) -> bool:
        return self.category is not None or self.is_gap

    def holds(self, yes: bool) -> str:
        if self.is_gap:
            return f"{self.column} is {'missing' if yes else 'known'}"
        return f"{self.column} {'is' if yes else 'is not'} {self.category}"

    def amount(self, value: float) -> str:
        if self.is_date:
            return f"{pd.Timestamp(0) + pd.Timedelta(days=float(value)):%Y-%m-%d}"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class _Described:
    """A table as numbers, one column per view."""

    views: list[_View]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, table: pd.DataFrame) -> "_Described":
        views: list[_View] = []
        values: list[NDArray[np.float64]] = []
        for position, name in enumerate(table.columns):
            for view, numbers in _views(str(name), table.iloc[:, position]):
                views.append(view)
                values.append(numbers)
        return cls(views, np.column_stack(values))

    def standardized(self) -> NDArray[np.float64]:
        spread = self.values.std(axis=0)
        return (self.values - self.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _views(name: str, column: pd.Series) -> list[tuple[_View, NDArray[np.float64]]]:
    gaps = column.isna().to_numpy()
    found = [(_View(name, is_gap=True), gaps.astype(float))] if gaps.any() and not gaps.all() else []
    is_date = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if is_date or pd.api.types.is_numeric_dtype(column.dtype):
        numbers = (column - pd.Timestamp(0)) / pd.Timedelta(days=1) if is_date else column
        filled = numbers.astype(float).replace([np.inf, -np.inf], np.nan)
        filled = filled.fillna(filled.median() if filled.notna().any() else 0.0)
        return [(_View(name, is_date=is_date), filled.to_numpy()), *found]
    texts = column[~gaps].astype(str)
    frequent = texts.value_counts().index[:_MOST_CATEGORIES]
    return [*((_View(name, str(v)), ((column.astype(str) == v) & ~gaps).to_numpy(float)) for v in frequent), *found]


# ---- rule ----


def _rule(seen: _Described, inside: NDArray[np.bool_], rng: np.random.Generator) -> Rule | None:
    """Shallow tree for one group against the rest, made on one half of the rows and measured on the other."""
    n_rows = len(inside)
    if n_rows < 40 or inside.all() or not inside.any():
        return None
    order = rng.permutation(n_rows)
    makes, measures = order[: n_rows // 2], order[n_rows // 2 :]
    if len(np.unique(inside[makes])) < 2:
        return None
    tree = _shortest_tree(seen.values[makes], inside[makes])
    paths = [] if tree is None else _paths(tree.tree_, 0, ())
    if not paths:
        return None
    named = tree.predict(seen.values[measures])
    truly = inside[measures]
    return Rule(
        "; or ".join(_condition(seen, path) for path in paths),
        float(truly[named].mean()) if named.any() else 0.0,
        float(named[truly].mean()) if truly.any() else 0.0,
    )


def _shortest_tree(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> Any:
    """Return the shallowest tree that is nearly as good as the best of them: a word less is worth a row more.

    Trees that count all rows alike prefer to be right about few, those that balance the two sides to miss nobody.
    """
    trees: list[tuple[int, float, int, Any]] = []
    for depth in range(1, _RULE_DEPTH + 1):
        for balance in (None, "balanced"):
            tree = DecisionTreeClassifier(
                max_depth=depth, min_samples_leaf=max(len(inside) // 50, 5), class_weight=balance, random_state=0
            ).fit(values, inside)
            trees.append((depth, -f1_score(inside, tree.predict(values), zero_division=0.0), len(trees), tree))
    enough = min(score for _, score, _, _ in trees) + _WORTH_A_LEVEL
    good = [entry for entry in trees if entry[1] <= enough and entry[1] < 0]
    return min(good)[-1] if good else None


_Step = tuple[int, bool, float]
"""View, whether it lies above the threshold, threshold."""


def _paths(tree: Any, node: int, path: tuple[_Step, ...]) -> list[tuple[_Step, ...]]:
    """Ways from the root to the parts of a tree that name the group; where all leaves below do, the way ends there."""
    answers = _answers(tree, node)
    if answers == {False}:
        return []
    if answers == {True}:
        return [path] if path else []
    view, threshold = int(tree.feature[node]), float(tree.threshold[node])
    return [
        *_paths(tree, int(tree.children_left[node]), (*path, (view, False, threshold))),
        *_paths(tree, int(tree.children_right[node]), (*path, (view, True, threshold))),
    ]


def _answers(tree: Any, node: int) -> set[bool]:
    if tree.children_left[node] < 0:
        return {bool(tree.value[node, 0].argmax() == 1)}
    return _answers(tree, int(tree.children_left[node])) | _answers(tree, int(tree.children_right[node]))


def _condition(seen: _Described, path: tuple[_Step, ...]) -> str:
    """Words for a way through the tree; of several bounds on one column only the tightest are said."""
    bounds: dict[int, dict[bool, float]] = {}
    for position, above, threshold in path:  # Later steps are tighter.
        bounds.setdefault(position, {})[above] = threshold
    return " and ".join(_bounded(seen.views[p], seen.values[:, p], limits) for p, limits in bounds.items())


def _bounded(view: _View, values: NDArray[np.float64], limits: dict[bool, float]) -> str:
    """Say between which values of a column rows lie, by values that occur and not by what lies between them."""
    if view.is_flag:
        return view.holds(True in limits)
    low = view.amount(values[values > limits[True]].min()) if True in limits else ""
    high = view.amount(values[values <= limits[False]].max()) if False in limits else ""
    if not low:
        return f"{view.column} up to {high}"
    if not high:
        return f"{view.column} from {low}"
    return f"{view.column} {low}" + (f" to {high}" if high != low else "")


# ---- contrasts, effects, members ----


def _contrasts(seen: _Described, inside: NDArray[np.bool_], n_contrasts: int) -> tuple[Contrast, ...]:
    """Columns with the largest differences of means, in standard deviations; each column once."""
    if inside.all() or not inside.any():
        return ()
    standard = seen.standardized()
    difference = standard[inside].mean(axis=0) - standard[~inside].mean(axis=0)
    found: dict[str, Contrast] = {}
    for position in np.argsort(-np.abs(difference), kind="stable"):
        view, size = seen.views[position], float(difference[position])
        if len(found) == n_contrasts or abs(size) < _SMALLEST_CONTRAST:
            break
        found.setdefault(view.column, Contrast(view.column, _contrast(view, seen.values[:, position], inside), size))
    return tuple(found.values())


def _contrast(view: _View, values: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
    here, there = values[inside], values[~inside]
    if view.is_flag:
        return f"{view.holds(True)} for {percent(here.mean())} (others {percent(there.mean())})"
    return f"{view.column} {view.amount(here.mean())} on average (others {view.amount(there.mean())})"


def _logits(
    model: Any, rows: pd.DataFrame, X: Any, kept: NDArray[np.intp], attributes: pd.DataFrame | None
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Log-odds of each class by the classifier that serves a row, and by the pooled one; None without probabilities."""
    given: Any = rows if hasattr(X, "columns") else np.asarray(X)[kept]
    final, encoded = (model[-1], model[:-1].transform(given)) if isinstance(model, Pipeline) else (model, given)
    if not (hasattr(final, "predict_proba") and hasattr(final.pooled_, "predict_proba")):
        return None
    needs_attributes = getattr(getattr(final, "partition_", None), "needs_sensitive_features", False)
    options = {"sensitive_features": attributes.iloc[kept]} if needs_attributes and attributes is not None else {}
    own, pooled = final.predict_proba(encoded, **options), final.pooled_.predict_proba(encoded)
    if own.shape != pooled.shape:
        return None
    limits = (_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    return logit(own.clip(*limits)), logit(pooled.clip(*limits))


def _effects(
    seen: _Described,
    inside: NDArray[np.bool_],
    logits: tuple[NDArray[Any], NDArray[Any]] | None,
    classes: NDArray[Any],
    n_effects: int,
) -> tuple[Effect, ...]:
    """Columns whose weight changes most from the pooled classifier to the group's.

    Both are read off by the same linear fit to their logits on the rows of the group, so that classifiers of any kind
    can be compared; for linear ones it finds their weights.
    """
    if logits is None or inside.sum() < 2 * len(seen.views):
        return ()
    own, pooled = (part[inside] for part in logits)
    if np.allclose(own, pooled):
        return ()
    # With two classes the second one's logit says it all; with more, the one that changed most.
    label = 1 if own.shape[1] == 2 else int(np.abs(own - pooled).mean(axis=0).argmax())
    fit = Ridge(alpha=1.0).fit(seen.standardized()[inside], np.column_stack([own[:, label], pooled[:, label]]))
    weights = fit.coef_
    change = np.abs(weights[0] - weights[1])
    found: dict[str, Effect] = {}
    for position in np.argsort(-change, kind="stable"):
        view = seen.views[position]
        if len(found) == n_effects or change[position] < _SMALLEST_EFFECT:
            break
        name = view.holds(True) if view.is_flag else view.column
        effect = Effect(name, float(weights[0, position]), float(weights[1, position]), classes[label])
        found.setdefault(view.column, effect)
    return tuple(found.values())


def _members(attributes: pd.DataFrame | None, inside: NDArray[np.bool_]) -> tuple[tuple[str, float, float], ...]:
    if attributes is None or not inside.any():
        return ()
    table = NamedGroups.of(attributes, len(inside)).tabulate(inside.astype(np.intp), 2, np.ones(len(inside)), depth=1)
    n_inside = inside.sum()
    rows = zip(table.names, table.total, strict=True)
    return tuple((name, float(n[1] / n_inside), float(n.sum() / len(inside))) for name, n in rows)
