"""Statistics of paired comparisons; knows nothing of models."""

from dafh.stats.paired import mcnemar_p

__all__ = ["mcnemar_p"]
