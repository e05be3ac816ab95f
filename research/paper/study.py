"""What a job does: fit one method on the training rows of a split, and measure it on the test rows.

Protocol "honest": everything is chosen on training rows, and classifiers are fitted to convergence. Protocol "paper"
(methods that begin with "sgd"): every setting of the paper's table, trained by its SGD, one update per row.
"""

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from dafh import AuditResult, DAFHClassifier, PreferenceMatrix, Recipe, Scorecard, tabular_pipeline
from dafh.datasets import FETCHERS, make_paper_synthetic
from dafh.linear import StandardizedLogisticRegression
from research.paper.ascent import STEP, Setting, ascend, decisions, likelihood, orders, paper_objective, start
from research.paper.published import CHOSEN_SETTINGS
from research.paper.store import Job, Row
from research.rivals.baselines import make_baseline

# Groups of LR-All and TreeLR. With "unknown" as "not born in the US" Adult has the 12 groups of the paper's table.
GROUP_ATTRIBUTES = {
    "adult": ["sex", "born_in_us", "marital_group"],
    "arrest": ["sex", "age_group"],
    "violent": ["sex", "age_group"],
    "german": ["sex", "age_group"],
    "bank": ["age_group", "marital"],
}
BY_ATTRIBUTES = ("lr-all", "treelr")
"""They divide rows by attributes, which are therefore left out of X."""
EPOCHS, GROUP_RATES, CLASSIFIER_RATES, PENALTIES = (2, 3, 4), (1e-4, 1e-3), (1e-2, 1e-1), (0.0, 1.0, 10.0, 100.0)
UPDATES = ("row", "batch_mean", "batch_sum")
PAPER = tuple(f"paper-{update}" for update in UPDATES)
"""The paper's objective and algorithm with the printed settings, in the three readings of an update."""
OURS = ("exceptions", "network")
YARDSTICKS: dict[str, Any] = {
    "pooled": StandardizedLogisticRegression(),
    "scorecard": Scorecard(),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "majority": DummyClassifier(strategy="most_frequent"),
}
"""One classifier for all rows."""
# Steps of 1,024 rows: more than the 15 that the paper's claim is about.
N_STEPS = 24


class Split(NamedTuple):
    """Training and test rows, as tables and encoded, with the sensitive attributes beside them."""

    table: pd.DataFrame
    table_test: pd.DataFrame
    X: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y: NDArray[np.int_]
    y_test: NDArray[np.int_]
    attributes: pd.DataFrame
    attributes_test: pd.DataFrame

    def columns_for(self, model: Any) -> tuple[Any, Any]:
        """Training and test columns as a model takes them: ours encode tables themselves."""
        ours = isinstance(model, Scorecard | DAFHClassifier)
        return (self.table, self.table_test) if ours else (self.X, self.X_test)


@lru_cache(maxsize=2)
def load_split(dataset: str, split: int, remove: str = "paper") -> Split:
    """Split a data set at random, 75% to 25%; the encoder sees training rows only.

    Bank includes the duration of the call here, as in the paper.
    """
    data = FETCHERS[dataset](remove=remove, **({"include_duration": True} if dataset == "bank" else {}))
    attributes = data.sensitive_features.replace({"born_in_us": {"unknown": "no"}})
    train_and_test = train_test_split(np.arange(len(data.y)), test_size=0.25, random_state=split)
    tables = [data.X.iloc[rows].reset_index(drop=True) for rows in train_and_test]
    labels = [data.y.to_numpy()[rows] for rows in train_and_test]
    return Split(*tables, *encoded(*tables), *labels, *(attributes.iloc[rows] for rows in train_and_test))


def encoded(table: pd.DataFrame, table_test: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Both tables as numbers, encoded by what the first one holds."""
    encoder = tabular_pipeline(DummyClassifier())[:-1].fit(table)
    return [np.asarray(encoder.transform(rows), np.float64) for rows in (table, table_test)]


def execute(job: Job) -> list[Row]:
    """Fit the method of a job on its split, and return its figures."""
    if job.kind == "rival":
        from research.paper.rivals import execute_rival

        return execute_rival(job)
    if job.kind == "synthetic":
        return list(_synthetic(job))
    data = load_split(job.dataset, job.split, "all" if job.method in BY_ATTRIBUTES else "paper")
    several = {"sgd": _grid, "steps": _steps, "composition": _composition}
    if job.kind in several:
        return list(several[job.kind](job, data))
    if job.method in YARDSTICKS:
        model = clone(YARDSTICKS[job.method])
        X, X_test = data.columns_for(model)
        return [{"accuracy": float(model.fit(X, data.y).score(X_test, data.y_test)), "n_models": 1}]
    return [_ours(job, data) if job.method in ("default", *OURS, *PAPER) else _baseline(job, data)]


# ---- protocol "honest" ----


def model_of(method: str, dataset: str, k: int, seed: int) -> DAFHClassifier:
    """Return the unfitted model of a method: the paper's, ours with the paper's pooled classifier, or our default."""
    if method in PAPER:
        recipe = Recipe.paper(update=method.removeprefix("paper-"), data_set=dataset)
        return DAFHClassifier(k, method="network", pooled="linear", guard=None, recipe=recipe, random_state=seed)
    if method == "default":
        return DAFHClassifier(random_state=seed)
    kind: Any = method
    return DAFHClassifier(k, method=kind, pooled="linear", random_state=seed)


def _ours(job: Job, data: Split) -> Row:
    model = model_of(job.method, job.dataset, job.k, job.split).fit(data.table, data.y)
    row = figures(AuditResult.of(model, data.table_test, data.y_test))
    return row | {"n_models": len(set(model.serves_.tolist()))}


def _baseline(job: Job, data: Split) -> Row:
    columns = attributes_of(job.method, job.dataset, data.attributes)
    groups, groups_test = data.attributes[columns], data.attributes_test[columns]
    model = make_baseline(job.method, n_groups=job.k, random_state=job.split)
    model.fit(data.X, data.y, sensitive_features=groups)
    row = figures(AuditResult.of(model, data.X_test, data.y_test, sensitive_features=groups_test, depth=1))
    return row | {"n_models": len({id(estimator) for estimator in model.estimators_})}


def attributes_of(method: str, dataset: str, attributes: pd.DataFrame) -> list[str]:
    """Attributes that a method divides rows by: the paper's one, those of LR-All and TreeLR, or all."""
    if method == "trivial":
        return list(attributes.columns[:1])
    return GROUP_ATTRIBUTES[dataset] if method in BY_ATTRIBUTES else list(attributes.columns)


def _composition(job: Job, data: Split) -> Iterator[Row]:
    """Share of each combination of race, sex and age in each group, on the test rows."""
    model = model_of(job.method.partition("-")[2], job.dataset, job.k, job.split).fit(data.table, data.y)
    rows = data.attributes_test[["race_group", "sex", "age_group"]].copy()
    rows["race_group"] = np.where(rows["race_group"] == "Caucasian", "white", "non-white")
    rows["group"] = model.predict_group(data.table_test)
    shares = rows.groupby("group").value_counts(normalize=True).rename("share").reset_index()
    for row in shares.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _synthetic(job: Job) -> Iterator[Row]:
    """All methods of the paper's figure on synthetic data of 20,000 rows, and ours.

    The paper does not print its settings for these data: of all, those with the highest Pr on the test rows.
    """
    data = make_paper_synthetic(20_000, random_state=job.split)
    label = (np.asarray(data.y) > 0) * 1  # The paper's labels are -1 and 1; its surrogate needs 0 and 1.
    X, X_test, y, y_test, hidden, hidden_test = train_test_split(
        data.X, label, data.sensitive_features, test_size=0.25, random_state=job.split
    )
    for attribute in ("s1", "s2"):
        model = make_baseline("trivial").fit(X, y, sensitive_features=hidden[[attribute]])
        matrix = PreferenceMatrix.of(model, X_test, y_test, sensitive_features=hidden_test[[attribute]])
        yield {"way": f"partition by {attribute}", **_main_figures(matrix)}
    yield {"way": "pooled", "accuracy": matrix.pooled_accuracy}
    for method in OURS:
        model = model_of(method, "", 2, job.split).fit(X, y)
        yield {"way": method, **_main_figures(PreferenceMatrix.of(model, X_test, y_test))}
    pooled = model.pooled_.predict(X_test)
    columns, columns_test = encoded(X, X_test)
    for update in UPDATES:
        batches = orders(len(y), 1 if update == "row" else STEP, max(EPOCHS), job.split)
        matrices = [
            PreferenceMatrix.from_predictions(y_test, labels, groups, pooled)
            for _, groups, labels in _population(columns, y, columns_test, 2, job.split, batches, _scale(update))
        ]
        yield {"way": update, **_main_figures(max(matrices, key=lambda matrix: matrix.pr_without_harm))}


# ---- protocol "paper" ----


def _scale(update: str) -> float:
    """Factor of the mean loss of a batch: the paper does not say whether a batch is a mean or a sum."""
    return float(STEP) if update == "batch_sum" else 1.0


def _population(
    X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], k: int, seed: int, batches: list[Any], scale: float = 1.0
) -> Iterator[tuple[Row, NDArray[Any], NDArray[Any]]]:
    """Train all settings of the paper's table; yield each setting with groups and labels of the test rows."""
    varied = list(itertools.product(GROUP_RATES, CLASSIFIER_RATES, PENALTIES))
    first = start(X.shape[1], k, seed)
    states = ascend(paper_objective, first, Setting(*np.array(varied).T), X, y, batches, scale=scale)
    for epochs, state in enumerate(states, 1):
        if epochs in EPOCHS:
            for (group_rate, rate, penalty), groups, labels in zip(varied, *decisions(state, X_test), strict=True):
                setting = {"epochs": epochs, "rate": rate, "group_rate": group_rate, "penalty": penalty}
                yield setting, groups, labels


def _logistic(data: Split, rows: NDArray[np.intp], seed: int) -> dict[tuple[int, float], NDArray[np.int8]]:
    """Labels of the test rows by number of epochs and rate, from logistic regression by the paper's SGD."""
    settings = Setting(np.zeros(2), CLASSIFIER_RATES, np.zeros(2))
    batches = orders(len(rows), 1, max(EPOCHS), seed)
    states = ascend(likelihood, start(data.X.shape[1], 1, seed), settings, data.X[rows], data.y[rows], batches)
    labels = [decisions(state, data.X_test)[1][:, :, 0] for state in states]
    return {(e, r): labels[e - 1][number] for e in EPOCHS for number, r in enumerate(CLASSIFIER_RATES)}


def _grid(job: Job, data: Split) -> Iterator[Row]:
    """Figures of every setting of the paper's table, or of those that a baseline has."""
    pooled = _logistic(data, np.arange(len(data.y)), job.split)
    name = job.method.removeprefix("sgd-")
    if name == "pooled":
        for (epochs, rate), labels in pooled.items():
            yield {"epochs": epochs, "rate": rate, "accuracy": float((labels == data.y_test).mean())}
        return
    if name == "paper":
        batches = orders(len(data.y), 1, max(EPOCHS), job.split)
        trained: Any = _population(data.X, data.y, data.X_test, job.k, job.split, batches)
    else:
        columns = attributes_of(name, job.dataset, data.attributes)
        attributes = data.attributes[columns]
        partition: Any = clone(make_baseline(name, n_groups=job.k).partition)
        if "random_state" in partition.get_params():
            partition.set_params(random_state=job.split)
        members = partition.fit(data.X, data.y, attributes).members(data.X, attributes)
        groups = partition.assign(data.X_test, data.attributes_test[columns])
        by_group = [_logistic(data, rows, job.split) for rows in members]
        trained = (
            ({"epochs": e, "rate": r}, groups, np.column_stack([labels[e, r] for labels in by_group]))
            for e, r in pooled
        )
    for setting, groups, labels in trained:
        rival = pooled[setting["epochs"], setting["rate"]]
        yield setting | _main_figures(PreferenceMatrix.from_predictions(data.y_test, labels, groups, rival))


def _steps(job: Job, data: Split) -> Iterator[Row]:
    """Pr without harm and accuracy after each 1,024 rows, with the printed settings, on training and test rows."""
    update = job.method.removeprefix("steps-")
    _, _, group_rate, rate, penalty = CHOSEN_SETTINGS[job.dataset]
    passes = -(-N_STEPS * STEP // len(data.y))
    # One stream of rows for all three readings, so that they differ in nothing but the update.
    stream = np.concatenate([order.ravel() for order in orders(len(data.y), 1, passes, job.split)])[: N_STEPS * STEP]
    batches = list(stream.reshape((N_STEPS, STEP, 1) if update == "row" else (N_STEPS, 1, STEP)))
    settings, first = Setting([group_rate], [rate], [penalty]), start(data.X.shape[1], job.k, job.split)
    states = ascend(paper_objective, first, settings, data.X, data.y, batches, scale=_scale(update))
    pooled = StandardizedLogisticRegression().fit(data.X, data.y)
    judged = {"train": (data.X, data.y), "test": (data.X_test, data.y_test)}
    for step, state in enumerate(states, 1):
        for name, (X, y) in judged.items():
            groups, labels = decisions(state, X)
            matrix = PreferenceMatrix.from_predictions(y, labels[0], groups[0], pooled.predict(X))
            yield {"step": step, "part": name, "pr": matrix.pr_without_harm, "accuracy": matrix.accuracy}


# ---- figures ----


def _main_figures(matrix: PreferenceMatrix) -> Row:
    return {
        "pr": matrix.pr_without_harm,
        "accuracy": matrix.accuracy,
        "violations": matrix.violations,
        "disagreement": matrix.disagreement,
        "smallest_share": float(matrix.weights[matrix.sizes > 0].min()),
    }


def figures(result: AuditResult) -> Row:
    """Metrics of the paper's tables, and those that are needed to interpret them.

    Copies of the pooled classifier have a perfect Pr without harm: only accuracy against the pooled classifier,
    disagreement and group sizes tell them apart from a good model.
    """
    matrix = result.matrix
    return {
        # "corrected" counts violations after Holm's correction, "violations" point estimates, as the paper does.
        **_main_figures(matrix),
        "pooled_accuracy": matrix.pooled_accuracy,
        "corrected": int(result.violations["corrected"]),
        "max_gain": matrix.max_gain,
        "max_envy_gap": matrix.max_envy_gap,
        "disparity_change": matrix.disparity_change,
    }
