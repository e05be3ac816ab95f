"""Install what `make dist` has built into clean environments, and run the README's commands there.

``python release/install_matrix.py`` tries wheel and sdist with the newest and with the lowest versions that pyproject
allows, on the Python that runs it, and prints a line of a table for each. It needs the standard library only, so that
any Python can run it: ``--dist`` names the folder with the files, ``--only wheel-lowest`` tries one line.
"""

import argparse
import email
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {"wheel-newest": "*.whl", "wheel-lowest": "*.whl", "sdist-newest": "*.tar.gz"}
WATCHED = ["numpy", "scipy", "pandas", "scikit-learn", "jax", "pyarrow"]
HEADER = "| Python | what | versions | seconds to install | seconds from CSV to the report | |"


def main() -> int:
    """Try every kind asked for; the exit code is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder with wheel and sdist")
    parser.add_argument("--only", choices=KINDS, action="append", help="one of the lines")
    asked = parser.parse_args()
    print(HEADER, "|---" * 6 + "|", sep="\n", flush=True)
    failed = 0
    for kind in asked.only or KINDS:
        line, error = try_out(kind, asked.dist)
        print(line, flush=True)
        if error:
            failed = 1
            print(error, file=sys.stderr)
    return failed


def try_out(kind: str, dist: Path) -> tuple[str, str]:
    """Install and run; return a line of the table, and what went wrong."""
    (file,) = dist.glob(KINDS[kind])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        limits = []
        if kind.endswith("lowest"):
            (folder / "lowest.txt").write_text("\n".join(lowest(next(dist.glob("*.whl")))))
            limits = ["--constraint", folder / "lowest.txt"]
        start, error = time.monotonic(), ""
        try:
            run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file, *limits], folder)
            installed = time.monotonic()
            commands = readme_commands()
            (fit,) = (command for command in commands if command[1] == "fit")
            for command in commands:
                run([folder / "venv" / "bin" / command[0], *command[1:]], folder)
            done = time.monotonic()
            # A second time, with what the first has compiled: old versions of JAX crashed here.
            run([folder / "venv" / "bin" / fit[0], *fit[1:]], folder)
            report = folder / "report.html"
            assert report.stat().st_size > 100_000, "the report is empty"
            seconds = f"{installed - start:.0f} | {done - installed:.0f} | works"
        except subprocess.CalledProcessError as caught:
            error = caught.stderr.decode(errors="replace") + f"exit code {caught.returncode}"
            seconds = f"– | – | {error.strip().splitlines()[-1][:120]}"
        versions = found_versions(python)
        return f"| {platform.python_version()} | {kind.replace('-', ', ')} | {versions} | {seconds} |", error


def lowest(wheel: Path) -> list[str]:
    """Return the lower bounds that a wheel declares for what everybody needs, as exact versions."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    return [re.sub(r"\s*>=\s*", "==", line.split(";")[0].split(",")[0].strip()) for line in needed]


def readme_commands() -> list[list[str]]:
    """Return the commands from a table to a report, as the README shows them."""
    (block,) = re.findall(r"^```shell\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return [line.split() for line in block.splitlines()]


def found_versions(python: Path) -> str:
    """Versions of the larger packages that were installed."""
    code = "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    return subprocess.run([python, "-c", code, *WATCHED], capture_output=True, text=True, check=False).stdout.strip()


def run(command: list[object], folder: Path) -> None:
    """Run a command outside of the clone, so that nothing but the environment can be imported."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean["DAFH_COMPILATION_CACHE"] = str(folder / "compiled")
    subprocess.run([str(part) for part in command], cwd=folder, env=clean, capture_output=True, check=True)


if __name__ == "__main__":
    sys.exit(main())
