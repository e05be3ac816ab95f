"""Check of the monitor: what it promises, in worlds in which the truth is known.

- `alarms`: how often any alarm is ever raised without harm, row by row and through the monitor's own books;
- `delays`: rows until an alarm, and delay and false alarms after a change;
- `limits`: how often any limit of a gain is ever missed, and any share is said to have drifted;
- `service`: monthly `recalibrate` against `Monitor.apply`;
- `tables`: all of it as tables.

``python -m dafh.study.watching`` prints the tables, and ``python -m dafh.study.watching docs/watch.md`` fills them into
the page; names of tables, such as ``limits drift``, make only these. The slow tests assert what they show.
"""
