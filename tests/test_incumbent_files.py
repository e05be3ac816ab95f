"""Forged descriptions of incumbents: refused in one sentence."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, Incumbent, IncumbentColumns, load, save
from dafh.exceptions import InputError
from model_files import Parts, find
from model_forgeries import add_array, cells, entry
from models import workers

DATA = workers(200)
TABLE = DATA.X.assign(score=np.linspace(0.01, 0.99, 200), decided=DATA.y)
POOLED = {
    "score": IncumbentColumns("score"),
    "decision": IncumbentColumns(decision="decided"),
    "fitted": Incumbent(LogisticRegression().fit(TABLE[["score"]], DATA.y), only=["score"]),
}
COLUMNS, FITTED, MODEL = "incumbent columns", "incumbent", "dafh classifier"


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("valid")
    for name, pooled in POOLED.items():
        save(DAFHClassifier(1, pooled=pooled).fit(TABLE, DATA.y), folder / name)
        load(folder / name)
    return folder


def with_curve(parts):
    find(parts.model, COLUMNS)["curve"] = add_array(parts, np.array([0.0, np.nan]), "float64")


FORGERIES = {
    "nothing to read": ("score", entry(COLUMNS, "score", None), "is missing, and so is the decision"),
    "a score that is no name": ("score", entry(COLUMNS, "score", 3), "score"),
    "nobody decides": ("score", entry(COLUMNS, "cut", None), "does not fit the columns"),
    "two decide": ("decision", entry(COLUMNS, "cut", 0.5), "does not fit the columns"),
    "no cut at all": ("score", entry(COLUMNS, "cut", 1e300), "out of range"),
    "a curve to nowhere": ("score", with_curve, "not finite"),
    "a decision without shares": ("decision", entry(COLUMNS, "shares", None), "used|does not fit|shares"),
    "shares of more than all": ("decision", cells(COLUMNS, "shares", (0, 0), 1.5), "not finite"),
    "shares that do not add up": ("decision", cells(COLUMNS, "shares", (0, 0), 0.9), "does not add up to 1"),
    "a feature that nobody else may see": ("score", entry(MODEL, "aside", ["job"]), "aside"),
    "a column twice": ("score", entry(MODEL, "aside", ["score", "score"]), "aside"),
    "labels at the same place": ("fitted", cells(FITTED, "places", 0, 1), "places"),
    "a place outside": ("fitted", cells(FITTED, "places", 0, 7), "outside"),
    "columns that are no names": ("fitted", entry(FITTED, "columns", [1]), "columns"),
    "a model of no kind": ("fitted", entry(FITTED, "model", {"kind": "os.system"}), "not a kind"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_incumbent_is_refused(name, valid, tmp_path):
    source, change, reason = FORGERIES[name]
    parts = Parts(valid / source)
    change(parts)
    parts.write(tmp_path / "forged")
    with pytest.raises(InputError, match=reason):
        load(tmp_path / "forged")
