"""The guard logic of an estimator, from the rows it sees to the classifiers that serve.

It is the same for both estimators. `fit` checks the user's calibration rows, if there are any, or holds
rows out where the guard has to prove something; trains; then lets the guard judge and serve. `recalibrate` repeats the
last step on fresh rows. What an estimator adds is how its classifiers are compared on some rows, and how they are
compared by cross-fitting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dafh.evaluation.compared import ComparedRows, check_largest_weight
from dafh.evaluation.guard import GuardKind, GuardReport, choose_servers
from dafh.evaluation.losses import LOSS_NAMES, Loss, check_losses
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.large import as_blocks, fresh_rows
from dafh.rows import LabelledRows, refuse_training_rows, set_rows_aside
from dafh.validation import NOTHING, Constraints, check_parameters, instance_of, number, one_of, sequence_of

# Share of the rows that "proof" holds out of everything: only they can show anything.
_PROOF_SHARE = 0.2
# A cut-off that is found from decisions may miss one half by this much.
_LIKE_ONE_HALF = 0.01


class GuardedMixin(BaseEstimator):
    """Parameters of the guard, and everything an estimator does with it."""

    _guard_constraints: ClassVar[Constraints] = {
        "guard": (one_of("evidence", "proof"), NOTHING),
        "guard_level": (number(0, 0.5),),
        "guard_margin": (number(0, 1, closed="left"),),
        "guard_losses": (
            one_of("auto", *LOSS_NAMES),
            sequence_of(one_of(*LOSS_NAMES), f"one or more of {', '.join(LOSS_NAMES)}"),
        ),
        "costs": (instance_of(Mapping), NOTHING),
        "calibration_size": (number(0, 1), one_of("auto")),
    }
    _constraints: ClassVar[Constraints]
    guard: GuardKind | None
    guard_level: float
    guard_margin: float
    guard_losses: str | Sequence[str]
    costs: Mapping[str, float] | None
    calibration_size: float | str
    classes_: NDArray[Any]
    n_groups_: int
    serves_: NDArray[np.intp]
    guard_report_: GuardReport | None
    losses_: tuple[Loss, ...]
    largest_weight_: float | None

    # ---- what an estimator brings ----

    def _compare(self, rows: LabelledRows) -> ComparedRows:
        """Compare every own classifier as it was trained, whoever it serves, with the pooled one."""
        raise NotImplementedError

    def _apply_serving(self) -> None:
        """Let the classifiers serve as `serves_` says."""
        raise NotImplementedError

    # ---- rows to judge by ----

    def _check_losses(self, cutoff: float = 0.5) -> None:
        """Set the losses that must not get worse; they need two classes, unless it is the error rate alone.

        Without other wishes, a cut-off says what they are: who decides at 0.3 counts a false negative as 2.3 false
        positives, and would lose by fewer errors.
        """
        names, costs = self.guard_losses, self.costs
        is_even = abs(cutoff - 0.5) < _LIKE_ONE_HALF or len(self.classes_) != 2
        if names == "auto":
            names = "error" if costs is None and is_even else "cost"
        if costs is None and "cost" in names:
            costs = {"fp": 1.0, "fn": 1.0 if is_even else (1 - cutoff) / cutoff}
        losses = check_losses(names, costs)
        for loss in losses:
            if loss.name != "error" and len(self.classes_) != 2:
                raise InputError(f"The {loss.title} needs two classes, and y holds {len(self.classes_)}.")
        self.losses_ = losses

    def _bound_weights(self, largest: float | None, rows: LabelledRows) -> None:
        """Keep the largest weight of the population, as far as it is known."""
        check_largest_weight(largest, rows.weight)
        self.largest_weight_ = None if largest is None else float(largest)

    def _check_calibration(
        self,
        X: Table | None,
        y: ArrayLike | None,
        training: Mapping[str, object],
        calibration: Mapping[str, object],
    ) -> None:
        """Refuse what the guard cannot use, before any work is done.

        `training` and `calibration` are what is known about the rows for training and about calibration rows.
        """
        if (X is None) != (y is None):
            raise InputError("X_calibration and y_calibration belong together: give both or neither.")
        given = X is not None
        if self.guard is None and (given or training["guard_features"] is not None):
            raise InputError(
                "The guard is off and takes neither calibration rows nor guard_features: set guard to 'evidence' or "
                "'proof'."
            )
        for name in ("guard_features", "persons"):
            if given and training[name] is not None and calibration[name] is None:
                raise InputError(f"The guard judges by X_calibration only: give {name}_calibration beside {name}.")
            if not given and calibration[name] is not None:
                raise InputError(f"{name}_calibration belongs to X_calibration: give both or neither.")

    def _calibration_rows(
        self, X: Table | None, y: ArrayLike | None, sensitive_features: Table | None = None, **known: Any
    ) -> LabelledRows | None:
        """Return the user's own calibration rows, if there are any; columns and classes must be known by now."""
        if X is None or y is None:
            return None
        return self._check_more(X, y, sensitive_features, **known)

    def _check_more(self, X: Table, y: ArrayLike, sensitive_features: Table | None, **known: Any) -> LabelledRows:
        """Check labelled rows after fit, or for it, as the estimator takes them."""
        return LabelledRows.check_more(self, X, y, numbers=True, sensitive_features=sensitive_features, **known)

    def _hold_out_for_proof(
        self, rows: LabelledRows, judges: LabelledRows | None, rng: np.random.Generator
    ) -> tuple[LabelledRows, LabelledRows | None]:
        """Rows to train on, and rows that judge the final model.

        Where the user brings none, "proof" holds rows out of everything, the pooled classifier included.
        """
        if judges is not None:
            refuse_training_rows(judges, rows)
        if self.guard != "proof" or judges is not None:
            return rows, judges
        share = self._proof_share()
        # None may be left where a class is rare: nothing is proved then, and the pooled classifier serves.
        kept, apart = set_rows_aside(rows.label, share, rng, person=rows.person, time=rows.time)
        return rows.take(kept), rows.take(apart)

    def _proof_share(self) -> float:
        """Share of the rows that "proof" holds out of everything."""
        if self.guard != "proof":
            return 0.0
        return _PROOF_SHARE if self.calibration_size == "auto" else float(self.calibration_size)

    # ---- judging and serving ----

    def _judge(self, judges: LabelledRows | None, cross_fitted: Callable[[], ComparedRows]) -> None:
        """Let the guard decide who serves whom, by rows that judge the final model or else by cross-fitting."""
        if self.guard is None:
            self._serve(None)
        elif judges is not None:
            self._serve(self._decide(self._compared(judges), cross_fitted=False))
        else:
            self._serve(self._decide(cross_fitted(), cross_fitted=True))

    def _compared(self, rows: LabelledRows) -> ComparedRows:
        return self._compare(rows) if len(rows) else ComparedRows.none(self.n_groups_)

    def _decide(self, rows: ComparedRows, *, cross_fitted: bool) -> GuardReport:
        assert self.guard is not None  # Callers have asked; this tells the type checker.
        rows = replace(rows, largest_weight=self.largest_weight_ or 0.0)
        report = choose_servers(
            rows,
            kind=self.guard,
            level=self.guard_level,
            margin=self.guard_margin,
            losses=self.losses_,
            cross_fitted=cross_fitted,
        )
        return replace(report, notes=(*self._implied_cost(), *report.notes))

    def _implied_cost(self) -> tuple[str, ...]:
        """Say which cost the cut-off implies, where that is a loss of the guard and nobody has asked for it."""
        implied = [loss.costs for loss in self.losses_ if loss.costs is not None and self.costs is None]
        return tuple(costs.in_words() for costs in implied if costs.fp != costs.fn)

    def _serve(self, report: GuardReport | None) -> None:
        """Serve as the guard has decided; without a guard, every classifier serves its own group."""
        self.guard_report_ = report
        self.serves_ = np.arange(self.n_groups_) if report is None else report.serves
        self._apply_serving()

    def recalibrate(
        self,
        X: Table,
        y: ArrayLike,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        guard_features: Table | None = None,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Let the guard decide anew, on fresh rows that were used for nothing else; nothing is refitted.

        The rows judge the model as it is, so that all the guard promises holds for the population they come from. The
        parameters of the guard may have been changed before, by `set_params`.

        Parameters
        ----------
        X : array or data frame of shape (n, d), or rows elsewhere
            As in `fit` of `DAFHClassifier`: of files and collections, a million rows at most are drawn.
        y : array of shape (n,)
            Labels that the classifier knows.
        sensitive_features : data frame, series or array with n rows, optional
            For models whose groups depend on them.
        sample_weight : array of shape (n,), optional
        largest_weight : float, optional
            As in `fit`; by default that of `fit`, if it was given there.
        guard_features : data frame with n rows, optional
            Attributes that define declared groups, as in `fit`.
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to, as in `fit`.
        """
        check_is_fitted(self)
        check_parameters(self, self._constraints)  # They may have changed since fit.
        if self.guard is None:
            raise InputError("The guard is off: set_params(guard='evidence') or 'proof' first.")
        known = {"sample_weight": sample_weight, "guard_features": guard_features, "persons": persons}
        blocks = as_blocks(X)
        if blocks is not None:
            X, y, known = fresh_rows(blocks, y, **known)
        rows = self._check_more(X, y, sensitive_features, **known)
        self._bound_weights(self.largest_weight_ if largest_weight is None else largest_weight, rows)
        self._check_losses(getattr(self, "threshold_", 0.5))
        self._serve(self._decide(self._compared(rows), cross_fitted=False))
        return self
