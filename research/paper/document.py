"""The pages docs/reproduction.md and docs/rivals.md, written from stored results: no figure is typed by hand.

``python -m research.paper.document`` writes both from the results in the repository.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from research.pages import fill, markdown
from research.paper import figures
from research.paper.claims import composition_gaps, judge
from research.paper.plan import DATASETS, FIRST, jobs
from research.paper.rivals_tables import NOTE, harmed_table, means_table, related_work, sentences
from research.paper.store import Store
from research.paper.study import READINGS
from research.paper.tables import (
    NAMES,
    SHOWN,
    Results,
    compare_table,
    grid_table,
    lines_of,
    number,
    show,
    synthetic_table,
)

TITLES = {
    "readings": "One update per row, or per batch?",
    "k2": "K = 2 against groups by an attribute, and one classifier",
    "clustering": "K = 2, 3, 4 against clusters",
    "manual": "The manual partition on Arrest",
    "compare": "LR-All and TreeLR, which see attributes",
    "grid": "Protocol paper: all settings, chosen on test rows",
    "synthetic": "The synthetic data",
}
_NOTES = {
    "readings": "Algorithm 1 updates after every row; the table of settings has batches of 256 and 1,024, and does not "
    "say whether a batch is a mean or a sum. Printed settings, random start, no guard, K = 2. Row by row they work. "
    "The classifiers are then near-copies of each other and of the pooled one, except on German: look at disagreement "
    "and violations. What else the paper leaves open (labels, order of rows, first weights, when to stop) is listed "
    "with our choice in `dafh.groups.algorithm`.",
    "k2": "Everything is chosen on training rows, but for the printed settings of DAFH, which are the paper's. Copies "
    "of the pooled classifier would have a Pr of 100%: accuracy against the pooled classifier, disagreement and the "
    "smallest group are shown beside it. Default is `DAFHClassifier()`: a scorecard for all rows, and exceptions where "
    "held-out rows show that they add something.",
    "compare": 'The paper shows the run with the best test accuracy, over numbers of models; so does "best run", over '
    'splits and K = 2, 3, 4. "Mean" is the honest one, with K = 2 where K is given. LR-All and TreeLR have no '
    "attributes among their columns: their gains are over a weaker pooled classifier. Groups: sex × born in the US or "
    "not (unknown is not) × marital status on Adult, which makes the paper's 12; sex × age on Arrest and Violent, 6.",
    "grid": "The paper's 96 settings are 48 here, because an update takes one row whatever the size of a batch. All "
    "methods are trained by the same SGD, row by row. The text chooses by the highest Pr, and there was no selection "
    "part: **the choice is made on the test rows**, to compare with the printed numbers only.",
    "synthetic": "20,000 rows. DAFH in its three readings has the settings of the paper's table with the highest Pr on "
    "the test rows, because the paper prints none for these data. The Bayes rule is right on 96.9% of the rows.",
}
_INTRODUCTION = """\
`make reproduce` makes every figure on this page again; `make reproduce DATA=german TABLE=k2 SPLITS=1` takes a look at
one table in a minute. The page is written from `research/paper/results.json`; no figure is typed by hand.

**DAFH** is the paper's method: its objective and Algorithm 1 with its printed settings, one update per row, from a
random start, without a guard. **Exceptions** and **Network** are ours, with the same logistic regression as the pooled
classifier: the default method of this package, and the paper's network with our objective. **Default** is what a user
gets. Four classifiers for all rows stand below, fitted on all training rows: logistic regression, fitted to convergence
(*pooled, converged*), our scorecard, gradient boosting with the defaults of scikit-learn, and the majority class.

Splits are random, 75% to train and 25% to test, with seeds 0, 1, …; tables show mean ± standard deviation over as many
splits as the last column says, in percent; accuracy to pooled is in percentage points, with a 95% interval."""
_DATA = """\
- **COMPAS columns.** The paper counts 52 columns of Arrest and 53 of Violent; we use 8. The others are names, birth
  dates and case numbers; what was known only after the outcome (`is_recid`, `r_*`, `vr_*`, `event`, `end`); dates of
  the case; and the scores of COMPAS itself. The column `is_recid` alone is right on 97% of the rows of Arrest, and the
  paper's classifiers are right on 66%: it cannot have used all 52, and does not say which. The larger set without leaks
  has 11 columns, with both COMPAS scores and the charge in words: `fetch_arrest(include_scores=True)`.
- **Bank.** The paper's attribute is age, and it does not say where it cuts: under 25 or not is our choice. The duration
  of the call is among the columns here, as in the paper; it is known only when the call is over.
- **LR-All and TreeLR.** The paper does not name their attributes; ours give its numbers of groups."""
_ERRATA = [
    ("the surrogate has no absolute value", "rows of both labels have the same gradient, and nothing is learned"),
    ("the penalty is added", "this would reward one large group; it is subtracted"),
    ("the second sum of the objective runs over i", "it runs over k"),
    ("labels are ±1", "the surrogate needs 0 and 1"),
    ("Proposition 1 is a lower bound", "only where every group is already rational and envy-free"),
    ("Theorems 1 and 2 have the constant 3", "it is 4 − 2/K, which is 3 for K = 2 only"),
    ('"min envy" is a maximum', "both are computed, each under its own name"),
    ("settings are chosen on the rows that are reported", "only the protocol paper does, and says so"),
    (
        "the baselines are weak",
        "logistic regression fitted to convergence beats the printed pooled classifier everywhere",
    ),
    ("Violent, K = 2, first table: 81.91%", "less accurate than the majority class"),
    ("tables disagree on Violent and Arrest, K = 2", "each table is compared with its own values"),
    (
        "an update takes a row in Algorithm 1, and batches are in the table of settings",
        "row by row the printed settings work from a random start; with means of batches they do not",
    ),
]


def reproduction(
    results: Results, datasets: Iterable[str] = DATASETS, tables: Iterable[str] = tuple(TITLES)
) -> list[tuple[str, str]]:
    """Sections of the page for which there are results: titles and texts."""
    chosen = tuple(datasets)
    made: dict[str, pd.DataFrame] = {name: show(results, lines_of(name, chosen), SHOWN[name]) for name in SHOWN}
    made |= {"compare": compare_table(results, chosen), "grid": grid_table(results, chosen)}
    made |= {"synthetic": synthetic_table(results)}
    sections = []
    for name, title in TITLES.items():
        if name in tables and len(made[name]):
            sections.append((title, "\n\n".join([*([_NOTES[name]] if name in _NOTES else []), markdown(made[name])])))
    return sections


def write_reproduction(results: Results, page: Path) -> None:
    """Write the whole page with its figures; all tables must be there."""
    folder = page.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in _charts(results).items():
        chart.save(folder / f"{name}.png", scale_factor=2)
    claims = judge(results)
    table = claims[["claim", "the paper", "verdict"]]
    summary = ", ".join(f"{count} × {verdict}" for verdict, count in claims["verdict"].value_counts().items())
    splits = ", ".join(f"{d} {results.rows(d, FIRST, 2)['split'].nunique()}" for d in DATASETS)
    summary = (
        f"{len(claims)} claims: {summary}. The figures behind each verdict stand below the table. Splits that DAFH "
        f"with K = 2 rests on: {splits}."
    )
    basis = "\n".join(
        f"{place}. **{row.claim}**: {row.verdict}. {row.figures}" for place, row in enumerate(claims.itertuples(), 1)
    )
    sections = [("The paper claim by claim", "\n\n".join([summary, markdown(table), basis])), *reproduction(results)]
    sections += [
        ("Figure: convergence on Violent", f"![Convergence on Violent](figures/convergence.png)\n\n{_CONVERGENCE}"),
        ("Figure: who is in the groups on Arrest", f"![Composition](figures/composition.png)\n\n{_who(results)}"),
        ("The data", _DATA),
        (
            "Where the paper as printed cannot be right",
            markdown(pd.DataFrame(_ERRATA, columns=["in the paper", "what we find"])),
        ),
    ]
    versions = ", ".join(" ".join(item) for item in results.store.about.items())
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections)
    head = f"# The paper, reproduced\n\n{_INTRODUCTION}\n\nMade with {versions}."
    page.write_text(f"{head}\n\n{text}\n", encoding="utf-8")


_CONVERGENCE = (
    "Printed settings, mean and standard deviation over splits; dashed: the trivial partition with converged "
    "classifiers, test rows. Sums of batches show the rise that the paper's figure shows. Updated row by row, the rise "
    "is over within the first steps; means of batches hardly move."
)


def _who(results: Results) -> str:
    """Say what the composition shows, and whether it is the same on other splits."""
    words = []
    for method in (FIRST, "exceptions"):
        gaps = composition_gaps(results, method)
        listed = ", ".join(number(men, 0) for men, _ in gaps)
        words.append(f"{NAMES[method]}: non-white men up to 45 differ by {listed} points between the groups (by split)")
    return "; ".join(words) + "."


def _charts(results: Results) -> dict[str, Any]:
    steps = pd.concat([results.rows("violent", f"steps-{update}").assign(update=update) for update in READINGS])
    trivial = {metric: results.mean("violent", "trivial", 2, metric) / 100 for metric in ("pr", "accuracy")}
    ways = [results.rows("arrest", f"composition-{m}").assign(way=NAMES[m]) for m in (FIRST, "exceptions")]
    shares = pd.concat(ways)
    return {
        "convergence": figures.convergence(steps, trivial),
        "composition": figures.composition(shares[shares["split"] == 0]),
    }


def rivals_text(results: Results) -> str:
    """Tables of rivals, and what they show."""
    rows = results.store.table("rival")
    splits = rows.groupby("dataset")["split"].nunique()
    table = means_table(rows)
    partly = bool((table["data sets"] < len(DATASETS)).any())
    warning = " Some methods were not run on all data sets: the last columns say on how many." if partly else ""
    parts = [
        f"Random splits: {', '.join(f'{d} {splits.get(d, 0)}' for d in DATASETS)}.{warning} {NOTE}",
        markdown(table),
        "\n".join(f"- {sentence}" for sentence in sentences(rows)),
        "### The paper's table of related work, with measured columns",
        "Ticks and crosses are the paper's. Beside each stands what we measured on all data sets and splits: the "
        "share of a method's own groups that no other classifier would serve better (point estimates); fits in which a "
        "named group is shown to be harmed; attributes that the method needs; and fits in which a pair of attributes "
        "is harmed. Rivals with settings to tune count with both ways of tuning, without guard.",
        markdown(related_work(rows)),
        "### Whom they harm",
        "Named groups that are shown to be harmed, with the number of splits in which they are. Methods that are not "
        "listed harm nobody as far as these rows can show: German has 250 test rows, and hides what is smaller than "
        "several percentage points.",
        markdown(harmed_table(rows)),
    ]
    return "\n\n".join(parts)


def is_complete(store: Store) -> bool:
    """Whether every job of the study is done on at least one split."""
    done = {(row.dataset, row.method, row.k) for row in store.table("jobs").itertuples()}
    return {(job.dataset, job.method, job.k) for job in jobs(splits=1)} <= done


if __name__ == "__main__":
    docs = Path(__file__).parents[2] / "docs"
    write_reproduction(Results(Store()), docs / "reproduction.md")
    fill(docs / "rivals.md", "rivals", rivals_text(Results(Store())))
