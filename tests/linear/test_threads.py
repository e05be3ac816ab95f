"""One thread for each matrix, and the process as it was afterwards."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dafh.linear.threads import in_threads, one_thread


def blas_threads():
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


def test_matrix_products_get_one_thread_and_theirs_back():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this machine gives matrix products one thread")
        with one_thread():
            assert blas_threads() == {1}
            with pytest.raises(ZeroDivisionError), one_thread():
                1 / 0  # noqa: B018
            assert blas_threads() == {1}
        assert blas_threads() == {2}


@pytest.mark.parametrize("n_rows", [10, 10**6])
def test_results_come_in_the_order_of_the_tasks(n_rows):
    np.testing.assert_array_equal(in_threads(lambda n: n * n, range(50), n_rows), np.arange(50) ** 2)
