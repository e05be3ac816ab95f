"""Regions: rows that a few readable conditions select.

- `conditions`: `Condition` and `Region`, evaluated on tables and said in words;
- `search`: the region with the best score, for any score of sums over rows; numbers are cut where
  `dafh.columns.bins` does.

Exceptions are made of them (`dafh.groups.exceptions`), and so is the answer to who loses from a change of model.
"""

from dafh.regions.conditions import Condition, Region

__all__ = ["Condition", "Region"]
