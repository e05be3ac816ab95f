"""The paper's tables, figures and claims, with the published numbers beside ours, and rivals on the same data.

- `__main__`: ``python -m research.paper``, from a request to tables: jobs in parallel, stored one by one;
- `plan`: which jobs a table needs; `store`: their results in one file;
- `study` and `rivals`: what a job does; `ascent`: Algorithm 1 for many settings at once;
- `published`, `tables`, `claims`, `rivals_tables`, `figures`: what becomes of results;
- `document`: fills docs/reproduction.md and research/rivals/README.md from `results.json`, the stored results.

A new table is an entry in `plan` and in `document`; a new method one in `study`.
"""
