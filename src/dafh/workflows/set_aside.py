"""Test rows beside a model file: written together with it, and known to it by their fingerprint."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh.exceptions import InputError
from dafh.persistence.files import card_of, file_content
from dafh.storage import replacing
from dafh.tables.write import TableWriter
from dafh.workflows.fingerprints import fingerprint

_ENTRY = "test_fingerprint"
"""Where the card has the fingerprint of the test rows."""


class Saved(NamedTuple):
    """What was written."""

    card: dict[str, Any]
    test_rows: Path | None
    """Where the test rows are, if there are any."""


def held_out_path(model: Path) -> Path:
    """Where the test rows of a model are written."""
    return model.with_suffix(".test.parquet")


def save_with_test_rows(
    model: Pipeline,
    path: Path,
    details: Mapping[str, object],
    sums: NDArray[np.uint64],
    write: Callable[[TableWriter], None],
) -> Saved:
    """Write a model, and its test rows beside it if there are any.

    Both are written before either takes its place, so that a full disk leaves the files of an earlier fit as they were.
    Test rows go first. If the process is killed between the two, the earlier model finds that they are not its own: a
    new model could not know that it was trained on the rows of an earlier file that has their name.

    Parameters
    ----------
    model, path, details
        As in `save`.
    sums : array
        Sums of the hashes of the test rows, as `hash_sums` has them.
    write : function of a writer
        Writes the test rows.
    """
    n_rows = int(sums[0])
    known = {_ENTRY: fingerprint(sums)} if n_rows else {}
    content = file_content(model, details={**details, "rows_kept_back": n_rows, **known})
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        if n_rows:
            with TableWriter(held_out_path(path)) as writer:
                write(writer)
    return Saved(card_of(content), held_out_path(path) if n_rows else None)


def check_test_rows(model: Path, card: Mapping[str, Any], table: str | Path, found: str) -> None:
    """Refuse a table that has the name of the model's test rows, and other rows.

    Parameters
    ----------
    model : Path
    card : mapping
        That of the model.
    table : str or Path
    found : str
        Fingerprint of the rows of the table.
    """
    if Path(table).resolve() not in (held_out_path(model).resolve(), held_out_path(model.resolve())):
        return
    # Files of earlier versions do not know their test rows.
    known = card.get(_ENTRY, "" if card.get("rows_kept_back") == 0 else found)
    if found != known:
        raise InputError(
            f"{table} does not hold the test rows of {model.name}: another fit has written it, and the model may have "
            "been trained on these rows. Fit again, or give the table another name if you know that the model has not "
            "seen them."
        )
