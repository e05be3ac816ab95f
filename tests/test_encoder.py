"""Laws of the encoder of tables."""

import numpy as np
import pandas as pd

from dafh.tables.encoder import TableEncoder


def test_dates_beyond_the_reach_of_nanoseconds_are_encoded():
    far = pd.DataFrame({"d": np.array(["9999-12-31", "2020-01-01", "NaT"], "datetime64[s]")})
    assert np.isfinite(TableEncoder().fit(far).transform(far).to_numpy()).all()


def test_numbers_too_large_to_square_count_as_missing():
    table = pd.DataFrame({"n": [1.0, 2.0, 1e300]})
    assert np.isfinite(TableEncoder().fit(table).transform(table).to_numpy()).all()
