"""Model files: every model comes back as it went, its card says what it is, and what is no model file is refused."""

import datetime
import functools
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
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
    Scaling,
    Scorecard,
    tabular_pipeline,
)
from dafh.columns.encoder import TableEncoder
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.partitions import (
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
)
from dafh.persistence import FORMAT, open_model, read_card
from model_files import NETWORK, Parts, people, quick, there_and_back, with_checksum, zipped

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


# ---- every model comes back as it went: DAFHClassifier ----


TABLES = {
    "rules on a scorecard": {"pooled": "scorecard"},
    "rules on a linear classifier": {},
    "rules on boosting": {"pooled": BOOSTING},
    "one group": {"n_groups": 1},
    "proof": {"guard": "proof"},
    "costs": {"costs": {"fp": 1, "fn": 4}, "guard_losses": ("cost", "error"), "pooled": "scorecard"},
    "threshold": {"threshold": 0.3},
    "number of groups to be chosen": {"n_groups": "auto"},
    "network": NETWORK,
    "network on a scorecard": {**NETWORK, "pooled": "scorecard"},
}


@functools.cache  # No test changes it.
def model_of_table(name):
    table, y, _ = people()
    return quick(**TABLES[name]).fit(table, y)


SECOND = {"rules on boosting", "threshold", "network on a scorecard"}


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
    "truth values": np.array([False, True]),
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


def test_what_the_user_said_about_columns_comes_back(tmp_path):
    table, y, _ = people()
    table["since"] = table["since"].dt.strftime("%d_%m_%Y")
    kinds = {"since": "date %d_%m_%Y", "age": "category"}
    model = tabular_pipeline(Scorecard(8), kinds).fit(table, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded[0].kinds == kinds
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert {"name": "since", "type": "date %d_%m_%Y"} in dafh.persistence.read_card(tmp_path / "model.dafh")["columns"]


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
    assert dafh.persistence.read_card(tmp_path / "model.dafh")["settings"] == {"random_state": 0}


# ---- the card ----


def test_the_card_says_what_the_model_is_and_holds_no_rows(saved):
    card = read_card(saved[0])
    assert card["model"] == "DAFHClassifier"
    assert card["labels"] == ["no", "yes"]
    assert card["rows"] == 300
    assert {"name": "job", "type": "category"} in card["columns"]
    assert card["settings"] == {"n_groups": 2, "pooled": "linear", "random_state": 0}
    assert (card["groups"], card["groups_by"]) == (2, "exceptions")
    assert card["pooled"] == "StandardizedLogisticRegression"
    exceptions = saved[1][-1].exceptions_
    assert [entry["rule"] for entry in card["exceptions"]] == exceptions.rules
    assert [entry["gain"] for entry in card["exceptions"]] == exceptions.gain.tolist()
    assert [entry["served_by"] for entry in card["exceptions"]] == [exceptions.server(k) for k in (0, 1)]
    assert card["guard"]["summary"].startswith('Guard "evidence"')
    assert "scikit-learn" in card["versions"]
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert open_model(saved[0])[1] == card


MODELS = {
    "scorecard": (Scorecard(8), ("Scorecard", 1, "nothing", "Scorecard")),
    "network": (quick(**NETWORK), ("DAFHClassifier", 2, "network", "StandardizedLogisticRegression")),
    "one group": (quick(n_groups=1, pooled="scorecard"), ("DAFHClassifier", 1, "exceptions", "Scorecard")),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_card_says_how_rows_are_divided_and_by_what_the_rest_is_served(name, tmp_path):
    table, y, _ = people()
    model, expected = MODELS[name]
    dafh.save(model.fit(table, y), tmp_path / "model.dafh")
    card = read_card(tmp_path / "model.dafh")
    assert (card["model"], card["groups"], card["groups_by"], card["pooled"]) == expected
    assert card["columns"][2:] == [{"name": "job", "type": "category"}, {"name": "since", "type": "date ISO8601"}]
    rules = None if card["exceptions"] is None else [entry["rule"] for entry in card["exceptions"]]
    assert rules == (["everybody"] if name == "one group" else None)


def test_details_with_an_obvious_plain_form_are_converted(saved, tmp_path):
    details = {
        "array": np.array([[1.5, np.nan]]),
        "day": datetime.date(2026, 1, 2),
        "nested": {"": [None, {"é☃": "\x00"}]},
    }
    dafh.save(saved[1], tmp_path / "model.dafh", details=details)
    card = read_card(tmp_path / "model.dafh")
    expected = {"array": [[1.5, None]], "day": "2026-01-02", "nested": details["nested"]}
    assert {name: card[name] for name in details} == expected


BAD_DETAILS = {
    "card says itself": {"labels": ["a"]},
    "rows": {"rows": "many"},
    "too large": {"text": "x" * 2**27},
}


@pytest.mark.parametrize("reason", BAD_DETAILS)
def test_details_that_a_card_cannot_hold_are_refused_when_saving(reason, saved, tmp_path):
    with pytest.raises(InputError, match=reason) as refusal:
        dafh.save(saved[1], tmp_path / "model.dafh", details=BAD_DETAILS[reason])
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


MALFORMED = {
    "a text in place of a number": {"groups": "two"},
    "a cut-off of more than 1": {"threshold": 1.5},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_card_is_refused(name, saved, tmp_path):
    parts = Parts(saved[0])
    parts.card |= MALFORMED[name]
    with pytest.raises(InputError, match="model card is malformed"):
        read_card(parts.write(tmp_path / "crafted.dafh"))


def refusal(path, **options):
    """The one sentence by which a file is refused."""
    with pytest.raises(InputError) as refused:
        dafh.load(path, **options)
    text = str(refused.value)
    assert "\n" not in text
    assert len(text) < 1000
    return text


# ---- damage ----


def changed(content, rng):
    """Flip, cut, insert, remove or repeat bytes."""
    at, length = int(rng.integers(len(content))), int(rng.integers(1, 50))
    return [
        content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :],
        content[:at],
        content[:at] + rng.bytes(length) + content[at:],
        content[:at] + content[at + length :],
        content[:at] + content[at : at + length] + content[at:],
    ][rng.integers(5)]


def test_every_change_of_bytes_is_refused(saved, tmp_path):
    rng, content = np.random.default_rng(0), saved[0].read_bytes()
    for _ in range(300):
        damaged = changed(content, rng)
        if damaged != content:
            (tmp_path / "model.dafh").write_bytes(damaged)
            refusal(tmp_path / "model.dafh")


OTHER_FILES = {
    "nothing": (b"", "not a dafh model file"),
    "a text": (b"anything", "not a dafh model file"),
    "another archive": (zipped({"a.txt": b"an archive of something else"}), "not a dafh model file"),
    "a file of a newer version": (with_checksum(zipped({}), FORMAT + 1), "another version of dafh: upgrade"),
    "a file of an older version": (
        with_checksum(zipped({}), 2),
        "another version of dafh: fit and save the model again",
    ),
}


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_other_files_are_refused(kind, tmp_path):
    content, reason = OTHER_FILES[kind]
    (tmp_path / "model.dafh").write_bytes(content)
    assert reason in refusal(tmp_path / "model.dafh")


def test_files_that_are_not_there_and_folders_are_refused(tmp_path):
    assert "no model file" in refusal(tmp_path / "model.dafh")
    assert "Is a directory" in refusal(tmp_path)


# ---- crafted files ----


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(shape, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def model(described):
    """Another model in the file."""
    return lambda parts: setattr(parts, "model", described)


def field(name, entry, value):
    return lambda parts: parts.fields(name).update({entry: value})


def object_of(name, **fields):
    return model(["object", name, fields])


def array(content):
    return lambda parts: parts.arrays.update({"0.npy": content})


class Payload:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "run")


CRAFTED = {
    "a class of another module": (object_of("os.system"), "of a class that this version of dafh lacks"),
    "a method as a field": (field("DAFHClassifier", "predict", "x"), "has no field 'predict'"),
    "a missing parameter": (lambda parts: parts.fields("DAFHClassifier").pop("guard"), "KeyError: 'guard'"),
    "a parameter out of range": (field("DAFHClassifier", "guard_level", 7.0), "guard_level"),
    "a text in place of an array": (field("GuardReport", "serves", "x"), "'serves' of GuardReport is a str"),
    "a folder of pickles": (field("Pipeline", "memory", "/tmp"), "has no field 'memory'"),
    "no model": (model(None), "is a NoneType"),
    "a record as the model": (object_of("Costs", fp=1.0, fn=2.0), "is a Costs"),
    "a model that is not fitted": (object_of("Scorecard", **Scorecard().get_params()), "not fitted"),
    "a value that comes later": (model(["same", 9]), "of no kind"),
    "an array of another size": (array(header((10**15,)) + bytes(8)), "malformed"),
    "a part that is no archive": (
        lambda parts: (parts.members.update({"0.skops": b"x"}), model(["part", 0])(parts)),
        "malformed",
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_in_one_sentence(name, saved, tmp_path):
    change, reason = CRAFTED[name]
    parts = Parts(saved[0])
    change(parts)
    assert reason in refusal(parts.write(tmp_path / "crafted.dafh"))


def test_a_pickled_array_is_refused_and_not_run(saved, tmp_path):
    parts = Parts(saved[0])
    parts.arrays["0.npy"] = npy(np.array([Payload(tmp_path / "run")], dtype=object))
    assert "malformed" in refusal(parts.write(tmp_path / "crafted.dafh"))
    assert not (tmp_path / "run").exists()


def test_a_file_that_unpacks_to_more_than_it_holds_is_refused(saved, tmp_path):
    parts = Parts(saved[0])
    parts.arrays["0.npy"] = npy(np.zeros(10**6))
    assert "unpack to more" in refusal(parts.write(tmp_path / "crafted.dafh", zipfile.ZIP_DEFLATED))


def with_member(path, tmp_path, name, content):
    """A file with another member of this name."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()} | {name: content}
    (tmp_path / "crafted.dafh").write_bytes(with_checksum(zipped(members), FORMAT))
    return tmp_path / "crafted.dafh"


def test_deeply_nested_values_are_refused(saved, tmp_path):
    assert "malformed" in refusal(with_member(saved[0], tmp_path, "model.msgpack", b"\x91" * 10**6))


# ---- parts of other libraries ----


TREES = ["sklearn.tree._tree.Tree"]


def of_trees():
    table, y, _ = people(60)
    classifier = GradientBoostingClassifier(n_estimators=2, random_state=0)
    return DecoupledClassifier(PooledPartition(), classifier).fit(table[["age"]], y), table[["age"]]


def test_types_that_skops_does_not_trust_are_named_when_saving_and_when_loading(tmp_path):
    model, X = of_trees()
    path = tmp_path / "model.dafh"
    with pytest.raises(InputError, match=r"trusted=\['sklearn.tree._tree.Tree'\]"):
        dafh.save(model, path)
    assert not path.exists()
    dafh.save(model, path, trusted=TREES)
    assert "names them: sklearn.tree._tree.Tree" in refusal(path)
    np.testing.assert_array_equal(dafh.load(path, trusted=TREES).predict_proba(X), model.predict_proba(X))
    assert read_card(path)["pooled"] == "GradientBoostingClassifier"  # Needs no trust.


def test_versions_matter_for_parts_of_other_libraries_only(saved, tmp_path):
    table, y, _ = people(60)
    dafh.save(DecoupledClassifier(PooledPartition(), SVC()).fit(table[["age"]], y), tmp_path / "svc.dafh")
    for path, expected in ((tmp_path / "svc.dafh", True), (saved[0], False)):
        parts = Parts(path)
        parts.card["versions"]["scikit-learn"] = "0.1.0"
        changed_file = parts.write(tmp_path / "changed.dafh")
        if expected:
            with pytest.warns(OtherVersionWarning, match=r"written with dafh .* scikit-learn 0.1.0"):
                dafh.load(changed_file)
        else:
            dafh.load(changed_file)


# ---- saving ----


def test_what_is_not_a_fitted_model_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="not LogisticRegression"):
        dafh.save(LogisticRegression(), tmp_path / "model.dafh")
    with pytest.raises(NotFittedError):
        dafh.save(dafh.DAFHClassifier(), tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


def test_attributes_that_are_neither_text_nor_numbers_are_named(tmp_path):
    table, y, _ = people()
    born = pd.DataFrame({"born": pd.to_datetime(["2000-01-01", "2001-01-01"] * 150)})
    model = DecoupledClassifier(IntersectionPartition()).fit(table[["age"]].to_numpy(float), y, sensitive_features=born)
    with pytest.raises(InputError, match="cannot be saved: it holds a Timestamp"):
        dafh.save(model, tmp_path / "model.dafh")


def test_the_same_model_gives_the_same_bytes_but_for_the_time(saved, tmp_path):
    parts = []
    for _ in range(2):
        dafh.save(saved[1], tmp_path / "model.dafh")
        parts.append(Parts(tmp_path / "model.dafh"))
    assert (parts[0].model, parts[0].arrays) == (parts[1].model, parts[1].arrays)
