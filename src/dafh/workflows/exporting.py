"""From a model file to a program of another system."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dafh.exceptions import InputError
from dafh.persistence.files import open_model
from dafh.sql import to_sql
from dafh.tables.schema import TableSchema
from dafh.text import clipped
from dafh.workflows.names import split_names

# Letters of a checksum that are enough to tell which file a statement was written from.
_CHECKSUM = 16


def sql_of_file(path: Path, dialect: str, table: str, keep: Sequence[str] = ()) -> str:
    """Write the model of a file as one SELECT; a model that was saved from Python says itself what its columns hold.

    Parameters
    ----------
    path : Path
    dialect, table : str
        As in `dafh.sql.to_sql`.
    keep : names of columns
        To carry over, one by one or joined by commas.
    """
    file = open_model(path)
    described = file.card.get("schema")
    try:
        schema = None if described is None else TableSchema.from_dict(described)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path} has a malformed schema: it does not say what its columns hold.") from error
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()[:_CHECKSUM]
    notes = [
        f"Model: {clipped(path.name)}, SHA-256 {checksum}..., written {clipped(file.card['written'])} by dafh "
        f"{clipped(file.card['dafh'])}."
    ]
    if "rows" in file.card:
        notes.append(f"Fitted on {file.card['rows']:,} rows of {clipped(file.card.get('data'))}.")
    return to_sql(file.model, dialect, table, schema=schema, keep=split_names(keep, ()), notes=notes)
