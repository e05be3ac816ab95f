"""Small tables and files for tests."""

import numpy as np
import pandas as pd

from dafh.columns.schema import TableSchema
from dafh.columns.write import TableWriter


def written(folder, content, name="people.csv"):
    """Path of a new file with some content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def saved(path, table):
    """Path of a new file with a table, in the format that the name says."""
    with TableWriter(path) as writer:
        writer.write(table)
    return path


def guessed(**columns):
    """Schema that is guessed from columns, and the table."""
    table = pd.DataFrame(columns).assign(y=lambda t: np.arange(len(t)) % 2)
    return TableSchema.guess(table, "y", categories=[name for name in columns if name == "code"]), table
