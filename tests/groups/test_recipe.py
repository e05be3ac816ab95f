"""The recipe: what may be set, how settings are spread over replicas, and how long training takes."""

import inspect

import pytest

from dafh import DAFHClassifier, Recipe
from dafh.exceptions import InputError


def defaults():
    return {name: p.default for name, p in inspect.signature(Recipe).parameters.items()}


# ---- an estimator of scikit-learn's kind ----


def test_every_setting_is_a_parameter_with_its_default():
    assert Recipe().get_params() == defaults()
    assert Recipe().check().get_params() == defaults()


def test_settings_are_reached_through_the_classifier():
    model = DAFHClassifier(recipe=Recipe())
    model.set_params(recipe__shrinkage=0.5, recipe__n_replicas=3)
    assert (model.recipe.shrinkage, model.recipe.n_replicas) == (0.5, 3)
    with pytest.raises(ValueError, match="Invalid parameter 'shrinkag'"):
        model.set_params(recipe__shrinkag=0.5)


# ---- what may be set ----

WRONG = {
    "group_hidden": 100,
    "start": "hot",
    "noise": [],
    "surrogate": "hinge",
    "temperature": -3,
    "envy_weight": [0, -1],
    "anchor_moves_groups": 1,
    "penalty": "0.1",
    "imbalance": "entropy",
    "anchor": float("inf"),
    "shrinkage": None,
    "optimizer": "Adam",
    "momentum": 1,
    "group_learning_rate": True,
    "classifier_learning_rate": [[0.1]],
    "final_rate": 0,
    "average_steps": 0,
    "alternate": 1,
    "n_replicas": 10**9,
    "batch_size": 0.5,
    "reduction": "total",
    "max_epochs": 0,
    "select": "first",
    "n_folds": 0,
}


def test_no_setting_goes_unchecked():
    assert set(WRONG) == set(defaults())


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_that_cannot_be_used_is_named_with_what_it_may_be(name):
    with pytest.raises(InputError, match=f"'{name}' parameter of Recipe must be"):
        Recipe(**{name: WRONG[name]}).check()


# ---- settings of the replicas ----


def test_the_grid_by_hand():
    grid = Recipe(n_replicas=6, anchor=(1, 2), classifier_learning_rate=0.1, penalty=(5, 6, 7), shrinkage=0).grid()
    assert grid["anchor"].tolist() == [1, 2, 1, 2, 1, 2]
    assert grid["penalty"].tolist() == [5, 5, 6, 6, 7, 7]
    assert grid["classifier_learning_rate"].tolist() == [0.1] * 6
    assert grid["shrinkage"].tolist() == [0] * 6


# ---- schedule and choice ----


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "expected"),
    [
        (256, 256, (200, 400)),  # One step an epoch: 200 passes at most, and patience for 400 steps.
        (257, 256, (200, 200)),  # Two steps.
        (10 * 256, 256, (200, 40)),
        (25 * 256, 256, (80, 16)),
        (100 * 256, 256, (20, 6)),
        (1000 * 256, 256, (8, 6)),
        (1, 256, (200, 400)),
    ],
)
def test_epochs_and_patience_are_counted_in_steps(n_rows, batch_size, expected):
    assert Recipe(batch_size=batch_size).schedule(n_rows) == expected


def test_epochs_may_be_set():
    assert Recipe(max_epochs=500).schedule(100) == (500, 400)
    assert all(type(value) is int for value in Recipe().schedule(1000))


# ---- the paper ----

PRINTED = {"alternate": True, "optimizer": "sgd", "momentum": 0.9, "surrogate": "paper", "start": "cold", "noise": 1.0}
PRINTED |= {"envy_weight": 1.0, "anchor": 0.0, "shrinkage": 0.0, "penalty": 10.0, "imbalance": "kl"}
PRINTED |= {"group_hidden": (100,), "n_replicas": 1, "select": "last", "final_rate": 1.0, "average_steps": 1}
PRINTED |= {"group_learning_rate": 1e-3, "classifier_learning_rate": 1e-2, "max_epochs": 3}


@pytest.mark.parametrize(
    ("update", "batches"),
    [
        ("row", {"batch_size": 1, "reduction": "sum"}),
        ("batch_mean", {"batch_size": 1024, "reduction": "mean"}),
        ("batch_sum", {"batch_size": 1024, "reduction": "sum"}),
    ],
)
def test_the_papers_recipe_is_algorithm_1_with_its_three_readings_of_an_update(update, batches):
    paper = Recipe.paper(update).check().get_params()
    printed = PRINTED | batches
    assert {name: paper[name] for name in printed} == printed
    others = defaults().keys() - printed.keys()
    assert {name: paper[name] for name in others} == {name: defaults()[name] for name in others}
    if update == "row":
        assert Recipe.paper().get_params() == paper


def test_a_data_set_has_the_settings_that_the_paper_selects_for_it():
    names = ("adult", "arrest", "violent", "german", "bank")
    chosen = [Recipe.paper("batch_mean", name) for name in names]
    assert [recipe.batch_size for recipe in chosen] == [1024, 1024, 1024, 256, 1024]
    assert [recipe.max_epochs for recipe in chosen] == [3, 3, 3, 3, 2]
    assert [recipe.penalty for recipe in chosen] == [10, 10, 10, 100, 10]
    assert Recipe.paper(data_set="german", penalty=1.0).penalty == 1.0


@pytest.mark.parametrize("arguments", [{"update": "rows"}, {"data_set": "compas"}])
def test_what_the_paper_does_not_have_is_refused_with_a_list(arguments):
    with pytest.raises(InputError, match="must be one of"):
        Recipe.paper(**arguments)
