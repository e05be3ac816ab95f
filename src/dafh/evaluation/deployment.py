"""For which groups the test rows support their own classifiers, and what these would do if they served alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.equality import EqualByValue
from dafh.evaluation.losses import Loss, LossName
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.questions import Asked, answer, ask_named_groups
from dafh.evaluation.rates import decision_rates, total_losses
from dafh.stats import holm

SMALL_LOSS = 0.01
"""A loss up to this size, one percentage point, does not stand in the way of a recommendation."""


def tolerated(loss: LossName, margin: float) -> float:
    """Loss that a recommendation tolerates: one percentage point or the margin, whichever is larger.

    A cost has no natural size, so that nothing beyond the margin is tolerated of it.

    Examples
    --------
    >>> tolerated("error", 0.0), tolerated("error", 0.02), tolerated("cost", 0.0)
    (0.01, 0.02, 0.0)
    """
    return margin if loss == "cost" else max(margin, SMALL_LOSS)


def weigh(rows: ComparedRows, asked: Sequence[Asked], labels: Sequence[object], margin: float) -> pd.DataFrame:
    """Test for each group whether it loses more than is tolerated, and whether it gains.

    Parameters
    ----------
    rows : ComparedRows
    asked : sequence of Asked
        Questions about the groups, one entry for each loss, the main one first.
    labels : names of the groups
    margin : float

    Returns
    -------
    data frame
        One row per group: its name; `changed`, whether another classifier than the pooled one serves it; `p_loss`,
        small if no loss is higher than tolerated; `p_no_gain`, small if the main loss is lower than with the pooled
        classifier. Both are corrected for the number of groups and losses (Holm), each in a family of its own.
    """
    changed = rows.own != rows.right.shape[1] - 1
    loss_p, gain_p = [], np.ones(0)
    for one in asked:
        # The tests of the audit are at the margin and share the level with envy and with named groups. These have
        # another bound, and there are few of them: a recommendation must not get weaker with every attribute tested.
        found = one.differences.take(np.flatnonzero(one.table["kind"] == "rationality"))
        tested = changed & (found.total > 0)
        loss_p.append(np.where(tested, found.p_within(tolerated(one.table["loss"].iloc[0], margin)), np.nan))
        if not len(gain_p):
            gain_p = np.where(tested, found.p_within(0.0), np.nan)
    return pd.DataFrame(
        {
            "group": [str(label) for label in labels],
            "changed": changed,
            "p_loss": _corrected(np.stack(loss_p)).max(axis=0),
            "p_no_gain": _corrected(gain_p),
        }
    )


def _corrected(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's correction of all tests that could be made; 1 for the others."""
    corrected = np.ones(p.shape)
    known = ~np.isnan(p)
    corrected[known] = holm(p[known])
    return corrected


def supported(questions: pd.DataFrame, evidence: pd.DataFrame, level: float) -> NDArray[np.bool_]:
    """Groups that may be served by another classifier than the pooled one, (G,).

    Four things are asked of a group: the main loss is lower on the test rows; a loss of more than is tolerated is ruled
    out, in every loss; it is not shown to lose; and no other group's classifier is shown to serve it better. The
    probability that any group is chosen that loses more than is tolerated is at most `level`.
    """
    first = questions["loss"].iloc[0]
    main = questions[(questions["kind"] == "rationality") & (questions["loss"] == first)]
    violated = set(questions.loc[questions["verdict"] == "violated", "group"].astype(str))
    better = main["gap"].to_numpy(np.float64) > 0
    allowed = ~evidence["group"].isin(violated).to_numpy(bool)
    bounded = (evidence["p_loss"] <= level).to_numpy(bool)
    return evidence["changed"].to_numpy(bool) & bounded & better & allowed


@dataclass(frozen=True, eq=False)
class Trial(EqualByValue):
    """What the test rows say about a model in which only some groups keep the classifiers that serve them."""

    deployed: tuple[str, ...]
    """Names of these groups; the pooled classifier serves all others."""
    totals: pd.DataFrame
    """As in `AuditResult`."""
    rates: pd.DataFrame | None
    """As in `AuditResult`."""
    named: pd.DataFrame | None
    """As in `AuditResult`."""

    @classmethod
    def of(
        cls,
        rows: ComparedRows,
        chosen: NDArray[np.bool_],
        labels: Sequence[object],
        known: NamedGroups | None,
        *,
        losses: Sequence[Loss],
        level: float,
        margin: float,
        depth: int,
    ) -> "Trial":
        """Let the chosen groups keep their classifiers, and ask about all rows and about named groups again.

        The groups were chosen on the same rows. The figures are therefore flattering, and a recommendation must not
        rest on the gain that is found here; that no named group may lose is a stricter demand, not a weaker one.
        """
        alone = replace(rows, own=np.where(chosen, rows.own, rows.right.shape[1] - 1))
        named = None
        if known is not None:
            named = answer([ask_named_groups(alone, loss, known, depth) for loss in losses], level, margin, 2)
        return cls(
            deployed=tuple(str(label) for label, yes in zip(labels, chosen, strict=True) if yes),
            totals=total_losses(alone, losses, level),
            rates=decision_rates(alone, labels, known),
            named=named,
        )
