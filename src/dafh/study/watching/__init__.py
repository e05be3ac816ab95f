"""Check of the monitor: what it promises, in worlds in which the truth is known.

- `alarms`: how often any alarm is ever raised without harm, row by row and through the monitor's own books;
- `delays`: rows until an alarm, and delay and false alarms after a change;
- `limits`: how often any limit of a gain is ever missed, and any share is said to have drifted;
- `service`: monthly `recalibrate` against `Monitor.apply`;
- `tables`: all of it as tables.

``python -m dafh.study.watching`` prints the tables of docs/watch.md. The slow tests assert what they show.
"""
