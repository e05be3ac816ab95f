"""The guard in a fit: which rows judge, which losses count, and who serves; the same for both estimators."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dafh.columns.hashes import row_hashes
from dafh.evaluation.compared import ComparedRows, check_largest_weight
from dafh.evaluation.guard import ALL_ROWS, GuardKind, GuardReport, check_servers, choose_servers
from dafh.evaluation.losses import LOSS_NAMES, TITLES, Loss, check_losses, level_in_words
from dafh.exceptions import InputError, SuspiciousInputWarning, WorseServedWarning
from dafh.frames import Table, check_attributes
from dafh.large import as_blocks, fresh_rows
from dafh.rows import LabelledRows, set_rows_aside
from dafh.text import quoted
from dafh.validation import NOTHING, Constraints, check_parameters, instance_of, number, one_of, sequence_of

PROOF_SHARE = 0.2
"""Share of the rows that "proof" holds out of everything: only they can show anything."""
# A cut-off that was estimated from decisions may miss one half by this much.
_LIKE_ONE_HALF = 0.01
# A sensitive group is named if its loss is higher with p ≤ 0.05. Not corrected for the number of groups, unlike the
# audit: this asks for a look, and one group too many costs less than one too few.
_LOSES, _MOST_NAMED = 0.05, 5
# Hashes of training rows that a model keeps. Where more than `_DISTINCT` of the training rows differ, it is no chance
# that more than `_MOST_SHARED` of the rows of a calibration are among them.
_KEPT_HASHES, _MOST_SHARED, _DISTINCT = 1000, 0.5, 0.9


def hold_out_for_proof(
    rows: LabelledRows, guard: GuardKind | None, rng: np.random.Generator
) -> tuple[LabelledRows, LabelledRows | None]:
    """Rows to train on, and rows that judge the final model, which only "proof" holds out.

    None are left to judge where a class is rare: nothing is proved then, and the pooled classifier serves.
    """
    if guard != "proof":
        return rows, None
    training, held_out = set_rows_aside(rows.label, PROOF_SHARE, rng, person=rows.person, time=rows.time)
    return rows.take(training), rows.take(held_out)


@dataclass(frozen=True, eq=False)
class RowAttributes:
    """Attributes of rows that training never sees: those the guard protects, and those that `fit` says who loses by.

    They are one table on the way through a fit, so that an attribute with both purposes is stored once.
    """

    table: Any = None
    """A data frame, or names of columns where rows are read in blocks; None without attributes."""
    guard: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def join(cls, X: Any, guard_features: Any, sensitive_features: Any) -> "RowAttributes":
        """Join what `fit` was given; a column with one name in both must hold the same values."""
        if sensitive_features is None and guard_features is None:
            return cls()
        if as_blocks(X) is not None:
            guard, sensitive = (
                (names,) if isinstance(names, str) else tuple(() if names is None else names)
                for names in (guard_features, sensitive_features)
            )
            return cls(tuple(dict.fromkeys((*guard, *sensitive))), guard, sensitive)
        n_rows, tables = X.shape[0] if hasattr(X, "shape") else len(X), []
        for name, values in {"guard_features": guard_features, "sensitive_features": sensitive_features}.items():
            tables.append(pd.DataFrame() if values is None else check_attributes(values, n_rows, name))
        guarded, audited = tables
        shared = [name for name in audited if name in guarded]
        differing = [name for name in shared if not guarded[name].equals(audited[name])]
        if differing:
            raise InputError(
                f"guard_features and sensitive_features differ in the column {quoted(differing[0])}: rename one."
            )
        table = pd.concat([guarded, audited.drop(columns=shared)], axis=1)
        return cls(table, *(tuple(map(str, attributes.columns)) for attributes in (guarded, audited)))

    def of(self, rows: ComparedRows, names: tuple[str, ...]) -> ComparedRows:
        """Rows with some of the attributes only."""
        if rows.attributes is None or not names:
            return replace(rows, attributes=None)
        table = rows.attributes.set_axis(list(dict.fromkeys((*self.guard, *self.sensitive))), axis=1)
        return replace(rows, attributes=table[list(names)])


def who_loses(rows: ComparedRows, serves: NDArray[np.intp], losses: Sequence[Loss]) -> str | None:
    """Name the groups of the rows' attributes that the fitted model serves worse than the pooled classifier.

    Largest harm first. None where nobody is shown to lose: for one group alone, by a one-sided test.
    """
    if rows.attributes is None or not len(rows.group):
        return None
    # The fitted model as one classifier for one group of all rows: who it harms does not depend on the groups that it
    # learned, and a sensitive group may lose in one of them and win in another.
    every, one_group = np.arange(len(rows.group)), np.zeros(len(rows.group), np.intp)
    served_right = rows.right[every, serves[rows.group]]
    served = replace(rows, right=np.column_stack([served_right, rows.right[:, -1]]), group=one_group, own=one_group[:1])
    checks = check_servers(served, losses, one_group[:1], margin=0.0)
    losers = checks[(checks["part"] != ALL_ROWS) & (checks["p_worse"] <= _LOSES)].sort_values("gain", kind="stable")
    if not len(losers):
        return None
    columns = (losers[name].head(_MOST_NAMED) for name in ("part", "loss", "own_loss", "pooled_loss", "rows"))
    named = [
        f"{group} ({TITLES[loss]} {level_in_words(loss, own)} instead of {level_in_words(loss, pooled)}, {size:,} rows)"
        for group, loss, own, pooled, size in zip(*columns, strict=True)
    ]
    more = len(losers) - len(named)
    tail = f"; and {more} more" if more else ""
    return f"Worse off than with the pooled classifier, on held-out rows: {'; '.join(named)}{tail}."


class GuardedMixin(BaseEstimator):
    """Parameters of the guard, and what an estimator does with it.

    An estimator brings three methods: `_check_more` checks labelled rows after `fit`, `_compare` compares every own
    classifier as it was trained with the pooled one, and `_apply_serving` lets the classifiers serve as `serves_` says.
    """

    _guard_constraints: ClassVar[Constraints] = {
        "guard": (one_of("evidence", "proof"), NOTHING),
        "guard_level": (number(0, 0.5),),
        "guard_margin": (number(0, 1, closed="left"),),
        "guard_losses": (
            one_of("auto", *LOSS_NAMES),
            sequence_of(one_of(*LOSS_NAMES), f"one or more of {', '.join(LOSS_NAMES)}"),
        ),
        "costs": (instance_of(Mapping), NOTHING),
    }
    _constraints: ClassVar[Constraints]
    guard: GuardKind | None
    guard_level: float
    guard_margin: float
    guard_losses: str | Sequence[str]
    costs: Mapping[str, float] | None
    classes_: NDArray[Any]
    n_groups_: int
    serves_: NDArray[np.intp]
    guard_report_: GuardReport | None
    losses_: tuple[Loss, ...]
    largest_weight_: float | None
    training_hashes_: NDArray[np.uint64]

    def _check_more(self, X: Table, y: ArrayLike, **attributes: Any) -> LabelledRows:
        raise NotImplementedError

    def _compare(self, rows: LabelledRows) -> ComparedRows:
        raise NotImplementedError

    def _apply_serving(self) -> None:
        raise NotImplementedError

    def _join_attributes(self, X: Any, guard_features: Any, sensitive_features: Any) -> RowAttributes:
        """Attributes of the rows of a fit; refuse what the guard cannot use, before any work is done."""
        if self.guard is None and guard_features is not None:
            raise InputError("The guard is off and takes no guard_features: set guard to 'evidence' or 'proof'.")
        return RowAttributes.join(X, guard_features, sensitive_features)

    def _check_losses(self, cutoff: float = 0.5) -> None:
        """Set the losses that must not get worse; they need two classes, unless it is the error rate alone.

        Without other wishes, a cut-off says what they are: who decides at 0.3 counts a false negative as 2.3 false
        positives, (1 − c) / c at the cut-off c, and would lose by fewer errors.
        """
        names, costs = self.guard_losses, self.costs
        # A cut-off that was read off decisions is never exactly one half, and costs of 1 to 1.04 are nobody's wish.
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

    def _keep_hashes(self, rows: LabelledRows) -> None:
        """Keep the smallest hashes of training rows: any table can be compared with them, without keeping all rows."""
        hashes = np.unique(_hashes(rows))
        self.training_hashes_ = hashes[: _KEPT_HASHES if len(hashes) > _DISTINCT * len(rows) else 0]

    def _warn_of_training_rows(self, rows: LabelledRows) -> None:
        """Warn of rows for the guard that are training rows: they show that every classifier is good."""
        kept = self.training_hashes_
        if not len(kept):
            return
        hashes = _hashes(rows)
        # Of training rows, only hashes up to the largest that is kept are known, if there are more of them.
        comparable = hashes[hashes <= kept[-1]] if len(kept) == _KEPT_HASHES else hashes
        if len(comparable) > 1 and np.isin(comparable, kept).mean() > _MOST_SHARED:
            warnings.warn(
                "X holds rows that the model was trained on, which show every classifier better than it is. What the "
                "guard promises holds for rows that training has not seen only.",
                SuspiciousInputWarning,
                stacklevel=3,
            )

    def _keep_largest_weight(self, largest: float | None, rows: LabelledRows) -> None:
        check_largest_weight(largest, rows.weight)
        self.largest_weight_ = None if largest is None else float(largest)

    def _judge(self, rows: ComparedRows | None, attributes: RowAttributes, *, cross_fitted: bool = False) -> str | None:
        """Let the guard decide who serves whom, if it is on; return a sentence if sensitive groups lose by it."""
        if rows is None:
            self._serve(None)
            return None
        report = None
        if self.guard is not None:
            guarded = attributes.of(rows, attributes.guard)
            report = choose_servers(
                # 0 stands for "not said": the guard then takes the largest weight of its rows.
                replace(guarded, largest_weight=self.largest_weight_ or 0.0),
                kind=self.guard,
                level=self.guard_level,
                margin=self.guard_margin,
                losses=self.losses_,
                cross_fitted=cross_fitted,
            )
            # The cost that a cut-off implies is told where nobody has asked for it.
            implied = [loss.costs for loss in self.losses_ if loss.costs is not None and self.costs is None]
            notes = tuple(costs.in_words() for costs in implied if costs.fp != costs.fn)
            report = replace(report, notes=(*notes, *report.notes))
        self._serve(report)
        return who_loses(attributes.of(rows, attributes.sensitive), self.serves_, self.losses_)

    def _serve(self, report: GuardReport | None) -> None:
        """Serve as a report says; without one, every classifier serves its own group."""
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

        The rows judge the model as it is, so that all the guard promises holds for the population they come from.
        Of training rows it warns. The parameters of the guard may have been changed before, by `set_params`.

        Parameters
        ----------
        X : array or data frame of shape (n, d), or rows elsewhere
            As in `fit` of `DAFHClassifier`: of files and collections, a million rows at most are drawn.
        y : array of shape (n,)
            Labels that the classifier knows.
        sensitive_features : data frame, series or array with n rows, optional
            For models whose groups depend on them; the groups that they define are named if they lose, as by `fit`.
        sample_weight : array of shape (n,), optional
        largest_weight : float, optional
            As in `fit`; by default that of `fit`, if it was given there.
        guard_features : data frame with n rows, optional
            Attributes that define declared groups, as in `fit`.
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to, as in `fit`.
        """
        check_is_fitted(self)
        check_parameters(self, self._constraints)  # They may have changed since `fit`, by `set_params`.
        if self.guard is None:
            raise InputError("The guard is off: set_params(guard='evidence') or 'proof' first.")
        attributes = RowAttributes.join(X, guard_features, sensitive_features)
        options = {"sample_weight": sample_weight, "guard_features": attributes.table, "persons": persons}
        blocks = as_blocks(X)
        if blocks is not None:
            X, y, options = fresh_rows(blocks, y, **options)
        elif sensitive_features is not None:
            options["sensitive_features"] = sensitive_features
        rows = self._check_more(X, y, **options)
        self._warn_of_training_rows(rows)
        self._keep_largest_weight(self.largest_weight_ if largest_weight is None else largest_weight, rows)
        self._check_losses(getattr(self, "threshold_", 0.5))
        losers = self._judge(self._compare(rows), attributes)
        if losers:
            warnings.warn(losers, WorseServedWarning, stacklevel=2)
        return self


def _hashes(rows: LabelledRows) -> NDArray[np.uint64]:
    """Hash the columns of each row."""
    return row_hashes(rows.X if isinstance(rows.X, pd.DataFrame) else pd.DataFrame(np.asarray(rows.X)))
