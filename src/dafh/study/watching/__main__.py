"""Print all tables of the check."""

from dafh.study.watching.tables import written

for text in written():
    print(text, flush=True)
