"""Data: the paper's five data sets, and generators of data whose groups are known."""

from dafh.datasets.loaders import FETCHERS, describe, fetch_adult, fetch_arrest, fetch_bank, fetch_german, fetch_violent
from dafh.datasets.registry import DATASETS, Dataset, RawFile
from dafh.datasets.synthetic import make_grouped_classification, make_paper_synthetic

__all__ = [
    "DATASETS",
    "FETCHERS",
    "Dataset",
    "RawFile",
    "describe",
    "fetch_adult",
    "fetch_arrest",
    "fetch_bank",
    "fetch_german",
    "fetch_violent",
    "make_grouped_classification",
    "make_paper_synthetic",
]
