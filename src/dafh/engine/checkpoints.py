"""The state of a training run in a file of plain arrays, from which a second run goes on."""

from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import jax
import numpy as np

from dafh.exceptions import InputError
from dafh.storage.replacing import replacing

State = TypeVar("State")


def save_checkpoint(path: Path, about: str, state: Any, n_steps: int) -> None:
    """Write a state, a tree of arrays; whatever interrupts this, the file has the state before or this one.

    Parameters
    ----------
    path : Path
    about : str
        What is trained on what.
    n_steps : int
        Steps that have led to the state.
    """
    leaves = {f"leaf_{number}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=np.array(about), n_steps=np.array(n_steps), **leaves)
    except OSError as error:
        raise InputError(f"The checkpoint {path} cannot be written: {error.strerror or error}.") from error


def load_checkpoint(path: Path, about: str, start: State) -> tuple[State, int]:
    """Read a state with its number of steps; the start and 0 where the file has none of this training.

    A file that is cut short or of another training is no reason to stop: it is overwritten by the next checkpoint.
    """
    leaves, structure = jax.tree.flatten(start)
    try:
        # Opened here, because NumPy leaves a file open that is cut short.
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            if str(file["about"]) != about:
                return start, 0
            found = [file[f"leaf_{number}"] for number in range(len(leaves))]
            n_steps = int(file["n_steps"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return start, 0
    if any(new.shape != np.shape(old) or new.dtype != old.dtype for new, old in zip(found, leaves, strict=True)):
        return start, 0
    return jax.tree.unflatten(structure, found), n_steps
