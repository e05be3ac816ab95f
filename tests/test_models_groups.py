"""Model files of groups that were learned: by rules or by a network, whatever the pooled classifier and the table."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import dafh
from cases import checkerboard
from dafh import DAFHClassifier, Recipe, Scorecard, tabular_pipeline
from dafh.exceptions import InputError
from dafh.models import read_card
from dafh.tables.bins import Binning
from dafh.tables.encoder import TableEncoder
from model_files import NETWORK, Parts, find, people, quick, there_and_back

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
METHODS = ("predict", "predict_proba", "predict_group", "predict_all", "decision_function", "group_proba")
BOOSTING = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=7)


@pytest.fixture(autouse=True)
def one_thread():
    """On tables this small, threads spend their time waiting for each other."""
    with threadpool_limits(1):
        yield


def new_rows():
    """Rows with categories and gaps that training rows did not have."""
    table, _, _ = people(60, seed=1)
    table.loc[:5, "job"] = None
    table.loc[6:9, "job"] = "baker"
    table.loc[:9, "since"] = pd.NaT
    table.loc[3, "income"] = 1e9
    return table


def in_three(table):
    return np.digitize(table["age"] + np.random.default_rng(0).normal(0, 8, len(table)), [35, 60])


def check_equal(loaded, model, rows):
    for method in METHODS:
        np.testing.assert_array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows), err_msg=method)
    assert set(vars(loaded)) == set(vars(model))
    assert (str(loaded.rules_), str(loaded.guard_report_)) == (str(model.rules_), str(model.guard_report_))
    assert repr(clone(loaded).get_params()) == repr(clone(model).get_params())
    assert loaded.guard_report_ == model.guard_report_
    assert loaded.losses_ == model.losses_
    assert loaded.threshold_ == model.threshold_
    for name in ("n_groups_", "groups_", "best_epoch_", "label_information_"):
        assert getattr(loaded, name) == getattr(model, name)
    for name in ("candidates_", "history_", "population_"):
        if getattr(model, name) is not None:
            pd.testing.assert_frame_equal(getattr(loaded, name), getattr(model, name))
    if model.rules_ is not None:
        pd.testing.assert_frame_equal(loaded.rules_.to_frame(), model.rules_.to_frame())


TABLES = {
    "rules on a scorecard": {"pooled": "scorecard"},
    "rules on a linear classifier": {},
    "rules on boosting": {"pooled": BOOSTING},
    "rules on logistic regression": {"pooled": LogisticRegression(C=0.5, max_iter=1000)},
    "rules on a scorecard with few bins": {"pooled": Scorecard(4, strength=2.0)},
    "one group": {"n_groups": 1},
    "one group of a scorecard": {"n_groups": 1, "pooled": "scorecard"},
    "no guard": {"guard": None},
    "proof": {"guard": "proof"},
    "costs": {"costs": {"fp": 1, "fn": 4}, "guard_losses": ("cost", "error"), "pooled": "scorecard"},
    "costs that nobody asks about": {"costs": {"fp": 2.5, "fn": 1}, "guard": "proof"},
    "threshold": {"threshold": 0.3},
    "network at a threshold": {**NETWORK, "threshold": 0.7, "guard_losses": ("fpr", "fnr")},
    "number of groups to be chosen": {"n_groups": "auto"},
    "network": NETWORK,
    "network on a scorecard": {**NETWORK, "pooled": "scorecard"},
    "network from a random start": {"groups": "network", "recipe": Recipe.paper(max_epochs=2)},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_model_of_a_table_comes_back_as_it_went(name, tmp_path):
    table, y, _ = people()
    model = quick(**TABLES[name]).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    check_equal(loaded, model, new_rows())
    # Rows are looked at once because these are the same objects, and not only equal ones.
    if isinstance(model.pooled_, Scorecard):
        assert loaded.pooled_.binning_ is loaded._view.binning
    else:
        assert loaded.pooled_.steps[0][1] is loaded._view.encoder


@pytest.mark.parametrize("changes", [{}, {"pooled": BOOSTING}, {"pooled": Scorecard(6)}, NETWORK], ids=str)
def test_a_model_of_three_classes_comes_back_as_it_went(changes, tmp_path):
    table, _, _ = people()
    model = quick(n_groups=3, **changes).fit(table, in_three(table))
    check_equal(there_and_back(model, tmp_path), model, new_rows())


@pytest.mark.parametrize(
    ("changes", "gaps"),
    checkerboard([{}, {"pooled": "scorecard"}, {"pooled": BOOSTING}, NETWORK], [False, True]),
    ids=str,
)
def test_a_model_of_an_array_comes_back_as_it_went(changes, gaps, tmp_path):
    table, y, _ = people()
    X = table[["age", "income"]].to_numpy(float)
    X = X if gaps else np.nan_to_num(X)
    model = quick(**changes).fit(X, y)
    # Rules on a scorecard need no numbers.
    assert (model._view.encoder is not None) == (gaps and changes != {"pooled": "scorecard"})
    check_equal(there_and_back(model, tmp_path), model, X)


def test_a_model_of_a_frame_without_names_comes_back(tmp_path):
    table, y, _ = people()
    frame = pd.DataFrame(table[["age", "income"]].to_numpy(float), columns=[7, 5])
    model = quick(pooled="scorecard").fit(frame, y)
    loaded = there_and_back(model, tmp_path)
    check_equal(loaded, model, frame)
    assert [column.name for column in loaded._view.binning.columns] == ["x7", "x5"]


def test_weights_make_no_difference_to_what_comes_back(tmp_path):
    table, y, _ = people()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = quick(pooled="scorecard").fit(table, y, sample_weight=weight)
    check_equal(there_and_back(model, tmp_path), model, new_rows())


def test_more_columns_than_corrections_can_have_come_back(tmp_path):
    """Groups are then only shifted and stretched."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 260))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = quick().fit(X, y)
    assert not model._trained.corrections.weight.size
    check_equal(there_and_back(model, tmp_path), model, X)


def test_checks_of_declared_subgroups_come_back(tmp_path):
    table, y, attributes = people()
    model = quick(guard_losses=("error", "fnr")).fit(table, y, guard_features=attributes)
    assert set(model.guard_report_.checks["part"]) == {"", "sex = f", "sex = m", "born = here", "born = there"}
    check_equal(there_and_back(model, tmp_path), model, new_rows())


def test_losses_and_costs_of_any_type_come_back_as_plain_ones(tmp_path):
    table, y, _ = people()
    costs = MappingProxyType({"fp": np.float64(1.5), "fn": np.int64(3)})
    loaded = there_and_back(quick(guard_losses=["cost"], costs=costs).fit(table, y), tmp_path)
    assert (loaded.guard_losses, loaded.costs) == (("cost",), {"fp": 1.5, "fn": 3})


def test_parameters_that_were_changed_after_fit_do_not_change_what_was_fitted(tmp_path):
    table, y, _ = people()
    model = quick(guard_losses=("fnr",)).fit(table, y).set_params(guard_losses=("error",), threshold=0.9)
    loaded = there_and_back(model, tmp_path)
    assert [loss.name for loss in loaded.losses_] == ["fnr"]
    assert (loaded.threshold_, loaded.threshold) == (0.5, 0.9)


@pytest.mark.parametrize("changes", [{"threshold": 0.4}, {"losses": {"names": ["fpr"], "costs": None}}], ids=str)
def test_what_needs_two_labels_is_refused_where_there_are_three(changes, tmp_path):
    table, _, _ = people()
    dafh.save(quick(guard=None).fit(table, in_three(table)), tmp_path / "model.dafh")
    parts = Parts(tmp_path / "model.dafh")
    find(parts.model, "dafh classifier").update(changes)
    with pytest.raises(InputError, match=r"out of range|needs two classes"):
        dafh.load(parts.write(tmp_path / "forged.dafh"))


def test_a_loaded_model_can_be_recalibrated(tmp_path):
    table, y, _ = people()
    new, new_y, _ = people(200, seed=1)
    for changes in ({}, {"pooled": "scorecard"}, NETWORK):
        model = quick(**changes).fit(table, y)
        loaded = there_and_back(model, tmp_path).set_params(guard="proof").recalibrate(new, new_y)
        model.set_params(guard="proof").recalibrate(new, new_y)
        check_equal(there_and_back(loaded, tmp_path), model, new)


def test_a_clone_of_a_loaded_model_can_be_fitted(tmp_path):
    table, y, _ = people()
    for pooled in ("scorecard", BOOSTING):
        model = quick(pooled=clone(pooled) if pooled is BOOSTING else pooled).fit(table, y)
        check_equal(clone(there_and_back(model, tmp_path)).fit(table, y), model, new_rows())


def test_groups_that_a_file_has_no_words_for_are_not_saved(tmp_path):
    table, y, _ = people()
    model = quick().fit(table, y)
    trained, tree = model._trained, model._trained.tree
    cases = {
        "groups of the type NoneType": None,
        "corrections of the type NoneType": replace(trained, corrections=None),
        "other bins than those it looks at": replace(trained, tree=replace(tree, binning=Binning.learn(table))),
    }
    for reason, changed in cases.items():
        model._trained = changed
        with pytest.raises(InputError, match=f"This model cannot be saved: .*{reason}"):
            dafh.save(model, tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


# ---- incumbents ----


def test_a_fitted_incumbent_comes_back_as_the_pooled_classifier(tmp_path):
    table, y, _ = people()
    X = table[["age"]].to_numpy(float)
    incumbent = make_pipeline(StandardScaler(), clone(BOOSTING)).fit(X, y)
    model = quick(pooled=incumbent).fit(X, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded.pooled is loaded.pooled_
    check_equal(loaded, model, X)
    again = there_and_back(loaded.fit(X, y), tmp_path)  # As it is, unlike a clone.
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(InputError, match="cannot be fitted"):
        loaded.pooled_[-1].fit(X, y)


INCUMBENTS = {
    "scorecard": Scorecard(8),
    "scorecard in a pipeline": make_pipeline(TableEncoder(), Scorecard(8)),
    "boosting in a pipeline": tabular_pipeline(BOOSTING),
    "model of groups": quick(),
}


@pytest.mark.parametrize("name", INCUMBENTS)
def test_incumbents_that_take_tables_come_back(name, tmp_path):
    table, y, _ = people()
    model = quick(pooled=clone(INCUMBENTS[name]).fit(table, y)).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded.pooled is loaded.pooled_
    check_equal(loaded, model, new_rows())


# ---- scorecards alone ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_scorecard_comes_back_as_it_went(n_classes, tmp_path):
    table, y, _ = people()
    threshold = 0.3 if n_classes == 2 else 0.5
    model = Scorecard(10, strength=3.0, threshold=threshold).fit(table, y if n_classes == 2 else in_three(table))
    loaded = there_and_back(model, tmp_path)
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(loaded, method)(new_rows()), getattr(model, method)(new_rows()))
    assert (str(loaded), repr(loaded)) == (str(model), repr(model))
    pd.testing.assert_frame_equal(loaded.table(), model.table())
    pd.testing.assert_frame_equal(loaded.strengths_, model.strengths_)
    pd.testing.assert_series_equal(loaded.importance(), model.importance())
    assert (loaded.strength_, loaded.threshold_) == (model.strength_, threshold)
    assert loaded.binning_ == model.binning_
    assert set(vars(loaded)) == set(vars(model))


def test_a_scorecard_of_columns_that_say_nothing_comes_back(tmp_path):
    table = pd.DataFrame({"same": [1.0] * 60, "none": [None] * 60, "word": ["x"] * 60})
    model = Scorecard().fit(table, np.arange(60) % 2)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    pd.testing.assert_frame_equal(loaded.strengths_, model.strengths_)


# ---- cards ----


def test_the_card_says_how_rows_are_divided_and_by_what_the_rest_is_served(tmp_path):
    table, y, _ = people()
    found = {}
    for name, model in {
        "scorecard": Scorecard(8),
        "rules": quick(pooled=BOOSTING),
        "network": quick(**NETWORK),
        "one": quick(n_groups=1, pooled="scorecard"),
    }.items():
        dafh.save(model.fit(table, y), tmp_path / name)
        card = read_card(tmp_path / name)
        found[name] = (card["model"], card["groups"], card["groups_by"], card["pooled"])
        assert card["columns"][2:] == [{"name": "job", "type": "category"}, {"name": "since", "type": "date ISO8601"}]
    assert found == {
        "scorecard": ("Scorecard", 1, "nothing", "Scorecard"),
        "rules": ("DAFHClassifier", 2, "rules", "HistGradientBoostingClassifier"),
        "network": ("DAFHClassifier", 2, "network", "StandardizedLogisticRegression"),
        "one": ("DAFHClassifier", 1, "rules", "Scorecard"),
    }
    assert read_card(tmp_path / "network")["rules"] is None
    assert read_card(tmp_path / "one")["rules"] == ["all rows"]


def test_a_model_with_the_defaults_is_saved_with_the_defaults(tmp_path):
    table, y, _ = people(120)
    model = DAFHClassifier(random_state=0).fit(table, y)
    check_equal(there_and_back(model, tmp_path), model, new_rows())
    assert read_card(tmp_path / "model.dafh")["settings"] == {"random_state": 0}
