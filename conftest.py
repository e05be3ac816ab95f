"""Docstring examples that load a data set are run where its files are at hand, and skipped elsewhere."""

import pytest

from dafh.datasets import DATASETS
from dafh.datasets.sources import is_available


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the examples of `fetch_adult` and its like where they would need the network."""
    for item in items:
        name = item.name.rpartition(".fetch_")[2]
        if name in DATASETS and not all(is_available(file) for file in DATASETS[name].files):
            item.add_marker(pytest.mark.skip(reason=f"needs the data set {name} at hand: DAFH_DATA names no folder"))
