"""Limits are where probabilities cross their levels, as a root finder of SciPy finds them."""

import numpy as np
import pytest
from scipy.special import ndtr

from dafh.stats.differences import find_crossing


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
