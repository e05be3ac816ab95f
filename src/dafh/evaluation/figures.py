"""The figures of an audit that are asked for first: accuracy, gain, and both by group."""

from typing import Any

import pandas as pd

from dafh.evaluation.losses import LossName
from dafh.evaluation.matrix import PreferenceMatrix


class AuditFigures:
    """Figures that follow from the parts of an `AuditResult`."""

    matrix: PreferenceMatrix
    questions: pd.DataFrame
    named: pd.DataFrame | None
    totals: pd.DataFrame
    losses: tuple[LossName, ...]

    @property
    def accuracy(self) -> float:
        """Share of the rows that the classifiers of the groups get right."""
        return self.matrix.accuracy

    @property
    def pooled_accuracy(self) -> float:
        """Share of the rows that the pooled classifier gets right."""
        return self.matrix.pooled_accuracy

    @property
    def gain(self) -> float:
        """Loss of the pooled classifier minus loss now, in the first loss: 0.01 is one percentage point of error."""
        return float(self.totals["gain"].iloc[0])

    def by_group(self) -> pd.DataFrame:
        """One row per group, then per named group: its loss now and with the pooled classifier, and the answer.

        Columns: rows, those that count for the first loss; own_loss and pooled_loss; gain with its interval low to
        high; and verdict, the answer to whether the group is served at least as well as by the pooled classifier.
        """
        asked = self.questions if self.named is None else pd.concat([self.questions, self.named])
        found = asked[(asked["kind"] == "rationality") & (asked["loss"] == self.losses[0])]
        named = found.rename(columns={"n": "rows", "rival_loss": "pooled_loss", "gap": "gain"})
        kept = ["rows", "own_loss", "pooled_loss", "gain", "low", "high", "verdict"]
        return named.set_index(found["group"].astype(str).rename("group"))[kept]

    def figures(self) -> dict[str, Any]:
        """Return sizes, accuracy, Pr without harm, and the disagreement that it must be read together with."""
        matrix = self.matrix
        return {
            "rows": int(matrix.sizes.sum()),
            "groups": len(matrix.sizes),
            "accuracy": matrix.accuracy,
            "pooled_accuracy": matrix.pooled_accuracy,
            "pr_without_harm": matrix.pr_without_harm,
            "disagreement": matrix.disagreement,
        }
