"""The five data sets as users get them; skipped, with the reason, only where no source can be reached."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from dafh import tabular_pipeline
from dafh.datasets import DATASETS, FETCHERS, fetch_bank, fetch_german
from dafh.exceptions import DataNotFoundError, InputError
from dafh.linear.logistic import StandardizedLogisticRegression

# Columns that are known only after the outcome, identify a person, or are somebody's prediction of the outcome.
LEAKS = {
    "is_recid", "is_violent_recid", "violent_recid", "event", "start", "end", "r_case_number", "r_charge_degree",
    "r_days_from_arrest", "r_offense_date", "r_charge_desc", "r_jail_in", "r_jail_out", "vr_case_number",
    "vr_charge_degree", "vr_offense_date", "vr_charge_desc", "two_year_recid", "in_custody", "out_custody",
    "decile_score", "score_text", "v_decile_score", "v_score_text", "days_b_screening_arrest", "c_jail_in",
    "c_jail_out",
    "id", "name", "first", "last", "dob", "c_case_number", "y", "income", "risk", "personal_status",
}  # fmt: skip
POSITIVE_RATE = {"adult": 0.2393, "arrest": 0.4507, "violent": 0.1634, "german": 0.7000, "bank": 0.1170}
SHAPE = {
    "adult": (48_842, 13),
    "arrest": (7_214, 8),
    "violent": (4_743, 8),
    "german": (1_000, 19),
    "bank": (45_211, 14),
}


def load(name, **options):
    try:
        return FETCHERS[name](**options)
    except DataNotFoundError as error:
        pytest.skip(f"no source of the data can be reached from here: {error}")


every_data_set = pytest.mark.parametrize("name", list(FETCHERS))


@every_data_set
def test_rows_columns_and_positive_rate(name):
    data = load(name)
    assert data.X.shape == SHAPE[name]
    assert len(data.X) == DATASETS[name].n_rows == len(data.y) == len(data.sensitive_features)
    assert data.y.mean() == pytest.approx(POSITIVE_RATE[name], abs=5e-5)
    assert set(data.y) == {0, 1}
    assert data.feature_names == list(data.X.columns)


@every_data_set
def test_no_leaking_or_identifying_column_is_in_x(name):
    columns = set(load(name).X.columns)
    assert not columns & LEAKS
    assert DATASETS[name].paper_attribute not in columns
    if name == "bank":
        assert "duration" not in columns


@every_data_set
def test_all_sensitive_columns_can_be_removed(name):
    data = load(name, remove="all")
    assert not set(data.X.columns) & set(DATASETS[name].sensitive)
    assert data.X.shape[1] > 2


@every_data_set
def test_sensitive_features_are_complete_and_start_with_the_paper_s_two_groups(name):
    table = load(name).sensitive_features
    assert table.notna().all().all()
    assert table.iloc[:, 0].nunique() == 2
    assert table.shape[1] >= 2


@every_data_set
def test_the_description_names_source_licence_and_reasons(name):
    description = load(name).DESCR
    dataset = DATASETS[name]
    for part in (dataset.licence, dataset.publisher, dataset.positive, *dataset.left_out.values()):
        assert part in description


def test_arrays_and_pairs_as_in_scikit_learn():
    X, y = load("german", return_X_y=True)
    assert X.shape == (1000, 19)
    assert y.name == "y"
    bunch = load("german", as_frame=False)
    assert isinstance(bunch.X, np.ndarray)
    assert bunch.sensitive_features.shape == (1000, 3)
    X_array, y_array = fetch_german(return_X_y=True, as_frame=False)
    assert type(X_array) is type(y_array) is np.ndarray


def test_the_length_of_the_call_is_there_only_on_request():
    load("bank")
    assert "duration" in fetch_bank(include_duration=True).X.columns


def test_an_unknown_choice_is_explained():
    load("german")
    with pytest.raises(InputError, match="'paper' or 'all'"):
        fetch_german(remove="some")


def test_known_group_sizes():
    adult, arrest, german = (load(name).sensitive_features for name in ("adult", "arrest", "german"))
    assert (adult.race_group == "White").sum() == 41_762
    assert adult.groupby(["sex", "born_in_us", "marital_group"], observed=True).ngroups == 2 * 3 * 3
    assert (arrest.race_group == "Caucasian").sum() == 2_454
    assert (german.sex == "female").sum() == 310


# Means over many splits: five splits of German alone differ by more than a point from five others.
@pytest.mark.parametrize(
    ("name", "options", "n_splits", "least"),
    [
        ("adult", {}, 2, 0.849),
        ("arrest", {}, 5, 0.670),
        ("violent", {}, 5, 0.837),
        ("german", {}, 10, 0.745),
        ("bank", {"include_duration": True}, 2, 0.898),
        ("bank", {}, 2, 0.890),
    ],
)
def test_pooled_logistic_regression_is_as_strong_as_it_should_be(name, options, n_splits, least):
    data = load(name, **options)
    scores = []
    for seed in range(n_splits):
        X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=seed)
        scores.append(tabular_pipeline(StandardizedLogisticRegression()).fit(X, y).score(X_test, y_test))
    assert np.mean(scores) >= least
