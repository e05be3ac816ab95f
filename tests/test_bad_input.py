"""Every mistake gets one clear sentence, and leaves nothing half-done."""

import copy
import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from dafh import DAFHClassifier, DecoupledClassifier
from models import model_of

X = np.random.default_rng(0).normal(size=(80, 3))
Y = (X[:, 0] > 0).astype(int)
WITH_NAN = np.where(np.arange(240).reshape(80, 3) == 5, np.nan, X)
INFINITE = np.where(np.isnan(WITH_NAN), np.inf, WITH_NAN)
TEXT = pd.DataFrame(X, columns=["age", "income", "score"]).assign(city="Oslo", job="none")


QUICK = model_of(n_replicas=2, max_epochs=2, random_state=0)


def assert_refused(estimator, arguments, message, error=ValueError, **options):
    with pytest.raises(error, match=message) as caught:
        estimator.fit(*arguments, **options)
    assert "\n" not in str(caught.value).strip() or "NaN" in str(caught.value)
    assert vars(estimator) == estimator.get_params(deep=False)


@pytest.mark.parametrize("estimator", [DAFHClassifier, DecoupledClassifier])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((INFINITE, Y), "contains infinity"),
        ((X, np.ones(80)), r"one class only \(1.0\)"),
        ((X, Y[:50]), "inconsistent numbers of samples"),
        ((TEXT.to_numpy(), Y), "X holds text.*(tabular_pipeline|data frame)"),
        ((X, X[:, 0]), "Unknown label type: continuous"),
        ((np.empty((0, 3)), np.empty(0)), "0 sample"),
    ],
)
def test_data_that_cannot_be_used(estimator, arguments, message):
    assert_refused(estimator(), arguments, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((WITH_NAN, Y), "contains NaN"), ((TEXT, Y), r"the columns city, job of X hold text.*tabular_pipeline")],
)
def test_an_estimator_of_numbers_says_how_to_encode_what_is_none(arguments, message):
    assert_refused(DecoupledClassifier(), arguments, message)


def test_gaps_and_text_are_taken_as_they_are():
    assert len(DAFHClassifier(1, random_state=0).fit(WITH_NAN, Y).predict(WITH_NAN)) == 80
    assert len(DAFHClassifier(1, random_state=0).fit(TEXT, Y).predict(TEXT)) == 80


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(80), "Negative values"),
        (np.zeros(80), "(?i)sample weights .* zero|non-zero"),
        (np.ones(79), "sample_weight has the shape"),
        (np.where(np.arange(80) == 0, np.nan, 1.0), "NaN"),
        (Y, "one class only"),
    ],
)
def test_weights_that_cannot_be_used(weight, message):
    assert_refused(DAFHClassifier(), (X, Y), message, sample_weight=weight)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_groups": 0},
            r"The 'n_groups' parameter of DAFHClassifier must be an int in the range \[1, inf\) or .*auto.*Got 0",
        ),
        ({"n_groups": 2.5}, "n_groups"),
        ({"n_replicas": 0}, "n_replicas"),
        ({"max_epochs": "many"}, "max_epochs"),
        ({"batch_size": -1}, "batch_size"),
        ({"surrogate": "hinge"}, "surrogate"),
        ({"start": "lukewarm"}, "start"),
        ({"optimizer": "lion"}, "optimizer"),
        ({"random_state": "seed"}, "random_state"),
        ({"envy_weight": -0.5}, "'envy_weight' parameter of Recipe must be a non-negative number"),
        ({"penalty": "big"}, "penalty"),
        ({"noise": []}, "noise"),
        ({"temperature": [[1, 2]]}, "temperature"),
        ({"anchor": float("nan")}, "anchor"),
        ({"group_hidden": (0,)}, "group_hidden"),
        ({"group_hidden": 100}, "group_hidden"),
        ({"group_hidden": (3.5,)}, "group_hidden"),
        ({"pooled": LinearSVC()}, "pooled"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, message):
    assert_refused(model_of(**parameters), (X, Y), message)


def test_fewer_rows_than_groups():
    assert_refused(DAFHClassifier(n_groups=5), (X[:4], [0, 1, 0, 1]), "4 rows cannot make 5 groups")


def test_a_fitted_pooled_classifier_must_know_the_labels():
    incumbent = LogisticRegression().fit(X, Y)
    assert_refused(DAFHClassifier(pooled=incumbent), (X, Y + 1), r"does not know: \[2\]")


def test_a_fitted_pooled_classifier_must_take_the_columns():
    incumbent = LogisticRegression().fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="takes 2 features, X has 3"):
        DAFHClassifier(pooled=incumbent).fit(X, Y)


def test_weights_for_a_pooled_classifier_that_takes_none():
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        DAFHClassifier(pooled=KNeighborsClassifier()).fit(X, Y, sample_weight=np.arange(1, 81))


@pytest.mark.parametrize("estimator", [QUICK, DecoupledClassifier()])
def test_prediction_on_other_columns_is_refused(estimator):
    model = fitted_once(estimator)
    for method in ("predict", "predict_group", "predict_all", "predict_proba"):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
            getattr(model, method)(X[:, :2])


@pytest.mark.parametrize("estimator", [DAFHClassifier, DecoupledClassifier])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_group", "predict_all"])
def test_prediction_before_fit_is_refused(estimator, method):
    with pytest.raises(NotFittedError):
        getattr(estimator(), method)(X)


@functools.cache
def fitted_once(estimator):
    return clone(estimator).fit(X, Y)


@pytest.mark.parametrize(
    "arguments", [(INFINITE, Y), (X[:, :2], np.ones(80)), (X[:, :2], Y, -np.ones(80)), (X[:1], Y[:1])]
)
@pytest.mark.parametrize("estimator", [QUICK, DecoupledClassifier()])
def test_a_failed_fit_leaves_the_previous_model_in_place(estimator, arguments):
    model = copy.deepcopy(fitted_once(estimator))
    before = model.predict_proba(X)
    *rows, weight = (*arguments, None)[:3]
    with pytest.raises(ValueError, match=r".+"):
        model.fit(*rows, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_an_interrupted_fit_leaves_the_previous_model_in_place(monkeypatch):
    model = copy.deepcopy(fitted_once(QUICK))
    before = model.predict_proba(X)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(DAFHClassifier, "_judge", interrupt)  # After all other attributes are set.
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2] + 5, 1 - Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
