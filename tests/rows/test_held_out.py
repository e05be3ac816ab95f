"""Which rows are held out of training, in which fold, and what for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.rows.held_out import HeldOut, set_rows_aside, shuffled_classes


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


def test_folds_have_the_classes_of_the_data():
    label, held = draw(3000, rare=300)
    for fold in range(held.n_folds):
        shares = np.bincount(label[held.fold == fold], minlength=3) / (held.fold == fold).sum()
        np.testing.assert_allclose(shares, np.bincount(label) / len(label), atol=0.01)


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


def test_without_a_share_to_select_all_held_out_rows_calibrate():
    _, held = draw(1000, selection=0.0, calibration=0.2)
    assert held.n_folds == 5
    assert held.calibrates[held.fold >= 0].all()
    assert len(held.selection) == 1000  # Curves are then drawn over all rows.


def test_nothing_is_held_out_where_nothing_is_wanted():
    _, held = draw(1000, selection=0.0, calibration=0.0)
    assert held.n_folds == 0
    assert (held.fold == -1).all()


@pytest.mark.parametrize(("selection", "calibration"), [(0.5, 0.5), (0.9, 0.2)])
def test_shares_that_leave_nothing_to_train_on_are_refused(selection, calibration):
    with pytest.raises(InputError, match="leave no rows to train on: together they must be less than 1"):
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


def test_shares_that_fill_all_rows_exactly_are_not_lost_to_rounding():
    # 0.1 + 0.1 is a little more than 1/5 in floating point, and three tenths a little more than 0.3.
    assert exact(1000, 0.1, 0.1, 9)[1].n_folds == 5
    assert exact(1000, 0.1 + 0.2, 1 / 30, 9)[1].n_folds == 3


def test_every_class_gives_its_share():
    label, held = exact(300, 0.1, 0.1, 2, n_classes=3)
    for c in range(3):
        assert [(held.fold[label == c] == fold).sum() for fold in (-1, 0, 1)] == [60, 20, 20]
        assert held.calibrates[label == c].sum() == 20


def test_every_class_is_held_out_by_its_share_rounded_down():
    for n_rare, held_out in ((3, 0), (4, 1), (19, 4), (20, 5)):
        label = np.r_[np.ones(n_rare, int), np.zeros(500, int)]
        held = HeldOut.draw(label, 0.05, 0.2, 1, np.random.default_rng(0))
        assert (held.fold[label == 1] >= 0).sum() == held_out


def test_a_rare_class_does_not_keep_the_next_one_from_being_held_out():
    label = np.r_[np.zeros(3, int), np.ones(300, int), np.full(3, 2), np.full(300, 3)]
    held = HeldOut.draw(label, 0.1, 0.1, 1, np.random.default_rng(0))
    assert [(held.fold[label == c] == 0).sum() for c in range(4)] == [0, 60, 0, 60]


def test_a_class_may_calibrate_without_any_row_that_selects_if_none_is_wanted():
    for n_rare, held_out in ((4, 0), (5, 1)):
        label = np.r_[np.ones(n_rare, int), np.zeros(500, int)]
        held = HeldOut.draw(label, 0.0, 0.2, 1, np.random.default_rng(0))
        assert (held.fold[label == 1] >= 0).sum() == held_out


def test_classes_that_are_all_too_rare_leave_nothing_held_out():
    _, held = exact(100, 0.1, 0.09, 2, n_classes=20)  # Less than one row of each class.
    assert held.n_folds == 0
    assert (held.fold == -1).all()
    assert not held.calibrates.any()
    assert held.selection.tolist() == list(range(100))


def test_two_thousand_held_out_rows_are_enough():
    # 0.2 of 2,500 are 500 rows a fold, and four folds are enough; one row less needs a fifth.
    assert exact(2500, 0.1, 0.1, "auto")[1].n_folds == 4
    assert exact(2499, 0.1, 0.1, "auto")[1].n_folds == 5
    assert exact(10_000, 0.1, 0.1, "auto")[1].n_folds == 1
    assert exact(9_999, 0.1, 0.1, "auto")[1].n_folds == 2


def test_a_number_of_folds_may_be_asked_for():
    assert exact(20_000, 0.05, 0.05, 8)[1].n_folds == 8
    assert exact(100, 0.1, 0.1, 1)[1].n_folds == 1


def test_the_refusal_names_both_shares():
    with pytest.raises(InputError, match=r"selection_size \(0.6\) and calibration_size \(0.4\) leave no rows"):
        exact(100, 0.6, 0.4, 1)
    assert exact(100, 0.6, 0.39, 1)[1].n_folds == 1


def test_nothing_held_out_is_a_division_of_its_own():
    none = HeldOut.none(3)
    assert none.fold.tolist() == [-1, -1, -1]
    assert none.calibrates.tolist() == [False] * 3
    assert none.n_folds == 0
    assert none.selection.tolist() == [0, 1, 2]
    assert none.calibration(0).tolist() == []


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


def test_the_generator_decides_which_rows_are_held_out():
    folds = [draw(seed=seed)[1].fold.tolist() for seed in (1, 1, 2)]
    assert folds[0] == folds[1]
    assert folds[0] != folds[2]


def test_rows_are_held_out_in_no_order_of_the_table():
    """Over many draws every row of a class has the same chance to select in fold 0."""
    label = np.zeros(60, int)
    drawn = [HeldOut.draw(label, 0.5, 0.0, 1, np.random.default_rng(seed)).fold == 0 for seed in range(400)]
    share = np.mean(drawn, axis=0)
    assert abs(share - 0.5).max() < 0.12  # Five standard deviations of a share of 400 draws.


# ---- rows set aside ----


def test_rows_set_aside_are_in_the_order_of_the_table():
    kept, apart = set_rows_aside(labels(100), 0.3, np.random.default_rng(0))
    assert (np.diff(kept) > 0).all()
    assert (np.diff(apart) > 0).all()
    assert (len(kept), len(apart)) == (70, 30)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.04, 0), (0.06, 1), (0.25, 2), (0.5, 5)])
def test_the_number_of_rows_set_aside_is_rounded(share, expected):
    assert len(set_rows_aside(np.arange(10) % 2, share, np.random.default_rng(0))[1]) == expected


def test_where_no_row_can_be_set_aside_all_of_them_train():
    kept, apart = set_rows_aside(np.array([0, 0, 0, 0, 1]), 0.8, np.random.default_rng(0))
    assert kept.tolist() == [0, 1, 2, 3, 4]
    assert apart.tolist() == []


def test_two_classes_are_enough_to_train_on():
    label = np.array([0, 1, 2] * 20)
    kept, apart = set_rows_aside(label, 0.9, np.random.default_rng(0))
    assert (len(kept), len(apart)) == (6, 54)
    assert len(np.unique(label[kept])) >= 2


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 99))
def test_shuffled_classes_hold_every_row_once(label, seed):
    label = np.array(label)
    rows = shuffled_classes(label, np.random.default_rng(seed))
    assert [set(label[part]) for part in rows] == [{c} for c in np.unique(label)]
    assert sorted(np.concatenate(rows)) == list(range(len(label)))


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


def test_a_class_of_two_rows_is_held_out_where_the_folds_hold_out_all():
    label = np.r_[1, 1, np.zeros(498, int)]
    held = HeldOut.draw(label, 0.1, 0.1, 5, np.random.default_rng(0))
    assert (held.fold[label == 1] >= 0).all()
    assert len(set(held.fold[label == 1])) == 2


def test_of_no_rows_none_is_set_aside():
    nothing = np.zeros(0, int)
    for known in ({}, {"person": nothing}, {"person": nothing, "time": np.zeros(0)}):
        kept, apart = set_rows_aside(nothing, 0.5, np.random.default_rng(0), **known)
        assert (len(kept), len(apart)) == (0, 0)
