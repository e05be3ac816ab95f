"""Models as programs of other systems, so that rows are scored where they live.

- `sql`: `to_sql`, a model as one SELECT;
- `plan`: a fitted model taken apart into rules, points and weights, and the sentences for what cannot be exported;
- `dialects`: what databases do differently;
- `expressions`: nodes of SQL syntax that the others build with. All values and names become nodes, never pasted text: a
  category called ``'); DROP TABLE x; --`` stays a category;
- `cleaning`, `rules`, `scoring`: columns as the model reads them, groups, scores;
- `statement`, `layout`: all of it as one statement, laid out for people.

A further dialect is an entry of `dialects.DIALECTS`, which the tests go through. A further kind of classifier is a kind
of score in `plan`, with its expression in `scoring`.
"""

from dafh.export.sql import to_sql

__all__ = ["to_sql"]
