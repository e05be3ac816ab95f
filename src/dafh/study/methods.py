"""What a job of a study does: fit one method on one split of one data set, and measure it on the test rows."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split

from dafh.datasets.loaders import FETCHERS
from dafh.estimators.dafh import DAFHClassifier
from dafh.evaluation.audit import audit
from dafh.evaluation.result import AuditResult
from dafh.evaluation.served import ServedPredictions
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rivals.baselines import make_baseline
from dafh.study.runner import Job, Row
from dafh.tables.encoder import TableEncoder

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


class Split(NamedTuple):
    """Encoded training and test rows, with the sensitive attributes beside them."""

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
    encoder = TableEncoder().fit(data.X.iloc[train])
    X, X_test = (np.asarray(encoder.transform(data.X.iloc[rows]), np.float64) for rows in (train, test))
    y = data.y.to_numpy()
    attributes = data.sensitive_features
    return Split(X, y[train], attributes.iloc[train], X_test, y[test], attributes.iloc[test])


def execute(job: Job) -> list[Row]:
    """Fit the job's method and measure it on the test rows."""
    if job.method.startswith("grid"):
        from dafh.study.grid import execute_grid

        return execute_grid(job)
    remove = "all" if job.method in BY_ATTRIBUTES else "paper"
    data = load_split(job.dataset, job.split, remove)
    if job.method == "composition":
        return _composition(job, data)
    return [_METHODS.get(job.method, _baseline)(job, data)]


def _dafh(job: Job, data: Split) -> Row:
    model = DAFHClassifier(n_groups=job.n_groups, random_state=job.split).fit(data.X, data.y)
    result = AuditResult.of(model, data.X_test, data.y_test)
    row = figures(result)
    row["n_models"] = len(set(model.serves_.tolist()))
    row["label_information"] = round(model.label_information_, 6)
    row["pooled_groups"] = int((model.serves_ == model.n_groups_).sum())
    return row


def _one_model(job: Job, data: Split) -> Row:
    """Yardsticks: logistic regression fitted to convergence on all training rows, or the majority class."""
    model = clone(_YARDSTICKS[job.method]).fit(data.X, data.y)
    return {"accuracy": model.score(data.X_test, data.y_test), "n_models": 1}


def _baseline(job: Job, data: Split) -> Row:
    attributes, attributes_test = choose_attributes(job, data)
    model = make_baseline(job.method, n_groups=job.n_groups, random_state=job.split)
    model.fit(data.X, data.y, sensitive_features=attributes)
    served = ServedPredictions.of(model, data.X_test, attributes_test)
    result = audit(data.y_test, served.predictions, served.groups, pooled=served.pooled)
    return figures(result) | {"n_models": len({id(estimator) for estimator in model.estimators_})}


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
    model = DAFHClassifier(n_groups=job.n_groups, random_state=job.split).fit(data.X, data.y)
    rows = data.attributes_test[["race_group", "sex", "age_group"]].assign(group=model.predict_group(data.X_test))
    rows["race_group"] = rows["race_group"].map({"Caucasian": "White"}).fillna("Non-White")
    shares = rows.groupby("group").value_counts(normalize=True).rename("share").reset_index()
    return [{str(key): value for key, value in row.items()} for row in shares.to_dict("records")]


_YARDSTICKS = {"pooled": StandardizedLogisticRegression(), "majority": DummyClassifier(strategy="most_frequent")}
_METHODS = {"dafh": _dafh, "pooled": _one_model, "majority": _one_model}


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
