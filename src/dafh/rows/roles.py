"""Rows in an order that depends on their values alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dafh.rows.checked import CheckedRows
from dafh.tables.bins import named_table
from dafh.tables.hashes import row_hashes

LABEL, WEIGHT, PERSON, TIME, DECLARED = (f"\0{name}" for name in ("label", "weight", "person", "time", "declared"))
"""Names for columns with a role, which no column of a file has."""


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
