"""Rivals side by side: what each gains and whom it harms, on the same splits and with the same tuning.

Everybody is compared with one yardstick, logistic regression fitted to convergence on all training rows, by the
decisions that both make about the test rows. Named groups are those of the attributes that a data set carries, alone
and in pairs; no method but Zafar's sees them. A job is one method on one split. It has a row for each way it was tuned,
with and without the guard.
"""

import itertools
import json
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from dafh import DAFHClassifier, Scorecard, audit
from dafh.linear import StandardizedLogisticRegression
from research.paper.methods import Split, load_split
from research.paper.runner import Job, Row
from research.paper.tables import DATASETS
from research.rivals.baselines import RIVALS, make_baseline
from research.rivals.tuning import CRITERIA, tune
from research.rivals.zafar import ZafarClassifier

PREFIX = "rival-"
TRAINED = tuple(name for name in RIVALS if name != "residual-boosting")
# Plain models for everybody show what capacity alone does to named groups.
YARDSTICKS = ("pooled", "mlp", "scorecard", "boosting")
# Learned groups and clusters that the guard chooses by.
N_GROUPS, N_CLUSTERS = 4, 8
# No rival has more combinations in its authors' ranges.
BUDGET = 6
# Of Adult and Bank, so many rows are drawn to tune on; with all of them, the table would take twice as long.
TUNING_ROWS = 10_000
# The decision that people want, for Zafar's constraint: no arrest predicted, a good risk, a high income.
ACCEPTED = {"adult": 1, "arrest": 0, "violent": 0, "german": 1, "bank": 1}
DEPTH = 2
# Named groups of fewer test rows have any accuracy: they are tested, but they are not the worst.
SMALLEST_SHOWN = 50
_PACKAGES = ("dafh", "scikit-learn", "numpy", "scipy", "jax")


def rival_jobs(splits: range) -> list[Job]:
    """All jobs of the table, the longest data sets first."""
    methods = [
        *((name, 1) for name in YARDSTICKS),
        *((f"dafh-{kind}", N_GROUPS) for kind in ("exceptions", "network")),
        *((f"{name}-{model}", N_CLUSTERS) for name in TRAINED for model in ("linear", "network")),
        ("residual-boosting", N_CLUSTERS),
        ("zafar", 2),
    ]
    return [
        Job("honest", dataset, PREFIX + name, n_groups, split)
        for split in splits
        for dataset in DATASETS
        for name, n_groups in methods
    ]


def rivals_fingerprint() -> str:
    """What results depend on besides the job: versions, ranges and defaults of the rivals."""
    classes: dict[str, Any] = {**RIVALS, "zafar": ZafarClassifier}
    rivals = {name: repr((rival().get_params(), dict(rival.RANGES))) for name, rival in classes.items()}
    sizes = {"groups": N_GROUPS, "clusters": N_CLUSTERS, "budget": BUDGET, "tuning rows": TUNING_ROWS}
    packages = {name: version(name) for name in _PACKAGES}
    return json.dumps({"packages": packages, "rivals": rivals, "sizes": sizes}, sort_keys=True)


def execute_rival(job: Job) -> list[Row]:
    """Fit a method in all its ways, and compare each with the converged pooled classifier on the test rows."""
    data = load_split(job.dataset, job.split)
    judge = Judge.of(data)
    name = job.method.removeprefix(PREFIX)
    if name in YARDSTICKS:
        return [_yardstick(name, job, data, judge)]
    if name.startswith("dafh-"):
        return [_dafh(name.removeprefix("dafh-"), job, data, judge, guarded=guarded) for guarded in (False, True)]
    rival, _, model = name.rpartition("-") if name.endswith(("-linear", "-network")) else (name, "", "linear")
    return _rival(rival, model, job, data, judge)


# ---- methods ----


def _yardstick(name: str, job: Job, data: Split, judge: "Judge") -> Row:
    as_table = name == "scorecard"
    X, X_test = (data.table, data.table_test) if as_table else (data.X, data.X_test)
    model: Any = StandardizedLogisticRegression() if name == "pooled" else Scorecard()
    if name in ("mlp", "boosting"):
        model = make_baseline(name, random_state=job.split).estimator
    started = time.perf_counter()
    model.fit(X, data.y)
    return _row(judge, model.predict(X_test), model.predict_proba(X_test), started)


def _dafh(kind: Any, job: Job, data: Split, judge: "Judge", *, guarded: bool) -> Row:
    guard: Any = "evidence" if guarded else None
    model = DAFHClassifier(N_GROUPS, method=kind, pooled="linear", guard=guard, random_state=job.split)
    started = time.perf_counter()
    model.fit(data.table, data.y)
    found = _row(judge, model.predict(data.table_test), model.predict_proba(data.table_test), started)
    return {**found, "guarded": guarded, "kept": int((model.serves_ < model.n_groups_).sum())}


def _rival(name: str, model: Any, job: Job, data: Split, judge: "Judge") -> list[Row]:
    """Rows for each criterion, without and with the guard; a setting that both criteria choose is fitted once."""
    options: dict[str, Any] = {"model": model, "n_groups": N_CLUSTERS, "random_state": job.split}
    X, X_test, known, known_test = data.X, data.X_test, None, None
    if name == "zafar":
        options = {"accepted": ACCEPTED[job.dataset], "random_state": job.split}
        known, known_test = data.attributes.iloc[:, :1], data.attributes_test.iloc[:, :1]
        # The group is the last column, too: see `ZafarClassifier`.
        values = sorted(known.iloc[:, 0].astype(str).unique())
        codes = [some.iloc[:, 0].astype(str).map(values.index).to_numpy() for some in (known, known_test)]
        X, X_test = (np.column_stack(pair) for pair in zip((data.X, data.X_test), codes, strict=True))
    started = time.perf_counter()
    unfitted = make_baseline(name, **options).estimator
    tuning = tune(unfitted, X, data.y, budget=BUDGET, max_rows=TUNING_ROWS, random_state=job.split)
    spent = time.perf_counter() - started
    rows: list[Row] = []
    fitted: dict[tuple[str, bool], Row] = {}
    for criterion in CRITERIA:
        setting = tuning.best(criterion)
        for guard in (None, "evidence"):
            key = (repr(setting), guard is not None)
            if key not in fitted:
                started = time.perf_counter() - spent
                one = make_baseline(name, guard=guard, **options, **setting)
                one.fit(X, data.y, sensitive_features=known)
                decided, found = one.predict(X_test, known_test), one.predict_proba(X_test, known_test)
                kept = int((one.serves_ < one.n_groups_).sum())
                fitted[key] = {**_row(judge, decided, found, started), "kept": kept}
            rows.append({**fitted[key], "tuned": criterion, "guarded": key[1], "settings": key[0]})
    return rows


def _row(judge: "Judge", decided: NDArray[Any], probabilities: NDArray[np.float64], started: float) -> Row:
    seconds = round(time.perf_counter() - started, 3)
    return {"tuned": "", "guarded": False, "settings": "", **judge.figures(decided, probabilities), "seconds": seconds}


# ---- figures ----


@dataclass(frozen=True, eq=False)
class Judge:
    """The test rows with the decisions of the converged pooled classifier."""

    y: NDArray[np.int_]
    attributes: pd.DataFrame
    pooled: NDArray[Any]
    probability: NDArray[np.float64]

    @classmethod
    def of(cls, data: Split) -> "Judge":
        """Fit the pooled classifier on all training rows."""
        pooled = StandardizedLogisticRegression().fit(data.X, data.y)
        # Two groups of races stand beside the races themselves: one attribute twice would count groups twice.
        named = data.attributes_test.drop(columns="race_group", errors="ignore")
        return cls(data.y_test, named, pooled.predict(data.X_test), pooled.predict_proba(data.X_test))

    def figures(self, decided: NDArray[Any], probabilities: NDArray[np.float64]) -> Row:
        """Gains over the pooled classifier in all and in named groups, and whom the decisions are shown to harm."""
        served = np.zeros(len(self.y), np.intp)
        result = audit(self.y, decided, served, pooled=self.pooled, sensitive_features=self.attributes, depth=DEPTH)
        named: Any = result.named
        shown = named[named["n"] >= SMALLEST_SHOWN]
        harmed = named.loc[named["verdict"] == "violated", "group"].tolist()
        worst = shown.loc[shown["gap"].idxmin()]
        return {
            "accuracy": float((decided == self.y).mean()),
            "pooled_accuracy": float((self.pooled == self.y).mean()),
            "log_loss": float(log_loss(self.y, probabilities, labels=[0, 1])),
            "pooled_log_loss": float(log_loss(self.y, self.probability, labels=[0, 1])),
            "worst_accuracy": 1 - float(shown["own_loss"].max()),
            "pooled_worst_accuracy": 1 - float(shown["rival_loss"].max()),
            "worst_gain": float(worst["gap"]),
            "worst_gain_group": str(worst["group"]),
            "harmed": harmed,
            "n_named": len(named),
            "people_harmed": self._share(harmed),
            "disagreement": float((decided != self.pooled).mean()),
        }

    def _share(self, harmed: list[str]) -> float:
        """Share of the rows that belong to at least one of some named groups."""
        words = self.attributes.astype(object).where(self.attributes.notna(), "(missing)").astype(str)
        named = [name + " = " + words[name] for name in words]
        pairs = [one + " & " + other for one, other in itertools.combinations(named, 2)]
        return float(np.any([group.isin(harmed) for group in (*named, *pairs)], axis=0).mean())
