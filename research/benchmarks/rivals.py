"""Rivals on Adult: AUC beside published figures, on rows without race and sex among the columns."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from dafh import tabular_pipeline
from dafh.datasets import fetch_adult
from research.benchmarks.measure import SPLIT, run
from research.rivals import ARLClassifier, DROClassifier

# Average, macro-average over the groups, smallest, and that of the smallest group, by Lahoti et al. 2020.
PUBLISHED = {
    "plain": (0.898, 0.891, 0.867, 0.875),
    "DRO": (0.874, 0.882, 0.843, 0.891),
    "ARL, tuned": (0.907, 0.915, 0.881, 0.942),
}
# Ours beside them; DRO with the share that its authors use.
COMPARED = {
    "plain": DROClassifier(1.0),
    "DRO": DROClassifier(0.2),
    "DRO, tuned": DROClassifier(),
    "ARL": ARLClassifier(),
    "ARL, tuned": ARLClassifier(),
}


class Rows(NamedTuple):
    """Encoded rows, and race and sex of the test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups: pd.Series


def load(n_rows: int | None = None) -> Rows:
    """Adult without sex among the columns; race never is."""
    data = fetch_adult()
    table, y = data.X.drop(columns="sex"), data.y.to_numpy()
    group = data.sensitive_features["race"] + " " + data.sensitive_features["sex"]
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=SPLIT)
    train = train[:n_rows]
    encoder = tabular_pipeline(DummyClassifier())[:-1].fit(table.iloc[train])
    X, X_test = (np.asarray(encoder.transform(table.iloc[rows]), np.float64) for rows in (train, test))
    return Rows(X, y[train], X_test, y[test], group.iloc[test].reset_index(drop=True))


def areas(model: Any, rows: Rows) -> tuple[float, ...]:
    """AUC of all rows, mean and smallest over the four groups, and that of the smallest group."""
    scores = model.predict_proba(rows.X_test)[:, 1]
    groups = [rows.groups == f"{race} {sex}" for race in ("White", "Black") for sex in ("Male", "Female")]
    found = [float(roc_auc_score(rows.y_test[members], scores[members])) for members in groups]
    return float(roc_auc_score(rows.y_test, scores)), float(np.mean(found)), min(found), found[-1]


def tuned(rival: Any, rows: Rows) -> tuple[Any, dict[str, float]]:
    """Choose the setting with the highest AUC on a quarter of the training rows, and fit it on all of them."""
    ((name, values),) = rival.RANGES.items()
    X, X_select, y, y_select = train_test_split(rows.X, rows.y, test_size=0.25, random_state=SPLIT)
    found = [
        roc_auc_score(y_select, clone(rival).set_params(**{name: value}).fit(X, y).predict_proba(X_select)[:, 1])
        for value in values
    ]
    best = {name: values[int(np.argmax(found))]}
    return clone(rival).set_params(**best).fit(rows.X, rows.y), best


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each method, published and ours."""
    rows = load(2_000 if quick else None)
    titles = ("all", "mean of groups", "smallest", "black women")
    for name, rival in COMPARED.items():
        published = PUBLISHED.get(name)
        if published is not None:
            shown = [f"{value:.3f}" for value in published]
            yield {"method": name, "model": "published", "setting": ""} | dict(zip(titles, shown, strict=True))
        for kind in ("linear", "network"):
            rival.set_params(model=kind, random_state=0)
            model, setting = tuned(rival, rows) if "tuned" in name else (rival.fit(rows.X, rows.y), {})
            chosen = ", ".join(f"{key} {value:g}" for key, value in setting.items())
            shown = [f"{value:.3f}" for value in areas(model, rows)]
            yield {"method": name, "model": kind, "setting": chosen} | dict(zip(titles, shown, strict=True))


if __name__ == "__main__":
    run(__file__, lines)
