"""Everything that ever broke, and a few more hostile inputs of each kind; ``make fuzz`` draws thousands."""

import json
from pathlib import Path

import pytest

from fuzz import cases
from fuzz.cases import Kind, drawn, outcome_of, shrink
from fuzz.kinds import KINDS

CORPUS = sorted((Path(__file__).parent / "fuzz" / "corpus").glob("*.json"))
FRESH = {"tables": 6, "states": 3, "exports": 1, "calls": 40}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folders with the models and states that cases change, made when they are asked for."""
    made = {}

    def folder(kind):
        if kind.name not in made:
            made[kind.name] = tmp_path_factory.mktemp(kind.name)
            kind.prepare(made[kind.name])
        return made[kind.name]

    return folder


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_broke_once_is_refused_or_accepted(path, prepared):
    kind = KINDS[path.stem.split("-")[0]]
    outcome = outcome_of(kind, json.loads(path.read_text()), prepared(kind))
    assert outcome.what in ("refused", "accepted"), outcome


@pytest.mark.parametrize("name", FRESH)
def test_hostile_input_is_refused_in_one_sentence_or_accepted(name, prepared):
    kind = KINDS[name]
    for number in range(FRESH[name]):
        outcome = outcome_of(kind, drawn(kind, 7, number), prepared(kind))
        assert outcome.what in ("refused", "accepted"), (number, outcome)


# ---- the program itself ----


def kind_of(run, smaller=lambda case: iter(())):
    return Kind("test", lambda rng: {"number": int(rng.integers(10**9))}, run, smaller)


def test_a_case_is_the_same_whenever_it_is_drawn():
    kind = kind_of(lambda case, folder: "accepted")
    assert drawn(kind, 0, 5) == drawn(kind, 0, 5)
    assert drawn(kind, 0, 5) != drawn(kind, 0, 6)
    assert drawn(kind, 0, 5) != drawn(kind, 1, 5)


def test_an_exception_is_a_failure_and_says_where_it_came_from(tmp_path):
    outcome = outcome_of(kind_of(lambda case, folder: 1 / 0), {}, tmp_path)
    assert outcome.what == "failed"
    assert outcome.error.startswith("ZeroDivisionError at test_fuzz.py")


def test_time_and_memory_beyond_the_limits_are_failures(tmp_path, monkeypatch):
    kind = kind_of(lambda case, folder: "accepted")
    monkeypatch.setattr(cases, "LARGE", 1)
    assert outcome_of(kind, {}, tmp_path).what == "large"
    monkeypatch.setattr(cases, "SLOW", -1.0)
    assert outcome_of(kind, {}, tmp_path).what == "slow"


def test_a_failing_case_is_made_as_small_as_it_still_fails():
    def smaller(case):
        for parts in cases.without_parts(case["parts"]):
            yield {"parts": parts}

    kind = kind_of(lambda case, folder: "accepted", smaller)
    found = shrink(kind, {"parts": list(range(20))}, lambda case: {3, 17} <= set(case["parts"]))
    assert found == {"parts": [3, 17]}


def test_a_refusal_of_several_lines_is_a_failure():
    with pytest.raises(cases.NotRefusedWellError):
        cases.refused(ValueError("one\ntwo"))
