"""Loaders on small made-up files in the publishers' formats, with every trap that the real files have."""

import dataclasses
import hashlib
from typing import NamedTuple

import pytest

from dafh.datasets import (
    DATASETS,
    FETCHERS,
    fetch_adult,
    fetch_arrest,
    fetch_bank,
    fetch_german,
    fetch_violent,
    loaders,
)
from dafh.datasets.loaders import describe
from dafh.exceptions import DataNotFoundError, InputError

ADULT = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
United-States, <=50K
24, ?, 83311, Masters, 14, Married-AF-spouse, ?, Wife, Black, Female, 0, 0, 13, ?, >50K

"""
ADULT_TEST = """\
|1x3 Cross validator
60, Private, 1, HS-grad, 9, Widowed, Sales, Unmarried, Other, Female, 0, 0, 38, Cuba, <=50K.
25, Private, 2, HS-grad, 9, Divorced, Sales, Husband, White, Male, 0, 0, 50, United-States, >50K.
"""
GERMAN = """\
A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 24 A143 A152 1 A173 1 A191 A201 2
A14 12 A34 A46 2096 A61 A74 2 A91 A101 3 A121 25 A143 A152 1 A172 2 A191 A202 1
A14 12 A34 A46 2096 A61 A74 2 A94 A101 3 A121 49 A143 A152 1 A172 2 A191 A202 1
A14 12 A34 A46 2096 A61 A74 2 A95 A101 3 A121 49 A143 A152 1 A172 2 A191 A202 1
"""
BANK = """\
"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";"duration";\
"campaign";"pdays";"previous";"poutcome";"y"
24;"admin.";"married";"tertiary";"no";-2143;"yes";"no";"unknown";5;"may";261;1;-1;0;"unknown";"no"
25;"blue-collar";"single";"NA";"no";29;"yes";"no";"unknown";5;"may";151;1;-1;0;"unknown";"yes"
"""
COMPAS = [
    "id", "name", "first", "last", "sex", "dob", "age", "age_cat", "race", "juv_fel_count", "decile_score",
    "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree", "is_recid", "r_case_number",
    "vr_case_number", "is_violent_recid", "decile_score", "priors_count", "start", "end", "event", "v_decile_score",
    "c_charge_desc", "two_year_recid",
]  # fmt: skip


def compas_file(*people, twice=False):
    """A file of ProPublica's, with columns that must never be read; the violent file has its label twice."""
    header = [*COMPAS, "two_year_recid"] if twice else COMPAS
    lines = [",".join(header)]
    for sex, age, age_cat, race, priors, degree, label in people:
        private = ["1", '"Nobody, No"', "No", "Nobody"]
        fields = [*private, sex, "1900-01-01", age, age_cat, race, 0, 9, 0, 0, priors, degree, 1 - label, "", ""]
        fields += [1 - label, 9, priors, 0, 100, 1 - label, 7, "Battery", label] + [label] * twice
        lines.append(",".join(map(str, fields)))
    return "\n".join(lines) + "\n"


PEOPLE = [
    ("Male", 69, "Greater than 45", "Other", 0, "F", 0),
    ("Female", 24, "Less than 25", "Caucasian", 4, "M", 1),
    ("Male", 34, "25 - 45", "African-American", 2, "F", 1),
]
CONTENT = {
    "ADULT_DATA": ADULT,
    "ADULT_TEST": ADULT_TEST,
    "GERMAN_DATA": GERMAN,
    "BANK_CSV": BANK,
    "ARREST_CSV": compas_file(*PEOPLE),
    "VIOLENT_CSV": compas_file(*PEOPLE, twice=True),
}


@pytest.fixture(autouse=True)
def raw_files(tmp_path, monkeypatch):
    """The made-up files in a folder of the user's, with checksums of their own."""
    for name, text in CONTENT.items():
        file = dataclasses.replace(getattr(loaders, name), sha256=hashlib.sha256(text.encode()).hexdigest())
        (tmp_path / file.name).write_text(text)
        monkeypatch.setattr(loaders, name, file)
    monkeypatch.setenv("DAFH_DATA", str(tmp_path))
    return tmp_path


class Expected(NamedTuple):
    n_rows: int
    y: list


EXPECTED = {
    "adult": Expected(4, [0, 1, 0, 1]),
    "arrest": Expected(3, [0, 1, 1]),
    "violent": Expected(3, [0, 1, 1]),
    "german": Expected(5, [1, 0, 1, 1, 1]),
    "bank": Expected(2, [0, 1]),
}
every_data_set = pytest.mark.parametrize("name", list(FETCHERS))


# ---- what holds for all of them ----


@every_data_set
def test_rows_and_labels_are_those_of_the_file(name):
    data = FETCHERS[name]()
    assert len(data.X) == len(data.sensitive_features) == EXPECTED[name].n_rows
    assert data.y.tolist() == EXPECTED[name].y
    assert data.y.name == "y"


@every_data_set
def test_the_papers_attribute_is_out_of_x_and_all_sensitive_ones_on_request(name):
    few, many = FETCHERS[name](remove="all").X, FETCHERS[name]().X
    assert DATASETS[name].paper_attribute not in many.columns
    assert not set(DATASETS[name].sensitive) & set(few.columns)
    assert set(few.columns) < set(many.columns)


@every_data_set
def test_a_data_set_names_its_features_and_describes_itself(name):
    data = FETCHERS[name]()
    assert data.feature_names == list(data.X.columns)
    assert describe(DATASETS[name]) == data.DESCR
    assert set(data.y) == {0, 1}


@every_data_set
def test_no_row_is_lost_to_a_word_that_means_missing_elsewhere(name):
    data = FETCHERS[name]()
    assert data.X.notna().all().all()
    assert data.sensitive_features.notna().all().all()


@every_data_set
def test_a_wrong_choice_is_refused(name):
    with pytest.raises(InputError, match="remove must be 'paper' or 'all', got 'none'"):
        FETCHERS[name](remove="none")


# ---- one by one ----


def test_adult_is_two_files_with_different_ends_of_lines():
    data = fetch_adult()
    assert data.X["age"].tolist() == [39, 24, 60, 25]
    assert data.X["workclass"].tolist() == ["State-gov", "?", "Private", "Private"]
    assert data.X["capital_gain"].tolist() == [2174, 0, 0, 0]


def test_attributes_of_adult_are_grouped_as_the_paper_needs_them():
    people = fetch_adult().sensitive_features
    assert people["race_group"].tolist() == ["White", "other", "other", "White"]
    assert people["age_group"].tolist() == ["25 to 59", "under 25", "60 and over", "25 to 59"]
    assert people["born_in_us"].tolist() == ["yes", "unknown", "no", "yes"]
    expected = ["never married", "married", "previously married", "previously married"]
    assert people["marital_group"].tolist() == expected


def test_the_sex_of_german_is_in_a_code_that_is_out_of_x():
    data = fetch_german()
    assert data.sensitive_features["sex"].tolist() == ["male", "female", "male", "male", "female"]
    assert "personal_status" not in data.X.columns
    assert not data.X.isin(["A91", "A92", "A93", "A94", "A95"]).any().any()
    assert data.sensitive_features["foreign_worker"].tolist() == ["yes", "yes", "no", "no", "no"]


def test_a_limit_of_age_belongs_to_the_band_above_it():
    assert fetch_german().sensitive_features["age_group"].tolist()[1:3] == ["under 25", "25 and over"]
    assert fetch_bank().sensitive_features["age_group"].tolist() == ["under 25", "25 and over"]


def test_the_duration_of_a_call_is_there_only_on_request():
    assert "duration" not in fetch_bank().X.columns
    assert fetch_bank(include_duration=True).X["duration"].tolist() == [261, 151]


@pytest.mark.parametrize("fetch", [fetch_arrest, fetch_violent])
def test_scores_of_compas_are_there_only_on_request(fetch):
    added = set(fetch(include_scores=True).X.columns) - set(fetch().X.columns)
    assert added == {"decile_score", "v_decile_score", "c_charge_desc"}


def test_numbers_of_bank_are_numbers_and_words_are_words():
    X = fetch_bank().X
    assert X["balance"].tolist() == [-2143, 29]
    assert X["education"].tolist() == ["tertiary", "NA"]


@pytest.mark.parametrize("fetch", [fetch_arrest, fetch_violent])
def test_nothing_that_identifies_a_person_or_leaks_the_label_is_read(fetch):
    data = fetch(remove="paper")
    assert set(data.X.columns) == {
        "sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
        "c_charge_degree",
    }  # fmt: skip
    everything = (
        data.X.astype(str).to_numpy().ravel().tolist() + data.sensitive_features.astype(str).to_numpy().tolist()
    )
    assert not any("Nobody" in str(value) or "1900" in str(value) for value in everything)


def test_columns_that_the_violent_file_has_twice_are_read_once():
    data = fetch_violent()
    assert data.X["priors_count"].tolist() == [0, 4, 2]
    assert data.y.tolist() == [0, 1, 1]


def test_attributes_of_compas_are_grouped_as_the_manual_partition_needs_them():
    people = fetch_arrest().sensitive_features
    assert people["race_group"].tolist() == ["other", "Caucasian", "other"]
    assert people["age_group"].tolist() == ["greater than 45", "less than 25", "25 - 45"]


# ---- where the files come from ----


def test_a_file_that_was_changed_is_not_loaded(raw_files, monkeypatch, tmp_path):
    (raw_files / "german.data").write_text(GERMAN.replace("1169", "1170"))
    monkeypatch.setattr(loaders, "GERMAN_DATA", dataclasses.replace(loaders.GERMAN_DATA, url="http://127.0.0.1:9"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataNotFoundError, match=r"checksum mismatch of .*german\.data"):
        fetch_german()


@every_data_set
def test_the_description_names_what_a_reader_must_know(name):
    dataset = DATASETS[name]
    text = describe(dataset)
    assert text.startswith(f"{dataset.title}: {dataset.n_rows:,} rows.\n")
    facts = (dataset.licence, dataset.publisher, dataset.positive, *dataset.sensitive, *dataset.left_out)
    for part in (*facts, *(file.sha256 for file in dataset.files)):
        assert part in text
