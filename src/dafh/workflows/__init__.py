"""From files to files: what the command line calls.

- `training`: read a table, fit a model, write it with the rows that were held out;
- `serving`: read a model file, then score, audit or explain with it;
- `tables`: names of columns, rows with a known target, fingerprints.

A new command gets its work done here, and its words in `dafh.cli`.
"""
