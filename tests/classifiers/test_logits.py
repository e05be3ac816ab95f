"""Decisions as they are made: the pooled classifier's word is the rival, and own classifiers use its cut-off."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV

from dafh import AuditResult, DAFHClassifier, DecoupledClassifier
from dafh.classifiers.logits import check_threshold, decide, find_cutoff
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scorecard


@functools.cache
def two_patterns(n=1500, seed=0):
    """Rare positives; the sign of the second column says which pattern the first follows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = np.where(X[:, 1] > 0, 1.5, -1.5) * X[:, 0] + 0.5 * X[:, 2] - 1.2
    return X, (score + rng.logistic(size=n) > 0) * 1


def fit(pooled="linear", guard="veto", n=1500, **options):
    X, y = two_patterns(n)
    model = DAFHClassifier(2, groups="rules", pooled=pooled, guard=guard, random_state=0, **options)
    return model.fit(X, y), X, y


# ---- deciding, and finding a cut-off ----


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=20), st.floats(0.01, 0.99))
def test_a_decision_is_a_probability_above_the_cut_off(logits, cutoff):
    logits = np.array(logits)
    probability = 1 / (1 + np.exp(-logits))
    clear = np.abs(probability - cutoff) > 1e-9
    np.testing.assert_array_equal(decide(logits[:, None], cutoff)[clear], (probability > cutoff)[clear])


def test_with_more_than_two_classes_the_largest_wins_whatever_the_cut_off():
    assert decide(np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]]), 0.9).tolist() == [2, 0]
    check_threshold(0.5, 3)
    with pytest.raises(InputError, match=r"A threshold of 0\.3 needs two classes, and y holds 3: leave it at 0\.5"):
        check_threshold(0.3, 3)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_a_cut_off_that_is_found_explains_all_decisions(probability, cutoff):
    probability = np.array(probability)
    flagged = probability > cutoff
    found = find_cutoff(flagged, probability)
    assert 0 < found < 1
    np.testing.assert_array_equal(probability > found, flagged)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.2, 0.6, 0.7, 0.9])), min_size=1, max_size=25))
def test_where_no_cut_off_explains_all_decisions_the_one_found_explains_most(rows):
    flagged, probability = (np.array(part) for part in zip(*rows, strict=True))
    found = find_cutoff(flagged, probability)
    wrong = [((probability > cutoff) != flagged).sum() for cutoff in (0.05, 0.15, 0.4, 0.65, 0.8, 0.95)]
    assert ((probability > found) != flagged).sum() == min(wrong)


@pytest.mark.parametrize(
    ("flagged", "probability", "cutoff"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], 0.5),  # One half explains all.
        ([0, 1, 1], [0.1, 0.3, 0.9], 0.2),
        ([0, 0, 1], [0.1, 0.7, 0.9], 0.8),
        ([1, 1], [0.2, 0.4], 0.1),  # Flags everybody.
        ([0, 0], [0.6, 0.8], 0.9),  # Flags nobody.
        ([0, 0], [0.1, 0.2], 0.5),
    ],
)
def test_cut_offs_by_hand(flagged, probability, cutoff):
    assert find_cutoff(np.array(flagged, bool), np.array(probability)) == pytest.approx(cutoff)


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(LogisticRegression(), threshold=0.25, response_method="predict_proba"),
        TunedThresholdClassifierCV(LogisticRegression(), scoring="balanced_accuracy", cv=3),
        HistGradientBoostingClassifier(max_iter=8),
        DummyClassifier(strategy="most_frequent"),
        DummyClassifier(strategy="constant", constant=1),
        DummyClassifier(strategy="prior"),
        LogisticRegression(class_weight="balanced"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_cut_off_of_any_classifier_reproduces_what_it_predicts(model):
    X, y = two_patterns()
    model = clone(model).fit(X, y)
    probability, flagged = model.predict_proba(X)[:, 1], model.predict(X) == 1
    found = find_cutoff(flagged, probability)
    np.testing.assert_array_equal(probability > found, flagged)
    if isinstance(model, FixedThresholdClassifier):
        assert found == pytest.approx(0.25, abs=0.02)


# ---- classifiers with a threshold ----


@pytest.mark.parametrize("kind", [Scorecard, StandardizedLogisticRegression])
def test_our_classifiers_decide_at_their_threshold(kind):
    X, y = two_patterns()
    plain, low = kind().fit(X, y), kind(threshold=0.2).fit(X, y)
    np.testing.assert_allclose(low.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(low.predict(X), low.predict_proba(X)[:, 1] > 0.2)
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba(X)[:, 1] > 0.5)
    low.set_params(threshold=0.9)
    assert low.predict(X).mean() == pytest.approx((low.predict_proba(X)[:, 1] > 0.2).mean())  # Until it is refitted.
    with pytest.raises(InputError, match="needs two classes, and y holds 3"):
        kind(threshold=0.2).fit(X, np.arange(len(y)) % 3)


# ---- end to end ----


@pytest.mark.parametrize("guard", ["veto", "proof", None])
def test_own_classifiers_flag_at_the_cut_off_of_the_incumbent(guard):
    X, y = two_patterns()
    incumbent = FixedThresholdClassifier(LogisticRegression(), threshold=0.25, response_method="predict_proba")
    model, X, y = fit(incumbent.fit(X, y), guard)
    assert model.threshold_ == pytest.approx(0.25, abs=0.01)
    group, every = model.predict_group(X), model.predict_all(X)
    own = model.serves_[group] < 2
    np.testing.assert_array_equal(model.predict(X)[own], (model.predict_proba(X)[own, 1] > model.threshold_) * 1)
    np.testing.assert_array_equal(every[:, -1], incumbent.predict(X))
    np.testing.assert_array_equal(model.predict(X), every[np.arange(len(X)), group])


def test_own_classifiers_that_change_little_keep_the_flag_rate_of_the_incumbent():
    """Two slopes instead of one. At one half the own classifiers would flag less than half as many rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (np.where(X[:, 1] > 0, 1.6, 0.6) * X[:, 0] - 1.2 + rng.logistic(size=3000) > 0) * 1
    incumbent = FixedThresholdClassifier(LogisticRegression(), threshold=0.25, response_method="predict_proba")
    model = DAFHClassifier(2, groups="rules", pooled=incumbent.fit(X, y), guard=None, random_state=0).fit(X, y)
    flagged = incumbent.predict(X).mean()
    assert 0.4 < flagged < 0.6
    assert (model.predict(X) != incumbent.predict(X)).any()
    assert model.predict(X).mean() == pytest.approx(flagged, rel=0.1)
    assert (model.predict_proba(X)[:, 1] > 0.5).mean() < 0.5 * flagged


def test_the_incumbents_own_predict_is_the_rival_in_the_folds_of_a_veto():
    """An incumbent that says the opposite of its scores has no cut-off; its word is compared all the same."""
    X, y = two_patterns()
    model, X, y = fit(Contrary().fit(X, y))
    table, share = model.guard_report_.table, (Contrary().fit(X, y).predict(X) != y).mean()
    judged = (table["pooled_loss"] * table["rows"]).sum() / table["rows"].sum()
    assert judged == pytest.approx(share, abs=0.06)
    assert share > 0.6


class Contrary(LogisticRegression):
    """Predicts the class that its probabilities speak against."""

    def predict(self, X):
        return 1 - super().predict(X)


@pytest.mark.parametrize("pooled", ["scorecard", "linear"])
def test_a_threshold_holds_for_own_and_for_named_pooled_classifiers(pooled):
    model, X, _ = fit(pooled, guard=None, threshold=0.2)
    assert model.threshold_ == 0.2
    np.testing.assert_array_equal(model.pooled_.predict(X), model.pooled_.predict_proba(X)[:, 1] > 0.2)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] > 0.2)
    plain, *_ = fit(pooled, guard=None)
    assert plain.threshold_ == 0.5
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))


def test_costs_imply_the_cut_off_and_a_threshold_overrules_them():
    model, X, _ = fit(guard=None, costs={"fp": 1, "fn": 4})
    assert model.threshold_ == pytest.approx(0.2)
    np.testing.assert_array_equal(model.pooled_.predict(X), model.pooled_.predict_proba(X)[:, 1] > 0.2)
    assert fit(guard=None, costs={"fp": 1, "fn": 4}, threshold=0.4)[0].threshold_ == 0.4


def test_the_losses_of_the_guard_are_those_of_the_audit_unless_others_are_asked_for():
    model, X, y = fit(guard_losses=("cost", "fnr"), costs={"fp": 1, "fn": 4})
    assert [loss.name for loss in model.losses_] == ["cost", "fnr"]
    assert model.guard_report_.losses == ("cost", "fnr")
    assert set(model.guard_report_.checks["loss"]) == {"cost", "fnr"}
    result = AuditResult.of(model, X, y)
    assert result.losses == ("cost", "fnr")
    own = model.predict(X)
    cost = np.where(y == 1, 4 * (own == 0), own == 1).mean()
    assert result.totals.loc[0, "own_loss"] == pytest.approx(cost)
    assert result.totals.loc[1, "own_loss"] == pytest.approx((own[y == 1] == 0).mean())


def test_rates_before_and_after_are_those_of_the_decisions():
    model, X, y = fit(threshold=0.3)
    rates = AuditResult.of(model, X, y).rates.set_index("group")
    own, pooled = model.predict(X), model.pooled_.predict(X)
    everybody = rates.loc["all rows"]
    assert everybody["flagged"] == pytest.approx(own.mean())
    assert everybody["flagged_pooled"] == pytest.approx(pooled.mean())
    assert everybody["fpr"] == pytest.approx(own[y == 0].mean())
    assert everybody["fnr_pooled"] == pytest.approx((pooled[y == 1] == 0).mean())
    group = model.predict_group(X) == 1
    assert rates.loc["1", "fnr"] == pytest.approx((own[group & (y == 1)] == 0).mean())
    assert rates.loc["1", "rows"] == group.sum()


# ---- refused ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.3}, "A threshold of 0.3 needs two classes, and y holds 3"),
        ({"costs": {"fp": 1, "fn": 5}}, "A threshold of 0.166667 needs two classes, and y holds 3"),
        ({"guard_losses": ("error", "fnr")}, "The false negative rate needs two classes, and y holds 3"),
    ],
)
def test_three_classes_have_no_cut_off_and_no_false_positives(options, message):
    X, y = two_patterns()
    with pytest.raises(InputError, match=message):
        DAFHClassifier(**options).fit(X, np.arange(len(y)) % 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "The 'threshold' parameter of DAFHClassifier"),
        ({"threshold": 1.0}, "The 'threshold' parameter of DAFHClassifier"),
        ({"guard_losses": "fnr"}, "The 'guard_losses' parameter of DAFHClassifier"),
        ({"guard_losses": ("recall",)}, "The 'guard_losses' parameter of DAFHClassifier"),
        ({"guard_losses": ()}, "Losses must be one or more of"),
        ({"guard_losses": ("cost",)}, "The loss 'cost' needs costs"),
        ({"costs": 5}, "The 'costs' parameter of DAFHClassifier"),
        ({"costs": {"fp": 1}}, "costs must have the entries 'fp' and 'fn'"),
        ({"costs": {"fp": 1, "fn": 0}}, "Both costs must be positive"),
    ],
)
def test_parameters_that_cannot_be_used(options, message):
    X, y = two_patterns()
    with pytest.raises(ValueError, match=message):
        DAFHClassifier(**options).fit(X, y)


def test_new_parameters_are_copied_and_searched_like_all_others():
    X, y = two_patterns(400)
    model = DAFHClassifier(2, groups="rules", pooled="linear", guard_losses=("fnr",), costs={"fp": 1, "fn": 2})
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"threshold": [0.2, 0.5], "costs": [None, {"fp": 1, "fn": 3}]}, cv=2).fit(X, y)
    assert search.best_params_["threshold"] in (0.2, 0.5)
    assert search.best_estimator_.threshold_ == search.best_params_["threshold"]
    decoupled = clone(DecoupledClassifier(guard="veto", guard_losses=("error", "fpr"), random_state=0)).fit(X, y)
    assert decoupled.guard_report_.losses == ("error", "fpr")


def test_a_recalibration_that_is_refused_leaves_the_losses_alone():
    model, X, y = fit()
    before = model.losses_
    model.set_params(guard_losses=("cost",))
    with pytest.raises(InputError, match="needs costs"):
        model.recalibrate(X, y)
    assert model.losses_ == before
    model.set_params(guard_losses=("fpr", "fnr")).recalibrate(X, y)
    assert model.guard_report_.losses == ("fpr", "fnr")
