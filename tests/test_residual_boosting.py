"""Boosting on the residuals of the pooled classifier: what it learns, and when it leaves that classifier alone."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.rivals.residual_boosting import ResidualBoostingClassifier


# Small where that changes nothing about the contract.
@parametrize_with_checks([ResidualBoostingClassifier(LogisticRegression(), max_rounds=2, max_depth=1)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def curved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    return X, (X[:, 0] + 2 * (X[:, 1] > 0) * X[:, 2] + 0.3 * rng.normal(size=1200) > 0).astype(int)


def test_what_is_not_linear_is_learned_on_top_of_the_pooled_classifier(curved):
    X, y = curved
    model = ResidualBoostingClassifier(random_state=0).fit(X[:800], y[:800])
    pooled = StandardizedLogisticRegression().fit(X[:800], y[:800])
    assert model.n_rounds_ > 0
    assert model.score(X[800:], y[800:]) > pooled.score(X[800:], y[800:]) + 0.05


def test_a_linear_truth_leaves_the_pooled_classifier_as_it_is():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] + rng.logistic(size=1500) > 0).astype(int)
    model = ResidualBoostingClassifier(random_state=0).fit(X, y)
    assert model.n_rounds_ == 0
    np.testing.assert_allclose(model.predict_proba(X), model.pooled_.predict_proba(X), rtol=1e-12)


def test_trees_are_newton_steps_as_scikit_learn_takes_them(curved, monkeypatch):
    """With a constant pooled classifier and without the ridge, this is gradient boosting as it is known."""
    monkeypatch.setattr("dafh.rivals.residual_boosting._RIDGE", 1e-12)
    X, y = curved
    start = LogisticRegression(C=1e-9)
    ours = ResidualBoostingClassifier(start, learning_rate=0.5, max_depth=2, min_samples_leaf=50, random_state=0)
    ours.fit(X, y)
    rounds = ours.n_rounds_
    theirs = GradientBoostingClassifier(
        n_estimators=rounds, learning_rate=0.5, max_depth=2, min_samples_leaf=50, random_state=0
    ).fit(X, y)
    assert rounds > 5
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)


def test_the_rounds_that_are_kept_lower_the_loss_of_three_classes():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] * X[:, 1] > 0) * 1 + (X[:, 0] > 1)]
    model = ResidualBoostingClassifier(random_state=0).fit(X[:600], y[:600])
    before, after = (log_loss(y[600:], m.predict_proba(X[600:])) for m in (model.pooled_, model))
    assert after < 0.5 * before
    assert len(model.trees_[0]) == 3


def test_a_row_of_weight_zero_is_no_row(curved):
    X, y = curved[0][:300], curved[1][:300]
    weight = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 300)
    counted = weight > 0
    fits = [
        ResidualBoostingClassifier(random_state=0).fit(X, y, weight),
        ResidualBoostingClassifier(random_state=0).fit(X[counted], y[counted], weight[counted]),
    ]
    assert fits[0].n_rounds_ > 0
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in fits))
    unweighted = ResidualBoostingClassifier(random_state=0).fit(X[counted], y[counted])
    assert not np.allclose(unweighted.predict_proba(X), fits[0].predict_proba(X))


def test_no_leaf_moves_far_where_the_pooled_classifier_is_certain():
    """A few labels far from the border are turned: there is hardly any curvature, and a plain Newton step is huge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * [4, 1]
    y = (X[:, 0] + 2 * (X[:, 1] > 0) * np.sign(X[:, 0]) > 3).astype(int)
    y[(X[:, 0] < -8) & (rng.random(3000) < 0.03)] = 1
    model = ResidualBoostingClassifier(random_state=0).fit(X, y)
    assert model.n_rounds_ > 5
    assert max(np.abs(tree.value).max() for trees in model.trees_ for tree in trees) < 3


@pytest.mark.parametrize(("setting", "value"), [("learning_rate", 0), ("max_depth", 0), ("patience", 0)])
def test_settings_without_sense_are_refused(curved, setting, value):
    with pytest.raises(InputError, match=f"'{setting}' parameter"):
        ResidualBoostingClassifier(**{setting: value}).fit(*curved)
