"""The paper's protocol: its 96 settings and its SGD for all methods, to compare with the printed numbers only.

The grid does not need 96 runs: settings with the same batch size are trained as one population, and the results for
fewer epochs are checkpoints of the longest run. Where the paper leaves a choice, we take the surrogate with the missing
absolute value, subtract the penalty, update θ first and then the classifiers with the new θ (as Algorithm 1 is
printed). The classifiers start at random (method "grid-cold") or at a pooled classifier after 4 epochs of the same SGD
("grid"): with the printed settings, a random start does not reach the printed numbers.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh import audit
from dafh.classifiers.logits import decide
from dafh.engine.networks import Layer, Parameters, apply_classifiers, apply_group_network
from dafh.engine.objective import Rows, Settings
from dafh.engine.population import Plan, evaluate_population, init_population, train_population
from research.paper.methods import Split, choose_attributes, figures, load_split
from research.paper.published import CHOSEN_SETTINGS
from research.paper.runner import Job, Row
from research.rivals.baselines import make_baseline

BATCH_SIZES = (256, 1024)
EPOCHS = (2, 3, 4)
GROUP_RATES = (1e-4, 1e-3)
CLASSIFIER_RATES = (1e-2, 1e-1)
PENALTIES = (0.0, 1.0, 10.0, 100.0)
MOMENTUM = 0.9
N_CONVERGENCE_STEPS = 40
_HIDDEN = 100
# Standard deviation of the initial classifiers. A warm start adds them to the pooled logit, as a fit with defaults
# does; a random start has nothing to add them to and needs the larger value.
_NOISE = {"warm": 0.3, "cold": 1.0}


class Setting(NamedTuple):
    """One of the 96 settings."""

    batch_size: int
    epochs: int
    group_rate: float
    classifier_rate: float
    penalty: float


def grid_settings() -> list[Setting]:
    """All combinations in the paper's table of hyper-parameters."""
    return [
        Setting(*values) for values in itertools.product(BATCH_SIZES, EPOCHS, GROUP_RATES, CLASSIFIER_RATES, PENALTIES)
    ]


def execute_grid(job: Job) -> list[Row]:
    """Run the whole grid for one split: DAFH ("grid", "grid-cold") or a baseline trained by the same SGD."""
    data = load_split(job.dataset, job.split)
    if job.method == "grid-convergence":
        return list(_convergence_rows(job, data))
    _, _, kind = job.method.partition("-")
    if kind in ("", "cold"):
        return list(_dafh_rows(job, data, start=kind or "warm"))
    return list(_baseline_rows(job, data, kind))


def _rows(X: NDArray[np.float64], y: NDArray[np.int_], base: NDArray[np.float64] | float = 0.0) -> Rows:
    n = len(y)
    logits = np.zeros((n, 1), np.float32) + np.float32(base)
    return Rows(
        x=X.astype(np.float32),
        answers=np.zeros((n, 1, 0), np.int8),
        label=y.astype(np.int32),
        base=logits[:, None],
        pooled_right=((logits > 0) == (y[:, None] == 1)).astype(np.float32),
        weight=np.ones(n, np.float32),
        fold=np.full(n, -1, np.int32),
    )


def _settings(
    group_rate: ArrayLike, classifier_rate: ArrayLike, penalty: ArrayLike, *, envy_weight: float, anchor: float
) -> Settings:
    rate, other, lam = (np.asarray(values, np.float64) for values in (group_rate, classifier_rate, penalty))
    every = np.ones_like(other)
    return Settings(
        envy_weight=envy_weight * every,
        penalty=lam * every,
        temperature=every,
        anchor=anchor * every,
        shrinkage=0 * every,
        group_rate=rate * every,
        classifier_rate=other,
        held_out=-every,
        elsewhere=0 * every,
    )


def sgd_logistic(
    X: NDArray[np.float64], y: NDArray[np.int_], batch_size: int, seed: int
) -> dict[tuple[int, float], Layer]:
    """Fit logistic regression by the paper's SGD; return the classifier for each number of epochs and learning rate.

    With one group and an envy weight of 2 the fairness terms of the objective cancel, and only the likelihood is left.
    """
    plan = Plan((X.shape[1], 1), (X.shape[1], 1), optimizer="sgd", momentum=MOMENTUM)
    rates = np.array(CLASSIFIER_RATES)
    start = init_population(plan, np.zeros(len(rates)), np.random.SeedSequence(seed))
    record = train_population(
        _rows(X, y),
        _rows(X[:1], y[:1]),
        start,
        _settings(0.0, rates, 0.0, envy_weight=2.0, anchor=1.0),
        plan,
        batch_size=batch_size,
        max_epochs=max(EPOCHS),
        rng=np.random.default_rng(seed),
    )
    return {
        (epochs, rate): record.parameters(position, epochs - 1).classifiers[0]
        for epochs in EPOCHS
        for position, rate in enumerate(CLASSIFIER_RATES)
    }


def _linear(layer: Layer, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits of one linear classifier, (n, 1)."""
    return X @ np.float64(layer.weight[0]) + np.float64(layer.bias[0])


def _plan(data: Split, n_groups: int) -> Plan:
    return Plan(
        (data.X.shape[1], _HIDDEN, n_groups),
        (data.X.shape[1], 1),
        surrogate="paper",
        optimizer="sgd",
        momentum=MOMENTUM,
        alternate=True,
    )


def _dafh_rows(job: Job, data: Split, start: str) -> Iterator[Row]:
    for batch_size in BATCH_SIZES:
        pooled = sgd_logistic(data.X, data.y, batch_size, job.split)
        first = pooled[max(EPOCHS), min(CLASSIFIER_RATES)]
        base, base_test = (_linear(first, X) if start == "warm" else 0.0 for X in (data.X, data.X_test))
        plan = _plan(data, job.n_groups)
        varied = list(itertools.product(GROUP_RATES, CLASSIFIER_RATES, PENALTIES))
        seed = np.random.SeedSequence([job.split, job.n_groups, batch_size])
        record = train_population(
            _rows(data.X, data.y, base),
            _rows(data.X[:1], data.y[:1]),
            init_population(plan, np.full(len(varied), _NOISE[start]), seed),
            _settings(*np.array(varied).T, envy_weight=1.0, anchor=0.0),
            plan,
            batch_size=batch_size,
            max_epochs=max(EPOCHS),
            rng=np.random.default_rng(job.split),
        )
        test = _rows(data.X_test, data.y_test, base_test)
        for epochs in EPOCHS:
            population: Any = record.checkpoints[epochs - 1]
            groups, labels = _predictions(population, test)
            for replica, (group_rate, rate, penalty) in enumerate(varied):
                pooled_label = (_linear(pooled[epochs, rate], data.X_test)[:, 0] > 0) * 1
                result = audit(data.y_test, labels[replica], groups[replica], pooled=pooled_label)
                setting = Setting(batch_size, epochs, group_rate, rate, penalty)
                yield setting._asdict() | figures(result) | {"n_models": job.n_groups}


def _predictions(population: Parameters, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group of each row, (replicas, rows), and its class by each classifier, (replicas, rows, K)."""
    seen = rows.seen_by(-1)

    def one(params: Parameters) -> tuple[Any, Any]:
        logits = apply_classifiers(params.classifiers, seen.x, seen.base)
        return apply_group_network(params.group, seen.x, seen.answers).argmax(-1), decide(logits)

    groups, labels = jax.lax.map(one, population)
    return np.asarray(groups), np.asarray(labels)


def _convergence_rows(job: Job, data: Split) -> Iterator[Row]:
    """Pr without harm and accuracy after every step, with the paper's settings for the data set and full batches.

    Test rows are measured too, but nothing is chosen by them.
    """
    _, _, group_rate, rate, penalty = CHOSEN_SETTINGS[job.dataset]
    first = sgd_logistic(data.X, data.y, min(BATCH_SIZES), job.split)[max(EPOCHS), min(CLASSIFIER_RATES)]
    plan = _plan(data, job.n_groups)
    parts = {
        "train": _rows(data.X, data.y, _linear(first, data.X)),
        "test": _rows(data.X_test, data.y_test, _linear(first, data.X_test)),
    }
    settings = _settings([group_rate], [rate], [penalty], envy_weight=1.0, anchor=0.0)
    record: Any = train_population(
        parts["train"],
        _rows(data.X[:1], data.y[:1]),
        init_population(plan, np.array([_NOISE["warm"]]), np.random.SeedSequence([job.split, job.n_groups])),
        settings,
        plan,
        batch_size=len(data.y),
        max_epochs=N_CONVERGENCE_STEPS,
        rng=np.random.default_rng(job.split),
    )
    for step, population in enumerate(record.checkpoints, 1):
        for part, rows in parts.items():
            found = evaluate_population(population, rows, settings, plan, batch_size=len(data.y))
            yield {"step": step, "part": part, **{name: float(found[name][0]) for name in ("pr", "accuracy")}}


def _baseline_rows(job: Job, data: Split, kind: str) -> Iterator[Row]:
    """Metrics of a given partition with one classifier for each group, all trained by the same SGD."""
    plain = Job(job.protocol, job.dataset, kind, job.n_groups, job.split)
    attributes, attributes_test = choose_attributes(plain, data)
    unfitted: Any = make_baseline(kind, n_groups=job.n_groups, random_state=job.split).partition
    if "random_state" in unfitted.get_params():
        unfitted.set_params(random_state=job.split)
    partition = unfitted.fit(data.X, data.y, attributes)
    members = partition.members(data.X, attributes)[: partition.n_groups_]
    groups = partition.assign(data.X_test, attributes_test)
    for batch_size in BATCH_SIZES:
        everybody = sgd_logistic(data.X, data.y, batch_size, job.split)
        own = [sgd_logistic(data.X[rows], data.y[rows], batch_size, job.split) for rows in members]
        for epochs, rate in itertools.product(EPOCHS, CLASSIFIER_RATES):
            models = [*(fitted[epochs, rate] for fitted in own), everybody[epochs, rate]]
            labels = np.column_stack([_linear(layer, data.X_test)[:, 0] > 0 for layer in models]) * 1
            result = audit(data.y_test, labels[:, :-1], np.where(groups < 0, len(own), groups), pooled=labels[:, -1])
            # A given partition has no group classifier to train, and no penalty.
            setting = Setting(batch_size, epochs, 0.0, rate, 0.0)
            yield setting._asdict() | figures(result) | {"n_models": len(own)}
