"""Files that are written whole or not at all.

`replacing` writes beside a file and takes its place at the end; `leftovers` finds what killed processes have left, by
locks that end with their process, and removes it; `nameless` opens temporary files that leave nothing; `tables` refuses
databases that hold more than we have made. Every command writes through these or through SQLite; a new kind of output
does the same, and gets a line in `tests/killing`.
"""
