"""Print the tables of the check, or fill them into a page: ``python -m dafh.study.watching [PAGE [NAME ...]]``."""

import sys
from pathlib import Path

from dafh.study.watching.tables import TABLES, write_page, written

page, names = sys.argv[1:2], sys.argv[2:] or list(TABLES)
if page:
    write_page(Path(page[0]), names)
else:
    for name, text in written():
        print(f"**{name}**\n\n{text}\n", flush=True)
