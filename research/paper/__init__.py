"""Studies: the paper's tables and figures, rivals, the synthetic experiment, and checks of the guarantee.

- `reproduce`: from a request to jobs, tables and figures;
- `runner` and `store`: jobs in parallel, and their results in SQLite, safe if the process is killed;
- `methods` and `grid`: what one job does, under the honest protocol and under the paper's;
- `published` and `tables`: the paper's numbers, and ours beside them;
- `aims` and `document`: what the results should show and do, and the page docs/reproduction.md;
- `rivals`, `rivals_tables` and `rivals_page`: other methods side by side, and the page docs/rivals.md;
- `synthetic`: the experiment behind the demo;
- `guarantee`: coverage of the intervals and error rates of the guard, by enumeration and simulation;
- `watching`: what the monitor promises, in simulated worlds, and the tables of docs/watch.md;
- `marks`: places in hand-written pages that a study fills.

A new table is an entry in `tables.TABLES`, and a new data set or method a line in the tables that should show it.
Baselines of `research.rivals` run by their name; any other method is an entry in `methods`.
"""
