"""A report in two steps: a summary of plain values (`summary`), and one HTML file made from it (`page`).

A new number is computed in `summary` and placed in `page.html`. A new chart comes from `dafh.plots`; it is named in
`page`, with the table behind it, and placed in `page.html`. `watched` makes the page about a model in use.
"""

from dafh.report.page import render, write_report
from dafh.report.summary import summarize

__all__ = ["render", "summarize", "write_report"]
