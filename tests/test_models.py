"""Model files: they come back as they went, whatever they hold, and say what they are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dafh
from dafh import AuditResult, DecoupledClassifier, Scorecard, tabular_pipeline
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.models import read_card
from dafh.models.trees import as_boosted_trees
from dafh.partitions import PooledPartition, RulePartition
from model_files import ANSWERS, EXAMPLES, SVC_TYPES, Parts, people, there_and_back
from research.rivals import make_baseline

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def one_thread():
    """On tables this small, the threads of gradient boosting spend their time waiting for each other."""
    with threadpool_limits(1):
        yield


# ---- round trips ----


def test_a_pipeline_comes_back_as_it_went(saved):
    path, model = saved
    table, y, attributes = people(seed=1)
    loaded = dafh.load(path)
    for method in ("predict", "predict_proba", "predict_group", "predict_all", "group_proba"):
        np.testing.assert_array_equal(
            *(getattr(one[-1], method)(one[:-1].transform(table)) for one in (loaded, model)), err_msg=method
        )
    assert str(loaded[-1].guard_report_) == str(model[-1].guard_report_)
    assert str(AuditResult.of(loaded, table, y, sensitive_features=attributes)) == str(
        AuditResult.of(model, table, y, sensitive_features=attributes)
    )


def test_parameters_come_back_and_a_clone_of_a_loaded_model_can_be_fitted(saved):
    table, y, _ = people()
    loaded = dafh.load(saved[0])
    assert repr(loaded) == repr(saved[1])
    again = clone(loaded).fit(table, y)
    np.testing.assert_array_equal(again.predict_proba(table), saved[1].predict_proba(table))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_that_was_written_once_predicts_the_same_for_good(name):
    table, _, _ = people(20, seed=1)
    expected = json.loads((DATA / f"model-format-3{name}.json").read_text())
    model = dafh.load(DATA / f"model-format-3{name}.dafh")
    for method in ANSWERS[:2]:
        assert getattr(model, method)(table).tolist() == expected[method]
    np.testing.assert_allclose(model.predict_proba(table), expected["predict_proba"], atol=1e-6)


def test_a_loaded_model_can_be_recalibrated_and_saved_again(saved, tmp_path):
    table, y, _ = people(seed=1)
    loaded = dafh.load(saved[0])
    loaded[-1].recalibrate(loaded[:-1].transform(table), y)
    np.testing.assert_array_equal(there_and_back(loaded, tmp_path).predict(table), loaded.predict(table))


BASELINES = ["pooled", "trivial", "clustering", "lr-all", "treelr", "random", "majority", "mlp", "boosting"]


@pytest.mark.parametrize("guard", [None, "veto"])
@pytest.mark.parametrize("name", BASELINES)
def test_every_comparator_comes_back_and_can_be_fitted_again(name, guard, tmp_path):
    table, y, attributes = people()
    attributes = attributes[["sex"]] if name == "trivial" else attributes
    X = table[["age"]].to_numpy(float)
    model = make_baseline(name, random_state=0).set_params(guard=guard)
    if name == "boosting":
        model.set_params(estimator__max_iter=3)
    model.fit(X, y, sensitive_features=attributes)
    again = there_and_back(there_and_back(model, tmp_path), tmp_path)
    for one in (again, clone(again).fit(X, y, sensitive_features=attributes)):
        np.testing.assert_array_equal(one.predict_proba(X, attributes), model.predict_proba(X, attributes))
        np.testing.assert_array_equal(one.predict_group(X, attributes), model.predict_group(X, attributes))
    assert again.partition_.group_names_ == model.partition_.group_names_


def test_a_tree_serves_values_that_were_not_seen_in_training_as_before(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    attributes = pd.DataFrame({"a": rng.integers(0, 2, 3000), "b": rng.choice(["x", "y"], 3000)})
    turned = np.where(attributes["a"] == 1, attributes["b"].map({"x": 1, "y": -1}), 1)
    y = (X[:, 0] * turned > 0).astype(int)
    model = make_baseline("treelr", random_state=0).fit(X, y, sensitive_features=attributes)
    unseen = pd.DataFrame({"a": [0, 1, 7] * 4, "b": ["x", "z", "y", "z"] * 3})
    loaded = there_and_back(model, tmp_path)
    assert model.n_groups_ > 2
    np.testing.assert_array_equal(loaded.partition_.assign(X[:12], unseen), model.partition_.assign(X[:12], unseen))
    np.testing.assert_array_equal(loaded.predict(X[:12], unseen), model.predict(X[:12], unseen))


CLASSIFIERS = {
    "logistic regression": LogisticRegression(C=0.5, class_weight="balanced", solver="newton-cg"),
    "boosting": HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=7),
    "boosting with weights": HistGradientBoostingClassifier(
        max_iter=5, early_stopping=True, class_weight={0: 1, 1: 3, 2: 1}
    ),
    "network": make_pipeline(StandardScaler(), MLPClassifier((8, 4), activation="tanh", n_iter_no_change=2, tol=1)),
    "network of one layer": MLPClassifier((), solver="lbfgs", max_iter=2000),
    "most frequent": DummyClassifier(strategy="most_frequent"),
    "prior": DummyClassifier(),
    "scaled": make_pipeline(StandardScaler(with_mean=False), "passthrough", LogisticRegression()),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_of_scikit_learn_come_back_with_the_same_predictions(name, dtype, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(dtype)
    y = np.clip((X[:, 0] + rng.normal(0, 0.3, 200)).round() + 1, 0, n_classes - 1).astype(int)
    classifier = CLASSIFIERS[name]
    if name == "boosting with weights" and n_classes == 2:
        classifier = clone(classifier).set_params(class_weight={0: 1, 1: 3})
    model = DecoupledClassifier(PooledPartition(), classifier, random_state=0).fit(X, y)
    loaded = there_and_back(model, tmp_path)
    for data in (X, rng.normal(size=(50, 3))):
        np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
        np.testing.assert_allclose(loaded.predict_proba(data), model.predict_proba(data), rtol=1e-12)
    assert repr(clone(loaded.estimators_[0])) == repr(clone(model.estimators_[0]))
    assert repr(loaded.estimator) == repr(model.estimator)


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4), n_rows=st.integers(30, 300), gaps=st.floats(0, 0.5))
def test_boosted_trees_of_any_table_predict_as_scikit_learn_does(seed, n_classes, n_rows, gaps):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).round(rng.integers(0, 3))
    X[rng.random(X.shape) < gaps] = np.nan
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    fitted = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, random_state=0).fit(X, y)
    trees = as_boosted_trees(fitted)
    new = np.append(X, rng.normal(size=(50, 3)), axis=0)
    np.testing.assert_array_equal(trees.predict(new), fitted.predict(new))
    np.testing.assert_allclose(trees.predict_proba(new), fitted.predict_proba(new), rtol=1e-12)


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True),
    cells=st.lists(st.one_of(st.none(), st.text(max_size=3), st.booleans()), min_size=20, max_size=20),
    number=st.floats(-1e90, 1e90),
)
def test_encoder_and_bins_of_any_table_come_back(names, cells, number, tmp_path):
    names = [name.encode(errors="replace").decode() for name in names]
    frame = pd.DataFrame({f"{name}{i}": cells if i else [number] * 19 + [0.5] for i, name in enumerate(names)})
    y = np.arange(20) % 2
    for estimator in (DecoupledClassifier(PooledPartition()), Scorecard(strength=1.0)):
        model = tabular_pipeline(estimator).fit(frame, y)
        loaded = there_and_back(model, tmp_path)
        pd.testing.assert_frame_equal(loaded[:-1].transform(frame), model[:-1].transform(frame))
        np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("estimator", [DecoupledClassifier(PooledPartition()), Scorecard(8)], ids=str)
def test_what_the_user_said_about_columns_comes_back(estimator, tmp_path):
    table, y, _ = people()
    table["since"] = table["since"].dt.strftime("%d_%m_%Y")
    kinds = {"since": "date %d_%m_%Y", "age": "category"}
    model = tabular_pipeline(estimator, kinds).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded[0].kinds == kinds
    pd.testing.assert_frame_equal(loaded[:-1].transform(table), model[:-1].transform(table))
    assert {"name": "since", "type": "date %d_%m_%Y"} in read_card(tmp_path / "model.dafh")["columns"]
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))


def test_how_a_model_is_run_is_not_kept(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "cache"))
    model = DecoupledClassifier(PooledPartition(), pipeline, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    model.pooled_[-1].n_jobs = 2
    model.set_params(random_state=np.random.RandomState(0))
    loaded = there_and_back(model, tmp_path)
    assert loaded.random_state is None
    assert loaded.pooled_.memory is None
    assert loaded.estimator.memory is None
    assert loaded.pooled_[-1].n_jobs is None


# ---- foreign parts ----


def test_a_foreign_part_is_named_when_saving_and_when_loading(tmp_path):
    table, y, _ = people(60)
    X = table[["age"]].to_numpy(float)
    model = make_baseline("pooled", estimator=SVC()).fit(X, y)
    path = tmp_path / "model.dafh"
    with pytest.raises(InputError, match=r"SVC is not among the parts .*trusted=\['sklearn.svm._classes.SVC'\]"):
        dafh.save(model, path)
    assert not path.exists()
    dafh.save(model, path, trusted=SVC_TYPES)
    with pytest.raises(InputError, match=r"built only if load\(..., trusted=\[...\]\) names them: sklearn.svm"):
        dafh.load(path)
    np.testing.assert_array_equal(dafh.load(path, trusted=SVC_TYPES).predict(X), model.predict(X))
    read_card(path)  # Needs no trust.


def test_all_types_inside_a_foreign_part_must_be_named(tmp_path):
    table, y, _ = people(60)
    X = table[["age"]].to_numpy(float)
    model = make_baseline("pooled", estimator=GradientBoostingClassifier(n_estimators=2, random_state=0)).fit(X, y)
    with pytest.raises(InputError, match=r"sklearn.tree._tree.Tree"):
        dafh.save(model, tmp_path / "model.dafh", trusted=["sklearn.ensemble._gb.GradientBoostingClassifier"])


def test_boosting_by_categories_is_a_foreign_part(tmp_path):
    X = np.random.default_rng(0).integers(0, 5, (200, 2)).astype(float)
    boosting = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])
    model = DecoupledClassifier(PooledPartition(), boosting).fit(X, (X[:, 0] > 2).astype(int))
    with pytest.raises(InputError, match="HistGradientBoostingClassifier is not among the parts"):
        dafh.save(model, tmp_path / "model.dafh")


def test_a_rule_made_of_a_lambda_cannot_be_saved(tmp_path):
    table, y, attributes = people()
    rule = RulePartition({"women": lambda t: t.sex == "f", "men": lambda t: t.sex == "m"})
    model = DecoupledClassifier(rule).fit(table[["age"]].to_numpy(float), y, sensitive_features=attributes)
    with pytest.raises(InputError, match=r"RulePartition (cannot be written without pickle|is not among)"):
        dafh.save(model, tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


def test_versions_matter_for_foreign_parts_only(saved, tmp_path):
    table, y, _ = people(60)
    dafh.save(make_baseline("pooled", estimator=SVC()).fit(table[["age"]], y), tmp_path / "a", trusted=SVC_TYPES)
    for path, expected in ((tmp_path / "a", True), (saved[0], False)):
        parts = Parts(path)
        parts.card["versions"]["scikit-learn"] = "0.1.0"
        changed = parts.write(tmp_path / "changed.dafh")
        if expected:
            with pytest.warns(OtherVersionWarning, match=r"written with dafh .* scikit-learn 0.1.0"):
                dafh.load(changed, trusted=SVC_TYPES)
        else:
            dafh.load(changed)
