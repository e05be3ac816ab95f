"""Tables of rivals: what each gains, whom it harms, and the paper's table of related work with measured columns."""

import numpy as np
import pandas as pd

from research.paper.plan import DATASETS
from research.paper.rivals import PARTLY
from research.paper.tables import number
from research.rivals.baselines import RIVALS

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
}
OURS = ("Exceptions", "Network")
_SHARES = ["to_pooled", "worst_accuracy", "pooled_worst", "people_harmed", "disagreement"]


def lines_of(results: pd.DataFrame) -> pd.DataFrame:
    """Results of rivals with the columns that name a line of the table, and figures in percent."""
    lines = results.rename(columns={"tuned": "tuned by"})
    lines["method"] = lines["method"].str.removeprefix("rival-").map(NAMES)
    lines["method"] = pd.Categorical(lines["method"], list(NAMES.values()))
    lines["tuned by"] = pd.Categorical(lines["tuned by"], ["–", "log-loss", "antigone"])
    lines["guarded"] = lines["guarded"].astype(bool)
    lines[_SHARES] = 100 * lines[_SHARES].astype(float)
    return lines


def splits_of(results: pd.DataFrame) -> str:
    """Say on how many splits of each data set the tables rest."""
    splits = results.groupby("dataset")["split"].nunique()
    return f"Random splits: {', '.join(f'{d} {splits.get(d, 0)}' for d in DATASETS)}."


def means_table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean of each figure: first over the splits of a data set, then over data sets."""
    lines = lines_of(results)
    # With the guard, all rivals are nearly the pooled classifier: their family stands for them.
    groups = lines[~lines["guarded"] | lines["method"].isin(OURS)].groupby(
        ["method", "guarded", "tuned by"], observed=True
    )
    return pd.DataFrame(
        [
            {"method": method + (", with the guard" if guarded else ""), "tuned by": tuned} | _means(members)
            for (method, guarded, tuned), members in groups
        ]
    )


def _means(lines: pd.DataFrame) -> dict[str, str]:
    means = lines.groupby("dataset")[_SHARES].mean().mean()
    return {
        "accuracy to pooled": number(means["to_pooled"], 2, "+"),
        "worst group's": number(means["worst_accuracy"] - means["pooled_worst"], 1, "+"),
        "fits with harm": _fits(lines),
        "people in harmed groups": number(means["people_harmed"]),
        "decided differently": number(means["disagreement"]),
    }


def _fits(lines: pd.DataFrame) -> str:
    return f"{int((lines['n_harmed'] > 0).sum())} of {len(lines)}"


def families_table(results: pd.DataFrame) -> pd.DataFrame:
    """The same for families of methods: rivals with and without guard, ours, and stronger plain models."""
    lines = lines_of(results)
    guarded, method = lines["guarded"], lines["method"]
    rivals, partly, plain = (
        method.isin([NAMES[name] for name in names]) for names in (RIVALS, PARTLY, ("scorecard", "boosting"))
    )
    ours = method.isin(OURS)
    families = {
        "the five rivals without attributes": rivals & ~guarded,
        "of these, DRO, ARL and Blind Pareto Fairness": method.isin(["DRO", "ARL", "Blind Pareto Fairness"]) & ~guarded,
        "the five, under our guard": rivals & guarded,
        "rivals that need the attribute of some rows": partly,
        "DAFH, the paper's": method == NAMES["paper-row"],
        "our exceptions and network without a guard": ours & ~guarded,
        "our exceptions and network": ours & guarded,
        "scorecard and gradient boosting": plain,
    }
    return pd.DataFrame(
        [{"methods": name} | _means(lines[members]) for name, members in families.items() if members.any()]
    )


def harmed_table(results: pd.DataFrame) -> pd.DataFrame:
    """Who is shown to be harmed by each method without a guard: the named group that is harmed most often."""
    lines = lines_of(results)
    rows = []
    for method, fits in lines[~lines["guarded"]].groupby("method", observed=True):
        harmed = [text for d in DATASETS if (text := _who(fits[fits["dataset"] == d]))]
        rows += [{"method": method, "who is shown to be harmed": "; ".join(harmed)}] if harmed else []
    return pd.DataFrame(rows)


def _who(fits: pd.DataFrame) -> str:
    """A named group of one data set, of one attribute rather than of a pair."""
    harmed = fits.loc[fits["n_harmed"] > 0, "harmed"]
    counts = harmed.str.split("; ").explode().value_counts()
    if not len(counts):
        return ""
    first = min(counts.index, key=lambda name: (" & " in name, -counts[name], name))
    return f"{fits['dataset'].iloc[0]}: {first} ({counts[first]} of {len(fits)})"


# The ticks of the paper's table: preference-based, no harm, without sensitive attributes, intersections.
_RELATED = {
    "zafar": ("Zafar et al. 2017", "✓✓✗✗", "all, also to predict"),
    "treelr": ("Ustun et al. 2019", "✓✓✗✓", "all, also to predict"),
    "arl": ("Lahoti et al. 2020", "✗✗✓✓", "none"),
    "shared-latent": ("Islam et al. 2024", "✗✗✓✗", "a quarter, to train"),
    "influence-sampling": ("Pang et al. 2024", "✗✓✓✗", "a fifth, to validate"),
    "paper-row": ("DAFH, the paper's", "✓✓✓✓", "none"),
    "exceptions": ("Exceptions, with the guard", "––––", "none"),
}


def related_work(results: pd.DataFrame) -> pd.DataFrame:
    """The paper's table of related work, with what we measured after each tick."""
    lines = lines_of(results)
    rows = []
    for name, (system, ticks, attributes) in _RELATED.items():
        fits = lines[(lines["method"] == NAMES[name]) & (lines["guarded"] == (name == "exceptions"))]
        preferring = fits["preferring"].mean() if "preferring" in fits else np.nan
        measured = {
            "preference-based": "one classifier" if np.isnan(preferring) else f"{100 * preferring:.0f}%",
            "no harm": _fits(fits),
            "without attributes": attributes,
            "intersections": f"{int((fits['pairs_harmed'] > 0).sum())} of {len(fits)}",
        }
        change = fits.groupby("dataset")["to_pooled"].mean().mean()
        row = {"system": system}
        row |= {title: f"{tick} {text}" for tick, (title, text) in zip(ticks, measured.items(), strict=True)}
        rows.append(row | {"accuracy": number(change, 2, "+")})
    return pd.DataFrame(rows)
