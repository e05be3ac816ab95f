"""Corrections as they are fitted and as they are served: both add the same to the pooled logits."""

import numpy as np
import pandas as pd
import pytest

from dafh.groups import corrections as module
from dafh.groups.corrections import CorrectionDesign, LinearCorrections, PointCorrections
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
def test_tables_of_very_many_columns_are_shifted_and_stretched(kind, monkeypatch):
    monkeypatch.setattr(module, "_MOST_COEFFICIENTS", 2)
    seen, base, fitted, served = fitted_and_served(kind, 3)
    assert (served.weight.shape, served.of_logits.shape) == ((K, 0, 3), (K, 3, 3))
    for k in range(K):
        np.testing.assert_allclose(served.of_group(seen, base, k), fitted[:, k], atol=1e-9)


@pytest.mark.parametrize(("kind", "n_coefficients"), [("points", 6), ("columns", 6)])
def test_as_many_coefficients_as_allowed_are_fitted_and_one_more_is_not(kind, n_coefficients, monkeypatch):
    """A line, gaps, a flag and three categories; of a column of numbers there are no steps."""
    for most, has_columns in ((n_coefficients, True), (n_coefficients - 1, False)):
        monkeypatch.setattr(module, "_MOST_COEFFICIENTS", most)
        design = CorrectionDesign(kind, seen_rows(), np.ones(N))
        assert design.has_columns is has_columns
        assert design.block(np.zeros((N, 1))).n_coefficients == 1 + (n_coefficients if has_columns else 1)


def test_the_kind_of_the_pooled_classifier_decides_what_is_corrected():
    kinds = [type(fitted_and_served(kind)[3]) for kind in KINDS]
    assert kinds == [PointCorrections, LinearCorrections, LinearCorrections]
    assert [fitted_and_served(kind)[3].of_logits.shape[1] for kind in KINDS[1:]] == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_may_be_served_by_another_classifier_or_by_none(kind):
    seen, base, fitted, served = fitted_and_served(kind)
    chosen = served.chosen(np.array([2, K, 0]))
    np.testing.assert_allclose(chosen.of_group(seen, base, 0), fitted[:, 2], atol=1e-9)
    np.testing.assert_array_equal(chosen.of_group(seen, base, 1), np.zeros((N, 1)))
    np.testing.assert_allclose(chosen.of_group(seen, base, 2), fitted[:, 0], atol=1e-9)


def test_numbers_are_standardised_and_columns_of_two_values_become_0_and_1():
    X = np.column_stack([np.arange(10.0), np.repeat([3.0, 7.0], 5), np.full(10, 4.0)])
    center, scale = module._standardization(X, np.ones(10))
    np.testing.assert_allclose(center[:2], [4.5, 3])
    np.testing.assert_allclose(scale, [np.arange(10).std(), 4, np.inf])


def test_weights_count_in_the_standardisation():
    X, weight = np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 2.0, 1.0])
    one, two = module._standardization(X, weight), module._standardization(X[[0, 1, 1, 2]], np.ones(4))
    np.testing.assert_allclose(one, two)


def test_constant_columns_have_no_coefficient_when_served():
    table = pd.DataFrame({"x": np.arange(20.0), "same": np.full(20, 0.1 + 0.2)})
    seen = TableView.learn(table, np.ones(20)).see(table)
    design = CorrectionDesign("columns", seen, np.ones(20))
    assert design.served(np.ones((1, 3, 1))).weight[0, 1, 0] == 0


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


def test_rules_leave_no_doubt_about_the_group():
    model, seen, _, _ = rule_model()
    np.testing.assert_array_equal(model.group_proba(seen).argmax(axis=1), model.assign(seen))
    assert set(np.unique(model.group_proba(seen))) == {0, 1}


def test_a_group_that_the_pooled_classifier_serves_gets_its_logits():
    model, seen, base, _ = rule_model()
    group, logits = model.serving(np.array([K, 1, K])).route(seen, base)
    np.testing.assert_array_equal(logits[group != 1], base[group != 1])
    assert (logits[group == 1] != base[group == 1]).all()


# ---- rules in use ----


def in_use(serves, gain=None):
    tree = rule_model()[0].tree
    return RulesInUse(tree, np.array(serves), None if gain is None else np.array(gain), np.array([0.5, 0.3, 0.2]))


def test_printed_rules_say_who_serves_a_group_and_what_it_gains():
    text = str(in_use([0, 3, 0], [0.0123, -0.001, 0.0]))
    assert text.splitlines()[0] == "3 groups were found; 2 of them have a classifier other than the pooled one."
    assert "group 0: 50.0% of rows, gain +1.23 percentage points, served by its own classifier\n  if job is a\n" in text
    assert (
        "group 1: 30.0% of rows, gain -0.10 percentage points, served by the pooled classifier\n  if job is b" in text
    )
    assert "served by the classifier of group 0" in text


def test_rules_are_also_a_frame_and_a_page():
    frame = in_use([0, 1, 2], [0.1, 0.2, 0.3]).to_frame()
    assert frame.rule.tolist() == ["job is a", "job is b", "job is not a or b"]
    assert frame["rows"].tolist() == [0.5, 0.3, 0.2]
    assert "job is not a or b" in in_use([0, 1, 2])._repr_html_()


def test_groups_that_nobody_gains_by_are_said_to_be_served_by_the_pooled_classifier():
    assert "the pooled one serves all rows" in str(in_use([3, 3, 3])).splitlines()[0]
