"""From a model file, a batch of rows and a state file to the next state: what `dafh watch` does."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.storage import replacing
from dafh.tables.hashes import row_hashes
from dafh.tables.labels import match_labels
from dafh.tables.read import DataFile
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.tables.strange import UnreadValues
from dafh.tables.values import with_gaps
from dafh.text import clipped, plain, quoted
from dafh.watch.inputs import Reference
from dafh.watch.monitor import Monitor
from dafh.watch.notices import Notice, ServiceChange, Update
from dafh.watch.store import StoredBatch, WatchStore
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.names import split_names
from dafh.workflows.serving import FileModel
from dafh.workflows.set_aside import check_test_rows
from dafh.workflows.successors import is_successor, successor

# Of so many rows with the values of earlier ones, most are likely to be the same rows.
_FEWEST_REPEATED = 20


@dataclass(frozen=True)
class WatchSettings:
    """What is settled with the first batch; None leaves it to the model or to the default."""

    level: float | None = None
    losses: Sequence[str] | None = None
    costs: Mapping[str, float] | None = None
    sensitive: Sequence[str] = ()
    run_length: float | None = None
    drift_margin: float | None = None
    largest_weight: float | None = None

    def given(self) -> dict[str, Any]:
        """Settings of the monitor that were given."""
        names = ("level", "losses", "costs", "run_length", "drift_margin", "largest_weight")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """Rows of a file, with or without labels."""

    features: pd.DataFrame
    y: NDArray[np.object_]
    """None where the label is not known."""
    sensitive: pd.DataFrame | None
    persons: "pd.Series[Any] | None"
    ids: "pd.Series[Any] | None"
    weights: "pd.Series[Any] | None"
    hashes: NDArray[np.uint64]
    notes: tuple[str, ...]

    def fingerprint(self) -> str:
        """Tell this batch from all others, whatever the order of its rows."""
        return fingerprint(hash_sums(labelled_hashes(self.features, self.y)))

    def labelled_fingerprint(self) -> str:
        """The same for rows with labels, as the training rows have it in the model file."""
        known = pd.notna(self.y)
        return fingerprint(hash_sums(labelled_hashes(self.features[known], self.y[known])))


@dataclass(frozen=True)
class WatchedBatch:
    """What became of a batch."""

    update: Update | None
    """None where the batch was given before."""
    repeated: StoredBatch | None
    changes: list[ServiceChange]
    standing: list[Notice]
    """Alarms about classifiers that are still in service."""
    table: list[dict[str, Any]]
    drift: list[dict[str, Any]]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "update": None if self.update is None else self.update.to_dict(),
            "repeated": None if self.repeated is None else self.repeated.number,
            "changes": [change.to_dict() for change in self.changes],
            "standing": [notice.to_dict() for notice in self.standing],
            "table": self.table,
            "drift": self.drift,
            "notes": list(self.notes),
        }


def watch_batch(
    model: Path,
    data: DataFile,
    state: Path,
    settings: WatchSettings,
    *,
    target: str | None = None,
    person: str | None = None,
    id_column: str | None = None,
    weight: str | None = None,
    name: str | None = None,
    apply: bool = False,
    on_warnings: bool = False,
    wait: float = 60.0,
) -> WatchedBatch:
    """Add a batch to a state, which is created with the first one.

    Parameters
    ----------
    model, data, state
        Model file, rows and state file.
    settings : WatchSettings
    target, person, id_column, weight : names of columns
        Where the labels are; whose a row is; what identifies a row; what it counts.
    name : str, optional
        Of the batch; by default the name of its file.
    apply : bool
        Change who serves whom, and replace the model file.
    on_warnings : bool
        With `apply`, after warnings, too.
    wait : float
        Seconds to wait for another process that uses the state.
    """
    with WatchStore(state, wait=wait) as store:
        with store.transaction():
            loaded, checksum, behind = _open(model, store, target, repair=apply)
            monitor = _monitor(loaded, store, settings)
            columns = (target, person, id_column, weight)
            weighed = monitor.settings.largest_weight is not None
            rows = read_rows(loaded, data, _attributes(monitor, settings), *columns, weighed=weighed)
            if rows.labelled_fingerprint() in loaded.file.card.get("fingerprints", []):
                raise InputError(
                    f"The model was trained on the rows of {Path(data.name).name}: they are no evidence. Watch rows "
                    "that it has not seen."
                )
            if target in (None, loaded.schema.target):
                check_test_rows(model, loaded.file.card, data.path, rows.labelled_fingerprint())
            mark, new = rows.fingerprint(), store.is_empty
            repeated = None if new else store.batch_of(mark)
            update, notes = None, [*rows.notes, *behind]
            if repeated is None:
                notes += [] if new or rows.ids is not None else _seen_before(store, monitor, rows)
                update = _updated(monitor, rows, name or Path(data.name).name)
                if new:
                    store.put_model(checksum, model.name, 0)
                store.put_batch(monitor, update, mark, rows.hashes)
            changes = _apply(monitor, store, loaded, model, on_warnings=on_warnings) if apply else []
        if changes:
            # Only now: had the state not been written, it would not know the new file.
            _put_in_place(_successor(store, loaded), model)
        tables = [plain(table.to_dict("records")) for table in (monitor.table(), monitor.drift())]
        return WatchedBatch(update, repeated, changes, _standing(monitor), tables[0], tables[1], tuple(notes))


def read_rows(
    loaded: FileModel,
    data: DataFile,
    sensitive: Sequence[str] | None,
    target: str | None = None,
    person: str | None = None,
    id_column: str | None = None,
    weight: str | None = None,
    *,
    weighed: bool = False,
) -> WatchedRows:
    """Read rows as the model takes them; a file without the target column has rows without labels.

    `sensitive` are names of attributes that declare subgroups; None takes those of the training, as far as the file
    has them. Rows count by their weight only if the monitor was told the largest one (`weighed`).
    """
    schema = loaded.schema
    label = target or schema.target
    data = replace(data, leave_out=tuple(schema.left_out), decimal=data.decimal or schema.decimal)
    if id_column is not None:
        data = replace(data, leave_out=tuple(name for name in schema.left_out if name != id_column))
    table = data.read(text=None).reset_index(drop=True)
    schema = replace(schema, decimal=data.layout.decimal) if data.layout else schema
    unread = UnreadValues()
    features = schema.features_of(table, unread)
    if target is not None:
        check_columns(table.columns, [target], "the target")
    y = np.full(len(table), None, object)
    if label in table.columns:
        known = with_gaps(table[label]).notna().to_numpy()
        if known.any():
            y[known] = match_labels(table.loc[known, label], loaded.model.classes_)
    names = [n for n in schema.attributes if n in table.columns] if sensitive is None else list(sensitive)
    roles = {"with the person of each row": person, "that identifies each row": id_column, "of weights": weight}
    for what, column in roles.items():
        if column is not None:
            check_columns(table.columns, [column], what)
    person = person or (schema.person if schema.person in table.columns else None)
    weights, notes = _weights(schema, table, weight, weighed=weighed)
    if not label:
        notes.append("The model does not know its target: name the target column, or no row has a label.")
    return WatchedRows(
        features,
        y,
        schema.attributes_of(table, split_names(names, table.columns)) if names else None,
        None if person is None else persons_of(table, person),
        None if id_column is None else persons_of(table, id_column),
        weights,
        row_hashes(features),
        (*data.notes, *unread.notes(), *notes),
    )


def _weights(
    schema: TableSchema, table: pd.DataFrame, weight: str | None, *, weighed: bool
) -> tuple["pd.Series[Any] | None", list[str]]:
    """What each row counts, and a note where weights of the training are left out."""
    if weight is not None and not weighed:
        raise InputError("Weights need the largest one that any row will ever have: set it with the first batch.")
    name = weight or (schema.weight if schema.weight in table.columns else None)
    if name is None:
        return None, []
    if not weighed:
        return None, [f"Each row counts once: {quoted(name)} is left out, because the largest weight is not known."]
    return replace(schema, weight=name).weights_of(table), []


def _open(model: Path, store: WatchStore, target: str | None, *, repair: bool) -> tuple[FileModel, str, list[str]]:
    """Open a model file that the state knows; return its checksum, too, and a note where the state is ahead of it."""
    loaded = FileModel.open(model, target)
    checksum = _checksum(model)
    known = [] if store.is_empty else store.models()
    if not known or checksum == known[-1].checksum:
        return loaded, checksum, []
    if checksum not in {one.checksum for one in known}:
        raise InputError(
            f"{store.path} is the state of another model ({clipped(known[0].name)}): use another file for the state of "
            f"{model}."
        )
    content = _successor(store, loaded)
    if repair:  # The process was killed before the new file was in place.
        _put_in_place(content, model)
        note = f"{model} was older than the last change of who serves whom: its successor in the state has replaced it."
        return FileModel.open(model, target), known[-1].checksum, [note]
    note = f"{model} is older than the last change of who serves whom: its successor is in the state."
    return loaded, checksum, [note]


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _monitor(loaded: FileModel, store: WatchStore, settings: WatchSettings) -> Monitor:
    """Go on, or begin with the settings given."""
    if store.is_empty:
        return Monitor(loaded.model, reference=_reference(loaded), **settings.given())
    monitor = store.monitor(loaded.model)
    before = monitor.settings.to_dict()
    for name, value in settings.given().items():
        asked = list(value) if name == "losses" else value
        if asked != before[name]:
            raise InputError(f"{store.path} was begun with {name} = {before[name]}: it cannot change later.")
    return monitor


def _reference(loaded: FileModel) -> Reference | None:
    """What the training rows looked like, if the model file says so."""
    values = loaded.file.card.get("reference")
    if values is None:
        return None
    try:
        return Reference.from_dict(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            "The model file has a malformed reference: it does not say what the rows looked like."
        ) from error


def _attributes(monitor: Monitor, settings: WatchSettings) -> list[str] | None:
    """Columns that declare subgroups: those of the first batch."""
    declared = monitor.attributes
    if declared is None:
        return list(settings.sensitive) or None
    if settings.sensitive and set(split_names(settings.sensitive, declared)) != set(declared):
        was = ", ".join(declared) or "none"
        raise InputError(f"The state was begun with these sensitive columns: {was}. They cannot change later.")
    return declared


def _updated(monitor: Monitor, rows: WatchedRows, name: str) -> Update:
    return monitor.update(
        rows.features,
        rows.y,
        sensitive_features=rows.sensitive,
        sample_weight=rows.weights,
        persons=rows.persons,
        ids=rows.ids,
        name=name,
    )


def _seen_before(store: WatchStore, monitor: Monitor, rows: WatchedRows) -> list[str]:
    """Say that many rows have the values of earlier ones, unless those wait for the labels that come now."""
    again = int(np.isin(rows.hashes, store.hashes()).sum()) - min(monitor.n_waiting, int(pd.notna(rows.y).sum()))
    if again < max(_FEWEST_REPEATED, len(rows.y) / 2):
        return []
    return [
        f"{again:,} of {len(rows.y):,} rows have the same values as rows given before, and count again. If they are "
        "the same rows, name the column that identifies a row."
    ]


def _apply(
    monitor: Monitor, store: WatchStore, loaded: FileModel, path: Path, *, on_warnings: bool
) -> list[ServiceChange]:
    """Change who serves whom in the state, with the model file that goes with it."""
    changes = monitor.apply(on_warnings=on_warnings)
    if changes:
        content = successor(loaded.model, loaded.file.card)
        batch = changes[0].batch
        store.put_model(hashlib.sha256(content).hexdigest(), path.name, batch, content)
        store.put_service(batch, changes)
        store.put_state(monitor)
    return changes


def _successor(store: WatchStore, loaded: FileModel) -> bytes:
    """Return the last model file that the state knows; as a state may be forged, only its service may be new."""
    content = store.models()[-1].content
    if content is None or not is_successor(content, loaded.file):
        raise InputError(
            f"{store.path} cannot be used as a state: its last model differs from {loaded.path}, which was left as "
            "it is, in more than who serves whom."
        )
    return content


def _put_in_place(content: bytes, model: Path) -> None:
    with replacing(model) as temporary:
        temporary.write_bytes(content)


def _standing(monitor: Monitor) -> list[Notice]:
    """Alarms that nothing has been done about."""
    table = monitor.table()
    asked = table[(table["alarm_row"] > 0) & table["in_service"]]
    now = {(row.group, row.part, row.loss, row.alarm_row) for row in asked.itertuples()}
    return [one for one in monitor.alarms if (one.group, one.part, one.loss, one.row) in now]
