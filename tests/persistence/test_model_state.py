"""Every kind of model comes back from its file as it went: predictions, words, parameters and shared objects."""

import functools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dafh
from cases import checkerboard, slow_but
from dafh import (
    AuditResult,
    DAFHClassifier,
    DecoupledClassifier,
    Incumbent,
    IncumbentColumns,
    Recipe,
    Scaling,
    Scorecard,
    tabular_pipeline,
)
from dafh.columns.encoder import TableEncoder
from dafh.partitions import (
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
)
from model_files import NETWORK, people, quick, there_and_back

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
    assert (str(loaded.exceptions_), str(loaded.guard_report_)) == (str(model.exceptions_), str(model.guard_report_))
    assert repr(clone(loaded).get_params()) == repr(clone(model).get_params())
    if model.guard_report_ is not None:
        assert loaded.guard_report_.per_check == model.guard_report_.per_check
    for name in ("losses_", "threshold_", "n_groups_", "method_", "best_epoch_", "label_information_"):
        assert getattr(loaded, name) == getattr(model, name)
    for name in ("candidates_", "history_"):
        if getattr(model, name) is not None:
            pd.testing.assert_frame_equal(getattr(loaded, name), getattr(model, name))


# ---- DAFHClassifier ----


TABLES = {
    "rules on a scorecard": {"pooled": "scorecard"},
    "rules on a linear classifier": {},
    "rules on boosting": {"pooled": BOOSTING},
    "rules on logistic regression": {"pooled": LogisticRegression(C=0.5, max_iter=1000)},
    "one group": {"n_groups": 1},
    "no guard": {"guard": None},
    "proof": {"guard": "proof"},
    "costs": {"costs": {"fp": 1, "fn": 4}, "guard_losses": ("cost", "error"), "pooled": "scorecard"},
    "threshold": {"threshold": 0.3},
    "number of groups to be chosen": {"n_groups": "auto"},
    "network": NETWORK,
    "network on a scorecard": {**NETWORK, "pooled": "scorecard"},
    "network from a random start": {"method": "network", "recipe": Recipe.paper(max_epochs=2)},
}


@functools.cache  # No test changes it.
def model_of_table(name):
    table, y, _ = people()
    return quick(**TABLES[name]).fit(table, y)


SECOND = {"rules on logistic regression", "threshold", "network on a scorecard"}


@pytest.mark.parametrize("name", slow_but(TABLES, *TABLES.keys() - SECOND))
def test_a_model_of_a_table_comes_back_as_it_went(name, tmp_path):
    model = model_of_table(name)
    loaded = there_and_back(model, tmp_path)
    check_equal(loaded, model, new_rows())
    # Rows are looked at once because these are the same objects, and not only equal ones.
    if isinstance(model.pooled_, Scorecard):
        assert loaded.pooled_.binning_ is loaded._encoding.binning
    else:
        assert loaded.pooled_.steps[0][1] is loaded._encoding.encoder


THREE_SLOW = [pytest.param(changes, marks=pytest.mark.slow) for changes in ({}, NETWORK)]


@pytest.mark.parametrize("changes", [{"pooled": Scorecard(6)}, *THREE_SLOW], ids=str)
def test_a_model_of_three_classes_comes_back_as_it_went(changes, tmp_path):
    table, _, _ = people()
    model = quick(n_groups=3, **changes).fit(table, in_three(table))
    check_equal(there_and_back(model, tmp_path), model, new_rows())


@pytest.mark.parametrize("changes", [{}, pytest.param(NETWORK, marks=pytest.mark.slow)], ids=str)
def test_a_model_of_an_array_comes_back_as_it_went(changes, tmp_path):
    table, y, _ = people()
    X = table[["age", "income"]].to_numpy(float)
    model = quick(**changes).fit(X, y)
    check_equal(there_and_back(model, tmp_path), model, X)


def test_checks_of_declared_subgroups_come_back(tmp_path):
    table, y, attributes = people()
    model = quick(guard_losses=("error", "fnr")).fit(table, y, guard_features=attributes)
    loaded = there_and_back(model, tmp_path)
    assert set(loaded.guard_report_.checks["part"]) == {"", "sex = f", "sex = m", "born = here", "born = there"}
    check_equal(loaded, model, new_rows())


def test_a_pipeline_comes_back_and_its_audit_says_the_same(saved):
    path, model = saved
    table, y, attributes = people(seed=1)
    loaded = dafh.load(path)
    check_equal(loaded[-1], model[-1], model[:-1].transform(table))
    assert repr(loaded) == repr(model)
    audits = [AuditResult.of(one, table, y, sensitive_features=attributes) for one in (loaded, model)]
    assert str(audits[0]) == str(audits[1])


def test_a_loaded_model_can_be_cloned_recalibrated_and_saved_again(saved, tmp_path):
    table, y, _ = people()
    again = clone(dafh.load(saved[0])).fit(table, y)
    np.testing.assert_array_equal(again.predict_proba(table), saved[1].predict_proba(table))
    new, new_y, _ = people(seed=1)
    loaded = dafh.load(saved[0])
    loaded[-1].set_params(guard="proof").recalibrate(loaded[:-1].transform(new), new_y)
    check_equal(there_and_back(loaded, tmp_path)[-1], loaded[-1], loaded[:-1].transform(table))


def test_parameters_that_were_changed_after_fit_do_not_change_what_was_fitted(tmp_path):
    table, y, _ = people()
    model = quick(guard_losses=("fnr",)).fit(table, y).set_params(guard_losses=("error",), threshold=0.9)
    loaded = there_and_back(model, tmp_path)
    assert [loss.name for loss in loaded.losses_] == ["fnr"]
    assert (loaded.threshold_, loaded.threshold) == (0.5, 0.9)


WITHOUT_JAX = """
import sys
sys.modules["jax"] = sys.modules["optax"] = None
import numpy as np, dafh
from model_files import people
model = dafh.load(sys.argv[1])
np.save(sys.argv[2], model.predict_proba(people(60, seed=1)[0]))
"""


def test_a_network_predicts_without_jax(tmp_path):
    model = model_of_table("network")
    dafh.save(model, tmp_path / "model.dafh")
    arguments = [sys.executable, "-c", WITHOUT_JAX, tmp_path / "model.dafh", tmp_path / "found.npy"]
    tests = next(path for path in sys.path if path.endswith("tests"))
    subprocess.run(arguments, check=True, cwd=tests)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model.predict_proba(people(60, seed=1)[0]))


# ---- models that users bring ----


INCUMBENTS = {
    "scorecard": Scorecard(8),
    "scorecard in a pipeline": make_pipeline(TableEncoder(), Scorecard(8)),
    "boosting in a pipeline": tabular_pipeline(BOOSTING),
    "model of groups": quick(),
}


@pytest.mark.parametrize("name", slow_but(INCUMBENTS, "scorecard", "boosting in a pipeline", "model of groups"))
def test_an_incumbent_comes_back_as_the_pooled_classifier(name, tmp_path):
    table, y, _ = people()
    model = quick(pooled=clone(INCUMBENTS[name]).fit(table, y)).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded.pooled is loaded.pooled_
    check_equal(loaded, model, new_rows())


SAID = {
    "score": IncumbentColumns("score"),
    "score on another scale": IncumbentColumns("points", threshold=40),
    "decision": IncumbentColumns(decision="decided"),
}


@pytest.mark.parametrize("name", slow_but(SAID, "score", "decision"))
def test_scores_and_decisions_in_the_table_come_back(name, tmp_path):
    table, y, _ = people()
    table = table.assign(score=np.linspace(0.01, 0.99, len(table)), points=np.arange(len(table)), decided=y)
    model = quick(pooled=SAID[name]).fit(table, y)
    check_equal(there_and_back(model, tmp_path), model, table)


OTHER_MODELS = {
    "labels by number": (LogisticRegression(), [0, 1], {"labels": ["no", "yes"]}),
    "a decision function": (RidgeClassifier(), ["no", "yes"], {"only": ["income"]}),
    "labels alone": (SVC(), ["no", "yes"], {"columns": np.array(["age", "income"])}),
}


@pytest.mark.parametrize("name", OTHER_MODELS)
def test_what_was_said_about_an_incumbent_comes_back(name, tmp_path):
    table, y, _ = people()
    table["income"] = table["income"].fillna(30)
    model, labels, said = OTHER_MODELS[name]
    fitted = clone(model).fit(table[["age", "income"]], np.array(labels)[(y == "yes").astype(int)])
    model = quick(pooled=Incumbent(fitted, **said)).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert repr(loaded) == repr(model)


# ---- DecoupledClassifier ----


PARTITIONS = {
    "everybody": PooledPartition(),
    "clusters": ClusterPartition(3),
    "one attribute": IntersectionPartition("sex"),
    "combinations": IntersectionPartition(["sex", "born"]),
}


@pytest.mark.parametrize(("name", "guard"), checkerboard(PARTITIONS, [None, "evidence"]))
def test_every_partition_comes_back_and_can_be_fitted_again(name, guard, tmp_path):
    table, y, attributes = people()
    X = table[["age"]].to_numpy(float)
    model = DecoupledClassifier(PARTITIONS[name], guard=guard, min_group_size=90, random_state=0)
    model.fit(X, y, sensitive_features=attributes)
    again = there_and_back(there_and_back(model, tmp_path), tmp_path)
    for one in (again, clone(again).fit(X, y, sensitive_features=attributes)):
        np.testing.assert_array_equal(one.predict_proba(X, attributes), model.predict_proba(X, attributes))
        np.testing.assert_array_equal(one.predict_group(X, attributes), model.predict_group(X, attributes))
    assert again.partition_.group_names_ == model.partition_.group_names_
    # A small group has the pooled classifier itself.
    alike = [[own is one.pooled_ for own in one._own_estimators] for one in (again, model)]
    assert alike[0] == alike[1]


CLASSIFIERS = {
    "logistic regression": LogisticRegression(C=0.5, class_weight="balanced", solver="newton-cg"),
    "boosting": BOOSTING,
    "most frequent": DummyClassifier(strategy="most_frequent"),
    "scaled": make_pipeline(StandardScaler(with_mean=False), "passthrough", LogisticRegression()),
    "support vectors": SVC(),
}


@pytest.mark.parametrize(("name", "n_classes"), checkerboard(CLASSIFIERS, [2, 3]))
def test_classifiers_of_scikit_learn_come_back_with_the_same_predictions(name, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.clip((X[:, 0] + rng.normal(0, 0.3, 200)).round() + 1, 0, n_classes - 1).astype(int)
    model = DecoupledClassifier(PooledPartition(), CLASSIFIERS[name], random_state=0).fit(X, y)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert repr(loaded) == repr(model)


LABELS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["no", "perhaps"], dtype=object),
    "truth values": np.array([False, True]),
    "small numbers": np.array([-3, 7], dtype=np.int8),
    "large numbers": np.array([2**40, 2**62]),
    "floats": np.array([-1.0, 2.0**60]),
    "single precision": np.array([1.0, 2.0], dtype=np.float32),
    "strange text": np.array(["", "né\u200b☃\n\x07"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_with_their_type(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    with np.errstate(all="ignore"):
        model = DecoupledClassifier(PooledPartition()).fit(X, LABELS[kind][(X[:, 0] > 0).astype(int)])
    labels = there_and_back(model, tmp_path).predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert labels.dtype == model.predict(X).dtype


# ---- scorecards and columns ----


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
    pd.testing.assert_series_equal(loaded.importance(), model.importance())


def test_constraints_and_scale_of_a_scorecard_come_back(tmp_path):
    table, y, _ = people()
    number = table.select_dtypes("number").columns[0]
    model = Scorecard(10, strength=3.0, monotonic={number: 1}, scaling=Scaling(600, 50, 20)).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.scaled_points(new_rows()), model.scaled_points(new_rows()))
    month = np.zeros(len(new_rows()))
    pd.testing.assert_frame_equal(loaded.stability(new_rows(), month), model.stability(new_rows(), month))


def test_a_scorecard_of_columns_that_say_nothing_comes_back(tmp_path):
    table = pd.DataFrame({"same": [1.0] * 60, "none": [None] * 60, "word": ["x"] * 60})
    model = Scorecard().fit(table, np.arange(60) % 2)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True),
    cells=st.lists(st.one_of(st.none(), st.text(max_size=3), st.booleans()), min_size=20, max_size=20),
    number=st.floats(-1e90, 1e90),
)
def test_encoder_and_bins_of_any_table_come_back(names, cells, number, tmp_path):
    names = [name.encode(errors="replace").decode() for name in names]
    frame = pd.DataFrame({f"{name}{i}": cells if i else [number] * 19 + [0.5] for i, name in enumerate(names)})
    for estimator in (DecoupledClassifier(PooledPartition()), Scorecard(strength=1.0)):
        model = tabular_pipeline(estimator).fit(frame, np.arange(20) % 2)
        loaded = there_and_back(model, tmp_path)
        pd.testing.assert_frame_equal(loaded[:-1].transform(frame), model[:-1].transform(frame))
        np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_what_the_user_said_about_columns_comes_back(tmp_path):
    table, y, _ = people()
    table["since"] = table["since"].dt.strftime("%d_%m_%Y")
    kinds = {"since": "date %d_%m_%Y", "age": "category"}
    model = tabular_pipeline(Scorecard(8), kinds).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded[0].kinds == kinds
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert {"name": "since", "type": "date %d_%m_%Y"} in dafh.persistence.files.read_card(tmp_path / "model.dafh")[
        "columns"
    ]


# ---- what is not kept ----


def test_states_of_random_numbers_and_caches_are_not_kept(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "cache"))
    model = DecoupledClassifier(PooledPartition(), pipeline, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    loaded = there_and_back(model.set_params(random_state=np.random.RandomState(0)), tmp_path)
    assert loaded.random_state is None
    assert loaded.pooled_.memory is None
    assert loaded.estimator.memory is None


def test_a_model_with_the_defaults_is_saved_with_the_defaults(tmp_path):
    table, y, _ = people(120)
    model = DAFHClassifier(random_state=0).fit(table, y)
    check_equal(there_and_back(model, tmp_path), model, new_rows())
    assert dafh.persistence.files.read_card(tmp_path / "model.dafh")["settings"] == {"random_state": 0}
