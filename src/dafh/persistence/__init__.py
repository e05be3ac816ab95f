"""Model files: the fitted state as typed plain values and arrays in one zip, without pickle.

- `files`: save and load; the members of a file, their limits and the checksum;
- `card`: what a file says of its model in plain words;
- `state`: objects of dafh as plain values and arrays, and back; parts of other libraries by skops.

A field that is added to a class needs no change here. A new class that a fitted model may hold is one line in
`state.CLASSES`. What changes the meaning of an older file raises `files.FORMAT`.
"""

from dafh.persistence.files import load, save

__all__ = ["load", "save"]
