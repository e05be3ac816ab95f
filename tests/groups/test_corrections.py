"""Corrections as they are fitted and as they are served: both add the same to the pooled logits."""

import numpy as np
import pandas as pd
import pytest

from dafh.groups.corrections import CorrectionDesign
from dafh.groups.rules import Question, RuleTree
from dafh.groups.rules_in_use import RulesInUse
from dafh.groups.trained import RuleModel
from dafh.rows.seen import TableView

N, K = 80, 3
KINDS = ("points", "columns", "logits")


def seen_rows(seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"age": rng.integers(18, 60, N) * 1000.0, "flag": rng.random(N) < 0.1, "job": rng.choice(list("abc"), N)}
    )
    table.loc[::9, "age"] = np.nan
    return TableView.learn(table, np.ones(N)).see(table)


def fitted_and_served(kind, n_outputs=1, seed=0):
    """Pooled logits, what random coefficients add to them as they are fitted, and the same as it is served."""
    rng, seen = np.random.default_rng(seed), seen_rows()
    base = rng.normal(size=(N, n_outputs))
    design = CorrectionDesign(kind, seen, np.ones(N))
    coefficients = rng.normal(size=(K, design.block(base).n_coefficients, n_outputs))
    fitted = np.stack([design.block(base).logits(part) for part in coefficients], axis=1)
    return seen, base, fitted, design.served(coefficients)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_corrections_add_the_same_when_they_are_fitted_and_when_they_are_served(kind, n_outputs):
    seen, base, fitted, served = fitted_and_served(kind, n_outputs)
    assert served.n_groups == K
    for k in range(K):
        np.testing.assert_allclose(served.of_group(seen, base, k), fitted[:, k], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_may_be_served_by_another_classifier_or_by_none(kind):
    seen, base, fitted, served = fitted_and_served(kind)
    chosen = served.chosen(np.array([2, K, 0]))
    np.testing.assert_allclose(chosen.of_group(seen, base, 0), fitted[:, 2], atol=1e-9)
    np.testing.assert_array_equal(chosen.of_group(seen, base, 1), np.zeros((N, 1)))
    np.testing.assert_allclose(chosen.of_group(seen, base, 2), fitted[:, 0], atol=1e-9)


# ---- served with rules ----


def rule_model(kind="columns"):
    """Groups by job: a, b, and the rest."""
    seen, base, fitted, served = fitted_and_served(kind)
    questions = (Question(0, 2, (0,)), Question(1, 2, (1,)))
    return RuleModel(RuleTree(seen.view.binning, questions, np.arange(3)), served), seen, base, fitted


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_served_by_the_classifier_of_its_group(kind):
    model, seen, base, fitted = rule_model(kind)
    group, logits = model.route(seen, base)
    np.testing.assert_array_equal(group, seen.given.job.map({"a": 0, "b": 1, "c": 2}))
    np.testing.assert_allclose(logits, base + fitted[np.arange(N), group], atol=1e-9)
    np.testing.assert_allclose(model.every(seen, base), base[:, None] + fitted, atol=1e-9)


def test_a_group_that_the_pooled_classifier_serves_gets_its_logits():
    model, seen, base, _ = rule_model()
    group, logits = model.serving(np.array([K, 1, K])).route(seen, base)
    np.testing.assert_array_equal(logits[group != 1], base[group != 1])
    assert (logits[group == 1] != base[group == 1]).all()


# ---- rules in use ----


def in_use(serves, gain=None):
    tree = rule_model()[0].tree
    return RulesInUse(tree, np.array(serves), None if gain is None else np.array(gain), np.array([0.5, 0.3, 0.2]))


def test_rules_are_also_a_frame_and_a_page():
    frame = in_use([0, 1, 2], [0.1, 0.2, 0.3]).to_frame()
    assert frame.rule.tolist() == ["job is a", "job is b", "job is not a or b"]
    assert frame["rows"].tolist() == [0.5, 0.3, 0.2]
    assert "job is not a or b" in in_use([0, 1, 2])._repr_html_()
