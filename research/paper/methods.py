"""What a job of a study does: fit one method on one split of one data set, and measure it on the test rows."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from dafh import AuditResult, DAFHClassifier, Scorecard, audit, tabular_pipeline
from dafh.datasets import FETCHERS
from dafh.evaluation import ServedPredictions
from dafh.linear import StandardizedLogisticRegression
from research.paper.runner import Job, Row
from research.rivals.baselines import make_baseline

# Attributes whose combinations are the groups of LR-All and TreeLR. The paper does not say which ones it uses.
GROUP_ATTRIBUTES = {
    "adult": ["sex", "born_in_us", "marital_group"],
    "arrest": ["sex", "age_group"],
    "violent": ["sex", "age_group"],
    "german": ["sex", "age_group"],
    "bank": ["age_group", "marital"],
}
# These methods divide rows by sensitive attributes, which are therefore left out of X.
BY_ATTRIBUTES = ("lr-all", "treelr")
TEST_SIZE = 0.25
_CALIBRATION_PARTS = 10
_RESAMPLES = 10


class Split(NamedTuple):
    """Training and test rows, as tables and encoded, with the sensitive attributes beside them."""

    table: pd.DataFrame
    table_test: pd.DataFrame
    X: NDArray[np.float64]
    y: NDArray[np.int_]
    attributes: pd.DataFrame
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int_]
    attributes_test: pd.DataFrame


@lru_cache(maxsize=2)
def load_split(dataset: str, split: int, remove: str = "paper") -> Split:
    """Split a data set at random, with the number of the split as the seed; the encoder sees training rows only.

    Bank includes the duration of the call here, as in the paper.
    """
    options = {"include_duration": True} if dataset == "bank" else {}
    data = FETCHERS[dataset](remove=remove, **options)
    train, test = train_test_split(np.arange(len(data.y)), test_size=TEST_SIZE, random_state=split)
    encoder = tabular_pipeline(DummyClassifier())[:-1].fit(data.X.iloc[train])
    X, X_test = (np.asarray(encoder.transform(data.X.iloc[rows]), np.float64) for rows in (train, test))
    y = data.y.to_numpy()
    attributes = data.sensitive_features
    return Split(
        data.X.iloc[train].reset_index(drop=True),
        data.X.iloc[test].reset_index(drop=True),
        X,
        y[train],
        attributes.iloc[train],
        X_test,
        y[test],
        attributes.iloc[test],
    )


def execute(job: Job) -> list[Row]:
    """Fit the job's method and measure it on the test rows."""
    if job.method.startswith("grid"):
        from research.paper.grid import execute_grid

        return execute_grid(job)
    if job.method.startswith("rival-"):
        from research.paper.rivals import execute_rival

        return execute_rival(job)
    remove = "all" if job.method in BY_ATTRIBUTES else "paper"
    data = load_split(job.dataset, job.split, remove)
    if job.method in _SEVERAL_ROWS:
        return _SEVERAL_ROWS[job.method](job, data)
    return [_METHODS.get(job.method, _baseline)(job, data)]


def _dafh(job: Job, data: Split) -> Row:
    """Our method as in the paper's tables: logistic regression as the pooled classifier, and K groups."""
    kind: Any = job.method.partition("-")[2] or "exceptions"
    return _groups(DAFHClassifier(job.n_groups, method=kind, pooled="linear", random_state=job.split), data)


def _default(job: Job, data: Split) -> Row:
    """What a user gets by default: a scorecard, and groups where they add something."""
    return _groups(DAFHClassifier(random_state=job.split), data)


def _groups(model: DAFHClassifier, data: Split) -> Row:
    started = time.perf_counter()
    model.fit(data.table, data.y)
    seconds = time.perf_counter() - started
    row = figures(AuditResult.of(model, data.table_test, data.y_test))
    row |= probability_figures(data.y_test, model.predict_proba(data.table_test)[:, 1])
    row["seconds"] = round(seconds, 3)
    row["n_models"] = len(set(model.serves_.tolist()))
    row["n_found"] = model.n_groups_
    row["by_network"] = model.method_ == "network"
    row["label_information"] = round(model.label_information_, 6)
    row["pooled_groups"] = int((model.serves_ == model.n_groups_).sum())
    return row


def _one_model(job: Job, data: Split) -> Row:
    """Yardsticks, one classifier for all rows: as strong and as weak as they come, fitted on all training rows."""
    model = clone(_YARDSTICKS[job.method])
    as_table = isinstance(model, Scorecard)
    train, test = (data.table, data.table_test) if as_table else (data.X, data.X_test)
    started = time.perf_counter()
    model.fit(train, data.y)
    seconds = round(time.perf_counter() - started, 3)
    row = {"accuracy": model.score(test, data.y_test), "n_models": 1, "seconds": seconds}
    return row | probability_figures(data.y_test, model.predict_proba(test)[:, 1])


def _stability(job: Job, data: Split) -> list[Row]:
    """How alike the groups of refits on resampled rows are."""
    from dafh.explanation import stability

    model = DAFHClassifier(job.n_groups, pooled="linear", random_state=job.split)
    return [{"stability": stability(model, data.table, data.y, resamples=_RESAMPLES)}]


def _baseline(job: Job, data: Split) -> Row:
    attributes, attributes_test = choose_attributes(job, data)
    model = make_baseline(job.method, n_groups=job.n_groups, random_state=job.split)
    model.fit(data.X, data.y, sensitive_features=attributes)
    served = ServedPredictions.of(model, data.X_test, attributes_test)
    result = audit(data.y_test, served.predictions, served.groups, pooled=served.pooled)
    positive = model.predict_proba(data.X_test, attributes_test)[:, 1]
    row = figures(result) | probability_figures(data.y_test, positive)
    return row | {"n_models": len({id(estimator) for estimator in model.estimators_})}


def choose_attributes(job: Job, data: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Attributes that the method divides rows by: the one of the paper, those of LR-All and TreeLR, or all."""
    columns = list(data.attributes.columns)
    if job.method == "trivial":
        columns = columns[:1]
    elif job.method in BY_ATTRIBUTES:
        columns = GROUP_ATTRIBUTES[job.dataset]
    return data.attributes[columns], data.attributes_test[columns]


def _composition(job: Job, data: Split) -> list[Row]:
    """Share of each combination of race, sex and age in the groups that DAFH finds, on the test rows."""
    model = DAFHClassifier(job.n_groups, pooled="linear", random_state=job.split).fit(data.table, data.y)
    groups = model.predict_group(data.table_test)
    rows = data.attributes_test[["race_group", "sex", "age_group"]].assign(group=groups)
    rows["race_group"] = rows["race_group"].map({"Caucasian": "White"}).fillna("Non-White")
    shares = rows.groupby("group").value_counts(normalize=True).rename("share").reset_index()
    return [{str(key): value for key, value in row.items()} for row in shares.to_dict("records")]


_YARDSTICKS: dict[str, Any] = {
    "pooled": StandardizedLogisticRegression(),
    "scorecard": Scorecard(),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "majority": DummyClassifier(strategy="most_frequent"),
}
_METHODS: dict[str, Callable[[Job, Split], Row]] = {
    **dict.fromkeys(("dafh", "dafh-network"), _dafh),
    **dict.fromkeys(_YARDSTICKS, _one_model),
    "default": _default,
}
_SEVERAL_ROWS = {"composition": _composition, "stability": _stability}


def probability_figures(y: NDArray[np.int_], positive: NDArray[np.float64]) -> Row:
    """Log-loss, area under the ROC curve, and how far probabilities are from shares, in ten parts of equal size.

    Examples
    --------
    >>> found = probability_figures(np.array([0, 1] * 50), np.tile([0.2, 0.8], 50))
    >>> {name: round(value, 3) for name, value in found.items()}
    {'log_loss': 0.223, 'auc': 1.0, 'calibration': 0.2}
    """
    order = np.argsort(positive, kind="stable")
    parts = np.array_split(order, _CALIBRATION_PARTS)
    gaps = [abs(float(positive[part].mean() - y[part].mean())) * len(part) for part in parts if len(part)]
    return {
        "log_loss": float(log_loss(y, positive, labels=[0, 1])),
        "auc": float(roc_auc_score(y, positive)),
        "calibration": sum(gaps) / len(y),
    }


def figures(result: AuditResult) -> Row:
    """All metrics of the paper's tables, and those that are needed to interpret them.

    Copies of the pooled classifier have a perfect Pr without harm: only accuracy against the pooled classifier,
    disagreement and group sizes tell them apart from a good model.
    """
    matrix = result.matrix
    present = matrix.sizes > 0
    asked = result.questions[result.questions["n"] > 0]
    return {
        "pr": matrix.pr_without_harm,
        "accuracy": matrix.accuracy,
        "pooled_accuracy": matrix.pooled_accuracy,
        "violations": matrix.violations,
        "significant": result.violations["significant"],
        "corrected": result.violations["corrected"],
        "max_gain": matrix.max_gain,
        "min_gain": matrix.min_gain,
        "max_envy_gap": matrix.max_envy_gap,
        "min_envy_gap": matrix.min_envy_gap,
        "disparity_change": matrix.disparity_change,
        "disagreement": matrix.disagreement,
        "smallest_share": float(matrix.weights[present].min()),
        "p_values": [round(float(p), 12) for p in asked["p"]],
    }
