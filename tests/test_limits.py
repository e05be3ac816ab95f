"""Labels, scorecards and threads at their limits."""

import threading

import numpy as np
import pandas as pd
import pytest

from dafh import Scorecard
from dafh.exceptions import InputError
from dafh.linear import scorecard, threads
from dafh.linear.threads import one_thread
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


def test_the_threads_of_products_are_limited_from_any_thread():
    libraries = threads._libraries()
    before = [library.get_num_threads() for library in libraries]
    for library in libraries:
        threads._set_threads(library, 2)
    seen = []

    def work():
        with one_thread():
            seen.extend(library.get_num_threads() for library in libraries)

    try:
        with one_thread():  # The main thread has been here first.
            pass
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        assert seen == [1] * len(libraries)
        assert [library.get_num_threads() for library in libraries] == [2] * len(libraries)
    finally:
        for library, number in zip(libraries, before, strict=True):
            threads._set_threads(library, number)
