"""LightGBM, XGBoost and CatBoost as the pooled classifier, fitted or not, with labels as each of them has them."""

import warnings

import numpy as np
import pytest

from dafh import DAFHClassifier, Incumbent, Recipe, load, save, tabular_pipeline
from dafh.exceptions import InputError
from models import workers

DATA = workers(400)
# A name with a space: LightGBM writes an underscore for it, and goes by position.
X = DATA.X.drop(columns=["since", "job"]).assign(cook=DATA.X["job"] == "cook").fillna(30.0).astype(float)
X = X.rename(columns={"hours": "hours a week"})
OWN = ["remote", "hours a week", "experience"]
TEXT, CODES = DATA.y, (DATA.y == "yes").astype(int)
THREE = np.digitize(X["experience"] + 10 * X["cook"], [15, 30])


def boosting(library, kind="Classifier"):
    module = pytest.importorskip(library.lower())
    made = {
        "LightGBM": lambda: getattr(module, f"LGBM{kind}")(n_estimators=8, verbose=-1, n_jobs=1),
        "XGBoost": lambda: getattr(module, f"XGB{kind}")(n_estimators=8, n_jobs=1),
        "CatBoost": lambda: getattr(module, f"CatBoost{kind}")(
            iterations=8, verbose=0, thread_count=1, allow_writing_files=False
        ),
    }
    return made[library]()


def groups_on(pooled):
    # Two folds instead of five: what is asked here does not depend on it, and a fit takes half of the time.
    return DAFHClassifier(2, pooled=pooled, recipe=Recipe(n_folds=2), random_state=0)


LIBRARIES = ["LightGBM", "XGBoost", "CatBoost"]
pytestmark = [
    pytest.mark.parametrize("library", LIBRARIES),
    pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning"),
]


def flat(labels):
    return np.asarray(labels).ravel()


@pytest.mark.parametrize("behind", [False, True], ids=["alone", "tabular_pipeline"])
def test_a_fitted_model_says_the_same_before_and_after(library, behind):
    incumbent = boosting(library).fit(X[OWN], CODES)
    before, probability = flat(incumbent.predict(X[OWN])), incumbent.predict_proba(X[OWN])
    model = (tabular_pipeline(groups_on(incumbent)) if behind else groups_on(incumbent)).fit(X, CODES)
    final, rows = (model[-1], model[0].transform(X)) if behind else (model, X)
    np.testing.assert_array_equal(final.predict_all(rows)[:, -1], before)
    np.testing.assert_allclose(final.pooled_proba(rows), probability, atol=2e-6)
    np.testing.assert_array_equal(incumbent.predict_proba(X[OWN]), probability)
    assert final.classes_.tolist() == [0, 1]


def test_three_classes_come_back_as_one_label_for_each_row(library):
    incumbent = boosting(library).fit(X[OWN], THREE)
    model = groups_on(incumbent).fit(X, THREE)
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], flat(incumbent.predict(X[OWN])))
    assert model.predict(X).shape == (len(X),)


def test_labels_are_those_of_y_whatever_the_library_makes_of_them(library):
    """XGBoost takes numbers only, and CatBoost turns True into "True"."""
    if library == "XGBoost":
        incumbent = Incumbent(boosting(library).fit(X[OWN], CODES), labels=[False, True])
        own = incumbent.model.predict(X[OWN]) == 1
    else:
        incumbent = boosting(library).fit(X[OWN], CODES == 1)
        own = np.array([str(label) == "True" for label in flat(incumbent.predict(X[OWN]))])
    model = groups_on(incumbent).fit(X, CODES == 1)
    assert model.classes_.dtype == bool
    np.testing.assert_array_equal(model.predict_all(X)[:, -1], own)


@pytest.mark.parametrize("labels", [TEXT, THREE + 5], ids=["text", "numbers from 5 on"])
def test_an_unfitted_model_is_fitted_on_labels_of_any_kind(library, labels):
    model = DAFHClassifier(2, pooled=boosting(library), random_state=0).fit(X, labels)
    assert model.pooled_proba(X).shape == (len(X), len(np.unique(labels)))
    said = model.predict_all(X)[:, -1]
    assert set(said.tolist()) <= set(labels.tolist())
    assert (said == labels).mean() > 0.6


def test_a_regressor_is_refused_in_one_sentence(library):
    with pytest.raises(InputError, match="is a regressor"):
        groups_on(boosting(library, "Regressor").fit(X, CODES)).fit(X, CODES)


TYPES = {
    "LightGBM": [
        "collections.OrderedDict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "sklearn.preprocessing._label.LabelEncoder",
    ],
    "XGBoost": ["xgboost.core.Booster", "xgboost.sklearn.XGBClassifier"],
    "CatBoost": ["catboost.core.CatBoostClassifier"],
}


def test_a_model_is_saved_and_loaded_with_trust(library, tmp_path):
    model = groups_on(boosting(library).fit(X[OWN], CODES)).fit(X, CODES)
    with pytest.raises(InputError, match="trusted="):
        save(model, tmp_path / "model.dafh")
    save(model, tmp_path / "model.dafh", trusted=TYPES[library])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load(tmp_path / "model.dafh", trusted=TYPES[library])
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict_all(X), model.predict_all(X))
