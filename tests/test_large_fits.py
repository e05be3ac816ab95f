"""One model, whatever the way: rows in memory, in files, in a collection, in any order."""

import functools
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from cases import checkerboard, first_by_default
from dafh import DAFHClassifier, Scorecard
from dafh.datasets import FETCHERS
from dafh.estimators import training_rows
from dafh.exceptions import InputError
from dafh.rows.roles import Roles
from dafh.tables.hashes import uniform
from large import assert_same_model, coefficients, grouped_table, written_in_files

FEATURES = ["x0", "x1", "x2", "x3", "age", "job"]


def fitted(X, y="y", n_groups=2, groups="rules", **options):
    known = {
        name: options.pop(name) for name in ("sample_weight", "persons", "time", "guard_features") if name in options
    }
    return DAFHClassifier(n_groups, groups=groups, random_state=0, **options).fit(X, y, **known)


@functools.cache
def in_memory(n_rows):
    """The model of rows in memory, fitted once. Tests that call it take the small sample, and change nothing in it."""
    table = grouped_table(n_rows)
    return fitted(table[FEATURES], table["y"])


@pytest.mark.parametrize(("n_rows", "n_files"), checkerboard([1500, 6000], [1, 7]))
def test_files_in_any_order_give_the_model_of_rows_in_memory(tmp_path, small_sample, n_rows, n_files):
    table = grouped_table(n_rows)
    from_files = fitted(written_in_files(tmp_path / "rows", table, n_files))
    assert from_files.n_groups_ == 2
    assert_same_model(in_memory(n_rows), from_files, table[FEATURES])


@pytest.mark.parametrize("name", first_by_default(["german", "violent"], 1))
def test_the_order_of_rows_does_not_matter_on_real_data(name):
    X, y = FETCHERS[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    one, other = fitted(X, y), fitted(X.iloc[order], np.asarray(y)[order])
    assert_same_model(one, other, X)
    np.testing.assert_array_equal(coefficients(one), coefficients(other))


@pytest.mark.parametrize("pooled", first_by_default(["linear", "fitted boosting", "scorecard", "fitted scorecard"], 2))
def test_every_pooled_classifier_has_own_classifiers_from_all_rows(tmp_path, small_sample, pooled):
    table = grouped_table(5000).drop(columns=["job", "age"])
    table["cook"] = (np.random.default_rng(1).random(5000) < 0.5).astype(float)
    effect = table["x0"] + np.where(table["cook"] == 1, 2.0, -2.0) * table["x2"]
    table["y"] = (effect + np.random.default_rng(2).logistic(size=5000) > 0).astype(int)
    X, y = table.drop(columns="y"), table["y"]
    models = {
        "fitted scorecard": lambda: Scorecard().fit(X[:500], y[:500]),
        "fitted boosting": lambda: HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X[:500], y[:500]),
    }
    chosen = models.get(pooled, lambda: pooled)()
    from_memory = fitted(X, y, pooled=chosen)
    from_files = fitted(written_in_files(tmp_path / "rows", table, 3), pooled=chosen)
    assert_same_model(from_memory, from_files, X)


def test_three_classes_and_weights_are_fitted_in_blocks_as_in_memory(tmp_path, small_sample):
    table = grouped_table(2600, weights=True)[["x0", "x2", "job", "y", "weight"]]
    third = np.random.default_rng(2).random(len(table)) < 0.4 * (table["x0"] > 0)
    table["y"] = np.where(third, 2, (table["y"] == "yes").astype(int))
    from_memory = fitted(table[["x0", "x2", "job"]], table["y"], sample_weight=table["weight"].to_numpy())
    from_files = fitted(written_in_files(tmp_path / "rows", table, 3), sample_weight="weight")
    assert from_memory.pooled_.intercept_.shape == (3,)
    assert_same_model(from_memory, from_files, table[["x0", "x2", "job"]])


@pytest.mark.parametrize("pooled", ["scorecard", "linear"])
def test_coefficients_from_blocks_are_near_those_of_a_fit_of_all_rows_at_once(small_sample, monkeypatch, pooled):
    table = grouped_table(6000, digits=None)
    X, y = (table[FEATURES] if pooled == "scorecard" else table[["x0", "x1", "x2", "x3"]]), table["y"]
    in_blocks = fitted(X, y, pooled=pooled, n_groups=1)
    last = in_blocks.pooled_
    monkeypatch.setattr(training_rows, "MOST_ROWS", 10_000)
    at_once = fitted(X, y, pooled=pooled, n_groups=1).pooled_
    gap = np.abs(last.predict_proba(X) - at_once.predict_proba(X))
    assert gap.max() < 0.05  # Bins and strengths are those of the sample.
    if pooled == "linear":
        np.testing.assert_allclose(last.coef_, at_once.coef_, rtol=2e-3)


def test_more_rows_make_better_coefficients_than_the_sample_alone(small_sample):
    table, fresh = grouped_table(30_000), grouped_table(20_000, seed=9)
    model = fitted(table[FEATURES], table["y"])
    sample = fitted(table[FEATURES][:2000], table["y"][:2000])

    def loss(one):
        chance = one.predict_proba(fresh[FEATURES])[:, 1]
        return -np.log(np.where(fresh["y"] == "yes", chance, 1 - chance)).mean()

    assert loss(model) < loss(sample) - 0.003


def test_persons_stay_together_and_are_found_in_files(tmp_path, small_sample):
    table = grouped_table(6000)
    table["id"] = np.random.default_rng(3).integers(0, 1500, 6000)
    from_memory = fitted(table[FEATURES], table["y"], persons=table["id"])
    from_files = fitted(written_in_files(tmp_path / "rows", table, 4), persons="id")
    assert_same_model(from_memory, from_files, table[FEATURES])
    # No person has rows inside and outside of the sample.
    gathered = training_rows.gather_rows(
        DAFHClassifier()._check_training_rows, table[FEATURES], table["y"], held_out=0.0, sample_weight=None,
        guard_features=None, persons=table["id"], time=None,
    )  # fmt: skip
    sizes = np.sort(np.bincount(gathered.few.context.person))
    assert set(sizes) <= set(table["id"].value_counts())
    assert len(gathered.few) < 3000


@pytest.mark.parametrize("how", first_by_default(["by time", "at random"], 1))
def test_rows_that_prove_are_new_to_all_that_they_judge(tmp_path, small_sample, how):
    table = grouped_table(8000)
    table["day"] = np.random.default_rng(4).permutation(8000)
    time = {"time": table["day"]} if how == "by time" else {}
    from_memory = fitted(table[FEATURES], table["y"], guard="proof", **time)
    named = {"time": "day"} if how == "by time" else {}
    if how == "at random":
        table = table.drop(columns="day")
    from_files = fitted(written_in_files(tmp_path / "rows", table, 5), guard="proof", **named)
    assert_same_model(from_memory, from_files, table[FEATURES])
    assert 1400 < from_memory.guard_report_.table["rows"].sum() < 1800


def test_declared_groups_are_columns_of_the_files(tmp_path, small_sample):
    table = grouped_table(6000)
    table["sex"] = np.random.default_rng(5).choice(["f", "m"], 6000)
    from_memory = fitted(table[FEATURES], table["y"], guard_features=table[["sex"]])
    from_files = fitted(written_in_files(tmp_path / "rows", table, 2), guard_features="sex")
    assert list(from_files.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(from_memory.serves_, from_files.serves_)


def test_a_frequent_row_has_its_share_of_the_sample(small_sample):
    """A million equal rows are neither all in the sample nor all out of it."""
    X = pd.DataFrame({"a": ["x"] * 9000 + ["y"] * 1000 + ["z"] * 2000, "b": [0.0, 1.0] * 6000})
    y = np.r_[np.zeros(9000, int), np.ones(3000, int)]
    gathered = training_rows.gather_rows(
        DAFHClassifier()._check_training_rows, X, y, held_out=0.0, sample_weight=None, guard_features=None,
        persons=None, time=None,
    )  # fmt: skip
    shares = gathered.few.given["a"].value_counts(normalize=True)
    assert len(gathered.few) == pytest.approx(2000, abs=6)
    np.testing.assert_allclose(shares[["x", "y", "z"]], [0.75, 1 / 12, 1 / 6], atol=0.002)


def test_an_unfitted_classifier_of_the_user_is_fitted_on_all_rows_in_memory(small_sample):
    table = grouped_table(5000)
    X = table[["x0", "x1", "x2", "x3"]]
    model = fitted(X, table["y"], pooled=LogisticRegression(C=1e6))
    alone = LogisticRegression(C=1e6).fit(X, table["y"])
    np.testing.assert_allclose(model.pooled_.coef_, alone.coef_, atol=1e-3)


def test_fresh_rows_for_the_guard_may_be_files(tmp_path, small_sample):
    fresh = grouped_table(1200, seed=8)
    model, other = deepcopy(in_memory(1500)), deepcopy(in_memory(1500))
    model.recalibrate(fresh[FEATURES], fresh["y"])
    other.recalibrate(written_in_files(tmp_path / "rows", fresh, 3), "y")
    assert str(model.guard_report_) == str(other.guard_report_)
    assert model.guard_report_.table["rows"].sum() == 1200


def test_a_folder_and_a_list_of_paths_are_sources(tmp_path, small_sample):
    table = grouped_table(1500)
    written_in_files(tmp_path / "rows", table, 3)
    paths = sorted((tmp_path / "rows").glob("*.parquet"))
    for source in (tmp_path / "rows", paths):
        assert_same_model(in_memory(1500), fitted(source), table[FEATURES])


def test_a_data_set_of_arrow_is_a_source(tmp_path, small_sample):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = grouped_table(6000)
    written_in_files(tmp_path / "rows", table, 3)
    model = fitted(dataset.dataset(tmp_path / "rows", format="parquet"))
    assert_same_model(in_memory(6000), model, table[FEATURES])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, "y is the name of its target column"),
        ({"y": "z"}, "The table has no column 'z', the target"),
        ({"persons": [1, 2]}, "persons is the name of one of its columns"),
        ({"sample_weight": "w"}, "no column 'w'"),
        ({"guard_features": [1]}, "guard_features are names of its columns"),
    ],
)
def test_roles_that_no_column_has_are_refused_in_one_sentence(tmp_path, change, message):
    path = written_in_files(tmp_path / "rows", grouped_table(200), 1)
    with pytest.raises(InputError, match=message):
        fitted(path, **change)


def test_a_file_with_other_columns_is_refused_by_its_name(tmp_path):
    path = written_in_files(tmp_path / "rows", grouped_table(300), 2)
    grouped_table(100).rename(columns={"x3": "x4"}).to_parquet(tmp_path / "rows" / "99.parquet")
    with pytest.raises(InputError, match=r"99\.parquet has no column 'x3', which the first file has"):
        fitted(path)


def test_a_path_without_files_is_refused(tmp_path):
    for path in (tmp_path / "nothing.parquet", tmp_path, str(tmp_path / "*.parquet")):
        with pytest.raises(InputError, match="There is no"):
            fitted(path)


def outside_of_sample(table):
    """One row that is not drawn, if it has the label 'maybe'."""
    hashes = Roles("y", features=tuple(FEATURES)).keys(table.assign(y="maybe")).hashes
    number = uniform(hashes, 1)
    return number == number.max()


def test_a_class_that_the_sample_lacks_is_named(tmp_path, small_sample):
    table = grouped_table(6000)
    table.loc[:, "y"] = np.where(outside_of_sample(table), "maybe", table["y"])
    with pytest.raises(InputError, match="holds 'maybe' in so few rows that the sample has none"):
        fitted(written_in_files(tmp_path / "rows", table, 2))
