"""Who belongs to which group, given: ways to divide rows for `dafh.DecoupledClassifier`.

- `base`: what every partition does;
- `attributes`: by the values of sensitive attributes, or by all their combinations;
- `clusters`: rows that look alike;
- `tree`: TreeLR, a tree over attributes that is pruned for no harm;
- `rules`: by rules that somebody wrote down;
- `controls`: everybody in one group, and groups by chance.

A new partition is a subclass of `base.Partition` in a file of its own, exported here; the guide has one from start to
end.
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
