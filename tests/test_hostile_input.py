"""Odd tables through `dafh fit`, `dafh predict` and `DAFHClassifier.fit`: used, or refused in one sentence.

`BROKE_ONCE` and `VALUES` hold what people's files and calls once broke.
"""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cases import examples
from command_line import people, run
from dafh import DAFHClassifier

# Warnings tell users about odd tables; only here would they be errors.
pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = ("--method", "exceptions", "--groups", "2", "--pooled", "linear")
N = 60
# What cells of files hold: gaps in many spellings, numbers at the ends of their range, dates, formulas, odd letters.
CELLS = [
    "", " ", "?", "NA", "null", "0", "-0", "1.0", "007", "1e308", "1e309", "-inf", "nan", "1_000", "7,5", "٣",
    "9" * 400, "5e-324", "true", "FALSE", "2020-01-01", "0000-00-00", "9999-12-31", "31.2.2020", "=1+1", "@SUM(A1)",
    "a\nb", "a\r\nb", 'a"b', ",", ";", "\t", "\ufeff", "\u202e", "\U0001f98a", "x" * 2000, "<script>alert(1)</script>",
    "{{7*7}}", "'; DROP TABLE people; --", "(missing)", "(other)", "pooled", "[1, 2]", "0.5",
]  # fmt: skip
NAMES = [
    "", " ", "hired", "age", "prediction", "group", "probability_yes", "=1+1", "a\nb", "a;b", '"', "x" * 1000,
    "\ufeffage", "column_1", "__class__", "index", "(missing)", "<b>", "0", "nan", "None", "ä", "\U0001f98a", "pooled",
]  # fmt: skip
TARGETS = [
    ["yes", "no"], ["0", "1"], ["0.5", "1.5"], ["1", "1.0"], ["True", "False"], ["a", "b", "c"], ["=1", "-1"], ["yes"],
    ["", "?"], ["a", "a "], ["(missing)", "(other)"], ["2020-01-01", "2021-01-01"], [str(i) for i in range(60)],
]  # fmt: skip


@st.composite
def columns(draw):
    """Values of a column, as text: numbers, categories, or any cells, with gaps and odd cells in between."""
    usual = draw(st.sampled_from([["1", "2", "3.5"], ["a", "b", "c"], ["2020-01-01", "2021-05-17"], CELLS]))
    odd = draw(st.lists(st.sampled_from(CELLS), max_size=2))
    return draw(st.lists(st.sampled_from([*usual, *odd]), min_size=N, max_size=N))


@st.composite
def tables(draw):
    """A table of one to four odd columns under odd names, with a target that may be none."""
    odd_names = draw(st.lists(st.sampled_from([*NAMES, "c1", "c2", "c3", "c4"]), min_size=1, max_size=4))
    table = pd.DataFrame({i: draw(columns()) for i in range(len(odd_names))}).set_axis(odd_names, axis=1)
    labels = draw(st.sampled_from(TARGETS))
    table["target"] = [labels[i * 7 % 11 % len(labels)] for i in range(N)]
    return table.head(draw(st.sampled_from([N, N, 30, 3, 0])))


def accepted(result):
    """Whether a command has done its work; otherwise it must have refused in one sentence."""
    if result.exit_code == 0:
        return True
    assert result.exit_code == 2, result.output
    sentences = [line for line in result.stderr.splitlines() if line.startswith(("dafh:", "Error:"))]
    assert len(sentences) == 1, result.output
    assert "Traceback" not in result.output
    return False


def fit_and_predict(folder, data, *options):
    """Fit a model on a file, and score the file with it; nothing half-written may be left."""
    model, scored = folder / "model.dafh", folder / "scored.csv"
    before = set(folder.iterdir())
    fitted = accepted(run("fit", data, "--target", "target", "--out", model, *QUICK, *options))
    if fitted and accepted(run("predict", model, data, "--out", scored)):
        assert len(pd.read_csv(scored)) > 0
    left = set(folder.iterdir()) - before
    assert left <= {model, scored}
    assert (model in left) == fitted
    for path in left:
        path.unlink()
    return fitted


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@examples(0.4, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables(), separator=st.sampled_from([",", ";", "\t"]))
def test_any_table_is_fitted_and_scored_or_refused_in_a_sentence(tmp_path_factory, suffix, table, separator):
    folder = tmp_path_factory.mktemp("table")
    data = folder / f"table.{suffix}"
    if suffix == "csv":
        table.to_csv(data, index=False, sep=separator)
    else:
        table.loc[:, ~table.columns.duplicated()].to_parquet(data)
    fit_and_predict(folder, data)


@examples(0.5, suppress_health_check=[HealthCheck.too_slow])
@given(column=columns(), action=st.sampled_from(["replace", "drop", "rename", "twice"]))
def test_a_model_scores_an_odd_table_or_refuses_it_in_a_sentence(folder, tmp_path_factory, column, action):
    table = people(N).astype(object)
    if action == "replace":
        table["age"] = column
    elif action == "drop":
        table = table.drop(columns="age")
    elif action == "rename":
        table = table.rename(columns={"age": column[0]})
    else:
        table = pd.concat([table, table[["age"]]], axis=1)
    place = tmp_path_factory.mktemp("scored")
    table.to_csv(place / "table.csv", index=False)
    if accepted(run("predict", folder / "model.dafh", place / "table.csv", "--out", place / "scored.csv")):
        assert len(pd.read_csv(place / "scored.csv")) == N
    else:
        assert not (place / "scored.csv").exists()


GOOD = "age,job,target\n" + "".join(
    f"{20 + i},{'cook' if i % 2 else 'clerk'},{'no' if i % 6 < 3 else 'yes'}\n" for i in range(N)
)
BROKE_ONCE = {
    "blank lines before the header": ("\n" * 60 + GOOD, (), True),
    "a column without a name": (GOOD.replace("job", "", 1), (), True),
    "labels that are fractions": (GOOD.replace("no", "0.5").replace("yes", "1.5"), (), False),
    "costs whose squares are infinite": (GOOD, ("--costs", "fp=1e308,fn=1e-308"), None),
    "UTF-16 without its mark": (GOOD.encode("utf-16-le"), (), False),
    "a seed that is too large": (GOOD, ("--seed", "4294967296"), False),
    "a class that has one row": (GOOD.replace("cook,yes", "cook,rare", 1), ("--guard", "proof"), None),
    "a category called as all others are": (GOOD.replace("cook", "(other)"), ("--categories", "job"), True),
    "a time in the year 0": (GOOD.replace("20,clerk", "0000-01-01,clerk"), ("--time", "age"), None),
    "a row of another length": (GOOD + "1,2,3,4\n", (), None),
    "a quotation mark that is not closed": (GOOD.replace("cook", '"cook', 1), (), None),
    "a header alone": ("age,job,target\n", (), False),
    "no byte at all": ("", (), False),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKE_ONCE)
def test_a_file_that_broke_once_is_read_or_refused_in_a_sentence(tmp_path, case):
    text, options, expected = BROKE_ONCE[case]
    (tmp_path / "table.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    fitted = fit_and_predict(tmp_path, tmp_path / "table.csv", *options)
    assert expected is None or fitted == expected


# ---- the Python interface ----

RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.normal(size=N), "job": np.where(np.arange(N) % 2, "cook", "clerk")})
Y = (X["age"] + RNG.normal(size=N) > 0).to_numpy().astype(int)
VALUES = {
    "None": None, "a number": 5, "NaN": float("nan"), "a text": "abc", "a path": "rows.csv",
    "bytes": b"abc", "an empty list": [], "a mapping": {"a": 1}, "gaps": [None] * N, "texts": ["abc"] * N,
    "a ragged list": [[1, 2], [3]] * (N // 2), "records": [{"a": 1}] * N, "dates": [datetime.date(2020, 1, 1)] * N,
    "decimals": [Decimal("1.5")] * N, "infinite numbers": np.full(N, np.inf), "negative numbers": -np.ones(N),
    "large numbers": np.full(N, 2**62), "complex numbers": np.ones(N) * 1j, "few": np.zeros(3), "nothing": np.zeros(0),
    "three dimensions": np.zeros((N, 2, 2)), "a structured array": np.zeros(N, [("a", int)]),
    "a frame of lists": pd.DataFrame({"a": [[1]] * N}), "a frame without columns": X[[]], "a frame without rows": X[:0],
    "a name twice": pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "a", "b"]),
    "names of levels": pd.DataFrame({("a", 1): Y, ("a", 2): Y}), "objects": np.array([object()] * N),
    "a masked array": np.ma.masked_array(Y, Y > 0), "categories": pd.Series(pd.Categorical(np.where(Y, "a", "b"))),
}  # fmt: skip


def model():
    return DAFHClassifier(2, pooled="linear", guard=None, random_state=0)


@pytest.mark.parametrize("argument", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("value", VALUES)
def test_an_odd_argument_is_used_or_refused_and_leaves_the_model_unfitted(argument, value):
    estimator = model()
    refusal = ""
    try:
        estimator.fit(**{"X": X, "y": Y} | {argument: VALUES[value]})
    except (ValueError, TypeError) as error:
        refusal = str(error)
    if refusal:  # scikit-learn's own messages may have several lines.
        assert vars(estimator) == estimator.get_params(deep=False)
    else:
        assert len(estimator.predict(VALUES[value] if argument == "X" else X)) > 0
