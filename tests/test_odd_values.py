"""Values that pandas, NumPy or Arrow cannot turn into one another: refused in a sentence, or read."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dafh
from command_line import run
from dafh.exceptions import InputError

N = 120
X = pd.DataFrame({"a": np.arange(N) * 7 % 50, "s": list("xyz") * (N // 3)})
Y = (X["a"] > 25).to_numpy().astype(int)
ZONED = [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2020, 1, 2)]
LISTS = pd.Series(pd.array([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64()))))


def new():
    return dafh.DAFHClassifier(1, guard=None, random_state=0)


@pytest.fixture(scope="module")
def model():
    return new().fit(X, Y)


CALLS = {
    "watched labels far away": (
        lambda model: dafh.Monitor(model).update(X, np.full(N, 2**40).astype("datetime64[Y]")),
        "labels that the classifier was not fitted with",
    ),
    "identifiers without a type": (
        lambda model: dafh.Monitor(model).update(X, Y, ids=np.zeros(N, "V8")),
        "ids holds lists or records",
    ),
    "bytes for a number": (lambda model: model.predict(X.assign(a=[b"\xff"] * N)), "held numbers in fit"),
    "a score of 400 digits": (
        lambda model: dafh.IncumbentColumns("o", threshold=1).fit(
            X.assign(o=pd.Series([10**400] * N, dtype=object)), Y
        ),
        "a number that is too large",
    ),
    "persons that are lists": (lambda model: new().fit(X, Y, persons=LISTS), "persons holds lists"),
    "a column of lists": (lambda model: new().fit(X.assign(o=LISTS), Y), "Column 'o' holds lists"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_with_odd_values_is_refused_in_a_sentence(model, call):
    function, message = CALLS[call]
    with pytest.raises(InputError, match=message) as error:
        function(model)
    assert "\n" not in str(error.value)


def test_labels_are_the_same_whatever_type_of_number_they_have(model):
    expected = dafh.Monitor(model).update(X, Y)
    for kind in (np.float16, np.float64, np.uint8, bool, object):
        assert dafh.Monitor(model).update(X, Y.astype(kind)) == expected


def test_attributes_may_be_dates_of_which_some_have_a_zone():
    predictions = np.column_stack([Y, 1 - Y])
    attribute = pd.DataFrame({"since": pd.Series(ZONED * (N // 2), dtype=object)})
    found = str(dafh.audit(Y, predictions, np.arange(N) % 2, pooled=Y, sensitive_features=attribute))
    assert "since = 2020-01-01" in found
    assert "since = 2020-01-02" in found


def test_names_of_files_tell_a_terminal_nothing(tmp_path):
    found = run("predict", tmp_path / "a\n\x1b[31m.dafh", "people.csv")
    assert found.exit_code == 2
    assert found.stderr.endswith("a\\n\\x1b[31m.dafh.\n")
    (tmp_path / "m\n.csv").write_text("")
    assert "m\\n.csv is empty" in run("fit", tmp_path / "m\n.csv", "--target", "y", "--out", tmp_path / "o").stderr
