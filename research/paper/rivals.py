"""Rivals side by side: what each gains and whom it harms, on the same splits and with the same tuning.

All are compared with one yardstick, logistic regression fitted to convergence on all training rows, by the decisions
that both make about the test rows. Named groups are those of the attributes that a data set carries, alone and in
pairs. A job has a row for each way in which its method was tuned, with and without the guard.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from dafh import DAFHClassifier, PreferenceMatrix, audit
from dafh.linear import StandardizedLogisticRegression
from research.paper.store import Job, Row
from research.paper.study import GROUP_ATTRIBUTES, YARDSTICKS, Split, load_split, model_of
from research.rivals.baselines import RIVALS, make_baseline
from research.rivals.influence_sampling import InfluenceSamplingClassifier
from research.rivals.shared_latent import SharedLatentClassifier
from research.rivals.tuning import CRITERIA, tune

PLAIN = ("pooled", "mlp", "scorecard", "boosting")
"""One model for all rows: what capacity alone does to named groups."""
PARTLY = {"shared-latent": SharedLatentClassifier, "influence-sampling": InfluenceSamplingClassifier}
"""Rivals that need the attribute of some rows."""
# Groups of ours, and clusters that the guard of a rival chooses by.
_N_GROUPS, _N_CLUSTERS = 4, 8
# Of Adult and Bank, so many rows are drawn to tune on.
_TUNING_ROWS = 10_000
# The decision that people want, for Zafar's constraint: no arrest predicted, a good risk, a high income.
_ACCEPTED = {"adult": 1, "arrest": 0, "violent": 0, "german": 1, "bank": 1}
# Named groups of fewer test rows have any accuracy: they are tested, but they are not the worst.
_SMALLEST_WORST_GROUP = 50
# Names of harmed groups that are stored for each fit, of up to a hundred.
_MOST_NAMES = 5


def rival_methods() -> list[tuple[str, int]]:
    """All methods of the table, with their number of groups."""
    groups = {"paper-row": 2, "exceptions": _N_GROUPS, "network": _N_GROUPS, "zafar": 2}
    groups |= dict.fromkeys((*PLAIN, "treelr", *PARTLY), 1) | dict.fromkeys(RIVALS, _N_CLUSTERS)
    return [(f"rival-{name}", k) for name, k in groups.items()]


def execute_rival(job: Job) -> list[Row]:
    """Fit a method in all its ways, and compare each with the converged pooled classifier on the test rows."""
    name = job.method.removeprefix("rival-")
    data = load_split(job.dataset, job.split)
    judge = Judge.of(data)
    if name in PLAIN:
        model = clone(YARDSTICKS[name]) if name in YARDSTICKS else make_baseline(name, random_state=job.split)
        X, X_test = data.columns_for(model)
        return [judge.row(model.fit(X, data.y).predict(X_test))]
    if name in PARTLY:
        partly = PARTLY[name](random_state=job.split).fit(data.X, data.y, data.attributes.iloc[:, 0].to_numpy())
        return [judge.row(partly.predict(data.X_test))]
    if name == "treelr":
        return [_treelr(job, judge)]
    if name in ("exceptions", "network"):
        return [
            _groups(_ours(name, job, guard), data, judge) | {"guarded": bool(guard)} for guard in (None, "evidence")
        ]
    if name == "paper-row":
        return [_groups(model_of(name, job.dataset, job.k, job.split), data, judge)]
    return _tuned(name, job, data, judge)


def _ours(method: Any, job: Job, guard: Any) -> DAFHClassifier:
    return DAFHClassifier(job.k, method=method, pooled="linear", guard=guard, random_state=job.split)


def _groups(model: DAFHClassifier, data: Split, judge: "Judge") -> Row:
    row = judge.row(model.fit(data.table, data.y).predict(data.table_test))
    return row | _preferring(PreferenceMatrix.of(model, data.table_test, data.y_test))


def _treelr(job: Job, judge: "Judge") -> Row:
    data, columns = load_split(job.dataset, job.split, "all"), GROUP_ATTRIBUTES[job.dataset]
    groups_test = data.attributes_test[columns]
    model = make_baseline("treelr", random_state=job.split)
    model.fit(data.X, data.y, sensitive_features=data.attributes[columns])
    row = judge.row(model.predict(data.X_test, groups_test))
    return row | _preferring(PreferenceMatrix.of(model, data.X_test, data.y_test, sensitive_features=groups_test))


def _preferring(matrix: PreferenceMatrix) -> Row:
    """Share of the own groups that no other classifier would serve better, by point estimates on the test rows."""
    satisfied = (matrix.gains > -1e-9) & (np.nan_to_num(matrix.envy_gaps) > -1e-9).all(axis=1)
    return {"preferring": float(satisfied[matrix.sizes > 0].mean())}


def _tuned(name: str, job: Job, data: Split, judge: "Judge") -> list[Row]:
    """Rows for each criterion, without and with the guard; a setting that both criteria choose is fitted once."""
    options: dict[str, Any] = {"n_groups": job.k, "random_state": job.split}
    X, X_test, groups, groups_test = data.X, data.X_test, None, None
    if name == "zafar":
        options["accepted"] = _ACCEPTED[job.dataset]
        groups, groups_test = data.attributes.iloc[:, :1], data.attributes_test.iloc[:, :1]
        # The group is the last column, too: see `ZafarClassifier`.
        values = sorted(groups.iloc[:, 0].unique())
        codes = [table.iloc[:, 0].map(values.index).to_numpy() for table in (groups, groups_test)]
        X, X_test = (np.column_stack(pair) for pair in zip((data.X, data.X_test), codes, strict=True))
    unfitted = make_baseline(name, **options).estimator
    tuning = tune(unfitted, X, data.y, max_rows=_TUNING_ROWS, random_state=job.split)
    rows: list[Row] = []
    fitted: dict[tuple[str, bool], Row] = {}
    for criterion, guard in itertools.product(CRITERIA, (None, "evidence")):
        setting = tuning.best(criterion)
        key = (repr(setting), guard is not None)
        if key not in fitted:
            rival = make_baseline(name, guard=guard, **options, **setting).fit(X, data.y, sensitive_features=groups)
            fitted[key] = judge.row(rival.predict(X_test, groups_test))
            if name == "zafar":
                matrix = PreferenceMatrix.of(rival, X_test, data.y_test, sensitive_features=groups_test)
                fitted[key] |= _preferring(matrix)
        rows.append({**fitted[key], "tuned": criterion, "guarded": key[1]})
    return rows


@dataclass(frozen=True, eq=False)
class Judge:
    """The test rows with the decisions of the converged pooled classifier."""

    y: NDArray[np.int_]
    attributes: pd.DataFrame
    pooled: NDArray[Any]

    @classmethod
    def of(cls, data: Split) -> "Judge":
        """Fit the pooled classifier on all training rows."""
        pooled = StandardizedLogisticRegression().fit(data.X, data.y)
        # Two groups of races stand beside the races themselves: one attribute twice would count groups twice.
        named = data.attributes_test.drop(columns="race_group", errors="ignore")
        return cls(data.y_test, named, pooled.predict(data.X_test))

    def row(self, decided: NDArray[Any]) -> Row:
        """Gains over the pooled classifier in all and in named groups, and whom the decisions are shown to harm."""
        one_group = np.zeros(len(self.y), np.intp)
        result = audit(self.y, decided, one_group, pooled=self.pooled, sensitive_features=self.attributes, depth=2)
        named: Any = result.named
        large = named[named["n"] >= _SMALLEST_WORST_GROUP]
        harmed = named.loc[named["verdict"] == "violated", "group"].tolist()
        return {
            "tuned": "–",
            "guarded": False,
            "to_pooled": float((decided == self.y).mean() - (self.pooled == self.y).mean()),
            "worst_accuracy": 1 - float(large["own_loss"].max()),
            "pooled_worst": 1 - float(large["rival_loss"].max()),
            "n_harmed": len(harmed),
            "pairs_harmed": sum(" & " in name for name in harmed),
            "people_harmed": self._share(harmed),
            # Groups of one attribute before pairs.
            "harmed": "; ".join(sorted(harmed, key=lambda name: (" & " in name, name))[:_MOST_NAMES]),
            "disagreement": float((decided != self.pooled).mean()),
        }

    def _share(self, harmed: list[str]) -> float:
        """Share of the rows that belong to at least one of some named groups."""
        words = self.attributes.astype(object).where(self.attributes.notna(), "(missing)").astype(str)
        named = [name + " = " + words[name] for name in words]
        pairs = [first + " & " + second for first, second in itertools.combinations(named, 2)]
        return float(np.any([group.isin(harmed) for group in (*named, *pairs)], axis=0).mean())
