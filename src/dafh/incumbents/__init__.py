"""Models that a user brings: in production already, used as they are, and never changed.

- `fitted`: a fitted model of any library, with its own columns, labels and cut-off (`Incumbent`);
- `columns`: scores and decisions that stand in the table, made by whatever model or person (`IncumbentColumns`);
- `scales`: probabilities for a model that gives scores or labels only.

A new shape in which a model may come belongs here. How groups are learned on top of one is in `dafh.estimators`.
"""

from dafh.incumbents.columns import IncumbentColumns
from dafh.incumbents.fitted import Incumbent

__all__ = ["Incumbent", "IncumbentColumns"]
