"""Rows for monitors: the world in which a model was trained, and others."""

import copy
import functools
from types import SimpleNamespace

import numpy as np

from models import rules_case, workers


@functools.cache
def good_rows(n=1500, seed=1):
    """Fresh rows of the world in which `rules_case` was trained: both groups gain by their own classifiers."""
    return workers(n, seed=seed)


@functools.cache
def bad_rows(n=1500, seed=2):
    """Rows of another world, in which experience no longer depends on the job: own classifiers do harm."""
    return workers(n, seed=seed, flip=0.0)


def fresh_model():
    """A copy that a test may change."""
    return copy.deepcopy(rules_case().model)


def parts_of(rows, size):
    """The rows in batches."""
    for first in range(0, len(rows.y), size):
        part = slice(first, first + size)
        yield SimpleNamespace(X=rows.X[part], y=rows.y[part], sensitive=rows.sensitive[part])


def same_evidence(one, other):
    """Compare two monitors by all that they count."""
    columns = ["rows", "own_worse", "own_better", "gain", "harm_evidence", "benefit_evidence", "change_evidence"]
    np.testing.assert_allclose(one.table()[columns], other.table()[columns], rtol=1e-9)
