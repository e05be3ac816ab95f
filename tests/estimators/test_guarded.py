"""The guard in the estimators: which rows it sees, what it changes, and what it leaves alone."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from dafh import AuditResult, DAFHClassifier, DecoupledClassifier, PreferenceMatrix, tabular_pipeline
from dafh.datasets import make_paper_synthetic
from dafh.exceptions import InputError
from dafh.partitions import AttributePartition, IntersectionPartition, PooledPartition, RandomPartition, TreePartition
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


def test_veto_is_the_default_and_judges_models_that_did_not_see_the_rows():
    model, *_ = overfitted("veto")
    assert DAFHClassifier().guard == "veto"
    assert model.guard_report_.cross_fitted
    assert "by models trained without them" in str(model.guard_report_)
    assert model.guard_report_.n_rows == pytest.approx(0.3 * 0.2 * 1200, abs=4)  # Three tenths of one fold.


def test_without_a_guard_every_group_keeps_its_own():
    model, *_ = overfitted(None)
    assert model.guard_report_ is None
    assert model.serves_.tolist() == [0, 1, 2]


def test_what_serves_is_what_the_report_says():
    model, X, _ = overfitted("veto")
    group = model.predict_group(X)
    every, served = model.predict_all(X), model.predict(X)
    np.testing.assert_array_equal(served, every[np.arange(len(X)), group])
    vetoed = model.serves_[group] == 3
    np.testing.assert_array_equal(served[vetoed], model.pooled_.predict(X)[vetoed])


def test_proof_keeps_good_classifiers_and_its_rows_from_everything(paper_data):
    X, y = paper_data.X[:2500], paper_data.y[:2500]
    model = model_of(guard="proof", **QUICK | {"n_replicas": 4, "max_epochs": 40}).fit(X, y)
    assert model.serves_.tolist() == [0, 1]
    assert not model.guard_report_.cross_fitted
    assert model.guard_report_.n_rows == pytest.approx(500, abs=1)
    assert (model.guard_report_.table["excluded_harm"] < 0).all()


def test_recalibration_decides_anew_and_refits_nothing(paper_data):
    model = model_of(**QUICK | {"n_replicas": 4, "max_epochs": 40}).fit(paper_data.X, paper_data.y)
    before, kept = model.decision_function(paper_data.X), model.predict_group(paper_data.X)
    assert model.serves_.tolist() == [0, 1]
    # Labels that the pooled classifier always gets right.
    model.recalibrate(paper_data.X, model.pooled_.predict(paper_data.X))
    assert model.serves_.tolist() == [2, 2]
    np.testing.assert_array_equal(model.predict(paper_data.X), model.pooled_.predict(paper_data.X))
    model.set_params(guard="proof").recalibrate(paper_data.X, paper_data.y)
    assert model.serves_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_group(paper_data.X), kept)
    np.testing.assert_array_equal(model.decision_function(paper_data.X), before)


def test_calibration_rows_of_the_user_are_used_for_the_guard_only(paper_data):
    fresh = make_paper_synthetic(700, random_state=5)
    model = model_of(guard="proof", **QUICK | {"max_epochs": 30, "n_replicas": 4})
    X, y = paper_data.X[:1500], paper_data.y[:1500]
    model.fit(X, y, X_calibration=fresh.X, y_calibration=fresh.y)
    assert model.guard_report_.n_rows == 700
    again = clone(model).set_params(guard=None).fit(X, y)
    np.testing.assert_array_equal(model.predict_group(fresh.X), again.predict_group(fresh.X))


def test_calibration_rows_that_make_no_sense_are_refused(paper_data, monkeypatch):
    X, y = paper_data.X, paper_data.y
    with monkeypatch.context() as patch:
        patch.setattr("dafh.estimators.dafh.fit_pooled", None)  # Refused before anything is trained.
        for X_bad, y_bad, message in ((X, y[:5], "one label for each"), (X, np.full(4000, "x"), "was not fitted with")):
            with pytest.raises(InputError, match=message):
                model_of(**QUICK).fit(X, y, X_calibration=X_bad, y_calibration=y_bad)
    with pytest.raises(InputError, match="belong together"):
        model_of(**QUICK).fit(X, y, X_calibration=X)
    with pytest.raises(InputError, match="guard is off"):
        model_of(guard=None, **QUICK).fit(X, y, X_calibration=X, y_calibration=y)
    model = model_of(guard=None, **QUICK).fit(X, y)
    with pytest.raises(InputError, match="guard is off"):
        model.recalibrate(X, y)
    with pytest.raises(ValueError, match="'guard' parameter"):
        model.set_params(guard="prof").recalibrate(X, y)


@pytest.mark.parametrize(
    "options",
    [{"guard": "hope"}, {"guard_level": 0}, {"guard_margin": -1}, {"calibration_size": 1.0}, {"n_folds": 0}],
)
def test_bad_parameters_of_the_guard_are_named(options, paper_data):
    with pytest.raises(ValueError, match=next(iter(options))):
        model_of(**QUICK | options).fit(paper_data.X, paper_data.y)


def test_a_group_given_back_gets_the_incumbents_own_word():
    """An incumbent with a threshold of its own, and one that is no matrix product."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3))
    y = (X[:, 0] + rng.normal(size=800) > 0) * 1
    thresholded = FixedThresholdClassifier(LogisticRegression(), threshold=0.7).fit(X, y)
    for pooled in (thresholded, HistGradientBoostingClassifier(max_iter=5)):
        for start in ("pooled", "cold"):
            model = model_of(pooled=pooled, start=start, guard="proof", noise=2.0, **QUICK).fit(X, y)
            assert 2 in model.serves_
            rows = model.serves_[model.predict_group(X)] == 2
            np.testing.assert_array_equal(model.predict(X)[rows], model.pooled_.predict(X)[rows])
            expected = model.pooled_.predict_proba(X)[rows]
            np.testing.assert_allclose(model.predict_proba(X)[rows], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize("guard", ["veto", "proof"])
def test_few_different_rows_are_guarded_row_by_row(guard):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (250, 2)).astype(float)
    y = (X[:, 0] + rng.random(250) > 0.8) * 1
    model = model_of(guard=guard, **QUICK).fit(X, y)
    assert model.guard_report_.n_rows == (50 if guard == "proof" else 0)
    tiny = model_of(guard=guard, **QUICK).fit(X[:8], np.tile([0, 1], 4))
    assert str(tiny.guard_report_)
    assert DecoupledClassifier(guard=guard, random_state=0).fit(X[:8], np.tile([0, 1], 4)).guard_report_ is not None


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize(("guard", "n_rows"), [("veto", 0), ("proof", 8)])
def test_a_few_rows_are_guarded_too(guard, n_rows):
    """Labels that nothing explains: 40 rows are too few to set some aside for a veto, and too few for a proof."""
    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    model = model_of(guard=guard, **QUICK).fit(X, y)
    assert model.guard_report_.n_rows == n_rows
    np.testing.assert_array_equal(model.serves_, model.guard_report_.serves)
    served = model.predict_all(X)[np.arange(40), model.predict_group(X)]
    np.testing.assert_array_equal(model.predict(X), served)
    if guard == "proof":
        assert (model.serves_ == model.n_groups_).all()


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize("estimator", [model_of(guard="proof", **QUICK), DecoupledClassifier(guard="proof")])
def test_proof_without_a_row_to_judge_by_leaves_everything_to_the_pooled_classifier(estimator):
    """One row of the rare class: where it is drawn for calibration, none can be spared, and nothing is proved."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (np.arange(40) == 0).astype(int)
    models = [clone(estimator).set_params(random_state=seed, calibration_size=0.5).fit(X, y) for seed in range(6)]
    n_rows = [model.guard_report_.n_rows for model in models]
    assert 0 in n_rows
    assert 20 in n_rows
    unproved = models[n_rows.index(0)]
    assert unproved.serves_.tolist() == [2, 2]
    assert "had no rows to decide by" in str(unproved.guard_report_)
    np.testing.assert_array_equal(unproved.predict(X), unproved.pooled_.predict(X))


@pytest.mark.parametrize("estimator", [model_of(guard="veto", **QUICK), DecoupledClassifier(random_state=0)])
def test_an_empty_calibration_part_is_refused_or_proves_nothing(estimator, paper_data):
    X, y = paper_data.X, paper_data.y
    model = estimator.fit(X, y).set_params(guard="proof")
    with pytest.raises(ValueError, match="0 sample"):
        model.recalibrate(X[:0], y[:0])
    tiny = clone(estimator).set_params(guard="proof", calibration_size=1e-5).fit(X, y)
    assert tiny.guard_report_.n_rows == 0
    assert tiny.serves_.tolist() == [2, 2]


def test_proof_sets_its_share_of_all_rows_aside(paper_data):
    model = model_of(calibration_size=0.4, guard="proof", random_state=0).fit(paper_data.X, paper_data.y)
    assert model.guard_report_.n_rows == 1600


@pytest.mark.parametrize("estimator", [DAFHClassifier(), DecoupledClassifier()])
def test_weights_and_attributes_are_never_taken_for_each_other(estimator, paper_data):
    for method in ("fit", "recalibrate"):
        with pytest.raises(TypeError, match="positional"):
            getattr(estimator, method)(paper_data.X, paper_data.y, np.ones(4000))


def test_the_last_epoch_can_be_guarded_too(paper_data):
    model = model_of(guard="veto", select="last", random_state=0, n_replicas=2, max_epochs=5)
    model.fit(paper_data.X, paper_data.y)
    assert model.best_epoch_ == 5
    assert model.guard_report_.cross_fitted
    assert model.guard_report_.n_rows == pytest.approx(0.3 * 4000, abs=10)  # Three tenths of each of five folds.


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


def test_a_guarded_pipeline_can_be_audited(paper_data):
    frame = paper_data.X.assign(colour=np.where(np.arange(4000) % 3, "red", None))
    model = tabular_pipeline(model_of(**QUICK)).fit(frame, paper_data.y)
    result = AuditResult.of(model, frame, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert result.matrix.accuracy == pytest.approx(model.score(frame, paper_data.y))
    assert result.named is not None


# ---- DecoupledClassifier ----


def segments(n=2000, seed=0):
    """Group "a" has its own pattern, "b" and "c" the common one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.choice(["a", "b", "c"], n, p=[0.2, 0.4, 0.4])
    y = ((np.where(group == "a", -1, 1) * X[:, 0] + 0.5 * rng.normal(size=n)) > 0) * 1
    return X, y, pd.DataFrame({"group": group})


@pytest.mark.parametrize("guard", ["veto", "proof"])
def test_a_decoupled_classifier_is_guarded(guard):
    X, y, table = segments()
    model = DecoupledClassifier(AttributePartition("group"), guard=guard, random_state=0).fit(
        X, y, sensitive_features=table
    )
    special = model.predict_group(X, table)[table["group"] == "a"][0]
    assert model.serves_[special] == special
    assert model.guard_report_.n_rows == pytest.approx(2000 if guard == "veto" else 400, abs=1)
    every, groups = model.predict_all(X), model.predict_group(X, table)
    np.testing.assert_array_equal(model.predict(X, table), every[np.arange(2000), groups])


def test_a_useless_partition_is_given_back_to_the_pooled_classifier():
    X, y, _ = segments()
    model = DecoupledClassifier(
        RandomPartition(8), DummyClassifier(strategy="uniform"), pooled=LogisticRegression(), guard="veto"
    ).fit(X, y)
    assert model.serves_.tolist() == [8] * 8
    assert all(estimator is model.pooled_ for estimator in model.estimators_)
    np.testing.assert_array_equal(model.predict(X), model.pooled_.predict(X))


def test_a_decoupled_classifier_can_be_recalibrated():
    X, y, table = segments()
    model = DecoupledClassifier(AttributePartition("group"), random_state=0).fit(X, y, sensitive_features=table)
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


def test_rows_of_the_user_guard_a_decoupled_classifier_too():
    X, y, table = segments()
    fresh = segments(600, seed=1)
    calibration = dict(zip(("X_calibration", "y_calibration", "sensitive_features_calibration"), fresh, strict=True))
    model = DecoupledClassifier(AttributePartition("group"), guard="proof", random_state=0)
    assert model.fit(X, y, sensitive_features=table, **calibration).guard_report_.n_rows == 600


def test_people_whom_a_guarded_tree_knows_in_part_are_served_by_the_pooled_classifier():
    X, y, table = segments()
    table["half"] = np.where(np.arange(2000) % 2, "odd", "even")
    model = DecoupledClassifier(TreePartition(), guard="veto", random_state=0).fit(X, y, sensitive_features=table)
    unseen = table.assign(half="other", group="z")
    np.testing.assert_array_equal(model.predict(X, unseen), model.pooled_.predict(X))


def test_tiny_groups_and_classes_survive_the_folds_of_the_guard():
    X, y, _ = segments(60)
    table = pd.DataFrame({"id": np.arange(60) // 2})
    model = DecoupledClassifier(IntersectionPartition(), guard="veto").fit(X, y, sensitive_features=table)
    assert model.n_groups_ == 30
    y[:-1] = 0
    y[-1] = 1  # One row of a class: no fold can hold it out.
    assert DecoupledClassifier(guard="veto", random_state=0).fit(X, y).guard_report_.n_rows == 0
