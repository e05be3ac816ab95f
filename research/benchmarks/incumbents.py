"""Three incumbents that went wrong in known ways, and whether recommendations about them are right on fresh rows.

Of the training rows of a development split, 40% make the incumbent, a pipeline on raw columns, and the others teach
groups on top of it. Half of the test rows are audited, with the sensitive attributes, and give the recommendation. The
other half are fresh rows, which nothing has seen: they say what following it would have changed.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dafh import AuditResult, DAFHClassifier, audit
from dafh.evaluation import ServedPredictions
from research.benchmarks.measure import DATASETS, SPLIT, run
from research.paper.methods import load_split

PAST = 0.4
# Smaller named groups say nothing on so few rows.
SMALLEST_GROUP = 50


def raw_pipeline():
    """What a team puts into production: its own columns and encoders, nothing of ours."""
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=2000))


def stale(table, y, _):
    numbers = table.select_dtypes("number").columns
    return raw_pipeline().fit(table.assign(**{name: 0.7 * table[name] for name in numbers}), y)


def wrong_cutoff(table, y, _):
    model = FixedThresholdClassifier(raw_pipeline(), threshold=0.25, response_method="predict_proba")
    return model.fit(table, y)


def another_population(table, y, attributes):
    values = attributes.iloc[:, 0]
    rows = (values == values.mode()[0]).to_numpy()
    return raw_pipeline().fit(table[rows], y[rows])


INCUMBENTS = {
    "stale": (stale, {}),
    "wrong cut-off": (wrong_cutoff, {}),
    "wrong cut-off, threshold 0.5": (wrong_cutoff, {"threshold": 0.5}),
    "another population": (another_population, {}),
}


def on_fresh_rows(model, table, y, attributes, deploy):
    """Audit of the fresh rows, with own classifiers for some groups and the incumbent for all others."""
    served = ServedPredictions.of(model, table)
    labels = np.where(np.isin(served.groups, deploy), model.predict(table), served.pooled)
    everybody = np.zeros(len(y), int)
    return audit(y, labels, everybody, pooled=served.pooled, sensitive_features=attributes, depth=1)


def verdict_on(kind, fresh):
    """Whether fresh rows support a recommendation."""
    low, high = fresh.totals.loc[0, ["low", "high"]]
    harmed = fresh.verdict.status == "harm"
    if kind.startswith("deploy"):
        return "wrong" if harmed or high < 0 else "supported" if low > 0 else "open"
    return "missed gain" if low > 0 and not harmed else "supported" if harmed or high < 0 else "open"


def one_line(dataset, split, name):
    """Make the incumbent, learn groups, follow the recommendation, and look at fresh rows."""
    data = load_split(dataset, split)
    rng = np.random.default_rng(split)
    past = rng.random(len(data.y)) < PAST
    fresh = rng.random(len(data.y_test)) < 0.5
    make, settings = INCUMBENTS[name]
    incumbent = make(data.table[past], data.y[past], data.attributes[past])
    model = DAFHClassifier(pooled=incumbent, random_state=split, **settings).fit(data.table[~past], data.y[~past])
    test, attributes = data.table_test, data.attributes_test
    result = AuditResult.of(model, test[~fresh], data.y_test[~fresh], sensitive_features=attributes[~fresh], depth=1)
    advice = result.recommendation
    deploy = [int(group) for group in advice.deploy] or range(model.n_groups_)
    seen = on_fresh_rows(model, test[fresh], data.y_test[fresh], attributes[fresh], deploy)
    gain, low, high = 100 * seen.totals.loc[0, ["gain", "low", "high"]].astype(float)
    groups = seen.by_group().iloc[1:]
    groups = groups[groups["rows"] >= SMALLEST_GROUP]
    worst = groups.loc[groups["gain"].idxmin()]
    same = model.n_groups_ == 1 or (model.serves_ == model.n_groups_).all()
    return {
        "data set": dataset,
        "split": split,
        "incumbent": name,
        "its accuracy": f"{incumbent.score(test, data.y_test):.1%}",
        "recommendation": advice.kind.replace("_", " "),
        "gain on fresh rows": "no change" if same else f"{gain:+.2f} ({low:+.2f} to {high:+.2f})",
        "worst named group": "–" if same else f"{worst.name} {100 * worst['gain']:+.2f} ({int(worst['rows']):,} rows)",
        "fresh rows": "nothing to decide" if same else verdict_on(advice.kind, seen),
    }


def lines(quick: bool) -> Iterator[dict[str, object]]:
    """One line for each data set, split and incumbent."""
    for dataset in ("german",) if quick else DATASETS:
        for split in (SPLIT,) if quick else (SPLIT, SPLIT + 1):
            for name in INCUMBENTS:
                yield one_line(dataset, split, name)


if __name__ == "__main__":
    run(__file__, lines)
