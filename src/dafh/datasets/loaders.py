"""Load the five data sets of the paper as data frames."""

import itertools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from dafh.datasets.registry import (
    ADULT_DATA,
    ADULT_TEST,
    ARREST_CSV,
    BANK_CSV,
    DATASETS,
    GERMAN_DATA,
    VIOLENT_CSV,
    Dataset,
    RawFile,
)
from dafh.datasets.sources import obtain
from dafh.exceptions import InputError

Remove = Literal["paper", "all"]

_ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
]  # fmt: skip
_GERMAN_COLUMNS = [
    "checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment",
    "installment_rate", "personal_status", "other_debtors", "residence_since", "property", "age",
    "other_installments", "housing", "existing_credits", "job", "n_dependents", "telephone", "foreign_worker", "risk",
]  # fmt: skip
_COMPAS_COLUMNS = [
    "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
    "c_charge_degree", "two_year_recid",
]  # fmt: skip
_COMPAS_SCORES = ["decile_score", "v_decile_score", "c_charge_desc"]


def fetch_adult(*, remove: Remove = "paper") -> Bunch:
    """Load Adult: does a person earn more than 50,000 dollars a year? 48,842 rows of the 1994 census.

    Parameters
    ----------
    remove : {"paper", "all"}, default="paper"
        Which sensitive columns are left out of X: the paper's attribute (race), or all of them (race, sex, age,
        native_country, marital_status, and relationship, which reveals sex and marital status).

    Returns
    -------
    Bunch
        ``X``; ``y`` (1 for the label that ``DESCR`` names, otherwise 0); ``sensitive_features`` (all of them; the
        first column holds the paper's two groups); ``feature_names``; ``DESCR``.

    Examples
    --------
    >>> from dafh.datasets import fetch_adult
    >>> data = fetch_adult()
    >>> data.X.shape, list(data.sensitive_features.columns)
    ((48842, 13), ['race_group', 'race', 'sex', 'age_group', 'born_in_us', 'marital_group'])
    """
    first = _read(ADULT_DATA, header=None, names=_ADULT_COLUMNS, skipinitialspace=True)
    second = _read(ADULT_TEST, header=None, names=_ADULT_COLUMNS, skipinitialspace=True, skiprows=1)
    table = pd.concat([first, second], ignore_index=True)
    y = table.pop("income").str.rstrip(".").eq(">50K")
    married = {"Married-civ-spouse": "married", "Married-AF-spouse": "married", "Never-married": "never married"}
    sensitive = pd.DataFrame(
        {
            "race_group": np.where(table.race == "White", "White", "other"),
            "race": table.race,
            "sex": table.sex,
            "age_group": _age_group(table.age, [25, 60]),
            "born_in_us": table.native_country.map(
                lambda country: {"United-States": "yes", "?": "unknown"}.get(country, "no")
            ),
            "marital_group": table.marital_status.map(lambda status: married.get(status, "previously married")),
        }
    )
    return _bunch(DATASETS["adult"], table, y, sensitive, remove)


def fetch_arrest(*, remove: Remove = "paper", include_scores: bool = False) -> Bunch:
    """Load Arrest: is a defendant arrested again within two years? 7,214 rows of ProPublica's COMPAS data.

    Names, birth dates and case numbers are never read, and neither are columns that were known only after the outcome.
    ``include_scores=True`` adds what else was known at the screening: both scores of COMPAS, and the charge in words.
    Other parameters and the result are those of `fetch_adult`; the paper's attribute is race.

    Examples
    --------
    >>> from dafh.datasets import fetch_arrest
    >>> data = fetch_arrest()
    >>> data.X.shape, list(data.sensitive_features.columns)
    ((7214, 8), ['race_group', 'race', 'sex', 'age_group'])
    """
    columns = _COMPAS_COLUMNS + _COMPAS_SCORES * include_scores
    return _fetch_compas(DATASETS["arrest"], ARREST_CSV, columns, remove)


def fetch_violent(*, remove: Remove = "paper", include_scores: bool = False) -> Bunch:
    """Load Violent: is a defendant arrested again for a violent offence within two years? 4,743 rows.

    Otherwise the same as `fetch_arrest`.

    Examples
    --------
    >>> from dafh.datasets import fetch_violent
    >>> data = fetch_violent()
    >>> data.X.shape, list(data.sensitive_features.columns)
    ((4743, 8), ['race_group', 'race', 'sex', 'age_group'])
    """
    columns = _COMPAS_COLUMNS + _COMPAS_SCORES * include_scores
    return _fetch_compas(DATASETS["violent"], VIOLENT_CSV, columns, remove)


def _fetch_compas(dataset: Dataset, file: RawFile, columns: list[str], remove: Remove) -> Bunch:
    # Only these columns are read, so that no name or birth date gets into memory. The violent file has two of them
    # twice with the same values; pandas takes the first.
    table = _read(file, usecols=columns)
    y = table.pop("two_year_recid").eq(1)
    sensitive = pd.DataFrame(
        {
            "race_group": np.where(table.race == "Caucasian", "Caucasian", "other"),
            "race": table.race,
            "sex": table.sex,
            "age_group": table.age_cat.str.lower(),
        }
    )
    return _bunch(dataset, table, y, sensitive, remove)


def fetch_german(*, remove: Remove = "paper") -> Bunch:
    """Load German credit: is an applicant a good credit risk? 1,000 rows.

    The raw column on personal status reveals the sex and is therefore left out of X. Parameters and result are those
    of `fetch_adult`; the paper's attribute is sex.

    Examples
    --------
    >>> from dafh.datasets import fetch_german
    >>> data = fetch_german()
    >>> data.X.shape, list(data.sensitive_features.columns)
    ((1000, 19), ['sex', 'age_group', 'foreign_worker'])
    """
    table = _read(GERMAN_DATA, sep=" ", header=None, names=_GERMAN_COLUMNS)
    y = table.pop("risk").eq(1)
    sensitive = pd.DataFrame(
        {
            "sex": table.pop("personal_status").map(lambda code: "female" if code in ("A92", "A95") else "male"),
            "age_group": _age_group(table.age, [25]),
            "foreign_worker": table.foreign_worker.map({"A201": "yes", "A202": "no"}),
        }
    )
    return _bunch(DATASETS["german"], table, y, sensitive, remove)


def fetch_bank(*, remove: Remove = "paper", include_duration: bool = False) -> Bunch:
    """Load Bank marketing: does a client subscribe to a term deposit? 45,211 rows.

    The duration of the call is known only when the call is over, so it is left out. The paper uses it: pass
    ``include_duration=True`` to compare with its numbers. Other parameters and the result are those of `fetch_adult`;
    the paper's attribute is age, under 25 or not.

    Examples
    --------
    >>> from dafh.datasets import fetch_bank
    >>> data = fetch_bank()
    >>> data.X.shape, list(data.sensitive_features.columns)
    ((45211, 14), ['age_group', 'marital'])
    """
    table = _read(BANK_CSV, sep=";")
    y = table.pop("y").eq("yes")
    if not include_duration:
        table = table.drop(columns="duration")
    sensitive = pd.DataFrame({"age_group": _age_group(table.age, [25]), "marital": table.marital})
    return _bunch(DATASETS["bank"], table, y, sensitive, remove)


FETCHERS: dict[str, Callable[..., Any]] = {
    "adult": fetch_adult,
    "arrest": fetch_arrest,
    "violent": fetch_violent,
    "german": fetch_german,
    "bank": fetch_bank,
}


def _read(file: RawFile, **options: Any) -> pd.DataFrame:
    # "?" and similar entries stay categories of their own, as the publishers wrote them.
    return pd.read_csv(obtain(file), keep_default_na=False, **options)


def _age_group(age: pd.Series, limits: list[int]) -> pd.Series:
    """Name the age bands between the limits; each limit belongs to the band above it."""
    between = [f"{low} to {high - 1}" for low, high in itertools.pairwise(limits)]
    names = [f"under {limits[0]}", *between, f"{limits[-1]} and over"]
    return pd.cut(age, [-np.inf, *limits, np.inf], right=False, labels=names).astype(str)


def _bunch(dataset: Dataset, table: pd.DataFrame, y: pd.Series, sensitive: pd.DataFrame, remove: Remove) -> Bunch:
    if remove not in ("paper", "all"):
        raise InputError(f"remove must be 'paper' or 'all', got {remove!r}.")
    excluded = dataset.sensitive if remove == "all" else (dataset.paper_attribute,)
    X = table.drop(columns=[name for name in excluded if name in table])
    return Bunch(
        X=X,
        y=y.astype(int).rename("y"),
        sensitive_features=sensitive,
        feature_names=list(X.columns),
        DESCR=describe(dataset),
    )


def describe(dataset: Dataset) -> str:
    """Describe a data set: size, label, sensitive attributes, what is left out and why, publisher and licence."""
    lines = [
        f"{dataset.title}: {dataset.n_rows:,} rows.",
        f"Label 1: {dataset.positive}.",
        f"Sensitive attribute in the paper, never in X: {dataset.paper_attribute}.",
        f'Sensitive columns, out of X with remove="all": {", ".join(dataset.sensitive)}.',
        *(f"Left out: {columns}: {reason}." for columns, reason in dataset.left_out.items()),
        f"Publisher: {dataset.publisher}; licence: {dataset.licence}.",
        *(f"File: {file.name}, SHA-256 {file.sha256}." for file in dataset.files),
    ]
    return "\n".join(lines)
