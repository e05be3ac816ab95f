"""Groups in words.

- `explain`: describes every group of a fitted model: size, rule, contrasts, classifier, members;
- `rules`: the model's own rule for a group, or a short one that is found, with how well it fits;
- `stability`: measures how much the groups change with the seed, or with the rows;
- `words`: the records that `explain` returns and their text, and sentences on what groups and cut-offs are worth.

To say something new about a group, compute it in `explain` and add a record for it to `words`.
"""

from dafh.explanation.explain import explain
from dafh.explanation.stability import stability
from dafh.explanation.words import Explanation

__all__ = ["Explanation", "explain", "stability"]
