"""Limits of what is read, and tables that broke: refused in one sentence."""

import numpy as np
import pandas as pd
import pytest

from dafh import Scorecard
from dafh.exceptions import InputError
from dafh.linear import scorecard
from dafh.tables.labels import read_labels


@pytest.mark.parametrize("values", [["0.5", "1.5"], [0.5, 1.5], ["1", "2.5"]])
def test_labels_that_are_fractions_are_refused_from_text_and_from_numbers(values):
    with pytest.raises(InputError, match=r"holds fractions like"):
        read_labels(pd.Series(values * 5, name="y"))


def test_numbers_among_words_are_labels():
    assert set(read_labels(pd.Series(["0.5", "high"], name="y"))) == {"0.5", "high"}


def test_a_scorecard_of_too_many_bins_is_refused_before_it_takes_the_memory(monkeypatch):
    monkeypatch.setattr(scorecard, "_LARGEST_CURVATURE", 10**2)
    X = pd.DataFrame({f"c{i}": np.arange(40) % (i + 2) for i in range(8)})
    with pytest.raises(InputError, match=r"bins in all, and a scorecard takes up to 10"):
        Scorecard().fit(X, np.arange(40) % 2)
