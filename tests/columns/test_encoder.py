"""Laws of the encoder of tables."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.encoder import TableEncoder


def test_dates_beyond_the_reach_of_nanoseconds_are_encoded():
    far = pd.DataFrame({"d": np.array(["9999-12-31", "2020-01-01", "NaT"], "datetime64[s]")})
    assert np.isfinite(TableEncoder().fit(far).transform(far).to_numpy()).all()


# ---- laws ----

COLUMNS = {
    "number": st.floats(-1e6, 1e6) | st.none(),
    "category": st.sampled_from(["a", "b", "ü", "", "1", "1.0"]) | st.none(),
    "flag": st.sampled_from([True, False, None]),
    "date": st.dates(min_value=dt.date(1900, 1, 1), max_value=dt.date(2100, 1, 1)) | st.none(),
}


@st.composite
def frames(draw, min_rows=2):
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    n = draw(st.integers(min_rows, 8))
    columns = {}
    for place, kind in enumerate(kinds):
        values = draw(st.lists(COLUMNS[kind], min_size=n, max_size=n))
        columns[f"{kind} {place}"] = pd.Series(values, dtype=float if kind == "number" else object)
    return pd.DataFrame(columns)


@given(frames())
def test_rows_are_encoded_one_by_one_as_all_at_once(frame):
    encoder = TableEncoder().fit(frame)
    alone = [encoder.transform(frame.iloc[[row]]) for row in range(len(frame))]
    pd.testing.assert_frame_equal(pd.concat(alone), encoder.transform(frame))


@given(frames())
def test_output_is_finite_named_and_standardised(frame):
    encoder = TableEncoder().fit(frame)
    encoded = encoder.transform(frame)
    assert np.isfinite(encoded.to_numpy()).all()
    assert encoded.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert encoded.columns.is_unique
    assert encoded.index.equals(frame.index)
    numbers = encoded[[name for name in encoded.columns if "=" not in name]]
    np.testing.assert_allclose(numbers.mean(), 0, atol=1e-6)
    spread = numbers.std(ddof=0)
    assert ((spread < 1e-6) | (abs(spread - 1) < 1e-6)).all()


@given(frames())
def test_every_known_category_is_one_column_and_every_row_has_one(frame):
    encoded = TableEncoder().fit_transform(frame)
    for name in frame.columns[frame.columns.str.startswith("category")]:
        block = encoded[[column for column in encoded.columns if column.startswith(f"{name}=")]]
        np.testing.assert_array_equal(block.sum(axis=1), 1)
        if frame[name].isna().any():
            np.testing.assert_array_equal(block[f"{name}=(missing)"] == 1, frame[name].isna())


def test_numbers_are_standardised_by_hand_worked_values():
    frame = pd.DataFrame({"n": [1.0, 3.0, np.nan, 5.0, np.inf, 1e200]})
    encoder = TableEncoder().fit(frame)
    scale = encoder.scales_["n"]
    # Three gaps take the median of 1, 3 and 5: the mean stays 3, and the variance is 8/6.
    assert (scale.median, scale.mean, scale.gap_share) == (3.0, 3.0, 0.5)
    assert scale.deviation == pytest.approx(np.sqrt(8 / 6))
    assert encoder.transform(pd.DataFrame({"n": [3.0, None]})).to_numpy().tolist() == [[0, -1], [0, 1]]


def test_gaps_that_fit_has_not_seen_take_the_median():
    encoder = TableEncoder().fit(pd.DataFrame({"n": [1.0, 2.0, 30.0]}))
    gap, median = encoder.transform(pd.DataFrame({"n": [np.nan, 2.0]})).to_numpy()
    np.testing.assert_array_equal(gap, median)


def test_dates_count_in_days():
    days = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-01-03"])})
    encoder = TableEncoder().fit(days)
    assert (encoder.scales_["d"].mean, encoder.scales_["d"].deviation) == (18263.0, 1.0)
    assert encoder.transform(pd.DataFrame({"d": pd.to_datetime(["2020-01-05 12:00"])})).iloc[0, 0] == 3.5


def test_a_kind_that_is_given_overrides_the_type():
    frame = pd.DataFrame({"zip": [1, 2, 1], "day": ["31.12.2020", "1.1.2021", None], "n": ["1", "2", "?"]})
    encoder = TableEncoder({"zip": "category", "day": "date %d.%m.%Y", "n": "number"}).fit(frame)
    assert encoder.get_feature_names_out().tolist() == [
        "day", "n", "day is missing", "n is missing", "zip=1", "zip=2",
    ]  # fmt: skip


@pytest.mark.parametrize(("n_categories", "has_other"), [(59, False), (60, True), (61, True)])
def test_up_to_fifty_nine_categories_have_a_column_each(n_categories, has_other):
    values = [f"c{i:02d}" for i in range(n_categories)]
    encoder = TableEncoder().fit(pd.DataFrame({"c": [*values, "c00"]}))
    names = encoder.get_feature_names_out().tolist()
    assert ("c=(other)" in names) is has_other
    assert len(names) == min(n_categories, 60)
    assert "c=c00" in names  # The most frequent one.
    unseen = encoder.transform(pd.DataFrame({"c": ["new"]})).iloc[0]
    assert unseen.sum() == has_other


def test_a_text_that_reads_missing_is_a_gap():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["(missing)", None, "a"]}))
    assert encoder.get_feature_names_out().tolist() == ["c=(missing)", "c=a"]
    assert encoder.transform(pd.DataFrame({"c": [None, "(missing)"]})).to_numpy().tolist() == [[1, 0], [1, 0]]
