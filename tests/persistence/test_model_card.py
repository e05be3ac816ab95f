"""The card of a model file says what the model is, and holds whatever details it is given."""

import datetime
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import dafh
from cases import examples
from dafh import Scorecard
from dafh.exceptions import InputError
from dafh.persistence.files import open_model, read_card
from model_files import NETWORK, Parts, people, quick

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")


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
    assert open_model(saved[0]).card == card


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
    "card says itself": {"labels": ["a"]},
    "lone surrogate": {"text": ["\ud800"]},
    "complex": {"number": 1j},
    "hold a tuple": {"counts": {(1, 2): 1}},
    "nested too deeply": {"loop": held_by_itself()},
    "rows": {"rows": "many"},
    "schema": {"schema": None},
    "too large": {"text": "x" * 2**27},
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


@examples(1, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


MALFORMED = {
    "a text in place of a number": {"groups": "two"},
    "an unknown loss": {"losses": ["joy"]},
    "a cut-off of more than 1": {"threshold": 1.5},
    "a guard without a summary": {"guard": {}},
    "columns without names": {"columns": [{"type": "number"}]},
    "exceptions that are no entries": {"exceptions": ["job is cook"]},
    "exceptions without a rule": {"exceptions": [{"gain": 0.1}]},
    "a schema without features": {"schema": {}},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_card_is_refused(name, saved, tmp_path):
    parts = Parts(saved[0])
    parts.card |= MALFORMED[name]
    with pytest.raises(InputError, match="model card is malformed"):
        read_card(parts.write(tmp_path / "crafted.dafh"))
