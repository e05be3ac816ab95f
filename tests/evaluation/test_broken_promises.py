"""Promises that an independent review found broken, each as the test that would have failed then."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from dafh import DAFHClassifier
from dafh.evaluation.guard import choose_servers
from dafh.rows import HeldOut
from research.guarantees import proof
from research.guarantees.worlds import compare_own


@pytest.fixture(scope="module")
def cautious():
    """A fitted model in production that flags from a probability of 0.25 on, and new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (rng.random(3000) < 1 / (1 + np.exp(1.5 - X[:, 0] - X[:, 1] * X[:, 2]))).astype(int)
    incumbent = FixedThresholdClassifier(LogisticRegression(), threshold=0.25, response_method="predict_proba")
    return incumbent.fit(X[:1000], y[:1000]), X[1000:], y[1000:]


def test_the_default_guard_compares_with_what_the_incumbent_really_predicts(cautious):
    incumbent, X, y = cautious
    model = DAFHClassifier(2, pooled=incumbent, guard_losses="error", random_state=0).fit(X, y)
    error = np.average(model.guard_report_.table["pooled_loss"], weights=model.guard_report_.table["rows"])
    at_its_cutoff, at_one_half = ((labels != y).mean() for labels in (
        incumbent.predict(X), incumbent.estimator_.predict(X)
    ))  # fmt: skip
    assert at_its_cutoff - at_one_half > 0.02  # Otherwise the two could not be told apart.
    assert abs(error - at_its_cutoff) < 0.02


def test_own_classifiers_flag_at_the_incumbents_cutoff(cautious):
    incumbent, X, y = cautious
    model = DAFHClassifier(2, pooled=incumbent, guard=None, random_state=0).fit(X, y)
    assert model.threshold_ == pytest.approx(0.25, abs=0.01)
    assert abs(model.predict(X).mean() - incumbent.predict(X).mean()) < 0.06


def test_weights_of_the_discordant_rows_count_not_those_of_all_rows():
    """Two heavy rows speak for the own classifier. Two rows prove nothing, whatever they weigh."""
    won = np.arange(1000) < 2
    rows = compare_own(np.zeros(1000, int), ~won & False, won, 1, weight=np.where(won, 20.0, 1.0))
    assert choose_servers(rows, kind="proof").serves[0] == 1
    heavy = proof.weight_scenario(proof.few_heavy(0.02, 20.0), "discordant if heavy", 300)
    assert heavy.harmed_share(100) <= 0.12


def test_a_class_of_nine_rows_judges_too():
    label = np.repeat([0, 1], [291, 9])
    judging = [
        HeldOut.draw(label, 0.14, 0.06, 5, np.random.default_rng(seed)).calibrates[label == 1].sum()
        for seed in range(20)
    ]
    assert min(judging) >= 2
