"""Ask whether a locked version has a known vulnerability.

``python release/vulnerabilities.py`` runs `pip-audit`, in an environment of its own, on requirements-dev.lock: with the
data of the package index first, and then with those of OSV. The exit code is 0 if every package was looked up and
nothing is known against it, 1 if something is, and 2 if packages could not be looked up: many mirrors of the index
offer files and no data on vulnerabilities, and then nothing was checked. `pip-audit` alone reports success then.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements-dev.lock"
SERVICES = {"pypi": "the package index", "osv": "OSV"}


def main() -> int:
    """Ask one service after the other, until one knows every package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", type=Path, default=LOCK, help="file of pinned requirements")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit"]
        subprocess.run(list(map(str, install)), check=True)
        for service, name in SERVICES.items():
            code, text = judge(look_up(python, asked.lock, service), name)
            print(text)
            if code != 2:
                return code
    return 2


def look_up(python: Path, lock: Path, service: str) -> str:
    """Return what pip-audit has found as JSON; nothing if it could not ask."""
    command = [python, "-m", "pip_audit", "--vulnerability-service", service, "--requirement", lock]
    options = ["--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off"]
    return subprocess.run([*map(str, command), *options], capture_output=True, text=True, check=False).stdout


def judge(found: str, name: str) -> tuple[int, str]:
    """Return the exit code, and a text for the terminal."""
    try:
        packages = json.loads(found)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 2, f"Not checked: {name} cannot be reached."
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    affected = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version'}"
        for package in packages
        for vulnerability in package.get("vulns", [])
    ]
    if affected:
        return 1, "\n".join(affected)
    if unknown or not packages:
        return 2, f"Not checked: {name} has no data on {len(unknown)} of {len(packages)} packages."
    return 0, f"{len(packages)} packages, no vulnerability known to {name}."


if __name__ == "__main__":
    sys.exit(main())
