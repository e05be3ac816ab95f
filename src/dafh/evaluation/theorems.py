"""The paper's Theorems 1 and 2 for a fitted model, as corrected in `dafh.stats.bounds`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from dafh.classifiers import final_classifier
from dafh.columns.encoder import TableEncoder
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.exceptions import InputError
from dafh.linear import linear_discrepancy
from dafh.stats.bounds import deviation_epsilon, discrepancy_bound


@dataclass(frozen=True, eq=False)
class Theorems:
    """What the theorems say about a fitted model, as `theorems` returns it; prints as two sentences.

    Examples
    --------
    >>> print(Theorems(degree=0.02, epsilon=0.07, level=0.05, smallest_group=5000))
    Theorem 1: the degree of fairness without harm is 0.020 ± 0.070 with probability 95% (smallest group: 5,000 rows).
    """

    degree: float
    """Degree of fairness without harm on the given rows, the paper's objective."""
    epsilon: float
    """Theorem 1: the true degree is within so much of it, with probability `level` or less of being wrong."""
    level: float
    smallest_group: int
    """Rows of the smallest group."""
    discrepancies: NDArray[np.float64] | None = None
    """Theorem 2: of each learned group and the named group that it is compared with; None without an attribute."""
    named: tuple[Any, ...] = ()
    """The value of the attribute that each learned group is compared with."""

    @property
    def shortfall(self) -> float | None:
        """Theorem 2: the most by which the best degree for the named groups exceeds the best for the learned ones."""
        return None if self.discrepancies is None else discrepancy_bound(self.discrepancies)

    def __str__(self) -> str:
        text = (
            f"Theorem 1: the degree of fairness without harm is {self.degree:.3f} ± {self.epsilon:.3f} with "
            f"probability {1 - self.level:.0%} (smallest group: {self.smallest_group:,} rows)."
        )
        if self.discrepancies is None:
            return text
        pairs = ", ".join(f"{name} {value:.2f}" for name, value in zip(self.named, self.discrepancies, strict=True))
        return (
            f"{text}\nTheorem 2: groups by the attribute could exceed the best degree by {self.shortfall:.2f} at most "
            f"(discrepancies: {pairs})."
        )


def theorems(model: Any, X: Any, y: ArrayLike, *, attribute: ArrayLike | None = None, level: float = 0.05) -> Theorems:
    """Return the numbers of the paper's Theorems 1 and 2 for a fitted model, on rows that neither trained nor chose it.

    Parameters
    ----------
    model : fitted model of this package with groups, or a pipeline that ends in one
    X, y : rows and their labels
    attribute : array of shape (n,), optional
        A sensitive attribute with as many values as the model has groups, for Theorem 2. Each learned group is compared
        with the value that it shares most rows with, one to one.
    level : float, default=0.05
        Accepted probability that Theorem 1 is wrong.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.datasets import make_grouped_classification
    >>> data = make_grouped_classification(3000, random_state=0)
    >>> model = DAFHClassifier(2, pooled="linear", random_state=0).fit(data.X[:2000], data.y[:2000])
    >>> found = theorems(model, data.X[2000:], data.y[2000:])
    >>> found.degree - found.epsilon > 0
    True
    """
    matrix = PreferenceMatrix.of(model, X, y)
    smallest = int(matrix.sizes.min())
    epsilon = float(deviation_epsilon(smallest, len(matrix.own), level))
    result = Theorems(matrix.degree, epsilon, level, smallest)
    if attribute is None:
        return result
    n_groups = final_classifier(model).n_groups_
    groups = np.asarray(model.predict_group(X))
    code, values = pd.factorize(np.asarray(attribute), sort=True)
    if len(code) != len(groups) or len(values) != n_groups or len(np.unique(groups)) != n_groups:
        raise InputError(
            f"attribute must have a value for each row of X, and as many different ones as there are groups with rows: "
            f"{len(values)} values for {len(np.unique(groups))} of {n_groups} groups."
        )
    shared = np.array([np.bincount(code[groups == k], minlength=n_groups) for k in range(n_groups)])
    place = linear_sum_assignment(shared, maximize=True)[1]
    numbers = np.asarray(TableEncoder().fit(X).transform(X), np.float64)
    discrepancies = [linear_discrepancy(numbers[groups == k], numbers[code == place[k]]) for k in range(n_groups)]
    return Theorems(matrix.degree, epsilon, level, smallest, np.array(discrepancies), tuple(values[place]))
