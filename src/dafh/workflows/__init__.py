"""From files to files: what the command line calls.

- `reading`: whether a table is read at once or in passes, and the latter;
- `training`: read a table, fit a model, write it with the rows that were held out;
- `serving`: read a model file, then score, audit or explain with it;
- `python_models`: schemas of models that were saved from Python;
- `watching`: a model file, a batch of rows and a state file, for monitoring over time;
- `scorer`: a model file as a function of data frames, for Dask and Spark;
- `exporting`: a model file as a program of another system;
- `fingerprints`: whether a table is one that a model was trained on;
- `names`: names of columns as commands take them.

A new command gets its work done here, and its words in `dafh.cli`.
"""
