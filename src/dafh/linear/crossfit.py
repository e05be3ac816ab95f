"""Out-of-fold logits of a penalised regression, and logits nested in them, in the time of a few fits.

Leaving out a fold changes a solution little. Every fit without some folds therefore begins at the solution for all
rows, with the sums of curvature that it needs by subtraction, and takes a few steps that only sum gradients. They end
when nothing is left to gain: the solution is that of the rows it was fitted on, whatever it began with.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dafh.linear.newton import Regression, Solution, fit_penalized
from dafh.linear.threads import in_threads

# Per unit of weight: far below what a fold can tell apart, and reached in three or four steps.
_TOLERANCE = 1e-9


class Folds:
    """The rows of a regression in folds, with the curvature of each fold at a solution for all rows."""

    def __init__(self, rows: Regression, solution: Solution, fold: NDArray[np.integer]) -> None:
        self.rows, self.solution, self.fold = rows, solution, fold
        logits = rows.offset + rows.design.logits(solution.coefficients)
        self._curvatures = rows.curvatures_by(logits, fold, int(fold.max()) + 1)

    def out_of_fold(self, penalty: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Logits of every row by a fit without its fold, (n, m)."""
        logits = np.empty_like(self.rows.offset)
        for number in range(len(self._curvatures)):
            members = np.flatnonzero(self.fold == number)
            found = fit_penalized(
                self.rows.take(np.flatnonzero(self.fold != number)),
                self.solution.penalty if penalty is None else penalty,
                start=self.solution.coefficients,
                curvatures=np.delete(self._curvatures, number, axis=0).sum(axis=0),
                tolerance=_TOLERANCE,
            )
            logits[members] = self.rows.offset[members] + self.rows.design.take(members).logits(found.coefficients)
        return logits


def nested_logits(
    rows: Regression, fold: NDArray[np.integer], refit: Callable[[Regression], Solution]
) -> NDArray[np.float64]:
    """Logits for training and judging without a row that judges ever having been seen, (folds + 1, n, m).

    Block f is for what is trained without fold f: on the rows of fold f, logits of a fit on all other folds; on every
    other row, logits of a fit without fold f and without the row's own fold. The last block is for what is trained on
    all rows: every row's logits by a fit without its own fold.

    Parameters
    ----------
    rows : Regression
    fold : array of shape (n,)
        Number of each row's fold.
    refit : function
        Fits some of the rows, strengths included. What it finds must not depend on the labels of other rows.
    """
    n_folds = int(fold.max()) + 1
    blocks = np.empty((n_folds + 1, *rows.offset.shape))

    def fill(number: int) -> None:
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        rest = rows.take(outside)
        found = refit(rest)
        blocks[number, inside] = rows.offset[inside] + rows.design.take(inside).logits(found.coefficients)
        # Folds are numbered anew, without a gap.
        blocks[number, outside] = Folds(rest, found, fold[outside] - (fold[outside] > number)).out_of_fold()
        blocks[n_folds, inside] = blocks[number, inside]

    in_threads(fill, range(n_folds), len(fold))
    return blocks


def nested_probabilities(
    fit_and_predict: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.float64]],
    fold: NDArray[np.integer],
    shape: Iterable[int],
) -> NDArray[np.float64]:
    """Nested predictions of any classifier, (folds + 1, n, classes); see `nested_logits`.

    A fit without two folds serves both of them: with F folds there are F + F (F − 1) / 2 fits.

    Parameters
    ----------
    fit_and_predict : function
        Takes rows to fit on and rows to predict, and returns probabilities.
    fold : array of shape (n,)
    shape : (n, classes)
    """
    n_folds = int(fold.max()) + 1
    blocks = np.empty((n_folds + 1, *shape))
    for one in range(n_folds):
        inside, outside = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        blocks[one, inside] = blocks[n_folds, inside] = fit_and_predict(outside, inside)
        for other in range(one):
            both = np.flatnonzero((fold == one) | (fold == other))
            predicted = fit_and_predict(np.flatnonzero((fold != one) & (fold != other)), both)
            blocks[one, both[fold[both] == other]] = predicted[fold[both] == other]
            blocks[other, both[fold[both] == one]] = predicted[fold[both] == one]
    return blocks
