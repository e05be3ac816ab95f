"""Just train twice (Liu et al., ICML 2021)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from research.rivals.training import Floats, RivalClassifier, TrainingRows, Weighting, scores, train


@dataclass(eq=False, repr=False)
class JTTClassifier(RivalClassifier):
    """Classifier that is trained twice: the rows that the first model gets wrong count more for the second.

    The authors train the first model for a few epochs only, so that it errs on rows that are hard to fit; here it is
    trained like the second, because small models do not fit such rows anyway.

    Parameters
    ----------
    upweight : float, default=6
        What a row counts that the first model gets wrong, relative to a row that it gets right; 1 is plain training.

    Attributes
    ----------
    error_share_ : float
        Share of the rows that the first model gets wrong.
    """

    # The authors tune over 20, 50 and 100 for images, and over 4, 5 and 6 for text.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"upweight": (4, 5, 6, 20, 50, 100)}

    upweight: float = 6

    def _train(self, rows: TrainingRows) -> Floats:
        first = train(rows, Weighting(rows.share), self.l2)
        wrong = (scores(first, rows.x) > 0) != rows.label
        self.error_share_ = float(wrong.mean())
        counts = np.where(wrong, self.upweight, 1.0)
        return train(rows, Weighting(counts / counts.sum()), self.l2)
