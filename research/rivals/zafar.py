"""Preference-based fairness of Zafar et al. (2017): one linear classifier per group of an attribute.

The one rival that needs the attribute, in training and for every prediction. "Preferred impact": each group is accepted
at least as often by its own classifier as by one classifier with equal acceptance of all groups. "Preferred treatment":
at least as often as by any other group's classifier. Both are about acceptance, not about errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from dafh.checks.parameters import NOTHING, RANDOM_STATE, Allowed, Constraints, RandomState, number, one_of
from dafh.classifiers.fitting import fit_clone, seeded
from dafh.classifiers.protocols import Classifier
from dafh.estimators.decoupled import DecoupledClassifier, Unfitted
from dafh.estimators.guarded import GuardedMixin
from dafh.evaluation.guard_report import GuardKind
from dafh.evaluation.losses import LossName
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.threads import one_thread
from dafh.partitions import AttributePartition
from research.rivals.convex_concave import Floats, Group, Problem, parity_minimum, solve
from dafh.rows.checked import CheckedRows

Preference = Literal["impact", "treatment", "both"]


class ZafarClassifier(DecoupledClassifier):
    """Fit one logistic regression per group of an attribute, so that each group prefers its own.

    Groups, guard, prediction and audit are those of `DecoupledClassifier`; only the own classifiers are fitted together
    instead of one by one. Two classes.

    Parameters
    ----------
    attribute : str or None, default=None
        Column of `sensitive_features` that defines the groups; None is the only one there is.
    preference : {"impact", "treatment", "both"}, default="both"
        Whom the benefit of a group from its own classifier is compared with: one classifier whose mean score is the
        same in all groups ("impact"), those of the other groups ("treatment"), or both.
    accepted : label or None, default=None
        The decision that people want; None is the second label in sorted order.
    l2 : float, default=1e-3
        Strength of the L2 penalty, on standardised columns, beside the mean loss of a row.
    tolerance : float, default=1e-4
        By how much a constraint on the mean positive part of the scores may be violated.
    guard, guard_level, guard_margin, guard_losses, costs, calibration_size, random_state
        As in `DecoupledClassifier`.

    Attributes
    ----------
    n_tangents_ : int
        Convex problems that were solved; 0 where the constraints are inactive.
    violations_ : array
        By how much each constraint is violated on the training rows; 0 or less where it holds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex, X = rng.choice(["f", "m"], 600), rng.normal(size=(600, 2))
    >>> hired = X[:, 0] + (sex == "m") > 0.5
    >>> model = ZafarClassifier().fit(X, hired, sensitive_features=sex)
    >>> bool(model.violations_.max() <= 1e-4)
    True
    """

    RANGES: ClassVar[dict[str, tuple[float, ...]]] = {"l2": (1e-4, 1e-3, 1e-2, 1e-1)}

    _constraints: ClassVar[Constraints] = {
        "attribute": (Allowed("a str", lambda value: isinstance(value, str)), NOTHING),
        "preference": (one_of("impact", "treatment", "both"),),
        "l2": (number(0, closed="left"),),
        "tolerance": (number(0),),
        "random_state": (RANDOM_STATE,),
        **GuardedMixin._guard_constraints,
    }
    # What `DecoupledClassifier` calls parameters is fixed here.
    partition: None = None
    estimator: None = None
    pooled: None = None
    n_tangents_: int
    violations_: Floats

    def __init__(
        self,
        attribute: str | None = None,
        *,
        preference: Preference = "both",
        accepted: object = None,
        l2: float = 1e-3,
        tolerance: float = 1e-4,
        guard: GuardKind | None = None,
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        guard_losses: Sequence[LossName] = ("error",),
        costs: Mapping[str, float] | None = None,
        calibration_size: float | str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.attribute = attribute
        self.preference = preference
        self.accepted = accepted
        self.l2 = l2
        self.tolerance = tolerance
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.guard_losses = guard_losses
        self.costs = costs
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _unfitted(self, seed: int) -> Unfitted:
        model = seeded(StandardizedLogisticRegression(), seed)
        return Unfitted(AttributePartition(self.attribute), model, model)

    def _fit_models(
        self, unfitted: Unfitted, rows: CheckedRows, members: list[NDArray[np.intp]]
    ) -> tuple[Classifier, list[Classifier], list[Classifier]]:
        everybody = fit_clone(unfitted.pooled, rows.given, rows.y, rows.fit_weight)
        scaler = StandardScaler().fit(rows.X, sample_weight=rows.fit_weight)
        scaled = np.column_stack([scaler.transform(rows.X), np.ones(len(rows))])
        # Without the rows of a fold, a small group may be left without any: nothing can be learned for it.
        present = [k for k, group in enumerate(members) if len(group)]
        with one_thread():
            thetas = self._solve(rows, scaled, [members[k] for k in present])
        own: list[Classifier] = [everybody] * len(members)
        for k, theta in zip(present, thetas, strict=True):
            own[k] = _as_classifier(everybody, theta, scaler)
        return everybody, own, []

    def _cross_fitted_rows(self, *fitted: Any) -> ComparedRows:
        # The fits without a fold must not leave their figures behind.
        kept = self.n_tangents_, self.violations_
        rows = super()._cross_fitted_rows(*fitted)
        self.n_tangents_, self.violations_ = kept
        return rows

    def _solve(self, rows: CheckedRows, scaled: Floats, members: list[NDArray[np.intp]]) -> Floats:
        """Coefficients of each group's classifier, on standardised columns with a last one of ones."""
        total = np.array([rows.weight[group].sum() for group in members])
        groups = [
            Group(scaled[group], rows.label[group].astype(np.float64), rows.weight[group] / size)
            for group, size in zip(members, total, strict=True)
        ]
        share, sign = total / total.sum(), self._sign()
        l2 = max(self.l2, 1e-12)
        if self.preference == "treatment":
            # The same classifier for all satisfies it; the best of them is the pooled one.
            everybody = Group(scaled, rows.label.astype(np.float64), rows.weight / rows.weight.sum())
            start, least = parity_minimum([everybody], np.ones(1), l2), None
        else:
            start = parity_minimum(groups, share, l2)
            least = np.concatenate([group.benefits(start[None], sign)[0] for group in groups])
        problem = Problem(groups, share, l2, sign, no_envy=self.preference != "impact", least=least)
        found, self.n_tangents_ = solve(problem, np.tile(start, len(groups)), self.tolerance)
        self.violations_ = problem.violations(found)
        return found.reshape(problem.shape)

    def _sign(self) -> float:
        if len(self.classes_) != 2:
            raise InputError(f"ZafarClassifier needs two classes, and y holds {len(self.classes_)}.")
        if self.accepted is None:
            return 1.0
        places = np.flatnonzero(self.classes_ == self.accepted)
        if not len(places):
            raise InputError(f"accepted is {self.accepted!r}, which is no label of y: {self.classes_.tolist()}.")
        return 1.0 if places[0] == 1 else -1.0


def _as_classifier(everybody: Any, theta: Floats, scaler: StandardScaler) -> StandardizedLogisticRegression:
    """Turn coefficients for standardised columns into a classifier that takes columns as they are."""
    model: Any = StandardizedLogisticRegression()
    for name in ("classes_", "n_features_in_", "feature_names_in_", "n_iter_", "C_", "threshold_"):
        if hasattr(everybody, name):
            setattr(model, name, getattr(everybody, name))
    model.coef_ = (theta[:-1] / scaler.scale_)[None, :]
    model.intercept_ = theta[-1:] - model.coef_ @ scaler.mean_
    return model
