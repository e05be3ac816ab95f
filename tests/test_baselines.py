"""Baselines by name: which groups, which classifiers, and which seeds each of them has."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.partitions import (
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
    RandomPartition,
    RulePartition,
    TreePartition,
)
from dafh.rivals import BASELINES, ZafarClassifier, make_baseline
from dafh.rivals.baselines import RIVALS

KINDS = {
    "pooled": PooledPartition,
    "trivial": AttributePartition,
    "clustering": ClusterPartition,
    "manual": RulePartition,
    "lr-all": IntersectionPartition,
    "treelr": TreePartition,
    "random": RandomPartition,
}


@pytest.fixture(scope="module")
def rows():
    """The sign of the rule depends on sex, and on nothing else."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "born": rng.choice(["here", "there"], 400)})
    X = rng.normal(size=(400, 2))
    return X, ((X[:, 0] > 0) == (table.sex == "f")).astype(int).to_numpy(), table


@pytest.mark.parametrize("name", KINDS)
def test_a_name_stands_for_one_kind_of_partition(name):
    assert type(make_baseline(name).partition) is KINDS[name]


def test_the_names_are_those_of_the_paper_the_capacity_controls_and_the_rivals():
    assert set(BASELINES) == {*KINDS, "majority", "mlp", "boosting", *RIVALS, "zafar"}
    assert len(BASELINES) == len(set(BASELINES))


@pytest.mark.parametrize("name", [name for name in RIVALS if name != "residual-boosting"])
def test_a_rival_is_one_model_for_all_rows_with_its_own_settings(name):
    setting, values = next(iter(RIVALS[name].RANGES.items()))
    model = make_baseline(name, model="network", random_state=3, **{setting: values[0]})
    assert type(model.estimator) is RIVALS[name]
    assert (model.estimator.model, model.estimator.random_state) == ("network", 3)
    assert getattr(model.estimator, setting) == values[0]
    assert type(model.partition) is PooledPartition


def test_a_rival_under_a_guard_is_judged_in_clusters_against_the_pooled_classifier(rows):
    X, y, _ = rows
    model = make_baseline("residual-boosting", guard="veto", n_groups=3, random_state=0).fit(X, y)
    assert type(model.partition) is ClusterPartition
    assert (model.fit_on, model.n_groups_, len(model.guard_report_.table)) == ("all", 3, 3)
    assert make_baseline("arl", guard="veto").partition.n_groups == 8


def test_zafar_divides_rows_by_the_attribute(rows):
    X, y, table = rows
    model = make_baseline("zafar", preference="impact").fit(X, y, sensitive_features=table[["sex"]])
    assert isinstance(model, ZafarClassifier)
    assert model.score(X, y, sensitive_features=table[["sex"]]) > 0.9


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("dro", {"alpah": 0.5}, "'dro' has no setting 'alpah': choose from alpha, epochs, hidden, l2, max_iter"),
        ("clustering", {"alpha": 0.5}, "'clustering' has no setting 'alpha': it has none"),
        ("boosting", {"max_iter": 3}, "'boosting' has no setting 'max_iter': it has none"),
        ("zafar", {"model": "network"}, "'zafar' trains no network"),
        ("residual-boosting", {"model": "network"}, "'residual-boosting' trains no network"),
        ("arl", {"model": "forest"}, "model must be 'linear' or 'network', got 'forest'"),
    ],
)
def test_settings_that_a_baseline_does_not_have_are_refused(name, settings, message):
    with pytest.raises(InputError, match=message):
        make_baseline(name, **settings)


@pytest.mark.parametrize(("name", "n_groups"), [("clustering", 5), ("random", 7)])
def test_the_number_of_groups_reaches_the_partitions_that_have_one(rows, name, n_groups):
    X, y, _ = rows
    assert make_baseline(name, n_groups=n_groups, random_state=0).fit(X, y).n_groups_ == n_groups


def test_the_number_of_groups_of_attributes_is_that_of_their_values(rows):
    X, y, table = rows
    model = make_baseline("lr-all", n_groups=9).fit(X, y, sensitive_features=table)
    assert model.n_groups_ == 4
    assert make_baseline("trivial", n_groups=9).fit(X, y, sensitive_features=table[["sex"]]).n_groups_ == 2


@pytest.mark.parametrize("name", ["trivial", "lr-all", "treelr"])
def test_methods_that_see_the_right_attribute_solve_the_problem(rows, name):
    X, y, table = rows
    model = make_baseline(name, random_state=0).fit(X, y, sensitive_features=table[["sex"]])
    assert model.score(X, y, sensitive_features=table[["sex"]]) > 0.95
    assert model.pooled_.score(X, y) < 0.65


def test_pooled_is_the_pooled_classifier(rows):
    X, y, _ = rows
    model = make_baseline("pooled").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), StandardizedLogisticRegression().fit(X, y).predict_proba(X))


def test_random_groups_are_worth_nothing_here(rows):
    X, y, _ = rows
    model = make_baseline("random", random_state=0).fit(X, y)
    assert model.score(X, y) < 0.65


@pytest.mark.parametrize("name", ["clustering", "trivial", "treelr"])
def test_the_users_classifier_is_every_own_classifier_and_that_of_the_tree(rows, name):
    X, y, table = rows
    model = make_baseline(name, estimator=GaussianNB(), random_state=0)
    if name == "treelr":
        assert isinstance(model.partition.estimator, GaussianNB)
    model.fit(X, y, sensitive_features=table[["sex"]])
    assert all(isinstance(own, GaussianNB) for own in [*model.estimators_, model.pooled_])


@pytest.mark.parametrize(
    ("name", "kind"), [("majority", DummyClassifier), ("boosting", HistGradientBoostingClassifier)]
)
def test_a_control_is_one_model_for_all_rows_beside_logistic_regression(rows, name, kind):
    X, y, _ = rows
    model = make_baseline(name, random_state=0).fit(X, y)
    assert model.n_groups_ == 1
    assert type(model.estimators_[0]) is kind
    assert type(model.pooled_) is StandardizedLogisticRegression


def test_the_users_classifier_is_what_a_control_is_compared_with(rows):
    X, y, _ = rows
    model = make_baseline("majority", estimator=GaussianNB()).fit(X, y)
    assert type(model.estimators_[0]) is DummyClassifier
    assert type(model.pooled_) is GaussianNB


def test_the_majority_control_gives_everybody_the_most_frequent_label(rows):
    X, _, _ = rows
    y = np.where(np.arange(400) < 250, "no", "yes")
    assert set(make_baseline("majority").fit(X, y).predict(X)) == {"no"}


def test_the_seed_reaches_the_parts_of_a_pipeline():
    model = make_baseline("mlp", random_state=11)
    assert model.estimator.get_params()["mlpclassifier__random_state"] == 11
    assert make_baseline("boosting", random_state=11).estimator.random_state == 11


@pytest.mark.parametrize("name", ["clustering", "random", "treelr"])
def test_the_same_seed_gives_the_same_groups(rows, name):
    X, y, table = rows
    models = [make_baseline(name, random_state=4).fit(X, y, sensitive_features=table) for _ in range(2)]
    np.testing.assert_array_equal(*(model.predict_group(X, table) for model in models))


def test_two_baselines_share_nothing_that_one_of_them_could_change():
    first, second = make_baseline("boosting"), make_baseline("boosting")
    first.estimator.set_params(max_iter=3)
    assert second.estimator.max_iter != 3
    assert make_baseline("boosting").estimator.max_iter != 3


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_an_unfitted_classifier_that_can_be_cloned(name):
    model = make_baseline(name, estimator=LogisticRegression(), random_state=0)
    assert isinstance(model, DecoupledClassifier)
    assert not hasattr(clone(model), "estimators_")
    assert clone(model).random_state == 0


@pytest.mark.parametrize("name", ["", "LR-All", "dafh"])
def test_a_name_that_does_not_exist_is_refused_with_all_that_do(name):
    with pytest.raises(InputError, match=f"There is no baseline '{name}'") as caught:
        make_baseline(name)
    assert all(known in str(caught.value) for known in BASELINES)


def test_a_method_by_attributes_needs_them(rows):
    X, y, _ = rows
    with pytest.raises(InputError, match="divides rows by sensitive attributes"):
        make_baseline("lr-all").fit(X, y)
