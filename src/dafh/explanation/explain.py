"""Groups in words: how large each is, a short rule for it, what sets it apart, and how its classifier differs.

The groups are what the group classifier makes of all columns together; no short sentence says that exactly. So every
rule comes with its fidelity, measured on rows that did not make it, and all the rest are plain comparisons of the
people in a group with those outside.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.linear_model import Ridge

from dafh.classifiers.pipelines import final_classifier, split_pipeline
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.served import ServedPredictions
from dafh.exceptions import InputError
from dafh.explanation.rules import find_rule
from dafh.explanation.views import Described, View
from dafh.explanation.words import SMALLEST_EFFECT, Contrast, Effect, Explanation, GroupInWords, Member, server_words
from dafh.frames import to_pandas
from dafh.text import percent

# Rows that are enough to describe groups by; more only take time.
_MOST_ROWS = 50_000
_SMALLEST_PROBABILITY = 1e-6
# Differences below a tenth of a standard deviation are nothing to speak of.
_SMALLEST_CONTRAST = 0.1


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
    final = final_classifier(model)
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
    final, encoded = split_pipeline(model, given)
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
        if len(found) == n_effects or change[position] < SMALLEST_EFFECT:
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
