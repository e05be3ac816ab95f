"""Leaves merged into groups, each with the penalised correction of the pooled logits that serves it best.

Two steps take turns: a correction is fitted for each group; every leaf goes to the group whose correction serves it
best. No leaf then envies another group, and each step lowers the same loss. Whole searches run on sums by leaf
(gradient and curvature of the log-loss), which need no pass over the rows; what they find is then refined, and judged,
on rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.logits import decide, residual
from dafh.linear.newton import Regression, class_shares, fit_penalized, row_losses

_MOST_ROUNDS = 8
# The intercept of a group is penalised too: a group is the pooled classifier until its rows say otherwise.
_SHORTEST_STEP = 1 / 16
_LENGTH_STEPS = 2
_LONGEST = 4.0


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Training rows with their leaves, and the gradient and curvature of their loss where nothing is corrected."""

    rows: Regression
    leaf: NDArray[np.intp]
    gradient: NDArray[np.float64]
    """(leaves, p, m)."""
    curvature: NDArray[np.float64]
    """(leaves, m, p, p)."""
    losses: NDArray[np.float64]
    """Log-loss of the pooled classifier by leaf."""

    @classmethod
    def of(cls, rows: Regression, leaf: NDArray[np.intp], n_leaves: int) -> "LeafRows":
        """Sum gradients and curvatures by leaf."""
        pull = rows.weight[:, None] * residual(rows.offset, rows.label)
        losses = np.bincount(leaf, rows.weight * row_losses(rows.offset, rows.label), n_leaves)
        return cls(
            rows,
            leaf,
            -rows.design.gradients(pull, leaf, n_leaves),
            rows.curvatures_by(rows.offset, leaf, n_leaves),
            losses.astype(np.float64),
        )

    def joined(self, parent: NDArray[np.intp]) -> "LeafRows":
        """The same rows in larger leaves."""
        if (parent == np.arange(len(self.gradient))).all():
            return self
        gradient, curvature, losses = (_sums_by(parent, sums) for sums in (self.gradient, self.curvature, self.losses))
        return LeafRows(self.rows, parent[self.leaf], gradient, curvature, losses)

    def sums(self, elsewhere: float = 0.0) -> "LeafSums":
        """Sums to search with, where a row counts `elsewhere` for the classifiers of other groups.

        The curvature of the rows outside of a group is that of all rows without that of the group.
        """
        return LeafSums(self.gradient, (1 - elsewhere) * self.curvature, elsewhere * self.curvature.sum(axis=0))

    def outside(self, group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Curvature of the rows that do not belong to each group, (K, m, p, p)."""
        return self.curvature.sum(axis=0) - _sums_by(group, self.curvature)

    def losses_by(self, corrections: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Log-loss of each leaf if leaf l is served by the correction of group[l]."""
        losses = self.rows.weight * served_losses(self.rows, group[self.leaf], corrections)
        return np.bincount(self.leaf, losses, len(group)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Gradient (leaves, p, m) and curvature (leaves, m, p, p) of the loss by leaf."""

    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    shared: NDArray[np.float64] | float = 0.0
    """Curvature that every group has beside that of its leaves, (m, p, p)."""

    def merge(self, n_groups: int, penalty: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each leaf, and the corrections (K, p, m), by the quadratic approximation of the loss."""
        return self.merge_each((n_groups,), penalty)[0]

    def merge_each(
        self, numbers: Sequence[int], penalty: NDArray[np.float64]
    ) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """The same for several numbers of groups, which share most of the work."""
        n_leaves = len(self.gradient)
        fewer = [number for number in numbers if number < n_leaves]
        small = self._reduced(penalty) if fewer else None
        start = {} if small is None else small.by_similarity(fewer)
        merged = []
        for number in numbers:
            group = np.arange(n_leaves)
            if small is not None and number in start:
                group = small.improved(start[number])
                # Numbered by their first leaf: equal mergers then have equal numbers.
                group = np.argsort(np.argsort(np.unique(group, return_index=True)[1]))[group]
            merged.append((group, self._corrections(group, penalty)))
        return merged

    def _reduced(self, penalty: NDArray[np.float64]) -> "_ReducedSums":
        """Sums in the few directions in which leaves differ: the intercept, and the correction of each leaf alone.

        The correction of any group lies near them, and a search with a dozen coefficients takes no time.
        """
        alone = self._corrections(np.arange(len(self.gradient)), penalty)
        gradients, curvatures, penalties = [], [], []
        common = np.diag(penalty) + np.broadcast_to(self.shared, self.curvature.shape[1:])
        for output in range(self.gradient.shape[2]):
            intercept = np.eye(len(penalty), 1)
            directions = np.linalg.qr(np.hstack([intercept, alone[:, :, output].T]))[0]
            gradients.append(self.gradient[:, :, output] @ directions)
            curvatures.append(directions.T @ self.curvature[:, output] @ directions)
            penalties.append(directions.T @ common[output] @ directions)
        return _ReducedSums(np.stack(gradients, axis=1), np.stack(curvatures, axis=1), np.stack(penalties))

    def _corrections(self, group: NDArray[np.intp], penalty: NDArray[np.float64]) -> NDArray[np.float64]:
        """Penalised correction of each group, (K, p, m)."""
        gradient, curvature = _sums_by(group, self.gradient), _sums_by(group, self.curvature)
        solved = np.linalg.solve(curvature + self.shared + np.diag(penalty), gradient.swapaxes(1, 2)[..., None])
        return -np.asarray(solved[..., 0].swapaxes(1, 2), np.float64)


def _sums_by(group: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the leaves of each group."""
    member = (group == np.arange(int(group.max()) + 1)[:, None]).astype(float)
    return (member @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])


@dataclass(frozen=True, eq=False)
class _ReducedSums:
    """Gradient (leaves, m, r) and curvature (leaves, m, r, r) in few directions, and the penalty there, (m, r, r)."""

    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    penalty: NDArray[np.float64]

    def _worth(self, gradient: NDArray[np.float64], curvature: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much the best correction of each group lowers its penalised loss, for sums (groups, m, ...)."""
        solved = np.linalg.solve(curvature + self.penalty, gradient[..., None])[..., 0]
        return (gradient * solved).sum(axis=(1, 2)) / 2

    def _sums(self, group: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _sums_by(group, self.gradient), _sums_by(group, self.curvature)

    def by_similarity(self, numbers: Sequence[int]) -> dict[int, NDArray[np.intp]]:
        """Put the two groups together whose merger costs least, as in Ward's clustering: groups by their number."""
        group = np.arange(len(self.gradient))
        gradient, curvature = self._sums(group)
        worth = self._worth(gradient, curvature)
        one, other = np.triu_indices(len(group), 1)
        joined = self._worth(gradient[one] + gradient[other], curvature[one] + curvature[other])
        cost = np.full((len(group), len(group)), np.inf)
        cost[one, other] = worth[one] + worth[other] - joined
        alive, found = np.ones(len(group), bool), {}
        for n_groups in range(len(group) - 1, min(numbers) - 1, -1):
            a, b = np.unravel_index(cost.argmin(), cost.shape)
            gradient[a] += gradient[b]
            curvature[a] += curvature[b]
            group[group == b] = a
            worth[a] += worth[b] - cost[a, b]
            cost[b], cost[:, b], alive[b] = np.inf, np.inf, False
            others = np.flatnonzero(alive)
            others = others[others != a]
            joined = self._worth(gradient[others] + gradient[a], curvature[others] + curvature[a])
            cost[np.minimum(others, a), np.maximum(others, a)] = worth[others] + worth[a] - joined
            if n_groups in numbers:
                found[n_groups] = np.unique(group, return_inverse=True)[1]
        return found

    def improved(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """Move single leaves while that lowers the loss, as in Hartigan's clustering.

        A move counts what it does to both groups. Giving all leaves at once to the group that serves them best was
        stuck in worse mergers.
        """
        group, left = group.copy(), _MOST_ROUNDS * len(group)
        gains, leaf, still = self._gains(group), 0, 0
        while left and still < len(group):  # Until all leaves in turn have stayed.
            home, best = group[leaf], int(gains[leaf].argmax())
            if gains[leaf, best] > gains[leaf, home] + 1e-9 * abs(gains[leaf, home]):
                group[leaf], still = best, 0
                gains = self._gains(group)
            leaf, left, still = (leaf + 1) % len(group), left - 1, still + 1
        return group

    def _gains(self, group: NDArray[np.intp]) -> NDArray[np.float64]:
        """What each leaf is worth to each group, (leaves, K), its own group taken without it.

        All at once: a step of the search then takes one call, and most steps move nothing.
        """
        gradient, curvature = self._sums(group)
        worth = self._worth(gradient, curvature)
        n_leaves, n_groups = len(group), len(gradient)
        other = np.arange(n_groups) != group[:, None]
        leaf, k = np.nonzero(other)
        every = np.arange(n_leaves)
        joined = self._worth(gradient[k] + self.gradient[leaf], curvature[k] + self.curvature[leaf])
        without = self._worth(gradient[group] - self.gradient, curvature[group] - self.curvature)
        gains = np.empty((n_leaves, n_groups))
        gains[other] = joined - worth[k]
        gains[every, group] = worth[group] - without
        # Whoever is alone stays: a group is never left without leaves.
        gains[np.bincount(group)[group] == 1] = 0.0
        return gains


def refine(
    leaves: LeafRows,
    group: NDArray[np.intp],
    corrections: NDArray[np.float64],
    penalty: NDArray[np.float64],
    elsewhere: float = 0.0,
) -> NDArray[np.float64]:
    """Give each correction the length at which the real loss is lowest: the quadratic approximation errs most there.

    Not solved to the end: the search only has to rank candidates, and what it chooses is fitted exactly afterwards. The
    step alone stops short of strong effects: more groups, each with a short step, then looked better than few.
    """
    rows, of_row = leaves.rows, group[leaves.leaf]
    added = rows.design.grouped_logits(corrections, of_row)
    size = np.einsum("p,kpm->k", penalty, corrections**2)
    if elsewhere:
        by_output = corrections.swapaxes(1, 2)
        pulled = (leaves.outside(group) @ by_output[..., None])[..., 0]
        size += elsewhere * (by_output * pulled).sum(axis=(1, 2))
    length = np.ones(len(corrections))
    for _ in range(_LENGTH_STEPS):
        logits = rows.offset + length[of_row, None] * added
        pull = (residual(logits, rows.label) * added).sum(axis=1)
        shares = class_shares(logits)
        bend = (shares * added**2).sum(axis=1) - (shares * added).sum(axis=1) ** 2
        slope = length * size - np.bincount(of_row, rows.weight * pull, len(size))
        curve = size + np.bincount(of_row, rows.weight * bend, len(size))
        length = (length - slope / np.maximum(curve, 1e-300)).clip(0.0, _LONGEST)
    before = np.bincount(group, leaves.losses, len(corrections))
    while True:
        losses = rows.weight * row_losses(rows.offset + length[of_row, None] * added, rows.label)
        after = np.bincount(of_row, losses, len(size)) + length**2 * size / 2
        too_long = (after > before) & (length > 0)
        if not too_long.any():
            return length[:, None, None] * corrections
        length = np.where(too_long, np.where(length > _SHORTEST_STEP, length / 2, 0.0), length)


def fit_corrections(
    leaves: LeafRows, group: NDArray[np.intp], penalty: NDArray[np.float64], elsewhere: float = 0.0
) -> NDArray[np.float64]:
    """Fit the correction of each group exactly, (K, p, m).

    Parameters
    ----------
    leaves : LeafRows
    group : array of shape (leaves,)
    penalty : array of shape (p,)
    elsewhere : float
        What a row of another group counts: there a correction is held near 0, so that the classifier of a group
        decides about rows it does not serve much as the pooled classifier does.
    """
    of_row = group[leaves.leaf]
    curvatures = _sums_by(group, leaves.curvature)
    pulls = elsewhere * (leaves.curvature.sum(axis=0) - curvatures)
    found = []
    for k, (curvature, pull) in enumerate(zip(curvatures, pulls, strict=True)):
        members = leaves.rows.take(np.flatnonzero(of_row == k))
        # The curvature where nothing is corrected is known, and small corrections need no other.
        found.append(fit_penalized(members, penalty, curvatures=curvature, free_intercept=False, pull=pull))
    return np.stack([solution.coefficients for solution in found])


def prefer(leaves: LeafRows, group: NDArray[np.intp], corrections: NDArray[np.float64]) -> NDArray[np.intp]:
    """Give every leaf the group whose correction serves it best, unless a group would be left without any."""
    losses = [leaves.losses_by(corrections, np.full(len(group), k)) for k in range(len(corrections))]
    preferred = np.argmin(losses, axis=0)
    return preferred if len(np.unique(preferred)) == len(corrections) else group


def served_losses(rows: Regression, group: NDArray[np.intp], corrections: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-loss of each row with the correction of its group."""
    return row_losses(rows.offset + rows.design.grouped_logits(corrections, group), rows.label)


def harmed_rows(
    rows: Regression, group: NDArray[np.intp], corrections: NDArray[np.float64], cutoff: float = 0.5
) -> NDArray[np.bool_]:
    """Whether a row's own classifier is wrong while that of another group, or the pooled one, is right.

    All of them decide at `cutoff`, as in production.
    """
    every = [rows.offset + rows.design.logits(correction) for correction in (*corrections, 0 * corrections[0])]
    right = np.column_stack([decide(logits, cutoff) == rows.label for logits in every])
    return ~right[np.arange(len(group)), group] & right.any(axis=1)
