"""Checked rows: labels, weights and classes, and what is known about rows beside features."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh import DecoupledClassifier, Scorecard
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition
from dafh.rows import HeldOut, LabelledRows, TableEncoding, set_rows_aside


def checked(X=None, y=None, **options):
    X = np.arange(12.0).reshape(6, 2) if X is None else X
    return LabelledRows.check(DecoupledClassifier(), X, ["a", "b"] * 3 if y is None else y, numbers=True, **options)


def test_rows_of_weight_zero_are_left_out():
    rows = checked(sample_weight=[1, 1, 0, 2, 1, 1], sensitive_features={"sex": list("fmfmfm")})
    assert rows.numbers[:, 0].tolist() == [0, 2, 6, 8, 10]
    assert rows.weight.tolist() == [1, 1, 2, 1, 1]
    assert rows.sensitive["sex"].tolist() == ["f", "m", "m", "f", "m"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_part_of_the_rows_keeps_everything_together(library):
    frame = library({"u": np.arange(6.0), "v": np.arange(6.0) ** 2})
    part = checked(X=frame, sensitive_features={"sex": list("fmfmfm")}).take(np.array([4, 1]))
    assert part.numbers.tolist() == [[4, 16], [1, 1]]
    assert np.asarray(part.X).tolist() == [[4, 16], [1, 1]]
    assert list(part.X.columns) == ["u", "v"]
    assert part.y.tolist() == ["a", "b"]
    assert part.sensitive["sex"].tolist() == ["f", "m"]


def test_classes_of_an_incumbent_may_be_more_than_those_that_occur():
    rows = checked(classes=np.array(["a", "b", "c"]))
    assert rows.classes.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match="does not know"):
        checked(classes=np.array(["a", "c"]))


# ---- labels and classes ----


@pytest.mark.parametrize(
    ("y", "classes", "label"),
    [
        ([2, 0, 1, 0, 2, 1], [0, 1, 2], [2, 0, 1, 0, 2, 1]),
        ([10.0, -1.0] * 3, [-1.0, 10.0], [1, 0] * 3),
        ([True, False] * 3, [False, True], [1, 0] * 3),
        (np.array(["b", "ä"] * 3, object), ["b", "ä"], [0, 1] * 3),
    ],
)
def test_labels_of_any_type_become_positions(y, classes, label):
    rows = checked(y=y)
    assert rows.classes.tolist() == classes
    assert rows.label.tolist() == label
    assert rows.y.tolist() == list(y)


def test_a_class_of_rows_that_do_not_count_is_no_class():
    rows = checked(y=["a", "b", "a", "b", "z", "z"], sample_weight=[1, 1, 1, 1, 0, 0])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.y.tolist() == ["a", "b", "a", "b"]
    rows = checked(y=["b", "c", "b", "c", "a", "z"], sample_weight=[1, 1, 1, 1, 0, 0], classes=np.array(["b", "c"]))
    assert rows.y.tolist() == ["b", "c", "b", "c"]  # Nor are they held against an incumbent.


def test_one_class_is_too_few_whether_by_label_or_by_weight():
    with pytest.raises(InputError, match="one class only"):
        checked(y=["a"] * 6)
    with pytest.raises(InputError, match="one class only"):
        checked(y=[0, 1] * 3, sample_weight=[0, 1] * 3)


# ---- more rows for an estimator that is fitted ----


@pytest.fixture(scope="module")
def known():
    """An estimator that knows two columns and the classes "a" and "b"."""
    X = np.arange(12.0).reshape(6, 2)
    return DecoupledClassifier(PooledPartition()).fit(X, ["a", "b"] * 3)


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0]], ["a"], {}, "expecting 2"),
        ([[1.0, 2.0]], ["z"], {}, r"not fitted with: \['z'\]"),
        ([[1.0, 2.0]], ["a", "b"], {}, "y has the shape"),
        ([[1.0, 2.0]], ["a"], {"sample_weight": [1, 2]}, "sample_weight has the shape"),
        ([[1.0, 2.0]], ["a"], {"sensitive_features": ["f", "m"]}, "2 rows"),
        ([[1.0, np.nan]], ["a"], {}, "contains NaN"),
    ],
)
def test_more_rows_that_do_not_fit_are_refused(known, X, y, options, message):
    with pytest.raises(ValueError, match=message):
        LabelledRows.check_more(known, X, y, numbers=True, **options)


FEATURES = np.arange(12.0).reshape(6, 2)
Y = ["a", "b"] * 3
KNOWN = {"guard_features": {"sex": list("fmfmfm")}, "persons": list("xxyyzz")}
TABLE = pd.DataFrame({"age": [30, 40, 50, 60, 70, 80], "job": ["cook", "clerk", None, "cook", "clerk", "cook"]})


def context_of(rows):
    """Declared attribute, person and time of each row."""
    values = (rows.declared, rows.person, rows.time)
    return [value if value is None else np.asarray(value).ravel().tolist() for value in values]


# ---- what is known ----


@pytest.mark.parametrize("name", ["guard_features", "persons", "time", "sensitive_features"])
def test_what_has_not_one_entry_for_each_row_is_refused_by_name(name):
    with pytest.raises(InputError, match=f"^{name} has "):
        checked(**{name: [1]})


# ---- rows that bring it ----


def test_rows_of_weight_zero_leave_with_all_that_is_known_of_them():
    rows = LabelledRows.check(
        DecoupledClassifier(), FEATURES, Y, **KNOWN, time=range(6), sample_weight=[1, 0, 1, 1, 1, 1]
    )
    assert context_of(rows) == [list("ffmfm"), [0, 1, 1, 2, 2], [0, 2, 3, 4, 5]]


# ---- tables of any kind ----


def test_more_of_a_table_keeps_classes_and_brings_what_is_known():
    model = Scorecard().fit(TABLE, Y)
    rows = LabelledRows.check_more(model, TABLE[:2], ["b", "b"], sample_weight=[0, 2], persons=[7, 7])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.label.tolist() == [1, 1]
    assert rows.weight.tolist() == [0, 2]
    assert context_of(rows) == [None, [0, 0], None]
    assert rows.X["age"].tolist() == [30, 40]
    assert rows.numbers is None
    declared = LabelledRows.check_more(model, TABLE[:2], Y[:2], guard_features={"sex": ["f", "m"]})
    assert context_of(declared) == [["f", "m"], None, None]
    with pytest.raises(InputError, match="not fitted with"):
        LabelledRows.check_more(model, TABLE[:2], ["z", "a"])
    with pytest.raises(ValueError, match="feature names should match"):
        LabelledRows.check_more(model, TABLE[["job", "age"]], Y)


def test_columns_of_the_pooled_classifier_go_with_the_rows_and_are_no_features():
    card, wide = Scorecard(), TABLE.assign(score=0.5)[["score", "age", "job"]]
    assert list(LabelledRows.check(card, wide, Y, pooled_columns=["score"]).X) == ["age", "job", "score"]
    assert list(card.feature_names_in_) == ["age", "job"]
    more = LabelledRows.check_more(Scorecard().fit(TABLE, Y), wide, Y, pooled_columns=["score"])
    assert list(more.X) == ["age", "job", "score"]


def labels(n, rare=0, seed=0):
    label = np.random.default_rng(seed).integers(2, size=n)
    label[:rare] = 2
    return label


def draw(n=1000, selection=0.1, calibration=0.1, folds=5, rare=0, seed=0):
    label = labels(n, rare)
    return label, HeldOut.draw(label, selection, calibration, folds, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("n", "selection", "calibration", "expected"),
    [
        (500, 0.1, 0.1, 5),
        (1000, 0.3, 0.3, 1),  # A row is held out once at most.
        (59, 0.1, 0.1, 0),  # Too few rows to spare any.
        (60, 0.1, 0.1, 5),
    ],
)
def test_the_number_of_folds(n, selection, calibration, expected):
    assert draw(n, selection, calibration)[1].n_folds == expected


def test_the_only_row_of_a_class_always_trains():
    label, held = draw(1000, rare=1)
    assert (held.fold[label == 2] == -1).all()
    label, held = draw(1000, rare=9)
    assert (held.fold[label == 2] >= 0).sum() == 9


def test_a_rare_class_judges_too():
    """Nine positives of 300: in most draws some of them calibrate, and in all of them some train or select."""
    drawn = []
    for seed in range(50):
        label, held = draw(300, 0.14, 0.06, folds=5, rare=9, seed=seed)
        drawn.append((held.calibrates & (label == 2)).sum())
        assert (held.fold >= 0).all()
    assert min(drawn) >= 2
    assert max(drawn) <= 3
    assert np.mean(drawn) == pytest.approx(0.3 * 9, abs=0.25)  # The share that calibrates, on average over draws.


def test_rows_set_aside_are_a_simple_random_sample():
    kept, apart = set_rows_aside(labels(1000), 0.2, np.random.default_rng(0))
    assert len(apart) == 200
    assert sorted([*kept, *apart]) == list(range(1000))
    other = set_rows_aside(labels(1000), 0.2, np.random.default_rng(1))[1]
    assert set(other) != set(apart)


def test_no_row_is_set_aside_where_one_class_would_be_left():
    label = np.array([1] + [0] * 9)
    for seed in range(20):
        kept, apart = set_rows_aside(label, 0.5, np.random.default_rng(seed))
        assert len(np.unique(label[kept])) == 2
        assert len(apart) in (0, 5)


# ---- counts by hand ----


def exact(n_rows, selection, calibration, folds, n_classes=1):
    """Folds of classes of one size each, so that every count can be worked out by hand."""
    label = np.arange(n_rows) % n_classes
    return label, HeldOut.draw(label, selection, calibration, folds, np.random.default_rng(0))


def parts(held):
    """Rows that select and rows that calibrate, fold by fold."""
    counts = [(held.fold == fold, held.calibrates) for fold in range(held.n_folds)]
    return [(int((members & ~calibrates).sum()), int((members & calibrates).sum())) for members, calibrates in counts]


@pytest.mark.parametrize(
    ("n_rows", "selection", "calibration", "folds", "expected"),
    [
        (100, 0.1, 0.1, 2, [(10, 10), (10, 10)]),
        (100, 0.2, 0.05, 3, [(20, 5)] * 3),
        (100, 0.05, 0.2, 1, [(5, 20)]),
        (100, 0.5, 0.0, 2, [(50, 0), (50, 0)]),
        (100, 0.25, 0.25, 9, [(25, 25), (25, 25)]),  # Two folds hold out all rows: there is no third.
        (65, 0.1, 0.1, 1, [(6, 7)]),  # 13 rows: chance decides about an odd one.
        (200, 0.0, 0.5, 2, [(0, 100), (0, 100)]),
    ],
)
def test_folds_have_the_rows_that_the_shares_promise(n_rows, selection, calibration, folds, expected):
    _, held = exact(n_rows, selection, calibration, folds)
    assert parts(held) == expected
    assert (held.fold == -1).sum() == n_rows - sum(map(sum, expected))


def test_rows_of_one_fold_calibrate_in_that_fold_only():
    held = HeldOut(np.array([0, 0, 1, 1, -1], np.int32), np.array([False, True, True, False, False]), 2)
    assert held.calibration(0).tolist() == [1]
    assert held.calibration(1).tolist() == [2]
    assert held.selection.tolist() == [0, 3]


def test_all_rows_that_are_held_out_can_choose_and_judge():
    held = HeldOut(np.array([0, 0, 1, 1, -1], np.int32), np.array([False, True, True, False, False]), 2).shared()
    assert held.selection.tolist() == [0, 1, 2, 3]
    assert [held.calibration(fold).tolist() for fold in range(2)] == [[0, 1], [2, 3]]
    assert held.all_choose
    assert held.n_folds == 2


# ---- rows set aside ----


@given(
    n=st.integers(60, 3000),
    selection=st.sampled_from([0.05, 0.1, 0.3, 0.6]),
    calibration=st.sampled_from([0.0, 0.05, 0.1, 0.3]),
    folds=st.sampled_from([1, 2, 3, 9]),
    seed=st.integers(0, 99),
)
def test_every_row_is_held_out_once_at_most_and_shares_are_kept(n, selection, calibration, folds, seed):
    _, held = draw(n, selection, calibration, folds, seed=seed)
    assert held.n_folds >= 1
    for fold in range(held.n_folds):
        members = held.fold == fold
        assert abs(members.sum() - (selection + calibration) * n) <= 2
        assert abs((members & held.calibrates).sum() - calibration * n) <= 3
        assert set(held.calibration(fold)) == set(np.flatnonzero(members & held.calibrates))
    assert set(held.selection) == set(np.flatnonzero((held.fold >= 0) & ~held.calibrates))
    assert not held.calibrates[held.fold < 0].any()


# ---- persons and times by hand ----


def test_the_last_persons_judge_with_all_their_rows():
    """100 persons of three rows; the first comes again after all others. The last 20 judge, 6 of them for the guard."""
    label, person, time = np.tile([0, 1, 1], 100), np.repeat(np.arange(100), 3), np.arange(300.0)
    time[0] = 1000
    held = HeldOut.draw(label, 0.14, 0.06, 5, np.random.default_rng(0), person=person, time=time)
    assert held.n_folds == 1
    assert sorted(set(person[held.fold == 0])) == [0, *range(81, 100)]
    assert (held.fold[np.isin(person, range(1, 81))] == -1).all()
    assert held.fold.dtype == np.int32
    assert held.calibrates.sum() == 3 * 6
    assert all(len(set(held.calibrates[person == p])) == 1 for p in range(100))


def test_rows_of_one_moment_are_taken_in_the_order_of_the_table():
    label, late = np.arange(300) % 2, np.arange(0, 300, 3)
    moment = np.isin(np.arange(300), late).astype(float)
    held = HeldOut.draw(label, 0.1, 0.1, 1, np.random.default_rng(0), time=moment)
    assert np.flatnonzero(held.fold == 0).tolist() == late[-60:].tolist()
    apart = set_rows_aside(label, 0.2, np.random.default_rng(0), time=moment)[1]
    assert apart.tolist() == late[:60].tolist()


# ---- persons and times: laws ----

SHARES = st.sampled_from([(0.14, 0.06), (0.0, 0.2), (0.3, 0.1)])


def people(seed, n=400, per_person=5):
    rng = np.random.default_rng(seed)
    return rng.integers(2, size=n), rng.integers(n // per_person, size=n), rng


def one_value_each(person, *values):
    """Whether the rows of every person have the same of each value."""
    kinds = set(zip(person.tolist(), *(value.tolist() for value in values), strict=True))
    return len(kinds) == len(set(person.tolist()))


@given(st.integers(0, 999), SHARES, st.sampled_from([1, 3, 5]))
def test_a_persons_rows_are_in_one_fold_for_one_purpose(seed, shares, folds):
    label, person, rng = people(seed)
    held = HeldOut.draw(label, *shares, folds, rng, person=person)
    assert held.n_folds >= 1
    assert one_value_each(person, held.fold, held.calibrates)


@given(st.integers(0, 999), st.sampled_from([0.1, 0.2, 0.5]))
def test_a_persons_rows_are_set_aside_together(seed, share):
    label, person, rng = people(seed)
    kept, apart = set_rows_aside(label, share, rng, person=person)
    assert not set(person[kept]) & set(person[apart])
    assert sorted([*kept, *apart]) == list(range(len(label)))
    assert len(set(person[apart])) == round(share * len(set(person)))


@given(st.integers(0, 999), SHARES)
def test_the_last_rows_judge(seed, shares):
    label, _, rng = people(seed)
    time = rng.permutation(400).astype(float)
    held = HeldOut.draw(label, *shares, 5, rng, time=time)
    assert held.n_folds == 1
    n_last = round(sum(shares) * 400)
    np.testing.assert_array_equal(held.fold == 0, time >= 400 - n_last)
    assert held.calibrates.sum() == pytest.approx(shares[1] * 400, abs=1)
    kept, apart = set_rows_aside(label, 0.25, rng, time=time)
    assert time[apart].min() > time[kept].max()
    assert len(apart) == 100


def test_a_person_is_as_late_as_the_last_of_its_rows():
    label, person, time = np.tile([0, 1], 50), np.repeat(np.arange(20), 5), np.arange(100.0)
    time[0] = 1000  # The first person comes again after all others.
    kept, apart = set_rows_aside(label, 0.1, np.random.default_rng(0), person=person, time=time)
    assert sorted(set(person[apart])) == [0, 19]
    assert len(kept) == 90


MIXED = pd.DataFrame({"age": [20.0, 30.0, None, 50.0], "job": ["cook", "clerk", None, "cook"]})


def view_of(table):
    return TableEncoding.learn(table, np.ones(len(table)))


# ---- numbers and bins ----


def test_numbers_without_gaps_are_taken_as_they_are():
    table = pd.DataFrame({"a": [1, 2], "b": [True, False]})
    view = view_of(table)
    assert view.encoder is None
    np.testing.assert_array_equal(view.encode(table).numbers, [[1.0, 1.0], [2.0, 0.0]])


def test_tables_of_any_kind_are_encoded():
    seen = view_of(MIXED).encode(MIXED)
    assert seen.numbers.shape == (4, 5)
    assert np.isfinite(seen.numbers).all()


def test_some_rows_have_their_numbers_and_bins_whether_they_were_asked_for_before_or_not():
    rows = np.array([3, 0])
    before, after = view_of(MIXED).encode(MIXED), view_of(MIXED).encode(MIXED)
    assert (len(before.numbers), len(before.codes)) == (4, 4)
    for name in ("numbers", "codes"):
        expected = getattr(before, name)[rows]
        np.testing.assert_array_equal(getattr(before.take(rows), name), expected)
        np.testing.assert_array_equal(getattr(after.take(rows), name), expected)


def test_blocks_of_rows_are_the_whole_in_pieces_and_leave_no_large_table_behind():
    table = pd.concat([MIXED] * 5000, ignore_index=True)
    seen, whole = view_of(MIXED).encode(table), view_of(MIXED).encode(table).numbers
    blocks = [block.numbers for block in seen.blocks()]
    assert [len(block) for block in blocks] == [8192, 8192, 3616]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert "numbers" not in vars(seen)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_gaps_where_training_had_none_are_refused_as_numbers_and_taken_as_bins(value):
    view = view_of(np.arange(6.0).reshape(3, 2))
    seen = view.encode(np.array([[0.0, value]]))
    assert seen.codes[0, 1] == view.binning.columns[1].n_bins - 1
    with pytest.raises(InputError, match=r"^X has missing or infinite values, and had none in fit: fill them"):
        _ = seen.numbers


def test_an_array_stays_an_array_and_a_frame_a_frame():
    rows = LabelledRows.check(Scorecard(), [[1, 2], [3, 4]], [0, 1])
    assert isinstance(rows.X, np.ndarray)
    assert isinstance(LabelledRows.check(Scorecard(), MIXED, [0, 1, 0, 1]).X, pd.DataFrame)
