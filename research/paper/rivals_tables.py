"""Tables of the rivals: one line for each method, way of tuning and guard, over splits and over data sets."""

from typing import Any

import numpy as np
import pandas as pd

from research.paper.rivals import PREFIX, TRAINED, YARDSTICKS
from research.paper.tables import DATASETS, paired_mean

NAMES = {
    "pooled": "Pooled, converged",
    "mlp": "Network, plain",
    "scorecard": "Scorecard",
    "boosting": "Gradient boosting",
    "dafh-exceptions": "DAFH, exceptions",
    "dafh-network": "DAFH, network",
    "dro": "DRO",
    "arl": "ARL",
    "bpf": "Blind Pareto Fairness",
    "jtt": "JTT",
    "george": "GEORGE",
    "residual-boosting": "Boosting on residuals",
    "zafar": "Zafar (sees the attribute)",
}
RIVALS_NOTE = (
    "All are compared with logistic regression, fitted to convergence on all training rows (pooled). Accuracies and "
    "shares in percent, gains and differences in percentage points; means over splits. Worst group: of the named "
    "groups with at least 50 test rows, which are the values of the attributes of a data set and their pairs. Groups "
    "harmed: named groups with a higher error rate than with pooled, shown by the audit (Holm, level 5%). Seconds "
    "include tuning, while other jobs ran on the same cores."
)
LINE = ["method", "model", "tuned by", "guard"]
_MOST_NAMED = 4


def lines_of(results: pd.DataFrame) -> pd.DataFrame:
    """Results of rivals with the columns that name a line of the table, and one figure per column."""
    mine = results[results["method"].str.startswith(PREFIX)].copy()
    name = mine["method"].str.removeprefix(PREFIX)
    parts = [_parts(text) for text in name]
    mine["method"] = [NAMES[method] for method, _ in parts]
    mine["model"] = [model for _, model in parts]
    mine["tuned by"] = mine["tuned"].replace("", "–")
    mine["guard"] = np.where(mine["guarded"].astype(bool), "yes", "no")
    figures = {
        "to pooled": 100 * (mine["accuracy"] - mine["pooled_accuracy"]).astype(float),
        "log-loss to pooled": (mine["log_loss"] - mine["pooled_log_loss"]).astype(float),
        "worst accuracy": 100 * mine["worst_accuracy"].astype(float),
        "worst accuracy of pooled": 100 * mine["pooled_worst_accuracy"].astype(float),
        "worst gain": 100 * mine["worst_gain"].astype(float),
        "harmed groups": mine["harmed"].map(len).astype(float),
        "people harmed": 100 * mine["people_harmed"].astype(float),
        "disagreement": 100 * mine["disagreement"].astype(float),
        "seconds": mine["seconds"].astype(float),
    }
    return mine[["dataset", "split", *LINE, "harmed"]].assign(**figures)


def _parts(name: str) -> tuple[str, str]:
    """Method and model class of the name of a job."""
    for method in TRAINED:
        if name.startswith(f"{method}-"):
            return method, name.removeprefix(f"{method}-")
    plain = {
        "pooled": "linear",
        "mlp": "network",
        "dafh-exceptions": "linear",
        "dafh-network": "linear",
        "zafar": "linear",
    }
    return name, plain.get(name, "–")


def summarize_rivals(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over splits of each figure, by data set and line; accuracy to pooled with its paired 95% interval."""
    lines = lines_of(results)
    rows = []
    for key, part in lines.groupby(["dataset", *LINE], sort=False):
        _, low, high = paired_mean(part["to pooled"])
        means = part.drop(columns=["dataset", "split", *LINE, "harmed"]).mean()
        named: Any = dict(zip(["dataset", *LINE], key, strict=True))
        rows.append(
            {**named, **means, "to pooled low": low, "to pooled high": high, "splits with harm": _any_harm(part)}
        )
    return _ordered(pd.DataFrame(rows))


def _any_harm(part: pd.DataFrame) -> float:
    return float((part["harmed groups"] > 0).mean())


def _ordered(summary: pd.DataFrame) -> pd.DataFrame:
    """Sort by data set, model class, method, tuning and guard, as a reader expects them."""
    places = {
        "dataset": list(DATASETS),
        "model": ["–", "linear", "network"],
        "method": list(NAMES.values()),
        "tuned by": ["–", "log-loss", "antigone"],
        "guard": ["no", "yes"],
    }
    first = [NAMES[name] for name in (*YARDSTICKS, "dafh-exceptions", "dafh-network")]
    keys = {name: summary[name].map(places[name].index) for name in places if name in summary}
    keys["model"] = keys["model"].where(~summary["method"].isin(first), -1)
    order = pd.DataFrame(keys).sort_values(list(keys), kind="stable").index
    return summary.loc[order].reset_index(drop=True)


def over_data_sets(summary: pd.DataFrame) -> pd.DataFrame:
    """Mean of each figure over data sets, all of which count alike."""
    figures = summary.drop(columns=["dataset", *LINE, "to pooled low", "to pooled high"]).columns
    return _ordered(summary.groupby(LINE, sort=False)[list(figures)].mean().reset_index())


def display_rivals(summary: pd.DataFrame) -> pd.DataFrame:
    """Format a summary for readers."""
    shown = pd.DataFrame({"data set": summary["dataset"]} if "dataset" in summary else {}, index=summary.index)
    shown[LINE] = summary[LINE]
    shown["accuracy to pooled"] = [_signed(value, 2) for value in summary["to pooled"]]
    if "to pooled low" in summary:
        limits = zip(summary["to pooled low"], summary["to pooled high"], strict=True)
        within = ["" if np.isnan(low) else f" ({low:+z.2f} to {high:+z.2f})" for low, high in limits]
        shown["accuracy to pooled"] += within
    shown["log-loss to pooled"] = [_signed(value, 3) for value in summary["log-loss to pooled"]]
    shown["worst group's accuracy"] = [f"{value:.1f}" for value in summary["worst accuracy"]]
    shown["to pooled"] = [
        _signed(value, 1) for value in summary["worst accuracy"] - summary["worst accuracy of pooled"]
    ]
    shown["worst group's gain"] = [_signed(value, 1) for value in summary["worst gain"]]
    shown["groups harmed"] = [f"{value:.1f}" for value in summary["harmed groups"]]
    shown["people in them"] = [f"{value:.1f}" for value in summary["people harmed"]]
    shown["disagreement"] = [f"{value:.1f}" for value in summary["disagreement"]]
    shown["seconds"] = [f"{value:.1f}" for value in summary["seconds"]]
    return shown


def _signed(value: float, digits: int) -> str:
    return f"{value:+z.{digits}f}"


def harmed_table(results: pd.DataFrame) -> pd.DataFrame:
    """Who is shown to be harmed: for each line with any harm, data sets and named groups, the most frequent first."""
    lines = lines_of(results)
    rows = []
    for key, part in lines.groupby(LINE, sort=False):
        if not part["harmed groups"].any():
            continue
        where = [_who(dataset, part[part["dataset"] == dataset]) for dataset in DATASETS]
        named: Any = dict(zip(LINE, key, strict=True))
        rows.append({**named, "who is shown to be harmed (splits)": "; ".join(text for text in where if text)})
    columns = [*LINE, "who is shown to be harmed (splits)"]
    return _ordered(pd.DataFrame(rows, columns=columns)) if rows else pd.DataFrame(columns=columns)


def _who(dataset: str, part: pd.DataFrame) -> str:
    """Named groups of one data set, groups of one attribute before pairs."""
    names = pd.Series([name for harmed in part["harmed"] for name in harmed], dtype=object)
    if not len(names):
        return ""
    counts = names.value_counts()
    order = sorted(counts.index, key=lambda name: (" & " in name, -counts[name], name))
    listed = [f"{name} ({counts[name]} of {len(part)})" for name in order[:_MOST_NAMED]]
    more = len(order) - len(listed)
    return f"{dataset}: {', '.join(listed)}" + (f" and {more} more" if more else "")


def verdict_sentences(results: pd.DataFrame) -> list[str]:
    """Say what the table shows, in figures: rivals with and without guard, DAFH, and stronger plain models."""
    return [_sentence(name, part) for name, part in _families(results).items() if len(part)]


def _families(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    lines = lines_of(results)
    rival = lines["method"].isin([NAMES[name] for name in TRAINED])
    ours = lines["method"].isin([NAMES["dafh-exceptions"], NAMES["dafh-network"]])
    mild = lines["method"].isin([NAMES["dro"], NAMES["arl"]]) & (lines["tuned by"] == "log-loss")
    strong = lines["method"].isin([NAMES["scorecard"], NAMES["boosting"]])
    guard = lines["guard"] == "yes"
    return {
        "The five rivals without a guard": lines[rival & ~guard],
        "Of these, DRO and ARL tuned by log-loss": lines[mild & ~guard],
        "The five rivals with the guard": lines[rival & guard],
        "DAFH without a guard": lines[ours & ~guard],
        "DAFH with its guard": lines[ours & guard],
        "Stronger plain models, scorecard and gradient boosting": lines[strong],
    }


def _sentence(name: str, part: pd.DataFrame) -> str:
    lifted = part["worst accuracy"] - part["worst accuracy of pooled"]
    return (
        f"{name}: a named group is shown to be harmed in {_harmed_fits(part)} fits, with "
        f"{part['people harmed'].mean():.1f}% of the people in such groups on average; accuracy changes by "
        f"{_change(part)} percentage points, and that of the worst named group by "
        f"{lifted.mean():+z.2f}."
    )


def _harmed_fits(part: pd.DataFrame) -> str:
    return f"{int((part['harmed groups'] > 0).sum()):,} of {len(part):,}"


def _change(part: pd.DataFrame) -> str:
    return f"{part['to pooled'].mean():+z.2f}"


def figure_points(summary: pd.DataFrame) -> pd.DataFrame:
    """Points of the figure; methods without settings to tune stand in both rows of panels."""
    families = dict.fromkeys((NAMES[name] for name in YARDSTICKS), "plain model")
    families |= dict.fromkeys((NAMES["dafh-exceptions"], NAMES["dafh-network"]), "DAFH")
    short = {NAMES["bpf"]: "BPF", NAMES["zafar"]: "Zafar"}
    trained = summary["model"].isin(["linear", "network"]) & ~summary["method"].isin([*families, NAMES["zafar"]])
    points = pd.DataFrame(
        {
            "dataset": summary["dataset"],
            "tuning": summary["tuned by"],
            "name": summary["method"].replace(short) + np.where(trained, ", " + summary["model"], ""),
            "family": summary["method"].map(families).fillna("rival"),
            "guard": summary["guard"],
            "worst": summary["worst accuracy"] / 100,
            "harmed": summary["people harmed"] / 100,
            "pooled": summary["worst accuracy of pooled"] / 100,
        }
    )
    untuned = points["tuning"] == "–"
    return pd.concat(
        [
            points[~untuned],
            *(points[untuned].assign(tuning=criterion) for criterion in ("log-loss", "antigone")),
        ],
        ignore_index=True,
    )
