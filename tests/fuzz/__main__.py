"""``make fuzz``: ten minutes of hostile input, or as many cases as asked for.

Goes on where the last run with the same seed ended. Every failure is made smaller, printed and written to
``.fuzz/failures``; once it is understood, it belongs into ``tests/fuzz/corpus``. Exit code 1 if anything failed.
"""

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

from fuzz.cases import Case, Outcome
from fuzz.kinds import KINDS
from fuzz.running import Progress, run_kind

# Shares of the time. Tables and model files are what comes from strangers most often.
_SHARES = {"tables": 0.5, "states": 0.2, "exports": 0.15, "calls": 0.15}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; by default all")
    parser.add_argument("--seconds", type=float, default=600, help="time for all kinds together (600)")
    parser.add_argument("--cases", type=int, help="cases of each kind, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"), help="where progress and failures are kept")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    options = parser.parse_args()
    unknown = [name for name in options.kinds if name not in KINDS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]}: choose from {', '.join(KINDS)}")
    chosen = options.kinds or list(KINDS)
    progress_file = options.folder / "progress.json"
    if options.fresh:
        progress_file.unlink(missing_ok=True)
    progress = Progress.open(progress_file, options.seed)
    for name in chosen:
        seconds = options.seconds * _SHARES[name] / sum(_SHARES[one] for one in chosen)
        end = time.monotonic() + seconds

        def enough(number: int, end: float = end) -> bool:
            return number >= options.cases if options.cases is not None else time.monotonic() >= end

        def failed(case: Case, outcome: Outcome, name: str = name) -> None:
            _keep(options.folder / "failures", name, case, outcome)

        run_kind(KINDS[name], progress, enough, failed)
        print(f"{name}: {progress.counts.get(name, {})!s}".replace("Counter", ""), flush=True)
    print(progress.table())
    return int(progress.n_failures > 0)


def _keep(folder: Path, name: str, case: Case, outcome: Outcome) -> None:
    """Print a failure, and write it to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(case, indent=1)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"
    path.write_text(text)
    shown = text if len(text) < 3_000 else f"{text[:3_000]} …"
    print(
        f"\n{outcome.what.upper()} ({name}, {outcome.seconds:.1f} s): {outcome.error}\n{shown}\nkept in {path}\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
