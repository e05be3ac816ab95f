"""Tables: from files to rows and back, and what the columns hold.

- `read`: CSV and Parquet, from a path or a pipe, whole or in pieces, with the delimiter, header and decimal mark of a
  text guessed from its first lines; `write`: results as CSV or Parquet, whole or not at all;
- `kinds`: kinds of columns and values read as one kind, in one place; `column`: one `Column` with kind, bins and
  words, which schema, reader, encoder, bins, audits, guard and monitor share;
- `unexpected`: values of a later table that are not of the kind their column had, and categories not seen in training;
- `schema`: which column is what, which say nothing and which give the target away; `labels`: the target;
- `encoder`: tables as typed frames, for estimators that take those, and as numbers, for all others;
- `bins`: tables divided into bins, for scorecards and rules.

A new file format belongs in `read`, which recognises it by its first bytes, and in `write`, which goes by the ending
of the name; a new way to write a date or a number in `kinds`.
"""
