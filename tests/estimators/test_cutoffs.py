"""Decisions as they are made: the pooled classifier's word is the rival, and own classifiers use its cut-off."""

import functools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from dafh import AuditResult, DAFHClassifier, DecoupledClassifier
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


def fit(pooled="linear", guard="evidence", n=1500, **options):
    X, y = two_patterns(n)
    model = DAFHClassifier(2, pooled=pooled, guard=guard, random_state=0, **options)
    return model.fit(X, y), X, y


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


@pytest.mark.parametrize("guard", ["evidence", pytest.param("proof", marks=pytest.mark.slow), None])
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


def test_the_incumbents_own_predict_is_the_rival_in_the_folds_of_the_guard():
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


@pytest.mark.parametrize("pooled", [pytest.param("scorecard", marks=pytest.mark.slow), "linear"])
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


@pytest.mark.filterwarnings("ignore:X holds rows that the model was trained on")
def test_without_wishes_the_cut_off_says_what_is_lost():
    """At 0.2, a false negative counts four false positives; at one half, errors are counted."""
    model, X, y = fit(threshold=0.2)
    (loss,) = model.losses_
    assert (loss.name, loss.costs.fp, loss.costs.fn) == ("cost", 1, pytest.approx(4))
    assert model.guard_report_.losses == ("cost",)
    assert model.recalibrate(X, y).guard_report_.losses == ("cost",)
    np.testing.assert_array_equal(fit(threshold=0.2, guard_losses="cost")[0].serves_, model.serves_)
    assert [one.name for one in fit(threshold=0.2, guard_losses="error")[0].losses_] == ["error"]
    assert [one.name for one in fit()[0].losses_] == ["error"]


def test_costs_are_what_the_guard_counts_unless_others_are_asked_for():
    (loss,) = fit(costs={"fp": 1, "fn": 3}, threshold=0.4)[0].losses_
    assert (loss.name, loss.costs.fn) == ("cost", 3)
    X, y = two_patterns()
    groups = DecoupledClassifier(guard="evidence", costs={"fp": 1, "fn": 3}, random_state=0).fit(X, y)
    assert [(one.name, one.costs.fn) for one in groups.losses_] == [("cost", 3)]
    assert [one.name for one in DecoupledClassifier(guard_losses="fnr", random_state=0).fit(X, y).losses_] == ["fnr"]
    assert [one.name for one in DecoupledClassifier(random_state=0).fit(X, y).losses_] == ["error"]


# ---- refused ----


@pytest.mark.parametrize(
    "options", [{"threshold": 0.3}, {"costs": {"fp": 1, "fn": 5}}, {"guard_losses": ("error", "fnr")}]
)
def test_three_classes_have_no_cut_off_and_no_false_positives(options):
    X, y = two_patterns()
    with pytest.raises(InputError, match="needs two classes, and y holds 3"):
        DAFHClassifier(**options).fit(X, np.arange(len(y)) % 3)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"threshold": 0.0}, "'threshold' parameter"),
        ({"guard_losses": "recall"}, "'guard_losses' parameter"),
        ({"guard_losses": ("recall",)}, "'guard_losses' parameter"),
        ({"guard_losses": ()}, "Losses"),
        ({"costs": 5}, "'costs' parameter"),
        ({"costs": {"fp": 1}}, "'fp' and 'fn'"),
    ],
)
def test_parameters_that_cannot_be_used(options, word):
    X, y = two_patterns(100)
    with pytest.raises(ValueError, match=word):
        DAFHClassifier(**options).fit(X, y)
