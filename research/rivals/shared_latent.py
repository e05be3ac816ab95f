"""Parity for an attribute that a second data set has (after Islam, Chen and Cai, AAAI 2024: shared latent space)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from research.rivals.training import Floats, TwoClassClassifier, two_classes


@dataclass(eq=False, repr=False, kw_only=True)
class SharedLatentClassifier(TwoClassClassifier):
    """Linear classifier whose scores are uncorrelated with an attribute that another data set teaches to predict.

    A source data set has the attribute; the target data set has the labels. A representation of both is learned, on the
    source rows an estimate of the attribute from it, and on the target rows a classifier that asks for parity between
    the groups of this estimate. No attribute is needed to predict.

    What is simpler than in the paper: the source is a random part of the same data, whose labels are not used, so that
    both have the same columns; principal components take the place of two encoders; and parity is a linear constraint,
    no correlation between score and estimated attribute, in place of an adversary, so that there is no dial.

    `source_share` of the rows stand for the second data set; the representation has `n_components` dimensions, or all
    columns if there are fewer.
    """

    source_share: float = 0.25
    n_components: int = 10
    random_state: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, attribute: ArrayLike) -> Self:
        """Fit; the attribute (two values) is used on source rows only, labels on target rows only."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        self.scaler_ = StandardScaler().fit(values)
        x, groups = self.scaler_.transform(values), np.asarray(attribute)
        source = np.random.default_rng(self.random_state).random(len(x)) < self.source_share
        latent = PCA(min(self.n_components, x.shape[1]), random_state=self.random_state).fit_transform(x)
        estimator = LogisticRegression().fit(latent[source], groups[source] == groups[source][0])
        estimate = estimator.predict_proba(latent[~source])[:, 1]
        # The score x·w is uncorrelated with the estimate if w is orthogonal to their covariance c.
        c = (estimate - estimate.mean()) @ x[~source]
        self.direction_ = c / max(float(np.linalg.norm(c)), 1e-12)
        self.classifier_ = LogisticRegression(max_iter=1000).fit(self._project(x[~source]), label[~source])
        return self

    def _project(self, x: Floats) -> Floats:
        return x - np.outer(x @ self.direction_, self.direction_)

    def _logits(self, values: Floats) -> Floats:
        return np.asarray(self.classifier_.decision_function(self._project(self.scaler_.transform(values))))
