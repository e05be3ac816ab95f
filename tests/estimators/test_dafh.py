import copy
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB

from cases import checkerboard
from dafh import PreferenceMatrix
from dafh.datasets import make_paper_synthetic
from dafh.exceptions import GroupsEncodeLabelWarning
from models import model_of

QUICK = {"n_replicas": 4, "max_epochs": 8, "n_folds": 1, "random_state": 0}


@pytest.fixture(scope="module")
def paper_data():
    """Fewer rows than other tests have: these fit more than thirty networks."""
    return make_paper_synthetic(1_500, random_state=0)


@pytest.fixture(scope="module")
def fitted(paper_data):
    return model_of(**QUICK).fit(paper_data.X, paper_data.y)


@pytest.fixture(scope="module")
def beside_naive_bayes(paper_data):
    """A model whose pooled classifier is not linear, and was fitted with it."""
    return model_of(pooled=GaussianNB(), **QUICK).fit(paper_data.X, paper_data.y)


@pytest.mark.slow
def test_random_starts_solve_the_synthetic_problem_for_twenty_seeds():
    """Bayes-optimal accuracy is 96.96%; fresh rows by the 100,000 keep the noise of the test out of the figure."""
    accuracies = []
    for seed in range(20):
        data = make_paper_synthetic(random_state=seed)
        X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=seed)
        model = model_of(n_groups=2, random_state=seed, n_replicas=8).fit(X, y)
        assert PreferenceMatrix.of(model, X_test, y_test).violations == 0
        assert model.score(X_test, y_test) >= 0.96
        fresh = make_paper_synthetic(100_000, random_state=1_000 + seed)
        assert PreferenceMatrix.of(model, fresh.X, fresh.y).violations == 0
        accuracies.append(model.score(fresh.X, fresh.y))
    assert min(accuracies) >= 0.96
    assert np.mean(accuracies) >= 0.968


@pytest.mark.usefixtures("optimized")
def test_known_groups_with_several_classes_are_served_better_than_by_the_pooled_classifier(grouped_data):
    X, y = grouped_data.X, grouped_data.y
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = model_of(n_groups=3, random_state=0, n_replicas=2, n_folds=1, max_epochs=40).fit(X, y)
    matrix = PreferenceMatrix.of(model, X_test, y_test)
    assert matrix.accuracy > matrix.pooled_accuracy + 0.05
    assert model.predict_proba(X_test).shape == (len(X_test), 3)
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1)


def test_same_seed_same_result_and_another_seed_another(fitted, paper_data):
    X, y = paper_data.X, paper_data.y
    first, again = (model.decision_function(X) for model in (fitted, model_of(**QUICK).fit(X, y)))
    other = model_of(**QUICK | {"random_state": 1}).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_outputs_agree_with_each_other(fitted, paper_data):
    X = paper_data.X
    labels, group, every = fitted.predict(X), fitted.predict_group(X), fitted.predict_all(X)
    np.testing.assert_array_equal(labels, every[np.arange(len(X)), group])
    np.testing.assert_array_equal(labels, fitted.classes_[fitted.predict_proba(X).argmax(axis=1)])
    np.testing.assert_array_equal(labels == 1, fitted.decision_function(X) > 0)
    np.testing.assert_array_equal(group, fitted.group_proba(X).argmax(axis=1))
    np.testing.assert_array_equal(every[:, -1], fitted.pooled_.predict(X))
    np.testing.assert_allclose(fitted.group_proba(X).sum(axis=1), 1)
    assert fitted.score(X, paper_data.y) == np.mean(labels == paper_data.y)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize(
    ("layers", "pooled"),
    checkerboard([{}, {"group_hidden": ()}, {"group_hidden": (9, 8)}], ["linear", GaussianNB()]),
)
def test_what_is_served_is_as_good_as_what_was_trained(layers, pooled):
    data = make_paper_synthetic(4_000, random_state=0)
    # Accuracy in training is computed by the engine, over the rows as it sees them; nothing is averaged or held out.
    exact = {"average_steps": 1, "n_folds": 1, "final_rate": 1.0, "select": "last", "group_learning_rate": 1e-12}
    settings = exact | {"classifier_learning_rate": 1e-12, "noise": 0.5, "n_replicas": 1, "max_epochs": 1}
    model = model_of(3, pooled=pooled, guard=None, random_state=0, **settings, **layers).fit(data.X, data.y)
    trained = model.history_["selection_accuracy"].iloc[-1]
    # The pooled logits of training are out of fold, those of serving are not: they differ by less than this.
    assert model.score(data.X, data.y) == pytest.approx(trained, abs=0.01)
    assert (model.predict(data.X) != model.pooled_.predict(data.X)).mean() > 0.02


def named(X):
    return pd.DataFrame(X, columns=["x1", "x2"])


def test_a_row_is_served_the_same_alone_and_in_company(fitted):
    # Rows on the border of the two groups, found by bisection between a row of each.
    X = np.random.default_rng(0).normal(size=(2000, 2))
    group = fitted.predict_group(named(X))
    low, high = X[group == 0][:20], X[group == 1][:20]
    for _ in range(40):
        middle = (low + high) / 2
        below = (fitted.predict_group(named(middle)) == 0)[:, None]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    border = named(np.concatenate([low, high]))
    alone = np.concatenate([fitted.predict(border[i : i + 1]) for i in range(len(border))])
    every = fitted.predict_all(border)[np.arange(len(border)), fitted.predict_group(border)]
    np.testing.assert_array_equal(fitted.predict(border), alone)
    np.testing.assert_array_equal(fitted.predict(border), every)


LABELS = [["no", "yes"], [False, True], [-1, 1], [10, 20], np.array(["a", "b"], dtype=object)]


@pytest.mark.parametrize("method", ["exceptions", pytest.param("network", marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", LABELS)
def test_labels_of_any_type_come_back_as_given(paper_data, names, method):
    X, y = paper_data.X[:600], np.asarray(names)[(paper_data.y[:600] > 0).astype(int)]
    # Two groups would not do: each of four corners has a line of its own.
    settings = {"n_groups": "auto"} if method == "exceptions" else QUICK | {"max_epochs": 60}
    model = model_of(**settings).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert set(model.predict_all(X).ravel().tolist()) <= set(np.asarray(names).tolist())
    assert model.score(X, y) > 0.9


# ---- the pooled classifier ----


class CountingClassifier(LogisticRegression):
    """Remembers how many rows each copy of it was fitted on."""

    fitted_on: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.fitted_on.append(len(X))
        return super().fit(X, y, sample_weight)


def test_corrections_are_trained_on_out_of_fold_logits_and_the_pooled_classifier_on_all_rows(paper_data):
    CountingClassifier.fitted_on.clear()
    model_of(pooled=CountingClassifier(), **QUICK | {"n_folds": 4}).fit(paper_data.X[:400], paper_data.y[:400])
    assert CountingClassifier.fitted_on[0] == 400
    np.testing.assert_allclose(CountingClassifier.fitted_on[1:], [300] * 4, atol=2)  # Without each fold.


@pytest.mark.parametrize("changes", [{"recipe__start": "cold"}, {"n_groups": 5}, {"pooled": "linear"}, {"guard": None}])
def test_parameters_changed_after_fit_change_no_prediction(beside_naive_bayes, paper_data, changes):
    X, model = paper_data.X, copy.deepcopy(beside_naive_bayes)
    before = model.predict_proba(X), model.predict(X), model.predict_group(X), model.predict_all(X)
    model.set_params(**changes)
    for old, new in zip(
        before, (model.predict_proba(X), model.predict(X), model.predict_group(X), model.predict_all(X)), strict=True
    ):
        np.testing.assert_array_equal(old, new)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.slow
def test_settings_of_the_recipe_can_be_searched(paper_data):
    model = model_of(2, n_replicas=4, max_epochs=20, n_folds=1, guard=None, random_state=0)
    search = GridSearchCV(model, {"recipe__shrinkage": [1e6, 0.01]}, cv=2).fit(paper_data.X[:2000], paper_data.y[:2000])
    assert search.best_params_ == {"recipe__shrinkage": 0.01}
    assert model.recipe.shrinkage == (0.01, 0.1)  # The search worked on copies.


def test_a_fitted_classifier_may_list_its_classes_in_any_order(paper_data):
    class Reversed(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.classes_, self.coef_, self.intercept_ = self.classes_[::-1], -self.coef_, -self.intercept_
            return self

    X, y = paper_data.X, np.where(paper_data.X.x1 > 0, 1, -1)
    model = model_of(pooled=Reversed().fit(X, y), **QUICK).fit(X, y)
    assert model.score(X, y) > 0.95


@pytest.mark.filterwarnings("ignore::dafh.exceptions.SuspiciousInputWarning")
def test_a_rare_class_survives_the_folds(grouped_data):
    y = grouped_data.y.copy()
    y[0] = 9
    model = model_of(**QUICK).fit(grouped_data.X, y)
    assert 9 in model.classes_
    assert np.isfinite(model.predict_proba(grouped_data.X)).all()


# ---- weights, sizes, warnings ----


@pytest.mark.usefixtures("optimized")
def test_a_warning_says_when_groups_are_the_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int)
    # Classifiers that can only say always yes or always no leave the whole prediction to the groups.
    constant = {"pooled": DummyClassifier(strategy="prior"), "shrinkage": 1e4}
    with pytest.warns(GroupsEncodeLabelWarning, match="encode the predicted label"):
        model = model_of(random_state=0, n_replicas=2, n_folds=1, max_epochs=80, **constant).fit(X, y)
    assert model.label_information_ > 0.5


@pytest.mark.usefixtures("optimized")
def test_columns_on_very_different_scales_and_constant_columns_do_no_harm(paper_data):
    X, y = paper_data.X.to_numpy()[:1500], paper_data.y[:1500]
    stretched = np.column_stack([X[:, 0] * 1e6 + 1e9, X[:, 1] * 1e-6, np.full(len(X), 7.0)])
    model = model_of(random_state=0, n_replicas=4, n_folds=1, max_epochs=60).fit(stretched, y)
    assert model.score(stretched, y) > 0.95
