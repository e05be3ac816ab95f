"""Reports for people who do not read code: first a summary of plain values, then one HTML file made from it."""

from dafh.report.page import render, write_report
from dafh.report.summary import summarize

__all__ = ["render", "summarize", "write_report"]
