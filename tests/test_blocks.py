"""Rows in pieces: providers, spools, samples, and sums in passes."""

import errno
import os
import subprocess
import sys
import threading

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from dafh.blocks import spool
from dafh.blocks.files import FileBlocks
from dafh.blocks.memory import MemoryBlocks, in_order
from dafh.blocks.reporting import ReportedBlocks
from dafh.blocks.sampling import EVERYTHING, Keys, Part, Wanted, count_rows, draw_rows, random_places
from dafh.blocks.spool import Spool, keep_in_file
from dafh.exceptions import InputError
from dafh.linear.designs import BinnedDesign, DenseDesign
from dafh.linear.newton import Regression, fit_penalized
from dafh.linear.passes import Penalty, PointTables, SeenBlock, fit_in_passes
from dafh.tables.hashes import row_hashes, uniform
from dafh.tables.read import DataFile, find_files


def keys(table):
    hashes = row_hashes(table)
    return Keys(hashes, random_places(hashes))


def in_blocks(table, n_blocks):
    return MemoryBlocks([table.iloc[rows] for rows in np.array_split(np.arange(len(table)), n_blocks)])


def sorted_rows(table):
    return table.sort_values(list(table.columns), ignore_index=True)


# ---- hashes ----

CELLS = st.one_of(
    st.none(),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=5),
)


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_a_value_has_one_hash_in_a_text_file_and_in_a_typed_one(cells):
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    typed = row_hashes(pd.DataFrame({"a": pd.Series(numbers, dtype=float)}))
    text = row_hashes(pd.DataFrame({"a": pd.Series([repr(float(n)) for n in numbers], dtype=object)}))
    np.testing.assert_array_equal(typed, text)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=8, unique=True))
def test_hashes_depend_neither_on_the_order_of_rows_nor_on_that_of_columns(rows):
    table = pd.DataFrame(rows, columns=["a", "b"]).astype(object)
    back = row_hashes(table.iloc[::-1][["b", "a"]])[::-1]
    np.testing.assert_array_equal(row_hashes(table), back)


def test_values_that_swap_columns_have_other_hashes():
    one, other = pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"a": [2], "b": [1]})
    assert row_hashes(one) != row_hashes(other)


def test_zeros_of_both_signs_and_gaps_of_all_kinds_are_alike():
    assert len(set(row_hashes(pd.DataFrame({"a": [0.0, -0.0]})))) == 1
    gaps = [
        pd.Series([np.nan]),
        pd.Series([None], dtype=object),
        pd.Series([pd.NA], dtype="Int64"),
        pd.Series([pd.NaT]),
    ]
    assert len({int(row_hashes(pd.DataFrame({"a": gap}))[0]) for gap in gaps}) == 1


def test_numbers_made_of_hashes_look_uniform_and_independent():
    hashes = row_hashes(pd.DataFrame({"a": np.arange(20_000.0)}))
    one, other = uniform(hashes, 1), uniform(hashes, 2)
    assert np.abs(np.histogram(one, 10, (0, 1))[0] - 2000).max() < 200
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


# ---- samples ----


@pytest.mark.parametrize("n_blocks", [1, 3, 20])
def test_the_same_rows_are_drawn_from_any_order_and_any_division(n_blocks):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=3000), "b": rng.choice(["x", "y"], 3000)})
    (first,), _ = draw_rows(in_blocks(table, 1), keys, 3000, [Wanted(EVERYTHING, 500)])
    shuffled = table.iloc[rng.permutation(3000)]
    (second,), _ = draw_rows(in_blocks(shuffled, n_blocks), keys, 3000, [Wanted(EVERYTHING, 500)])
    pd.testing.assert_frame_equal(sorted_rows(first), sorted_rows(second))
    assert 430 < len(first) < 570


def test_rows_that_are_repeated_are_drawn_by_their_share_however_they_are_divided():
    table = pd.DataFrame({"a": ["x"] * 6000 + ["y"] * 300 + list(map(str, range(700)))})
    draws = []
    for n_blocks, seed in ((1, 0), (9, 1)):
        order = np.random.default_rng(seed).permutation(7000)
        (drawn,), repeated = draw_rows(in_blocks(table.iloc[order], n_blocks), keys, 7000, [Wanted(EVERYTHING, 700)])
        draws.append(drawn["a"].value_counts())
        assert repeated.holds(keys(table).hashes)[:6300].all()
    assert draws[0]["x"] in (599, 600, 601)
    assert draws[0]["y"] in (29, 30, 31)
    pd.testing.assert_series_equal(draws[0].sort_index(), draws[1].sort_index())


def test_parts_share_no_row_and_miss_none():
    table = pd.DataFrame({"a": np.random.default_rng(1).normal(size=2000)})
    low, high = Part(high=0.3, size=0.3), Part(low=0.3, size=0.7)
    drawn, _ = draw_rows(in_blocks(table, 4), keys, 2000, [Wanted(low, 10_000), Wanted(high, 10_000)])
    assert sum(map(len, drawn)) == 2000
    pd.testing.assert_frame_equal(sorted_rows(pd.concat(drawn)), sorted_rows(table))
    assert len(drawn[0]) == pytest.approx(600, abs=80)


def test_a_repeated_row_counts_in_a_part_by_the_size_of_the_part():
    table = pd.DataFrame({"a": ["x"] * 5000})
    part = Part(high=0.2, size=0.2)
    drawn, repeated = draw_rows(in_blocks(table, 3), keys, 5000, [Wanted(part, 100), Wanted(EVERYTHING, 100)])
    np.testing.assert_array_equal(part.weights(keys(table), repeated), 0.2)
    assert [len(rows) for rows in drawn] == [pytest.approx(100, abs=1)] * 2


# ---- providers ----


def test_results_come_in_the_order_of_the_blocks():
    assert list(in_order(lambda n: n * n, list(range(50)))) == [n * n for n in range(50)]


def test_nobody_works_far_ahead_of_whoever_takes_the_results():
    begun, taken, lead = [], [], []
    lock = threading.Lock()

    def work(number):
        with lock:
            begun.append(number)
            lead.append(len(begun) - len(taken))
        return number

    for number in in_order(work, list(range(200))):
        taken.append(number)  # noqa: PERF402  (one by one is the point)
    assert max(lead) < 40


def test_an_error_in_a_block_ends_the_pass():
    def fail(block):
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        list(MemoryBlocks([1, 2, 3]).each(fail))


ARRAYS = st.builds(
    lambda n, k, kind: (np.arange(n * k) % 7).reshape(n, k).astype(kind),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["u1", "f8", "i4", "?"]),
)


@given(st.lists(ARRAYS, min_size=1, max_size=5), st.booleans())
def test_a_spool_gives_back_what_was_written(arrays, by_column):
    kept = Spool()
    arrays = [np.asfortranarray(array) if by_column else array for array in arrays]
    places = [kept.write({"a": array, "b": array[:, 0]}) for array in arrays]
    for array, place in zip(arrays, places, strict=True):
        found = kept.read(place)
        np.testing.assert_array_equal(found["a"], array)
        np.testing.assert_array_equal(found["b"], array[:, 0])
        assert found["a"].dtype == array.dtype
    kept.close()


def test_a_spool_written_by_several_threads_mixes_nothing_up():
    blocks = MemoryBlocks([np.full(10_000, n) for n in range(40)])
    with keep_in_file(blocks, lambda block: {"n": block}) as kept:
        for number, same in enumerate(kept.each(lambda arrays: set(arrays["n"]))):
            assert same == {number}


def test_a_full_disk_is_one_sentence_and_leaves_nothing(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(spool.os, "pwrite", full)
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InputError, match=r"temporary file .* \(No space left on device\): set TMPDIR"):
        keep_in_file(MemoryBlocks([np.ones(5)]), lambda block: {"a": block})
    assert len(os.listdir("/proc/self/fd")) == opened


def test_a_killed_process_leaves_no_spool_behind(tmp_path):
    code = (
        "import os, signal, numpy as np\n"
        "from dafh.blocks.spool import Spool\n"
        "Spool().write({'a': np.ones(1000)})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert done.returncode == -9
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_file_is_read_by_row_groups_and_says_how_many_rows_it_has(tmp_path):
    table = pd.DataFrame({"a": range(1000)})
    table.to_parquet(tmp_path / "t.parquet", row_group_size=300)
    blocks = FileBlocks.open([DataFile(tmp_path / "t.parquet")])
    assert blocks.n_rows == 1000 == count_rows(blocks)
    assert list(blocks.each(len)) == [300, 300, 300, 100]
    assert pd.concat(blocks.each(lambda block: block))["a"].tolist() == list(range(1000))


def test_text_files_have_to_be_counted(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("a,b\n" + f"{number},x\n" * 10)
    blocks = FileBlocks.open([DataFile(path) for path in find_files(tmp_path)])
    assert blocks.n_rows is None
    assert count_rows(blocks) == 30
    assert [DataFile(path).count_rows() for path in find_files(tmp_path)] == [10, 10, 10]


@pytest.mark.parametrize("ending", ["\n", ""])
def test_the_last_line_of_a_text_counts_with_and_without_a_line_break(tmp_path, ending):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4" + ending)
    assert DataFile(tmp_path / "t.csv").count_rows() == 2


def test_files_are_found_by_pattern_folder_and_list_each_once_and_sorted(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "_old").mkdir()
    for name in ("b.parquet", "a.csv", "part/c.csv.gz", "_old/d.csv", ".hidden.csv", "notes.md"):
        (tmp_path / name).touch()
    inside = [str(path.relative_to(tmp_path)) for path in find_files(tmp_path)]
    assert inside == ["a.csv", "b.parquet", "part/c.csv.gz"]
    assert [path.name for path in find_files([tmp_path / "a.csv", str(tmp_path / "*.csv")])] == ["a.csv"]


def test_a_file_that_vanishes_between_passes_is_named(tmp_path):
    pd.DataFrame({"a": range(10)}).to_parquet(tmp_path / "t.parquet")
    blocks = FileBlocks.open([DataFile(tmp_path / "t.parquet")])
    assert sum(blocks.each(len)) == 10
    (tmp_path / "t.parquet").unlink()
    with pytest.raises(InputError, match=r"There is no file .*t\.parquet"):
        sum(blocks.each(len))


def test_every_pass_is_reported_with_what_it_went_over():
    passes = []
    blocks = ReportedBlocks(MemoryBlocks([np.ones(3)]), lambda what, seconds: passes.append((what, seconds >= 0)))
    list(blocks.each(len))
    with blocks.keep(lambda block: {"a": block}) as kept:
        kept.total(lambda block: (block["a"].sum(),))
    assert passes == [("rows", True), ("rows", True), ("kept", True)]


# ---- sums in passes ----


class Rows:
    """A problem whose blocks hold a dense design, or bins."""

    def __init__(self, tables=None):
        self.points = None if tables is None else PointTables(tuple(tables))

    def see(self, block):
        design = DenseDesign(block["X"]) if self.points is None else self.points.design(block["codes"])
        n_rows = len(block["label"])
        part = block.get("group", np.zeros(n_rows, np.uint8))
        return SeenBlock(design, block["label"], np.ones(n_rows), np.zeros((n_rows, block["m"][0])), part)


def problem(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    label = np.clip((X[:, 0] + rng.normal(size=n_rows) > 0) + (X[:, 1] > 0.5) * (n_classes - 2), 0, n_classes - 1)
    m = 1 if n_classes == 2 else n_classes
    return Regression(DenseDesign(X), label.astype(np.intp), np.ones(n_rows), np.zeros((n_rows, m)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_blocks", [1, 5])
def test_passes_with_the_curvature_of_a_sample_end_at_the_exact_solution(n_classes, n_blocks):
    rows = problem(3000, n_classes)
    penalty = np.array([1e-6, 2.0, 2.0, 2.0])
    exact = fit_penalized(rows, penalty, tolerance=1e-14).coefficients
    sample = rows.take(np.arange(300))
    m = np.array([rows.offset.shape[1]])
    blocks = MemoryBlocks(
        [{"X": rows.design.X[i], "label": rows.label[i], "m": m} for i in np.array_split(np.arange(3000), n_blocks)]
    )

    def curvature(coefficients):
        return sample.joint_curvatures_by(sample.design.logits(coefficients[0]), np.zeros(300, np.uint8), 1) / 300

    found = fit_in_passes(blocks, Rows(), Penalty(penalty), curvature, np.zeros((1, *exact.shape)), tolerance=1e-13)
    np.testing.assert_allclose(found[0], exact, atol=1e-5)


def test_parts_of_the_rows_get_coefficients_of_their_own_in_the_same_passes():
    rows = problem(2000, 2)
    group = (np.arange(2000) % 3).astype(np.uint8)
    penalty = np.full(4, 5.0)
    pull = np.stack([np.eye(4)[None] * k for k in range(3)])
    m = np.array([1])
    blocks = MemoryBlocks([{"X": rows.design.X, "label": rows.label, "group": group, "m": m}])

    def curvature(coefficients):
        logits = rows.design.grouped_logits(coefficients, group.astype(np.intp))
        return rows.joint_curvatures_by(logits, group, 3) / 2000

    found = fit_in_passes(blocks, Rows(), Penalty(penalty, pull), curvature, np.zeros((3, 4, 1)), tolerance=1e-13)
    for part in range(3):
        alone = fit_penalized(rows.take(np.flatnonzero(group == part)), penalty, free_intercept=False, pull=pull[part])
        np.testing.assert_allclose(found[part], alone.coefficients, atol=1e-6)


def test_bins_are_summed_block_by_block_as_all_at_once():
    rng = np.random.default_rng(2)
    codes = np.asfortranarray(rng.integers(0, 4, (500, 2)).astype(np.uint8))
    tables = [np.eye(4)[:, :3], rng.normal(size=(4, 1))]
    design = PointTables(tuple(tables)).design(codes)
    whole = BinnedDesign(codes, tables)
    coefficients, residual = rng.normal(size=(5, 2)), rng.normal(size=(500, 2))
    np.testing.assert_allclose(design.logits(coefficients), whole.logits(coefficients))
    np.testing.assert_allclose(design.gradient(residual), whole.gradient(residual))


def test_the_joint_curvature_is_the_derivative_of_the_gradient():
    rows = problem(200, 3)
    coefficients = np.random.default_rng(3).normal(size=(4, 3)) * 0.3

    def gradient(flat):
        return rows.gradient(rows.design.logits(flat.reshape(3, 4).T)).T.ravel()

    flat, step = coefficients.T.ravel(), 1e-5
    joint = rows.joint_curvatures_by(rows.design.logits(coefficients), np.zeros(200, np.uint8), 1)[0]
    numeric = [(gradient(flat + step * e) - gradient(flat - step * e)) / (2 * step) for e in np.eye(12)]
    np.testing.assert_allclose(joint, numeric, atol=1e-4)
