"""Check of guarantee and monitor: what they promise, in worlds in which the truth is known.

The guarantee, docs/guarantee.md:

- `coverage`: how often a limit is missed, by enumeration of all outcomes;
- `worlds`: simulated populations and rows;
- `proof`: how often "proof" harms a group, and how often it keeps what is better;
- `fits`: the same from end to end, with real fits;
- `evidence`: which classifiers are kept by default; `harm`: how often that harms, with real fits;
- `audits`: wrong answers of an audit; `recommendations`: wrong recommendations.

The monitor, docs/watch.md:

- `alarms`: how often any alarm is ever raised without harm, row by row and through the monitor's own books;
- `batches`: files as they come: sorted, overlapping, labelled late, with shocks, inverted;
- `delays`: rows until an alarm, and delay and false alarms after a change;
- `limits`: how often any limit of a gain is ever missed, and any share is said to have drifted;
- `service`: monthly `recalibrate` against `Monitor.apply`.

`tables` has all of it as tables, which ``python -m research.guarantees [guarantee] [monitor]`` prints. The slow tests
assert what they show.
"""
