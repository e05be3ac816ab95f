"""Coefficients from all rows, for what a sample of them has chosen: the pooled classifier, then the groups' own.

Both are convex problems with sums over rows, so that the result does not depend on where the rows are or how they are
divided. A classifier that the user brings is taken as it is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Arrays, Blocks
from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.learning import FittedGroupRules, LearnedGroups
from dafh.estimators.looks import Looks, PooledLogits
from dafh.estimators.network_rows import continue_network, network_encoder
from dafh.estimators.pooled import PooledFit
from dafh.estimators.training_rows import AllRows
from dafh.groups.corrections import CorrectionDesign
from dafh.groups.merging import LeafRows
from dafh.groups.rules import RuleTree
from dafh.groups.trained import RuleModel
from dafh.linear.designs import DenseDesign, Design
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.passes import Penalty, PointTables, SeenBlock, fit_in_passes
from dafh.linear.scorecard import Scorecard
from dafh.linear.standard import Standardization


def refit_on_all_rows(
    estimator: Any, everything: AllRows, pooled: PooledFit, learned: LearnedGroups, seed: np.random.SeedSequence
) -> LearnedGroups:
    """Fit the pooled classifier and the groups' own classifiers anew, on all rows; return the groups.

    A pooled classifier that was fitted here is changed in place. Where a network has won, it goes on learning.

    Parameters
    ----------
    seed : SeedSequence
        Of the order in which a network sees the rows.
    """
    looks = Looks(
        everything.weighing,
        estimator.classes_,
        hasattr(estimator, "feature_names_in_"),
        pooled.kind,
        pooled.view.settled(),
        pooled.model if pooled.kind == "logits" else None,
    )
    model = learned.model
    keep = _Encode(looks, model.tree) if isinstance(model, RuleModel) else network_encoder(looks, learned)
    with everything.blocks.keep(keep) as kept:
        last = final_classifier(pooled.model)
        if isinstance(last, Scorecard) and pooled.sums is not None:
            _refit_scorecard(last, pooled, kept)
        elif isinstance(last, StandardizedLogisticRegression) and pooled.fitted_here:
            _refit_regression(last, learned.rules, kept)
        if not isinstance(model, RuleModel):
            order = int(seed.generate_state(2)[1])
            return continue_network(learned, everything.weighing, pooled, kept, order, estimator.verbose)
        if model.n_groups == 1:
            return learned
        return replace(learned, model=_refit_corrections(learned.rules, pooled, kept))


@dataclass(frozen=True, eq=False)
class _Encode:
    """What is kept of a block of rows for rules: bins or numbers, labels, weights, groups, and foreign logits."""

    looks: Looks
    tree: RuleTree

    def __call__(self, block: pd.DataFrame) -> Arrays:
        _, seen, kept = self.looks.at(block)
        group = self.tree.assign(seen.codes).astype(np.uint8)
        numbers = {} if self.looks.kind == "points" else {"numbers": seen.numbers}
        return {**kept, **numbers, "group": group}


def _refit_scorecard(model: Scorecard, pooled: PooledFit, kept: Blocks[Arrays]) -> None:
    fit = pooled.sums
    assert fit is not None
    rows, nothing = fit.rows, np.zeros(len(fit.rows.label), np.uint8)

    def curvature(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = rows.design.logits(coefficients[0])
        return rows.joint_curvatures_by(logits, nothing, 1) / rows.weight.sum()

    problem = _PooledPoints(PointTables(tuple(fit.design.tables)), rows.offset.shape[1])
    start = fit.solution.coefficients[None]
    found = fit_in_passes(kept, problem, Penalty(fit.solution.penalty), curvature, start)
    model.keep(fit, replace(fit.solution, coefficients=found[0]))


def _refit_regression(model: StandardizedLogisticRegression, rules: FittedGroupRules, kept: Blocks[Arrays]) -> None:
    rows, X = rules.rows, rules.seen.numbers
    standard = Standardization.of(X, rows.weight)
    design = DenseDesign(standard.of_rows(X))
    start = standard.stacked(model.intercept_, model.coef_)
    sample = replace(rules.problem.regression(0), design=design, offset=np.zeros((len(rows), start.shape[1])))

    def curvature(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = design.logits(coefficients[0])
        return sample.joint_curvatures_by(logits, np.zeros(len(rows), np.uint8), 1) / rows.weight.sum()

    strength = np.full(len(start), 1 / float(model.C_))
    strength[0] = 1e-6  # Not penalised, but for the last digits.
    found = fit_in_passes(kept, _PooledColumns(standard, start.shape[1]), Penalty(strength), curvature, start[None])[0]
    model.intercept_, model.coef_ = standard.unstacked(found)


def _refit_corrections(rules: FittedGroupRules, pooled: PooledFit, kept: Blocks[Arrays]) -> RuleModel:
    """Corrections of the pooled logits, with the strengths that the sample has chosen.

    With so many rows, a pooled classifier that has seen them is hardly more sure of them than one that has not.
    """
    chosen, groups = rules.fitted.chosen, rules.fitted.groups
    assert chosen is not None
    sample = rules.problem.regression(rules.problem.n_folds)
    group, n_groups = groups.tree.assign(rules.problem.codes), groups.tree.n_groups
    own = LeafRows.of(sample, group, n_groups).curvature
    (weight,) = kept.total(_total_weight)
    scale = float(weight) / sample.weight.sum()
    penalty = Penalty(
        np.full(sample.design.n_coefficients, chosen.strength), scale * chosen.elsewhere * (own.sum(axis=0) - own)
    )

    def curvature(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = sample.offset + sample.design.grouped_logits(coefficients, group)
        return sample.joint_curvatures_by(logits, group, n_groups) / sample.weight.sum()

    problem = _Corrections.of(rules.design, PooledLogits.of(pooled))
    found = fit_in_passes(kept, problem, penalty, curvature, groups.corrections)
    return RuleModel(groups.tree, rules.design.served(found))


def _total_weight(block: Arrays) -> tuple[NDArray[Any], ...]:
    return (block["weight"].sum(),)


# ---- what is fitted to the rows of a block ----


@dataclass(frozen=True, eq=False)
class _PooledPoints:
    """A scorecard."""

    points: PointTables
    n_outputs: int

    def see(self, block: Arrays) -> SeenBlock:
        return _of_everybody(self.points.design(block["codes"]), block, self.n_outputs)


@dataclass(frozen=True, eq=False)
class _PooledColumns:
    """A logistic regression."""

    standard: Standardization
    n_outputs: int

    def see(self, block: Arrays) -> SeenBlock:
        return _of_everybody(DenseDesign(self.standard.of_rows(block["numbers"])), block, self.n_outputs)


def _of_everybody(design: Design, block: Arrays, n_outputs: int) -> SeenBlock:
    n_rows = len(block["label"])
    offset, part = np.zeros((n_rows, n_outputs)), np.zeros(n_rows, np.uint8)
    return SeenBlock(design, block["label"], block["weight"], offset, part)


@dataclass(frozen=True, eq=False)
class _Corrections:
    """Corrections of the groups."""

    base: PooledLogits
    points: PointTables | None
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    with_base: bool

    @classmethod
    def of(cls, design: CorrectionDesign, base: PooledLogits) -> "_Corrections":
        if design.tables is not None:
            return cls(base, PointTables(tuple(design.tables)), np.zeros(0), np.ones(0), with_base=False)
        return cls(base, None, design.center, design.scale, with_base=design.has_logits)

    def see(self, block: Arrays) -> SeenBlock:
        base = self.base.of_block(block)
        if self.points is not None:
            design: Design = self.points.design(block["codes"])
        else:
            parts = [(block["numbers"] - self.center) / self.scale] if len(self.center) else []
            design = DenseDesign(np.hstack([*parts, base] if self.with_base else parts))
        return SeenBlock(design, block["label"], block["weight"], base, block["group"])
