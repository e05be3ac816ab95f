"""Model files without pickle.

- `files`: write, read and check a file, with its card.
"""

from dafh.models.files import ModelFile, load, open_model, read_card, save

__all__ = ["ModelFile", "load", "open_model", "read_card", "save"]
