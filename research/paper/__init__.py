"""The paper's tables and figures, with the published numbers beside ours, and rivals on the same data.

- `__main__`: ``python -m research.paper``, from a request to files;
- `reproduce`: from a request to jobs, tables and figures;
- `runner` and `store`: jobs in parallel, and their results in SQLite, safe if the process is killed;
- `methods` and `grid`: what one job does, under the honest protocol and under the paper's;
- `published` and `tables`: the paper's numbers, and ours beside them;
- `rivals` and `rivals_tables`: other methods side by side, and whom each of them harms;
- `figures`: charts; `document` and `rivals_page`: the pages docs/reproduction.md and docs/rivals.md.

A new table is an entry in `tables.TABLES`, and a new data set or method a line in the tables that should show it.
Baselines of `research.rivals` run by their name; any other method is an entry in `methods`.
"""
