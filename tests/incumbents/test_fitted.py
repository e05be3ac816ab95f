"""Models in production as the pooled classifier: asked with their own rows, columns and labels, and never changed."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from cases import checkerboard
from dafh import DAFHClassifier, Incumbent, Recipe, Scorecard, load, save, tabular_pipeline
from dafh.exceptions import InputError
from models import workers

# On so few rows, groups may be little more than the label.
pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
DATA = workers(450)
X, Y = DATA.X, DATA.y
OWN = ["hours", "job", "experience"]
CODES = (Y == "yes").astype(int)


def raw_pipeline():
    """A pipeline on raw columns, with its own encoders."""
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), (SimpleImputer(), ["hours", "experience"])
    )
    return make_pipeline(columns, StandardScaler(), LogisticRegression())


def with_cutoff(threshold=0.35):
    return FixedThresholdClassifier(raw_pipeline(), threshold=threshold, response_method="predict_proba")


def groups_on(pooled, **settings):
    # Two folds instead of five: what is asked here does not depend on it, and a fit takes half of the time.
    return DAFHClassifier(2, pooled=pooled, recipe=Recipe(n_folds=2), random_state=0, **settings)


class Rulebook:
    """Decides and does nothing else; its labels are those it was told."""

    def __init__(self, labels=("no", "yes")):
        self.labels = labels

    def predict(self, rows):
        return np.array(self.labels, dtype=object)[(rows["experience"] > 25).astype(int)]


# ---- pipelines on raw rows ----

SHAPES = {
    "fewer columns, another order": (with_cutoff(), OWN),
    "all columns": (raw_pipeline(), list(X.columns)),
    "tuned cut-off": (TunedThresholdClassifierCV(raw_pipeline(), scoring="balanced_accuracy", cv=3), OWN),
    "encoder of ours": (tabular_pipeline(HistGradientBoostingClassifier(max_iter=5)), OWN[:2]),
    "no names at all": (
        make_pipeline(FunctionTransformer(lambda rows: rows[["experience"]]), LogisticRegression()),
        OWN,
    ),
}


@functools.cache
def fitted_shape(name):
    unfitted, columns = SHAPES[name]
    return clone(unfitted).fit(X[columns], Y), columns


@pytest.mark.parametrize(("name", "behind"), checkerboard(SHAPES, [False, True]))
def test_an_incumbent_says_the_same_before_and_after(name, behind):
    incumbent, columns = fitted_shape(name)
    before, probability = incumbent.predict(X[columns]), incumbent.predict_proba(X[columns])
    model = groups_on(incumbent)
    model = (tabular_pipeline(model) if behind else model).fit(X, Y)
    final, rows = (model[-1], model[0].transform(X)) if behind else (model, X)
    np.testing.assert_array_equal(final.predict_all(rows)[:, -1], before)
    np.testing.assert_allclose(final.pooled_proba(rows), probability, atol=2e-6)
    np.testing.assert_array_equal(incumbent.predict_proba(X[columns]), probability)
    assert list(final.feature_names_in_) == list(X.columns)
    assert model.score(X, Y) > (before == Y).mean() + 0.05


def test_an_incumbent_behind_a_reader_gets_rows_as_they_came():
    """The reader makes text of the codes and dates of the text; the incumbent knows codes and text."""
    raw = X.assign(code=np.arange(len(X)) % 3, since=X["since"].dt.strftime("%d.%m.%Y"))
    seen = []

    def look(rows):
        seen.append(rows)
        return rows[["experience"]]

    incumbent = make_pipeline(FunctionTransformer(look), LogisticRegression()).fit(raw, Y)
    model = tabular_pipeline(groups_on(incumbent), {"code": "category", "since": "date %d.%m.%Y"}).fit(raw, Y)
    seen.clear()
    model.predict(raw)
    assert seen
    assert all(list(rows.columns) == list(raw.columns) for rows in seen)
    assert all(rows["code"].dtype.kind == "i" and isinstance(rows["since"].iloc[0], str) for rows in seen)


def test_a_column_that_only_the_incumbent_sees_makes_no_groups():
    """Only it tells who is a cook; without it, groups cannot be made by that."""
    table = X.drop(columns="job").assign(bureau=(X["job"] == "cook") + 0.0)
    incumbent = LogisticRegression().fit(table[["bureau", "experience"]], Y)
    free, bound = groups_on(incumbent).fit(table, Y), groups_on(Incumbent(incumbent, only=["bureau"])).fit(table, Y)
    assert "bureau" in str(free.exceptions_)
    assert "bureau" not in str(bound.exceptions_)
    assert "bureau" not in bound.feature_names_in_
    np.testing.assert_array_equal(bound.predict_all(table)[:, -1], incumbent.predict(table[["bureau", "experience"]]))
    with pytest.raises(InputError, match="'bureau'"):
        bound.predict(table.drop(columns="bureau"))


@pytest.mark.parametrize("only", [None, np.array(["x", "z"])])
def test_columns_that_only_an_incumbent_sees_may_be_none_or_an_array(only):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=["x", "y", "z"])
    old = LogisticRegression().fit(table, table["x"] > 0)
    brought = Incumbent(old, only=only)
    model = DAFHClassifier(1, pooled=brought, random_state=0).fit(table, table["x"] > 0)
    assert (model.pooled_.predict(table) == old.predict(table)).all()


def test_columns_that_an_incumbent_remembers_and_never_uses_may_be_gone():
    incumbent = raw_pipeline().fit(X.assign(legacy=1.0), Y)
    model = groups_on(incumbent).fit(X, Y)
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], incumbent.predict(X.assign(legacy=1.0)))


def test_an_incumbent_of_arrays_gets_an_array_of_the_columns_that_it_is_said_to_take():
    names = ["remote", "experience"]
    incumbent = LogisticRegression().fit(X[names].to_numpy(float), Y)
    model = groups_on(Incumbent(incumbent, columns=names)).fit(X, Y)
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], incumbent.predict(X[names].to_numpy(float)))
    with pytest.raises(InputError, match="2 features"):
        groups_on(incumbent).fit(X, Y)


def test_a_frozen_incumbent_stays_fitted_in_cross_validation():
    incumbent, columns = fitted_shape("fewer columns, another order")
    for pooled in (FrozenEstimator(incumbent), Incumbent(incumbent)):
        copy = clone(DAFHClassifier(1, pooled=pooled)).fit(X[:300], Y[:300])
        np.testing.assert_array_equal(copy.predict(X), incumbent.predict(X[columns]))
    assert cross_val_score(DAFHClassifier(1, pooled=Incumbent(incumbent)), X, Y, cv=2).min() > 0.5


# ---- models that give less, or give it in another way ----


def test_a_decision_function_becomes_a_probability_and_the_labels_stay():
    incumbent = LinearSVC().fit(X[["experience"]], Y)
    model = groups_on(incumbent).fit(X, Y)
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], incumbent.predict(X[["experience"]]))
    score = incumbent.decision_function(X[["experience"]])
    probability = model.pooled_proba(X)[:, 1]
    assert (np.diff(probability[np.argsort(score)]) >= 0).all()
    assert probability.mean() == pytest.approx((Y == "yes").mean(), abs=0.01)
    assert model.score(X, Y) > (incumbent.predict(X[["experience"]]) == Y).mean() + 0.05


def test_a_model_that_only_predicts_gets_the_shares_of_the_rows_it_is_right_on():
    model = groups_on(Rulebook()).fit(X, Y)
    said = Rulebook().predict(X)
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], said)
    for label in ("no", "yes"):
        share = (Y[said == label] == "yes").mean()
        assert model.pooled_proba(X)[said == label, 1] == pytest.approx(share, abs=0.005)
    assert model.score(X, Y) > (said == Y).mean() + 0.05


def test_labels_by_number_are_what_they_are_said_to_be():
    incumbent = LogisticRegression().fit(X[["experience"]], CODES)
    model = groups_on(Incumbent(incumbent, labels=["no", "yes"])).fit(X, Y)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict_all(X)[:, -1] == "yes", incumbent.predict(X[["experience"]]) == 1)
    turned = groups_on(Incumbent(incumbent, labels=["yes", "no"])).fit(X, Y)
    np.testing.assert_array_equal(turned.predict_all(X)[:, -1] == "no", incumbent.predict(X[["experience"]]) == 1)
    np.testing.assert_allclose(turned.pooled_proba(X)[:, 0], model.pooled_proba(X)[:, 1])


class Predicts:
    """A model that predicts what it is told, in any shape."""

    def __init__(self, value):
        self.value = value

    def predict(self, rows):
        return np.full(len(rows), self.value) if np.ndim(self.value) == 0 else np.tile(self.value, (len(rows), 1))


@pytest.mark.parametrize(
    ("pooled", "message"),
    [
        (LinearRegression().fit(X[["experience"]], CODES), "regressor"),
        (Predicts(0.37), "IncumbentColumns"),
        (Predicts(["no", "yes"]), "2 values"),
        (Incumbent(raw_pipeline()), "not fitted"),
        (Incumbent(object()), "no predict"),
        (Incumbent(LogisticRegression().fit(X[["experience"]], CODES)), "labels="),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_the_pooled_classifier_is_refused_in_one_sentence(pooled, message):
    with pytest.raises(InputError, match=message):
        groups_on(pooled).fit(X, Y)


# ---- files ----


@pytest.mark.parametrize(
    "pooled",
    [
        Incumbent(Scorecard().fit(X[OWN], Y), only=["hours"]),
        Scorecard().fit(X[OWN], Y),
        Incumbent(LogisticRegression().fit(X[["experience"]], CODES), labels=["no", "yes"]),
        Incumbent(LogisticRegression().fit(X[["experience"]].to_numpy(), Y), columns=["experience"]),
        pytest.param(Incumbent(Scorecard().fit(X, Y)), marks=pytest.mark.slow),
    ],
    ids=["only", "fewer columns", "labels", "array", "nothing"],
)
def test_what_is_said_about_an_incumbent_comes_back_without_trust(pooled, tmp_path):
    model = groups_on(pooled).fit(X, Y)
    save(model, tmp_path / "model.dafh")
    loaded = load(tmp_path / "model.dafh")
    for method in ("predict", "predict_proba", "predict_all", "predict_group"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    again = loaded.fit(X, Y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))
