"""Groups in words.

- `explain`: size, rule, contrasts, differences between classifiers, and members of every group;
- `rules`: a short rule for a group, with its fidelity;
- `views`: columns as numbers that can be put into words;
- `stability`: how far the groups depend on the seed;
- `words`: what is said, as plain records that print.

Something new to say about a group is found in `explain` and gets a record in `words`.
"""

from dafh.explanation.explain import explain
from dafh.explanation.rules import Rule
from dafh.explanation.stability import stability
from dafh.explanation.words import Contrast, Effect, Explanation, GroupInWords, Member

__all__ = ["Contrast", "Effect", "Explanation", "GroupInWords", "Member", "Rule", "explain", "stability"]
