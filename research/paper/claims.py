"""The claims of the paper's text, each judged by the stored results: a verdict is computed, never typed.

A claim about several data sets, tables, metrics or readings holds if it holds for all of them ("in most cases": for
most), holds in part if for some, and does not hold if for none. What the theory claims is judged by argument.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from research.paper import published
from research.paper.plan import COMPARED, DATASETS, FIRST
from research.paper.tables import COMPARED_METHODS, NAMES, READINGS, Results, best_run, best_setting, number

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
DAFH, TRIVIAL, POOLED, MANUAL = (FIRST, 2), ("trivial", 2), ("pooled", 1), ("manual", 2)
Verdict = tuple[str, str]
"""A verdict, and the figures that it rests on."""


def verdict_of(cases: Sequence[bool], *, most: bool = False) -> str:
    """Verdict on a claim about several cases.

    Examples
    --------
    >>> verdict_of([True, True, False]), verdict_of([True, True, False], most=True)
    ('holds in part', 'holds')
    """
    if all(cases) or (most and sum(cases) > len(cases) / 2):
        return HOLDS
    return IN_PART if any(cases) else FAILS


def _gaps(results: Results, first: tuple[str, int], second: tuple[str, int], metric: str) -> dict[str, float]:
    """Mean difference of two methods on each data set that has both, in percentage points."""
    compared = [d for d in DATASETS if results.has(d, first, second)]
    return {d: float(results.difference(d, first, second, metric).mean()) for d in compared}


def _list(values: dict[str, float], digits: int = 1, sign: str = "+") -> str:
    return ", ".join(f"{name} {number(value, digits, sign)}" for name, value in values.items())


def _pr_trivial(results: Results) -> Verdict:
    gaps = _gaps(results, DAFH, TRIVIAL, "pr")
    return verdict_of([gap >= -1 for gap in gaps.values()], most=True), (
        f"Pr minus trivial's, points (comparable: -1 or more): {_list(gaps)}."
    )


def _accuracy(results: Results) -> Verdict:
    trivial, pooled = (_gaps(results, DAFH, rival, "accuracy") for rival in (TRIVIAL, POOLED))
    return verdict_of([trivial[d] > 0 and pooled[d] > 0 for d in trivial]), (
        f"Accuracy minus trivial's, points: {_list(trivial, 2)}; minus pooled's: {_list(pooled, 2)}."
    )


def _same_sgd(results: Results) -> Verdict:
    gaps = {}
    for d in DATASETS:
        paper, *rivals = (best_setting(results, d, name)["accuracy"].mean() for name in ("paper", "trivial", "pooled"))
        gaps[d] = 100 * float(paper - max(rivals))
    return verdict_of([gap > 0 for gap in gaps.values()]), (
        "Judged by what follows from it: with the same SGD and the best settings on test rows, accuracy minus the "
        f"better of trivial and pooled, points: {_list(gaps)}."
    )


def _clustering(results: Results) -> Verdict:
    cells = list(itertools.product(DATASETS, (2, 3, 4)))
    wins = [
        sum(results.difference(d, (FIRST, k), ("clustering", k), metric).mean() > 0 for d, k in cells)
        for metric in ("pr", "accuracy")
    ]
    return verdict_of([won > len(cells) / 2 for won in wins]), (
        f"Higher Pr in {wins[0]} and higher accuracy in {wins[1]} of {len(cells)} cases (data set, K)."
    )


def _arrest(results: Results, first: tuple[str, int], second: tuple[str, int]) -> Verdict:
    gaps = {name: _gaps(results, first, second, name)["arrest"] for name in ("pr", "accuracy")}
    words = f"Arrest, {NAMES[first[0]]} minus {NAMES[second[0]]}, points: Pr {gaps['pr']:+.1f}, accuracy"
    return verdict_of([gap > 0 for gap in gaps.values()]), f"{words} {gaps['accuracy']:+.1f}."


def _no_violations(results: Results) -> Verdict:
    runs = {d: results.rows(d, *DAFH) for d in COMPARED}
    clean = ", ".join(f"{d} {(rows['violations'] == 0).sum()} of {len(rows)}" for d, rows in runs.items())
    runs_best = {d: best_run(results, d, FIRST) for d in COMPARED}
    best = ", ".join(f"{d} {run['violations']:.0f} (K = {run['k']:.0f})" for d, run in runs_best.items())
    significant = sum(int((rows["corrected"] > 0).sum()) for rows in runs.values())
    # The paper reports the most accurate run on test rows.
    return verdict_of([bool(run["violations"] == 0) for run in runs_best.values()]), (
        f"Violations of the most accurate run: {best}; runs without a violation, K = 2: {clean}. After "
        f"Holm's correction, {significant} of {sum(map(len, runs.values()))} runs have one."
    )


def _disparity(results: Results) -> Verdict:
    cases, words = [], []
    for d in COMPARED:
        runs = {method: best_run(results, d, method) for method in COMPARED_METHODS}
        ours = runs.pop(FIRST)
        change = 100 * float(ours["disparity_change"])
        rivals = {
            NAMES[method]: 100 * float(run["disparity_change"])
            for method, run in runs.items()
            if run["violations"] == ours["violations"]
        }
        cases += [change < min(rivals.values())] if rivals else []
        words.append(f"{d} {number(change, 1, '+')} against {_list(rivals) or 'none with as many'}")
    return verdict_of(cases) if cases else "cannot be judged", f"Most accurate runs, points: {'; '.join(words)}."


def _steps(results: Results, method: str, rows: str) -> pd.DataFrame:
    """Mean Pr and accuracy after each step on training or test rows, in percent."""
    steps = results.rows("violent", method.replace("paper", "steps"))
    return 100 * steps[steps["part"] == rows].groupby("step")[["pr", "accuracy"]].mean()


def _rise(results: Results) -> Verdict:
    cases, words = [], []
    for method, title in READINGS.items():
        steps = results.rows("violent", method.replace("paper", "steps")).sort_values("step", kind="stable")
        metrics = steps.groupby(["split", "part"])[["pr", "accuracy"]]
        has_risen = (metrics.last() > metrics.first()).all(axis=1).groupby("split").all()
        cases += has_risen.tolist()
        tested = _steps(results, method, "test")
        rise, last = tested.iloc[-1] - tested.iloc[0], tested.iloc[-1]
        words.append(
            f"{title} {rise['pr']:+.1f}/{rise['accuracy']:+.1f} to {last['pr']:.1f}/{last['accuracy']:.1f}, all four "
            f"figures higher in {has_risen.sum()} of {len(has_risen)} splits"
        )
    return verdict_of(cases), (
        "Violent, Pr and accuracy on training and test rows; rise of Pr/accuracy on test rows from the first to the "
        f"last of 24 steps: {'; '.join(words)}."
    )


def _fifteen_steps(results: Results) -> Verdict:
    printed = published.K2["violent", "trivial"]
    converged = {metric: results.mean("violent", *TRIVIAL, metric) for metric in printed}
    cases, words = [], []
    for method, title in READINGS.items():
        steps = _steps(results, method, "test")
        above = [steps.index[(steps > pd.Series(level)).all(axis=1)] for level in (printed, converged)]
        cases += [bool(len(index) and index[0] < 15) for index in above]
        first = [f"after step {index[0]}" if len(index) else "never" for index in above]
        words.append(f"{title}: {first[0]}, {first[1]}")
    return verdict_of(cases), (
        f"Violent, above the trivial partition as printed, and as converged: {'; '.join(words)}."
    )


def _synthetic(results: Results) -> Verdict:
    means = 100 * results.store.table("synthetic").groupby("way")[["pr", "accuracy"]].mean()
    rivals = means.loc[["partition by s1", "partition by s2", "pooled"]].max()
    updates = {title: method.removeprefix("paper-") for method, title in READINGS.items()}
    pairs = ", ".join(f"{t} {means.loc[u, 'pr']:.1f}/{means.loc[u, 'accuracy']:.1f}" for t, u in updates.items())
    return verdict_of([bool((means.loc[update] > rivals).all()) for update in updates.values()]), (
        f"Synthetic data, Pr/accuracy: {pairs}; the best of both attributes and pooled {rivals['pr']:.1f}/"
        f"{rivals['accuracy']:.1f}."
    )


def _penalty(results: Results) -> Verdict:
    largest: dict[str, list[float]] = {}
    for d in DATASETS:
        rows = results.rows(d, "sgd-paper")
        # The smallest group that has rows: where all are in one group, it is also the largest.
        share = 100 * np.maximum(rows["smallest_share"], 1 - rows["smallest_share"])
        largest[d] = [float(share[rows["penalty"] == lam].mean()) for lam in (0.0, 10.0)]
    return verdict_of([by[0] >= 75 and by[0] > by[1] for by in largest.values()]), (
        "Larger of two groups without the penalty and with λ = 10, % of the test rows (three quarters count as a "
        "majority, of which the paper has no number): "
        f"{', '.join(f'{d} {by[0]:.0f} and {by[1]:.0f}' for d, by in largest.items())}."
    )


def composition_gaps(results: Results, method: str = FIRST) -> list[tuple[float, float]]:
    """How far the two groups of Arrest differ, by split, in percentage points.

    The share of non-white men up to 45 in the group that has more of them, minus that in the other; and the share of
    non-white women from 25 to 45 in the other, minus that in the first.
    """
    rows = results.rows("arrest", f"composition-{method}")
    is_male, age = rows["sex"] == "Male", rows["age_group"]
    who = np.where(is_male & (age != "greater than 45"), "men", np.where(~is_male & (age == "25 - 45"), "women", ""))
    rows = rows.assign(who=np.where(rows["race_group"] == "non-white", who, ""))
    gaps = []
    for _, members in rows.groupby("split"):
        shares = 100 * members.pivot_table("share", "group", "who", aggfunc="sum").reindex(columns=["men", "women"])
        shares = shares.fillna(0)
        difference = shares.loc[shares["men"].idxmax()] - shares.loc[shares["men"].idxmin()]
        gaps.append((float(difference["men"]), -float(difference["women"])))
    return gaps


def _composition(results: Results) -> Verdict:
    gaps = composition_gaps(results)
    return verdict_of([men >= 10 and women >= 5 for men, women in gaps]), (
        "Arrest, by split, points: non-white men up to 45 in one group minus the other (especially higher: 10), and "
        "non-white women from 25 to 45 the other way round (5): "
        f"{'; '.join(f'{men:+.0f} and {women:+.0f}' for men, women in gaps)}."
    )


def _majority(results: Results) -> Verdict:
    shares = {d: results.mean(d, *DAFH, "disagreement") for d in DATASETS}
    return verdict_of([share > 50 for share in shares.values()]), (
        f"Only rows that are decided differently can prefer a classifier, K = 2, %: {_list(shares, 1, '')}."
    )


def _theorem_2(results: Results) -> Verdict:
    gaps = _gaps(results, DAFH, TRIVIAL, "accuracy")
    lost = [d for d, gap in gaps.items() if gap < 0]
    where = f" ({', '.join(lost)})" if lost else ""
    return FAILS if lost else IN_PART, (
        "Theorem 2 bounds the gap of two maxima (with 4 − 2/K in place of 3), not what gradient ascent reaches. The "
        f"trivial partition is more accurate on {len(lost)} of {len(gaps)} data sets{where}."
    )


# The paper's words, and the function that judges them.
CLAIMS: dict[str, Callable[[Results], Verdict]] = {
    "comparable or even higher probability ... compared with Trivial partition on most datasets": _pr_trivial,
    "higher accuracy than Trivial partition and Pooled classifier": _accuracy,
    "the same learning rate ... in both our algorithm and other baselines": _same_sgd,
    "outperforms the Clustering baseline in most cases in terms of probability ... and accuracy": _clustering,
    "Manual partition achieves a higher probability ... and accuracy compared with Trivial": lambda results: _arrest(
        results, MANUAL, TRIVIAL
    ),
    "Manual Partition does not outperform our algorithm": lambda results: _arrest(results, DAFH, MANUAL),
    "ensures no violations of rationality or envy-freeness across all datasets": _no_violations,
    "compared to algorithms with the same number of violations, ... achieves lower Δ disparity": _disparity,
    "improves fairness without harm and accuracy on both training and testing sets": _rise,
    "can outperform Trivial partition in less than 15 steps of mini-batch gradient ascent operations": _fifteen_steps,
    "can attain the best fairness and accuracy": _synthetic,
    "tends to assign a majority of training samples to the same group": _penalty,
    "the proportion of non-white male less than 45 in Group 0 is especially higher than that in Group 1": _composition,
    "a majority of individuals in each group will prefer their assigned decoupled classifiers": _majority,
    "the following lower bound on the objective function": lambda _: (
        IN_PART,
        "Sure only where every group is rational and envy-free already. A violation is divided by n, not by n_k: with "
        "two groups of half the rows, −0.1 becomes −0.05.",
    ),
    "with probability at least 1 − 2K(K+1) exp{−2ε²n/9}": lambda _: (
        IN_PART,
        "n is the smallest group. For K = 2, and classifiers fixed before the rows were seen. The sum is bounded by "
        "(4 − 2/K) ε: 3.33 ε for "
        "K = 3, 3.5 ε for K = 4.",
    ),
    "guaranteed to outperform decoupled classifiers trained by ... sensitive attributes": _theorem_2,
}


def judge(results: Results) -> pd.DataFrame:
    """Judge every claim: quote, verdict and the figures that it rests on. All tables must be there."""
    rows = [(f"“{quote}”", *judge_claim(results)) for quote, judge_claim in CLAIMS.items()]
    return pd.DataFrame(rows, columns=["the paper", "verdict", "figures"])
