"""From a model file, a batch of rows and a state file to the next state: what `dafh watch` does."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.cli.model_file import ModelFile, check_test_rows
from dafh.columns.hashes import fingerprint, hash_total, labelled_hashes
from dafh.columns.kinds import with_gaps
from dafh.columns.labels import match_labels
from dafh.columns.read import DataFile
from dafh.columns.schema import check_columns, persons_of, split_names
from dafh.columns.unexpected import UnexpectedValues
from dafh.exceptions import InputError
from dafh.explanation import worth_of_groups
from dafh.monitor.inputs import Reference
from dafh.monitor.monitor import Monitor
from dafh.monitor.notices import Notice, ServiceChange, Update
from dafh.monitor.store import StoredBatch, WatchStore
from dafh.persistence import file_content, make_card
from dafh.storage import replacing
from dafh.text import clipped, plain, quoted


@dataclass(frozen=True)
class WatchedBatch:
    """What became of a batch."""

    update: Update | None
    """None where the batch was given before."""
    repeated: StoredBatch | None
    changes: list[ServiceChange]
    standing: list[Notice]
    """Alarms about classifiers that are still in service."""
    tables: dict[str, Any]
    """Evidence, levels and drift as plain values."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "update": None if self.update is None else self.update.to_dict(),
            "repeated": None if self.repeated is None else self.repeated.number,
            "changes": [change.to_dict() for change in self.changes],
            "standing": [notice.to_dict() for notice in self.standing],
            **self.tables,
            "notes": self.notes,
        }


def watch_batch(
    model: Path,
    data: DataFile,
    state: Path,
    *,
    target: str | None,
    sensitive: Sequence[str],
    person: str | None,
    id_column: str | None,
    weight: str | None,
    name: str | None,
    apply: bool,
    **settings: Any,
) -> WatchedBatch:
    """Add a batch to a state, which is created with the first one; parameters are those of the command.

    `settings` are those of the monitor, settled with the first batch; None leaves one to the model or to the default.
    """
    with WatchStore(state) as store:
        with store.transaction():
            loaded, checksum, older = _open(model, store, target, repair=apply)
            monitor = _monitor(loaded, store, {key: value for key, value in settings.items() if value is not None})
            attributes = _attributes(monitor, sensitive, settled=not store.is_empty)
            weighted = monitor.settings.largest_weight is not None
            rows, notes = _read_rows(loaded, data, attributes, target, person, id_column, weight, weighted=weighted)
            batch_fingerprint = _check_rows(loaded, data, rows, target)
            # Told by all rows and labels: rows that come again one by one, or with labels, are the monitor's business.
            repeated, update = next(iter(store.batches(batch_fingerprint)), None), None
            if repeated is None:
                if store.is_empty:
                    store.put_model(checksum, model.name)
                update = monitor.update(**rows, name=name or Path(data.name).name)
                store.put_batch(monitor, update, batch_fingerprint)
            changes = _apply(monitor, store, loaded, model) if apply else []
        if changes:
            # Only now: had the state not been written, it would not know the new file.
            _put_in_place(store, model)
    tables = {"table": monitor.table(), "levels": monitor.levels(), "drift": monitor.drift()}
    records = {title: plain(table.to_dict("records")) for title, table in tables.items()}
    return WatchedBatch(update, repeated, changes, _standing(monitor), records, [*notes, *older])


# ---- rows ----


def _read_rows(
    loaded: ModelFile,
    data: DataFile,
    attributes: Sequence[str] | None,
    target: str | None,
    person: str | None,
    id_column: str | None,
    weight: str | None,
    *,
    weighted: bool,
) -> tuple[dict[str, Any], list[str]]:
    """Read what `Monitor.update` takes, and notes.

    A label that is not known is None; a file without the target column has none. `attributes` declare subgroups; None
    takes those of the training, as far as the file has them. Rows count by their weight only if the monitor was told
    the largest one (`weighted`).
    """
    table = data.read(text=None).reset_index(drop=True)
    schema, unexpected = loaded.schema_of(data), UnexpectedValues()
    features = schema.features_of(table, unexpected)
    for role, column in {"the target": target, "that identifies each row": id_column}.items():
        if column is not None:
            check_columns(table.columns, [column], role)
    label, y = target or schema.target, np.full(len(table), None, object)
    if label in table.columns:
        labelled = with_gaps(table[label]).notna().to_numpy()
        if labelled.any():
            y[labelled] = match_labels(table.loc[labelled, label], loaded.model.classes_)
    if attributes is None:
        attributes = [name for name in schema.sensitive if name in table.columns]
    persons, notes = loaded.persons(table, person)
    weights = None
    if weighted:
        weights, without_weights = loaded.weights(table, weight)
        notes += without_weights
    elif weight is not None:
        raise InputError("Weights need the largest one that any row will ever have: set it with the first batch.")
    elif schema.weight in table.columns:
        left_out = f"{quoted(schema.weight)} is left out, because the largest weight is not known"
        notes.append(f"Each row counts once: {left_out}.")
    if not label:
        notes.append("The model does not know its target: name the target column, or no row has a label.")
    names = split_names(attributes, table.columns)
    rows = {
        "X": features,
        "y": y,
        "sensitive_features": schema.attributes_of(table, names) if names else None,
        "persons": persons,
        "ids": None if id_column is None else persons_of(table, id_column),
        "sample_weight": weights,
    }
    return rows, [*data.notes, *unexpected.notes(len(table)), *notes]


def _check_rows(loaded: ModelFile, data: DataFile, rows: dict[str, Any], target: str | None) -> str:
    """Refuse rows that the model was trained on; return the fingerprint of a batch, whatever its order."""
    labelled = pd.notna(rows["y"])
    hashes = labelled_hashes(rows["X"], rows["y"])
    of_labelled = fingerprint(hash_total(hashes[labelled]))
    if of_labelled in loaded.card.get("fingerprints", []):
        raise InputError(
            f"The model was trained on the rows of {Path(data.name).name}: they are no evidence. Watch rows that it "
            "has not seen."
        )
    if target in (None, loaded.schema.target):
        check_test_rows(loaded.path, loaded.card, data.path, of_labelled)
    return fingerprint(hash_total(hashes))


# ---- the model and its monitor ----


def _open(model: Path, store: WatchStore, target: str | None, *, repair: bool) -> tuple[ModelFile, str, list[str]]:
    """Open a model file that the state knows; return its checksum, too, and a note where the state is ahead of it."""
    loaded = ModelFile.open(model, target)
    checksum = hashlib.sha256(model.read_bytes()).hexdigest()
    known_models = [] if store.is_empty else store.models()
    if not known_models or checksum == known_models[-1].checksum:
        return loaded, checksum, []
    if checksum not in {known_model.checksum for known_model in known_models}:
        raise InputError(
            f"{store.path} is the state of another model ({clipped(known_models[0].name)}): use another file for the "
            f"state of {model}."
        )
    older = f"{model} is older than the last change of who serves whom: its successor"
    if not repair:
        return loaded, checksum, [f"{older} is in the state."]
    _put_in_place(store, model)  # The process was killed before the new file was in place.
    return ModelFile.open(model, target), known_models[-1].checksum, [f"{older} in the state has replaced it."]


def _monitor(loaded: ModelFile, store: WatchStore, settings: dict[str, Any]) -> Monitor:
    """Go on, or begin with the settings given."""
    if store.is_empty:
        described = loaded.card.get("reference")
        reference = None if described is None else Reference.from_dict(described)
        return Monitor(loaded.model, reference=reference, **settings)
    monitor = store.monitor(loaded.model)
    settled = plain(asdict(monitor.settings))
    for name, value in settings.items():
        if settled[name] != plain(value):
            raise InputError(f"{store.path} was begun with {name} = {settled[name]}: it cannot change later.")
    return monitor


def _attributes(monitor: Monitor, sensitive: Sequence[str], *, settled: bool) -> list[str] | None:
    """Columns that declare subgroups: those of the first batch."""
    if not settled:
        return list(sensitive) or None
    declared = monitor.attributes
    if sensitive and set(split_names(sensitive, declared)) != set(declared):
        words = ", ".join(declared) or "none"
        raise InputError(f"The state was begun with these sensitive columns: {words}. They cannot change later.")
    return declared


def _apply(monitor: Monitor, store: WatchStore, loaded: ModelFile, path: Path) -> list[ServiceChange]:
    """Change who serves whom in the state, with the model file that goes with it."""
    changes = monitor.apply()
    if changes:
        # What the card before says beyond the model itself, and what the groups are worth now.
        of_model = make_card(loaded.model, {})
        details = {name: value for name, value in loaded.card.items() if name not in of_model}
        content = file_content(loaded.model, details=details | {"worth": worth_of_groups(loaded.model)})
        store.put_model(hashlib.sha256(content).hexdigest(), path.name, content)
        store.put_state(monitor)
    return changes


def _put_in_place(store: WatchStore, model: Path) -> None:
    """Replace the model file by the last one that the state knows."""
    content = store.models()[-1].content
    assert content is not None  # Only the first one, which the state was begun with, is not stored.
    with replacing(model) as temporary:
        temporary.write_bytes(content)


def _standing(monitor: Monitor) -> list[Notice]:
    """Alarms that nothing has been done about."""
    table = monitor.table()
    harmed = table[(table["alarm_row"] > 0) & table["in_service"]]
    standing = {(row.group, row.part, row.loss, row.alarm_row) for row in harmed.itertuples()}
    of_level = set(monitor.levels()["alarm_row"])  # Such an alarm stands until others serve.
    return [
        alarm
        for alarm in monitor.alarms
        if (
            alarm.row in of_level
            if alarm.kind == "level"
            else (alarm.group, alarm.part, alarm.loss, alarm.row) in standing
        )
    ]
