"""Fits of rows larger than memory: time and peak memory against the same fit in memory, and against the number of rows.

``python benchmarks/scale.py`` writes benchmarks/scale.md; ``--quick`` uses small sizes and writes nothing. Every fit
runs in a process of its own. Those from files run under a limit of 2 GiB of private memory (RLIMIT_DATA); Arrow then
takes its memory from the system, because its own pool reserves a gigabyte of addresses at once.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
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
PAGE = """# Rows larger than memory

Written by `python benchmarks/scale.py`, on two cores. Tables of 20 columns: 16 of numbers and 4 of categories.
Groups by rules on a scorecard (`DAFHClassifier(groups="rules")`). Every fit is a process of its own; those from files
run under a limit of {limit} GiB. Times include reading.

{table}

{sentences}
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


def measure(sizes: list[int], text_rows: int) -> tuple[list[dict[str, str]], list[str]]:
    lines, sentences, per_row = [], [], {}
    folder = Path(tempfile.mkdtemp(prefix="dafh-scale-"))
    try:
        for n_rows, kind in [*((n, "parquet") for n in sizes), (text_rows, "csv")]:
            source = write_rows(folder / f"{n_rows}-{kind}", n_rows, kind)
            size = sum(path.stat().st_size for path in (folder / f"{n_rows}-{kind}").iterdir()) / 2**20
            files, memory = fit_alone("files", source, LIMIT_GIB), fit_alone("memory", source)
            per_row[n_rows, kind] = files[0] / n_rows
            lines.append(
                {
                    "rows": f"{n_rows:,} ({kind}, {size:,.0f} MiB)",
                    "from files, s": f"{files[0]:.0f}",
                    "in memory, s": f"{memory[0]:.0f}",
                    "speed, files against memory": f"{memory[0] / files[0]:.2f}",
                    "peak from files, MiB": f"{files[1]:,.0f}",
                    "peak in memory, MiB": f"{memory[1]:,.0f}",
                }
            )
            print(lines[-1], flush=True)
            shutil.rmtree(folder / f"{n_rows}-{kind}")
        few, many = sizes[0], sizes[-1]
        slope = (per_row[many, "parquet"] * many - per_row[few, "parquet"] * few) / max(many - few, 1)
        hundred = per_row[many, "parquet"] * many + slope * (1e8 - many)
        sentences.append(
            f"From {few:,} to {many:,} rows, every million takes {1e6 * slope:.1f} s. Extrapolated, and not measured: "
            f"100,000,000 rows take {hundred / 60:.0f} minutes on these two cores."
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return lines, sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, and nothing is written")
    quick = parser.parse_args().quick
    lines, sentences = measure(
        [250_000, 500_000] if quick else [1_000_000, 20_000_000], 250_000 if quick else 2_000_000
    )
    names = list(lines[0])
    rows = [f"| {' | '.join(names)} |", "|---|" + "---:|" * (len(names) - 1)]
    rows += [f"| {' | '.join(line[name] for name in names)} |" for line in lines]
    page = PAGE.format(limit=LIMIT_GIB, table="\n".join(rows), sentences="\n".join(sentences))
    print(page)
    if not quick:
        (HERE / "scale.md").write_text(re.sub(r"\n{3,}", "\n\n", page), encoding="utf-8")


if __name__ == "__main__":
    main()
