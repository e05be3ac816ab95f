"""The books of a monitor: rows that have counted, rows that wait for labels, and all that was shown so far.

It knows decisions, not the model that made them, so that it can be kept in a file.
"""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.watch.bets import JudgedRows
from dafh.watch.declared import DeclaredParts
from dafh.watch.evidence import Evidence, Found
from dafh.watch.inputs import InputDrift, Reference
from dafh.watch.notices import Notice, ServiceChange, Update
from dafh.watch.pending import DecidedRows, match
from dafh.watch.settings import Settings
from dafh.watch.stored import check_arrays, check_codes


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
        reference: Reference | None = None,
        *,
        divides_all: bool = True,
    ) -> None:
        self.settings, self.parts, self.n_classes = settings, parts, n_classes
        self.divides_all = divides_all
        weighted = settings.largest_weight is not None
        self.evidence = Evidence(
            len(serving), parts.names, settings.losses, settings.level, settings.run_length, weighted, serving
        )
        self.drift: InputDrift | None = None
        if reference is not None:
            self.drift = InputDrift(reference, settings.level, settings.drift_margin)
        self.pending = DecidedRows.none(len(parts.attributes))
        self.known_ids, self.persons = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.has_persons: bool | None = None
        self.n_batches = 0
        self.notices: list[Notice] = []
        self.service: list[ServiceChange] = []

    # ---- rows ----

    def take(
        self,
        table: pd.DataFrame,
        rows: DecidedRows,
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
        rows : DecidedRows
        y, labelled : arrays of shape (n,)
            Positions of classes, and where they are known.
        name : str, optional
            Of the batch.
        by_id : bool
            Whether ids are identifiers, of which each stands for one row; otherwise they are hashes of values.
        """
        waits = match(self.pending.id, rows.id)
        late = np.flatnonzero((waits >= 0) & labelled)
        repeated = np.zeros(len(rows), bool)
        if by_id:
            again = pd.Series(rows.id).duplicated().to_numpy()
            repeated = again | (waits >= 0) | np.isin(rows.id, self.known_ids)
            repeated[late] = False
            self.known_ids = np.union1d(self.known_ids, rows.id[labelled])
        new = ~repeated
        new[late] = False
        if len(late):
            # What was decided then, by the classifiers of then; the values are the same.
            rows = rows.replaced(late, self.pending.take(waits[late]))
            self.pending = self.pending.without(waits[late])
        drifted = self._look_at(table, rows, new)
        counted = np.flatnonzero(labelled & ~repeated)
        self.pending = self.pending.and_more(rows.take(new & ~labelled))
        n_rows = len(rows)
        if len(counted) < n_rows:
            rows, y = rows.take(counted), y[counted]
        return self._updated(rows, y, drifted, name, n_rows, len(late), int(repeated.sum()))

    def label(self, ids: NDArray[np.uint64], y: NDArray[np.intp], known: NDArray[np.bool_], name: str | None) -> Update:
        """Count labels of rows that wait for them."""
        waits = match(self.pending.id, ids)
        places = np.flatnonzero((waits >= 0) & known)
        rows = self.pending.take(waits[places])
        self.pending = self.pending.without(waits[places])
        self.known_ids = np.union1d(self.known_ids, ids[places])
        return self._updated(rows, y[places], [], name, len(ids), len(places), len(ids) - len(places))

    def _updated(
        self,
        rows: DecidedRows,
        y: NDArray[np.intp],
        drifted: list[Notice],
        name: str | None,
        n_rows: int,
        n_late: int,
        n_repeated: int,
    ) -> Update:
        self.n_batches += 1
        found, n_evidence = self._judge(rows, y)
        notices = [*self._noticed(found), *drifted]
        self.notices += notices
        left_out, waiting = len(rows) - n_evidence, len(self.pending)
        counts = (n_rows, len(rows), n_late, n_repeated, waiting, left_out)
        return Update(self.n_batches, name or "", *counts, notices)

    def _look_at(self, table: pd.DataFrame, rows: DecidedRows, new: NDArray[np.bool_]) -> list[Notice]:
        """Compare new rows with the reference; without one, the first rows become it."""
        new = new & self._first_of_person(rows) if self.has_persons else new
        if not new.any():
            return []
        group = rows.group.astype(np.intp)
        some, group = (table, group) if new.all() else (table[new], group[new])
        if self.drift is None:
            reference = Reference.of(some, group, self.evidence.n_groups, divides_all=self.divides_all)
            self.drift = InputDrift(reference, self.settings.level, self.settings.drift_margin)
            return []
        found = self.drift.add(some, group)
        return [Notice("drift", None, one.sentence(), None, one.row, self.n_batches + 1) for one in found]

    def _judge(self, rows: DecidedRows, y: NDArray[np.intp]) -> tuple[Found, int]:
        """Count labelled rows as evidence; return what they show, and how many count."""
        counts = rows.group < self.evidence.n_groups  # The pooled classifier serves rows of no group anyway.
        if self.has_persons:
            counts &= self._first_of_person(rows)
            self.persons = np.union1d(self.persons, rows.person)
        positive = y == 1 if self.n_classes == 2 else None
        judged = JudgedRows(
            rows.group.astype(np.intp), rows.own != y, rows.pooled != y, positive, rows.parts, rows.weight
        )
        if not counts.all():
            judged = judged.take(np.flatnonzero(counts))
        return self.evidence.add(judged), len(judged)

    def _first_of_person(self, rows: DecidedRows) -> NDArray[np.bool_]:
        """Rows that are the first of their person, here and so far."""
        return ~(np.isin(rows.person, self.persons) | pd.Series(rows.person).duplicated().to_numpy())

    def _noticed(self, found: Found) -> list[Notice]:
        new: list[Notice] = []
        table = self.evidence.table() if found.alarms or found.warnings else None
        for kind, raised in (("harm", found.alarms), ("change", found.warnings)):
            for one in sorted(raised, key=lambda one: one.row):
                assert table is not None
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

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known, as plain values and as arrays."""
        values = {
            "settings": self.settings.to_dict(),
            "parts": self.parts.to_list(),
            "n_classes": self.n_classes,
            "divides_all": self.divides_all,
            "n_batches": self.n_batches,
            "has_persons": self.has_persons,
            "reference": None if self.drift is None else self.drift.reference.to_dict(),
        }
        arrays = {**self.evidence.arrays(), **self.pending.arrays()}
        arrays |= {"known_ids": self.known_ids, "persons": self.persons}
        if self.drift is not None:
            counted = np.array(self.drift.n_rows)
            arrays |= {"drift_hits": self.drift.hits, "drift_rows": self.drift.drifted, "drift_seen": counted}
        return values, arrays

    @classmethod
    def from_state(
        cls,
        values: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        notices: list[Notice],
        service: list[ServiceChange],
    ) -> Self:
        """Take what `to_state` gave, with all that was said before."""
        reference = None if values["reference"] is None else Reference.from_dict(values["reference"])
        parts = DeclaredParts.from_list(values["parts"])
        settings = Settings.from_dict(values["settings"])
        # Before room is made for so many questions.
        if len(arrays["counts"]) != len(arrays["serving"]) * len(parts.names) * len(settings.losses):
            raise ValueError("it has other questions than arrays")
        about = (settings, parts, arrays["serving"], int(values["n_classes"]), reference)
        ledger = cls(*about, divides_all=bool(values["divides_all"]))
        check_arrays(arrays, ledger.to_state()[1])
        check_codes(arrays, len(arrays["serving"]), ledger.n_classes, len(parts.names))
        ledger.evidence.restore(arrays)
        ledger.pending = DecidedRows.restored(arrays)
        ledger.known_ids, ledger.persons = arrays["known_ids"], arrays["persons"]
        ledger.n_batches, ledger.has_persons = int(values["n_batches"]), values["has_persons"]
        if ledger.drift is not None:
            ledger.drift.hits, ledger.drift.drifted = arrays["drift_hits"], arrays["drift_rows"]
            ledger.drift.n_rows = int(arrays["drift_seen"])
        ledger.notices, ledger.service = notices, service
        return ledger
