"""Out-of-fold logits of a penalised regression, in the time of a few fits.

Leaving out a fold changes a solution little. Every fit without some folds therefore begins at the solution for all
rows, with the sums of curvature that it needs by subtraction, and takes a few steps that only sum gradients. They end
when nothing is left to gain: the solution is that of the rows it was fitted on, whatever it began with.
"""

import numpy as np
from numpy.typing import NDArray

from dafh.linear.newton import Regression, Solution, fit_penalized
from dafh.linear.threads import in_threads


class Folds:
    """The rows of a regression in folds, with the curvature of each fold at a solution for all rows."""

    def __init__(self, rows: Regression, solution: Solution, fold: NDArray[np.integer]) -> None:
        self.rows, self.solution, self.fold = rows, solution, fold
        logits = rows.offset + rows.design.logits(solution.coefficients)
        self._curvatures = rows.curvatures_by(logits, fold, int(fold.max()) + 1)

    def out_of_fold(
        self, penalty: NDArray[np.float64] | None = None, *, tolerance: float = 1e-9
    ) -> NDArray[np.float64]:
        """Logits of every row by a fit without its fold, (n, m).

        Parameters
        ----------
        penalty : array of shape (p,), optional
            That of the solution if not given.
        tolerance : float
            What may be left to gain, per unit of weight. The default is far below what a fold can tell apart, and is
            reached in three or four steps.
        """
        logits = np.empty_like(self.rows.offset)

        def fill(number: int) -> None:
            members = np.flatnonzero(self.fold == number)
            found = fit_penalized(
                self.rows.take(np.flatnonzero(self.fold != number)),
                self.solution.penalty if penalty is None else penalty,
                start=self.solution.coefficients,
                curvatures=np.delete(self._curvatures, number, axis=0).sum(axis=0),
                tolerance=tolerance,
            )
            logits[members] = self.rows.offset[members] + self.rows.design.take(members).logits(found.coefficients)

        in_threads(fill, range(len(self._curvatures)), len(self.fold))
        return logits
