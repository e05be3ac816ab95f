"""Which jobs each table and figure needs."""

from collections.abc import Callable, Iterator

from research.paper.rivals import rival_methods
from research.paper.store import Job
from research.paper.study import OURS, PAPER, UPDATES, YARDSTICKS

DATASETS = ("adult", "arrest", "violent", "german", "bank")
COMPARED = ("adult", "arrest", "violent")
"""Data sets of the table with LR-All and TreeLR."""
FIRST = PAPER[0]
"""The paper's algorithm as printed: one update per row."""
Need = tuple[str, int]


def _groups(*ks: int) -> list[Need]:
    return [(method, k) for method in (FIRST, *OURS) for k in ks]


_ONES = [(name, 1) for name in YARDSTICKS]
_GRID = [("sgd-pooled", 1), *((f"sgd-{name}", 2) for name in ("paper", "trivial", "clustering"))]
# What a table needs of a data set, and how many splits at most: None for all.
_NEEDS: dict[str, tuple[Callable[[str], list[Need]], int | None]] = {
    "k2": (lambda _: [*_ONES, ("default", 1), *_groups(2), ("trivial", 2)], None),
    "clustering": (lambda _: [("pooled", 1), *_groups(2, 3, 4), *(("clustering", k) for k in (2, 3, 4))], None),
    "manual": (lambda d: [*_groups(2), ("manual", 2), ("trivial", 2)] if d == "arrest" else [], None),
    "compare": (
        lambda d: [*_groups(2, 3, 4), ("trivial", 2), ("lr-all", 1), ("treelr", 1)] if d in COMPARED else [],
        None,
    ),
    "readings": (lambda _: [("pooled", 1), *((name, 2) for name in PAPER)], None),
    "grid": (lambda _: _GRID, None),
    "convergence": (
        lambda d: [*((f"steps-{name}", 2) for name in UPDATES), ("trivial", 2)] if d == "violent" else [],
        None,
    ),
    # Groups of one model have nothing to do with those of another, so that the shares of splits cannot be averaged.
    "composition": (
        lambda d: [(f"composition-{name}", 2) for name in (FIRST, "exceptions")] if d == "arrest" else [],
        3,
    ),
    "synthetic": (lambda _: [("synthetic", 2)], None),
    "rivals": (lambda _: rival_methods(), 3),
}
TABLES = tuple(_NEEDS)


def jobs(tables: tuple[str, ...] = TABLES, datasets: tuple[str, ...] = DATASETS, splits: int = 5) -> list[Job]:
    """All jobs of some tables, each once: split by split, so that an interrupted run has whole splits."""
    every = dict.fromkeys(job for split in range(splits) for job in _of_split(tables, datasets, split))
    return list(every)


def _of_split(tables: tuple[str, ...], datasets: tuple[str, ...], split: int) -> Iterator[Job]:
    for table in tables:
        needed, most = _NEEDS[table]
        if most is None or split < most:
            for dataset in ("made-up",) if table == "synthetic" else datasets:
                yield from (Job(dataset, method, k, split) for method, k in needed(dataset))
