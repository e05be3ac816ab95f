"""Fits of rows larger than memory: time and peak memory by the number of rows.

``python benchmarks/scale.py --rows 20000000`` writes files of 20 columns, fits them in a process of its own, and prints
both. Fits from files run under a limit of 2 GiB of private memory (RLIMIT_DATA); Arrow then takes its memory from the
system, because its own pool reserves a gigabyte of addresses at once.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

LIMIT_GIB = 2
ROWS_PER_FILE = 500_000
FIT = """
import re, resource, sys, time
from pathlib import Path
way, source, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit * 2**30),) * 2)
from dafh import DAFHClassifier
model = DAFHClassifier(groups="rules", random_state=0)
start = time.perf_counter()
if way == "memory":
    import pandas as pd
    read = pd.read_csv if source.endswith("csv") else pd.read_parquet
    table = pd.concat([read(path) for path in sorted(Path(source).parent.glob(Path(source).name))], ignore_index=True)
    model.fit(table.drop(columns="y"), table["y"])
else:
    model.fit(source, "y")
seconds = time.perf_counter() - start
# Not ru_maxrss: it starts at the size of the process that started this one.
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(seconds, peak / 1024)
"""


def write_rows(folder: Path, n_rows: int, kind: str) -> str:
    """Write rows into files of half a million; return a pattern for them."""
    folder.mkdir()
    for first in range(0, n_rows, ROWS_PER_FILE):
        table = make_rows(min(ROWS_PER_FILE, n_rows - first), first)
        path = folder / f"{first // ROWS_PER_FILE:04d}.{kind}"
        if kind == "csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False, row_group_size=125_000)
    return str(folder / f"*.{kind}")


def make_rows(n_rows: int, seed: int) -> pd.DataFrame:
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


def fit_alone(way: str, source: str, limit: float = 0.0) -> tuple[float, float]:
    """Seconds and peak memory in MiB of a fit in a process of its own."""
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(
        [sys.executable, "-c", FIT, way, source, str(limit)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    seconds, peak = done.stdout.split()[:2]
    return float(seconds), float(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 20_000_000])
    parser.add_argument("--kind", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--in-memory", action="store_true", help="fit the same rows in memory, too")
    asked = parser.parse_args()
    for n_rows in asked.rows:
        folder = Path(tempfile.mkdtemp(prefix="dafh-scale-"))
        try:
            source = write_rows(folder / "rows", n_rows, asked.kind)
            for way in ("files", "memory") if asked.in_memory else ("files",):
                seconds, peak = fit_alone(way, source, LIMIT_GIB if way == "files" else 0.0)
                print(
                    f"{n_rows:>12,} rows ({asked.kind}) from {way}: {seconds:6.1f} s, peak {peak:7,.0f} MiB", flush=True
                )
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
