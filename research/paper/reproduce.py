"""Make the tables and figures of the paper: from a request to jobs, and from results to files."""

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh import DAFHClassifier, Recipe, Scorecard, plots
from dafh.cli.synthetic import run_synthetic
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from research.pages import markdown
from research.paper.figures import attribute_panels, harm_and_worst, study_convergence
from research.paper.grid import MOMENTUM, grid_settings
from research.paper.methods import execute
from research.paper.published import CHOSEN_SETTINGS
from research.paper.rivals import rival_jobs, rivals_fingerprint
from research.paper.rivals_tables import (
    RIVALS_NOTE,
    display_rivals,
    figure_points,
    harmed_table,
    over_data_sets,
    summarize_rivals,
)
from research.paper.runner import Job, run_jobs
from research.paper.store import ResultStore
from research.paper.tables import BESIDE, DATASETS, METRICS, SETTING, TABLES, Table, summarize, with_yardsticks

FIGURES = ("synthetic", "convergence", "composition")
ARTEFACTS = ("hyperparameters", *TABLES, "stability", "rivals", *FIGURES)
STORE = "results.sqlite"
_PACKAGES = ("dafh", "jax", "optax", "scikit-learn", "numpy", "scipy")
_LATEX = {"±": r"$\pm$", "–": "--", "Δ": r"$\Delta$", "λ": r"$\lambda$", "×": r"$\times$"}

_SETTING_NAMES = {
    "batch_size": "batch size",
    "epochs": "epochs",
    "group_rate": "rate of the group classifier",
    "classifier_rate": "rate of the classifiers",
    "penalty": "penalty λ",
}
_PROTOCOL_NOTES = {
    "honest": "Within a split everything is chosen on training rows, and test rows are used once. The defaults of the "
    "method were chosen on other splits of the same data sets.",
    "paper": "The paper's 96 settings and its SGD, starting at a pooled classifier after 4 epochs of the same SGD. The "
    "setting with the best mean accuracy on the TEST rows is shown, as in the paper, to compare with the printed "
    "numbers only.",
}

STABILITY_NOTE = (
    "Rules are fitted ten times on split 0, each time on a random sample of 80% of the training rows, with logistic "
    "regression as the pooled classifier. Each number is the mean adjusted Rand index over all pairs of fits: 1 if "
    "they find the same groups, about 0 if their groups are unrelated."
)


@dataclass(frozen=True)
class Request:
    """What to reproduce, and where to write it."""

    names: tuple[str, ...]
    protocol: str
    n_splits: int
    out: Path

    @classmethod
    def of(cls, names: tuple[str, ...], protocol: str, n_splits: int, out: Path) -> "Request":
        """Check the names; no name, or "all", means everything."""
        unknown = [name for name in names if name not in (*ARTEFACTS, "all")]
        if unknown:
            raise InputError(f"{unknown[0]!r} cannot be reproduced: choose from {', '.join(ARTEFACTS)}.")
        chosen = ARTEFACTS if not names or "all" in names else tuple(dict.fromkeys(names))
        return cls(chosen, protocol, n_splits, out)

    def tables(self) -> list[Table]:
        """Tables that were asked for, with their yardsticks."""
        return [with_yardsticks(TABLES[name]()) for name in self.names if name in TABLES]

    def jobs(self) -> list[Job]:
        """All jobs, each once."""
        jobs = [job for table in self.tables() for job in table.jobs(self.protocol, self.n_splits)]
        if "hyperparameters" in self.names:
            splits = range(self.n_splits)
            jobs += [Job("paper", d, m, 2, split) for split in splits for d in DATASETS for m in ("grid", "grid-cold")]
        if "convergence" in self.names:
            jobs += [Job("paper", "violent", "grid-convergence", 2, split) for split in range(self.n_splits)]
            jobs += [Job("honest", "violent", "trivial", 2, split) for split in range(self.n_splits)]
        if "stability" in self.names:
            jobs += [Job("honest", d, "stability", k, 0) for d in DATASETS for k in (2, 3, 4)]
        if "composition" in self.names:
            # Group 0 of one model has nothing to do with group 0 of another, so that splits cannot be averaged.
            jobs.append(Job("honest", "arrest", "composition", 2, 0))
        return list(dict.fromkeys(jobs))


def reproduce(
    request: Request,
    *,
    n_jobs: int = 1,
    cluster: str | None = None,
    on_done: Callable[[Job, int, int], None] | None = None,
) -> list[Path]:
    """Run the jobs that the store does not have yet, write every table and figure, and return the files."""
    _make_folders(request.out)
    running: dict[str, Any] = {"n_jobs": n_jobs, "cluster": cluster, "on_done": on_done}
    with ResultStore(request.out / STORE) as store:
        jobs = request.jobs()
        run_jobs(jobs, store, execute, made_by=fingerprint(), **running)
        results = store.frame(sorted(job.key for job in jobs))
        files = _rivals(request, store, running) if "rivals" in request.names else []
    for table in request.tables():
        summary = summarize(table, results, request.protocol)
        note = f"{table.note} {provenance(request)}".strip()
        files += write_table(request, table.name, table.title, summary, display(summary, table.metrics), note)
    if "hyperparameters" in request.names:
        as_paper = replace(request, protocol="paper")  # these are chosen on test rows under every protocol
        values, chosen = grid_values(), chosen_settings(results)
        note = provenance(as_paper)
        files += write_table(as_paper, "hyperparameters", "The paper's settings", values, values, note)
        files += write_table(as_paper, "chosen", "Chosen settings, published and ours", chosen, chosen, note)
    if "stability" in request.names:
        found = stability_table(results)
        files += write_table(request, "stability", "Stability of the rules", found, found, STABILITY_NOTE)
    for name in FIGURES:
        if name in request.names:
            files += write_figure(request, name, results)
    return files


def _rivals(request: Request, store: ResultStore, running: dict[str, Any]) -> list[Path]:
    """Run the jobs about rivals, which the protocol changes nothing about, and write their tables and figure."""
    honest = replace(request, protocol="honest")
    jobs = rival_jobs(range(request.n_splits))
    # A fingerprint of their own: a change of a rival must not make the paper's tables anew.
    run_jobs(jobs, store, execute, made_by=rivals_fingerprint(), **running)
    results = store.frame(sorted(job.key for job in jobs))
    summary = summarize_rivals(results)
    note = f"{RIVALS_NOTE} {provenance(honest)}"
    means = over_data_sets(summary)
    files = write_table(honest, "rivals", "Rivals, by data set", summary, display_rivals(summary), note)
    files += write_table(honest, "rivals-means", "Rivals, mean of all data sets", means, display_rivals(means), note)
    who = harmed_table(results)
    files += write_table(honest, "rivals-harmed", "Whom rivals harm", who, who, note)
    return files + _save_chart(honest, "rivals", harm_and_worst(figure_points(summary)))


def _make_folders(out: Path) -> None:
    """Make the folders, or fail before hours of work and not after them."""
    try:
        for folder in ("tables", "figures"):
            (out / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Tables and figures cannot be written to {out}: {error}.") from error


def fingerprint() -> str:
    """What results depend on besides the job: versions and default settings."""
    packages = {name: version(name) for name in _PACKAGES}
    pooled = StandardizedLogisticRegression().get_params()
    # With a recipe of its own, the parameters of the model include those of the recipe, which is None by default.
    model = DAFHClassifier(recipe=Recipe()).get_params()
    defaults = {**model, **Scorecard().get_params(), "regularisation": pooled["C"]}
    return json.dumps({"packages": packages, "defaults": defaults}, sort_keys=True, default=str)


def grid_values() -> pd.DataFrame:
    """The paper's table of hyper-parameters."""
    settings = pd.DataFrame(grid_settings())
    values = {_SETTING_NAMES[name]: ", ".join(f"{value:g}" for value in settings[name].unique()) for name in SETTING}
    return pd.DataFrame(
        {"hyper-parameter": [*values, "momentum of the classifiers"], "values": [*values.values(), f"{MOMENTUM:g}"]}
    )


def chosen_settings(results: pd.DataFrame) -> pd.DataFrame:
    """Setting with the best mean test accuracy at K = 2 on each data set, beside the one that the paper prints.

    For a start at the pooled classifier and for a random one.
    """
    starts = {"grid": "pooled", "grid-cold": "random"}
    return pd.concat([_chosen(results, method, start) for method, start in starts.items()], ignore_index=True)


def _chosen(results: pd.DataFrame, method: str, start: str) -> pd.DataFrame:
    grid = results[(results["method"] == method) & (results["n_groups"] == 2)]
    rows = []
    for dataset in DATASETS if len(grid) else ():
        means = grid[grid["dataset"] == dataset].groupby(SETTING)[["pr", "accuracy"]].mean()
        best: Any = means["accuracy"].idxmax()
        choices: dict[str, Any] = {"published": CHOSEN_SETTINGS[dataset], "ours": best}
        for which, setting in choices.items():
            named = {_SETTING_NAMES[name]: f"{value:g}" for name, value in zip(SETTING, setting, strict=True)}
            figures = means.loc[tuple(setting)]
            rows.append(
                {"data set": dataset, "start": start, "setting": which, **named}
                | {"our Pr": f"{100 * figures['pr']:.2f}", "our accuracy": f"{100 * figures['accuracy']:.2f}"}
            )
    return pd.DataFrame(rows)


def stability_table(results: pd.DataFrame) -> pd.DataFrame:
    """Adjusted Rand index between the groups of refits on resampled rows of split 0, by data set and K."""
    found = results[results["method"] == "stability"].pivot_table("stability", "dataset", "n_groups")
    shown = found.reindex([name for name in DATASETS if name in found.index]).map("{:.2f}".format)
    return shown.set_axis([f"K = {k}" for k in shown.columns], axis=1).rename_axis("data set").reset_index()


def display(summary: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Format a summary: for each metric the published value, ours and the difference."""
    shown = summary[["dataset", "K", "method"]].rename(columns={"dataset": "data set"})
    for metric in metrics:
        name = METRICS[metric]
        digits = 1 if metric in ("violations", "n_models", "n_found") else 2
        known = summary[f"{metric} published"].notna().any()
        if known:
            shown[f"{name}, published"] = [_number(value, digits) for value in summary[f"{metric} published"]]
        shown[f"{name}, ours" if known else name] = [
            "–" if np.isnan(mean) else f"{mean:.{digits}f}" + ("" if np.isnan(sd) else f" ± {sd:.{digits}f}")
            for mean, sd in zip(summary[metric], summary[f"{metric} sd"], strict=True)
        ]
        if known:
            shown[f"{name}, difference"] = [_number(value, digits, "+") for value in summary[f"{metric} difference"]]
    shown["accuracy to converged pooled"] = [
        "–" if np.isnan(mean) else f"{mean:+.2f}" + ("" if np.isnan(low) else f" ({low:+.2f} to {high:+.2f})")
        for mean, low, high in zip(
            summary["to pooled"], summary["to pooled low"], summary["to pooled high"], strict=True
        )
    ]
    for metric in BESIDE:
        digits = {"log_loss": 4, "auc": 2, "calibration": 2}.get(metric, 1)
        if summary[metric].notna().any():
            shown[METRICS[metric]] = [_number(value, digits) for value in summary[metric]]
    return shown


def _number(value: float, digits: int, sign: str = "") -> str:
    return "–" if np.isnan(value) else f"{value:{sign}.{digits}f}"


def provenance(request: Request) -> str:
    """How the numbers of a file were made: protocol, splits and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"Protocol {request.protocol}: {_PROTOCOL_NOTES[request.protocol]} {request.n_splits} random splits 75/25, "
        f"seeds 0 to {request.n_splits - 1}; mean ± standard deviation over splits, in percent. {packages}; Python "
        f"{platform.python_version()}."
    )


def write_table(
    request: Request, name: str, title: str, summary: pd.DataFrame, shown: pd.DataFrame, note: str
) -> list[Path]:
    """Write a table as CSV (all digits), Markdown and LaTeX."""
    stem = request.out / "tables" / f"{request.protocol}-{name}"
    paths = [stem.with_suffix(suffix) for suffix in (".csv", ".md", ".tex")]
    latex = shown.to_latex(index=False, escape=True, caption=f"{title}. {note}", label=f"tab:{name}")
    for sign, command in _LATEX.items():
        latex = latex.replace(sign, command)
    texts = (summary.to_csv(index=False), f"# {title}\n\n{markdown(shown)}\n\n{note}\n", latex)
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def write_figure(request: Request, name: str, results: pd.DataFrame) -> list[Path]:
    """Draw a figure as PNG and SVG."""
    if name == "synthetic":
        chart: Any = plots.synthetic_panels(run_synthetic(random_state=0))
    elif name == "convergence":
        steps = results[results["method"] == "grid-convergence"]
        trivial = results[(results["method"] == "trivial") & (results["dataset"] == "violent")]
        honest = trivial[trivial["protocol"] == "honest"]
        chart = study_convergence(steps, {name: float(honest[name].mean()) for name in ("pr", "accuracy")})
    else:
        chart = attribute_panels(results[results["method"] == "composition"])
    return _save_chart(request, name, chart)


def _save_chart(request: Request, name: str, chart: Any) -> list[Path]:
    paths = [request.out / "figures" / f"{name}{suffix}" for suffix in (".png", ".svg")]
    for path, options in zip(paths, ({"scale_factor": 2}, {}), strict=True):
        chart.save(path, **options)
    return paths
