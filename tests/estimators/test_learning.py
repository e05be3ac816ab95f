"""DAFHClassifier with exceptions: groups where they help and none where they do not, with any pooled classifier."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, Recipe, Scorecard, tabular_pipeline
from dafh.exceptions import InputError
from dafh.linear.newton import fit_penalized

# Boosting learns the interaction itself: what is left for groups may well be the label.
may_encode_labels = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
BOOSTING = HistGradientBoostingClassifier(max_iter=10, max_depth=2)


def turning(n=1500, effect=1.0, seed=0):
    """The effect of z turns round with the job; an additive classifier can learn nothing of it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "z": rng.normal(size=n),
            "noise": rng.normal(size=n).round(1),
            "job": rng.choice(["cook", "clerk"], n),
        }
    )
    score = effect * table.z * np.where(table.job == "cook", 1, -1)
    return table, (score + rng.logistic(size=n) > 0).map({False: "no", True: "yes"}).to_numpy()


TABLE, LABELS = turning()
NUMBERS = TABLE.assign(job=(TABLE.job == "cook").astype(float)).to_numpy()


def model_of(n_groups="auto", **settings):
    return DAFHClassifier(n_groups, **{"method": "exceptions", "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    return model_of().fit(TABLE, LABELS)


# ---- the number of groups ----


@pytest.mark.parametrize("pooled", ["scorecard", "linear"])
def test_no_groups_are_made_where_they_add_nothing(pooled):
    rng = np.random.default_rng(0)
    table, _ = turning(600)
    labels = (table.z + rng.logistic(size=600) > 0).to_numpy()
    model = model_of(pooled=pooled).fit(table, labels)
    assert (model.n_groups_, model.serves_.tolist()) == (1, [1])
    np.testing.assert_array_equal(model.predict(table), model.pooled_.predict(table))
    np.testing.assert_allclose(model.predict_proba(table), model.pooled_.predict_proba(table), atol=1e-9)


def test_an_effect_that_turns_round_is_found_and_said(fitted):
    assert fitted.exceptions_.rules in (["job is cook", "everybody else"], ["job is clerk", "everybody else"])
    assert fitted.score(TABLE, LABELS) > fitted.pooled_.score(TABLE, LABELS) + 0.1
    assert (fitted.serves_ == [0, 1]).all()
    assert (fitted.exceptions_.gain > 0.05).all()


# ---- pooled classifiers ----


@pytest.mark.parametrize(
    "pooled",
    [
        pytest.param("linear", id="linear"),
        pytest.param(Scorecard(n_bins=8), id="scorecard"),
        pytest.param(LogisticRegression(), id="third party"),
        pytest.param(tabular_pipeline(LogisticRegression()), id="pipeline of tables"),
    ],
)
def test_any_unfitted_classifier_can_be_the_pooled_one(pooled):
    model = model_of(2, pooled=pooled).fit(TABLE, LABELS)
    assert model.score(TABLE, LABELS) > model.pooled_.score(TABLE, LABELS) + 0.1
    assert not hasattr(pooled, "classes_")


@pytest.mark.parametrize("pooled", ["scorecard", "linear", LogisticRegression()], ids=["card", "linear", "other"])
def test_a_class_too_rare_for_any_fold_is_no_obstacle(pooled):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = model_of(2, pooled=pooled).fit(X, np.arange(100) < 3)
    assert np.isfinite(model.predict_proba(X)).all()


# ---- predictions ----


@pytest.mark.parametrize("pooled", ["scorecard", "linear"])
def test_gaps_and_unseen_categories_are_served(pooled):
    new = TABLE[:40].copy()
    new.loc[::2, "z"], new.loc[::3, "job"], new.loc[1::3, "job"] = np.nan, None, "astronaut"
    table = TABLE.assign(z=TABLE.z.where(np.arange(len(TABLE)) % 50 > 0))
    model = model_of(2, pooled=pooled).fit(table, LABELS)
    assert np.isfinite(model.predict_proba(new)).all()
    assert set(model.predict(new)) <= {"no", "yes"}


@may_encode_labels
def test_gaps_where_training_had_none_are_served_by_bins_and_refused_by_coefficients():
    gaps = np.full((1, 3), np.nan)
    binned = model_of(2, pooled=BOOSTING, guard=None).fit(NUMBERS[:600], LABELS[:600])
    assert np.isfinite(binned.predict_proba(gaps)).all()
    linear = model_of(2, pooled="linear", guard=None).fit(NUMBERS[:600], LABELS[:600])
    with pytest.raises(InputError, match="missing or infinite values"):
        linear.predict(gaps)


def test_every_view_of_a_model_tells_the_same_story(fitted):
    group, every = fitted.predict_group(TABLE), fitted.predict_all(TABLE)
    rows = np.arange(len(TABLE))
    np.testing.assert_array_equal(fitted.predict(TABLE), every[rows, group])
    np.testing.assert_array_equal(every[:, -1], fitted.pooled_.predict(TABLE))
    np.testing.assert_array_equal(fitted.group_proba(TABLE).argmax(axis=1), group)
    np.testing.assert_array_equal(fitted.classes_[fitted.predict_proba(TABLE).argmax(axis=1)], fitted.predict(TABLE))


def test_three_classes_are_served():
    labels = np.where(TABLE.noise > 1, "maybe", LABELS)
    model = model_of(2, pooled=Scorecard(n_bins=8, strength=1.0)).fit(TABLE, labels)
    assert model.predict_proba(TABLE).shape == (len(TABLE), 3)
    assert model.score(TABLE, labels) > model.pooled_.score(TABLE, labels) + 0.05


def test_an_unfitted_model_says_so_and_a_failed_fit_leaves_it_so():
    model = model_of(5)
    with pytest.raises(InputError, match="5 groups"):
        model.fit(TABLE[:4], ["no", "yes"] * 2)
    with pytest.raises(NotFittedError):
        model.predict(TABLE)


@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_a_number_of_groups_is_one_more_than_the_exceptions(n_groups):
    model = model_of(n_groups, pooled="linear").fit(TABLE[:600], LABELS[:600])
    assert model.n_groups_ == len(model.exceptions_.rules) == len(model.exceptions_.regions) + 1 == n_groups


@may_encode_labels
def test_there_are_fewer_groups_where_no_region_of_the_smallest_size_is_left():
    model = model_of(5, pooled="linear").fit(TABLE[["job"]][:600], LABELS[:600])
    assert model.n_groups_ == 2  # Cooks, and all others.


def test_shares_and_groups_are_those_of_the_printed_rules(fitted):
    group = fitted.predict_group(TABLE)
    for number, region in enumerate(fitted.exceptions_.regions):
        np.testing.assert_array_equal(region.holds(TABLE), group == number)
    np.testing.assert_allclose(fitted.exceptions_.share, np.bincount(group) / len(TABLE))


# ---- the network starts at the exceptions ----


@pytest.mark.parametrize("select", ["best", "last"])
def test_a_start_knows_no_row_of_its_fold(select, monkeypatch):
    trained_on = []

    def observed(rows, *others, **options):
        trained_on.append(len(rows.label))
        return fit_penalized(rows, *others, **options)

    monkeypatch.setattr("dafh.estimators.learning.fit_penalized", observed)
    recipe = Recipe(select=select, n_folds=1, max_epochs=1)
    model = model_of(2, method="network", pooled="linear", recipe=recipe).fit(TABLE[:600], LABELS[:600])
    without, everybody = np.reshape(trained_on, (2, 2)).sum(axis=1)  # Two groups each.
    assert everybody == 600
    assert without <= 600 - model.guard_report_.n_rows


# ---- the guard ----


def test_rows_that_prove_something_are_held_out_of_the_pooled_classifier():
    # Enough rows to prove an effect that is there, whichever of them are held out.
    model = model_of(2, guard="proof", pooled=Scorecard()).fit(*turning(3000))
    assert (model.exceptions_.gain > 0).all()
    assert (model.serves_ == [0, 1]).all()
    # A fifth of the rows is unknown to the scorecard: shares of its bins are multiples of one over the rest.
    counts = model.pooled_.shares_[2] * 2400
    np.testing.assert_allclose(counts, counts.round(), atol=1e-6)
    assert counts.sum() == pytest.approx(2400)


# ---- weight of an import ----


def test_exceptions_are_fitted_and_served_without_jax():
    code = """
import sys
import numpy as np
import dafh.estimators.decoupled, dafh.evaluation, dafh.partitions
from dafh import DAFHClassifier
X = np.random.default_rng(0).normal(size=(300, 2))
model = DAFHClassifier(2, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
model.predict_proba(X), str(model.exceptions_)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"jax", "jaxlib", "optax"}))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
