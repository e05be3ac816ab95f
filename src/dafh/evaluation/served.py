"""What a fitted model of this package predicts, ready to be compared."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.pipelines import split_pipeline
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.equality import EqualByValue
from dafh.exceptions import InputError
from dafh.frames import Table


@dataclass(frozen=True, eq=False)
class ServedPredictions(EqualByValue):
    """What a fitted model of this package predicts for some rows, in the form that metrics and audit take.

    Examples
    --------
    >>> from dafh import DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(500, random_state=0)
    >>> model = DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> ServedPredictions.of(model, data.X).predictions.shape
    (500, 2)
    """

    predictions: NDArray[Any]
    """Labels by each classifier that serves at least one group, (n, M), without the pooled one."""
    groups: NDArray[np.intp]
    """Group of each row, (n,)."""
    pooled: NDArray[Any]
    """Labels by the pooled classifier, (n,)."""
    own: NDArray[np.intp]
    """Column that serves each group, (G,); M for the pooled classifier."""
    classifiers: list[int]
    """The model's number for the classifier in each column, M of them."""

    @classmethod
    def of(cls, model: GroupModel, X: Table, sensitive_features: Table | None = None) -> "ServedPredictions":
        """Ask a fitted model, or the pipeline that ends in one."""
        model, X = split_pipeline(model, X)
        if not hasattr(model, "predict_all"):
            raise InputError(
                "A fitted DAFHClassifier or DecoupledClassifier is needed, or a pipeline that ends in one, not a "
                f"{type(model).__name__}."
            )
        labels = model.predict_all(X)
        takes_attributes = "sensitive_features" in inspect.signature(model.predict_group).parameters
        known = {"sensitive_features": sensitive_features} if takes_attributes else {}
        groups = model.predict_group(X, **known)
        # Column k of predict_all is the classifier that serves group k, so one that serves several groups is there
        # several times. Each is taken once: a group cannot envy itself, and every copy would cost power in the audit.
        classifiers, first, column = np.unique(model.serves_, return_index=True, return_inverse=True)
        chosen = classifiers < model.n_groups_
        # Rows of no known group (an unseen attribute value) are numbered after the groups; the pooled one serves them.
        ungrouped = [int(chosen.sum())] * (int(groups.max(initial=0)) + 1 - model.n_groups_)
        return cls(
            predictions=labels[:, first[chosen]],
            groups=groups,
            pooled=labels[:, -1],
            own=np.append(column, ungrouped).astype(np.intp),
            classifiers=classifiers[chosen].tolist(),
        )
