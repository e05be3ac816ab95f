"""A report in two steps: a summary of plain values (`summary`), and one HTML file made from it (`page`).

A new figure is computed in `summary`, drawn or tabulated in `page`, and placed in `page.html`.
"""

from dafh.report.page import render, write_report
from dafh.report.summary import summarize

__all__ = ["render", "summarize", "write_report"]
