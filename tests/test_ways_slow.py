"""One model, whatever the way, on the paper's five data sets and a synthetic one; `make slow` runs it."""

import numpy as np
import pandas as pd
import pytest

from dafh.datasets import FETCHERS
from dafh.estimators import training_rows
from large import assert_same_model, grouped_table, written_in_files
from test_cluster import two_workers  # noqa: F401  (a fixture)
from test_large_fits import fitted

dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.slow


def table_of(name):
    """Features and target in one table, gaps and types as they are."""
    if name == "synthetic":
        return grouped_table(20_000)
    X, y = FETCHERS[name](return_X_y=True)
    return X.assign(y=np.asarray(y))


@pytest.mark.parametrize("how", ["all rows choose", "a sample chooses"])
@pytest.mark.parametrize("name", ["adult", "arrest", "bank", "german", "violent", "synthetic"])
def test_memory_files_and_partitions_give_one_model(name, how, tmp_path, monkeypatch, two_workers):  # noqa: F811
    table = table_of(name)
    if how == "a sample chooses":
        monkeypatch.setattr(training_rows, "MOST_ROWS", len(table) // 3)
    X, y = table.drop(columns="y"), table["y"]
    expected = fitted(X, y, n_groups="auto")
    order = np.random.default_rng(0).permutation(len(table))
    assert_same_model(expected, fitted(X.iloc[order], y.iloc[order], n_groups="auto"), X)
    for number in (1, 7, 50):
        source = written_in_files(tmp_path / str(number), table, number)
        assert_same_model(expected, fitted(source, n_groups="auto"), X)
        # Read by the workers, as on a real cluster: from_pandas would send the rows.
        collection = dd.read_parquet(sorted(map(str, (tmp_path / str(number)).iterdir())))
        assert_same_model(expected, fitted(collection, n_groups="auto"), X)
    unseen = X.head(50).copy()
    for column in [name for name in unseen if not pd.api.types.is_numeric_dtype(unseen[name])]:
        unseen[column] = pd.Series(["never seen", None] * 25, dtype=object).to_numpy()
    np.testing.assert_array_equal(expected.predict_group(unseen), fitted(source, n_groups="auto").predict_group(unseen))
