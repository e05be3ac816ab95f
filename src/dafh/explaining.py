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
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline

from dafh._rules import Described, Rule, View, find_rule
from dafh._text import clipped, percent, plain, render_html
from dafh._validation import to_pandas
from dafh.exceptions import InputError
from dafh.named_groups import NamedGroups
from dafh.preference import ServedPredictions

# Rows that are enough to describe groups by; more only take time.
_MOST_ROWS = 50_000
_SMALLEST_PROBABILITY = 1e-6
# Differences below a tenth of a standard deviation are nothing to speak of.
_SMALLEST_CONTRAST = 0.1
_SMALLEST_EFFECT = 0.05
_POOLED = "the pooled classifier"


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
        if abs(self.own) <= _SMALLEST_EFFECT:
            how = "hardly counts"
        elif self.own * self.pooled < 0:
            how = "counts the other way round"
        else:
            how = "counts more" if abs(self.own) > abs(self.pooled) else "counts less"
        return f"{self.column} {how}: {self.own:+.2f} instead of {self.pooled:+.2f}"


@dataclass(frozen=True)
class Member:
    """People with one value of a sensitive attribute."""

    attribute: str
    name: str
    """Attribute and value."""
    share: float
    """In the group."""
    overall: float
    """Among all rows."""


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
    members: tuple["Member", ...] = ()


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
            return "How far the groups depend on the seed of training was not measured (--seeds 3 does)."
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
        odd = (f"{m.name}: {percent(m.share)} (of all {percent(m.overall)})" for m in _oddest(group.members)[:4])
        lines.append(f"Who: {'; '.join(odd)}.")
    return lines


def _oddest(members: tuple[Member, ...]) -> list[Member]:
    """For each attribute the value whose share differs most from that among all rows, the largest difference first."""
    found: dict[str, Member] = {}
    for member in sorted(members, key=lambda member: -abs(member.share - member.overall)):
        found.setdefault(member.attribute, member)
    return list(found.values())


def effect_line(group: GroupInWords) -> str:
    """Say how the classifier that serves a group differs from the pooled one."""
    if group.effects:
        unit = f"change of the log-odds of {clipped(group.effects[0].label)} by one standard deviation"
        return f"In its classifier {'; '.join(effect.text for effect in group.effects)} ({unit})."
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
    >>> data = make_paper_synthetic(4000, random_state=0)
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
    seen = Described.of(table.iloc[kept])
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
                server_words(final, group),
                find_rule(seen, inside, rng),
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


def server_words(final: Any, group: int) -> str:
    """Say which classifier of a fitted model serves a group."""
    serves = int(final.serves_[group]) if group < len(final.serves_) else final.n_groups_
    if serves == group:
        return "its own classifier"
    return _POOLED if serves == final.n_groups_ else f"the classifier of group {serves}"


# ---- contrasts, effects, members ----


def _contrasts(seen: Described, inside: NDArray[np.bool_], n_contrasts: int) -> tuple[Contrast, ...]:
    """Columns with the largest differences of means, in standard deviations; each column once."""
    if inside.all() or not inside.any():
        return ()
    standard = seen.standardized
    difference = standard[inside].mean(axis=0) - standard[~inside].mean(axis=0)
    found: dict[str, Contrast] = {}
    for position in np.argsort(-np.abs(difference), kind="stable"):
        view, size = seen.views[position], float(difference[position])
        if len(found) == n_contrasts or abs(size) < _SMALLEST_CONTRAST:
            break
        found.setdefault(view.column, Contrast(view.column, _contrast(view, seen.values[:, position], inside), size))
    return tuple(found.values())


def _contrast(view: View, values: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
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
    seen: Described,
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
    fit = Ridge(alpha=1.0).fit(seen.standardized[inside], np.column_stack([own[:, label], pooled[:, label]]))
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


def _members(attributes: pd.DataFrame | None, inside: NDArray[np.bool_]) -> tuple[Member, ...]:
    if attributes is None or not inside.any():
        return ()
    found = []
    for attribute in NamedGroups.of(attributes, len(inside)).attributes:
        alone = NamedGroups([attribute]).tabulate(inside.astype(np.intp), 2, np.ones(len(inside)), depth=1)
        for name, (outside, members) in zip(alone.names, alone.total, strict=True):
            shares = float(members / inside.sum()), float((outside + members) / len(inside))
            found.append(Member(attribute.name, name, *shares))
    return tuple(found)
