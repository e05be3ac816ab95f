"""Limits are where probabilities cross their levels, as a root finder of SciPy finds them."""

import numpy as np
import pytest
from scipy.optimize import elementwise
from scipy.special import ndtr

from dafh.stats.crossing import find_crossing
from dafh.stats.differences import Differences


def questions(n, kind):
    """Questions of all sizes, from clear harm to clear gain: rows that count alike, or have costs and weights."""
    rng = np.random.default_rng(0)
    n_rows = rng.integers(1, 3000, n)
    b = (n_rows * rng.random(n) * rng.choice([0, 0.02, 0.2, 0.5], n)).astype(int)
    c = ((n_rows - b) * rng.random(n) * rng.choice([0, 0.02, 0.2, 0.9], n)).astype(int)
    if kind == "alike":
        return Differences.of_counts(b, c, n_rows)
    counts = np.column_stack([b, b // 3, c, c // 2, n_rows])
    difference, size = np.array([1.0, 15.0, -5.0, -3.0, 0.0]), np.array([1.0, 3.0, 1.0, 3.0, 0.5])
    return Differences(difference, size, counts.astype(float), worst=5.0, largest=3.0)


@pytest.mark.parametrize("kind", ["alike", "costs and weights"])
@pytest.mark.parametrize("level", [1e-6, 0.025, 0.4, 0.9])
def test_limits_are_the_roots_that_scipy_finds(kind, level):
    found = questions(150, kind)
    limits = found.upper(level)
    inside = limits < found.worst
    assert inside.sum() > 90
    expected = elementwise.find_root(
        lambda h, q: found._reached(h, q.astype(np.intp)) - level,
        (-found.worst, found.worst * (1 - 1e-12)),
        args=(np.flatnonzero(inside).astype(float),),
        tolerances={"xatol": 1e-12, "xrtol": 1e-12, "fatol": 0.0, "frtol": 0.0},
    )
    np.testing.assert_allclose(limits[inside], expected.x, rtol=0, atol=2e-10 * found.worst)


@pytest.mark.parametrize("guess", [-1e9, 0.0, 1e9])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_a_bad_guess_costs_steps_but_no_digits(guess, spread):
    levels = np.array([1e-12, 0.05, 0.5, 0.999])
    found = find_crossing(lambda x, q: ndtr(-x), levels, (-40.0, 40.0), np.full(4, guess), np.full(4, spread))
    np.testing.assert_allclose(ndtr(-found), levels, rtol=1e-7)


def test_a_jump_is_found_by_bisection():
    found = find_crossing(
        lambda x, q: np.where(x < 0.3, 0.9, 0.01), np.array([0.05]), (-1.0, 1.0), np.zeros(1), np.ones(1)
    )
    np.testing.assert_allclose(found, 0.3, atol=2e-10)


@pytest.mark.parametrize(("kind", "steps", "mean"), [("alike", 7, 5.5), ("costs and weights", 12, 6.6)])
def test_few_evaluations_are_enough(kind, steps, mean, monkeypatch):
    found, asked = questions(150, kind), []
    reached = Differences._reached
    monkeypatch.setattr(Differences, "_reached", lambda self, h, q: asked.append(len(q)) or reached(self, h, q))
    found.upper(0.025)
    assert len(asked) <= steps
    assert sum(asked) <= mean * asked[0]


def test_equal_questions_are_asked_once():
    found = Differences.of_counts([3, 1, 3, 0], [2, 4, 2, 0], [9, 9, 9, 9])
    distinct, place = found.distinct()
    assert len(distinct.counts) == 3
    assert place.shape == (4,)
    np.testing.assert_array_equal(distinct.counts[place], found.counts)
