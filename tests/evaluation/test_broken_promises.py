"""Seven promises that an independent review found broken, each as the test that would have failed then."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from dafh import DAFHClassifier, audit
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import choose_servers
from dafh.rows import HeldOut
from research.guarantees import audits, proof
from research.guarantees.coverage import missed
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


def test_named_groups_are_not_satisfied_because_their_sampled_rows_are_served_by_the_pooled_classifier():
    y, groups = np.zeros(400, int), np.repeat([0, 1], 200)
    town = np.where(groups == 0, "a", np.tile(["b", "c"], 200))
    result = audit(
        y, np.tile([[0], [1]], (200, 2)), groups, pooled=np.zeros(400, int), own=[0, 2], sensitive_features=town
    )
    assert set(result.named.set_index("group")["verdict"][1:]) == {"undecided"}
    assert audits.audit_scenarios()[0].wrong_shares(30) == (0.0, 0.0)


def test_harm_by_more_than_a_margin_is_what_was_tested():
    """18 rows lost of 400 and 3 won: harm is shown, but not harm of more than 2 percentage points."""
    own = np.repeat([1, 0, 0], [18, 3, 379])
    pooled = np.repeat([0, 1, 0], [18, 3, 379])
    options = {"y": np.zeros(400, int), "predictions": own, "groups": np.zeros(400, int), "pooled": pooled}
    assert audit(**options).harm
    assert not audit(**options, margin=0.02).harm


def test_weights_of_the_discordant_rows_count_not_those_of_all_rows():
    """Two heavy rows speak for the own classifier. Two rows prove nothing, whatever they weigh."""
    won = np.arange(1000) < 2
    rows = compare_own(np.zeros(1000, int), ~won & False, won, 1, weight=np.where(won, 20.0, 1.0))
    assert choose_servers(rows, kind="proof").serves[0] == 1
    heavy = proof.weight_scenario(proof.few_heavy(0.02, 20.0), "discordant if heavy", 300)
    assert heavy.harmed_share(100) <= 0.12


@pytest.mark.parametrize(("n_rows", "discordance", "relative"), [(5, 1.0, -0.25), (10, 0.95, 0.25), (30, 0.8, -0.5)])
def test_an_interval_holds_its_level_at_high_discordance(n_rows, discordance, relative):
    assert missed(n_rows, discordance, relative * discordance, 0.025)[0] <= 0.025


@pytest.mark.parametrize(
    ("lost", "won", "kept"),
    [(10, 16, True), (10, 15, False), (10, 11, False), (11, 11, False), (11, 10, False), (0, 0, False)],
)
def test_evidence_keeps_a_classifier_only_if_rows_speak_for_it(lost, won, kept):
    """At 0.4, a classifier that had lost a row more than it won was kept. P[Bin(26, ½) ≥ 16] = 0.16."""
    outcome = np.repeat([1, -1, 0], [lost, won, 200 - lost - won])
    rows = compare_own(np.zeros(200, int), outcome == 1, outcome == -1, 1)
    assert (choose_servers(rows).serves[0] == 0) == kept


def test_without_rows_there_is_no_own_classifier():
    assert choose_servers(ComparedRows.none(2)).serves.tolist() == [2, 2]


def test_a_class_of_nine_rows_judges_too():
    label = np.repeat([0, 1], [291, 9])
    judging = [
        HeldOut.draw(label, 0.14, 0.06, 5, np.random.default_rng(seed)).calibrates[label == 1].sum()
        for seed in range(20)
    ]
    assert min(judging) >= 2


def test_undecided_named_groups_are_never_fine():
    row = np.arange(400)
    predictions = np.column_stack([np.zeros(400, int), np.zeros(400, int)])
    pooled = (row % 10 == 0).astype(int)
    towns = pd.DataFrame({"town": (row // 10).astype(str)})
    found = audit(np.zeros(400, int), predictions, row % 2, pooled=pooled, own=[0, 0], sensitive_features=towns)
    assert (found.questions["verdict"] != "violated").all()
    assert (found.named["verdict"] == "undecided").any()
    assert not found.harm


def test_learned_and_named_groups_share_one_level():
    row = np.arange(300)
    own = np.repeat([1, 0, 0], [9, 2, 289])
    pooled = np.repeat([0, 1, 0], [9, 2, 289])
    options = {"y": np.zeros(300, int), "predictions": own, "groups": np.zeros(300, int), "pooled": pooled}
    alone = audit(**options).questions["p_corrected"].iloc[0]
    beside = audit(**options, sensitive_features=row % 2).questions["p_corrected"].iloc[0]
    assert alone <= 0.05 < beside == pytest.approx(2 * alone)
