"""The paper's tables, figures and claims, with the published numbers beside ours, and rivals on the same data.

- `__main__`: ``python -m research.paper``, from a request to a page;
- `plan`: which jobs a table needs; `run` and `store`: jobs in parallel, and their results in one file;
- `study` and `rivals`: what a job does; `ascent`: Algorithm 1 for many settings at once;
- `published`, `tables`, `claims`, `rivals_tables`, `figures`: what becomes of results;
- `document`: writes docs/reproduction.md and docs/rivals.md from `results.json`, the results in the repository.

A new table is an entry in `plan` and in `tables`; a new method one in `study`.
"""
