"""The books of a monitor: rows that wait for labels, rows that have counted, and all that was shown so far.

It knows decisions, not the model that made them, so that it can be kept in a file. What a file may look like must not
matter:

- *Order.* The rows of a batch are put into an order that depends on nothing but their values, by a hash: rows sorted by
  their label would be a long losing streak.
- *Labels.* A batch counts, once, when nearly all its rows have labels (`min_labelled`). If labels come sooner for one
  class, the first ones are a selection. Those still missing are taken to be best for the own classifier where harm is
  to be shown, and worst where benefit is.
- *Rows given before.* Rows with an identifier are told by it, others by their values, if these tell rows apart: if far
  more rows of a file have the values of earlier ones than have those of another row of the same file.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import poisson

from dafh.columns.column import Column
from dafh.columns.hashes import mixed
from dafh.evaluation.losses import check_losses
from dafh.monitor.declared import DeclaredParts, Settings
from dafh.monitor.evidence import Evidence, JudgedRows
from dafh.monitor.inputs import InputDrift, Reference
from dafh.monitor.levels import Levels, UsedRows
from dafh.monitor.notices import Notice, ServiceChange, Update
from dafh.stats import Bettors
from dafh.text import plain

UNKNOWN = -1
"""Label of a row that has none yet."""
# Equal values are rows given before if there are more than twice as many as by chance, but for once in 10,000 files.
_BY_CHANCE, _RARE = 2.0, 1e-4


def decided_rows(n_attributes: int) -> np.dtype[np.void]:
    """What was decided about a row, and what else its label will be counted with.

    ``own``, ``pooled``, ``used`` (by the model in use) and ``label`` are positions among the classes; ``person`` is 0
    where every row is a person of its own; ``probability`` is that of the positive label by the model in use.
    """
    return np.dtype(
        [
            ("id", np.uint64),
            ("person", np.uint64),
            ("group", np.int32),
            ("own", np.int16),
            ("pooled", np.int16),
            ("used", np.int16),
            ("label", np.int16),
            ("batch", np.int32),
            ("parts", np.int16, (n_attributes,)),
            ("weight", np.float64),
            ("probability", np.float64),
        ]
    )


def in_hash_order(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Rows in an order that has nothing to do with their order in a file, nor with their labels."""
    # First an order that is the same however the file was sorted, then one drawn with a seed from the content.
    rows = rows[np.lexsort((rows["label"], rows["id"]))]
    seed = int(np.add.reduce(mixed(rows["id"])))
    return np.asarray(rows[np.random.default_rng(seed).permutation(len(rows))])


def match(waiting: NDArray[np.uint64], ids: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Place of each id among those that wait, −1 for none; where an id occurs several times, each is matched once.

    Examples
    --------
    >>> match(np.array([5, 7, 7], np.uint64), np.array([7, 9, 7, 7], np.uint64))
    array([ 1, -1,  2, -1])
    """
    if not len(waiting):
        return np.full(len(ids), -1, np.intp)
    # Equal ids are told apart by how many stand before each.
    there, asked = (
        pd.MultiIndex.from_arrays([values, pd.Series(values).groupby(values).cumcount()]) for values in (waiting, ids)
    )
    return np.asarray(there.get_indexer(asked), np.intp)


@dataclass(frozen=True)
class PlainState:
    """What a monitor knows, but for arrays, notices and changes of service."""

    settings: Settings
    parts: tuple[Column, ...]
    has_persons: bool | None
    by_id: bool | None
    reference: Reference | None
    watched: tuple[int, ...]


class Ledger:
    """Counts decided rows.

    `serving` are the groups whose watched classifier is in service. `judged` are labelled reference rows, all and of
    each group, and `errors` those on which the model was wrong. The first batch replaces a reference that is missing.
    """

    def __init__(
        self,
        settings: Settings,
        parts: DeclaredParts,
        serving: NDArray[np.bool_],
        n_classes: int,
        reference: Reference | None,
        *,
        divides_all: bool,
        judged: tuple[int, ...] = (),
        errors: tuple[int, ...] = (),
    ) -> None:
        self.settings, self.parts, self.n_classes = settings, parts, n_classes
        self.divides_all = divides_all
        losses, weighted = check_losses(settings.losses, settings.costs), settings.largest_weight is not None
        self.evidence = Evidence(
            len(serving),
            parts.names,
            losses,
            settings.level,
            weighted,
            serving,
            settings.by_batch,
        )
        nothing = np.zeros(1 + len(serving) if len(serving) > 1 else 1, np.int64)
        n_judged, n_errors = (np.array(counts, np.int64) if counts else nothing.copy() for counts in (judged, errors))
        self.levels = Levels(settings.level, settings.level_margin, settings.by_batch, n_judged, n_errors)
        self.drift: InputDrift | None = None
        if reference is not None:
            self.drift = InputDrift(reference, settings.level, settings.drift_margin)
        self.pending = np.zeros(0, decided_rows(len(parts.attributes)))
        self.given, self.persons = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        # Pairs of rows of the same file with the same values, and all pairs: how often that happens by chance.
        self.pairs = np.zeros(2)
        self.has_persons: bool | None = None
        self.by_id: bool | None = None
        self.n_batches = 0
        self.notices: list[Notice] = []
        self.service: list[ServiceChange] = []

    def start_anew(self, fresh: "Ledger") -> "Ledger":
        """Go on with the empty books of another model: its rows are no evidence about this one."""
        for name in ("given", "persons", "pairs", "has_persons", "by_id", "n_batches", "notices", "service"):
            setattr(fresh, name, getattr(self, name))
        fresh.evidence.n_rows = fresh.levels.n_rows = self.evidence.n_rows
        notice = Notice("model", None, "", None, self.evidence.n_rows, self.n_batches + 1)
        fresh.notices = [*self.notices, notice]
        return fresh

    # ---- rows ----

    def take(self, table: pd.DataFrame, rows: NDArray[np.void], name: str | None) -> Update:
        """Count rows whose decisions are known, labelled or not; `table` has them as they came, for drift."""
        self.n_batches += 1
        late = self._label(rows["id"], rows["label"])
        new = ~late & ~self._given_before(rows["id"], late)
        rows["batch"] = self.n_batches
        self.given = np.append(self.given, rows["id"][new])
        drifted = self._look_at(table, rows, new)
        self.pending = np.concatenate([self.pending, rows[new]])
        n_late = int(late.sum())
        return self._updated(drifted, name, len(rows), n_late, len(rows) - int(new.sum()) - n_late)

    def label(self, ids: NDArray[np.uint64], y: NDArray[np.intp], name: str | None) -> Update:
        """Take labels of rows that wait for them."""
        self.n_batches += 1
        n_late = int(self._label(ids, y).sum())
        return self._updated([], name, len(ids), n_late, len(ids) - n_late)

    def _label(self, ids: NDArray[np.uint64], y: NDArray[Any]) -> NDArray[np.bool_]:
        """Give rows that wait their labels; return which of the labels were waited for."""
        waiting = np.flatnonzero(self.pending["label"] == UNKNOWN)
        place = match(self.pending["id"][waiting], ids)
        late = (place >= 0) & (y != UNKNOWN)
        self.pending["label"][waiting[place[late]]] = y[late]
        return late

    def _given_before(self, ids: NDArray[np.uint64], late: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows that were given before."""
        if self.by_id:
            return pd.Series(ids).duplicated().to_numpy() | np.isin(ids, self.given)
        rest, again = np.flatnonzero(~late), np.zeros(len(ids), bool)
        counts = np.unique(ids[rest], return_counts=True)[1].astype(np.float64)
        self.pairs += (counts * (counts - 1) / 2).sum(), len(rest) * (len(rest) - 1) / 2
        again[rest] = np.isin(ids[rest], self.given)
        by_chance = len(rest) * len(self.given) * (self.pairs[0] + 1) / max(self.pairs[1], 1.0)
        # Otherwise the values do not tell rows apart, and rows left out would be a selection.
        return again if poisson.sf(again.sum() - 1, _BY_CHANCE * by_chance) <= _RARE else np.zeros(len(ids), bool)

    def _updated(self, drifted: list[Notice], name: str | None, n_rows: int, n_late: int, n_repeated: int) -> Update:
        notices, n_labelled, n_left_out = [], 0, 0
        for rows in self._complete():
            more, n_counted = self._judge(in_hash_order(rows))
            notices += more
            n_labelled += int((rows["label"] != UNKNOWN).sum())
            n_left_out += len(rows) - n_counted
        notices += drifted
        self.notices += notices
        n_waiting = int((self.pending["label"] == UNKNOWN).sum())
        n_held = len(self.pending) - n_waiting
        counts = (n_rows, n_labelled, n_late, n_repeated, n_waiting, n_held, n_left_out)
        return Update(self.n_batches, name or "", *counts, notices)

    def _complete(self) -> list[NDArray[np.void]]:
        """Take out rows of batches that have their labels, batch by batch; without a share, rows that have theirs."""
        known, batch = self.pending["label"] != UNKNOWN, self.pending["batch"]
        if self.settings.min_labelled:
            numbers, place = np.unique(batch, return_inverse=True)
            share = np.bincount(place, known) / np.maximum(np.bincount(place), 1)
            ready = (share >= self.settings.min_labelled)[place] if len(numbers) else known
        else:
            ready = known
        rows, self.pending = self.pending[ready], self.pending[~ready]
        return [rows[rows["batch"] == number] for number in np.unique(rows["batch"])]

    def _look_at(self, table: pd.DataFrame, rows: NDArray[np.void], new: NDArray[np.bool_]) -> list[Notice]:
        """Compare new rows with the reference; without one, the first rows become it."""
        new = new & self._first_of_person(rows) if self.has_persons else new
        if not new.any():
            return []
        asked, group = table[new], rows["group"][new].astype(np.intp)
        if self.drift is None:
            reference = Reference.of(asked, group, self.evidence.n_groups, divides_all=self.divides_all)
            self.drift = InputDrift(reference, self.settings.level, self.settings.drift_margin)
            return []
        found = self.drift.add(asked, group)
        return [Notice("drift", None, sentence, None, self.drift.n_rows, self.n_batches) for sentence in found]

    def _judge(self, rows: NDArray[np.void]) -> tuple[list[Notice], int]:
        """Count the rows of a batch as evidence; return what they show, and how many count."""
        if self.has_persons:
            first = self._first_of_person(rows)
            self.persons = np.union1d(self.persons, rows["person"])
            rows = rows[first]
        label, known = rows["label"], rows["label"] != UNKNOWN
        wrong = np.where(known, rows["used"] != label, np.nan)
        positive = np.where(known, label == 1, np.nan) if self.n_classes == 2 else np.full(len(rows), np.nan)
        used = UsedRows(rows["group"].astype(np.intp), wrong, positive, rows["probability"])
        shown = self.levels.add(used)
        # The pooled classifier serves rows of no group anyway.
        grouped = rows["group"] < self.evidence.n_groups
        rows, known = rows[grouped], known[grouped]
        sides = [self._judged(rows, rows[side]) for side in ("own", "pooled")] if not known.all() else []
        notices = self.evidence.add(self._judged(rows[known], rows["label"][known]), *sides, batch=self.n_batches)
        notices += [Notice("level", None, text, None, self.levels.n_rows, self.n_batches) for text in shown]
        if self.evidence.shows_shocks():
            notices.append(Notice("shock", None, "", None, self.evidence.n_rows, self.n_batches))
        return notices, len(rows)

    def _judged(self, rows: NDArray[np.void], fill: NDArray[np.integer]) -> JudgedRows:
        """Who is right by the labels, or by others where they are missing."""
        label = np.where(rows["label"] == UNKNOWN, fill, rows["label"])
        positive = label == 1 if self.n_classes == 2 else None
        wrong = rows["own"] != label, rows["pooled"] != label
        return JudgedRows(rows["group"].astype(np.intp), *wrong, positive, rows["parts"], rows["weight"])

    def _first_of_person(self, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        """Rows that are the first of their person, here and so far."""
        return ~(np.isin(rows["person"], self.persons) | pd.Series(rows["person"]).duplicated().to_numpy())

    # ---- as plain values and arrays ----

    def to_state(self, watched: NDArray[np.intp]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known, as plain values and as arrays."""
        values = PlainState(
            self.settings,
            self.parts.attributes,
            self.has_persons,
            self.by_id,
            None if self.drift is None else self.drift.reference,
            tuple(watched.tolist()),
        )
        return dict(plain(asdict(values))), _arrays_of(self, "ledger")

    def restore(
        self, state: PlainState, arrays: Mapping[str, NDArray[Any]], said: list[Notice], service: list[ServiceChange]
    ) -> None:
        """Take what `to_state` gave, with all that was said before."""
        _restore(self, "ledger", arrays)
        self.has_persons, self.by_id = state.has_persons, state.by_id
        self.notices, self.service = said, service


_Books = Ledger | Evidence | Levels | InputDrift | Bettors


def _arrays_of(books: _Books, name: str) -> dict[str, NDArray[Any]]:
    """All arrays and counts of an object, and of those that it keeps."""
    arrays: dict[str, NDArray[Any]] = {}
    for key, value in vars(books).items():
        if isinstance(value, np.ndarray) or type(value) is int:
            arrays[f"{name}.{key}"] = np.asarray(value)
        elif isinstance(value, _Books):
            arrays |= _arrays_of(value, f"{name}.{key}")
    return arrays


def _restore(books: _Books, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Take what `_arrays_of` gave."""
    for key, value in vars(books).items():
        if isinstance(value, np.ndarray):
            setattr(books, key, arrays[f"{name}.{key}"])
        elif type(value) is int:
            setattr(books, key, int(arrays[f"{name}.{key}"]))
        elif isinstance(value, _Books):
            _restore(value, f"{name}.{key}", arrays)
