"""The life of the guard in an estimator."""

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dafh.checks import NOTHING, Constraints, check_features, check_known_labels, check_parameters, number, one_of
from dafh.evaluation.guard import GuardKind, GuardReport, choose_servers
from dafh.evaluation.paired import PairedCounts
from dafh.exceptions import InputError
from dafh.frames import is_frame


class GuardedMixin(BaseEstimator):
    """Parameters of the guard, and how an estimator hands counts to it."""

    _guard_constraints: ClassVar[Constraints] = {
        "guard": (
            one_of("veto", "proof"),
            NOTHING,
        ),
        "guard_level": (number(0, 0.5, closed="neither"),),
        "guard_margin": (number(0, 1, closed="left"),),
        "calibration_size": (
            number(0, 1, closed="neither"),
            one_of("auto"),
        ),
    }
    guard: GuardKind | None
    guard_level: float
    guard_margin: float
    calibration_size: float | str
    classes_: NDArray[Any]
    _constraints: ClassVar[Constraints]

    def _check_guard(self) -> None:
        check_is_fitted(self)
        check_parameters(self, self._constraints)
        if self.guard is None:
            raise InputError("The guard is off: set_params(guard='veto') or 'proof' first.")

    def _check_calibration_rows(self, X: Any, y: Any) -> bool:
        """Whether the user brings rows for the guard."""
        if (X is None) != (y is None):
            raise InputError("X_calibration and y_calibration belong together: give both or neither.")
        if X is not None and self.guard is None:
            raise InputError("The guard is off and needs no calibration rows: set guard to 'veto' or 'proof'.")
        return X is not None

    def _check_labelled_rows(self, X: Any, y: Any) -> tuple[NDArray[Any], Any]:
        """Check rows for the guard before any work is done: their columns, and labels that the classifier knows."""
        values = check_features(self, X, reset=False)
        check_known_labels(y, self.classes_, len(values))
        return values, X if is_frame(X) else values

    def _calibration_share(self) -> float:
        """Share of rows for the guard; proof needs more of them, because only they can show anything."""
        if self.calibration_size == "auto":
            return 0.2 if self.guard == "proof" else 0.1
        return float(self.calibration_size)

    def _decide(self, counts: PairedCounts, *, cross_fitted: bool) -> GuardReport:
        assert self.guard is not None
        return choose_servers(
            counts, kind=self.guard, level=self.guard_level, margin=self.guard_margin, cross_fitted=cross_fitted
        )
