"""Rows as different parts of a model see them: as they were given, as numbers, and as bins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.columns.encoder import TableEncoder
from dafh.columns.kinds import LARGEST_NUMBER
from dafh.exceptions import InputError
from dafh.frames import Table, take_rows, to_pandas

# A multiple of what a network takes at a time (`dafh.groups.trained`): results are then the same to the last digit.
_BLOCK_ROWS = 8192


class TableView:
    """How a table becomes numbers and bins, learned from training rows without their labels.

    Parameters
    ----------
    encoder : TableEncoder or None
        None where the columns are numbers without gaps, and are taken as they are, or where nothing needs numbers.
    binning : Binning or None
        None where nothing needs bins.
    training : table, optional
        Rows that an encoder is learned from, when somebody asks for it: rules on a scorecard never do, and it would
        take a tenth of a small fit.
    columns : sequence of str, optional
        Features, where tables have further columns, which only the pooled classifier sees.
    """

    # All that there is of a view; a model file holds these.
    _encoder: TableEncoder | None
    binning: Binning | None
    _training: Table | None
    columns: list[str] | None

    def __init__(
        self,
        encoder: TableEncoder | None,
        binning: Binning | None,
        training: Table | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._encoder, self.binning, self._training = encoder, binning, training
        self.columns = None if columns is None else list(columns)

    @classmethod
    def learn(
        cls,
        given: Table,
        weight: NDArray[np.float64],
        binning: Binning | None = None,
        columns: Sequence[str] | None = None,
    ) -> "TableView":
        """Learn from training rows; bins that a classifier has already are shared."""
        features = given if columns is None else to_pandas(given)[list(columns)]
        binning = binning or Binning.learn(features, weight)
        return cls(None, binning, features if binning.needs_encoding(features) else None, columns)

    @property
    def encoder(self) -> TableEncoder | None:
        """What makes numbers of a table."""
        if self._training is not None:
            kinds = None if self.binning is None else self.binning.kinds
            self._encoder, self._training = TableEncoder(kinds).fit(self._training), None
        return self._encoder

    def settled(self) -> "TableView":
        """Return the view without training rows: what nobody has asked for by now is not needed."""
        return TableView(self._encoder, self.binning, columns=self.columns)

    def see(self, given: Table, codes: NDArray[np.uint8] | None = None) -> "SeenRows":
        """Look at rows; what is not asked for is not computed, nor are bins that are known."""
        seen = SeenRows(self, given)
        if codes is not None:
            seen.__dict__["codes"] = codes
        return seen


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows as they were given, with their numbers and bins."""

    view: TableView
    whole: Any
    """A data frame, or an array of numbers."""
    rows: NDArray[np.intp] | None = None
    """Positions of the rows in it; None for all of them."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.whole if self.rows is None else self.rows)

    @cached_property
    def given(self) -> Any:
        """The rows as they were given."""
        return self.whole if self.rows is None else take_rows(self.whole, self.rows)

    @property
    def features(self) -> Any:
        """The same without what only the pooled classifier sees."""
        return self.given if self.view.columns is None else self.given[self.view.columns]

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """All columns as numbers, categories as columns of 0 and 1, (n, p)."""
        if self.view.encoder is not None:
            return self.view.encoder.encode(self.given)
        features = self.features
        values = features.to_numpy(np.float64) if isinstance(features, pd.DataFrame) else np.asarray(features)
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        # Written so that a gap fails, too.
        if not (np.abs(values) < min(LARGEST_NUMBER, float(np.finfo(values.dtype).max))).all():
            raise InputError("X has missing or infinite values, and had none in fit: fill them before predicting.")
        return values

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Bin of each row in each column, (n, d)."""
        assert self.view.binning is not None
        return self.view.binning.codes(self.features)

    def blocks(self) -> Iterator["SeenRows"]:
        """Yield the rows in blocks, where their numbers would be a large table: each block's are gone before the next.

        Of 488,420 rows of Adult, the numbers take 400 MB.
        """
        if self.view.encoder is None or "numbers" in self.__dict__ or len(self) <= _BLOCK_ROWS:
            yield self
            return
        for first in range(0, len(self), _BLOCK_ROWS):
            yield self.take(np.arange(first, min(first + _BLOCK_ROWS, len(self))))

    def take(self, rows: NDArray[np.intp]) -> "SeenRows":
        """Return some of the rows, with what is known of them."""
        # Most who ask for some rows want their bins or numbers: some rows of a data frame take longer than all of that.
        part = SeenRows(self.view, self.given, rows)
        for name in ("numbers", "codes"):
            if name in self.__dict__:
                part.__dict__[name] = np.asarray(self.__dict__[name][rows], order="F" if name == "codes" else "C")
        return part
