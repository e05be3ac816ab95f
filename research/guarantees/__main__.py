"""Print the tables of docs/guarantee.md, or fill those of docs/watch.md into the page that is named."""

import sys
from pathlib import Path

from research.guarantees.tables import GUARANTEE, WATCH, as_markdown, in_percent
from research.pages import fill

if len(sys.argv) == 1:
    for title, make in GUARANTEE.items():
        print(f"{title}, in percent:\n\n{in_percent(make())}\n", flush=True)
else:
    for name in sys.argv[2:] or WATCH:
        fill(Path(sys.argv[1]), name, as_markdown(WATCH[name]()))
