"""Who belongs to which group: ways to divide rows for `dafh.DecoupledClassifier`."""

from dafh.partitions.attributes import AttributePartition, IntersectionPartition
from dafh.partitions.base import NOBODY, Partition
from dafh.partitions.clusters import ClusterPartition

__all__ = ["NOBODY", "AttributePartition", "ClusterPartition", "IntersectionPartition", "Partition"]
