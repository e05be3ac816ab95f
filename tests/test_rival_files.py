"""Rivals in model files: what comes back predicts the same, and forged parts are refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dafh
from dafh.exceptions import InputError
from dafh.rivals import make_baseline
from dafh.rivals.baselines import RIVALS
from model_files import Parts, find, there_and_back

QUICK = {"network": {"hidden": 5, "epochs": 2}, "linear": {"max_iter": 20}}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int), rng.choice(["f", "m"], 200)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, sex = rows
    found = {
        (name, model): make_baseline(name, model=model, random_state=0, **QUICK[model]).fit(X, y)
        for name in RIVALS
        for model in QUICK
        if name != "residual-boosting"
    }
    found["residual-boosting", ""] = make_baseline("residual-boosting", random_state=0).fit(X, y)
    found["zafar", ""] = make_baseline("zafar", preference="impact").fit(X, y, sensitive_features=sex)
    return found


def test_every_rival_comes_back_as_it_was_and_predicts_the_same(fitted, rows, tmp_path):
    X, _, sex = rows
    for (name, _), model in fitted.items():
        loaded = there_and_back(model, tmp_path)
        known = (X, sex) if name == "zafar" else (X,)
        assert_allclose(loaded.predict_proba(*known), model.predict_proba(*known), rtol=1e-12)
        assert type(loaded) is type(model)
        assert type(loaded.estimators_[0]) is type(model.estimators_[0])
        assert repr(loaded.get_params(deep=True)) == repr(model.get_params(deep=True))


def test_what_a_fit_found_out_comes_back(fitted, tmp_path):
    boosted = there_and_back(fitted["residual-boosting", ""], tmp_path).estimators_[0]
    assert boosted.n_rounds_ == fitted["residual-boosting", ""].estimators_[0].n_rounds_ > 0
    zafar = there_and_back(fitted["zafar", ""], tmp_path)
    np.testing.assert_array_equal(zafar.violations_, fitted["zafar", ""].violations_)
    assert zafar.n_tangents_ == fitted["zafar", ""].n_tangents_


def test_three_classes_and_names_of_columns_come_back(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    y = np.array(["x", "y", "z"])[np.digitize(table["a"], [-0.5, 0.5])]
    for name in ("jtt", "residual-boosting"):
        model = make_baseline(name, random_state=0).fit(table, y)
        assert_allclose(there_and_back(model, tmp_path).predict_proba(table), model.predict_proba(table), rtol=1e-12)


def layer_of_other_width(parts):
    layers = find(parts.model, "dro")["layers"]
    parts.set_array(layers[0], np.zeros((2, 4)))


def no_layers(parts):
    find(parts.model, "dro")["layers"] = []


def too_many_steps(parts):
    find(parts.model, "dro")["settings"]["epochs"] = 10**9


def endless_walk(parts):
    children = find(parts.model, "residual boosting")["trees"][0][0]
    array = parts.array(children)
    array[-1] = [1, 2]
    parts.set_array(children, array)


def column_that_is_not_there(parts):
    column = find(parts.model, "residual boosting")["trees"][0][1]
    array = parts.array(column)
    array[0] = 3  # Two columns and the pooled logit are 0 to 2.
    parts.set_array(column, array)


def tree_that_is_a_chain(parts):
    """Every left child is a leaf, and every right one goes on, 40 times."""
    trees = find(parts.model, "residual boosting")["trees"]
    chain = np.zeros((81, 2), int)
    chain[0:80:2] = np.column_stack([np.arange(1, 81, 2), np.arange(2, 82, 2)])
    for number, array in zip(trees[0], (chain, np.zeros(81, int), np.zeros(81), np.zeros(81)), strict=True):
        parts.set_array(number, array.astype(parts.array(number).dtype))


def tree_with_two_parents(parts):
    """A chain whose depth a second parent of every node, which nobody reaches, would hide."""
    trees = find(parts.model, "residual boosting")["trees"]
    chain = np.zeros((101, 2), int)
    chain[0:100:2] = chain[1:100:2] = np.arange(2, 102, 2)[:, None]
    for number, array in zip(trees[0], (chain, np.zeros(101, int), np.zeros(101), np.zeros(101)), strict=True):
        parts.set_array(number, array.astype(parts.array(number).dtype))


def tree_without_its_parts(parts):
    find(parts.model, "residual boosting")["trees"][0] = [0]


def label_that_is_a_list(parts):
    find(parts.model, "preference constraints")["settings"]["accepted"] = [1]


def classifier_of_a_later_group(parts):
    find(parts.model, "preference constraints")["own_classifiers"][0] = 1


@pytest.mark.parametrize(
    ("source", "change", "reason"),
    [
        (("dro", "network"), layer_of_other_width, "does not fit the rest of the model"),
        (("dro", "network"), no_layers, "the entry 'layers' of the classifier 'dro' is malformed"),
        (("dro", "network"), too_many_steps, "the parameter 'epochs' of .* is out of range"),
        (("residual-boosting", ""), endless_walk, "points outside itself"),
        (("residual-boosting", ""), column_that_is_not_there, "points outside its range"),
        (("residual-boosting", ""), tree_that_is_a_chain, "is too deep"),
        (("residual-boosting", ""), tree_with_two_parents, "has nodes with two parents"),
        (("residual-boosting", ""), tree_without_its_parts, "the entry 'trees' of .* is malformed"),
        (("zafar", ""), label_that_is_a_list, "the parameter 'accepted' of .* is out of range"),
        (("zafar", ""), classifier_of_a_later_group, "the entry 'own_classifiers' of .* points outside itself"),
    ],
)
def test_forged_parts_are_refused_in_one_sentence(fitted, tmp_path, source, change, reason):
    dafh.save(fitted[source], tmp_path / "valid.dafh")
    parts = Parts(tmp_path / "valid.dafh")
    change(parts)
    with pytest.raises(InputError, match=reason):
        dafh.load(parts.write(tmp_path / "forged.dafh"))
