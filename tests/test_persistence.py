"""Model files: they come back as they went, and a bad one is refused in one sentence with nothing run."""

import contextlib
import hashlib
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import dafh
from dafh import AuditResult, DAFHClassifier, DecoupledClassifier, tabular_pipeline
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.models.files import FORMAT, read_card
from dafh.rivals.baselines import make_baseline

QUICK = {"n_replicas": 2, "max_epochs": 2, "random_state": 0}


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 8, n)),
            "job": rng.choice(["cook", "clerk", "pilot"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    y = np.where(table["age"] + 10 * (table["job"] == "cook") + rng.normal(0, 8, n) > 50, "yes", "no")
    return table, y, pd.DataFrame({"sex": rng.choice(["f", "m"], n), "born": rng.choice(["here", "there"], n)})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    table, y, _ = people()
    model = tabular_pipeline(DAFHClassifier(**QUICK)).fit(table, y)
    path = tmp_path_factory.mktemp("models") / "model.dafh"
    dafh.save(model, path, details={"rows": len(table)})
    return path, model


def rewritten(path, tmp_path, change):
    """Copy a model file with other members and a checksum that fits: what a forger would do."""
    _, _, payload = path.read_bytes().partition(b"\n")
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in change(members).items():
            archive.writestr(name, data)
    forged = tmp_path / "forged.dafh"
    forged.write_bytes(first_line(content.getvalue()) + content.getvalue())
    return forged


def first_line(content, number=FORMAT):
    digest = hashlib.sha256(f"{number} ".encode() + content).hexdigest()
    return f"dafh model {number} {digest}\n".encode()


def test_a_pipeline_comes_back_as_it_went(saved):
    path, model = saved
    table, y, attributes = people(seed=1)
    loaded = dafh.load(path)
    for method in ("predict", "predict_proba", "predict_group", "predict_all", "group_proba"):
        np.testing.assert_array_equal(
            *(getattr(one[-1], method)(one[:-1].transform(table)) for one in (loaded, model)), err_msg=method
        )
    pd.testing.assert_frame_equal(loaded[-1].history_, model[-1].history_)
    pd.testing.assert_frame_equal(loaded[-1].population_, model[-1].population_)
    assert str(loaded[-1].guard_report_) == str(model[-1].guard_report_)
    assert str(AuditResult.of(loaded, table, y, sensitive_features=attributes)) == str(
        AuditResult.of(model, table, y, sensitive_features=attributes)
    )


def test_a_loaded_model_can_be_recalibrated_and_saved_again(saved, tmp_path):
    table, y, _ = people(seed=1)
    loaded = dafh.load(saved[0])
    loaded[-1].recalibrate(loaded[:-1].transform(table), y)
    dafh.save(loaded, tmp_path / "again.dafh")
    np.testing.assert_array_equal(dafh.load(tmp_path / "again.dafh").predict(table), loaded.predict(table))


@pytest.mark.parametrize("name", ["pooled", "trivial", "clustering", "lr-all", "treelr", "random", "mlp", "boosting"])
def test_every_comparator_can_be_saved(name, tmp_path):
    table, y, attributes = people()
    attributes = attributes[["sex"]] if name == "trivial" else attributes
    model = make_baseline(name, random_state=0)
    numbers = table[["age"]].to_numpy(float)
    model.fit(numbers, y, sensitive_features=attributes)
    dafh.save(model, tmp_path / "model.dafh")
    again = dafh.load(tmp_path / "model.dafh")
    np.testing.assert_array_equal(again.predict(numbers, attributes), model.predict(numbers, attributes))


def test_a_boosted_pooled_classifier_is_saved_too(tmp_path):
    table, y, _ = people()
    model = tabular_pipeline(DAFHClassifier(pooled=HistGradientBoostingClassifier(max_iter=5), **QUICK)).fit(table, y)
    dafh.save(model, tmp_path / "model.dafh")
    np.testing.assert_array_equal(dafh.load(tmp_path / "model.dafh").predict_proba(table), model.predict_proba(table))


def test_the_card_says_what_the_model_is_and_holds_no_rows(saved):
    card = read_card(saved[0])
    assert card["model"] == "DAFHClassifier"
    assert card["labels"] == ["no", "yes"]
    assert card["rows"] == 300
    assert {"name": "job", "type": "category"} in card["columns"]
    assert card["settings"] == {"n_replicas": 2, "max_epochs": 2, "random_state": 0}
    assert card["guard"]["summary"].startswith('Guard "veto"')
    assert "scikit-learn" in card["versions"]
    assert json.loads(json.dumps(card, allow_nan=False)) == card


def test_types_of_the_users_own_are_named_when_saving_and_when_loading(tmp_path):
    table, y, _ = people()
    numbers = table[["age"]].to_numpy(float)
    model = DecoupledClassifier(estimator=GradientBoostingClassifier(n_estimators=2), random_state=0).fit(numbers, y)
    path = tmp_path / "model.dafh"
    with pytest.raises(InputError, match="Tree, which load\\(\\) does not build unless told"):
        dafh.save(model, path)
    assert not path.exists()
    dafh.save(model, path, trusted=["sklearn.tree._tree.Tree"])
    with pytest.raises(InputError, match="types that a model has no need of"):
        dafh.load(path)
    loaded = dafh.load(path, trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(loaded.predict(numbers), model.predict(numbers))


def test_what_is_not_a_fitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(InputError, match="not LogisticRegression"):
        dafh.save(LogisticRegression(), tmp_path / "model.dafh")
    with pytest.raises(NotFittedError):
        dafh.save(DAFHClassifier(), tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


def test_a_rule_made_of_a_lambda_cannot_be_saved(tmp_path):
    from dafh.partitions import RulePartition

    table, y, attributes = people()
    rule = RulePartition({"women": lambda t: t.sex == "f", "men": lambda t: t.sex == "m"})
    model = DecoupledClassifier(rule).fit(table[["age"]].to_numpy(float), y, sensitive_features=attributes)
    with pytest.raises(InputError, match=r"cannot be written without pickle|does not build unless told"):
        dafh.save(model, tmp_path / "model.dafh")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_single_changed_bit_is_found_wherever_it_is(saved, tmp_path, where, bit):
    content = bytearray(saved[0].read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    damaged = tmp_path / "damaged.dafh"
    damaged.write_bytes(content)
    with pytest.raises(InputError):
        dafh.load(damaged)


@pytest.mark.parametrize("position", range(0, 80, 3))
def test_every_part_of_the_first_line_counts(saved, tmp_path, position):
    content = bytearray(saved[0].read_bytes())
    content[position] = ord("9") if content[position] != ord("9") else ord("8")
    damaged = tmp_path / "damaged.dafh"
    damaged.write_bytes(content)
    with pytest.raises(InputError):
        dafh.load(damaged)


def test_a_file_cut_short_is_refused(saved, tmp_path):
    content = saved[0].read_bytes()
    for length in (1, 5, 12, 80, len(content) // 2, len(content) - 1):
        cut = tmp_path / "cut.dafh"
        cut.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"damaged|not a dafh model file"):
            dafh.load(cut)


def test_bad_files_are_refused_in_one_sentence(saved, tmp_path):
    files = {
        "is empty": b"",
        "not a dafh model file": b"PK\x03\x04 something else",
        "newer dafh": saved[0].read_bytes().replace(b"model 2 ", b"model 3 ", 1),
    }
    for sentence, content in files.items():
        bad = tmp_path / "bad.dafh"
        bad.write_bytes(content)
        with pytest.raises(InputError, match=sentence) as refusal:
            dafh.load(bad)
        assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="There is no model file"):
        dafh.load(tmp_path / "none.dafh")


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (Path.touch, (Path(self.target),))


def test_a_pickle_in_place_of_the_model_is_never_unpickled(saved, tmp_path):
    trap = tmp_path / "sprung"
    forged = rewritten(saved[0], tmp_path, lambda members: members | {"model.skops": pickle.dumps(Bomb(trap))})
    with pytest.raises(InputError, match="not a dafh model file"):
        dafh.load(forged)
    assert not trap.exists()


def foreign_tree(tree):
    """An archive that skops can read, with os.system hidden among the steps of the pipeline."""
    with zipfile.ZipFile(io.BytesIO(tree)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    steps = schema["content"]["content"]["steps"]
    steps["content"].append({"__class__": "system", "__module__": "posix", "__loader__": "FunctionNode", "__id__": 1})
    members["schema.json"] = json.dumps(schema).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def test_a_foreign_type_inside_is_refused_before_anything_is_built(saved, tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(DAFHClassifier, "__setstate__", lambda self, state: built.append(state), raising=False)
    forged = rewritten(
        saved[0], tmp_path, lambda members: members | {"model.skops": foreign_tree(members["model.skops"])}
    )
    with pytest.raises(InputError, match=r"posix\.system") as refusal:
        dafh.load(forged)
    assert "\n" not in str(refusal.value)
    assert not built


def test_an_object_array_in_place_of_numbers_is_not_unpickled(saved, tmp_path):
    trap = tmp_path / "sprung"

    def change(members):
        with zipfile.ZipFile(io.BytesIO(members["model.skops"])) as archive:
            inside = {name: archive.read(name) for name in archive.namelist()}
        array = io.BytesIO()
        np.save(array, np.array([Bomb(trap)], dtype=object), allow_pickle=True)
        inside = {name: array.getvalue() if name.endswith(".npy") else data for name, data in inside.items()}
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name, data in inside.items():
                archive.writestr(name, data)
        return members | {"model.skops": content.getvalue()}

    with pytest.raises(InputError):
        dafh.load(rewritten(saved[0], tmp_path, change))
    assert not trap.exists()


def test_another_estimator_in_the_file_is_refused(saved, tmp_path):
    other = skops.io.dumps(LogisticRegression())
    with pytest.raises(InputError, match="not LogisticRegression"):
        dafh.load(rewritten(saved[0], tmp_path, lambda members: members | {"model.skops": other}))


def test_a_card_that_is_no_card_is_refused(saved, tmp_path):
    for card in (b"[]", b"{}", b"not json", b'{"versions": 3}', b"[" * 100_000):
        with pytest.raises(InputError, match="not a dafh model file"):
            dafh.load(rewritten(saved[0], tmp_path, lambda members, card=card: members | {"card.json": card}))


WRONG = {"labels": 5, "settings": [1], "columns": "abc", "rows": "x", "guard": "x", "schema": 3, "guesses": [1],
         "dafh": None, "groups": "2", "data": "\ud800", "fingerprints": 5}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_card_with_a_wrong_entry_is_refused(saved, tmp_path, name):
    def change(members):
        card = json.loads(members["card.json"]) | {name: WRONG[name]}
        return members | {"card.json": json.dumps(card).encode()}

    with pytest.raises(InputError, match="not a dafh model file"):
        read_card(rewritten(saved[0], tmp_path, change))


def test_numbers_that_are_none_and_broken_archives_are_refused(saved, tmp_path):
    nan = rewritten(saved[0], tmp_path, lambda m: m | {"card.json": m["card.json"].replace(b"300", b"NaN")})
    with pytest.raises(InputError, match="holds NaN"):
        read_card(nan)
    long = tmp_path / "long.dafh"
    long.write_bytes(b"dafh model " + b"1" * 5000 + b" x\n")
    with pytest.raises(InputError, match="not a dafh model file"):
        read_card(long)
    _, _, payload = saved[0].read_bytes().partition(b"\n")
    for position in range(40, len(payload), 997):
        broken = bytearray(payload)
        broken[position] ^= 255
        long.write_bytes(first_line(broken) + broken)
        with contextlib.suppress(InputError):  # It may also have hit what nobody reads; nothing else may come out.
            dafh.load(long)


def test_a_folder_and_a_device_are_no_model_files(tmp_path):
    for place in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="is not a file"):
            dafh.load(place)


def test_an_incomplete_model_is_refused(saved, tmp_path):
    broken = dafh.load(saved[0])
    for name, value in {"classes_": np.array(["no"]), "serves_": np.array([7, 7])}.items():
        before = getattr(broken[-1], name)
        setattr(broken[-1], name, value)
        dafh.save(broken, tmp_path / "broken.dafh")
        with pytest.raises(InputError, match="not complete"):
            dafh.load(tmp_path / "broken.dafh")
        setattr(broken[-1], name, before)


def test_support_vectors_are_loaded_only_on_request(tmp_path):
    from sklearn.svm import SVC

    table, y, _ = people(60)
    model = make_baseline("pooled", estimator=SVC())
    model.fit(table[["age"]].to_numpy(float), y)
    dafh.save(model, tmp_path / "svc.dafh")
    with pytest.raises(InputError, match="built only if named in trusted"):
        dafh.load(tmp_path / "svc.dafh")
    dafh.load(tmp_path / "svc.dafh", trusted=["sklearn.svm._classes.SVC"])


def test_boosted_trees_that_point_outside_themselves_are_refused(tmp_path):
    table, y, _ = people()
    model = make_baseline("pooled", estimator=HistGradientBoostingClassifier(max_iter=3))
    model.fit(table[["age"]].to_numpy(float), y)
    for column, value in {"left": 1000, "right": 0, "feature_idx": 7}.items():
        nodes = model.pooled_._predictors[0][0].nodes
        before = nodes.copy()
        nodes[column][0] = value
        dafh.save(model, tmp_path / "model.dafh")
        with pytest.raises(InputError, match="points outside itself"):
            dafh.load(tmp_path / "model.dafh")
        nodes[:] = before


def test_an_archive_that_would_fill_the_memory_is_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("dafh.models.files._LARGEST_UNPACKED", 1000)
    monkeypatch.setattr("dafh.models.files._LARGEST_RATIO", 1)
    with pytest.raises(InputError, match="would unpack to far more"):
        dafh.load(saved[0])
    monkeypatch.setattr("dafh.models.files._LARGEST_FILE", 1000)
    with pytest.raises(InputError, match="too large"):
        dafh.load(saved[0])


def test_a_file_of_another_scikit_learn_is_read_with_a_warning(saved, tmp_path):
    def change(members):
        card = json.loads(members["card.json"])
        card["versions"]["scikit-learn"] = "0.1.0"
        return members | {"card.json": json.dumps(card).encode()}

    with pytest.warns(OtherVersionWarning, match="written with dafh .* scikit-learn 0.1.0"):
        dafh.load(rewritten(saved[0], tmp_path, change))


def test_saving_replaces_a_file_whole_or_not_at_all(saved, tmp_path, monkeypatch):
    path = tmp_path / "model.dafh"
    path.write_text("before")
    monkeypatch.setattr(Path, "write_bytes", lambda self, data: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        dafh.save(saved[1], path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
