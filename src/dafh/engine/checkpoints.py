"""The state of a training run in a file of plain arrays, from which a second run goes on."""

from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zipfile import ZIP_STORED, ZipFile

import jax
import numpy as np
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.storage import replacing

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


def load_checkpoint(path: Path, about: str, start: State, most_steps: int | None = None) -> tuple[State, int]:
    """Read a state with its number of steps; the start and 0 where the file has none of this training.

    A file that is cut short, of another form or of another training is no reason to stop: it is overwritten by the next
    checkpoint. So is one with weights that are no numbers, or with more steps than `most_steps`.
    """
    leaves, structure = jax.tree.flatten(start)
    try:
        # Opened here, because NumPy leaves a file open that is cut short.
        with open(path, "rb") as raw:
            _check_archive(raw)
            with np.load(raw, allow_pickle=False) as file:
                if str(file["about"]) != about:
                    return start, 0
                found = [file[f"leaf_{number}"] for number in range(len(leaves))]
                n_steps = _n_steps(file["n_steps"], most_steps)
    except Exception:  # Of a file of any form, zipfile and NumPy raise a dozen kinds, RuntimeError and TokenError too.
        return start, 0
    if not all(_fits(new, old) for new, old in zip(found, leaves, strict=True)):
        return start, 0
    return jax.tree.unflatten(structure, found), n_steps


def _check_archive(raw: BinaryIO) -> None:
    """Refuse packed arrays, which `save_checkpoint` never writes: 1.6 MB of them may unpack to 1.6 GB."""
    with ZipFile(raw) as archive:
        if any(one.compress_type != ZIP_STORED for one in archive.infolist()):
            raise ValueError("its arrays are packed")
    raw.seek(0)


def _n_steps(value: NDArray[Any], most: int | None) -> int:
    if value.shape != () or value.dtype.kind not in "iu" or value < 0 or (most is not None and value > most):
        raise ValueError("it does not say how many steps were done")
    return int(value)


def _fits(new: NDArray[Any], old: Any) -> bool:
    if new.shape != np.shape(old) or new.dtype != old.dtype:
        return False
    return new.dtype.kind != "f" or not np.isnan(new).any()
