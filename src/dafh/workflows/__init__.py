"""From files to files: what the command line calls.

- `training`: read a table, fit a model, write it with the rows that were held out;
- `serving`: read a model file, then score, audit or explain with it;
- `fingerprints`: whether a table is one that a model was trained on;
- `names`: names of columns as commands take them.

A new command gets its work done here, and its words in `dafh.cli`.
"""
