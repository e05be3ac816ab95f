"""Who belongs to which group: ways to divide rows for `dafh.DecoupledClassifier`."""

from dafh.partitions.attributes import AttributePartition, IntersectionPartition
from dafh.partitions.base import NOBODY, Partition
from dafh.partitions.clusters import ClusterPartition
from dafh.partitions.simple import PooledPartition, RandomPartition, RulePartition, paper_manual_partition
from dafh.partitions.tree import TreePartition

__all__ = [
    "NOBODY",
    "AttributePartition",
    "ClusterPartition",
    "IntersectionPartition",
    "Partition",
    "PooledPartition",
    "RandomPartition",
    "RulePartition",
    "TreePartition",
    "paper_manual_partition",
]
