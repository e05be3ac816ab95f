"""Statements run in databases within the tests."""

import sqlite3

import duckdb
import numpy as np
import pandas as pd

from dafh.classifiers import final_classifier, split_pipeline
from dafh.sql import to_sql

ENGINES = ("duckdb", "sqlite")
HOSTILE = [
    "'); DROP TABLE people; --",
    'a"b`c]',
    "back\\slash\\",
    "\\'; SELECT 1; --",
    "{{braces}} ${HOME} {x}",
    "line\nbreak\r\n\ttab",
    "zero\u200bwidth\u202eturned",
    "/* comment */ -- more",
    "100%_?:name@x$1",
    "😀 ünï\u2028code",
    " blanks ",
    "",
    "7",
    "-12",
]
WORDS = ["NA", " NA ", "  ?", "null ", "None", "", "  ", "n/a", "(missing)", "(other)", "nan"]


def run_sql(statement, table, engine, name="people"):
    """Result of a statement about a table of this name, in the order of the column `id`, if it has one."""
    if engine == "duckdb":
        database = duckdb.connect()
        database.register("given", table)
        quoted = name.replace('"', '""')
        database.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM given')
        found = database.execute(statement)
        result = pd.DataFrame(found.fetchall(), columns=[column[0] for column in found.description], dtype=object)
    else:
        database = sqlite3.connect(":memory:")
        table.to_sql(name, database, index=False)
        found = database.execute(statement)
        result = pd.DataFrame(found.fetchall(), columns=[column[0] for column in found.description], dtype=object)
    return result.sort_values("id", ignore_index=True) if "id" in result else result


def assert_scored_alike(result, model, features):
    """The statement's labels and groups equal the model's on every row, its probabilities to nine digits."""
    final, rows = split_pipeline(model, features)
    probabilities = final.predict_proba(rows)
    classes = final.classes_.tolist()
    shown = range(1, 2) if len(classes) == 2 else range(len(classes))
    for k in shown:
        found = result[f"probability_{classes[k]}"].to_numpy(float)
        np.testing.assert_allclose(found, probabilities[:, k], rtol=0, atol=1e-9)
    assert result["prediction"].tolist() == final.predict(rows).tolist()
    if hasattr(final_classifier(model), "predict_group"):
        assert result["group"].tolist() == final.predict_group(rows).tolist()


def numbered(table):
    return table.reset_index(drop=True).assign(id=np.arange(len(table)))


def check(model, table, engine, schema=None, features=None, name="people", statement=None):
    """Score a table in a database and by the model."""
    statement = statement or to_sql(model, engine, name, schema=schema, keep=["id"])
    result = run_sql(statement, numbered(table), engine, name)
    if features is None:
        features = table if schema is None else schema.features_of(table)
    assert_scored_alike(result, model, features)
    return result
