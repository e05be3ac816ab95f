"""Rules that divide rows into groups, fixed or fitted, for `dafh.DecoupledClassifier`.

- `base`: what every partition does;
- `attributes`: by the values of sensitive attributes, or by all their combinations;
- `clusters`: by similarity of the rows (k-means);
- `tree`: TreeLR, a tree over attributes, pruned so that no group is harmed;
- `rules`: by rules that the user writes;
- `controls`: all rows in one group, and random groups.

A new partition is a subclass of `base.Partition` in its own file, exported here; research/own_partition.py is a
complete one. To be saved, it needs a line in `dafh.persistence.state.CLASSES`.
"""

from dafh.partitions.attributes import AttributePartition, IntersectionPartition
from dafh.partitions.base import NOBODY, Partition
from dafh.partitions.clusters import ClusterPartition
from dafh.partitions.controls import PooledPartition, RandomPartition
from dafh.partitions.rules import RulePartition, paper_manual_partition
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
