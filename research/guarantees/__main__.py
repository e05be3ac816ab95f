"""Print the simulations behind docs/guarantee.md (``guarantee``, an hour) and docs/watch.md (``monitor``), or both."""

import sys

from research.guarantees.tables import GUARANTEE, WATCH, as_markdown, in_percent

names = sys.argv[1:] or ["guarantee", "monitor"]
if "guarantee" in names:
    for title, make in GUARANTEE.items():
        print(f"{title}, in percent:\n\n{in_percent(make())}\n", flush=True)
if "monitor" in names:
    for title, make in WATCH.items():
        print(f"{title}:\n\n{as_markdown(make())}\n", flush=True)
