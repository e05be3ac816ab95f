"""Fits of rows larger than memory: time and peak memory, beside the same fit in memory.

Every fit runs in a process of its own. Those from files run under a limit of 2 GiB of private memory (RLIMIT_DATA);
Arrow then takes its memory from the system, because its own pool reserves a gigabyte of addresses at once.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from research.benchmarks.measure import alone, run

LIMIT_GIB = 2
ROWS_PER_FILE = 500_000
FIT = """
import resource, sys, time
from pathlib import Path
way, source, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit * 2**30),) * 2)
from dafh import DAFHClassifier
model = DAFHClassifier(random_state=0)
start = time.perf_counter()
if way == "memory":
    import pandas as pd
    read = pd.read_csv if source.endswith("csv") else pd.read_parquet
    table = pd.concat([read(path) for path in sorted(Path(source).parent.glob(Path(source).name))], ignore_index=True)
    model.fit(table.drop(columns="y"), table["y"])
else:
    model.fit(source, "y")
print(time.perf_counter() - start, peak_memory())
"""


def write_rows(folder: Path, n_rows: int, kind: str) -> str:
    """Write rows into files of half a million; return a pattern for them."""
    for first in range(0, n_rows, ROWS_PER_FILE):
        table = make_rows(min(ROWS_PER_FILE, n_rows - first), first)
        path = folder / f"{first // ROWS_PER_FILE:04d}.{kind}"
        if kind == "csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False, row_group_size=125_000)
    return str(folder / f"*.{kind}")


def make_rows(n_rows: int, seed: int) -> pd.DataFrame:
    """16 columns of numbers and 4 of categories."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"x{i}": rng.normal(size=n_rows).round(3).astype(np.float32) for i in range(14)})
    for number, size in enumerate((3, 5, 8, 12)):
        names = [f"v{value}" for value in range(size)]
        table[f"c{number}"] = pd.Categorical.from_codes(rng.integers(0, size, n_rows), names)
    table["age"] = np.where(rng.random(n_rows) < 0.05, np.nan, rng.integers(18, 90, n_rows))
    table["income"] = np.exp(rng.normal(10, 1, n_rows)).round()
    effect = np.where(table["c0"] == "v0", 1.2, -0.6)
    logit = table["x0"] - 0.5 * table["x1"] + effect * table["x2"] + 0.3 * table["x3"] ** 2 - 0.3
    return table.assign(y=(rng.random(n_rows) < 1 / (1 + np.exp(-logit))).astype(np.int8))


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each number of rows and kind of file."""
    sizes = [(250_000, "parquet")] if quick else [(10**6, "parquet"), (2 * 10**7, "parquet"), (2 * 10**6, "csv")]
    for n_rows, kind in sizes:
        with tempfile.TemporaryDirectory(prefix="dafh-scale-") as folder:
            source = write_rows(Path(folder), n_rows, kind)
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
            files = alone(FIT, "files", source, LIMIT_GIB, ARROW_DEFAULT_MEMORY_POOL="system")
            memory = alone(FIT, "memory", source, 0, ARROW_DEFAULT_MEMORY_POOL="system")
        yield {
            "rows": f"{n_rows:,} ({kind}, {size:,.0f} MiB)",
            "from files, s": f"{files[0]:.0f}",
            "in memory, s": f"{memory[0]:.0f}",
            "speed, files against memory": f"{memory[0] / files[0]:.2f}",
            "peak from files, MiB": f"{files[1]:,.0f}",
            "peak in memory, MiB": f"{memory[1]:,.0f}",
        }


if __name__ == "__main__":
    run(__file__, lines)
