"""Studies: the paper's tables and figures, the synthetic experiment, and checks of the guarantee.

- `reproduce`: from a request to jobs, tables and figures;
- `runner` and `store`: jobs in parallel, results in SQLite that survive a kill;
- `methods` and `grid`: what one job does, under the honest protocol and under the paper's;
- `published` and `tables`: the paper's numbers, and ours beside them;
- `document`: the page docs/reproduction.md;
- `synthetic`, `guarantee`: the demo's experiment, and the guard in simulated worlds.

A new table is an entry in `tables.TABLES`; a new method a branch in `methods`.
"""
