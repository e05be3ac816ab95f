"""Limits of what is read, and tables that broke: refused in one sentence."""

import pandas as pd
import pytest

from dafh.columns.labels import read_labels
from dafh.exceptions import InputError


@pytest.mark.parametrize("values", [["0.5", "1.5"], [0.5, 1.5], ["1", "2.5"]])
def test_labels_that_are_fractions_are_refused_from_text_and_from_numbers(values):
    with pytest.raises(InputError, match=r"holds fractions like"):
        read_labels(pd.Series(values * 5, name="y"))


def test_numbers_among_words_are_labels():
    assert set(read_labels(pd.Series(["0.5", "high"], name="y"))) == {"0.5", "high"}
