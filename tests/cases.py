"""Cases of parametrized tests, divided between `make test` and `make slow`."""

import pytest
from hypothesis import settings


def checkerboard(rows, columns):
    """Return all pairs for `pytest.mark.parametrize`, every second one of them slow: each row and column stays."""
    return [
        pytest.param(row, column, marks=pytest.mark.slow if (i + j) % 2 else ())
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def first_by_default(cases, n):
    """Return the cases, all but the first n of them slow."""
    return [*cases[:n], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[n:])]


def slow_but(cases, *fast):
    """Return the cases, all but the named ones slow."""
    assert set(fast) <= set(cases)
    return [case if case in fast else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def examples(share, **others):
    """So many times as many examples as other laws have, in `make test` and in `make slow`."""
    return settings(max_examples=max(round(share * settings.default.max_examples), 1), **others)
