"""Print all tables of the check."""

from research.guarantees.tables import written

for text in written():
    print(text, flush=True)
