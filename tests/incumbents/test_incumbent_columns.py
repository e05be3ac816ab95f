"""A score and a decision in the table as the pooled classifier."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone

from cases import checkerboard
from dafh import DAFHClassifier, IncumbentColumns, Recipe, load, save, tabular_pipeline
from dafh.exceptions import InputError
from models import workers


def scored(n=450, seed=0):
    """Rows with a score that knows the hours and half of the experience, and decisions by a person."""
    data = workers(n, seed)
    rng = np.random.default_rng(seed + 1)
    known = 0.15 * (data.X["hours"].fillna(38) - 38) + 0.06 * (data.X["experience"] - 20) + rng.normal(0, 0.5, n)
    table = data.X.assign(
        score=expit(known), points=(600 - 40 * known).round(), decided=np.where(known > -0.4, "yes", "no")
    )
    return table, data.y


TABLE, Y = scored()


def groups_on(pooled, **settings):
    # Two folds instead of five: what is asked here does not depend on it, and a fit takes half of the time.
    return DAFHClassifier(2, pooled=pooled, recipe=Recipe(n_folds=2), random_state=0, **settings)


def without(*names):
    return TABLE.drop(columns=[name for name in ("score", "points", "decided") if name not in names])


# ---- what it says ----


def test_a_score_between_0_and_1_is_the_probability_and_decides_at_one_half():
    incumbent = IncumbentColumns("score").fit(TABLE, Y)
    np.testing.assert_array_equal(incumbent.predict_proba(TABLE)[:, 1], TABLE["score"])
    np.testing.assert_array_equal(incumbent.predict(TABLE) == "yes", TABLE["score"] > 0.5)
    lower = IncumbentColumns("score", threshold=0.3).fit(TABLE, Y)
    np.testing.assert_array_equal(lower.predict(TABLE) == "yes", TABLE["score"] > 0.3)


def test_a_score_on_another_scale_becomes_a_probability_and_may_fall_with_it():
    """Fewer points speak for "yes" here, as a credit score does for default."""
    incumbent = IncumbentColumns("points", threshold=610.0).fit(TABLE, Y)
    np.testing.assert_array_equal(incumbent.predict(TABLE) == "yes", TABLE["points"] < 610)
    probability = incumbent.predict_proba(TABLE)[:, 1]
    assert (np.diff(probability[np.argsort(TABLE["points"])]) <= 0).all()
    assert probability.mean() == pytest.approx((Y == "yes").mean(), abs=0.01)


def test_a_probability_of_the_first_label_is_turned_around():
    against = TABLE.assign(score=1 - TABLE["score"])
    incumbent = IncumbentColumns("score").fit(against, Y)
    np.testing.assert_array_equal(incumbent.predict(against) == "yes", against["score"] < 0.5)
    assert np.corrcoef(incumbent.predict_proba(against)[:, 1], TABLE["score"])[0, 1] > 0.95


@pytest.mark.parametrize("score", ["score", "points"])
def test_the_decision_in_the_table_is_the_decision(score):
    incumbent = IncumbentColumns(score, "decided").fit(TABLE, Y)
    np.testing.assert_array_equal(incumbent.predict(TABLE), TABLE["decided"])


def test_a_decision_alone_has_the_shares_of_the_labels_among_its_rows():
    incumbent = IncumbentColumns(decision="decided").fit(TABLE, Y)
    for said in ("no", "yes"):
        rows = TABLE["decided"] == said
        assert incumbent.predict_proba(TABLE)[rows, 1] == pytest.approx((Y[rows] == "yes").mean(), abs=0.005)


@pytest.mark.parametrize(
    ("decided", "labels"),
    [
        ([True, False], [1, 0]),
        (["1", "0"], [1, 0]),
        ([1.0, 0.0], [1, 0]),
        (["TRUE", "false"], [True, False]),
        (pd.Categorical(["b", "a"]), ["b", "a"]),
    ],
)
def test_decisions_are_matched_with_labels_by_their_words(decided, labels):
    table = pd.DataFrame({"said": decided})
    incumbent = IncumbentColumns(decision="said").fit(table, np.array(labels))
    assert incumbent.predict(table).tolist() == labels


def test_three_classes_need_no_score():
    y = np.array(["a", "b", "c"] * 40)
    table = pd.DataFrame({"said": np.roll(y, 1), "x": np.arange(120) % 7, "score": 0.5})
    np.testing.assert_array_equal(IncumbentColumns(decision="said").fit(table, y).predict(table), np.roll(y, 1))
    with pytest.raises(InputError, match="two classes"):
        IncumbentColumns("score").fit(table, y)


# ---- as the pooled classifier ----

SHAPES = {
    "score": (IncumbentColumns("score"), ["score"]),
    "points": (IncumbentColumns("points", threshold=610.0), ["points"]),
    "both": (IncumbentColumns("score", "decided"), ["score", "decided"]),
    "decision": (IncumbentColumns(decision="decided"), ["decided"]),
}


@pytest.mark.parametrize(("name", "behind"), checkerboard(SHAPES, [False, True]))
def test_the_columns_are_the_pooled_classifier_and_no_features(name, behind, tmp_path):
    pooled, columns = SHAPES[name]
    table = without(*columns)
    said = clone(pooled).fit(table, Y).predict(table)
    model = groups_on(pooled)
    model = (tabular_pipeline(model) if behind else model).fit(table, Y)
    final, rows = (model[-1], model[0].transform(table)) if behind else (model, table)
    np.testing.assert_array_equal(final.predict_all(rows)[:, -1], said)
    assert not set(columns) & set(final.feature_names_in_)
    assert model.score(table, Y) > (said == Y).mean() + 0.05
    save(model, tmp_path / "model.dafh")
    loaded = load(tmp_path / "model.dafh")
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert repr(clone(loaded).get_params()) == repr(clone(model).get_params())
    with pytest.raises(InputError, match=columns[0]):
        model.predict(table.drop(columns=columns[0]))


def test_the_cut_off_of_the_decisions_is_kept():
    model = groups_on(IncumbentColumns("score", "decided"), guard=None).fit(without("score", "decided"), Y)
    assert model.threshold_ == pytest.approx(expit(-0.4), abs=0.01)


# ---- what cannot be used ----


@pytest.mark.parametrize(
    ("pooled", "table", "message"),
    [
        (IncumbentColumns(), TABLE, "Name the column"),
        (IncumbentColumns("scores"), TABLE, "'scores'"),
        (IncumbentColumns("points"), TABLE, "no probability"),
        (IncumbentColumns("job"), TABLE, "a score is a number"),
        (IncumbentColumns("hours", threshold=40), TABLE, "missing in"),
        (IncumbentColumns(decision="job"), TABLE, "none of the labels"),
        (IncumbentColumns("score", "decided", threshold=0.3), TABLE, "leave the threshold out"),
        (IncumbentColumns("score", threshold="high"), TABLE, "'threshold' parameter"),
        (IncumbentColumns("score"), TABLE[["score"]].to_numpy(), "data frame"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_in_one_sentence(pooled, table, message):
    with pytest.raises(InputError, match=message):
        clone(pooled).fit(table, Y)


def test_a_probability_stays_one_when_rows_are_scored():
    model = groups_on(IncumbentColumns("score")).fit(without("score"), Y)
    with pytest.raises(InputError, match="held probabilities"):
        model.predict(without("score").assign(score=640.0))
