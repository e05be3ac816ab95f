"""Data to try things on."""

from dafh.datasets.synthetic import make_grouped_classification, make_paper_synthetic

__all__ = ["make_grouped_classification", "make_paper_synthetic"]
