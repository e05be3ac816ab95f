"""From a model file, a batch of rows and a state file to the next state: what `dafh watch` does."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    table: list[dict[str, Any]]
    levels: list[dict[str, Any]]
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
            "levels": self.levels,
            "drift": self.drift,
            "notes": list(self.notes),
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
    wait: float,
    **settings: Any,
) -> WatchedBatch:
    """Add a batch to a state, which is created with the first one; parameters are those of the command.

    `settings` are those of the monitor, settled with the first batch; None leaves one to the model or to the default.
    """
    with WatchStore(state, wait=wait) as store:
        with store.transaction():
            loaded, checksum, behind = _open(model, store, target, repair=apply)
            monitor = _monitor(loaded, store, {key: value for key, value in settings.items() if value is not None})
            attributes = _attributes(monitor, sensitive)
            weighed = monitor.settings.largest_weight is not None
            columns = (attributes, target, person, id_column, weight)
            X, y, about, notes = _read_rows(loaded, data, *columns, weighed=weighed)
            known = pd.notna(y)
            labelled = _fingerprint(X[known], y[known])
            if labelled in loaded.card.get("fingerprints", []):
                raise InputError(
                    f"The model was trained on the rows of {Path(data.name).name}: they are no evidence. Watch rows "
                    "that it has not seen."
                )
            if target in (None, loaded.schema.target):
                check_test_rows(model, loaded.card, data.path, labelled)
            mark, new = _fingerprint(X, y), store.is_empty
            repeated = None if new else store.batch_of(mark)
            update, notes = None, [*notes, *behind]
            if repeated is None:
                update = monitor.update(X, y, **about, name=name or Path(data.name).name)
                if new:
                    store.put_model(checksum, model.name, 0)
                store.put_batch(monitor, update, mark)
            changes = _apply(monitor, store, loaded, model) if apply else []
        if changes:
            # Only now: had the state not been written, it would not know the new file.
            _put_in_place(store, model)
        tables = [plain(table.to_dict("records")) for table in (monitor.table(), monitor.levels(), monitor.drift())]
        return WatchedBatch(
            update, repeated, changes, _standing(monitor), tables[0], tables[1], tables[2], tuple(notes)
        )


# ---- rows ----


def _read_rows(
    loaded: ModelFile,
    data: DataFile,
    sensitive: Sequence[str] | None,
    target: str | None,
    person: str | None,
    id_column: str | None,
    weight: str | None,
    *,
    weighed: bool,
) -> tuple[pd.DataFrame, NDArray[np.object_], dict[str, Any], list[str]]:
    """Read features, labels, what else is known, under the names that `Monitor.update` has for it, and notes.

    A label that is not known is None; a file without the target column has none. `sensitive` are names of attributes
    that declare subgroups; None takes those of the training, as far as the file has them. Rows count by their weight
    only if the monitor was told the largest one (`weighed`).
    """
    table = data.read(text=None).reset_index(drop=True)
    schema = loaded.schema_of(data)
    unexpected = UnexpectedValues()
    features = schema.features_of(table, unexpected)
    for what, column in {"the target": target, "that identifies each row": id_column}.items():
        if column is not None:
            check_columns(table.columns, [column], what)
    label = target or schema.target
    y = np.full(len(table), None, object)
    if label in table.columns:
        known = with_gaps(table[label]).notna().to_numpy()
        if known.any():
            y[known] = match_labels(table.loc[known, label], loaded.model.classes_)
    names = [n for n in schema.sensitive if n in table.columns] if sensitive is None else list(sensitive)
    persons, notes = loaded.persons(table, person)
    weights = None
    if weighed:
        weights, uncounted = loaded.weights(table, weight)
        notes += uncounted
    elif weight is not None:
        raise InputError("Weights need the largest one that any row will ever have: set it with the first batch.")
    elif schema.weight in table.columns:
        left_out = f"{quoted(schema.weight)} is left out, because the largest weight is not known"
        notes.append(f"Each row counts once: {left_out}.")
    if not label:
        notes.append("The model does not know its target: name the target column, or no row has a label.")
    about = {
        "sensitive_features": schema.attributes_of(table, split_names(names, table.columns)) if names else None,
        "persons": persons,
        "ids": None if id_column is None else persons_of(table, id_column),
        "sample_weight": weights,
    }
    return features, y, about, [*data.notes, *unexpected.notes(len(table)), *notes]


def _fingerprint(features: pd.DataFrame, y: NDArray[np.object_]) -> str:
    """Tell these rows from all others, whatever their order."""
    return fingerprint(hash_total(labelled_hashes(features, y)))


# ---- the model and its monitor ----


def _open(model: Path, store: WatchStore, target: str | None, *, repair: bool) -> tuple[ModelFile, str, list[str]]:
    """Open a model file that the state knows; return its checksum, too, and a note where the state is ahead of it."""
    loaded = ModelFile.open(model, target)
    checksum = hashlib.sha256(model.read_bytes()).hexdigest()
    known = [] if store.is_empty else store.models()
    if not known or checksum == known[-1].checksum:
        return loaded, checksum, []
    if checksum not in {one.checksum for one in known}:
        raise InputError(
            f"{store.path} is the state of another model ({clipped(known[0].name)}): use another file for the state of "
            f"{model}."
        )
    if repair:  # The process was killed before the new file was in place.
        _put_in_place(store, model)
        note = f"{model} was older than the last change of who serves whom: its successor in the state has replaced it."
        return ModelFile.open(model, target), known[-1].checksum, [note]
    note = f"{model} is older than the last change of who serves whom: its successor is in the state."
    return loaded, checksum, [note]


def _monitor(loaded: ModelFile, store: WatchStore, settings: dict[str, Any]) -> Monitor:
    """Go on, or begin with the settings given."""
    if store.is_empty:
        described = loaded.card.get("reference")
        reference = None if described is None else Reference.from_dict(described)
        return Monitor(loaded.model, reference=reference, **settings)
    monitor = store.monitor(loaded.model)
    before = plain(asdict(monitor.settings))
    for name, value in settings.items():
        asked = list(value) if name == "losses" else value
        if asked != before[name]:
            raise InputError(f"{store.path} was begun with {name} = {before[name]}: it cannot change later.")
    return monitor


def _attributes(monitor: Monitor, sensitive: Sequence[str]) -> list[str] | None:
    """Columns that declare subgroups: those of the first batch."""
    declared = monitor.attributes
    if declared is None:
        return list(sensitive) or None
    if sensitive and set(split_names(sensitive, declared)) != set(declared):
        was = ", ".join(declared) or "none"
        raise InputError(f"The state was begun with these sensitive columns: {was}. They cannot change later.")
    return declared


def _apply(monitor: Monitor, store: WatchStore, loaded: ModelFile, path: Path) -> list[ServiceChange]:
    """Change who serves whom in the state, with the model file that goes with it."""
    changes = monitor.apply()
    if changes:
        # What the card before says beyond the model itself, and what the groups are worth now.
        own = make_card(loaded.model, {})
        details = {name: value for name, value in loaded.card.items() if name not in own}
        content = file_content(loaded.model, details=details | {"worth": worth_of_groups(loaded.model)})
        batch = changes[0].batch
        store.put_model(hashlib.sha256(content).hexdigest(), path.name, batch, content)
        store.put_service(batch, changes)
        store.put_state(monitor)
    return changes


def _put_in_place(store: WatchStore, model: Path) -> None:
    """Replace the model file by the last one that the state knows."""
    content = store.models()[-1].content
    assert content is not None  # Only the first one, which the state was begun with, is not kept.
    with replacing(model) as temporary:
        temporary.write_bytes(content)


def _standing(monitor: Monitor) -> list[Notice]:
    """Alarms that nothing has been done about."""
    table = monitor.table()
    asked = table[(table["alarm_row"] > 0) & table["in_service"]]
    now = {(row.group, row.part, row.loss, row.alarm_row) for row in asked.itertuples()}
    of_level = set(monitor.levels()["alarm_row"])  # Such an alarm stands until others serve.
    return [
        one
        for one in monitor.alarms
        if (one.row in of_level if one.kind == "level" else (one.group, one.part, one.loss, one.row) in now)
    ]
