"""Places in hand-written pages that a study fills: no number is typed by hand."""

from pathlib import Path

from dafh.exceptions import InputError
from dafh.storage.replacing import replacing


def fill(file: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name: begin -->`` and ``<!-- name: end -->``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = file.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise InputError(f"{file} has no place for the results: a line {begin} and a line {end}.")
    with replacing(file) as temporary:
        temporary.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
