"""Pipelines taken apart."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.pipelines import final_classifier, parameter_path, split_pipeline


def blobs(n=60, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 2)) + y[:, None], y


def nested(classifier):
    """A pipeline whose last step is a pipeline."""
    return Pipeline(
        [("outer", StandardScaler()), ("inside", Pipeline([("scale", StandardScaler()), ("end", classifier)]))]
    )


def test_the_end_of_a_pipeline_is_found_at_any_depth():
    classifier = DummyClassifier()
    for model, path in (
        (classifier, ""),
        (Pipeline([("only", classifier)]), "only__"),
        (nested(classifier), "inside__end__"),
    ):
        assert final_classifier(model) is classifier
        assert parameter_path(model) == path
        assert not path or model.get_params()[f"{path}strategy"] == "prior"


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: Pipeline([("only", model)]), nested])
def test_a_pipeline_taken_apart_predicts_as_before(wrap):
    X, y = blobs()
    model = wrap(LogisticRegression()).fit(X * 50, y)
    final, rows = split_pipeline(model, X * 50)
    assert isinstance(final, LogisticRegression)
    np.testing.assert_array_equal(final.predict_proba(rows), model.predict_proba(X * 50))
