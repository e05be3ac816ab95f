"""What all benchmarks share: the shortest of several runs, processes of their own, and one table in one page."""

import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from research.pages import fill, markdown

# Not ru_maxrss: it starts at the size of the process that started this one.
PEAK_MEMORY = """
def peak_memory():
    import re
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
"""


def best_of(work: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Shortest of several runs: other processes on the machine can only make a run longer."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def alone(program: str, *arguments: object, **environment: str) -> list[float]:
    """Numbers that a program prints in a process of its own; it may call ``peak_memory()``, in MiB."""
    command = [sys.executable, "-c", PEAK_MEMORY + program, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return [float(number) for number in re.findall(r"[\d.]+", done.stdout)]


def run(page: str | Path, lines: Callable[[bool], Iterable[dict[str, Any]]]) -> None:
    """Print the lines of a table as they are measured, and fill them into the page of the same name."""
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore")
    found = []
    for line in lines(quick):
        print(*(f"{name}: {value}" for name, value in line.items()), sep="; ", flush=True)
        found.append(line)
    if not quick:
        fill(Path(page).with_suffix(".md"), "results", markdown(pd.DataFrame(found)))
