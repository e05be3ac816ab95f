"""Attributes that the guard is shown and training never is: in fit, in recalibration, and what they change."""

import copy
import functools

import numpy as np
import pandas as pd
import pytest

from dafh import DAFHClassifier, DecoupledClassifier
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition


@functools.cache
def rows(n=3000, seed=0):
    """Two patterns by the second column; within the second one, women follow the first all the same."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    sex = rng.choice(["f", "m"], n, p=[0.25, 0.75])
    slope = np.where((X[:, 1] > 0) & (sex == "m"), -2.0, 2.0)
    y = (slope * X[:, 0] + rng.logistic(size=n) > 0) * 1
    return X, y, pd.DataFrame({"sex": sex})


def model(guard, **options):
    return DAFHClassifier(2, pooled="linear", guard=guard, random_state=0, **options)


@functools.cache  # No test changes it.
def fitted(guard, shown):
    X, y, sex = rows()
    return model(guard).fit(X, y, guard_features=sex if shown else None)


def harmed_group(fitted, X):
    """The group that most rows of the second pattern belong to."""
    return int(np.bincount(fitted.predict_group(X[X[:, 1] > 0.5])).argmax())


@pytest.mark.parametrize("guard", ["evidence", "proof"])
def test_a_group_in_which_a_declared_subgroup_is_harmed_loses_its_own_classifier(guard):
    X, y, sex = rows()
    blind = fitted(guard, shown=False)
    k = harmed_group(blind, X)
    assert blind.serves_[k] == k
    women = (blind.predict_group(X) == k) & (sex["sex"] == "f").to_numpy()
    assert (blind.predict(X)[women] != y[women]).mean() > (blind.pooled_.predict(X)[women] != y[women]).mean() + 0.05
    shown = fitted(guard, shown=True)
    assert shown.serves_[k] == 2
    assert "sex = f" in shown.guard_report_.table["reason"].iloc[k]
    np.testing.assert_array_equal(shown.predict(X)[women], shown.pooled_.predict(X)[women])


@pytest.mark.parametrize("guard", ["evidence", pytest.param("proof", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:X holds rows that the model was trained on")
def test_training_never_sees_declared_attributes(guard):
    X, y, sex = rows(800)
    plain = model(guard).fit(X, y)
    for table in (sex, sex.sample(frac=1, random_state=0), pd.DataFrame({"target": y, "x": X[:, 0]})):
        shown = model(guard).fit(X, y, guard_features=table)
        np.testing.assert_array_equal(shown.predict_group(X), plain.predict_group(X))
        np.testing.assert_array_equal(shown.pooled_.predict_proba(X), plain.pooled_.predict_proba(X))
        shown.set_params(guard="evidence").recalibrate(X, y)
        plain.set_params(guard="evidence").recalibrate(X, y)
        np.testing.assert_array_equal(shown.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("guard", [pytest.param("evidence", marks=pytest.mark.slow), "proof"])
def test_declared_attributes_count_when_the_guard_decides_anew(guard):
    X, y, _ = rows()
    blind = copy.deepcopy(fitted(guard, shown=False))
    k = harmed_group(blind, X)
    fresh, labels, table = rows(seed=1)
    assert blind.recalibrate(fresh, labels).serves_[k] == k
    assert blind.recalibrate(fresh, labels, guard_features=table).serves_[k] == 2
    assert blind.recalibrate(fresh, labels).serves_[k] == k
    late = model(None).fit(X, y).set_params(guard=guard).recalibrate(fresh, labels, guard_features=table)
    assert late.serves_[k] == 2
    assert len(late.guard_report_.checks) == 6


@pytest.mark.parametrize("guard", ["evidence", "proof"])
def test_a_decoupled_classifier_checks_declared_subgroups_too(guard):
    X, y, sex = rows()
    half = pd.DataFrame({"half": np.where(X[:, 1] > 0, "up", "down")})
    decoupled = DecoupledClassifier(IntersectionPartition("half"), guard=guard, random_state=0)
    up = decoupled.fit(X, y, sensitive_features=half).predict_group(X, half)[np.argmax(X[:, 1])]
    assert decoupled.serves_[up] == up
    decoupled.fit(X, y, sensitive_features=half, guard_features=sex)
    assert decoupled.serves_[up] == 2
    assert "sex = f" in decoupled.guard_report_.table["reason"].iloc[up]


def test_declared_attributes_that_do_not_fit_the_rows_are_refused():
    X, y, sex = rows(300)
    with pytest.raises(InputError, match="guard_features has 299 rows, the data have 300"):
        model("evidence").fit(X, y, guard_features=sex[:-1])
    with pytest.raises(InputError, match="guard_features has no columns"):
        model("evidence").fit(X, y, guard_features=pd.DataFrame(index=range(300)))
    with pytest.raises(InputError, match="The guard is off and takes no guard_features"):
        model(None).fit(X, y, guard_features=sex)
