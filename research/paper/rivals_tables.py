"""Tables of rivals: what each gains, whom it harms, and the paper's table of related work with measured columns."""

from typing import Any

import numpy as np
import pandas as pd

from research.paper.plan import DATASETS
from research.paper.rivals import PARTLY, TRAINED
from research.paper.tables import number

NAMES = {
    "pooled": "Pooled, converged",
    "mlp": "Network, plain",
    "scorecard": "Scorecard",
    "boosting": "Gradient boosting",
    "paper-row": "DAFH",
    "exceptions": "Exceptions",
    "network": "Network",
    "treelr": "TreeLR (sees attributes)",
    "zafar": "Zafar (sees the attribute)",
    "shared-latent": "Shared latent",
    "influence-sampling": "Pang et al.",
    "dro": "DRO",
    "arl": "ARL",
    "bpf": "Blind Pareto Fairness",
    "jtt": "JTT",
    "george": "GEORGE",
    "residual-boosting": "Boosting on residuals",
}
NOTE = (
    "All are compared with logistic regression, fitted to convergence on all training rows (pooled). Accuracies and "
    "shares in percent, gains and differences in percentage points; every data set counts alike. Worst group: of the "
    "named groups with at least 50 test rows, which are the values of the attributes of a data set and their pairs. "
    "Groups harmed: named groups with a higher error rate than with pooled, shown by the audit (Holm, level 5%). "
    "CPU seconds include tuning."
)
LINE = ["method", "model", "tuned by", "guard"]
_ORDER = {
    "dataset": list(DATASETS),
    "model": ["–", "linear", "network"],
    "method": list(NAMES.values()),
    "tuned by": ["–", "log-loss", "antigone"],
    "guard": ["no", "yes"],
}
_MOST_NAMED = 3


def lines_of(results: pd.DataFrame) -> pd.DataFrame:
    """Results of rivals with the columns that name a line of the table, and figures in percent."""
    lines = results.copy()
    parts = [_parts(text) for text in lines["method"].str.removeprefix("rival-")]
    lines["method"], lines["model"] = [NAMES[name] for name, _ in parts], [model for _, model in parts]
    lines["tuned by"] = lines["tuned"]
    lines["guard"] = np.where(lines["guarded"].astype(bool), "yes", "no")
    for name in ("to_pooled", "worst_accuracy", "pooled_worst", "people_harmed", "disagreement"):
        lines[name] = 100 * lines[name].astype(float)
    places = pd.DataFrame({name: lines[name].map(_ORDER[name].index) for name in _ORDER})
    first = [NAMES[name] for name in list(NAMES)[: list(NAMES).index("dro")]]
    places["model"] = places["model"].where(~lines["method"].isin(first), -1)
    order = places.assign(split=lines["split"]).sort_values([*_ORDER, "split"], kind="stable").index
    order = places.loc[order].sort_values(["model", "method", "tuned by", "guard"], kind="stable").index
    return lines.loc[order]


def _parts(name: str) -> tuple[str, str]:
    """Method and model class of the name of a job."""
    for method in TRAINED:
        if name.startswith(f"{method}-"):
            return method, name.removeprefix(f"{method}-")
    plain = {"mlp": "network", "scorecard": "–", "boosting": "–", "residual-boosting": "–"}
    return name, plain.get(name, "linear")


def means_table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean of each figure: first over the splits of a data set, then over data sets."""
    lines = lines_of(results)
    figures = ["to_pooled", "worst_accuracy", "pooled_worst", "n_harmed", "people_harmed", "disagreement", "seconds"]
    means = lines.groupby([*LINE, "dataset"], sort=False)[figures].mean().groupby(LINE, sort=False).mean().reset_index()
    shown = means[LINE].copy()
    shown["accuracy to pooled"] = [number(value, 2, "+") for value in means["to_pooled"]]
    shown["worst group's accuracy"] = [number(value, 1) for value in means["worst_accuracy"]]
    shown["to pooled"] = [number(value, 1, "+") for value in means["worst_accuracy"] - means["pooled_worst"]]
    for name, title in (("n_harmed", "groups harmed"), ("people_harmed", "people in them")):
        shown[title] = [number(value, 1) for value in means[name]]
    shown["fits with harm"] = [_fits(part) for _, part in lines.groupby(LINE, sort=False)]
    shown["disagreement"] = [number(value, 1) for value in means["disagreement"]]
    shown["seconds"] = [number(value, 1) for value in means["seconds"]]
    shown["data sets"] = [part["dataset"].nunique() for _, part in lines.groupby(LINE, sort=False)]
    return shown


def _fits(part: pd.DataFrame) -> str:
    return f"{int((part['n_harmed'] > 0).sum())} of {len(part)}"


def harmed_table(results: pd.DataFrame) -> pd.DataFrame:
    """Who is shown to be harmed: for each line with any harm, data sets and named groups, the most frequent first."""
    rows = []
    for key, part in lines_of(results).groupby(LINE, sort=False):
        where = [_who(dataset, part[part["dataset"] == dataset]) for dataset in DATASETS]
        if any(where):
            named: Any = dict(zip(LINE, key, strict=True))
            rows.append({**named, "who is shown to be harmed (splits)": "; ".join(text for text in where if text)})
    return pd.DataFrame(rows)


def _who(dataset: str, part: pd.DataFrame) -> str:
    """Named groups of one data set, groups of one attribute before pairs."""
    harmed = part[part["n_harmed"] > 0]
    if not len(harmed):
        return ""
    counts = harmed["harmed"].str.split("; ").explode().value_counts()
    order = sorted(counts.index, key=lambda name: (" & " in name, -counts[name], name))[:_MOST_NAMED]
    listed = ", ".join(f"{name} ({counts[name]} of {len(part)})" for name in order)
    more = int(harmed["n_harmed"].max()) - len(order)
    return f"{dataset}: {listed}" + (f" and up to {more} more" if more > 0 else "")


def sentences(results: pd.DataFrame) -> list[str]:
    """Say what the table shows, in figures: rivals with and without guard, DAFH, and stronger plain models."""
    lines = lines_of(results)
    guard, method = lines["guard"] == "yes", lines["method"]
    rival = method.isin([NAMES[name] for name in TRAINED])
    ours = method.isin([NAMES["exceptions"], NAMES["network"]])
    mild = method.isin([NAMES["dro"], NAMES["arl"]]) & (lines["tuned by"] == "log-loss")
    families = {
        "The five rivals without a guard": lines[rival & ~guard],
        "Of these, DRO and ARL tuned by log-loss": lines[mild & ~guard],
        "The five rivals with the guard": lines[rival & guard],
        "The paper's algorithm": lines[method == NAMES["paper-row"]],
        "Our exceptions and network without a guard": lines[ours & ~guard],
        "Our exceptions and network with the guard": lines[ours & guard],
        "Stronger plain models, scorecard and gradient boosting": lines[
            method.isin([NAMES["scorecard"], NAMES["boosting"]])
        ],
        "Rivals that need the attribute of some rows": lines[method.isin([NAMES[name] for name in PARTLY])],
    }
    return [_sentence(name, part) for name, part in families.items() if len(part)]


def _sentence(name: str, part: pd.DataFrame) -> str:
    lifted = (part["worst_accuracy"] - part["pooled_worst"]).mean()
    change = number(part["to_pooled"].mean(), 2, "+")
    return (
        f"{name}: a named group is shown to be harmed in {_fits(part)} fits, with "
        f"{part['people_harmed'].mean():.1f}% of the people in such groups on average; accuracy changes by {change} "
        f"percentage points, and that of the worst named group by {number(lifted, 2, '+')}."
    )


# The ticks of the paper's table: preference-based, no harm, without sensitive attributes, intersections.
_RELATED = {
    "zafar": ("Zafar et al. 2017", "✓✓✗✗", "of all rows, also to predict"),
    "treelr": ("Ustun et al. 2019", "✓✓✗✓", "of all rows, also to predict"),
    "arl": ("Lahoti et al. 2020", "✗✗✓✓", "none"),
    "shared-latent": ("Islam et al. 2024, shared latent", "✗✗✓✗", "of a quarter of the rows, to train"),
    "influence-sampling": ("Pang et al. 2024", "✗✓✓✗", "of a fifth of the rows, to validate"),
    "paper-row": ("DAFH, the paper's", "✓✓✓✓", "none"),
    "exceptions": ("Exceptions, with the guard", "not in the paper", "none"),
}


def related_work(results: pd.DataFrame) -> pd.DataFrame:
    """The paper's table of related work, with what we measured beside each tick."""
    lines = lines_of(results)
    rows = []
    for name, (cited, ticks, attributes) in _RELATED.items():
        part = lines[lines["method"] == NAMES[name]]
        part = part[part["guard"] == ("yes" if name == "exceptions" else "no")]
        marks = list(ticks) if len(ticks) == 4 else ["–"] * 4
        many = "preferring" in part and part["preferring"].notna().any()
        preferring = f"{100 * part['preferring'].mean():.0f}% of its groups" if many else "one classifier for all"
        change = part.groupby("dataset")["to_pooled"].mean().mean()
        harmed = f"{_fits(part)} fits harm a named group; accuracy {number(change, 2, '+')}"
        pairs = f"{int((part['pairs_harmed'] > 0).sum())} of {len(part)} fits harm a pair"
        measured = (preferring, harmed, attributes, pairs)
        row = {"system": cited}
        titles = ("preference-based", "no harm", "without attributes", "intersections")
        asked = ("prefers its own classifier", "harm, measured", "attributes used", "harm of intersections, measured")
        for title, mark, question, answer in zip(titles, marks, asked, measured, strict=True):
            row |= {title: mark, question: answer}
        rows.append(row)
    return pd.DataFrame(rows)
