"""The central promise: nothing that is judged on the rows of a fold has seen their labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cases import checkerboard
from dafh import Scorecard
from dafh.estimators.pooled import choose_n_folds, fit_pooled, nested_pooled_logits
from dafh.groups.corrections import CorrectionDesign
from dafh.groups.exact import Candidate, RuleRows, _Search
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows

N, N_FOLDS = 900, 3
FOLD = np.random.default_rng(5).integers(0, N_FOLDS, N)
CANDIDATES = [Candidate("mean", 4, 2, 50.0, 0.1), Candidate("score", 8, 3, 10.0, 0.3)]
# Strengths that cross-validation would choose once for all rows are fixed here.
POOLED = {
    "scorecard": Scorecard(strength=1.0),
    "linear": StandardizedLogisticRegression(C=1.0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}


def table_and_labels(seed=0):
    """Numbers and categories; the effect of one column depends on another."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=N).round(1), "b": rng.normal(size=N), "c": rng.choice(list("xyz"), N)})
    score = table.a * np.where(table.b > 0, 2, -1) + (table.c == "x")
    return table, (score + rng.logistic(size=N) > 0).to_numpy(np.intp)


def problem(pooled, label):
    """Rows for rules, made as `learn_groups` makes them."""
    table, _ = table_and_labels()
    rows = CheckedRows(np.empty((0, 0)), table, label, np.array([0, 1]), np.ones(N))
    fitted = fit_pooled(pooled, rows, 0)
    seen = fitted.view.see(table)
    base = nested_pooled_logits(pooled, fitted, rows, seen, FOLD, N_FOLDS)
    design = CorrectionDesign(fitted.kind, seen, rows.weight)
    binning = fitted.view.binning
    return RuleRows(
        binning, seen.codes, label, rows.weight, base, lambda block: design.block(base[block]), FOLD, FOLD >= 0
    )


@pytest.mark.parametrize(("pooled", "block"), checkerboard(POOLED.values(), range(N_FOLDS)))
def test_labels_of_a_fold_change_nothing_that_the_fold_judges(pooled, block):
    _, label = table_and_labels()
    other = np.where(block == FOLD, np.random.default_rng(block).integers(0, 2, N), label)
    one, two = (problem(pooled, labels) for labels in (label, other))
    np.testing.assert_allclose(one.base[block], two.base[block], atol=1e-5)
    assert np.abs(one.base[(block + 1) % N_FOLDS] - two.base[(block + 1) % N_FOLDS]).max() > 0.01
    for candidate in CANDIDATES:
        before, after = (_Search(rows, (2, 3)).make(block, candidate) for rows in (one, two))
        assert before.tree.questions == after.tree.questions
        np.testing.assert_array_equal(before.tree.group, after.tree.group)
        np.testing.assert_allclose(before.corrections, after.corrections, atol=1e-3)


@pytest.mark.parametrize("pooled", POOLED.values(), ids=list(POOLED))
def test_losses_on_the_rows_that_select_follow_from_their_own_labels_alone(pooled):
    """With all labels of a fold turned, a loss of −log p becomes −log (1 − p)."""
    _, label = table_and_labels()
    turned = np.where(FOLD == 1, 1 - label, label)
    first, second = (_Search(problem(pooled, labels), (2,)) for labels in (label, turned))
    judges = FOLD == 1
    shares = np.exp(-first.pooled_losses[judges]) + np.exp(-second.pooled_losses[judges])
    np.testing.assert_allclose(shares, 1, atol=1e-4)


def test_folds_are_five_where_fits_are_cheap_and_three_where_they_are_not():
    fitted = GaussianNB().fit([[0.0], [1.0]], [0, 1])
    assert choose_n_folds(fitted, 1000) == choose_n_folds(StandardizedLogisticRegression(), 1000) == 5
    assert (
        choose_n_folds(GaussianNB(), 1000) == choose_n_folds(Scorecard(), 1000) == choose_n_folds(fitted, 20_000) == 3
    )
