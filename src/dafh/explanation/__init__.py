"""Groups in words.

- `explain`: describes every group of a fitted model: size, rule, contrasts, classifier, members;
- `rules`: finds a short rule for a group, and measures how well it fits;
- `views`: turns columns into numbers that can be described in words;
- `stability`: measures how much the groups change with the seed;
- `words`: the records that `explain` returns, and their text.

To say something new about a group, compute it in `explain` and add a record for it to `words`.
"""

from dafh.explanation.explain import explain
from dafh.explanation.rules import Rule
from dafh.explanation.stability import stability
from dafh.explanation.words import Contrast, Effect, Explanation, GroupInWords, Member

__all__ = ["Contrast", "Effect", "Explanation", "GroupInWords", "Member", "Rule", "explain", "stability"]
