"""Model files say what they are, hold whatever details they are given, and are written whole or not at all."""

import datetime
import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import dafh
from cases import examples
from dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.models import open_model, read_card
from model_files import people
from research.rivals import make_baseline

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")


@pytest.fixture(autouse=True)
def one_thread():
    """On tables this small, the threads of gradient boosting spend their time waiting for each other."""
    with threadpool_limits(1):
        yield


# ---- card and details ----


def test_the_card_says_what_the_model_is_and_holds_no_rows(saved):
    card = read_card(saved[0])
    assert card["model"] == "DAFHClassifier"
    assert card["labels"] == ["no", "yes"]
    assert card["rows"] == 300
    assert {"name": "job", "type": "category"} in card["columns"]
    assert card["settings"] == {"n_groups": 2, "groups": "rules", "pooled": "linear", "random_state": 0}
    assert (card["groups"], card["groups_by"]) == (2, "rules")
    assert card["pooled"] == "StandardizedLogisticRegression"
    assert card["rules"] == saved[1][-1].rules_.to_frame()["rule"].tolist()
    assert card["guard"]["summary"].startswith('Guard "veto"')
    assert "scikit-learn" in card["versions"]
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert open_model(saved[0]).card == card


def test_details_with_an_obvious_plain_form_are_converted(saved, tmp_path):
    details = {
        "scalar": np.int64(3),
        "array": np.array([[1.5, np.nan]]),
        "tuple": (1, (2,)),
        "day": datetime.date(2026, 1, 2),
        "infinite": math.inf,
        "largest": 2**64 - 1,
        "place": Path("a/b"),
        "nested": {"": [None, True, {"é☃": "\x00\n"}]},
    }
    dafh.save(saved[1], tmp_path / "model.dafh", details=details)
    card = read_card(tmp_path / "model.dafh")
    assert {name: card[name] for name in details} == {
        "scalar": 3,
        "array": [[1.5, None]],
        "tuple": [1, [2]],
        "day": "2026-01-02",
        "infinite": None,
        "largest": 2**64 - 1,
        "place": "a/b",
        "nested": {"": [None, True, {"é☃": "\x00\n"}]},
    }


def held_by_itself():
    value = []
    value.append(value)
    return value


BAD_DETAILS = {
    "which the model card says itself": {"labels": ["a"]},
    "more than 64 bits": {"n": 2**64},
    "lone surrogate": {"text": ["\ud800"]},
    "holds a bytes": {"raw": b"x"},
    "holds a Decimal": {"price": Decimal(1)},
    "must be texts; 3 is not": {"counts": {3: 1}},
    "nested too deeply": {"loop": held_by_itself()},
    "'rows' is not a whole number": {"rows": "many"},
    "'schema' is not a mapping": {"schema": None},
    "too many values": {"all": [0] * 300_000},
    "too large": {"text": "x" * 2**24},
}


@pytest.mark.parametrize("reason", BAD_DETAILS)
def test_details_that_a_card_cannot_hold_are_refused_when_saving(reason, saved, tmp_path):
    with pytest.raises(InputError, match=reason) as refusal:
        dafh.save(saved[1], tmp_path / "model.dafh", details=BAD_DETAILS[reason])
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(details=st.dictionaries(st.text(), anything, max_size=4))
def test_whatever_details_hold_a_file_that_was_written_can_be_read(details, saved, tmp_path):
    path = tmp_path / "model.dafh"
    path.unlink(missing_ok=True)
    try:
        dafh.save(saved[1], path, details=details)
    except InputError:
        assert not path.exists()
    else:
        assert set(details) <= set(open_model(path).card)


# ---- what is not saved ----


def test_what_is_not_a_fitted_model_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="not LogisticRegression"):
        dafh.save(LogisticRegression(), tmp_path / "model.dafh")
    with pytest.raises(NotFittedError):
        dafh.save(DAFHClassifier(), tmp_path / "model.dafh")
    assert not list(tmp_path.iterdir())


def test_attributes_that_are_neither_text_nor_numbers_are_named(tmp_path):
    table, y, _ = people()
    born = pd.DataFrame({"born": pd.to_datetime(["2000-01-01", "2001-01-01"] * 150)})
    model = make_baseline("trivial").fit(table[["age"]].to_numpy(float), y, sensitive_features=born)
    with pytest.raises(InputError, match="cannot be saved: an attribute has the value Timestamp"):
        dafh.save(model, tmp_path / "model.dafh")


def test_an_incomplete_model_is_not_saved(saved, tmp_path):
    broken = dafh.load(saved[0])
    broken[-1].classes_ = np.array(["no"])
    with pytest.raises(InputError, match="This model cannot be saved"):
        dafh.save(broken, tmp_path / "broken.dafh")
    assert not list(tmp_path.iterdir())


def test_saving_replaces_a_file_whole_or_not_at_all(saved, tmp_path, monkeypatch):
    path = tmp_path / "model.dafh"
    path.write_text("before")
    monkeypatch.setattr(Path, "write_bytes", lambda self, data: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        dafh.save(saved[1], path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
