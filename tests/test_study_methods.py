"""What a job does, on a small data set in place of a real one: the split, the attributes, the figures."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from dafh import DAFHClassifier
from dafh.datasets import make_paper_synthetic
from dafh.evaluation.audit import audit
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.exceptions import InputError
from dafh.linear import Scorecard, StandardizedLogisticRegression
from dafh.study import methods
from dafh.study.grid import sgd_logistic
from dafh.study.methods import (
    GROUP_ATTRIBUTES,
    choose_attributes,
    execute,
    figures,
    load_split,
    probability_figures,
)
from dafh.study.runner import Job
from dafh.study.synthetic import SyntheticExperiment, SyntheticResult
from dafh.study.tables import DATASETS


@pytest.fixture
def asked(monkeypatch):
    """A data set "toy": two sexes with opposite rules, a column of words, and a record of how it was asked for."""
    calls = []

    def fetch(**options):
        calls.append(options)
        rng = np.random.default_rng(0)
        sex, age = rng.choice(["f", "m"], 800), rng.choice(["old", "young"], 800)
        x = rng.normal(size=800)
        X = pd.DataFrame({"x": x, "job": rng.choice(["a", "b", "c"], 800)})
        people = pd.DataFrame({"sex": sex, "age_group": age, "race_group": rng.choice(["Caucasian", "other"], 800)})
        return Bunch(X=X, y=pd.Series(((x > 0) == (sex == "f")) * 1), sensitive_features=people)

    monkeypatch.setattr(methods, "FETCHERS", {"toy": fetch, "bank": fetch})
    monkeypatch.setitem(GROUP_ATTRIBUTES, "toy", ["sex", "age_group"])
    load_split.cache_clear()
    yield calls
    load_split.cache_clear()


def job(method, n_groups=2, split=0, dataset="toy"):
    return Job("honest", dataset, method, n_groups, split)


# ---- splits ----


def test_a_split_is_a_quarter_of_the_rows_by_the_number_of_the_split(asked):
    data = load_split("toy", 3)
    train, test = train_test_split(np.arange(800), test_size=0.25, random_state=3)
    assert (len(data.y), len(data.y_test)) == (600, 200)
    assert data.attributes.index.tolist() == train.tolist()
    assert data.attributes_test.index.tolist() == test.tolist()


def test_words_become_columns_and_rows_stay_beside_their_attributes(asked):
    data = load_split("toy", 0)
    assert data.X.dtype == np.float64
    assert data.X.shape[1] == data.X_test.shape[1] > 2
    # The rule of the toy data holds exactly, so that one misplaced row would show.
    women = (data.attributes_test["sex"] == "f").to_numpy()
    positive = women & (data.y_test == 1)
    assert data.X_test[positive, 0].min() > data.X_test[women & ~positive, 0].max()


def test_the_same_split_is_loaded_once_and_others_again(asked):
    for split in (0, 0, 1):
        load_split("toy", split)
    assert len(asked) == 2


def test_bank_has_the_duration_of_the_call_as_in_the_paper(asked):
    load_split("bank", 0)
    load_split("toy", 0)
    assert asked == [{"remove": "paper", "include_duration": True}, {"remove": "paper"}]


# ---- methods ----


def test_yardsticks_are_the_converged_classifier_and_the_majority(asked):
    data = load_split("toy", 0)
    (pooled,), (majority,) = execute(job("pooled", 1)), execute(job("majority", 1))
    exact = StandardizedLogisticRegression().fit(data.X, data.y)
    assert (pooled["accuracy"], pooled["n_models"]) == (exact.score(data.X_test, data.y_test), 1)
    assert pooled["log_loss"] == log_loss(data.y_test, exact.predict_proba(data.X_test))
    assert pooled["seconds"] > 0
    most = np.bincount(data.y).argmax()
    assert majority["accuracy"] == pytest.approx((data.y_test == most).mean())
    assert majority["auc"] == 0.5


def test_the_scorecard_sees_the_table_and_boosting_the_encoded_columns(asked):
    data = load_split("toy", 0)
    (scorecard,), (boosting,) = execute(job("scorecard", 1)), execute(job("boosting", 1))
    own = Scorecard().fit(data.table, data.y)
    assert scorecard["accuracy"] == own.score(data.table_test, data.y_test)
    other = HistGradientBoostingClassifier(random_state=0).fit(data.X, data.y)
    assert boosting["accuracy"] == other.score(data.X_test, data.y_test)
    assert set(scorecard) == set(boosting)


def test_the_trivial_partition_divides_by_the_papers_attribute_only(asked):
    (row,) = execute(job("trivial"))
    assert row["n_models"] == 2
    assert row["accuracy"] > 0.9 > row["pooled_accuracy"]
    assert row["max_gain"] >= row["min_gain"] > 0.2


@pytest.mark.parametrize("method", ["lr-all", "treelr"])
def test_methods_by_attributes_get_no_sensitive_column_among_the_features(asked, method):
    execute(job(method))
    assert asked == [{"remove": "all"}]


def test_attributes_are_chosen_by_the_method(asked):
    data = load_split("toy", 0)
    chosen = {m: choose_attributes(job(m), data) for m in ("trivial", "lr-all", "clustering")}
    assert list(chosen["trivial"][0].columns) == ["sex"]
    assert list(chosen["lr-all"][1].columns) == ["sex", "age_group"]
    assert list(chosen["clustering"][0].columns) == ["sex", "age_group", "race_group"]
    assert all((len(train), len(test)) == (600, 200) for train, test in chosen.values())


def test_every_real_data_set_has_attributes_for_the_groups_of_lr_all():
    assert set(GROUP_ATTRIBUTES) == set(DATASETS)


def test_the_same_job_gives_the_same_row_and_another_split_another(asked):
    first, again, other = (execute(job("clustering", 3, split)) for split in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_method_that_does_not_exist_is_refused(asked):
    with pytest.raises(InputError, match="no baseline 'best'"):
        execute(job("best"))


def test_a_row_of_dafh_says_how_many_classifiers_are_in_use(asked, monkeypatch):
    fitted, kinds = [], []

    def quick(n_groups, *, groups, **settings):
        kinds.append(groups)
        fitted.append(DAFHClassifier(n_groups, groups="rules", **settings))
        return fitted[-1]

    monkeypatch.setattr(methods, "DAFHClassifier", quick)
    (row,) = execute(job("dafh", n_groups=3))
    (model,) = fitted
    assert (model.n_groups, model.pooled, model.random_state) == (3, "linear", 0)
    serves = model.serves_.tolist()
    assert row["n_models"] == len(set(serves))
    assert row["pooled_groups"] == serves.count(model.n_groups_)
    data = load_split("toy", 0)
    assert row["accuracy"] == pytest.approx(model.score(data.table_test, data.y_test))
    assert row["log_loss"] == pytest.approx(log_loss(data.y_test, model.predict_proba(data.table_test)))
    assert (row["n_found"], row["by_network"]) == (model.n_groups_, False)
    execute(job("dafh-rules")), execute(job("dafh-network"))
    assert kinds == ["auto", "rules", "network"]


def test_the_default_is_what_a_user_gets_without_any_setting(asked, monkeypatch):
    asked_for = []

    def quick(**settings):
        asked_for.append(settings)
        return DAFHClassifier(2, groups="rules", **settings)

    monkeypatch.setattr(methods, "DAFHClassifier", quick)
    (row,) = execute(job("default", n_groups=1, split=3))
    assert asked_for == [{"random_state": 3}]
    assert {"accuracy", "log_loss", "seconds", "n_found", "p_values"} <= set(row)


def test_stability_is_that_of_rules_refitted_on_ten_resamples(asked, monkeypatch):
    calls = []

    def quick(model, X, y, *, resamples):
        calls.append((model.n_groups, model.groups, model.pooled, len(X), len(y), resamples))
        return 0.75

    # The package has a function of this name, too, which hides the module.
    monkeypatch.setattr(import_module("dafh.explanation.stability"), "stability", quick)
    assert execute(job("stability", n_groups=3)) == [{"stability": 0.75}]
    assert calls == [(3, "rules", "linear", 600, 600, 10)]


class Halves:
    """Stands for a fitted model: group 0 where the first column is negative."""

    def __init__(self, n_groups=2, **settings):
        pass

    def fit(self, X, y):
        return self

    def predict_group(self, X):
        return (X["x"] > 0).to_numpy() * 1


def test_composition_is_the_share_of_each_combination_within_its_group(asked, monkeypatch):
    monkeypatch.setattr(methods, "DAFHClassifier", Halves)
    shares = pd.DataFrame(execute(job("composition")))
    data = load_split("toy", 0)
    people = data.attributes_test.assign(group=Halves().predict_group(data.table_test))
    assert shares.groupby("group")["share"].sum().tolist() == pytest.approx([1, 1])
    assert set(shares["race_group"]) == {"White", "Non-White"}
    wanted = shares.query("group == 1 and sex == 'f' and age_group == 'old' and race_group == 'White'")["share"].item()
    rows = people[people["group"] == 1]
    expected = (rows["sex"] == "f") & (rows["age_group"] == "old") & (rows["race_group"] == "Caucasian")
    assert wanted == pytest.approx(expected.mean())


# ---- figures ----


def test_figures_are_those_of_the_preference_matrix_and_of_the_audit():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    predictions = np.where(rng.random((300, 2)) < 0.7, y[:, None], 1 - y[:, None])
    pooled = np.where(rng.random(300) < 0.6, y, 1 - y)
    result = audit(y, predictions, groups, pooled=pooled)
    row, matrix = figures(result), PreferenceMatrix.from_predictions(y, predictions, groups, pooled)
    for name in ("accuracy", "pooled_accuracy", "violations", "max_gain", "min_gain", "disagreement", "max_envy_gap"):
        assert row[name] == getattr(matrix, name)
    assert row["pr"] == matrix.pr_without_harm
    assert row["smallest_share"] == pytest.approx(np.bincount(groups).min() / 300)
    assert len(row["p_values"]) == 4  # Each group asks about the pooled classifier and about the other group's.


def test_a_group_without_test_rows_asks_nothing_and_is_not_the_smallest():
    y = np.array([0, 1] * 20)
    predictions = np.column_stack([y, y, 1 - y])
    row = figures(audit(y, predictions, np.repeat([0, 1], 20), pooled=y))
    assert row["smallest_share"] == 0.5
    assert len(row["p_values"]) < 9


def test_copies_of_the_pooled_classifier_have_a_perfect_pr_and_no_disagreement():
    y = np.array([0, 1] * 20)
    pooled = np.r_[y[:30], 1 - y[30:]]
    row = figures(audit(y, np.column_stack([pooled, pooled]), np.tile([0, 0, 1, 1], 10), pooled=pooled))
    assert (row["pr"], row["disagreement"], row["violations"]) == (1, 0, 0)
    assert row["accuracy"] == row["pooled_accuracy"] == 0.75


def test_calibration_and_auc_by_hand():
    # Ten parts of two rows each; every part but one has the share of positive labels that it is given.
    y = np.array([0, 1] * 9 + [0, 0])
    positive = np.repeat([0.5, 0.9], [18, 2])
    assert probability_figures(y, positive)["calibration"] == pytest.approx(0.9 * 2 / 20)
    # Of the 2 · 2 pairs of a positive and a negative row, three are in order.
    found = probability_figures(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.5, 0.8]))
    assert found["auc"] == pytest.approx(3 / 4)
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.5, 0.8]).mean())
    assert found["calibration"] == pytest.approx((0.1 + 0.6 + 0.5 + 0.2) / 4)  # Fewer rows than parts: one row each.


def test_figures_of_probabilities_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    positive = rng.random(203)
    y, order = (rng.random(203) < positive) * 1, rng.permutation(203)
    assert probability_figures(y, positive) == pytest.approx(probability_figures(y[order], positive[order]))


# ---- the paper's SGD ----


def test_the_papers_sgd_has_one_classifier_for_each_number_of_epochs_and_rate():
    data = make_paper_synthetic(300, random_state=0)
    X, y = data.X.to_numpy(), (data.y == 1) * 1
    layers = sgd_logistic(X, y, 256, seed=0)
    assert set(layers) == {(epochs, rate) for epochs in (2, 3, 4) for rate in (1e-2, 1e-1)}
    np.testing.assert_array_equal(layers[3, 1e-2].weight, sgd_logistic(X, y, 256, seed=0)[3, 1e-2].weight)
    assert not np.array_equal(layers[2, 1e-2].weight, layers[4, 1e-2].weight)


# ---- the synthetic experiment ----


def test_the_table_of_the_synthetic_experiment_by_hand():
    y, groups = np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1])
    right, pooled = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 1])
    matrix = PreferenceMatrix.from_predictions(y, np.column_stack([right, right]), groups, pooled)
    experiment = SyntheticExperiment(pd.DataFrame(), y, [SyntheticResult("DAFH", matrix, groups, Halves())])
    row = experiment.table().loc["DAFH"]
    assert (row["accuracy"], row["gain"], row["smallest_group_gain"]) == (1, 0.5, 0.5)
    assert (row["violations"], row["pr_without_harm"]) == (0, 1)
    assert (row["smallest_group"], row["disagreement"]) == (0.5, 0.5)
