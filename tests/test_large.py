"""Rows in blocks: one model from memory, files and data sets, by a sample that chooses and sums over all rows."""

import gzip
import json
import threading
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from command_line import run
from dafh import DAFHClassifier, Recipe
from dafh.cli.training import TrainingTable
from dafh.columns.read import DataFile
from dafh.exceptions import FittedOnSampleWarning, InputError
from dafh.large import (
    Blocks,
    Roles,
    Split,
    as_blocks,
    draw_rows,
    find_files,
    fit_in_passes,
)
from dafh.linear.designs import BinnedDesign, DenseDesign
from dafh.linear.newton import Regression, fit_penalized
from dafh.persistence import load
from large import FEATURES, assert_same_model, fitted, grouped_table, in_memory, written_in_files


def in_blocks(table, n_blocks):
    """Rows in memory in so many blocks; of a data frame, the index has the positions."""
    take = (lambda rows: table.iloc[rows]) if isinstance(table, pd.DataFrame) else (lambda rows: table[rows])
    parts = [take(rows) for rows in np.array_split(np.arange(len(table)), n_blocks)]
    return Blocks(lambda: parts, n_rows=len(table))


# ---- blocks ----


def test_results_come_in_the_order_of_the_blocks():
    assert list(in_blocks(np.arange(50), 50).map(lambda block: int(block[0]))) == list(range(50))


def test_nobody_works_far_ahead_of_whoever_takes_the_results():
    begun, taken, lead, lock = [], [], [], threading.Lock()

    def work(block):
        with lock:
            begun.append(1)
            lead.append(len(begun) - len(taken))
        return block

    for block in in_blocks(np.arange(200), 200).map(work):
        taken.append(block)  # noqa: PERF402  (one by one is the point)
    assert max(lead) < 40


def test_an_error_in_a_block_ends_the_pass():
    def fail(block):
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        list(in_blocks(np.arange(3), 3).map(fail))


@pytest.mark.parametrize(("most_bytes", "n_made_again"), [(10**6, 0), (100, 3 * 4)])
def test_what_is_kept_is_made_once_or_where_it_is_too_much_in_every_pass(most_bytes, n_made_again):
    made = []
    kept = in_blocks(np.arange(100), 4).keep(lambda block: made.append(1) or {"a": block}, most_bytes)
    made.clear()
    totals = [int(kept.total(lambda arrays: (arrays["a"].sum(),))[0]) for _ in range(3)]
    assert totals == [4950] * 3
    assert len(made) == n_made_again


def test_rows_of_files_have_their_positions_however_they_are_divided(tmp_path):
    table = pd.DataFrame({"a": range(1000)})
    written_in_files(tmp_path / "rows", table, 3)
    blocks = as_blocks(tmp_path / "rows")
    assert blocks.n_rows == 1000
    assert sum(1 for _ in blocks.map(len)) == 3
    for rows in blocks.map(lambda block: block):
        assert rows.index.tolist() == rows["a"].tolist()


@pytest.mark.parametrize("ending", ["\n", ""])
def test_rows_of_text_are_counted_with_and_without_a_last_line_break(tmp_path, ending):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("a,b\n" + "\n".join([f"{number},x"] * 10) + ending)
    blocks = as_blocks(str(tmp_path / "*.csv"))
    assert blocks.n_rows == 30
    assert pd.concat(blocks.map(lambda block: block)).index.tolist() == list(range(30))


def test_files_are_found_by_pattern_folder_and_list_each_once_and_sorted(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "_old").mkdir()
    for name in ("b.parquet", "a.csv", "part/c.csv.gz", "_old/d.csv", ".hidden.csv", "notes.md"):
        (tmp_path / name).touch()
    inside = [str(path.relative_to(tmp_path)) for path in find_files(tmp_path)]
    assert inside == ["a.csv", "b.parquet", "part/c.csv.gz"]
    assert [path.name for path in find_files([tmp_path / "a.csv", str(tmp_path / "*.csv")])] == ["a.csv"]


# ---- samples ----


@pytest.mark.parametrize("n_blocks", [3, 20])
def test_the_same_rows_are_drawn_from_any_division(n_blocks):
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=3000)})
    split = Split(Roles("y"), seed=1)
    (first, _), (second, _) = (draw_rows(in_blocks(table, n), split, 3000, 500) for n in (1, n_blocks))
    pd.testing.assert_frame_equal(first, second)
    assert 430 < len(first) < 570
    assert len(draw_rows(in_blocks(table, 2), Split(Roles("y"), seed=2), 3000, 500)[0].merge(first)) < 150


@pytest.mark.parametrize("held_out", [0.0, 0.4])
def test_a_sample_of_what_trains_has_its_size_and_all_chances_are_equal(held_out):
    table = pd.DataFrame({"a": np.arange(20_000)})
    few, judges = draw_rows(in_blocks(table, 7), Split(Roles("y"), 3, held_out), 20_000, 2000, 1000)
    assert len(few) == pytest.approx(2000, abs=150)
    assert len(judges) == pytest.approx(1000 if held_out else 0, abs=110)
    assert few["a"].mean() == pytest.approx(10_000, abs=500)
    assert not set(few["a"]) & set(judges["a"])


def test_all_rows_of_a_person_are_on_one_side():
    table = pd.DataFrame({"who": np.random.default_rng(0).integers(0, 300, 3000)})
    split = Split(Roles("y", person="who"), 0, held_out=0.3)
    kept, held_out = draw_rows(in_blocks(table, 5), split, 3000, 1000, 3000)
    assert not set(kept["who"]) & set(held_out["who"])
    assert len(kept) == table["who"].isin(kept["who"]).sum()


def test_the_last_rows_are_held_out_where_time_counts():
    table = pd.DataFrame({"day": np.random.default_rng(0).permutation(5000)})
    split = Split(Roles("y", time="day"), 0, held_out=0.2).cut_by_time(in_blocks(table, 3), 5000)
    kept, held_out = draw_rows(in_blocks(table, 3), split, 5000, 9000, 9000)
    assert kept["day"].max() < held_out["day"].min()
    assert len(held_out) == pytest.approx(1000, abs=2)


# ---- sums ----


def regression(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    label = np.clip((X[:, 0] + rng.normal(size=n_rows) > 0) + (X[:, 1] > 0.5) * (n_classes - 2), 0, n_classes - 1)
    m = 1 if n_classes == 2 else n_classes
    return Regression(DenseDesign(X), label.astype(np.intp), np.ones(n_rows), np.zeros((n_rows, m)))


def stored_in(rows, n_blocks, **arrays):
    arrays |= {"X": rows.design.X, "label": rows.label}
    pieces = np.array_split(np.arange(len(rows.label)), n_blocks)
    return Blocks(lambda: [{name: values[i] for name, values in arrays.items()} for i in pieces])


def design_of(block):
    return DenseDesign(block["X"])


@pytest.mark.parametrize(("n_classes", "n_blocks"), [(2, 1), (2, 5), (3, 5)])
def test_passes_with_the_curvature_of_a_sample_end_at_the_exact_solution(n_classes, n_blocks):
    rows = regression(3000, n_classes)
    penalty = np.array([1e-6, 2.0, 2.0, 2.0])
    exact = fit_penalized(rows, penalty, tolerance=1e-14).coefficients
    sample, start = rows.take(np.arange(300)), np.zeros((1, *exact.shape))
    blocks = stored_in(rows, n_blocks)
    solution = fit_in_passes(blocks, design_of, sample, start, penalty[:, None], tolerance=1e-13)
    np.testing.assert_allclose(solution[0], exact, atol=1e-5)


def test_groups_get_coefficients_of_their_own_in_the_same_passes():
    rows = regression(2000, 2)
    group = np.arange(2000) % 3
    start, penalty = np.zeros((3, 4, 1)), np.full((3, 4, 1), 5.0)
    blocks = stored_in(rows, 4, group=group)
    solution = fit_in_passes(blocks, design_of, rows, start, penalty, group=group, tolerance=1e-13)
    for number in range(3):
        alone = fit_penalized(rows.take(np.flatnonzero(group == number)), np.full(4, 5.0), free_intercept=False)
        np.testing.assert_allclose(solution[number], alone.coefficients, atol=1e-6)


@pytest.mark.parametrize("binned", [False, True])
def test_the_joint_curvature_is_the_derivative_of_the_gradient(binned):
    rows = regression(200, 3)
    if binned:  # With few coefficients, so that the curvature is a matrix product.
        codes = np.asfortranarray(rows.design.X > 0, dtype=np.uint8)
        rows = replace(rows, design=BinnedDesign(codes, [np.array([[-1.0], [1.0]])] * 3))
    coefficients = np.random.default_rng(3).normal(size=(4, 3)) * 0.3

    def gradient(flat):
        return rows.gradient(rows.design.logits(flat.reshape(3, 4).T)).T.ravel()

    flat, step = coefficients.T.ravel(), 1e-5
    joint = rows.joint_curvatures(rows.design.logits(coefficients), np.zeros(200, np.uint8), 1)[0]
    numeric = [(gradient(flat + step * e) - gradient(flat - step * e)) / (2 * step) for e in np.eye(12)]
    np.testing.assert_allclose(joint, numeric, atol=1e-4)


# ---- one model, wherever the rows are ----


@pytest.mark.parametrize(("n_rows", "n_files"), [pytest.param(1500, 7, marks=pytest.mark.slow), (5000, 3)])
def test_files_give_the_model_of_rows_in_memory(tmp_path, small_sample, n_rows, n_files):
    table = grouped_table(n_rows)
    from_files = fitted(written_in_files(tmp_path / "rows", table, n_files))
    assert from_files.n_groups_ == 2
    assert_same_model(in_memory(n_rows), from_files, table[FEATURES])


@pytest.mark.parametrize("pooled", ["linear", pytest.param("fitted boosting", marks=pytest.mark.slow)])
def test_every_pooled_classifier_has_own_classifiers_from_all_rows(tmp_path, small_sample, pooled):
    table = grouped_table(4000).drop(columns=["job", "age"])
    table["cook"] = (np.random.default_rng(1).random(4000) < 0.5).astype(float)
    effect = table["x0"] + np.where(table["cook"] == 1, 2.0, -2.0) * table["x2"]
    table["y"] = (effect + np.random.default_rng(2).logistic(size=4000) > 0).astype(int)
    X, y = table.drop(columns="y"), table["y"]
    if pooled == "fitted boosting":
        pooled = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X[:500], y[:500])
    from_files = fitted(written_in_files(tmp_path / "rows", table, 3), pooled=pooled)
    assert_same_model(fitted(X, y, pooled=pooled), from_files, X)


@pytest.mark.slow
def test_three_classes_and_weights_are_fitted_in_blocks_as_in_memory(tmp_path, small_sample):
    table = grouped_table(3400)[["x0", "x2", "job", "y"]]
    table["weight"] = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(table))
    third = np.random.default_rng(2).random(len(table)) < 0.4 * (table["x0"] > 0)
    table["y"] = np.where(third, 2, (table["y"] == "yes").astype(int))
    X = table[["x0", "x2", "job"]]
    from_memory = fitted(X, table["y"], sample_weight=table["weight"].to_numpy())
    from_files = fitted(written_in_files(tmp_path / "rows", table, 3), sample_weight="weight")
    assert from_memory.pooled_.intercept_.shape == (3,)
    assert_same_model(from_memory, from_files, X)


def test_persons_time_and_declared_groups_are_columns_of_the_files(tmp_path, small_sample):
    table = grouped_table(4000)
    rng = np.random.default_rng(3)
    table["id"], table["day"] = rng.integers(0, 1000, 4000), rng.permutation(4000)
    table["sex"] = rng.choice(["f", "m"], 4000)
    known = {"persons": table["id"], "time": table["day"], "guard_features": table[["sex"]]}
    from_memory = fitted(table[FEATURES], table["y"], guard="proof", **known)
    names = {"persons": "id", "time": "day", "guard_features": "sex"}
    from_files = fitted(written_in_files(tmp_path / "rows", table, 4), guard="proof", **names)
    assert list(from_files.feature_names_in_) == FEATURES
    assert_same_model(from_memory, from_files, table[FEATURES])


def test_an_unfitted_classifier_sees_all_rows_in_memory_and_a_sample_of_files(tmp_path, small_sample):
    table = grouped_table(4000)[["x0", "x1", "x2", "y"]]
    X, pooled = table.drop(columns="y"), LogisticRegression(C=1e6)
    model = fitted(X, table["y"], pooled=pooled)
    np.testing.assert_allclose(model.pooled_.coef_, pooled.fit(X, table["y"]).coef_, atol=1e-3)
    with pytest.warns(FittedOnSampleWarning, match="LogisticRegression was fitted on a sample of"):
        fitted(written_in_files(tmp_path / "rows", table, 3), pooled=LogisticRegression())


def test_a_network_learns_from_the_sample_and_says_so(small_sample):
    table = grouped_table(3000)[["x0", "x2", "y"]]
    with pytest.warns(FittedOnSampleWarning, match="network was fitted on a sample of"):
        model = fitted(
            table[["x0", "x2"]], table["y"], method="network", recipe=Recipe(max_epochs=2, n_folds=1), pooled="linear"
        )
    assert model.method_ == "network"


def test_fresh_rows_for_the_guard_may_be_files(tmp_path, small_sample):
    fresh = grouped_table(1200, seed=8)
    model, other = deepcopy(in_memory(1500)), deepcopy(in_memory(1500))
    model.recalibrate(fresh[FEATURES], fresh["y"])
    other.recalibrate(written_in_files(tmp_path / "rows", fresh, 3), "y")
    assert str(model.guard_report_) == str(other.guard_report_)
    assert model.guard_report_.table["rows"].sum() == 1200


def test_a_list_of_paths_and_a_data_set_of_arrow_are_sources(tmp_path, small_sample):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = grouped_table(5000)
    written_in_files(tmp_path / "rows", table, 3)
    model = fitted(dataset.dataset(tmp_path / "rows", format="parquet"))
    assert_same_model(in_memory(5000), model, table[FEATURES])
    blocks = as_blocks(sorted((tmp_path / "rows").glob("*.parquet")))
    assert blocks.n_rows == 5000


# ---- people's mistakes ----


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, "y is the name of its target column"),
        ({"y": "z"}, "The table has no column 'z', the target"),
        ({"persons": [1, 2]}, "persons is the name of one of its columns"),
        ({"sample_weight": "w"}, "no column 'w'"),
        ({"guard_features": [1]}, "guard_features are names of its columns"),
    ],
)
def test_roles_that_no_column_has_are_refused_in_one_sentence(tmp_path, change, message):
    path = written_in_files(tmp_path / "rows", grouped_table(200), 1)
    with pytest.raises(InputError, match=message):
        fitted(path, **change)


def test_weights_below_zero_are_refused(tmp_path):
    path = written_in_files(tmp_path / "rows", grouped_table(200).assign(w=-1.0), 1)
    with pytest.raises(InputError, match="numbers from 0 on: the column 'w'"):
        fitted(path, sample_weight="w")


def test_a_file_with_other_columns_is_refused_by_its_name(tmp_path):
    path = written_in_files(tmp_path / "rows", grouped_table(300), 2)
    grouped_table(100).rename(columns={"x2": "x4"}).to_parquet(tmp_path / "rows" / "99.parquet")
    with pytest.raises(InputError, match=r"99\.parquet has no column 'x2', which the first file has"):
        fitted(path)


def test_a_path_without_files_is_refused(tmp_path):
    for path in (tmp_path / "nothing.parquet", tmp_path, str(tmp_path / "*.parquet")):
        with pytest.raises(InputError, match="There is no"):
            fitted(path)


def test_a_class_that_the_sample_lacks_is_named(tmp_path, small_sample):
    table = grouped_table(9000)[["x0", "y"]]
    table.loc[5, "y"] = "maybe"
    with pytest.raises(InputError, match="holds 'maybe' in so few rows that the sample has none"):
        fitted(written_in_files(tmp_path / "rows", table, 2), n_groups=1)


# ---- the command ----


def trained(path, **said):
    table = TrainingTable.read(DataFile(path), "y", **said)
    return table, table.fit(DAFHClassifier(2, random_state=0))


def test_text_and_parquet_in_any_number_of_files_give_one_model(tmp_path, small_sample):
    table = grouped_table(4000)
    parquet = written_in_files(tmp_path / "parquet", table, 3)
    (tmp_path / "csv").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(4000), 2)):
        text = table.iloc[rows].to_csv(index=False)
        (tmp_path / "csv" / f"{number}.csv.gz").write_bytes(gzip.compress(text.encode()))
    one, other = trained(parquet)[1], trained(tmp_path / "csv")[1]
    assert_same_model(one[-1], other[-1], one[0].transform(table[FEATURES]))


def test_test_rows_are_not_trained_on_and_are_written_beside_the_model(tmp_path, small_sample):
    table = grouped_table(4000).assign(x0=np.random.default_rng(7).normal(size=4000))
    table.loc[:99, "y"] = None
    path = written_in_files(tmp_path / "rows", table, 3)
    out = tmp_path / "m.dafh"
    done = run(
        "fit", path, "--target", "y", "--method", "exceptions", "--groups", "2", "--test-size", "0.3", "--out", out
    )
    assert done.exit_code == 0
    assert "Left out, no target: 100 rows." in done.stderr
    assert "of 4,000 rows." in done.stderr
    test = pd.read_parquet(tmp_path / "m.test.parquet")
    assert len(test) == pytest.approx(0.3 * 3900, abs=100)
    card = json.loads(run("show", out, "--json").stdout)
    assert card["rows_kept_back"] == len(test)
    assert card["rows"] + len(test) == 3900
    assert list(test.columns) == list(table.columns)
    # Without those rows the same command trains on the same rows: on all that are left.
    (tmp_path / "left").mkdir()
    table[~table["x0"].isin(test["x0"])].to_parquet(tmp_path / "left" / "0.parquet", index=False)
    rest = TrainingTable.read(DataFile(tmp_path / "left" / "0.parquet"), "y")
    assert rest.labels.total() == card["rows"]
    assert run("audit", out, tmp_path / "m.test.parquet").exit_code == 0  # They are the rows that the model knows.
    assert "trained on these rows" in run("audit", out, tmp_path / "left" / "0.parquet").stderr
    test.head(-1).to_parquet(tmp_path / "m.test.parquet")
    refused = run("audit", out, tmp_path / "m.test.parquet")
    assert refused.exit_code == 2
    assert "does not hold the test rows of m.dafh" in refused.stderr


def test_what_is_said_about_columns_counts_in_large_tables_too(tmp_path, small_sample):
    table = grouped_table(4000)
    rng = np.random.default_rng(0)
    table["sex"], table["who"] = rng.choice(["f", "m"], 4000), rng.integers(0, 2000, 4000)
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 4000), unit="D")
    path = written_in_files(tmp_path / "rows", table, 2)
    read, model = trained(path, sensitive=["sex"], person="who", time="day", drop=["x1"], test_size=0.2)
    assert list(read.schema.features) == ["x0", "x2", "age", "job"]
    assert model[-1].guard_report_ is not None
    test = pd.read_parquet(read.save(model, tmp_path / "m.dafh"))
    assert len(test) == pytest.approx(800, abs=100)
    n_later = (table["day"] >= test["day"].min()).sum()
    assert n_later == len(test)  # They are the last ones.
    assert load(tmp_path / "m.dafh")[-1].n_groups_ == 2
