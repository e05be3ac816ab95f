"""Groups in words.

- `explain`: describes every group of a fitted model: size, rule, contrasts, classifier, members;
- `rules`: the model's own rule for a group, or a short one that is found, with how well it fits;
- `views`: turns columns into numbers that can be described in words;
- `stability`: measures how much the groups change with the seed, or with the rows;
- `worth`: what the groups are worth, in one sentence;
- `cutoffs`: whether a model in use would make fewer errors at another cut-off;
- `words`: the records that `explain` returns, and their text.

To say something new about a group, compute it in `explain` and add a record for it to `words`.
"""

from dafh.explanation.explain import explain
from dafh.explanation.rules import Rule
from dafh.explanation.stability import stability
from dafh.explanation.words import Contrast, Effect, Explanation, GroupInWords, Member

__all__ = ["Contrast", "Effect", "Explanation", "GroupInWords", "Member", "Rule", "explain", "stability"]
