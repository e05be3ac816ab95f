"""The guard in the estimators: which rows it sees, what it changes, and what it leaves alone."""

import functools
import re
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from command_line import run
from dafh import DAFHClassifier, DecoupledClassifier, PreferenceMatrix
from dafh.exceptions import InputError, WorseServedWarning
from dafh.partitions import (
    NOBODY,
    IntersectionPartition,
    Partition,
    PooledPartition,
)
from model_files import there_and_back
from models import model_of

QUICK = {"n_replicas": 2, "max_epochs": 6, "n_folds": 1, "random_state": 0}


def test_rare_classes_are_in_the_calibration_rows_too():
    """Own classifiers that fail on rare labels only: where those are never asked, harm would go unnoticed."""
    kept = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(1000) < 0.1, rng.integers(2, 52, 1000), rng.integers(0, 2, 1000))
        X = np.column_stack([y, rng.random(1000) < 0.02]).astype(float)
        model = DecoupledClassifier(PooledPartition(), NoRare(), pooled=Rounding(), guard="proof", random_state=seed)
        kept += int(model.fit(X, y).serves_[0] == 0)
    assert kept <= 2


class Rounding(ClassifierMixin, BaseEstimator):
    """Knows every label, but is wrong on marked rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(X[:, 1] > 0, -1, X[:, 0]).astype(int)


class NoRare(Rounding):
    """Is right on marked rows, and wrong on rare labels."""

    def predict(self, X):
        return np.where(X[:, 0] > 1, 0, X[:, 0]).astype(int)


# ---- DAFHClassifier ----


@functools.cache  # Some tests look at the same model, and none changes it.
def overfitted(guard):
    """Groups and classifiers that cannot help: labels are noise around a line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = (X[:, 0] + rng.normal(size=1200) > 0) * 1
    model = model_of(n_groups=3, guard=guard, noise=3.0, **QUICK)
    return model.fit(X, y), X, y


def test_the_guard_gives_groups_back_to_the_pooled_classifier():
    model, X, _ = overfitted("proof")
    assert model.serves_.tolist() == [3, 3, 3]
    np.testing.assert_array_equal(model.predict(X), model.pooled_.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), model.pooled_.predict_proba(X), atol=1e-9)
    every = model.predict_all(X)
    np.testing.assert_array_equal(every[:, :3], every[:, 3:].repeat(3, axis=1))
    assert PreferenceMatrix.of(model, X, model.predict(X)).violations == 0


def test_evidence_is_the_default_and_judges_models_that_did_not_see_the_rows():
    model, *_ = overfitted("evidence")
    assert DAFHClassifier().guard == "evidence"
    assert model.guard_report_.cross_fitted
    assert model.guard_report_.n_rows == pytest.approx(0.3 * 0.2 * 1200, abs=4)  # Three tenths of one fold.


def test_without_a_guard_every_group_keeps_its_own():
    model, *_ = overfitted(None)
    assert model.guard_report_ is None
    assert model.serves_.tolist() == [0, 1, 2]


@pytest.mark.usefixtures("optimized")
def test_proof_keeps_good_classifiers_and_its_rows_from_everything(paper_data):
    X, y = paper_data.X[:2500], paper_data.y[:2500]
    model = model_of(guard="proof", **QUICK | {"n_replicas": 4, "max_epochs": 40}).fit(X, y)
    assert model.serves_.tolist() == [0, 1]
    assert not model.guard_report_.cross_fitted
    assert model.guard_report_.n_rows == pytest.approx(500, abs=1)
    assert (model.guard_report_.table["excluded_harm"] < 0).all()


@pytest.mark.usefixtures("optimized")
@pytest.mark.filterwarnings("ignore:X holds rows that the model was trained on")
def test_recalibration_decides_anew_and_refits_nothing(paper_data):
    X, y = paper_data.X[:2000], paper_data.y[:2000]
    model = model_of(**QUICK | {"n_replicas": 4, "max_epochs": 40}).fit(X, y)
    before, kept = model.decision_function(X), model.predict_group(X)
    assert model.serves_.tolist() == [0, 1]
    # Labels that the pooled classifier always gets right.
    model.recalibrate(X, model.pooled_.predict(X))
    assert model.serves_.tolist() == [2, 2]
    np.testing.assert_array_equal(model.predict(X), model.pooled_.predict(X))
    model.set_params(guard="proof").recalibrate(X, y)
    assert model.serves_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_group(X), kept)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_rows_that_cannot_judge_are_refused(paper_data):
    X, y = paper_data.X, paper_data.y
    model = DAFHClassifier(random_state=0).fit(X[:500], y[:500])
    for y_bad, message in ((y[:5], "one label for each"), (np.full(4000, "x"), "not fitted with")):
        with pytest.raises(InputError, match=message):
            model.recalibrate(X, y_bad)
    with pytest.raises(InputError, match="guard is off"):
        model.set_params(guard=None).recalibrate(X, y)
    with pytest.raises(ValueError, match="'guard' parameter"):
        model.set_params(guard="prof").recalibrate(X, y)


def test_a_group_given_back_gets_the_incumbents_own_word():
    """An incumbent with a threshold of its own, and one that is no matrix product."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3))
    y = (X[:, 0] + rng.normal(size=800) > 0) * 1
    thresholded = FixedThresholdClassifier(LogisticRegression(), threshold=0.7).fit(X, y)
    for pooled, start in ((thresholded, "pooled"), (HistGradientBoostingClassifier(max_iter=5), "cold")):
        model = model_of(pooled=pooled, start=start, guard="proof", noise=2.0, **QUICK).fit(X, y)
        assert 2 in model.serves_
        rows = model.serves_[model.predict_group(X)] == 2
        np.testing.assert_array_equal(model.predict(X)[rows], model.pooled_.predict(X)[rows])
        expected = model.pooled_.predict_proba(X)[rows]
        np.testing.assert_allclose(model.predict_proba(X)[rows], expected, atol=1e-5)


@pytest.mark.parametrize("estimator", [model_of(guard="evidence", **QUICK), DecoupledClassifier(random_state=0)])
def test_no_calibration_rows_are_refused(estimator, paper_data):
    X, y = paper_data.X[:600], paper_data.y[:600]
    model = estimator.fit(X, y).set_params(guard="proof")
    with pytest.raises(ValueError, match="0 sample"):
        model.recalibrate(X[:0], y[:0])


@pytest.mark.parametrize("estimator", [DAFHClassifier(), DecoupledClassifier()])
def test_weights_and_attributes_are_never_taken_for_each_other(estimator, paper_data):
    for method in ("fit", "recalibrate"):
        with pytest.raises(TypeError, match="positional"):
            getattr(estimator, method)(paper_data.X, paper_data.y, np.ones(4000))


@pytest.mark.filterwarnings("ignore:X holds rows that the model was trained on")
def test_weights_count_in_the_guard(paper_data):
    weight = np.random.default_rng(0).uniform(0.1, 3, len(paper_data.y))
    model = model_of(**QUICK).fit(paper_data.X, paper_data.y, sample_weight=weight)
    model.recalibrate(paper_data.X, paper_data.y, sample_weight=weight)
    weighted = model.guard_report_.table
    plain = model.recalibrate(paper_data.X, paper_data.y).guard_report_.table
    assert (weighted["rows"] == plain["rows"]).all()
    assert (weighted["high"] - weighted["low"] > plain["high"] - plain["low"]).all()  # Unequal weights cost rows.
    served = model.predict_all(paper_data.X)
    for k, group in enumerate(np.eye(2, dtype=bool)[model.predict_group(paper_data.X)].T):
        wrong = served[group, 2] != paper_data.y[group]
        assert weighted.loc[k, "pooled_loss"] == pytest.approx(np.average(wrong, weights=weight[group]))


# ---- sensitive groups that lose ----


@functools.cache
def turned_for_men(n=3000):
    """Above 60 the effect of x turns round for men only: a group that helps them fails women. A coin is beside."""
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.25, "f", "m")
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.integers(0, 100, n)})
    effect = np.where((X["z"] > 60) & (sex == "m"), -X["x"], X["x"])
    y = ((effect + 0.5 * rng.normal(size=n)) > 0).astype(int)
    return X, y, pd.DataFrame({"sex": sex, "coin": rng.choice(["heads", "tails"], n)})


@pytest.mark.parametrize("guard", ["evidence", "proof", None])
def test_a_fit_names_sensitive_groups_that_lose_with_size_and_figures(guard):
    X, y, attributes = turned_for_men()
    with pytest.warns(WorseServedWarning) as caught:
        model = DAFHClassifier(2, guard=guard, random_state=0).fit(X, y, sensitive_features=attributes)
    (line,) = [str(warning.message) for warning in caught]
    said = re.fullmatch(
        r"Worse off than with the pooled classifier, on held-out rows: "
        r"sex = f \(error rate (\S+)% instead of (\S+)%, (\S+) rows\)\.",
        line,
    )
    women = (attributes["sex"] == "f").to_numpy()
    own, pooled = (100 * np.mean(m.predict(X)[women] != y[women]) for m in (model, model.pooled_))
    n_rows = int(said[3].replace(",", ""))
    assert n_rows == pytest.approx(women.sum() * (0.2 if guard == "proof" else 1), rel=0.2)
    three_errors = 3 * 100 * 0.5 / n_rows**0.5
    assert float(said[1]) == pytest.approx(own, abs=three_errors)
    assert float(said[2]) == pytest.approx(pooled, abs=three_errors)


def test_a_fit_says_nothing_where_no_sensitive_group_loses():
    X, y, attributes = turned_for_men()
    with warnings.catch_warnings():
        warnings.simplefilter("error", WorseServedWarning)
        for sensitive in (attributes[["coin"]], None):
            DAFHClassifier(2, random_state=0).fit(X, y, sensitive_features=sensitive)
        # The guard protects women, and then they do not lose.
        model = DAFHClassifier(2, random_state=0)
        model.fit(X, y, guard_features=attributes[["sex"]], sensitive_features=attributes)
    assert set(model.guard_report_.checks["part"]) == {"", "sex = f", "sex = m"}


@pytest.mark.filterwarnings("ignore:X holds rows that the model was trained on")
def test_recalibration_and_decoupled_classifiers_name_sensitive_groups_that_lose():
    X, y, attributes = turned_for_men()
    model = DAFHClassifier(2, random_state=0).fit(X, y)
    with pytest.warns(WorseServedWarning, match=r"sex = f"):
        model.recalibrate(X, y, sensitive_features=attributes["sex"])
    model = DecoupledClassifier(PooledPartition(), LogisticRegression(C=1e-4), pooled=LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("error", WorseServedWarning)
        model.set_params(guard="evidence").fit(X, y, sensitive_features=attributes)


def test_sensitive_features_change_nothing_else():
    X, y, attributes = turned_for_men()
    with pytest.warns(WorseServedWarning):
        told = DAFHClassifier(2, random_state=0).fit(X, y, sensitive_features=attributes)
    plain = DAFHClassifier(2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(told.predict_proba(X), plain.predict_proba(X))
    assert str(told.guard_report_) == str(plain.guard_report_)


def test_attributes_that_contradict_each_other_are_refused():
    X, y, attributes = turned_for_men()
    other = attributes.assign(coin="heads")
    with pytest.raises(InputError, match="differ in the column 'coin'"):
        DAFHClassifier(2).fit(X, y, guard_features=attributes, sensitive_features=other)
    with pytest.raises(InputError, match="sensitive_features has 5 rows"):
        DAFHClassifier(2).fit(X, y, sensitive_features=attributes[:5])


def test_rows_in_files_have_sensitive_features_by_name(tmp_path):
    X, y, attributes = turned_for_men()
    X.join(attributes).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.warns(WorseServedWarning, match=r"sex = f"):
        model = DAFHClassifier(2, random_state=0).fit(
            tmp_path / "rows.csv", "y", guard_features="coin", sensitive_features=["sex", "coin"]
        )
    assert model.feature_names_in_.tolist() == ["x", "z"]
    assert set(model.guard_report_.checks["part"]) == {"", "coin = heads", "coin = tails"}


@pytest.mark.filterwarnings("default::dafh.exceptions.WorseServedWarning")
def test_the_command_names_sensitive_groups_that_lose(tmp_path):
    X, y, attributes = turned_for_men()
    X.join(attributes).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--target", "y", "--groups", "2", "--out", tmp_path / "model.dafh", "--sensitive"]
    result = run("fit", tmp_path / "rows.csv", *arguments, "sex,coin")
    assert "Note: Worse off than with the pooled classifier, on held-out rows: sex = f (error rate" in result.stderr
    assert "Worse off" not in run("fit", tmp_path / "rows.csv", *arguments, "coin", "--drop", "sex").output


# ---- DecoupledClassifier ----


def segments(n=2000, seed=0):
    """Group "a" has its own pattern, "b" and "c" the common one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.choice(["a", "b", "c"], n, p=[0.2, 0.4, 0.4])
    y = ((np.where(group == "a", -1, 1) * X[:, 0] + 0.5 * rng.normal(size=n)) > 0) * 1
    return X, y, pd.DataFrame({"group": group})


@pytest.mark.parametrize("guard", ["evidence", "proof"])
def test_a_decoupled_classifier_is_guarded(guard):
    X, y, table = segments()
    model = DecoupledClassifier(IntersectionPartition("group"), guard=guard, random_state=0).fit(
        X, y, sensitive_features=table
    )
    special = model.predict_group(X, table)[table["group"] == "a"][0]
    assert model.serves_[special] == special
    assert model.guard_report_.n_rows == pytest.approx(2000 if guard == "evidence" else 400, abs=1)
    every, groups = model.predict_all(X), model.predict_group(X, table)
    np.testing.assert_array_equal(model.predict(X, table), every[np.arange(2000), groups])


def test_a_decoupled_classifier_can_be_recalibrated():
    X, y, table = segments()
    model = DecoupledClassifier(IntersectionPartition("group"), random_state=0).fit(X, y, sensitive_features=table)
    assert model.guard_report_ is None
    with pytest.raises(InputError, match="guard is off"):
        model.recalibrate(X, y, sensitive_features=table)
    fresh = segments(600, seed=1)
    model.set_params(guard="proof").recalibrate(fresh[0], fresh[1], sensitive_features=fresh[2])
    assert model.guard_report_.n_rows == 600
    assert set(model.serves_) >= {2, 3}  # "a" is the smallest group, and comes last.
    unknown = pd.DataFrame({"group": ["z"] * 600})
    model.recalibrate(fresh[0], fresh[1], sensitive_features=unknown)  # Nobody of a known group: nothing is shown.
    assert model.serves_.tolist() == [3, 3, 3]


def test_tiny_groups_and_classes_survive_the_folds_of_the_guard():
    X, y, _ = segments(60)
    table = pd.DataFrame({"id": np.arange(60) // 2})
    model = DecoupledClassifier(IntersectionPartition(), guard="evidence").fit(X, y, sensitive_features=table)
    assert model.n_groups_ == 30
    y[:-1] = 0
    y[-1] = 1  # One row of a class: no fold can hold it out.
    assert DecoupledClassifier(guard="evidence", random_state=0).fit(X, y).guard_report_.n_rows == 0


class TwoSides(Partition):
    """Group 0 left of zero, group 1 right of it; rows beyond 10 belong to nobody."""

    def fit(self, X, y, sensitive_features=None, sample_weight=None):
        self.group_names_ = ["left", "right"]
        return self

    def assign(self, X, sensitive_features=None):
        return np.where(np.abs(X[:, 0]) > 10, NOBODY, X[:, 0] > 0).astype(np.intp)


class Turned(ClassifierMixin, BaseEstimator):
    """Better than a linear classifier on the left, and worse on the right."""

    fits: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.fits.append(len(y))
        return self

    def predict_proba(self, X):
        second = np.where(X[:, 0] > 0, 0.5 + 0.4 * (X[:, 2] > 0), 0.5 + 0.4 * np.sign(X[:, 1]))
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


@pytest.fixture(scope="module")
def rows():
    """On the left the second column decides, on the right its opposite; a pooled classifier is right where x > 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    X[:, 0] += 0.7  # Most rows are on the right, and the pooled classifier serves them.
    return X, np.where(X[:, 0] > 0, X[:, 1] < 0, X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def guarded(rows):
    model = DecoupledClassifier(
        TwoSides(), Turned(), pooled=LogisticRegression(), fit_on="all", guard="evidence", random_state=0
    )
    Turned.fits.clear()
    return model.fit(*rows)


def test_one_candidate_is_fitted_on_all_rows_and_once_for_each_fold(guarded):
    assert Turned.fits == [800, *[640] * 5]


def test_the_guard_keeps_the_candidate_where_it_is_better_and_the_pooled_classifier_elsewhere(guarded, rows):
    X, y = rows
    assert guarded.serves_.tolist() == [0, 2]
    candidate = Turned().fit(X, y)
    assert guarded.score(X, y) > max(candidate.score(X, y), guarded.pooled_.score(X, y)) + 0.1
    left = X[:, 0] <= 0
    np.testing.assert_array_equal(guarded.predict(X)[left], candidate.predict(X)[left])
    np.testing.assert_array_equal(guarded.predict(X)[~left], guarded.pooled_.predict(X)[~left])


def test_without_a_guard_the_candidate_serves_everybody_but_rows_of_no_group(rows):
    X, y = rows
    model = DecoupledClassifier(TwoSides(), Turned(), pooled=LogisticRegression(), fit_on="all").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), Turned().fit(X, y).predict(X))
    far = np.array([[20.0, 1.0, -1.0]])
    assert model.predict(far) == model.pooled_.predict(far)


def test_a_file_holds_a_candidate_that_serves_several_groups_once(rows, tmp_path):
    X, y = rows
    model = DecoupledClassifier(
        estimator=LogisticRegression(C=0.1), pooled=LogisticRegression(), fit_on="all", random_state=0
    ).fit(X, y)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.fit_on == "all"
