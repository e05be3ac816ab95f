"""The books of a monitor: rows that wait for labels, rows that have counted, and all that was shown so far.

It knows decisions, not the model that made them, so that it can be stored in a file. What a file may look like must not
matter:

- *Order.* The rows of a batch are put into an order that depends on nothing but their values, by a hash: rows sorted by
  their label would be a long losing streak.
- *Labels.* A batch counts, once, when nearly all its rows have labels (`min_labelled`). If labels come sooner for one
  class, the first ones are a selection. Those still missing are taken to be best for the own classifier where harm is
  to be shown, and worst where benefit is.
- *Repeated rows.* Rows with an identifier are told by it, others by their values, if these tell rows apart: if far
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
from dafh.monitor.evidence import Evidence, JudgedRows
from dafh.monitor.inputs import InputDrift, Reference
from dafh.monitor.levels import Levels, UsedRows
from dafh.monitor.notices import Notice, ServiceChange, Update
from dafh.monitor.settings import DeclaredSubgroups, MonitorSettings
from dafh.stats import Bettors
from dafh.text import plain

UNKNOWN = -1
"""Label of a row that has none yet."""
# Equal values are repeated rows if there are more than twice as many as by chance, but for once in 10,000 files.
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
            ("subgroups", np.int16, (n_attributes,)),
            ("weight", np.float64),
            ("probability", np.float64),
        ]
    )


def _in_hash_order(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Rows in an order that has nothing to do with their order in a file, nor with their labels."""
    # First an order that is the same however the file was sorted, then one drawn with a seed from the content.
    rows = rows[np.lexsort((rows["label"], rows["id"]))]
    seed = int(np.add.reduce(mixed(rows["id"])))
    return np.asarray(rows[np.random.default_rng(seed).permutation(len(rows))])


def match(waiting: NDArray[np.uint64], ids: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Position of each id among those that wait, −1 for none; where an id occurs several times, each is matched once.

    Examples
    --------
    >>> match(np.array([5, 7, 7], np.uint64), np.array([7, 9, 7, 7], np.uint64))
    array([ 1, -1,  2, -1])
    """
    if not len(waiting):
        return np.full(len(ids), -1, np.intp)
    # Equal ids are told apart by how many stand before each.
    index, target = (
        pd.MultiIndex.from_arrays([values, pd.Series(values).groupby(values).cumcount()]) for values in (waiting, ids)
    )
    return np.asarray(index.get_indexer(target), np.intp)


@dataclass(frozen=True)
class PlainState:
    """What a monitor knows, but for arrays."""

    settings: MonitorSettings
    attributes: tuple[Column, ...]
    has_persons: bool | None
    has_ids: bool | None
    reference: Reference | None
    watched: tuple[int, ...]
    notices: list[Notice]
    service: list[ServiceChange]


class Ledger:
    """Counts decided rows.

    Parameters
    ----------
    settings : MonitorSettings
    subgroups : DeclaredSubgroups
    serving : array of shape (K,)
        Groups whose watched classifier is in service.
    n_classes : int
    reference : Reference or None
        The first batch replaces one that is missing, and so it does with `reference_errors`.
    divides_all : bool
        Whether every row belongs to a group.
    reference_errors : pair of arrays
        Labelled reference rows, and those on which the model was wrong, as `Levels` takes them.
    """

    def __init__(
        self,
        settings: MonitorSettings,
        subgroups: DeclaredSubgroups,
        serving: NDArray[np.bool_],
        n_classes: int,
        reference: Reference | None,
        *,
        divides_all: bool,
        reference_errors: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        self.settings, self.subgroups = settings, subgroups
        self.n_classes, self.divides_all = n_classes, divides_all
        losses, weighted = check_losses(settings.losses, settings.costs), settings.largest_weight is not None
        # What labelled rows are evidence of, and what all rows are.
        shared = settings.level, weighted, serving, settings.by_batch
        self.evidence = Evidence(len(serving), subgroups.names, losses, *shared)
        self.levels = Levels(settings.level, settings.level_margin, settings.by_batch, *reference_errors)
        self.drift = None if reference is None else InputDrift(reference, settings.level, settings.drift_margin)
        # Rows that have not counted yet, identifiers of all rows, and persons of those that have counted.
        self.pending = np.zeros(0, decided_rows(len(subgroups.attributes)))
        self.ids, self.persons = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        # Pairs of rows of the same file with the same values, and all pairs: how often that happens by chance.
        self.pairs = np.zeros(2)
        # Whether rows come with identifiers of persons, and of their own; None before the first.
        self.has_persons: bool | None = None
        self.has_ids: bool | None = None
        self.n_batches = 0
        self.notices: list[Notice] = []
        self.service: list[ServiceChange] = []

    def start_anew(self, empty: "Ledger") -> "Ledger":
        """Go on with the empty books of another model: earlier rows are no evidence about this one."""
        for name in ("ids", "persons", "pairs", "has_persons", "has_ids", "n_batches", "service"):
            setattr(empty, name, getattr(self, name))
        empty.evidence.n_rows = empty.levels.n_rows = self.evidence.n_rows
        empty.notices = [*self.notices, Notice("model", None, "", None, self.evidence.n_rows, self.n_batches + 1)]
        return empty

    # ---- rows ----

    def take(self, table: pd.DataFrame, rows: NDArray[np.void], name: str | None) -> Update:
        """Count rows whose decisions are known, labelled or not; `table` has them as they came, for drift."""
        self.n_batches += 1
        late = self._label(rows["id"], rows["label"])
        new = ~late & ~self._repeated(rows["id"], late)
        rows["batch"] = self.n_batches
        # Rows wait with their decisions: what counts is the decision of the time when a row first came.
        self.ids = np.append(self.ids, rows["id"][new])
        drift = self._compare_with_reference(table, rows, new)
        self.pending = np.concatenate([self.pending, rows[new]])
        n_late = int(late.sum())
        return self._count(drift, name, len(rows), n_late, len(rows) - int(new.sum()) - n_late)

    def label(self, ids: NDArray[np.uint64], y: NDArray[np.intp], name: str | None) -> Update:
        """Take labels of rows that wait for them."""
        self.n_batches += 1
        n_late = int(self._label(ids, y).sum())
        return self._count([], name, len(ids), n_late, len(ids) - n_late)

    def _label(self, ids: NDArray[np.uint64], y: NDArray[Any]) -> NDArray[np.bool_]:
        """Give rows that wait their labels; return which of the labels were waited for."""
        waiting = np.flatnonzero(self.pending["label"] == UNKNOWN)
        position = match(self.pending["id"][waiting], ids)
        late = (position >= 0) & (y != UNKNOWN)
        self.pending["label"][waiting[position[late]]] = y[late]
        return late

    def _repeated(self, ids: NDArray[np.uint64], late: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows that were in an earlier file."""
        if self.has_ids:
            return pd.Series(ids).duplicated().to_numpy() | np.isin(ids, self.ids)
        fresh = np.flatnonzero(~late)
        counts = np.unique(ids[fresh], return_counts=True)[1].astype(np.float64)
        self.pairs += (counts * (counts - 1) / 2).sum(), len(fresh) * (len(fresh) - 1) / 2
        repeated = ~late & np.isin(ids, self.ids)
        by_chance = len(fresh) * len(self.ids) * (self.pairs[0] + 1) / max(self.pairs[1], 1.0)
        # Where values do not tell rows apart, rows that are left out for them would be a selection.
        tells_apart = poisson.sf(repeated.sum() - 1, _BY_CHANCE * by_chance) <= _RARE
        return repeated if tells_apart else np.zeros(len(ids), bool)

    def _count(self, drift: list[Notice], name: str | None, n_rows: int, n_late: int, n_repeated: int) -> Update:
        """Count the batches that now have their labels, and say what has changed."""
        notices, n_labelled, n_left_out = [], 0, 0
        for rows in self._complete():
            notices_of_batch, n_counted = self._judge(_in_hash_order(rows))
            notices += notices_of_batch
            n_labelled += int((rows["label"] != UNKNOWN).sum())
            n_left_out += len(rows) - n_counted
        notices += drift
        self.notices += notices
        n_waiting = int((self.pending["label"] == UNKNOWN).sum())
        counts = n_rows, n_labelled, n_late, n_repeated, n_waiting, len(self.pending) - n_waiting, n_left_out
        return Update(self.n_batches, name or "", *counts, notices)

    def _complete(self) -> list[NDArray[np.void]]:
        """Take out rows of batches that have their labels, batch by batch; without a share, rows that have theirs."""
        ready = self.pending["label"] != UNKNOWN
        if self.settings.min_labelled:
            labelled = pd.Series(ready).groupby(self.pending["batch"]).transform("mean")
            ready = (labelled >= self.settings.min_labelled).to_numpy()
        rows, self.pending = self.pending[ready], self.pending[~ready]
        return [rows[rows["batch"] == number] for number in np.unique(rows["batch"])]

    def _compare_with_reference(
        self, table: pd.DataFrame, rows: NDArray[np.void], new: NDArray[np.bool_]
    ) -> list[Notice]:
        """Say what new rows show about drift; without a reference, the first rows become it."""
        new = new & self._first_of_person(rows) if self.has_persons else new
        if not new.any():
            return []
        X, group = table[new], rows["group"][new].astype(np.intp)
        if self.drift is None:
            reference = Reference.of(X, group, self.evidence.n_groups, divides_all=self.divides_all)
            self.drift = InputDrift(reference, self.settings.level, self.settings.drift_margin)
            return []
        sentences = self.drift.add(X, group)
        return [Notice("drift", None, text, None, self.drift.n_rows, self.n_batches) for text in sentences]

    def _judge(self, rows: NDArray[np.void]) -> tuple[list[Notice], int]:
        """Count the rows of a batch as evidence; return what they show, and how many count."""
        if self.has_persons:
            first = self._first_of_person(rows)
            self.persons = np.union1d(self.persons, rows["person"])
            rows = rows[first]
        # Levels are about all rows, whoever serves them.
        labelled = rows["label"] != UNKNOWN
        wrong = np.where(labelled, rows["used"] != rows["label"], np.nan)
        positive = np.where(labelled & (self.n_classes == 2), rows["label"] == 1, np.nan)
        used = UsedRows(rows["group"].astype(np.intp), wrong, positive, rows["probability"])
        sentences = self.levels.add(used)
        # The pooled classifier serves rows of no group anyway: no own classifier can harm them.
        grouped = rows["group"] < self.evidence.n_groups
        rows, labelled = rows[grouped], labelled[grouped]
        # With own labels the own classifier is right wherever the label is missing, with pooled ones the pooled one.
        sides = [] if labelled.all() else [self._judged(rows, rows[name]) for name in ("own", "pooled")]
        notices = self.evidence.add(self._judged(rows[labelled]), *sides, batch=self.n_batches)
        notices += [Notice("level", None, text, None, self.levels.n_rows, self.n_batches) for text in sentences]
        if self.evidence.shows_shocks():
            notices.append(Notice("shock", None, "", None, self.evidence.n_rows, self.n_batches))
        return notices, len(rows)

    def _judged(self, rows: NDArray[np.void], instead: NDArray[np.integer] | None = None) -> JudgedRows:
        """Who is right by the labels, or by others where labels are missing."""
        label = rows["label"] if instead is None else np.where(rows["label"] == UNKNOWN, instead, rows["label"])
        positive = label == 1 if self.n_classes == 2 else None
        wrong = rows["own"] != label, rows["pooled"] != label
        return JudgedRows(rows["group"].astype(np.intp), *wrong, positive, rows["subgroups"], rows["weight"])

    def _first_of_person(self, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        """Rows that are the first of their person, here and so far."""
        return ~(np.isin(rows["person"], self.persons) | pd.Series(rows["person"]).duplicated().to_numpy())

    # ---- as plain values and arrays ----

    def to_state(self, watched: NDArray[np.intp]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known, as plain values and as arrays."""
        state = PlainState(
            self.settings,
            self.subgroups.attributes,
            self.has_persons,
            self.has_ids,
            None if self.drift is None else self.drift.reference,
            tuple(watched.tolist()),
            self.notices,
            self.service,
        )
        return dict(plain(asdict(state))), _arrays_of(self, "ledger")

    def restore(self, state: PlainState, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what `to_state` gave."""
        _restore_arrays(self, "ledger", arrays)
        self.has_persons, self.has_ids = state.has_persons, state.has_ids
        self.notices, self.service = state.notices, state.service


_Books = Ledger | Evidence | Levels | InputDrift | Bettors


def _arrays_of(books: _Books, name: str) -> dict[str, NDArray[Any]]:
    """All arrays and counts of an object, and of the books in it."""
    arrays: dict[str, NDArray[Any]] = {}
    for key, value in vars(books).items():
        if isinstance(value, np.ndarray) or type(value) is int:
            arrays[f"{name}.{key}"] = np.asarray(value)
        elif isinstance(value, _Books):
            arrays |= _arrays_of(value, f"{name}.{key}")
    return arrays


def _restore_arrays(books: _Books, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Take what `_arrays_of` gave."""
    for key, value in vars(books).items():
        if isinstance(value, np.ndarray):
            setattr(books, key, arrays[f"{name}.{key}"])
        elif type(value) is int:
            setattr(books, key, int(arrays[f"{name}.{key}"]))
        elif isinstance(value, _Books):
            _restore_arrays(value, f"{name}.{key}", arrays)
