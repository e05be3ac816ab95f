"""Hostile names and values stay data in SQL, and any value is scored as the model scores it."""

import functools

import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from dafh import DAFHClassifier, Scorecard, tabular_pipeline
from dafh.exceptions import InputError
from dafh.sql import to_sql
from dafh.sql import DIALECTS
from dafh.tables.schema import TableSchema
from databases import ENGINES, HOSTILE, WORDS, assert_scored_alike, check, numbered, run_sql

# On tables as small as these, groups may be little more than the label.
pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")


@functools.cache
def hostile_case(*, substitutes=False):
    """A model whose columns, categories and labels are all called like attacks."""
    rng = np.random.default_rng(0)
    refused = ("\0", "SQLGLOT", *(("${",) if substitutes else ()))
    names = [name for name in HOSTILE if name and not any(part in name for part in refused)]
    table = pd.DataFrame({name: rng.choice(HOSTILE, 600) for name in names[:4]})
    table = table.assign(**{name: rng.normal(size=600).round(1) for name in names[4:]})
    table = table.assign(group=rng.choice(["a", "b"], 600), Score=rng.normal(size=600), prediction=0.0)
    turned = np.where(table["group"] == "a", 1, -1) * table["Score"]
    y = np.where(turned + rng.normal(0, 0.3, 600) > 0, HOSTILE[0], HOSTILE[2])
    model = DAFHClassifier(2, groups="rules", guard=None, random_state=0)
    return tabular_pipeline(model).fit(table, y), table


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names_of_columns_categories_labels_and_tables_stay_data(engine):
    model, table = hostile_case()
    some = table[:100].copy()
    some.iloc[::3, 0] = "' OR 1=1; --"
    result = check(model, some, engine, name="people")
    assert len(result) == 100
    # The table is still there, and is found by a name of the same sort.
    name = 'x"; DROP TABLE people; --'
    quoted = '"{}"'.format(name.replace('"', '""'))
    statement = to_sql(model, engine, quoted, keep=["id"])
    assert_scored_alike(run_sql(statement, numbered(some), engine, name), model, some)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_one_statement_in_which_hostile_text_is_text(dialect):
    model, _ = hostile_case(substitutes=DIALECTS[dialect].substitutes)
    (parsed,) = sqlglot.parse(to_sql(model, dialect, "people", keep=["it's id"]), read=dialect)
    assert isinstance(parsed, exp.Select)
    texts = {node.this for node in parsed.find_all(exp.Literal) if node.is_string}
    apart = ("\0", "SQLGLOT", *(("${",) if DIALECTS[dialect].substitutes else ()))
    whole = {name for name in HOSTILE if not any(part in name for part in apart)}
    assert whole <= texts
    names = {node.name for node in parsed.find_all(exp.Column)}
    assert {*model.feature_names_in_, "it's id"} <= names
    tables = {node.name for node in parsed.find_all(exp.Table)}
    assert tables == {"people", *(cte.alias for cte in parsed.find_all(exp.CTE))} - {parsed.ctes[-1].alias} | {
        parsed.args.get("from_", parsed.args.get("from")).this.name
    }


def test_a_text_that_stands_for_a_variable_in_spark_is_written_in_parts():
    table = pd.DataFrame({"path": ["${HOME}", "b"] * 20})
    model = Scorecard().fit(table, table["path"])
    assert "'${HOME}'" in to_sql(model, "duckdb")
    assert "'$' || '{HOME}'" in to_sql(model, "spark")
    assert "${" not in to_sql(model, "databricks")


def test_a_name_that_stands_for_a_variable_in_spark_is_refused():
    table = pd.DataFrame({"${HOME}": ["a", "b"] * 20})
    model = Scorecard().fit(table, table["${HOME}"])
    with pytest.raises(InputError, match=r"has a name with \$\{, which spark replaces by a variable"):
        to_sql(model, "spark")
    header = to_sql(model, "duckdb").partition("WITH")[0]
    assert "$ {HOME}" in header


VALUES = st.one_of(
    st.none(),
    st.sampled_from([*HOSTILE, *WORDS, "1", "1.0", "1.00", "1.", "01", "-3", "-3.0", "cook"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
NUMBERS = st.one_of(st.none(), st.floats(), st.sampled_from([0.1, 0.30000000000000004, 2.0, 1e99, 1e100, -1e100]))
FLAGS = st.one_of(st.none(), st.sampled_from(["true", " False\n", "1", "0", "1.0", "0.0", "TRUE", "yes", "", "2"]))


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
    models = {}
    for pooled in ("scorecard", "linear"):
        model = DAFHClassifier(3, groups="rules", pooled=pooled, guard=None, random_state=0)
        models[pooled] = tabular_pipeline(model, schema.features).fit(schema.features_of(table), table["target"])
    return models, schema


@functools.cache
def random_statement(pooled, engine):
    models, schema = random_case()
    return to_sql(models[pooled], engine, "people", schema=schema, keep=["id"])


@given(rows=st.lists(st.tuples(VALUES, NUMBERS, FLAGS), min_size=1, max_size=30), engine=st.sampled_from(ENGINES))
def test_any_values_are_scored_alike(rows, engine):
    models, schema = random_case()
    table = pd.DataFrame(rows, columns=["name", "size", "open"])
    # Enough known values, so that the strange ones are a few among them.
    known = pd.DataFrame({"name": "1", "size": 2.5, "open": ["true", "false"] * 30})
    table = pd.concat([known, table], ignore_index=True)
    table["size"] = table["size"].astype(float)
    for pooled, model in models.items():
        check(model, table, engine, schema, statement=random_statement(pooled, engine))


@pytest.mark.parametrize("text", ["12", " 12 ", "1e1", ".5", "+5", "7.", "unknown", "", "12 b", "inf", "nan", "0x10"])
@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_in_columns_of_text_are_read_and_other_words_are_gaps(text, engine):
    models, schema = random_case()
    table = pd.DataFrame({"name": "1", "size": [text, "2.5", "0.1"], "open": "1"})
    check(models["scorecard"], table, engine, schema)
