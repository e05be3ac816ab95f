import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, DecoupledClassifier, Scorecard, tabular_pipeline
from dafh.columns.encoder import TableEncoder, TableReader
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition

RNG = np.random.default_rng(0)
N = 120


def mixed_frame():
    return pd.DataFrame(
        {
            "age": np.where(np.arange(N) % 10 == 0, np.nan, RNG.normal(40, 10, N)),
            "children": pd.array([None if i % 7 == 0 else i % 4 for i in range(N)], dtype="Int64"),
            "city": pd.Categorical(np.array(["Oslo", "Bergen", "Bodø"])[np.arange(N) % 3]),
            "job": np.where(np.arange(N) % 11 == 0, None, np.array(["a", "b", "c", "d"])[np.arange(N) % 4]),
            "member": np.arange(N) % 2 == 0,
            "since": pd.date_range("2020-01-01", periods=N),
        }
    )


LABEL = (np.arange(N) % 3 == 0).astype(int)


def test_every_kind_of_column_becomes_numbers_with_names():
    encoded = TableEncoder().fit_transform(mixed_frame())
    assert np.isfinite(encoded.to_numpy()).all()
    names = encoded.columns.tolist()
    for expected in ("age", "age is missing", "children is missing", "city=Bodø", "job=(missing)", "since"):
        assert expected in names
    assert "member" in names
    np.testing.assert_allclose(encoded[["age", "since"]].mean(), 0, atol=1e-9)


def test_names_of_the_columns_survive_to_the_model():
    model = tabular_pipeline(LogisticRegression()).fit(mixed_frame(), LABEL)
    assert "city=Oslo" in model[-1].feature_names_in_.tolist()


def test_unseen_categories_and_missing_values_at_predict_are_no_problem():
    model = tabular_pipeline(LogisticRegression()).fit(mixed_frame(), LABEL)
    new = mixed_frame().head(3).assign(city=["Tromsø", None, "Oslo"], job=[None, "z", "a"], age=[np.nan, np.inf, 30])
    assert model.predict(new).shape == (3,)


def test_only_training_rows_are_learned_from():
    encoder = TableEncoder().fit(mixed_frame().head(60))
    shifted = mixed_frame().assign(age=1e6)
    assert encoder.transform(shifted)["age"].iloc[0] > 1e4


def test_polars_and_pandas_give_the_same_numbers():
    frame = mixed_frame()
    columns = {name: [None if pd.isna(v) else v for v in frame[name]] for name in ("city", "job", "member")}
    other = pl.DataFrame(
        columns | {"age": [None if np.isnan(v) else v for v in frame.age], "since": frame.since.tolist()}
    )
    same = frame[["city", "job", "member", "age", "since"]]
    pandas_fit, polars_fit = TableEncoder().fit(same), TableEncoder().fit(other)
    assert pandas_fit.get_feature_names_out().tolist() == polars_fit.get_feature_names_out().tolist()
    np.testing.assert_allclose(pandas_fit.transform(same), polars_fit.transform(other))


def test_columns_in_another_order_and_extra_columns_do_not_matter():
    frame = mixed_frame()
    encoder = TableEncoder().fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(frame[frame.columns[::-1]].assign(new=1)))


def test_integers_with_gaps_and_without_are_the_same_categories():
    fit_on = pd.DataFrame({"code": pd.Categorical([1, 2, 1, 2]), "x": [1.0, 2, 3, 4]})
    with_gap = pd.DataFrame({"code": pd.Series([1, None, 2, 1], dtype=float), "x": [1.0, 2, 3, 4]})
    encoder = TableEncoder().fit(fit_on)
    encoded = encoder.transform(with_gap)
    assert encoded["code=2"].tolist() == [0, 0, 1, 0]


def test_an_unseen_value_of_a_column_with_two_is_neither_of_them():
    encoder = TableEncoder().fit(pd.DataFrame({"sex": ["F", "M", "F"]}))
    assert encoder.transform(pd.DataFrame({"sex": ["F", "X"]})).to_numpy().tolist() == [[1, 0], [0, 0]]


def test_booleans_written_as_numbers_or_with_gaps_are_the_same_column():
    encoder = TableEncoder().fit(pd.DataFrame({"b": [True, False, True, False]}))
    numbers, gaps = pd.DataFrame({"b": [1, 0]}), pd.DataFrame({"b": pd.Series([True, False, None], dtype=object)})
    assert encoder.transform(numbers)["b"].tolist() == [1, -1]
    assert encoder.transform(gaps)["b"].tolist()[:2] == [1, -1]


def test_rare_categories_of_a_long_list_are_put_together():
    ids = pd.DataFrame({"id": [f"person {i}" for i in range(500)] + ["often"] * 20})
    names = TableEncoder().fit(ids).get_feature_names_out()
    assert len(names) <= 60
    assert "id=often" in names


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(), "empty"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' occurs more than once"),
    ],
)
def test_frames_that_cannot_be_used(frame, message):
    with pytest.raises(InputError, match=message):
        TableEncoder().fit(frame)


def test_missing_columns_at_predict_are_named():
    encoder = TableEncoder().fit(mixed_frame())
    with pytest.raises(InputError, match=r"missing now: age, city \(new columns: years\)"):
        encoder.transform(mixed_frame().drop(columns=["age", "city"]).assign(years=1))


def test_text_where_numbers_were_is_explained():
    encoder = TableEncoder().fit(mixed_frame())
    with pytest.raises(InputError, match="Column 'age' held numbers in fit"):
        encoder.transform(mixed_frame().assign(age="forty"))


def test_a_column_without_any_value_is_kept_harmless():
    encoded = TableEncoder().fit_transform(mixed_frame().assign(nothing=np.nan))
    assert np.isfinite(encoded.to_numpy()).all()


def test_a_fitted_pipeline_can_be_pickled():
    model = tabular_pipeline(DAFHClassifier(1, random_state=0)).fit(mixed_frame(), LABEL)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(mixed_frame()), model.predict(mixed_frame()))


def test_models_of_this_package_in_the_pipeline():
    frame = mixed_frame()
    model = tabular_pipeline(DAFHClassifier(1, random_state=0)).fit(frame, LABEL)
    assert model.predict(frame).shape == (N,)
    groups = frame[["member"]]
    decoupled = tabular_pipeline(DecoupledClassifier(IntersectionPartition()))
    decoupled.fit(frame, LABEL, model__sensitive_features=groups)
    assert decoupled.predict(frame, sensitive_features=groups).shape == (N,)


# ---- models that take tables themselves ----


@pytest.mark.parametrize(
    ("estimator", "first"),
    [
        (DAFHClassifier(), TableReader),
        (Scorecard(), TableReader),
        (DecoupledClassifier(), TableEncoder),
        (LogisticRegression(), TableEncoder),
        (HistGradientBoostingClassifier(), TableEncoder),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_models_that_take_tables_themselves_get_them_as_they_are(estimator, first):
    pipeline = tabular_pipeline(estimator, {"zip": "category"})
    assert type(pipeline["encoder"]) is first
    assert pipeline["encoder"].kinds == {"zip": "category"}


def test_a_scorecard_sees_the_columns_and_not_their_encoding():
    model = tabular_pipeline(Scorecard()).fit(mixed_frame(), LABEL)
    kinds = {column.name: column.kind for column in model[-1].binning_.columns}
    assert list(kinds) == mixed_frame().columns.tolist()
    assert (kinds["member"], kinds["city"], kinds["since"]) == ("flag", "category", "date ISO8601")


def test_every_kind_of_column_is_read_as_in_fit():
    reader = TableReader({"zip": "category", "day": "date %d.%m.%Y", "n": "number"})
    reader.fit(pd.DataFrame({"zip": [1, 2], "day": ["31.12.2020", None], "n": ["1", "?"], "new": [True, False]}))
    assert reader.columns_ == {"zip": "category", "day": "date %d.%m.%Y", "n": "number", "new": "flag"}
    later = pd.DataFrame({"new": [1.0, None], "n": ["?", "7"], "day": ["1.2.2021", None], "zip": [2.0, None]}, [5, 9])
    read = reader.transform(later)
    assert read.columns.tolist() == reader.get_feature_names_out().tolist() == ["zip", "day", "n", "new"]
    assert read.index.tolist() == [5, 9]
    assert [str(kind) for kind in read.dtypes] == ["category", "datetime64[us]", "float64", "boolean"]
    assert read.iloc[0, :2].tolist() == ["2", pd.Timestamp("2021-02-01")]
    assert (read["n"].iloc[1], read["new"].iloc[0]) == (7.0, True)
    assert read.isna().to_numpy().tolist() == [[False, False, True, False], [True, True, False, True]]


def test_a_word_that_files_write_for_a_gap_is_text_in_a_data_frame():
    reader = TableReader().fit(pd.DataFrame({"country": ["NA", "NO", None]}))
    assert reader.transform(pd.DataFrame({"country": ["NA", None]}))["country"].isna().tolist() == [False, True]


def test_a_reader_names_columns_that_are_missing_and_values_of_another_kind():
    reader = TableReader().fit(mixed_frame())
    with pytest.raises(InputError, match=r"missing now: age, city \(new columns: years\)"):
        reader.transform(mixed_frame().drop(columns=["age", "city"]).assign(years=1))
    with pytest.raises(InputError, match="Column 'age' held numbers in fit and holds 'forty' now"):
        reader.transform(mixed_frame().assign(age="forty"))
    with pytest.raises(InputError, match="missing now: zip"):
        TableReader({"zip": "category"}).fit(mixed_frame())
    with pytest.raises(NotFittedError):
        TableReader().transform(mixed_frame())


def test_columns_in_another_order_give_the_same_predictions():
    frame = mixed_frame()
    model = tabular_pipeline(Scorecard()).fit(frame, LABEL)
    other = frame[frame.columns[::-1]].assign(new=1)
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(other))
