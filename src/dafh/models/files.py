"""Model files that can be handed to someone who does not trust you: no pickle, nothing in them is ever run.

`save` describes a model by plain values and arrays, and `load` builds it from a short list of kinds, each with code of
our own that checks what it builds. The checksum finds damage, not forgery: whoever forges a file can compute it too,
and gains nothing by it but a model that predicts what they like. So a file is as good as where it comes from, and
opening it is safe in any case.
"""

import io
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from dafh.checks.parameters import check_path
from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.linear.scorecard import Scorecard
from dafh.models import card as cards
from dafh.models.container import Arrays, Content, MalformedError, parse, read_content
from dafh.models.description import Fields, NotPlainError, Reader, Writer
from dafh.models.foreign import ForeignReader, foreign_writer
from dafh.models.kinds import KINDS
from dafh.storage import replacing

_MODELS = (DAFHClassifier, DecoupledClassifier, Scorecard)


@dataclass(frozen=True)
class ModelFile:
    """A model and what its file says of it.

    Examples
    --------
    >>> ModelFile(model=None, card={"labels": ["no", "yes"]}).card["labels"]
    ['no', 'yes']
    """

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
        Types of parts that a model file does not describe by itself, such as a pooled classifier of your own, each as
        "module.Class". Whoever loads the file has to name them too.

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

    Examples
    --------
    >>> import dafh
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(400, random_state=0)
    >>> file_content(dafh.DecoupledClassifier(random_state=0).fit(data.X, data.y))[:4]
    b'dafh'
    """
    final = final_classifier(model)
    if not isinstance(final, _MODELS):
        raise InputError(
            f"A model file holds a DAFHClassifier, a DecoupledClassifier, a Scorecard or a pipeline that ends in one, "
            f"not {type(model).__name__}."
        )
    check_is_fitted(final)
    try:
        card = cards.make_card(model, details or {})
        content = Content(cards.to_bytes(card), *content_of_model(model, trusted=trusted)).to_bytes()
        # Read before it is written: limits and checks are those of `load`, so that nobody is left with a file that
        # cannot be opened.
        _build(read_content(io.BytesIO(content), len(content)), ForeignReader(trusted))
    except (MalformedError, NotPlainError, UnicodeEncodeError) as error:
        raise InputError(f"This model cannot be saved: {error}.") from error
    return content


def content_of_model(model: Any, *, trusted: Sequence[str] = ()) -> tuple[bytes, bytes]:
    """Return the description and the arrays of a model: all that its file says but for the card."""
    writer = Writer(KINDS, foreign_writer(trusted))
    described = writer.part(model, "classifier")
    description = {"arrays": writer.arrays.table, "column_names": writer.names, "model": described}
    return json.dumps(description, ensure_ascii=False, allow_nan=False).encode(), writer.arrays.to_bytes()


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` has written; safe with files from anywhere.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, optional
        Types that you allow to be built beyond what a model file describes by itself, each as "module.Class". Name
        none that you would not unpickle from the same source.

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

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(400, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> dafh.save(dafh.DecoupledClassifier(random_state=0).fit(data.X, data.y), path, details={"data": "synthetic"})
    >>> file = open_model(path)
    >>> file.model.n_groups_, file.card["data"]
    (2, 'synthetic')
    """
    foreign = ForeignReader(trusted)
    content = _read(check_path(path))
    try:
        file = _build(content, foreign)
    except MalformedError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    # Our own arrays do not depend on scikit-learn's version; what skops stores does.
    if foreign.found and _minor(file.card["versions"].get("scikit-learn")) != _minor(version("scikit-learn")):
        warnings.warn(
            f"{path} was {cards.origin(file.card)}, and is read with scikit-learn {version('scikit-learn')}: compare "
            "some predictions before you rely on it.",
            OtherVersionWarning,
            stacklevel=3,
        )
    return file


def read_card(path: str | Path) -> dict[str, Any]:
    """Read what a model file says of its model; the model itself is not built, so nothing has to be trusted.

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(400, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> dafh.save(dafh.DecoupledClassifier(random_state=0).fit(data.X, data.y), path)
    >>> card = read_card(path)
    >>> card["model"], card["pooled"], card["groups"]
    ('DecoupledClassifier', 'StandardizedLogisticRegression', 2)
    """
    try:
        return cards.read(_read(check_path(path)).card)
    except MalformedError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def card_of(content: bytes) -> dict[str, Any]:
    """Return the card of what `file_content` has made."""
    return cards.read(read_content(io.BytesIO(content), len(content)).card)


def model_of(content: bytes) -> ModelFile:
    """Build the model of what `file_content` has made, or of what someone says that it has made."""
    try:
        return _build(read_content(io.BytesIO(content), len(content)), ForeignReader(()))
    except MalformedError as error:
        raise InputError(f"This is no model: {error}.") from error


def _read(path: Path) -> Content:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file.")
        with path.open("rb") as file:
            return read_content(file, path.stat().st_size)
    except FileNotFoundError as error:
        raise InputError(f"There is no model file {path}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except MalformedError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def _build(content: Content, foreign: ForeignReader) -> ModelFile:
    """Build the model of a file, with its card."""
    card = cards.read(content.card)
    description = parse(content.description)
    if not isinstance(description, dict):
        raise MalformedError("its description is malformed")
    arrays = Arrays(description.pop("arrays", None), content.arrays)
    reader = Reader(KINDS, arrays, description.pop("column_names", None), foreign)
    fields = Fields(description, "its description", reader)
    model = fields.part("model", "classifier")
    fields.close()
    arrays.check_all_taken()
    if not isinstance(final_classifier(model), _MODELS):
        raise MalformedError(f"its model is a {type(final_classifier(model)).__name__}, not one of dafh's")
    return ModelFile(model, card)


def _minor(release: object) -> list[str]:
    return str(release).split(".")[:2]
