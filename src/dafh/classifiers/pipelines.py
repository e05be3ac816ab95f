"""The one way to take a pipeline apart: the classifier at its end, and the rows as that takes them."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from dafh.frames import Table


def final_classifier(model: BaseEstimator) -> Any:
    """Return the classifier itself, also out of a pipeline, or of one inside another."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def split_pipeline(model: BaseEstimator, X: Table) -> tuple[Any, Any]:
    """Return the classifier at the end of a fitted pipeline, and the rows as it takes them."""
    while isinstance(model, Pipeline):
        # scikit-learn has no transform for the empty rest of a pipeline with one step.
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = model.steps[-1][1]
    return model, X


def parameter_path(model: BaseEstimator) -> str:
    """Return the prefix by which `fit` and `set_params` of a pipeline reach the classifier at its end."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix
