"""Three incumbents that went wrong in known ways, on the paper's data: is the recommendation right on fresh rows?

``python benchmarks/incumbents.py`` writes benchmarks/incumbents.md; ``--quick`` runs German alone and writes nothing.

Of the training rows of a development split, 40% make the incumbent, a pipeline on raw columns, and the others teach
groups on top of it. Half of the test rows are audited, with the sensitive attributes, and give the recommendation. The
other half are fresh rows, which nothing has seen: they say what following it would have changed.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dafh import AuditResult, DAFHClassifier, audit
from dafh.evaluation.served import ServedPredictions
from research.paper.methods import load_split
from dafh.text import percent, points

HERE = Path(__file__).parent
DATASETS = ("adult", "arrest", "violent", "german", "bank")
SPLITS = (100, 101)
PAST = 0.4
ANSWERS = ("supported", "open", "nothing to decide", "missed gain", "wrong")
# Smaller named groups say nothing on so few rows.
SMALLEST_GROUP = 50
PAGE = """# Incumbents that went wrong

Written by `python benchmarks/incumbents.py`, on development splits {splits}. An incumbent is a pipeline on raw columns
with a logistic regression, fitted on 40% of the training rows:

- **stale**: its numbers were 30% lower then, as before years of inflation;
- **wrong cut-off**: it decides at a probability of 0.25, where 0.5 makes the fewest errors;
- **another population**: it was fitted on the rows of one value of the paper's sensitive attribute only.

Groups are learned on the other training rows with all settings at their defaults: own classifiers keep the cut-off of
the incumbent, whatever it is. *Threshold 0.5* is the second incumbent with `threshold=0.5`. Half of the test rows give
the recommendation; *fresh rows* are the other half. Their gain is that of following the recommendation or, where it is
to keep the incumbent, what deploying would have changed: percentage points of accuracy, with a 95% interval. The worst
named group is that with the lowest gain among those with {smallest} fresh rows or more. A recommendation is
**supported** if fresh rows show it (a gain where it says deploy, a loss or harm where it says keep), **open** if they
cannot tell, **wrong** if deploying is shown to lose in total or for a named group, and a **missed gain** if keeping the
incumbent is shown to give up a gain. Where no group has a classifier of its own, there is **nothing to decide**.

{table}

{summary}
"""


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


def recommended(result):
    """Kind of the recommendation, and the groups to deploy for."""
    advice = result.recommendation
    return advice.kind, [int(group) for group in advice.deploy]


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


def one_row(dataset, split, name):
    data = load_split(dataset, split)
    rng = np.random.default_rng(split)
    past = rng.random(len(data.y)) < PAST
    fresh = rng.random(len(data.y_test)) < 0.5
    make, settings = INCUMBENTS[name]
    incumbent = make(data.table[past], data.y[past], data.attributes[past])
    model = DAFHClassifier(pooled=incumbent, random_state=split, **settings).fit(data.table[~past], data.y[~past])
    test, attributes = data.table_test, data.attributes_test
    rows = (test[~fresh], data.y_test[~fresh])
    result = AuditResult.of(model, *rows, sensitive_features=attributes[~fresh], depth=1)
    kind, deploy = recommended(result)
    tried = deploy if deploy else range(model.n_groups_)
    seen = on_fresh_rows(model, test[fresh], data.y_test[fresh], attributes[fresh], tried)
    total = seen.totals.loc[0]
    groups = seen.by_group().iloc[1:]
    groups = groups[groups["rows"] >= SMALLEST_GROUP]
    worst = groups["gain"].idxmin()
    same = model.n_groups_ == 1 or (model.serves_ == model.n_groups_).all()
    gain = "no change" if same else f"{points(total['gain'])} ({points(total['low'])} to {points(total['high'])})"
    answer = "nothing to decide" if same else verdict_on(kind, seen)
    last = "–" if same else f"{worst} {points(groups.loc[worst, 'gain'])} ({int(groups.loc[worst, 'rows']):,} rows)"
    line = [dataset, split, name, percent(incumbent.score(test, data.y_test)), kind.replace("_", " ")]
    return [*line, gain, last, answer]


def main(*, quick):
    warnings.simplefilter("ignore")
    heads = [
        "data set",
        "split",
        "incumbent",
        "its accuracy",
        "recommendation",
        "gain on fresh rows",
        "worst named group",
    ]
    lines = [f"| {' | '.join([*heads, 'fresh rows'])} |", "|---" * (len(heads) + 1) + "|"]
    answers = []
    for dataset in ("german",) if quick else DATASETS:
        for split in SPLITS[:1] if quick else SPLITS:
            for name in INCUMBENTS:
                row = one_row(dataset, split, name)
                answers.append(row[-1])
                lines.append(f"| {' | '.join(map(str, row))} |")
                print(lines[-1], flush=True)
    counts = {answer: answers.count(answer) for answer in ANSWERS}
    summary = f"Of {len(answers)} recommendations, " + ", ".join(f"{n} {answer}" for answer, n in counts.items()) + "."
    print(summary)
    if not quick:
        splits = " and ".join(map(str, SPLITS))
        text = PAGE.format(splits=splits, smallest=SMALLEST_GROUP, table="\n".join(lines), summary=summary)
        (HERE / "incumbents.md").write_text(text)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
