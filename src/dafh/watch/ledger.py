"""The books of a monitor: rows that have counted, rows that wait for labels, and all that was shown so far.

It knows decisions, not the model that made them, so that it can be kept in a file.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import check_losses
from dafh.tables.column import Column
from dafh.text import plain
from dafh.watch.declared import DeclaredParts, Settings
from dafh.watch.evidence import Evidence, Found, JudgedRows
from dafh.watch.inputs import InputDrift, Reference
from dafh.watch.notices import Notice, ServiceChange, Update


def decided_rows(n_attributes: int) -> np.dtype[np.void]:
    """What was decided about a row, and what else its label will be counted with.

    ``own`` and ``pooled`` are labels as positions among the classes; ``person`` is 0 where every row is a person of its
    own.
    """
    return np.dtype(
        [
            ("id", np.uint64),
            ("person", np.uint64),
            ("group", np.int32),
            ("own", np.int16),
            ("pooled", np.int16),
            ("parts", np.int16, (n_attributes,)),
            ("weight", np.float64),
        ]
    )


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
    n_classes: int
    divides_all: bool
    n_batches: int
    has_persons: bool | None
    reference: Reference | None
    watched: tuple[int, ...]


class Ledger:
    """Counts decided rows.

    Parameters
    ----------
    settings : Settings
    parts : DeclaredParts
    serving : array of shape (K,)
        Groups whose watched classifier is in service.
    n_classes : int
    reference : Reference, optional
        Without it, the first rows take its place.
    divides_all : bool
        Whether every row belongs to a group.
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
    ) -> None:
        self.settings, self.parts, self.n_classes = settings, parts, n_classes
        self.divides_all = divides_all
        losses, weighted = check_losses(settings.losses, settings.costs), settings.largest_weight is not None
        self.evidence = Evidence(
            len(serving), parts.names, losses, settings.level, settings.run_length, weighted, serving
        )
        self.drift: InputDrift | None = None
        if reference is not None:
            self.drift = InputDrift(reference, settings.level, settings.drift_margin)
        self.pending = np.zeros(0, decided_rows(len(parts.attributes)))
        self.known_ids, self.persons = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.has_persons: bool | None = None
        self.n_batches = 0
        self.notices: list[Notice] = []
        self.service: list[ServiceChange] = []

    # ---- rows ----

    def take(
        self,
        table: pd.DataFrame,
        rows: NDArray[np.void],
        y: NDArray[np.intp],
        labelled: NDArray[np.bool_],
        name: str | None,
        *,
        by_id: bool,
    ) -> Update:
        """Count rows whose decisions are known, in their order.

        Parameters
        ----------
        table : data frame
            The rows as they came, for drift.
        rows : array of `decided_rows`
            Changed where labels are late.
        y, labelled : arrays of shape (n,)
            Positions of classes, and where they are known.
        name : str, optional
            Of the batch.
        by_id : bool
            Whether ids are identifiers, of which each stands for one row; otherwise they are hashes of values.
        """
        waits = match(self.pending["id"], rows["id"])
        late = (waits >= 0) & labelled
        repeated = np.zeros(len(rows), bool)
        if by_id:
            again = pd.Series(rows["id"]).duplicated().to_numpy()
            repeated = (again | (waits >= 0) | np.isin(rows["id"], self.known_ids)) & ~late
            self.known_ids = np.union1d(self.known_ids, rows["id"][labelled])
        # What was decided then, by the classifiers of then; the values are the same.
        rows[late] = self.pending[waits[late]]
        new = ~repeated & ~late
        drifted = self._look_at(table, rows, new)
        self.pending = np.concatenate([np.delete(self.pending, waits[late]), rows[new & ~labelled]])
        counted = labelled & ~repeated
        counts = {"n_rows": len(rows), "n_late": int(late.sum()), "n_repeated": int(repeated.sum())}
        return self._updated(rows[counted], y[counted], drifted, name, **counts)

    def label(self, ids: NDArray[np.uint64], y: NDArray[np.intp], known: NDArray[np.bool_], name: str | None) -> Update:
        """Count labels of rows that wait for them."""
        waits = match(self.pending["id"], ids)
        found = (waits >= 0) & known
        rows, n_late = self.pending[waits[found]], int(found.sum())
        self.pending = np.delete(self.pending, waits[found])
        self.known_ids = np.union1d(self.known_ids, ids[found])
        return self._updated(rows, y[found], [], name, n_rows=len(ids), n_late=n_late, n_repeated=len(ids) - n_late)

    def _updated(
        self, rows: NDArray[np.void], y: NDArray[np.intp], drifted: list[Notice], name: str | None, **counts: int
    ) -> Update:
        self.n_batches += 1
        found, n_evidence = self._judge(rows, y)
        notices = [*self._noticed(found), *drifted]
        self.notices += notices
        return Update(
            self.n_batches,
            name or "",
            n_labelled=len(rows),
            n_waiting=len(self.pending),
            n_left_out=len(rows) - n_evidence,
            notices=notices,
            **counts,
        )

    def _look_at(self, table: pd.DataFrame, rows: NDArray[np.void], new: NDArray[np.bool_]) -> list[Notice]:
        """Compare new rows with the reference; without one, the first rows become it."""
        new = new & self._first_of_person(rows) if self.has_persons else new
        if not new.any():
            return []
        some, group = table[new], rows["group"][new].astype(np.intp)
        if self.drift is None:
            reference = Reference.of(some, group, self.evidence.n_groups, divides_all=self.divides_all)
            self.drift = InputDrift(reference, self.settings.level, self.settings.drift_margin)
            return []
        found = self.drift.add(some, group)
        return [Notice("drift", None, sentence, None, self.drift.n_rows, self.n_batches + 1) for sentence in found]

    def _judge(self, rows: NDArray[np.void], y: NDArray[np.intp]) -> tuple[Found, int]:
        """Count labelled rows as evidence; return what they show, and how many count."""
        counts = rows["group"] < self.evidence.n_groups  # The pooled classifier serves rows of no group anyway.
        if self.has_persons:
            counts &= self._first_of_person(rows)
            self.persons = np.union1d(self.persons, rows["person"])
        rows, y = rows[counts], y[counts]
        positive = y == 1 if self.n_classes == 2 else None
        wrong = rows["own"] != y, rows["pooled"] != y
        judged = JudgedRows(rows["group"].astype(np.intp), *wrong, positive, rows["parts"], rows["weight"])
        return self.evidence.add(judged), len(judged)

    def _first_of_person(self, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        """Rows that are the first of their person, here and so far."""
        return ~(np.isin(rows["person"], self.persons) | pd.Series(rows["person"]).duplicated().to_numpy())

    def _noticed(self, found: Found) -> list[Notice]:
        new: list[Notice] = []
        table = self.evidence.table()
        for kind, raised in (("harm", found.alarms), ("change", found.warnings)):
            for one in sorted(raised, key=lambda one: one.row):
                line = table.iloc[one.place]
                about = (int(line["group"]), str(line["part"]), line["loss"], one.row, self.n_batches)
                # Rows after the alarm may have moved the estimate beyond it.
                onset = min(int(self.evidence.onset[one.place]), one.row)
                new.append(Notice(kind, *about, onset, float(line["gain"])))  # type: ignore[arg-type]
        for one in found.proofs:
            served = bool(self.evidence.serving[one.place])
            new.append(Notice("benefit", one.place, "", None, one.row, self.n_batches, in_service=served))
        return new

    # ---- as plain values and arrays ----

    def to_state(self, watched: NDArray[np.intp]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known, as plain values and as arrays."""
        values = PlainState(
            self.settings,
            self.parts.attributes,
            self.n_classes,
            self.divides_all,
            self.n_batches,
            self.has_persons,
            None if self.drift is None else self.drift.reference,
            tuple(watched.tolist()),
        )
        arrays = self.evidence.arrays() | {"known_ids": self.known_ids, "persons": self.persons}
        arrays |= {f"pending_{name}": self.pending[name] for name in self.pending.dtype.names or ()}
        if self.drift is not None:
            counted = np.array(self.drift.n_rows)
            arrays |= {"drift_hits": self.drift.hits, "drift_rows": self.drift.drifted, "drift_seen": counted}
        return dict(plain(asdict(values))), arrays

    @classmethod
    def from_state(
        cls,
        state: PlainState,
        arrays: Mapping[str, NDArray[Any]],
        notices: list[Notice],
        service: list[ServiceChange],
    ) -> Self:
        """Take what `to_state` gave, with all that was said before."""
        about = (state.settings, DeclaredParts(state.parts), arrays["serving"], state.n_classes, state.reference)
        ledger = cls(*about, divides_all=state.divides_all)
        ledger.evidence.restore(arrays)
        ledger.pending = np.zeros(len(arrays["pending_id"]), ledger.pending.dtype)
        for name in ledger.pending.dtype.names or ():
            ledger.pending[name] = arrays[f"pending_{name}"]
        ledger.known_ids, ledger.persons = arrays["known_ids"], arrays["persons"]
        ledger.n_batches, ledger.has_persons = state.n_batches, state.has_persons
        if ledger.drift is not None:
            ledger.drift.hits, ledger.drift.drifted = arrays["drift_hits"], arrays["drift_rows"]
            ledger.drift.n_rows = int(arrays["drift_seen"])
        ledger.notices, ledger.service = notices, service
        return ledger
