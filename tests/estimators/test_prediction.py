"""Label, probability and group in one pass: the same as each of them alone, whatever the pooled classifier."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dafh import DAFHClassifier, load, save, tabular_pipeline
from dafh.classifiers import class_probabilities, logits
from dafh.estimators.pooled import pooled_labels, pooled_logits
from dafh.frames import take_rows
from model_files import TREES
from models import network_case, rules_case, workers


def with_pooled(pooled, **settings):
    data = workers()
    model = DAFHClassifier(3, pooled=pooled, random_state=0, **settings)
    data.model = tabular_pipeline(model).fit(data.X, data.y)
    return data


@functools.cache
def linear_case():
    return with_pooled("linear")


@functools.cache
def cautious_case():
    """Most groups are left to a pooled classifier with a cut-off of its own."""
    return with_pooled("linear", guard="proof", threshold=0.7)


@functools.cache
def boosting_case():
    return with_pooled(HistGradientBoostingClassifier(max_iter=5))


@functools.cache
def three_classes_case():
    data = workers()
    data.y = np.where(data.X["hours"].fillna(0) > 45, "maybe", data.y)
    data.model = tabular_pipeline(DAFHClassifier(2, pooled="linear", random_state=0)).fit(data.X, data.y)
    return data


CASES = [rules_case, network_case, linear_case, cautious_case, boosting_case, three_classes_case]


@pytest.mark.parametrize("case", CASES)
def test_one_pass_gives_what_three_give(case, tmp_path):
    data = case()
    save(data.model, tmp_path / "m.dafh", trusted=TREES)
    for model in (data.model, load(tmp_path / "m.dafh", trusted=TREES)):
        final, rows = model[-1], model[:-1].transform(data.X)
        label, probability, group, unseen = final.serve(rows)
        np.testing.assert_array_equal(label, model.predict(data.X))
        np.testing.assert_array_equal(probability, model.predict_proba(data.X))
        np.testing.assert_array_equal(group, final.predict_group(rows))
        assert unseen == final.unseen_categories(rows) == {}


@pytest.mark.parametrize("case", CASES)
def test_the_pooled_classifier_says_about_seen_rows_what_it_says_itself(case):
    data = case()
    final, rows = data.model[-1], data.model[:-1].transform(data.X)
    seen, some = final._encode(rows), np.arange(5, 900, 3)
    expected = logits(class_probabilities(final.pooled_, rows, final.classes_))
    np.testing.assert_allclose(pooled_logits(final.pooled_, seen, final.classes_), expected, rtol=1e-12, atol=1e-12)
    taken = seen.take(some)
    np.testing.assert_array_equal(pooled_labels(final.pooled_, taken), final.pooled_.predict(take_rows(rows, some)))


def test_any_number_of_rows_is_served_like_a_few():
    data = network_case()
    final, rows = data.model[-1], data.model[:-1].transform(data.X)
    many, few = final.serve(pd.concat([rows] * 8, ignore_index=True)), final.serve(rows)
    np.testing.assert_array_equal(many[2], np.tile(few[2], 8))
    np.testing.assert_allclose(many[1], np.tile(few[1], (8, 1)), rtol=1e-12)


def test_rows_left_to_the_pooled_classifier_get_its_own_label():
    data = cautious_case()
    final, rows = data.model[-1], data.model[:-1].transform(data.X)
    label, probability, group, _ = final.serve(rows)
    left = final.serves_[group] == final.n_groups_
    assert left.any()
    np.testing.assert_array_equal(label[left], final.pooled_.predict(rows)[left])
    assert (label[left] != np.where(probability[left, 1] > 0.5, "yes", "no")).any()


# ---- categorical columns ----


def test_categories_may_come_as_text_or_as_categorical_columns():
    for data in (rules_case(), linear_case(), network_case()):
        coded = data.X.assign(job=pd.Categorical(data.X["job"], categories=["pilot", "unused", "clerk", "cook"]))
        np.testing.assert_array_equal(data.model.predict_proba(coded), data.model.predict_proba(data.X))
        np.testing.assert_array_equal(data.model.predict(coded), data.model.predict(data.X))
