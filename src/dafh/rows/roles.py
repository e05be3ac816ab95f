"""What the columns of a table of training rows are for, and rows in an order that depends on their values alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.sampling import Keys, random_places
from dafh.checks.rows import absolute_times
from dafh.exceptions import InputError
from dafh.rows.checked import CheckedRows
from dafh.tables.bins import named_table
from dafh.tables.hashes import mixed, row_hashes, value_hashes
from dafh.tables.schema import check_columns

LABEL, WEIGHT, PERSON, TIME, DECLARED = (f"\0{name}" for name in ("label", "weight", "person", "time", "declared"))
"""Names for columns with a role, which no column of a file has."""


@dataclass(frozen=True)
class Roles:
    """Names of columns: the target, what is known about a row beside its features, and the features."""

    label: str
    weight: str | None = None
    person: str | None = None
    time: str | None = None
    declared: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are known about rows, beside features and target."""
        return tuple(name for name in (self.weight, self.person, self.time, *self.declared) if name is not None)

    def of_table(self, columns: Sequence[str]) -> "Roles":
        """Check the names, and take all columns without a role for features."""
        check_columns(columns, [self.label], "the target")
        check_columns(columns, self.others)
        features = tuple(name for name in columns if name not in (self.label, *self.others))
        if not features:
            raise InputError("No column is left to learn from: all have another role.")
        return Roles(self.label, self.weight, self.person, self.time, self.declared, features)

    def keys(self, table: pd.DataFrame) -> Keys:
        """By what rows are drawn: features and target, or the person, whose rows stay together; and their time."""
        if self.person is not None:
            hashes = mixed(value_hashes(table[self.person]))
        else:
            # The target under one name, however a file calls it.
            hashes = row_hashes(table[[*self.features, self.label]].rename(columns={self.label: LABEL}))
        return Keys(hashes, random_places(hashes) if self.time is None else absolute_times(table[self.time]))

    def weights(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Weight of each row."""
        return np.ones(len(table)) if self.weight is None else table[self.weight].to_numpy(np.float64)

    def known(self, table: pd.DataFrame) -> dict[str, Any]:
        """What `CheckedRows.check_table` takes beside features and labels."""
        return {
            "sample_weight": None if self.weight is None else self.weights(table),
            "guard_features": table[list(self.declared)] if self.declared else None,
            "persons": None if self.person is None else table[self.person],
            "time": None if self.time is None else table[self.time],
        }


def in_order_of_values(rows: CheckedRows) -> CheckedRows:
    """Sort rows by a hash of their values: whoever draws some of them by chance then draws the same from any order."""
    table, context = named_table(rows.given), rows.context
    hashes = row_hashes(table.assign(**{LABEL: rows.y}))
    others: dict[str, Any] = {WEIGHT: rows.weight}
    if context.time is not None:
        others[TIME] = context.time
    if context.declared is not None:
        others |= {f"{DECLARED} {name}": values.to_numpy() for name, values in context.declared.items()}
    if context.person is not None:
        # Numbers of persons depend on the order of the rows; what their rows hold does not.
        held = np.zeros(int(context.person.max()) + 1, np.uint64)
        np.add.at(held, context.person, hashes)
        others[PERSON] = held[context.person]
    # Of equal rows, what else is known about them decides.
    ordered = rows.take(np.lexsort((row_hashes(pd.DataFrame(others)), hashes)))
    if ordered.context.person is None:
        return ordered
    return replace(ordered, context=replace(ordered.context, person=pd.factorize(ordered.context.person)[0]))


def as_table(rows: CheckedRows, persons: NDArray[Any] | None) -> tuple[pd.DataFrame, Roles]:
    """Put rows into one table, with what is known about them; `persons` as the user gave them."""
    table, context = named_table(rows.given), rows.context
    features, declared = tuple(table.columns), context.declared
    others: dict[str, Any] = {LABEL: rows.y, WEIGHT: rows.weight}
    if persons is not None:
        others[PERSON] = persons
    if context.time is not None:
        others[TIME] = context.time
    names = {} if declared is None else {name: f"{DECLARED} {name}" for name in declared.columns}
    others |= {name: declared[old].to_numpy() for old, name in names.items()} if declared is not None else {}
    roles = Roles(
        LABEL,
        WEIGHT,
        None if persons is None else PERSON,
        None if context.time is None else TIME,
        tuple(names.values()),
        features,
    )
    return table.assign(**others), roles
