"""`dafh fit` on tables of which no more than a sample is in memory."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from command_line import run
from dafh.exceptions import InputError
from dafh.persistence.files import load
from dafh.tables.read import DataFile
from dafh.workflows.large import LargeTable, rows_per_block
from dafh.workflows.reading import read_table
from dafh.workflows.training import TrainingTable, make_classifier
from large import assert_same_model, grouped_table, written_in_files
from test_large_fits import FEATURES


def trained(path, **said):
    table = read_table(DataFile(path), "y", **said)
    return table, table.fit(make_classifier(table.schema, n_groups=2, groups="rules"))


def test_few_rows_are_read_at_once_and_many_in_passes(tmp_path, small_sample):
    few, many = (written_in_files(tmp_path / str(n), grouped_table(n), 2) for n in (1500, 2500))
    assert isinstance(read_table(DataFile(few), "y"), TrainingTable)
    assert isinstance(read_table(DataFile(many), "y"), LargeTable)


def test_text_and_parquet_in_any_number_of_files_give_one_model(tmp_path, small_sample):
    table = grouped_table(5000).round(4)
    parquet = written_in_files(tmp_path / "parquet", table, 3)
    (tmp_path / "csv").mkdir()
    order = np.random.default_rng(5).permutation(5000)
    for number, rows in enumerate(np.array_split(order, 2)):
        text = table.iloc[rows].to_csv(index=False)
        (tmp_path / "csv" / f"{number}.csv.gz").write_bytes(gzip.compress(text.encode()))
    one, other = trained(parquet)[1], trained(tmp_path / "csv")[1]
    typed = one[0].transform(table[FEATURES])
    assert_same_model(one[-1], other[-1], typed)


def test_test_rows_are_not_trained_on_and_are_written_beside_the_model(tmp_path, small_sample):
    table = grouped_table(5000)
    path = written_in_files(tmp_path / "rows", table, 3)
    read, model = trained(path, test_size=0.3)
    beside = read.save(model, tmp_path / "m.dafh").test_rows
    test = pd.read_parquet(beside)
    assert 1350 < len(test) < 1650
    card = json.loads(run("show", tmp_path / "m.dafh", "--json").stdout)
    assert card["rows"] + card["rows_kept_back"] == 5000 == card["rows"] + len(test)
    assert list(test.columns) == list(table.columns)
    trained_on = pd.concat(read.raw.through(read.rows).each(lambda block: block))
    assert len(trained_on.merge(test, on=["x0", "x1"])) == 0
    assert run("audit", tmp_path / "m.dafh", beside).exit_code == 0  # They are the rows that the model knows.
    test.head(-1).to_parquet(beside)
    refused = run("audit", tmp_path / "m.dafh", beside)
    assert refused.exit_code == 2
    assert "does not hold the test rows of m.dafh" in refused.stderr


def test_files_in_another_order_have_the_same_test_rows(tmp_path, small_sample):
    table = grouped_table(3000)
    found = []
    for seed, n_files in ((1, 2), (2, 5)):
        path = written_in_files(tmp_path / str(seed), table, n_files, seed=seed)
        read, model = trained(path, test_size=0.2)
        rows = pd.read_parquet(read.save(model, tmp_path / f"{seed}.dafh").test_rows)
        found.append(rows.sort_values("x0", ignore_index=True))
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("n_rows", [1000, 3000])
def test_small_tables_have_the_same_test_rows_in_any_order_too(tmp_path, small_sample, n_rows):
    table = grouped_table(n_rows)
    found = []
    for seed in (1, 2):
        path = written_in_files(tmp_path / str(seed), table, seed + 1, seed=seed)
        read = read_table(DataFile(path), "y", test_size=0.25)
        rows = read.test_rows if isinstance(read, TrainingTable) else None
        if rows is None:
            rows = pd.concat(read.raw.each(lambda block, rows=read.rows: block[rows.is_test(rows.typed(block))]))
        found.append(rows.sort_values("x0", ignore_index=True)["x0"])
    pd.testing.assert_series_equal(*found)


def test_rows_without_a_target_are_left_out_and_counted(tmp_path, small_sample):
    table = grouped_table(3000)
    table.loc[:99, "y"] = None
    read, model = trained(written_in_files(tmp_path / "rows", table, 2))
    assert "Left out, no target: 100 rows." in read.notes
    assert read.found.labels.total() == 2900
    assert model[-1].classes_.tolist() == ["no", "yes"]


def test_what_is_said_about_columns_counts_in_large_tables_too(tmp_path, small_sample):
    table = grouped_table(4000)
    rng = np.random.default_rng(0)
    table["sex"], table["who"] = rng.choice(["f", "m"], 4000), rng.integers(0, 2000, 4000)
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 4000), unit="D")
    path = written_in_files(tmp_path / "rows", table, 2)
    read, model = trained(path, protect=["sex"], person="who", time="day", drop=["x3"], test_size=0.2)
    assert list(read.schema.features) == ["x0", "x1", "x2", "age", "job"]
    assert model[-1].guard_report_ is not None
    test = pd.read_parquet(read.save(model, tmp_path / "m.dafh").test_rows)
    kept = table.loc[~table["x0"].isin(test["x0"]), "day"]
    assert test["day"].min() > kept.max() - pd.Timedelta(days=2)  # The last rows.


def test_the_command_reads_patterns_and_says_how_many_rows_have_chosen(tmp_path, small_sample):
    path = written_in_files(tmp_path / "rows", grouped_table(2600), 2)
    done = run("fit", path, "--target", "y", "--by", "rules", "--out", tmp_path / "m.dafh", "--memory", "3GB")
    assert done.exit_code == 0
    assert "Training on 2,600 rows." in done.stderr
    assert "of 2,600 rows." in done.stderr
    assert "passes over the files" in done.stderr
    assert load(tmp_path / "m.dafh")[-1].n_groups_ >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "lots"], "'lots' is no amount of memory: write it like 500MB, 2GB or 1.5GiB."),
        (["--memory", "100MB"], "rows with 7 columns needs about"),
        (["--cluster", "tcp://127.0.0.1:1"], "No Dask scheduler answers at tcp://127.0.0.1:1"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(tmp_path, small_sample, monkeypatch, options, message):
    monkeypatch.setattr("dafh.blocks.cluster._SECONDS_TO_CONNECT", 0.5)
    path = written_in_files(tmp_path / "rows", grouped_table(2500), 1)
    done = run("fit", path, "--target", "y", "--out", tmp_path / "m.dafh", *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "m.dafh").exists()


def test_more_columns_need_smaller_blocks_or_more_memory():
    assert rows_per_block(4e9, 20) > rows_per_block(4e9, 100) > 4000
    with pytest.raises(InputError, match=r"1000 columns needs about \d+\.\d GB of memory"):
        rows_per_block(2e9, 1000)
