"""One thread for each matrix, and the process as it was afterwards."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dafh.linear import threads
from dafh.linear.threads import in_threads, one_thread


def blas_threads():
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """As many threads as users usually have, more than one."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this machine gives matrix products one thread")
        yield


def test_matrix_products_get_one_thread_and_theirs_back(two_threads):
    with one_thread():
        assert blas_threads() == {1}
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_inside_gives_the_threads_back(two_threads):
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert blas_threads() == {2}


def test_of_several_threads_the_first_limits_and_the_last_takes_it_back(monkeypatch):
    events, inside, first_left = [], Barrier(2), Barrier(2)
    words = {1: "limited", 2: "taken back"}
    fake = SimpleNamespace(get_num_threads=lambda: 2, set_num_threads=lambda number: events.append(words[number]))
    monkeypatch.setattr(threads, "_libraries", lambda: [fake])

    def stay(leaves_first):
        with one_thread():
            inside.wait(10)
            if not leaves_first:
                first_left.wait(10)
                assert events == ["limited"]
        if leaves_first:
            first_left.wait(10)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(stay, [True, False]))
    assert events == ["limited", "taken back"]


def test_results_come_in_the_order_of_the_tasks():
    np.testing.assert_array_equal(in_threads(lambda n: n * n, range(50), n_rows=10**6), np.arange(50) ** 2)
