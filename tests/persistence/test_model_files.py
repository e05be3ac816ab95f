"""Model files from anywhere: damage and crafted content are refused in one sentence, and nothing in them is run."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dafh
from dafh import DecoupledClassifier, Recipe, Scorecard
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.partitions import IntersectionPartition, PooledPartition
from dafh.persistence.files import FORMAT, read_card
from model_files import Parts, people, with_checksum, zipped

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")


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
    "is empty": b"",
    "not a dafh model file": b"anything",
    "is not a dafh model file": zipped({"a.txt": b"an archive of something else"}),
    "earlier version: fit and save the model again": b"dafh model 3 " + b"0" * 64 + b"\n1 1 1\n{}{}",
    "newer dafh": with_checksum(zipped({}), FORMAT + 1),
    "by an earlier version": with_checksum(zipped({}), 2),
}


@pytest.mark.parametrize("reason", OTHER_FILES)
def test_other_files_are_refused(reason, tmp_path):
    (tmp_path / "model.dafh").write_bytes(OTHER_FILES[reason])
    assert reason in refusal(tmp_path / "model.dafh")


def test_files_that_are_not_there_and_folders_are_refused(tmp_path):
    assert "no model file" in refusal(tmp_path / "model.dafh")
    assert "is not a file" in refusal(tmp_path)


# ---- crafted files ----


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(shape, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def on_nodes(change):
    return lambda parts: change(parts.nodes)


def field(name, entry, value):
    return lambda parts: parts.fields(name).update({entry: value})


def add(name, **fields):
    return on_nodes(lambda nodes: nodes.append(["object", name, fields]))


def array(content):
    return lambda parts: parts.arrays.update({"0.npy": content})


class Payload:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "run")


CRAFTED = {
    "a class of another module": (add("os.system"), "not a class"),
    "a method as a field": (field("DAFHClassifier", "predict", "x"), "has no field 'predict'"),
    "a property as a field": (field("DAFHClassifier", "history_", "x"), "has no field"),
    "an unknown field": (field("DAFHClassifier", "n_jobs", 2), "has no field 'n_jobs'"),
    "an unknown field of a record": (field("GuardReport", "other", 2), "has no field 'other'"),
    "a missing parameter": (lambda parts: parts.fields("DAFHClassifier").pop("guard"), "lacks 'guard'"),
    "a missing field": (lambda parts: parts.fields("GuardReport").pop("serves"), "lacks 'serves'"),
    "a parameter out of range": (field("DAFHClassifier", "guard_level", 7.0), "guard_level"),
    "a setting out of range": (add("Recipe", **Recipe().get_params() | {"group_hidden": 0}), "group_hidden"),
    "a text in place of an array": (field("GuardReport", "serves", "x"), "'serves' of GuardReport is a str"),
    "a number in place of a text": (field("Column", "name", 3), "'name' of Column is a int"),
    "a word that is none of the choices": (field("GuardReport", "kind", "hope"), "'kind' of GuardReport"),
    "a folder of pickles": (field("Pipeline", "memory", "/tmp"), "has no field 'memory'"),
    "steps that are none": (field("Pipeline", "steps", "x"), "'steps' of Pipeline"),
    "a node of no kind": (on_nodes(lambda nodes: nodes.append(["eval", "1"])), "malformed"),
    "a node with more than it has": (on_nodes(lambda nodes: nodes.append(["list", [], 1])), "malformed"),
    "no model": (on_nodes(lambda nodes: nodes.clear()), "holds no model"),
    "a list as the model": (on_nodes(lambda nodes: nodes.append(["list", []])), "is a list"),
    "a record as the model": (add("ScoreCurve", intercept=1.0, slope=2.0), "is a ScoreCurve"),
    "a model that is not fitted": (add("Scorecard", **Scorecard().get_params()), "not fitted"),
    "a value that comes later": (on_nodes(lambda nodes: nodes.insert(0, ["list", [[9]]])), "not there"),
    "a value before the first": (on_nodes(lambda nodes: nodes.append(["list", [[-1]]])), "not there"),
    "a mapping by lists": (on_nodes(lambda n: n.extend([["list", []], ["mapping", [[len(n)]], [1]]])), "malformed"),
    "an array that is not there": (on_nodes(lambda nodes: nodes.append(["array", 10**6])), "malformed"),
    "a part that is not there": (on_nodes(lambda nodes: nodes.append(["part", 0, "SVC"])), "malformed"),
    "an array of another size": (array(header((10**15,)) + bytes(8)), "another type or size"),
    "an array of records": (array(npy(np.zeros(2, [("a", int)]))), "another type or size"),
    "no array at all": (array(b"anything"), "malformed"),
    "a member with a path": (lambda parts: parts.members.update({"../../evil": b"x"}), "malformed"),
    "one member too many": (lambda parts: parts.members.update({"more.json": b"{}"}), "malformed"),
    "a part that is no archive": (
        lambda parts: (parts.members.update({"0.skops": b"x"}), parts.nodes.append(["part", 0, "SVC"])),
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
    assert "another type" in refusal(parts.write(tmp_path / "crafted.dafh"))
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


def test_arrays_that_unpack_to_more_than_they_hold_are_refused(saved, tmp_path):
    parts = Parts(saved[0])
    parts.arrays = {name: content * 1000 for name, content in parts.arrays.items()}
    crafted = with_member(saved[0], tmp_path, "arrays.npz", zipped(parts.arrays, zipfile.ZIP_DEFLATED))
    assert "unpack to more" in refusal(crafted)


def test_a_size_in_the_directory_that_is_not_there_is_refused(saved, tmp_path):
    content = bytearray(saved[0].read_bytes()[:-80])
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = (2**31).to_bytes(4, "little") * 2
    (tmp_path / "crafted.dafh").write_bytes(with_checksum(bytes(content), FORMAT))
    assert "unpack to more" in refusal(tmp_path / "crafted.dafh")


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


class Mine(LogisticRegression):
    """A classifier of the user's own."""


def test_a_class_of_the_users_own_is_named(tmp_path):
    table, y, _ = people(60)
    model = DecoupledClassifier(PooledPartition(), Mine()).fit(table[["age"]], y)
    own = [f"{Mine.__module__}.Mine"]
    dafh.save(model, tmp_path / "model.dafh", trusted=own)
    assert "Mine" in refusal(tmp_path / "model.dafh")
    assert type(dafh.load(tmp_path / "model.dafh", trusted=own).pooled_) is Mine


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


class OwnPartition(PooledPartition):
    """A partition that the package does not know."""


def test_a_partition_of_ones_own_cannot_be_saved(tmp_path):
    table, y, attributes = people()
    model = DecoupledClassifier(OwnPartition()).fit(table[["age"]].to_numpy(float), y, sensitive_features=attributes)
    with pytest.raises(InputError, match="OwnPartition"):
        dafh.save(model, tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


def test_a_model_with_a_field_of_another_type_is_not_saved(saved, tmp_path):
    broken = dafh.load(saved[0])
    object.__setattr__(broken[-1].guard_report_, "cross_fitted", "x")
    with pytest.raises(InputError, match="cannot be saved: the field 'cross_fitted' of GuardReport"):
        dafh.save(broken, tmp_path / "broken.dafh")
    assert not list(tmp_path.iterdir())


def test_attributes_that_are_neither_text_nor_numbers_are_named(tmp_path):
    table, y, _ = people()
    born = pd.DataFrame({"born": pd.to_datetime(["2000-01-01", "2001-01-01"] * 150)})
    model = DecoupledClassifier(IntersectionPartition()).fit(table[["age"]].to_numpy(float), y, sensitive_features=born)
    with pytest.raises(InputError, match="cannot be saved: it holds a Timestamp"):
        dafh.save(model, tmp_path / "model.dafh")


def test_saving_replaces_a_file_whole_or_not_at_all(saved, tmp_path, monkeypatch):
    path = tmp_path / "model.dafh"
    path.write_text("before")
    monkeypatch.setattr(Path, "write_bytes", lambda self, data: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        dafh.save(saved[1], path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_model_gives_the_same_bytes_but_for_the_time(saved, tmp_path):
    parts = []
    for _ in range(2):
        dafh.save(saved[1], tmp_path / "model.dafh")
        parts.append(Parts(tmp_path / "model.dafh"))
    assert (parts[0].nodes, parts[0].arrays) == (parts[1].nodes, parts[1].arrays)
