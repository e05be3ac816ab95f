"""Models that serve people they were not made for: as they are, corrected by DAFH or MCGrad, or replaced.

Boosting is fitted on a third of a data set, corrected on up to 8,000 rows of another third, and judged on the last.
MCGrad is installed for this comparison only (``pip install mcgrad``); without it, its column is empty.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from dafh import DAFHClassifier, IncumbentColumns, Scorecard, tabular_pipeline
from dafh.datasets import FETCHERS
from research.benchmarks.measure import run

KINDS = {"other people": 0.5, "stale": 0.5, "cut-off 0.3": 0.3}
MOST_ROWS = 8000
KNOWN_PEOPLE = {
    "adult": lambda X: X["workclass"] == "Private",
    "bank": lambda X: X["contact"] == "cellular",
    "arrest": lambda X: X["age"] < 30,
    "violent": lambda X: X["age"] < 30,
    "german": lambda X: X["duration"] <= 18,
}


def make_case(name: str, kind: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to correct on and rows to judge by, with the label and the incumbent's probability."""
    data = FETCHERS[name](**({"include_duration": True} if name == "bank" else {}))
    X = data.X.reset_index(drop=True)
    y = (np.asarray(data.y) == np.unique(data.y)[1]).astype(int)
    order = np.random.default_rng([7, seed]).permutation(len(X))
    past, present, future = np.array_split(order, 3)
    label = y.copy()
    if kind == "other people":
        past = past[KNOWN_PEOPLE[name](X.iloc[past]).to_numpy()]
    if kind == "stale":
        first = X.select_dtypes("number").columns[0]
        turned = (X[first] > X[first].median()).to_numpy() & (np.random.default_rng(1).random(len(X)) < 0.35)
        label = np.where(turned, 1 - y, y)
    model = tabular_pipeline(HistGradientBoostingClassifier(max_iter=60, random_state=0))
    model.fit(X.iloc[past], label[past])

    def with_score(rows: NDArray[np.intp]) -> pd.DataFrame:
        return X.iloc[rows].assign(incumbent=model.predict_proba(X.iloc[rows])[:, 1], label=y[rows])

    return with_score(present[:MOST_ROWS]), with_score(future)


def by_mcgrad(training: pd.DataFrame, fresh: pd.DataFrame) -> NDArray[np.float64] | None:
    """Probabilities by MCGrad; None where it is not installed."""
    try:
        from mcgrad import methods
    except ImportError:
        return None
    columns = training.columns.drop(["incumbent", "label"])
    numbers = training[columns].select_dtypes("number").columns.tolist()
    texts = [name for name in columns if name not in numbers]
    training, fresh = (table.astype(dict.fromkeys(texts, str)) for table in (training, fresh))
    names: dict[str, Any] = {
        "prediction_column_name": "incumbent",
        "categorical_feature_column_names": texts,
        "numerical_feature_column_names": numbers,
    }
    model = methods.MCGrad().fit(df_train=training, label_column_name="label", **names)
    return np.asarray(model.predict(df=fresh, **names))


def lines(quick: bool) -> Iterator[dict[str, Any]]:
    """One line for each case: log-loss and loss of every way."""
    cases = [(name, kind) for name in FETCHERS for kind in KINDS]
    for seed, (name, kind) in enumerate(cases[:2] if quick else cases):
        training, fresh = make_case(name, kind, seed)
        cutoff, label = KINDS[kind], fresh["label"].to_numpy()
        X, asked = (table.drop(columns="label") for table in (training, fresh))
        model = DAFHClassifier(pooled=IncumbentColumns("incumbent", threshold=cutoff), random_state=0)
        model.fit(X, training["label"])
        scorecard = Scorecard().fit(X.drop(columns="incumbent"), training["label"])
        ways = {
            "as it is": fresh["incumbent"].to_numpy(),
            "DAFH": model.predict_proba(asked)[:, 1],
            "MCGrad": by_mcgrad(training, fresh),
            "new scorecard": scorecard.predict_proba(asked.drop(columns="incumbent"))[:, 1],
        }
        line: dict[str, Any] = {"case": f"{name}, {kind}"}
        for way, probability in ways.items():
            line[way] = "" if probability is None else _figures(probability, label, cutoff)
        yield line


def _figures(probability: NDArray[np.float64], label: NDArray[np.intp], cutoff: float) -> str:
    """Log-loss, and the cost that the cut-off implies."""
    truth = np.where(label == 1, probability, 1 - probability).clip(1e-7)
    stake = np.where(label == 1, (1 - cutoff) / cutoff, 1.0)
    return f"{-np.log(truth).mean():.4f} / {(stake * ((probability > cutoff) != label)).mean():.3f}"


if __name__ == "__main__":
    run(__file__, lines)
