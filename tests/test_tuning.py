"""Tuning of rivals: the same rows and budget for all, and what each criterion chooses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.rivals.tuning import Tuning, distance_between_means, draw_settings, tune


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)


class Recorded(ClassifierMixin, BaseEstimator):
    """Answers with the same probability for everybody, and remembers what it was fitted on."""

    RANGES = {"share": (0.1, 0.4, 0.9), "unused": (1, 2)}  # noqa: RUF012
    fits: list = []  # noqa: RUF012

    def __init__(self, share=0.5, unused=0, random_state=None):
        self.share, self.unused, self.random_state = share, unused, random_state

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.fits.append((self.get_params(), X[:, 0].copy(), sample_weight))
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share, self.share], (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_every_setting_sees_the_same_rows_and_none_of_the_selection_rows(rows):
    X, y = rows
    Recorded.fits.clear()
    found = tune(Recorded(), X, y, budget=6, random_state=3)
    assert len(found.settings) == len(Recorded.fits) == 6
    first = Recorded.fits[0][1]
    assert len(first) == 300
    assert all(np.array_equal(seen, first) for _, seen, _ in Recorded.fits)
    assert all(settings["random_state"] == 3 for settings, _, _ in Recorded.fits)
    selection = ~np.isin(X[:, 0], first)
    share = y[selection].mean()
    expected = -(share * np.log(0.4) + (1 - share) * np.log(0.6))
    assert found.trials["log_loss"][[s["share"] == 0.4 for s in found.settings]].to_numpy() == pytest.approx(expected)


def test_weights_reach_the_fit_and_the_figures(rows):
    X, y = rows
    Recorded.fits.clear()
    weight = np.where(y == 1, 9.0, 1.0)
    found = tune(Recorded(), X, y, ranges={"share": (0.1, 0.9)}, sample_weight=weight)
    assert all(set(seen) == {1.0, 9.0} for _, _, seen in Recorded.fits)
    assert found.best()["share"] == 0.9
    assert found.trials["accuracy"].to_list() == pytest.approx([0.1, 0.9], abs=0.05)


def test_fewer_rows_are_drawn_where_a_limit_is_given(rows):
    Recorded.fits.clear()
    tune(Recorded(), *rows, ranges={"share": (0.5,)}, max_rows=120)
    assert len(Recorded.fits[0][1]) == 90


def test_a_large_grid_is_drawn_from_and_a_small_one_is_taken_whole():
    ranges = {"a": range(10), "b": range(10)}
    drawn = draw_settings(ranges, 7, seed=0)
    assert len({tuple(setting.items()) for setting in drawn}) == 7
    assert drawn == draw_settings(ranges, 7, seed=0) != draw_settings(ranges, 7, seed=1)
    assert draw_settings({}, 3, seed=0) == [{}]
    with pytest.raises(InputError, match="at least one setting"):
        draw_settings(ranges, 0, seed=0)


def test_antigone_prefers_the_setting_that_serves_the_errors_of_the_reference_within_five_points():
    trials = pd.DataFrame(
        {"log_loss": [0.3, 0.4, 0.5], "accuracy": [0.90, 0.86, 0.60], "worst": [0.1, 0.3, 0.6]},
    )
    found = Tuning([{"a": 1}, {"a": 2}, {"a": 3}], trials)
    assert found.best("log-loss") == {"a": 1}
    assert found.best("antigone") == {"a": 2}
    with pytest.raises(InputError, match="no criterion 'accuracy'"):
        found.best("accuracy")


def test_antigone_finds_the_setting_that_serves_a_minority_that_one_model_cannot_serve():
    """In a tenth of the rows the sign is turned: who knows the column serves them, a linear classifier cannot."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=3000), rng.random(3000) < 0.1])
    y = np.where(X[:, 1] == 1, X[:, 0] < 0, X[:, 0] > 0).astype(int)

    class Turned(StandardizedLogisticRegression):
        def __init__(self, turned=False, C=1.0, threshold=0.5):
            super().__init__(C, threshold=threshold)
            self.turned = turned

        def predict(self, X):
            decided = super().predict(X)
            return np.where((X[:, 1] == 1) & self.turned, 1 - decided, decided)

    found = tune(Turned(), X, y, ranges={"turned": (False, True)})
    by_turned = found.trials.set_axis(pd.Index([setting["turned"] for setting in found.settings]))
    assert by_turned["worst"][True] > 0.9
    assert by_turned["worst"][False] < 0.2
    assert found.best("antigone") == {"turned": True}


def test_the_distance_between_pseudo_groups_is_that_of_their_means_within_classes():
    X = np.array([[0.0], [2.0], [10.0], [10.0], [10.0], [14.0]])
    labels = np.array([0, 0, 1, 1, 1, 1])
    right = np.array([True, False, True, True, True, False])
    assert distance_between_means(X, labels, right) == pytest.approx((2 * 2 + 4 * 4) / 6)
    assert distance_between_means(X, labels, np.ones(6, bool)) == 0


def test_two_rows_are_too_few_to_select_by():
    with pytest.raises(InputError, match="too few rows to select"):
        tune(Recorded(), np.arange(2.0)[:, None], np.arange(2))
