"""A model as SQL scores rows as the model does, whatever their values and names are."""

import functools
import importlib
import itertools
import sys

import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sqlglot import exp

import dafh
from cases import checkerboard, examples, first_by_default
from command_line import people, run
from dafh import DAFHClassifier, DecoupledClassifier, Scaling, Scorecard, tabular_pipeline
from dafh.cli.use import DIALECTS as OFFERED
from dafh.columns.schema import TableSchema
from dafh.datasets import FETCHERS, registry
from dafh.datasets.sources import is_available
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.sql import DIALECTS, to_sql
from databases import ENGINES, HOSTILE, WORDS, assert_scored_alike, check, numbered, run_sql
from models import network_case, rules_case, workers

# On tables as small as these, groups may be little more than the label.
pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")

# ---- the paper's data ----


def disturbed(table, rng):
    """Some cells of a table emptied, and others replaced by what its columns have never held."""
    table = table.copy()
    strange = [*WORDS, *HOSTILE, "Zürich", "O'Brien", "😀", "1.0", "13.000", "13."]
    for name in table.columns:
        hit = np.flatnonzero(rng.random(len(table)) < 0.3)
        if pd.api.types.is_numeric_dtype(table[name].dtype):
            values = table[name].astype(float).to_numpy(copy=True)
            values[hit] = rng.choice([np.nan, np.inf, -np.inf, 1e99, -1e300, 0.5, -3.0, 1e-300], len(hit))
            table[name] = values
        else:
            values = table[name].astype(object).to_numpy(copy=True)
            values[hit] = rng.choice(np.array([None, *strange], dtype=object), len(hit))
            table[name] = values
    return table


REAL_CASES = [("german", "duckdb"), ("arrest", "sqlite")]


@functools.cache
def real_case(dataset):
    """Rows of one of the paper's data sets, and a model with two groups that was fitted on 700 others."""
    data = FETCHERS[dataset]()
    rows = np.random.default_rng(100).permutation(len(data.y))
    table = data.X.iloc[rows].reset_index(drop=True).assign(target=np.asarray(data.y)[rows])
    schema = TableSchema.guess(table, "target")
    few = table[:700]
    model = DAFHClassifier(2, guard=None, random_state=0)
    fitted = tabular_pipeline(model, schema.features).fit(schema.features_of(few), few["target"].to_numpy())
    return fitted, schema, disturbed(table.drop(columns="target")[-300:], np.random.default_rng(0))


@pytest.mark.parametrize(
    ("dataset", "engine"),
    [
        pytest.param(*case, marks=() if case in REAL_CASES else pytest.mark.slow)
        for case in itertools.product(FETCHERS, ENGINES)
    ],
)
def test_sql_scores_the_papers_data_as_the_model_does(dataset, engine):
    if not all(is_available(file) for file in registry.DATASETS[dataset].files):
        pytest.skip(f"needs the data set {dataset} at hand: DAFH_DATA names no folder")
    model, schema, table = real_case(dataset)
    result = check(model, table, engine, schema)
    assert set(result["group"]) == {0, 1}


# ---- kinds of columns and of models ----


def as_stored(table, engine):
    """Dates as SQLite has them, which knows no type for them."""
    return table if engine == "duckdb" else table.assign(since=table["since"].astype(str))


@pytest.mark.parametrize("engine", ENGINES)
def test_flags_dates_and_gaps_are_read_as_in_a_data_frame(engine):
    data = rules_case()
    table = workers(200, seed=1).X
    table["remote"] = table["remote"].astype("boolean")
    table.loc[::7, ["remote", "since", "job", "experience"]] = None
    table.loc[5, "since"] = pd.Timestamp("1903-02-01 23:59:59.9")
    table.loc[6, "since"] = pd.Timestamp("2300-01-01 12:00:01")
    check(data.model, as_stored(table, engine), engine, features=table)


def three_classes(n=500, seed=0):
    data = workers(n, seed)
    rng = np.random.default_rng(seed)
    steep = np.where(data.X["job"] == "cook", 1, -1) * (data.X["experience"] - 20) / 6
    return data.X, np.digitize(steep + rng.normal(0, 1, n), [-1, 1]).astype(object) * 10


@functools.cache
def fitted(kind):
    """Models of many kinds, fitted on rows of mixed types."""
    data, (X, y) = workers(500), three_classes()
    incumbent = Scorecard(16, threshold=0.4).fit(data.X[:300], data.y[:300])
    rules = {"method": "exceptions", "random_state": 0, "guard": None}
    make = {
        "three groups": lambda: DAFHClassifier(3, **rules).fit(data.X, data.y),
        "three classes": lambda: DAFHClassifier(2, **rules).fit(X, y.astype(int)),
        "one group": lambda: DAFHClassifier(1, **rules).fit(data.X, data.y == "yes"),
        "costs": lambda: DAFHClassifier(2, costs={"fp": 1, "fn": 5}, **rules).fit(data.X, data.y),
        "scorecard": lambda: Scorecard(16, threshold=0.3).fit(data.X, data.y),
        "scorecard, three classes": lambda: Scorecard(8).fit(X, y.astype(int)),
        "scorecard behind a reader": lambda: tabular_pipeline(Scorecard(8)).fit(data.X, data.y),
        "incumbent": lambda: DAFHClassifier(2, pooled=incumbent, **rules).fit(data.X, data.y),
    }
    return make[kind]()


KINDS = [
    "three groups", "three classes", "one group", "costs", "scorecard", "scorecard, three classes",
    "scorecard behind a reader", "incumbent",
]  # fmt: skip


def rows_with_gaps():
    table = workers(150, seed=1).X
    table.loc[::5, ["job", "hours"]] = None
    table.loc[1::5, "job"] = "unseen"
    return table


@pytest.mark.parametrize(("kind", "engine"), checkerboard(KINDS, ENGINES))
def test_every_kind_of_model_is_scored_as_it_predicts(kind, engine):
    table = rows_with_gaps()
    check(fitted(kind), as_stored(table, engine), engine, features=table)


@pytest.mark.parametrize(("kind", "engine"), checkerboard(["three groups", "three classes", "incumbent"], ENGINES))
def test_sql_serves_groups_as_the_guard_has_decided(kind, engine):
    model, table = fitted(kind), rows_with_gaps()
    own, k = np.arange(model.n_groups_), model.n_groups_
    try:
        # The pooled classifier for some groups, then for all; one classifier for several groups; all exchanged.
        for serves in ([k, *own[1:]], [k] * k, [1] * k, own[::-1]):
            model.serves_ = np.array(serves)
            model._apply_serving()
            check(model, as_stored(table, engine), engine, features=table)
    finally:
        model.serves_ = own
        model._apply_serving()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pooled_classifier_decides_at_its_own_cut_off_where_it_serves(engine):
    data = workers(900)
    pooled = Scorecard(16, threshold=0.2).fit(data.X, data.y)
    rules = {"method": "exceptions", "random_state": 0, "guard": None}
    model = DAFHClassifier(2, pooled=pooled, threshold=0.8, **rules).fit(data.X, data.y)
    model.serves_ = np.array([2, 1])
    model._apply_serving()
    table = rows_with_gaps()
    result = check(model, as_stored(table, engine), engine, features=table)
    yes = result["prediction"] == "yes"
    assert result[yes & (result["group"] == 0)]["probability_yes"].min() < 0.5
    assert result[yes & (result["group"] == 1)]["probability_yes"].min() > 0.8


@pytest.mark.parametrize("engine", ENGINES)
def test_scaled_points_are_those_of_the_scorecard(engine):
    table = people().drop(columns="since")
    model = Scorecard(scaling=Scaling(600, odds=50, doubling=20), monotonic={"age": 1}).fit(
        table, table["job"] == "cook"
    )
    result = check(model, table, engine)
    np.testing.assert_allclose(result["points"].to_numpy(float), model.scaled_points(table), rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_extreme_scores_are_probabilities_of_nearly_0_and_1(engine):
    table = pd.DataFrame({"z": [-1.0, 1.0] * 20})
    model = Scorecard(2, strength=1.0).fit(table, table["z"] > 0)
    for several in (1, 3):
        model.points_, model.intercept_ = [np.outer([-4000.0, 4000, 0], np.arange(several) + 1)], np.zeros(several)
        model.classes_ = np.arange(max(several, 2))
        check(model, table, engine)


@pytest.mark.parametrize("engine", first_by_default(list(ENGINES), 1))
def test_a_table_with_very_many_columns_is_scored(engine):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 1100))).rename(columns="column {}".format)
    model = Scorecard(2, strength=1.0).fit(table, table["column 0"] > 0)
    check(model, table, engine)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["three groups", "three classes", "scorecard"])
def test_every_kind_is_written_in_every_dialect_and_can_be_read_again(kind, dialect):
    statement = to_sql(fitted(kind), dialect, "shop.people")
    (parsed,) = sqlglot.parse(statement, read=dialect)
    again = parsed.sql(dialect=dialect)
    assert sqlglot.parse_one(again, read=dialect).sql(dialect=dialect) == again


# ---- any names and any values ----


@functools.cache
def hostile_case():
    """A model whose columns, categories and labels are all called like attacks."""
    rng = np.random.default_rng(0)
    names = [name for name in HOSTILE if name]
    table = pd.DataFrame({name: rng.choice(HOSTILE, 600) for name in names[:4]})
    table = table.assign(**{name: rng.normal(size=600).round(1) for name in names[4:]})
    table = table.assign(group=rng.choice(["a", "b"], 600), Score=rng.normal(size=600), prediction=0.0)
    turned = np.where(table["group"] == "a", 1, -1) * table["Score"]
    y = np.where(turned + rng.normal(0, 0.3, 600) > 0, HOSTILE[0], HOSTILE[2])
    model = DAFHClassifier(2, guard=None, random_state=0)
    return tabular_pipeline(model).fit(table, y), table


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names_of_columns_categories_labels_and_tables_stay_data(engine):
    model, table = hostile_case()
    some = table[:100].copy()
    some.iloc[::3, 0] = "' OR 1=1; --"
    assert len(check(model, some, engine, name="people")) == 100
    # The table is still there, and is found by a name of the same sort.
    name = 'x"; DROP TABLE people; --'
    quoted = '"{}"'.format(name.replace('"', '""'))
    statement = to_sql(model, engine, quoted, keep=["id"])
    assert_scored_alike(run_sql(statement, numbered(some), engine, name), model, some)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_one_statement_in_which_hostile_text_is_text(dialect):
    model, _ = hostile_case()
    (parsed,) = sqlglot.parse(to_sql(model, dialect, "people", keep=["it's id"]), read=dialect)
    assert isinstance(parsed, exp.Select)
    texts = {node.this for node in parsed.find_all(exp.Literal) if node.is_string}
    assert set(HOSTILE) <= texts
    names = {node.name for node in parsed.find_all(exp.Column)}
    assert {*model.feature_names_in_, "it's id"} <= names
    tables = {node.name for node in parsed.find_all(exp.Table)}
    assert tables == {"people", *(cte.alias for cte in parsed.find_all(exp.CTE))} - {parsed.ctes[-1].alias} | {
        parsed.args.get("from_", parsed.args.get("from")).this.name
    }


VALUES = st.one_of(
    st.none(),
    st.sampled_from([*HOSTILE, *WORDS, "1", "1.0", "1.00", "1.", "01", "-3", "-3.0", "cook"]),
    # Databases trim blanks, and no other letters that are not printed.
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), max_size=6),
)
NUMBERS = st.one_of(st.none(), st.floats(), st.sampled_from([0.1, 0.30000000000000004, 2.0, 1e99, 1e100, -1e100]))
FLAGS = st.one_of(st.none(), st.sampled_from(["true", " False ", "1", "0", "1.0", "0.0", "TRUE", "yes", "", "2"]))


@functools.cache
def random_case():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "name": rng.choice(np.array([*HOSTILE, "1", "-3", None], dtype=object), 800),
            "size": rng.choice([0.1, 0.3, 0.30000000000000004, 2.5, 7.0, np.nan], 800),
            "open": rng.choice(np.array(["true", "false", None], dtype=object), 800),
        }
    )
    side = np.where(table["open"] == "true", 1, -1) * np.where(table["size"] > 0.3, 1, -1) + (table["name"] == "7")
    table["target"] = (side + rng.normal(0, 2, 800) > 0).astype(int)
    schema = TableSchema.guess(table, "target")
    assert list(schema.features.values()) == ["category", "number", "flag"]
    model = DAFHClassifier(3, guard=None, random_state=0)
    return tabular_pipeline(model, schema.features).fit(schema.features_of(table), table["target"]), schema


@functools.cache
def random_statement(engine):
    model, schema = random_case()
    return to_sql(model, engine, "people", schema=schema, keep=["id"])


@examples(0.4)
@given(rows=st.lists(st.tuples(VALUES, NUMBERS, FLAGS), min_size=1, max_size=30), engine=st.sampled_from(ENGINES))
def test_any_values_are_scored_alike(rows, engine):
    model, schema = random_case()
    table = pd.DataFrame(rows, columns=["name", "size", "open"])
    # Enough known values, so that the strange ones are a few among them.
    known = pd.DataFrame({"name": "1", "size": 2.5, "open": ["true", "false"] * 30})
    table = pd.concat([known, table], ignore_index=True)
    table["size"] = table["size"].astype(float)
    check(model, table, engine, schema, statement=random_statement(engine))


NUMBERS_AND_WORDS = ["12", " 12 ", "1e1", ".5", "+5", "7.", "unknown", "", "12 b", "inf", "nan", "0x10"]


@pytest.mark.parametrize(("text", "engine"), checkerboard(NUMBERS_AND_WORDS, ENGINES))
def test_numbers_in_columns_of_text_are_read_and_other_words_are_gaps(text, engine):
    model, schema = random_case()
    table = pd.DataFrame({"name": "1", "size": [text, "2.5", "0.1"], "open": "1"})
    check(model, table, engine, schema)


# ---- names and refusals ----


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_the_model_reads_is_carried_over_as_it_is(engine):
    table = as_stored(rows_with_gaps(), engine)
    statement = to_sql(fitted("scorecard"), engine, "people", keep=["id", "job"])
    result = run_sql(statement, numbered(table), engine)
    assert result["job"].isna().tolist() == table["job"].isna().tolist()
    assert list(result.columns) == ["id", "job", "prediction", "probability_yes"]


def test_columns_of_an_array_are_called_x0_and_x1():
    X = np.arange(80.0).reshape(40, 2) % 7
    table = pd.DataFrame(X, columns=["x0", "x1"])
    check(Scorecard().fit(X, X[:, 0] > 3), table, "sqlite", features=X)


def test_the_comment_at_the_top_names_the_columns_and_cannot_be_left():
    table = pd.DataFrame({"age\n; DROP TABLE x": [1.0, 2] * 20, "job": ["a", "b"] * 20})
    statement = to_sql(Scorecard().fit(table, table["job"]), notes=["Model\r\u2028 of\nours"])
    top = list(itertools.takewhile(lambda line: line.startswith("-- "), statement.splitlines()))
    assert statement.splitlines()[len(top)].startswith("WITH")
    assert r"-- Columns of numbers: age\n; DROP TABLE x." in top
    assert r"-- Model\r\u2028 of\nours" in top


def refused(model, match, **options):
    with pytest.raises(InputError, match=match) as error:
        to_sql(model, **options)
    assert str(error.value).count(". ") == 0


def test_what_cannot_be_expressed_is_refused_in_one_sentence():
    data = workers(300)
    X, y = data.X[["experience"]], data.y
    refused(network_case().model, "found by a network, which cannot be exported: use method='exceptions'")
    boosted = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    foreign = DAFHClassifier(2, pooled=boosted, random_state=0).fit(X, y)
    refused(foreign, "needs a HistGradientBoostingClassifier, which cannot be exported")
    for linear in ("linear", StandardizedLogisticRegression().fit(X, y)):
        model = DAFHClassifier(2, pooled=linear, random_state=0).fit(X, y)
        refused(model, "needs a StandardizedLogisticRegression, which cannot be exported: only scorecards can")
    refused(DecoupledClassifier(random_state=0).fit(X, y), "needs a DecoupledClassifier, which cannot be exported")
    refused(fitted("scorecard"), "no dialect 'mysql': choose from duckdb", dialect="mysql")
    refused(fitted("scorecard"), "'' is not the name of a table", table="")
    refused(fitted("scorecard"), "'Prediction' cannot be carried over", keep=["Prediction"])


def test_without_sqlglot_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.delitem(sys.modules, "dafh.sql")
    with pytest.raises(InputError, match=r"not installed: pip install 'dafh\[sql\]'"):
        importlib.import_module("dafh.sql")


# ---- the command ----


def test_the_command_offers_the_dialects_there_are():
    assert tuple(DIALECTS) == OFFERED


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    people().to_csv(folder / "people.csv", index=False)
    options = ["--target", "hired", "--groups", 2, "--guard", "none", "--out", folder / "model.dafh"]
    assert run("fit", folder / "people.csv", *options).exit_code == 0
    return folder / "model.dafh"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_command_writes_what_predict_writes(model_file, tmp_path, engine):
    written, scored = tmp_path / "score.sql", tmp_path / "scored.csv"
    options = ["--dialect", engine, "--table", "people", "--keep", "person_id", "--out", written]
    done = run("export", model_file, *options)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"Wrote SQL for {engine}" in done.stderr
    assert run("predict", model_file, model_file.parent / "people.csv", "--out", scored).exit_code == 0
    expected = pd.read_csv(scored)
    result = run_sql(written.read_text(), people(), engine).sort_values("person_id", ignore_index=True)
    assert result["group"].tolist() == expected["group"].tolist()
    assert result["prediction"].tolist() == expected["prediction"].tolist()
    np.testing.assert_allclose(result["probability_yes"].to_numpy(float), expected["probability_yes"], atol=5.1e-7)
    assert "-- Fitted on 300 rows of people.csv." in written.read_text()


def test_the_command_prints_to_standard_output_and_takes_models_saved_from_python(tmp_path):
    dafh.save(fitted("scorecard"), tmp_path / "card.dafh")
    result = run("export", tmp_path / "card.dafh", "--dialect", "sqlite", "--table", "people")
    assert result.exit_code == 0
    assert len(run_sql(result.stdout, as_stored(rows_with_gaps(), "sqlite"), "sqlite")) == 150
