"""A model file as a function of data frames: pandas, Dask, Spark."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from command_line import people, run
from dafh import AuditResult, Scorer
from dafh.exceptions import InputError
from dafh.tables.read import DataFile
from dafh.workflows.serving import FileModel
from dafh.workflows.training import TrainingTable, make_classifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorer")
    people(400).to_csv(folder / "people.csv", index=False)
    people(300, seed=5).to_csv(folder / "fresh.csv", index=False)
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"])
    table.save(table.fit(make_classifier(table.schema, n_groups=2, groups="rules")), folder / "model.dafh")
    return folder


def test_a_frame_is_scored_as_the_command_scores_its_file(folder):
    run("predict", folder / "model.dafh", folder / "fresh.csv", "--out", folder / "scored.csv")
    scored = Scorer(folder / "model.dafh")(pd.read_csv(folder / "fresh.csv"))
    expected = pd.read_csv(folder / "scored.csv").drop(columns="row")
    pd.testing.assert_frame_equal(scored, expected, check_dtype=False)


def test_rows_keep_their_index_and_no_rows_have_the_same_columns(folder):
    scorer, rows = Scorer(folder / "model.dafh"), people(5).set_axis(list("abcde"), axis=0)
    assert scorer(rows).index.tolist() == list("abcde")
    assert scorer(rows.head(0)).columns.tolist() == scorer(rows).columns.tolist() == scorer.meta.columns.tolist()
    for name, kind in scorer(rows).dtypes.items():
        assert kind.kind == scorer.meta.dtypes[name].kind


def test_a_scorer_is_sent_as_a_path(folder):
    sent = pickle.dumps(Scorer(folder / "model.dafh"))
    assert len(sent) < 500
    assert pickle.loads(sent)(people(3)).shape == (3, 3)


def test_dask_scores_partition_by_partition(folder):
    dd = pytest.importorskip("dask.dataframe")
    scorer, rows = Scorer(folder / "model.dafh"), people(60, seed=7)
    scored = dd.from_pandas(rows, npartitions=4).map_partitions(scorer, meta=scorer.meta).compute(scheduler="sync")
    pd.testing.assert_frame_equal(scored, scorer(rows), check_dtype=False)


def test_spark_scores_batch_by_batch(folder):
    scorer, rows = Scorer(folder / "model.dafh"), people(60, seed=7)
    assert scorer.spark_schema == "`prediction` string, `probability_yes` double, `group` bigint"
    batches = list(scorer.batches(iter([rows[:20], rows[20:20], rows[20:]])))
    assert [len(batch) for batch in batches] == [20, 0, 40]


@pytest.mark.filterwarnings("ignore")  # Of Spark's own code, about pandas and about sockets.
def test_a_spark_session_scores_the_partitions_of_a_table(folder, monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    scorer, rows = Scorer(folder / "model.dafh"), people(60, seed=7)
    spark = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        scored = spark.createDataFrame(rows).mapInPandas(scorer.batches, scorer.spark_schema).toPandas()
    finally:
        spark.stop()
    pd.testing.assert_frame_equal(scored, scorer(rows), check_dtype=False)


def test_a_missing_column_is_named(folder):
    with pytest.raises(InputError, match="no column 'age', which the model was fitted with"):
        Scorer(folder / "model.dafh")(people(5).drop(columns="age"))


@pytest.mark.parametrize("rows", [100, 50_000])
def test_an_audit_in_pieces_is_the_audit_of_all_rows(folder, monkeypatch, rows):
    monkeypatch.setattr("dafh.workflows.serving.ROWS_PER_CHUNK", rows)
    loaded = FileModel.open(folder / "model.dafh")
    read = loaded.read(DataFile(folder / "fresh.csv"), ["sex"])
    known = {"sensitive_features": read.sensitive, "persons": read.persons, "sample_weight": read.weights}
    at_once = AuditResult.of(loaded.model, read.features, read.y, **known)
    assert loaded.audit(read).to_dict() == at_once.to_dict()


def test_an_audit_in_pieces_knows_training_rows_persons_and_rows_without_a_target(folder):
    table = people(400)
    table.loc[:9, "hired"] = np.nan
    table.to_csv(folder / "gaps.csv", index=False)
    loaded = FileModel.open(folder / "model.dafh")
    notes = loaded.read(DataFile(folder / "gaps.csv"), person="person_id").notes
    assert "Left out, no target: 10 rows." in notes
    notes = loaded.read(DataFile(folder / "people.csv")).notes
    assert any("the model was trained on these rows" in note for note in notes)
