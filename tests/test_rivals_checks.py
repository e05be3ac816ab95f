"""The contract that all rivals share: scikit-learn's checks, weights as row counts, ranges, refusals."""

import inspect

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from dafh import rivals, tabular_pipeline
from dafh.datasets import make_grouped_classification
from dafh.exceptions import InputError
from dafh.rivals.base import RivalClassifier

# Built from the public names: a new rival cannot be left out.
RIVALS = [
    item
    for item in (getattr(rivals, name) for name in rivals.__all__)
    if isinstance(item, type) and issubclass(item, RivalClassifier)
]
SMALL_NETWORK = {"model": "network", "hidden": 8, "epochs": 4, "random_state": 0}


def one_rival():
    return pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.__name__)


@pytest.fixture(scope="module")
def three_classes():
    return make_grouped_classification(300, n_features=4, n_classes=3, random_state=0)


# Two clusters instead of ten: the checks fit some hundred times.
@parametrize_with_checks(
    [rival(random_state=0, **({"max_clusters": 2} if rival is rivals.GeorgeClassifier else {})) for rival in RIVALS]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_all_five_are_checked():
    assert {rival.__name__ for rival in RIVALS} == {
        "ARLClassifier",
        "BlindParetoClassifier",
        "DROClassifier",
        "GeorgeClassifier",
        "JTTClassifier",
    }


@one_rival()
def test_ranges_hold_values_of_its_own_parameters_with_the_default_among_them(rival):
    defaults = {name: entry.default for name, entry in inspect.signature(rival).parameters.items()}
    assert rival.RANGES
    for name, values in rival.RANGES.items():
        assert defaults[name] in values
        assert list(values) == sorted(values)


@one_rival()
def test_a_network_learns_three_classes_and_the_same_again(rival, three_classes):
    X, y = three_classes.X, np.array(["a", "b", "c"])[three_classes.y]
    model = rival(**SMALL_NETWORK)
    probabilities = model.fit(X, y).predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert set(model.predict(X)) <= {"a", "b", "c"}
    assert_allclose(clone(model).fit(X, y).predict_proba(X), probabilities)


@one_rival()
def test_a_linear_model_takes_weights_for_row_counts_also_with_three_classes(rival, three_classes):
    X, y = three_classes.X, three_classes.y
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = rival(random_state=0).fit(X, y, sample_weight=counts)
    repeated = rival(random_state=0).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@one_rival()
def test_the_scale_of_a_column_changes_nothing(rival, three_classes):
    X, y = three_classes.X, three_classes.y
    plain = rival(random_state=0).fit(X, y).predict_proba(X)
    stretched = X * [1000, 1, 1, 0.01] + [5, 0, -3, 0]
    assert_allclose(rival(random_state=0).fit(stretched, y).predict_proba(stretched), plain, atol=1e-5)


@one_rival()
def test_a_table_with_text_is_taken_through_the_encoder(rival):
    table = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "job": ["cook", "clerk"] * 20})
    y = np.where(table["job"] == "cook", "yes", "no")
    with pytest.raises(InputError, match=r"column job of X holds text: wrap it as dafh\.tabular_pipeline"):
        rival().fit(table, y)
    assert tabular_pipeline(rival(random_state=0)).fit(table, y).score(table, y) == 1


@one_rival()
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "forest"}, "'model' parameter of .* must be a str among {'linear', 'network'}. Got 'forest'"),
        ({"hidden": 0}, "'hidden' parameter"),
        ({"l2": -1}, "'l2' parameter"),
        ({"epochs": 0}, "'epochs' parameter"),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(rival, wrong, message, three_classes):
    with pytest.raises(InputError, match=message):
        rival(**wrong).fit(three_classes.X, three_classes.y)


@one_rival()
def test_one_class_is_refused_and_the_model_stays_as_it_was(rival, three_classes):
    model = rival()
    with pytest.raises(InputError, match="y holds one class only"):
        model.fit(three_classes.X, np.zeros(len(three_classes.y)))
    assert not hasattr(model, "classes_")
