"""Check of the guarantee: what limits, guard and audit promise, in worlds in which the truth is known.

- `coverage`: how often a limit is missed, by enumeration of all outcomes;
- `worlds`: simulated populations and rows;
- `proof`: how often "proof" harms a group, and how often it keeps what is better;
- `fits`: the same from end to end, with real fits;
- `veto`: the bias of the judged gain, and which classifiers are kept;
- `audits`: wrong answers of an audit;
- `recommendations`: wrong recommendations;
- `tables`: all of it as tables.

``python -m research.guarantees`` prints the tables of docs/guarantee.md. The slow tests assert what they show.
"""

from research.guarantees.coverage import coverage_table, interval_coverage
from research.guarantees.proof import guard_table, harmed_share, kept_share
from research.guarantees.worlds import World

__all__ = ["World", "coverage_table", "guard_table", "harmed_share", "interval_coverage", "kept_share"]
