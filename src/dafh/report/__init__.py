"""A report in two steps: a summary of plain values (`summary`), and one HTML file made from it (`page`).

A new number is computed in `summary` and placed in `page.html`. A new chart comes from `dafh.plots`; it is chosen in
`charts`, with the table behind it in `tables`, and placed in `page.html`. `watched` summarizes a model in use, and
`watched.html` is its page; `compared` and `compared.html` are about a change of model.
"""

from dafh.report.compared import summarize_comparison
from dafh.report.page import render, write_report
from dafh.report.summary import summarize

__all__ = ["render", "summarize", "summarize_comparison", "write_report"]
