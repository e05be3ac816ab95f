"""Made-up results of a study, for tests of its tables and of the page made from them."""

import pandas as pd


def results_of(table, protocol="honest", n_splits=3):
    """Made-up results for every job of a table: DAFH is one point better than pooled, all others are equal to it."""
    rows = []
    for job in table.jobs(protocol, n_splits):
        accuracy = 0.8 + job.split / 100 + (0.01 if job.method in ("dafh", "grid") else 0)
        row = {"protocol": job.protocol, "dataset": job.dataset, "method": job.method}
        row |= {"n_groups": job.n_groups, "split": job.split, "accuracy": accuracy, "pr": 0.95, "violations": 1}
        row |= {"max_gain": 0.1, "max_envy_gap": 0.2, "disparity_change": -0.05, "n_models": 2, "p_values": [0.5, 0.2]}
        rows.append(row | {"disagreement": 0.05, "smallest_share": 0.3})
    return pd.DataFrame(rows)
