"""The recipe: what may be set, how settings are spread over replicas, and how long training takes."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from dafh import DAFHClassifier, Recipe
from dafh.exceptions import InputError

VARIED = {
    "anchor",
    "classifier_learning_rate",
    "envy_weight",
    "group_learning_rate",
    "temperature",
    "noise",
    "penalty",
    "shrinkage",
}


def defaults():
    return {name: p.default for name, p in inspect.signature(Recipe).parameters.items()}


# ---- an estimator of scikit-learn's kind ----


def test_every_setting_is_a_parameter_with_its_default():
    assert Recipe().get_params() == defaults()
    assert Recipe().check().get_params() == defaults()


def test_a_copy_has_the_same_settings_and_is_another_object():
    recipe = Recipe(anchor=[1, 2], max_epochs=3, group_hidden=(5, 4))
    copy = clone(recipe)
    assert copy is not recipe
    assert copy.get_params() == recipe.get_params()


def test_only_changed_settings_are_printed():
    assert repr(Recipe(max_epochs=3, start="cold")) == "Recipe(max_epochs=3, start='cold')"


def test_settings_are_reached_through_the_classifier():
    model = DAFHClassifier(recipe=Recipe())
    model.set_params(recipe__shrinkage=0.5, recipe__n_replicas=3)
    assert (model.recipe.shrinkage, model.recipe.n_replicas) == (0.5, 3)
    with pytest.raises(ValueError, match="Invalid parameter 'shrinkag'"):
        model.set_params(recipe__shrinkag=0.5)


def test_a_setting_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="shrinkag"):
        Recipe(shrinkag=0.5)
    with pytest.raises(TypeError, match="positional"):
        Recipe((100,))


# ---- what may be set ----


REFUSED = {
    "group_hidden": (100, "a sequence of up to 10 ints from 1 to 16384"),
    "classifier_hidden": ("10", "a sequence of up to 10 ints from 1 to 16384"),
    "start": ("hot", r"a str among \{'cold', 'pooled', 'rules'\}"),
    "noise": ([], "a non-negative number or a list of such numbers to vary over the replicas"),
    "surrogate": ("hinge", r"a str among \{'margin', 'paper'\}"),
    "temperature": (-3, "a non-negative number or a list"),
    "envy_weight": ([0, -1], "a non-negative number or a list"),
    "anchor_moves_groups": (1, "a bool"),
    "penalty": ("0.1", "a non-negative number or a list"),
    "anchor": (float("inf"), "a non-negative number or a list"),
    "shrinkage": (None, "a non-negative number or a list"),
    "optimizer": ("Adam", r"a str among \{'adam', 'sgd'\}"),
    "momentum": (1, r"a float in the range \[0, 1\)"),
    "group_learning_rate": (True, "a non-negative number or a list"),
    "classifier_learning_rate": ([[0.1]], "a non-negative number or a list"),
    "final_rate": (0, r"a float in the range \(0, 1\]"),
    "average_steps": (0, r"an int in the range \[1, 1000000000\]"),
    "alternate": (1, "a bool"),
    "n_replicas": (10**9, r"an int in the range \[1, 1000\]"),
    "batch_size": (0.5, r"an int in the range \[1, 1000000000\]"),
    "max_epochs": (0, r"an int in the range \[1, 1000000\] or a str among \{'auto'\}"),
    "patience": ("none", r"an int in the range \[1, 1000000\] or a str among \{'auto'\}"),
    "select": ("first", r"a str among \{'best', 'last'\}"),
    "n_folds": (0, r"an int in the range \[1, 100\] or a str among \{'auto'\}"),
    "pr_weight": (-0.1, r"a float in the range \[0, inf\) or a str among \{'auto'\}"),
}


def test_no_setting_goes_unchecked():
    assert set(REFUSED) == set(defaults())


@pytest.mark.parametrize("name", REFUSED)
def test_a_setting_that_cannot_be_used_is_named_with_what_it_may_be(name):
    value, words = REFUSED[name]
    with pytest.raises(InputError, match=rf"The '{name}' parameter of Recipe must be {words}.*\. Got ") as caught:
        Recipe(**{name: value}).check()
    assert str(caught.value).endswith(f"Got {value!r} instead.")


@pytest.mark.parametrize(
    "settings",
    [
        {"group_hidden": (), "classifier_hidden": [3, np.int64(4)]},
        {"noise": 0, "anchor": np.array([1.0, 2.0]), "shrinkage": [0], "penalty": np.float32(0.5)},
        {"momentum": 0, "final_rate": 1, "average_steps": 1, "alternate": np.bool_(True), "pr_weight": 0},
        {"max_epochs": 1, "patience": 1, "n_folds": 1, "batch_size": 1, "n_replicas": 1},
    ],
)
def test_settings_at_the_edge_can_be_used(settings):
    recipe = Recipe(**settings)
    assert recipe.check() is recipe


# ---- settings of the replicas ----


def test_settings_that_are_varied_have_a_value_for_every_replica():
    grid = Recipe(n_replicas=5).grid()
    assert set(grid) == VARIED
    assert {len(values) for values in grid.values()} == {5}


def test_the_grid_by_hand():
    grid = Recipe(n_replicas=6, anchor=(1, 2), classifier_learning_rate=0.1, penalty=(5, 6, 7), shrinkage=0).grid()
    assert grid["anchor"].tolist() == [1, 2, 1, 2, 1, 2]
    assert grid["penalty"].tolist() == [5, 5, 6, 6, 7, 7]
    assert grid["classifier_learning_rate"].tolist() == [0.1] * 6
    assert grid["shrinkage"].tolist() == [0] * 6


def test_the_setting_that_matters_most_changes_fastest():
    grid = Recipe(n_replicas=8, shrinkage=(5, 6), anchor=(1, 2), classifier_learning_rate=(3, 4)).grid()
    assert grid["anchor"].tolist() == [1, 2] * 4
    assert grid["classifier_learning_rate"].tolist() == [3, 3, 4, 4] * 2
    assert grid["shrinkage"].tolist() == [5] * 4 + [6] * 4


@given(
    sizes=st.tuples(*[st.integers(1, 3)] * 3),
    n_rounds=st.integers(1, 2),
)
def test_a_full_population_has_every_combination_equally_often(sizes, n_rounds):
    names = ("anchor", "temperature", "shrinkage")
    settings = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    n_combinations = int(np.prod(sizes))
    recipe = Recipe(n_replicas=n_rounds * n_combinations, **settings | {"classifier_learning_rate": 0.1})
    combinations, counts = np.unique(np.array([recipe.grid()[name] for name in names]), axis=1, return_counts=True)
    assert combinations.shape[1] == n_combinations
    assert set(counts) == {n_rounds}


@given(n_replicas=st.integers(1, 12))
def test_a_larger_population_begins_with_the_smaller_one(n_replicas):
    small, large = Recipe(n_replicas=n_replicas).grid(), Recipe(n_replicas=n_replicas + 3).grid()
    for name, values in small.items():
        np.testing.assert_array_equal(large[name][:n_replicas], values)


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


@pytest.mark.parametrize("n_rows", [1, 5_000, 10**6])
def test_rules_are_improved_in_a_few_epochs(n_rows):
    assert Recipe().schedule(n_rows, from_rules=True) == (8, 3)
    assert Recipe(max_epochs=20, patience=5).schedule(n_rows, from_rules=True) == (20, 5)
    assert Recipe(patience=5).schedule(n_rows, from_rules=True) == (8, 5)


def test_epochs_and_patience_may_be_set():
    assert Recipe(max_epochs=3, patience=2).schedule(10**6) == (3, 2)
    assert Recipe(max_epochs=500).schedule(100) == (500, 400)
    assert Recipe(patience=9).schedule(100) == (200, 9)
    assert all(type(value) is int for value in Recipe().schedule(1000))


def test_pr_counts_for_more_where_there_are_more_groups():
    assert [Recipe(pr_weight="auto").weight_of_pr(k) for k in (1, 2, 5)] == pytest.approx([0.02, 0.04, 0.1])
    assert Recipe(pr_weight=0.3).weight_of_pr(5) == 0.3
    assert Recipe().weight_of_pr(5) == 0.0


# ---- the paper ----


def test_the_papers_recipe_is_algorithm_1_as_printed():
    paper = Recipe.paper().check()
    printed = {"alternate": True, "optimizer": "sgd", "momentum": 0.9, "surrogate": "paper", "start": "cold"}
    printed |= {"envy_weight": 1.0, "anchor": 0.0, "shrinkage": 0.0, "penalty": 10.0, "noise": 1.0}
    printed |= {"group_hidden": (100,), "n_replicas": 1, "select": "last", "final_rate": 1.0, "average_steps": 1}
    printed |= {"group_learning_rate": 1e-3, "classifier_learning_rate": 1e-2, "batch_size": 1024, "max_epochs": 3}
    found = paper.get_params()
    assert {name: found[name] for name in printed} == printed
    assert {name: value for name, value in found.items() if name not in printed} == {
        name: value for name, value in defaults().items() if name not in printed
    }


def test_settings_of_the_papers_recipe_may_be_changed():
    changed = Recipe.paper(max_epochs=9, penalty=(1, 10))
    assert (changed.max_epochs, changed.penalty, changed.optimizer) == (9, (1, 10), "sgd")
    with pytest.raises(TypeError, match="epochs"):
        Recipe.paper(epochs=9)


def test_a_recipe_of_another_kind_is_kept():
    class Mine(Recipe):
        pass

    assert type(Mine.paper()) is Mine
