"""Just train twice (Liu et al., ICML 2021)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dafh.checks.parameters import NOTHING, Constraints, RandomState, number, whole_number
from dafh.classifiers.logits import decide
from research.rivals.base import RivalClassifier
from research.rivals.training import Network, Plan, Trained, TrainingRows, Weighting, train


class JTTClassifier(RivalClassifier):
    """Classifier that is trained twice: the rows that the first model gets wrong count more for the second.

    The authors train the first model for a few epochs only, so that it errs on rows that are hard to fit.

    Parameters
    ----------
    upweight : float, default=6
        What a row counts that the first model gets wrong, relative to a row that it gets right; 1 is plain training.
    first_iter : int or None, default=None
        Steps of L-BFGS, or epochs, of the first model; None: it is trained like the second.
    model : {"linear", "network"}, default="linear"
        A linear model, solved to convergence, or a network with one hidden layer.
    hidden : int, default=100
        Width of the hidden layer.
    l2 : float or None, default=None
        Penalty on squared weights of standardised columns, as 1 / C in scikit-learn. None: 1 for a linear model, 20 for
        a network.
    max_iter : int, default=1000
        Most steps of L-BFGS, for a linear model.
    epochs : int, default=20
        Passes over the rows, for a network.
    random_state : int, RandomState or None, default=None
        Draws the start and the mini-batches of a network; a linear model has no chance in it.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    error_share_ : float
        Share of the rows that the first model gets wrong.
    layers_ : list of (weights, biases)
        The model, for columns in their own units.
    n_iter_ : int
        Steps of L-BFGS, or epochs.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    E. Liu, B. Haghgoo, A. Chen, A. Raghunathan, P. W. Koh, S. Sagawa, P. Liang, C. Finn: Just train twice: improving
    group robustness without training group information. ICML 2021.

    Examples
    --------
    >>> from dafh.datasets import make_grouped_classification
    >>> from research.rivals import JTTClassifier
    >>> data = make_grouped_classification(1000, random_state=0)
    >>> model = JTTClassifier(upweight=4).fit(data.X, data.y)
    >>> 0 < model.error_share_ < 0.5
    True
    """

    # The authors tune over 20, 50 and 100 for images, and over 4, 5 and 6 for text.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"upweight": (4, 5, 6, 20, 50, 100)}
    _constraints: ClassVar[Constraints] = {
        "upweight": (number(1, closed="left"),),
        "first_iter": (whole_number(1), NOTHING),
    }

    def __init__(
        self,
        upweight: float = 6,
        *,
        first_iter: int | None = None,
        model: str = "linear",
        hidden: int = 100,
        l2: float | None = None,
        max_iter: int = 1000,
        epochs: int = 20,
        random_state: RandomState = None,
    ) -> None:
        self.upweight = upweight
        self.first_iter = first_iter
        self.model = model
        self.hidden = hidden
        self.l2 = l2
        self.max_iter = max_iter
        self.epochs = epochs
        self.random_state = random_state

    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Trained:
        short = plan if self.first_iter is None else replace(plan, max_iter=self.first_iter, epochs=self.first_iter)
        first = train(rows, Weighting(rows.share), short, rng)
        logits = Network(rows.x.shape[1], plan.hidden, rows.n_outputs).forward(first.parameters, rows.x)[-1]
        wrong = decide(logits) != rows.label
        self.error_share_ = float(rows.share @ wrong)
        counts = rows.share * np.where(wrong, self.upweight, 1.0)
        second = train(rows, Weighting(counts / counts.sum()), plan, rng)
        return Trained(second.parameters, first.n_iter + second.n_iter)
