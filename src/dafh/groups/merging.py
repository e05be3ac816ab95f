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

from dafh.linear.designs import Design, join_designs
from dafh.linear.likelihood import row_losses
from dafh.linear.newton import Regression, fit_penalized

_MOST_ROUNDS = 8
# The intercept of a group is penalised too: a group is the pooled classifier until its rows say otherwise.
_SHORTEST_STEP = 1 / 16


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Training rows by leaf, with the gradient and curvature of their loss where nothing is corrected."""

    parts: tuple[Regression, ...]
    gradient: NDArray[np.float64]
    """(leaves, p, m)."""
    curvature: NDArray[np.float64]
    """(leaves, m, p, p)."""

    @classmethod
    def of(
        cls,
        design: Design,
        label: NDArray[np.intp],
        weight: NDArray[np.float64],
        base: NDArray[np.float64],
        leaf: NDArray[np.intp],
        n_leaves: int,
    ) -> "LeafRows":
        """Divide rows by their leaf."""
        rows = Regression(design, label, weight, base)
        parts = tuple(rows.take(np.flatnonzero(leaf == number)) for number in range(n_leaves))
        return cls(
            parts,
            np.stack([part.gradient(part.offset) for part in parts]),
            np.stack([part.curvatures(part.offset) for part in parts]),
        )

    def merged(self, parent: NDArray[np.intp]) -> "LeafSums":
        """Sums for larger leaves."""
        n_leaves = int(parent.max()) + 1
        gradient = np.zeros((n_leaves, *self.gradient.shape[1:]))
        curvature = np.zeros((n_leaves, *self.curvature.shape[1:]))
        np.add.at(gradient, parent, self.gradient)
        np.add.at(curvature, parent, self.curvature)
        return LeafSums(gradient, curvature)

    def joined(self, parent: NDArray[np.intp]) -> list[Regression]:
        """Rows of larger leaves."""
        return [_joined([self.parts[leaf] for leaf in np.flatnonzero(parent == k)]) for k in range(parent.max() + 1)]


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Gradient (leaves, p, m) and curvature (leaves, m, p, p) of the loss by leaf."""

    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]

    def merge(self, n_groups: int, penalty: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Group of each leaf, and the corrections (K, p, m), by the quadratic approximation of the loss.

        Which leaves belong together is not a convex question: two starts are improved leaf by leaf, and the better one
        is kept.
        """
        if n_groups >= len(self.gradient):
            group = np.arange(len(self.gradient))
        else:
            small = self._reduced(penalty)
            starts = (small.by_similarity(n_groups), self._by_level(n_groups))
            group = max((small.improved(start) for start in starts), key=small.worth_of)
            # Both starts may end in one merger with other numbers, and rounding would choose; number by first leaf.
            group = np.argsort(np.argsort(np.unique(group, return_index=True)[1]))[group]
        return group, self._corrections(group, n_groups, penalty)

    def _reduced(self, penalty: NDArray[np.float64]) -> "_ReducedSums":
        """Sums in the few directions in which leaves differ: the intercept, and the correction of each leaf alone.

        The correction of any group lies near them, and a search with a dozen coefficients takes no time.
        """
        alone = self._corrections(np.arange(len(self.gradient)), len(self.gradient), penalty)
        gradients, curvatures = [], []
        for output in range(self.gradient.shape[2]):
            intercept = np.eye(len(penalty), 1)
            directions = np.linalg.qr(np.hstack([intercept, alone[:, :, output].T]))[0]
            gradients.append(self.gradient[:, :, output] @ directions)
            curvatures.append(
                np.einsum("pa,lpq,qb->lab", directions, self.curvature[:, output], directions, optimize=True)
            )
            shrinkage = directions.T @ (penalty[:, None] * directions)
        return _ReducedSums(np.stack(gradients, axis=1), np.stack(curvatures, axis=1), shrinkage)

    def _by_level(self, n_groups: int) -> NDArray[np.intp]:
        """Group leaves by how far the pooled classifier is off: too low, about right, too high."""
        mass = self.curvature[:, :, 0, 0].sum(axis=1)
        order = np.argsort(self.gradient[:, 0].sum(axis=1) / np.maximum(mass, 1e-12), kind="stable")
        middle = (np.cumsum(mass[order]) - mass[order] / 2) / mass.sum()
        # Groups of about the same weight, with at least one leaf each.
        number = np.arange(1, n_groups)
        cuts = np.clip(np.searchsorted(middle, number / n_groups), number, len(order) - n_groups + number)
        cuts = np.maximum.accumulate(cuts - number) + number
        group = np.empty(len(order), np.intp)
        group[order] = np.searchsorted(cuts, np.arange(len(order)), side="right")
        return group

    def _corrections(self, group: NDArray[np.intp], n_groups: int, penalty: NDArray[np.float64]) -> NDArray[np.float64]:
        corrections = np.empty((n_groups, *self.gradient.shape[1:]))
        for k in range(n_groups):
            gradient, curvature = self.gradient[group == k].sum(axis=0), self.curvature[group == k].sum(axis=0)
            for output, matrix in enumerate(curvature):
                corrections[k, :, output] = -np.linalg.solve(matrix + np.diag(penalty), gradient[:, output])
        return corrections


@dataclass(frozen=True, eq=False)
class _ReducedSums:
    """Gradient (leaves, m, r) and curvature (leaves, m, r, r) in few directions, and the penalty there, (r, r)."""

    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    penalty: NDArray[np.float64]

    def _worth(self, gradient: NDArray[np.float64], curvature: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much the best correction of each group lowers its penalised loss, for sums (groups, m, ...)."""
        solved = np.linalg.solve(curvature + self.penalty, gradient[..., None])[..., 0]
        return (gradient * solved).sum(axis=(1, 2)) / 2

    def _sums(self, group: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        member = (group == np.arange(int(group.max()) + 1)[:, None]).astype(float)
        return np.tensordot(member, self.gradient, 1), np.tensordot(member, self.curvature, 1)

    def worth_of(self, group: NDArray[np.intp]) -> float:
        """How much all corrections lower the penalised loss."""
        return float(self._worth(*self._sums(group)).sum())

    def by_similarity(self, n_groups: int) -> NDArray[np.intp]:
        """Put the two groups together whose merger costs least until so many are left, as in Ward's clustering."""
        group = np.arange(len(self.gradient))
        while (n_left := int(group.max()) + 1) > n_groups:
            gradient, curvature = self._sums(group)
            worth = self._worth(gradient, curvature)
            one, other = np.triu_indices(n_left, 1)
            joined = self._worth(gradient[one] + gradient[other], curvature[one] + curvature[other])
            cheapest = int((worth[one] + worth[other] - joined).argmin())
            group[group == other[cheapest]] = one[cheapest]
            group = np.unique(group, return_inverse=True)[1]
        return group

    def improved(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """Move single leaves while that lowers the loss, as in Hartigan's clustering.

        A move counts what it does to both groups. Giving all leaves at once to the group that serves them best was
        stuck in worse mergers.
        """
        group = group.copy()
        for _ in range(_MOST_ROUNDS):
            moved = False
            for leaf in range(len(group)):
                home = group[leaf]
                if (group == home).sum() == 1:
                    continue
                gradient, curvature = self._sums(group)
                gradient[home] -= self.gradient[leaf]
                curvature[home] -= self.curvature[leaf]
                gain = self._worth(gradient + self.gradient[leaf], curvature + self.curvature[leaf])
                gain -= self._worth(gradient, curvature)
                best = int(gain.argmax())
                if gain[best] > gain[home] + 1e-9 * abs(gain[home]):
                    group[leaf], moved = best, True
            if not moved:
                break
        return group


def refine(
    rows: LeafRows,
    group: NDArray[np.intp],
    corrections: NDArray[np.float64],
    penalty: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Shorten corrections that the quadratic approximation made too long: half as far until the real loss falls.

    Not solved to the end: the search only has to rank candidates, and what it chooses is fitted exactly afterwards.
    """
    shrunk = corrections.copy()
    for k in range(len(corrections)):
        leaves = [rows.parts[leaf] for leaf in np.flatnonzero(group == k)]
        before = sum(part.loss(part.offset) for part in leaves)
        changes = [part.design.logits(corrections[k]) for part in leaves]
        step = 1.0
        while step >= _SHORTEST_STEP:
            size = step**2 * float(penalty @ (corrections[k] ** 2).sum(axis=1)) / 2
            after = sum(part.loss(part.offset + step * change) for part, change in zip(leaves, changes, strict=True))
            if after + size <= before:
                break
            step /= 2
        shrunk[k] = step * corrections[k] if step >= _SHORTEST_STEP else 0.0
    return shrunk


def fit_corrections(
    rows: Sequence[Regression], group: NDArray[np.intp], n_groups: int, penalty: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit the correction of each group exactly, (K, p, m).

    Parameters
    ----------
    rows : sequence of Regression
        By leaf.
    group : array of shape (leaves,)
    penalty : array of shape (p,)
    """
    corrections = []
    for k in range(n_groups):
        members = [part for part, number in zip(rows, group, strict=True) if number == k]
        corrections.append(fit_penalized(_joined(members), penalty, free_intercept=False).coefficients)
    return np.stack(corrections)


def prefer(rows: Sequence[Regression], group: NDArray[np.intp], corrections: NDArray[np.float64]) -> NDArray[np.intp]:
    """Give every leaf the group whose correction serves it best, unless a group would be left without any."""
    losses = np.array(
        [[part.loss(part.offset + part.design.logits(correction)) for correction in corrections] for part in rows]
    )
    preferred = losses.argmin(axis=1)
    return preferred if len(np.unique(preferred)) == len(corrections) else group


def served_losses(
    rows: Regression, group: NDArray[np.intp], corrections: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logits of each row by the correction of its group, (n, m), and the log-loss of each row."""
    logits = rows.offset.copy()
    for k in np.unique(group):
        members = np.flatnonzero(group == k)
        logits[members] += rows.design.take(members).logits(corrections[k])
    return logits, row_losses(logits, rows.label)


def _joined(rows: Sequence[Regression]) -> Regression:
    return Regression(
        join_designs([part.design for part in rows]),
        np.concatenate([part.label for part in rows]),
        np.concatenate([part.weight for part in rows]),
        np.concatenate([part.offset for part in rows]),
    )
