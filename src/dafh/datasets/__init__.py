"""The paper's five data sets, and synthetic data whose groups are known.

- `loaders`: one function per data set, from raw file to features, target and attributes;
- `registry`: files, checksums, sources, and columns that are left out;
- `sources`: where raw files come from;
- `synthetic`: generators.

A new data set is an entry in `registry` and a function in `loaders`, listed in `FETCHERS` and exported here.
"""

from dafh.datasets.loaders import FETCHERS, fetch_adult, fetch_arrest, fetch_bank, fetch_german, fetch_violent
from dafh.datasets.registry import DATASETS
from dafh.datasets.synthetic import make_grouped_classification, make_paper_synthetic

__all__ = [
    "DATASETS",
    "FETCHERS",
    "fetch_adult",
    "fetch_arrest",
    "fetch_bank",
    "fetch_german",
    "fetch_violent",
    "make_grouped_classification",
    "make_paper_synthetic",
]
