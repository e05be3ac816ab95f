"""A report in two steps: a summary of plain values, and one HTML file made from it (`page`).

`summary` is about an audit, `compared` about a change of model, `watched` about a model in use; each has a template of
its name. A summary has `tables`, the texts that a terminal prints too, and `charts`, the specifications that
`dafh.plots` makes: the template places them by name.
"""

from dafh.report.compared import summarize_comparison
from dafh.report.page import render, write_report
from dafh.report.summary import summarize

__all__ = ["render", "summarize", "summarize_comparison", "write_report"]
