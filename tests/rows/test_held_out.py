"""Which rows are held out of training, in which fold, and what for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.rows.held_out import HeldOut, set_rows_aside


def labels(n, rare=0, seed=0):
    label = np.random.default_rng(seed).integers(2, size=n)
    label[:rare] = 2
    return label


def draw(n=1000, selection=0.1, calibration=0.1, folds="auto", rare=0, seed=0):
    label = labels(n, rare)
    return label, HeldOut.draw(label, selection, calibration, folds, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("n", "selection", "calibration", "expected"),
    [
        (500, 0.1, 0.1, 5),  # 100 rows a fold: as many folds as there may be.
        (500, 0.1, 0.0, 5),  # Ten would fit without calibration rows: five are the most.
        (4000, 0.1, 0.1, 3),  # 800 rows a fold: three hold out 2,000.
        (20_000, 0.1, 0.1, 1),
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


@pytest.mark.parametrize(("selection", "calibration"), [(0.5, 0.5), (0.9, 0.2)])
def test_shares_that_leave_nothing_to_train_on_are_refused(selection, calibration):
    with pytest.raises(InputError, match=r"selection_size .* calibration_size"):
        draw(1000, selection, calibration)


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


def test_rows_are_held_out_in_no_order_of_the_table():
    """Over many draws every row of a class has the same chance to select in fold 0."""
    label = np.zeros(60, int)
    drawn = [HeldOut.draw(label, 0.5, 0.0, 1, np.random.default_rng(seed)).fold == 0 for seed in range(400)]
    share = np.mean(drawn, axis=0)
    assert abs(share - 0.5).max() < 0.12  # Five standard deviations of a share of 400 draws.


# ---- rows set aside ----


@given(
    n=st.integers(60, 3000),
    selection=st.sampled_from([0.05, 0.1, 0.3, 0.6]),
    calibration=st.sampled_from([0.0, 0.05, 0.1, 0.3]),
    folds=st.sampled_from(["auto", 1, 2, 3, 9]),
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
    held = HeldOut.draw(label, 0.14, 0.06, "auto", np.random.default_rng(0), person=person, time=time)
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


@given(st.integers(0, 999), SHARES, st.sampled_from([1, 3, "auto"]))
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
    held = HeldOut.draw(label, *shares, "auto", rng, time=time)
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
