"""Tables: from files to rows and back, and what the columns hold.

- `layout`: delimiter, header and decimal mark of a text file, guessed from its first lines;
- `files`: CSV and Parquet, from a path or a pipe, whole or in pieces; `streams`: their bytes;
- `parquet`: Parquet files that may come from anybody; `footer` and `pages`: what such a file says about itself and its
  pages, read strictly; `page_contents`: what pages only announce; `thrift`: the bytes that all of it is written in;
- `arrow`: tables of Arrow as pandas frames;
- `records`: pieces of a text file that leave no doubt about where rows and cells end; `coded`: such pieces as numbers
  and as codes of the different texts, read with Arrow: the fast way to score a file;
- `writing`: results as CSV or Parquet, whole or not at all; `cells`: lines of CSV, column by column;
- `values`: kinds of columns and values read as one kind, in one place; `column`: one `Column` with kind, bins and words,
  which schema, reader, encoder, bins, audits, guard and monitor share;
- `unread`: values of a later table that are not of the kind their column had in training; `unseen`: categories that
  training rows did not have;
- `schema`: which column is what, which say nothing and which give the target away; `labels`: the target;
- `reader`: tables as typed frames, for estimators that take those; `encoder`: tables as numbers, for all others;
- `bins`: tables divided into bins, for scorecards and rules.

A new file format belongs in `files`, which recognises it by its first bytes, and in `writing`, which goes by the
ending of the name; a new way to write a date or a number in `values`.
"""
