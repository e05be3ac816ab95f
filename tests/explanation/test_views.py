"""Columns as they are compared, and bounds that keep neighbouring values apart."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dafh.explanation.views import Described, View

# ---- bounds ----

numbers = st.floats(-1e12, 1e12)


@given(numbers, numbers)
def test_a_written_bound_keeps_neighbouring_values_apart(value, beyond):
    if value == beyond:
        return
    written = float(View("x").bound(value, beyond).replace(",", ""))
    assert beyond < written <= value if beyond < value else value <= written < beyond


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**7), st.booleans())
def test_a_written_date_keeps_neighbouring_seconds_apart(second, step, later):
    value, beyond = second / 86_400, (second + (step if later else -step)) / 86_400
    text = View("x", is_date=True).bound(value, beyond)
    written = (np.datetime64(text.replace(" ", "T"), "s") - np.datetime64(0, "s")).astype(int) / 86_400
    assert value <= written < beyond if later else beyond < written <= value


# ---- views ----


def test_values_without_gaps_standard_scores_and_ranks():
    described = Described.of(pd.DataFrame({"x": [1.0, 5.0, np.nan, 9.0]}))
    assert described.views == [View("x"), View("x", is_gap=True)]
    np.testing.assert_array_equal(described.values, [[1, 0], [5, 0], [5, 1], [9, 0]])
    np.testing.assert_array_equal(described.ranks, [[0, 0], [1, 0], [1, 1], [2, 0]])
    np.testing.assert_allclose(described.standardized.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(described.standardized.std(axis=0), 1)
