"""Build wheel and sdist twice, in different places, and compare them byte by byte.

``python release/reproducible.py`` builds the last commit. The two builds differ in folder, umask, locale, time zone and
time; the date inside of the files is that of the commit (SOURCE_DATE_EPOCH). The exit code is 1 if anything differs.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
SURROUNDINGS = [
    ("first", 0o022, {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1"}),
    ("another/second", 0o077, {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}),
]


def main() -> int:
    """Build twice, and print the checksum of each file."""
    date = git("log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        builds = [build(Path(folder) / name, mask, {**other, "SOURCE_DATE_EPOCH": date})
                  for name, mask, other in SURROUNDINGS]  # fmt: skip
    for name, checksum in builds[0].items():
        print(f"{checksum}  {name}  {'same bytes twice' if builds[1].get(name) == checksum else 'DIFFERENT'}")
    return int(builds[0] != builds[1])


def build(folder: Path, mask: int, environment: dict[str, str]) -> dict[str, str]:
    """Build the last commit in a folder; return the checksums of wheel and sdist."""
    folder.mkdir(parents=True)
    old = os.umask(mask)
    try:
        with tarfile.open(fileobj=BytesIO(git("archive", "--format=tar", "HEAD"))) as archive:
            archive.extractall(folder, filter="data")
        command = [sys.executable, "-m", "build", "--quiet", str(folder)]
        subprocess.run(command, check=True, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    finally:
        os.umask(old)
    made = sorted((folder / "dist").iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


def git(*arguments: str) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main())
