"""The five data sets as users get them; skipped, with the reason, only where no source can be reached."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from dafh import tabular_pipeline
from dafh.datasets import DATASETS, FETCHERS
from dafh.exceptions import DataNotFoundError
from dafh.linear.logistic import StandardizedLogisticRegression

# Columns that are known only after the outcome, identify a person, or are somebody's prediction of the outcome.
LEAKS = {
    "is_recid", "is_violent_recid", "violent_recid", "event", "start", "end", "two_year_recid", "in_custody",
    "out_custody", "decile_score", "score_text", "v_decile_score", "v_score_text", "days_b_screening_arrest",
    "c_jail_in", "c_jail_out", "id", "name", "first", "last", "dob", "c_case_number", "y", "income", "risk",
    "personal_status",
}  # fmt: skip
POSITIVE_RATE = {"adult": 0.2393, "arrest": 0.4507, "violent": 0.1634, "german": 0.7000, "bank": 0.1170}
N_COLUMNS = {"adult": 13, "arrest": 8, "violent": 8, "german": 19, "bank": 14}
every_data_set = pytest.mark.parametrize("name", list(FETCHERS))


def load(name, **options):
    try:
        return FETCHERS[name](**options)
    except DataNotFoundError as error:
        pytest.skip(f"no source of the data can be reached from here: {error}")


@every_data_set
def test_rows_columns_and_positive_rate(name):
    data = load(name)
    assert data.X.shape == (DATASETS[name].n_rows, N_COLUMNS[name])
    assert len(data.y) == len(data.sensitive_features) == DATASETS[name].n_rows
    assert data.y.mean() == pytest.approx(POSITIVE_RATE[name], abs=5e-5)


@every_data_set
def test_no_leaking_or_identifying_column_is_in_x(name):
    columns = set(load(name).X.columns)
    assert not columns & LEAKS
    assert not any(column.startswith(("r_", "vr_")) for column in columns)
    assert DATASETS[name].paper_attribute not in columns
    assert name != "bank" or "duration" not in columns


@every_data_set
def test_sensitive_features_are_complete_and_start_with_the_papers_two_groups(name):
    table = load(name).sensitive_features
    assert table.notna().all().all()
    assert table.iloc[:, 0].nunique() == 2
    assert table.shape[1] >= 2


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
        pytest.param("adult", {}, 2, 0.849, marks=pytest.mark.slow),
        ("arrest", {}, 5, 0.670),
        pytest.param("violent", {}, 5, 0.837, marks=pytest.mark.slow),
        ("german", {}, 10, 0.745),
        pytest.param("bank", {"include_duration": True}, 2, 0.898, marks=pytest.mark.slow),
        pytest.param("bank", {}, 2, 0.890, marks=pytest.mark.slow),
    ],
)
def test_pooled_logistic_regression_is_as_strong_as_it_should_be(name, options, n_splits, least):
    data = load(name, **options)
    scores = []
    for seed in range(n_splits):
        X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=seed)
        scores.append(tabular_pipeline(StandardizedLogisticRegression()).fit(X, y).score(X_test, y_test))
    assert np.mean(scores) >= least
