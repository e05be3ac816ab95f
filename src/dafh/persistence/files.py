"""Model files that can be handed to someone who does not trust you: no pickle, nothing in them is ever run.

A file is a zip with the members

- ``card.json``: what the file says of its model;
- ``model.msgpack``: the model as plain values;
- ``arrays.npz``: its arrays;
- ``0.skops``, ``1.skops``, ...: parts of other libraries, if it has any.

The comment of the zip has the number of the format, and the SHA-256 of everything before it. Nothing is compressed: a
model is a few hundred kilobytes, and so no member is larger than the file that brings it. The checksum finds damage and
not forgery, because whoever forges a file can compute it too. Members are therefore read as if they came from an
attacker, who gains nothing but a model that predicts what they like.
"""

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.linear.scorecard import Scorecard
from dafh.persistence import card as cards
from dafh.persistence.state import MalformedError, State, pack, read_state, unpack, write_state
from dafh.storage import replacing
from dafh.text import clipped
from dafh.validation import check_path

FORMAT = 4
"""Formats 1 to 3 were written before the first release, and are no longer read."""
_EARLIER = b"dafh model "
_COMMENT = re.compile(rb"dafh model (\d{4}) ([0-9a-f]{64})")
_COMMENT_LENGTH = 80
_LARGEST_FILE = 2**30
_LARGEST_VALUES = 2**26
"""Bytes of the plain values of a model, and of its card."""
_MODELS = (DAFHClassifier, DecoupledClassifier, Scorecard)
_CARD, _VALUES, _ARRAYS = "card.json", "model.msgpack", "arrays.npz"


@dataclass(frozen=True)
class ModelFile:
    """A model and what its file says of it."""

    model: Any
    """Classifier or pipeline, fitted."""
    card: dict[str, Any]
    """Plain values, as JSON has them."""


def save(
    model: Any, path: str | Path, *, details: Mapping[str, object] | None = None, trusted: Sequence[str] = ()
) -> None:
    """Write a fitted model to a file from which `load` builds it again, without pickle.

    Parameters
    ----------
    model : fitted DAFHClassifier, DecoupledClassifier or Scorecard, or a pipeline that ends in one
    path : str or Path
        Replaced in one step: there is never a half-written file.
    details : mapping of plain values, optional
        More to say in the file's card, such as where the data came from. Dates become text, tuples lists, and numbers
        that are not finite None.
    trusted : sequence of str, optional
        Types of parts from other libraries, such as your own pooled classifier, each as "module.Class". Most of
        scikit-learn needs no naming. Whoever loads the file has to name them too.

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(400, random_state=0)
    >>> model = dafh.DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> dafh.save(model, path)
    >>> bool((dafh.load(path).predict(data.X) == model.predict(data.X)).all())
    True
    """
    content = file_content(model, details=details, trusted=trusted)
    with replacing(check_path(path)) as temporary:
        temporary.write_bytes(content)


def file_content(model: Any, *, details: Mapping[str, object] | None = None, trusted: Sequence[str] = ()) -> bytes:
    """Return what `save` writes, for whoever writes it together with something else.

    Parameters are those of `save`.
    """
    final = final_classifier(model)
    if not isinstance(final, _MODELS):
        raise InputError(
            f"A model file holds a DAFHClassifier, a DecoupledClassifier, a Scorecard or a pipeline that ends in one, "
            f"not {type(model).__name__}."
        )
    check_is_fitted(final)
    try:
        card = cards.to_bytes(cards.make_card(model, details or {}))
        state = write_state(model, trusted)
        if max(len(card), len(state.values)) > _LARGEST_VALUES or len(state.arrays) > _LARGEST_FILE:
            raise MalformedError("it is too large for a model file")
    except MalformedError as error:
        raise InputError(f"This model cannot be saved: {error}.") from error
    parts = {f"{number}.skops": part for number, part in enumerate(state.parts)}
    return _with_checksum(pack({_CARD: card, _VALUES: state.values, _ARRAYS: state.arrays, **parts}))


def _with_checksum(archive: bytes) -> bytes:
    """Put a comment behind an archive that has none."""
    # The length of the comment is the last number before it, and part of the sum.
    content = archive[:-2] + _COMMENT_LENGTH.to_bytes(2, "little")
    return content + f"dafh model {FORMAT:04} {hashlib.sha256(content).hexdigest()}".encode()


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` has written; safe with files from anywhere.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, optional
        Types of other libraries that you allow to be built, each as "module.Class". Name none that you would not
        unpickle from the same source.

    Returns
    -------
    The model as it was fitted: classifier or pipeline.

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> _ = path.write_text("anything")
    >>> dafh.load(path)
    Traceback (most recent call last):
    ...
    dafh.exceptions.InputError: ...model.dafh cannot be read: it is not a dafh model file.
    """
    return open_model(path, trusted=trusted).model


def open_model(path: str | Path, *, trusted: Sequence[str] = ()) -> ModelFile:
    """Read a model together with its card.

    Parameters are those of `load`.
    """
    content = _Content.of(_read(check_path(path)), f"{path} cannot be read")
    file = content.file(trusted)
    # Our own state does not depend on scikit-learn's version; what skops stores does.
    if content.state.parts and _minor(file.card["versions"].get("scikit-learn")) != _minor(version("scikit-learn")):
        warnings.warn(
            f"{path} was {cards.origin(file.card)}, and is read with scikit-learn {version('scikit-learn')}: compare "
            "some predictions before you rely on it.",
            OtherVersionWarning,
            stacklevel=3,
        )
    return file


def read_card(path: str | Path) -> dict[str, Any]:
    """Read what a model file says of its model; the model itself is not built, so nothing has to be trusted."""
    return _Content.of(_read(check_path(path)), f"{path} cannot be read").card


# ---- content ----


@contextmanager
def _refusing(refusal: str) -> Iterator[None]:
    """Turn everything that goes wrong with a file from anywhere into an InputError of one sentence."""
    try:
        yield
    except MalformedError as error:
        raise InputError(f"{refusal}: {error}.") from error
    except Exception as error:  # Whatever a crafted file makes of the libraries and classes that it passes through.
        reason = clipped(" ".join(str(error).split()), 120).rstrip(".")
        raise InputError(f"{refusal}: it is malformed ({type(error).__name__}: {reason}).") from error


@dataclass(frozen=True)
class _Content:
    """The members of a file."""

    card: dict[str, Any]
    state: State
    refusal: str
    """How a sentence begins that refuses the file."""

    @classmethod
    def of(cls, content: bytes, refusal: str) -> "_Content":
        """Check the checksum and take the members out; the model is not built."""
        with _refusing(refusal):
            _check(content)
            members = unpack(content)
            card, values, arrays = (members.pop(name, b"") for name in (_CARD, _VALUES, _ARRAYS))
            parts = tuple(members.pop(f"{number}.skops") for number in range(len(members)))
            if max(len(card), len(values)) > _LARGEST_VALUES:
                raise MalformedError("it is too large for a model file")
            return cls(cards.read(card), State(values, arrays, parts), refusal)

    def file(self, trusted: Sequence[str] = ()) -> ModelFile:
        """Build the model."""
        with _refusing(self.refusal):
            model = read_state(self.state, trusted)
            if not isinstance(final_classifier(model), _MODELS):
                raise MalformedError(f"its model is a {type(final_classifier(model)).__name__}, not one of dafh's")
            check_is_fitted(final_classifier(model))
            return ModelFile(model, self.card)


def _check(content: bytes) -> None:
    """Refuse what is no model file of this format, or not as it was written."""
    if not content:
        raise MalformedError("it is empty")
    if content.startswith(_EARLIER):
        raise MalformedError("it was written by an earlier version: fit and save the model again")
    if not content.startswith(b"PK"):
        raise MalformedError("it is not a dafh model file")
    comment = _COMMENT.fullmatch(content[-_COMMENT_LENGTH:])
    if comment is None:
        raise MalformedError("it was cut short, or is not a dafh model file")
    if hashlib.sha256(content[:-_COMMENT_LENGTH]).hexdigest().encode() != comment[2]:
        raise MalformedError("checksum mismatch: its content has changed since it was written")
    if int(comment[1]) > FORMAT:
        raise MalformedError("it was written by a newer dafh: upgrade to read it")
    if int(comment[1]) < FORMAT:
        raise MalformedError("it was written by an earlier version: fit and save the model again")


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file.")
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} cannot be read: it is too large for a model file.")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"There is no model file {path}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _minor(release: object) -> list[str]:
    return str(release).split(".")[:2]
