"""Model files that can be handed to someone who does not trust you: no pickle, nothing in them is ever run.

A file is one line of text, ``dafh model <format> <SHA-256 of the rest>``, and a zip archive with two members:
``card.json`` says in plain words what the model is, and ``model.skops`` holds the model as a tree of named types and
arrays. `load` builds only types on a fixed list; a file that names any other is refused before anything is built. The
checksum finds damage, not forgery: whoever forges a file can compute it too, and gains nothing by it but a model that
predicts what they like. So a file is as good as where it comes from, and opening it is safe in any case.
"""

import hashlib
import io
import json
import platform
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.svm._base import BaseLibSVM
from sklearn.utils.validation import check_is_fitted

import dafh
from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard import GuardReport
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.tables.writing import replacing
from dafh.text import clipped, plain

FORMAT = 2
"""1: group classifiers without cuts. Files of all formats up to this one are read."""
_MAGIC = b"dafh model "
_LARGEST_FILE = 2**30
_LARGEST_UNPACKED = 2**26
_LARGEST_RATIO = 100
"""A file may unpack to 64 MiB, or to a hundred times its size: one that claims more is an attack on memory."""
# Everything beyond skops' own list (scikit-learn's estimators, NumPy, plain Python) that a model may be made of.
_OWN_TYPES = (
    "dafh.groups.cuts.Cuts",
    "dafh.groups.recipe.Recipe",
    "dafh.groups.serving.CorrectionModel",
    "dafh.linear.logistic.StandardizedLogisticRegression",
    "dafh.estimators.dafh.DAFHClassifier",
    "dafh.estimators.decoupled.DecoupledClassifier",
    "dafh.partitions.attributes.AttributePartition",
    "dafh.partitions.attributes.IntersectionPartition",
    "dafh.partitions.clusters.ClusterPartition",
    "dafh.partitions.controls.PooledPartition",
    "dafh.partitions.controls.RandomPartition",
    "dafh.partitions.tree.Node",
    "dafh.partitions.tree.TreePartition",
    "dafh.tables.encoder.TableEncoder",
    "dafh.tables.encoder.CategoryColumn",
    "dafh.tables.encoder.NumberColumn",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
)
_KIND = "dafh kind"
"""Key by which a table or report that was taken apart is recognised."""
_PACKAGES = ("scikit-learn", "numpy", "scipy", "skops")


@dataclass(frozen=True)
class ModelFile:
    """A model and what its file says of it."""

    model: Any
    card: dict[str, Any]


def save(
    model: Any, path: str | Path, *, details: Mapping[str, Any] | None = None, trusted: Sequence[str] = ()
) -> None:
    """Write a fitted model to a file from which `load` builds it again, without pickle.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one
    path : str or Path
        Replaced in one step: there is never a half-written file.
    details : mapping of plain values, optional
        More to say in the file's card, such as where the data came from.
    trusted : sequence of str, optional
        Types beyond the built-in list that the model is made of, such as the class of a pooled classifier of your own.
        Whoever loads the file has to name them too.

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
    import skops.io

    path = Path(path)
    _check_kind(model)
    check_is_fitted(_final(model))
    card = _card(model, details or {})
    try:
        tree = skops.io.dumps(_packed(model), compression=zipfile.ZIP_DEFLATED)
        strange = sorted(set(skops.io.get_untrusted_types(data=tree)) - {*_OWN_TYPES, *trusted})
    except Exception as error:
        raise InputError(f"This model cannot be written without pickle: {_short(error)}.") from error
    if strange:
        raise InputError(
            f"The model is made of {strange[0]}, which load() does not build unless told: "
            f"save(..., trusted={strange!r}) and load(..., trusted=...) with the same list."
        )
    payload = io.BytesIO()
    with zipfile.ZipFile(payload, "w") as archive:
        archive.writestr("card.json", json.dumps(card, ensure_ascii=False, indent=1))
        archive.writestr("model.skops", tree)
    content = payload.getvalue()
    with replacing(path) as temporary:
        temporary.write_bytes(_first_line(content) + content)


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` has written; safe with files from anywhere.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, optional
        Types beyond the built-in list that you allow to be built, each as "module.Class".

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
    dafh.exceptions.InputError: ...model.dafh is not a dafh model file.
    """
    return open_model(path, trusted=trusted).model


def open_model(path: str | Path, *, trusted: Sequence[str] = ()) -> ModelFile:
    """Read a model together with its card."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    card, tree = _read(Path(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # Said below, once and in one sentence.
            model = _unpacked(skops.io.loads(tree, trusted=[*_OWN_TYPES, *trusted]))
            _check_kind(model)
            _check_fitted(_final(model))
            _check_compiled_parts(model, trusted)
    except UntrustedTypesFoundException as error:
        named = ", ".join(sorted(map(str, error.unsafe_types))) if hasattr(error, "unsafe_types") else _short(error)
        raise InputError(f"{path} asks for types that a model has no need of ({named}): it is refused.") from error
    except Exception as error:
        raise InputError(f"{path} cannot be read: {_short(error)}; {_origin(card)}.") from error
    if _minor(card["versions"].get("scikit-learn", "")) != _minor(version("scikit-learn")):
        warnings.warn(
            f"{path} was {_origin(card)}, and is read with scikit-learn {version('scikit-learn')}: compare some "
            "predictions before you rely on it.",
            OtherVersionWarning,
            stacklevel=3,
        )
    return ModelFile(model, card)


def read_card(path: str | Path) -> dict[str, Any]:
    """Read what a model file says of its model; the model itself is not built."""
    return _read(Path(path))[0]


def _first_line(content: bytes, number: int = FORMAT) -> bytes:
    """Name, format and checksum; since format 2 the number itself is in the sum, so that no bit can be changed."""
    checksum = hashlib.sha256(b"" if number == 1 else b"%d " % number)
    checksum.update(content)
    return _MAGIC + f"{number} {checksum.hexdigest()}\n".encode()


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Card and model of a file, checked for damage."""
    line, payload = _content(path)
    words = line.removeprefix(_MAGIC).split(b" ")
    if not line and not payload:
        raise InputError(f"{path} is empty.")
    if not line.startswith(_MAGIC) or len(words) != 2 or not words[0].isdigit() or len(words[0]) > 9:
        raise InputError(f"{path} is not a dafh model file.")
    if int(words[0]) > FORMAT:
        raise InputError(f"{path} was written by a newer dafh than this one ({dafh.__version__}): upgrade to read it.")
    if line + b"\n" != _first_line(payload, int(words[0])):
        raise InputError(f"{path} is damaged: its content has changed since it was written.")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            _check_size(archive, len(payload))
            card, tree = json.loads(archive.read("card.json"), parse_constant=_no_number), archive.read("model.skops")
        with zipfile.ZipFile(io.BytesIO(tree)) as archive:
            _check_size(archive, len(payload))
        _check_card(card)
    except Exception as error:  # Archives can be broken in more ways than their libraries have names for.
        raise InputError(f"{path} is not a dafh model file: {_short(error)}.") from error
    return card, tree


def _content(path: Path) -> tuple[bytes, bytes]:
    """First line of a file, and the rest."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file.")
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} is too large for a model file.")
        line, _, payload = path.read_bytes().partition(b"\n")
    except FileNotFoundError as error:
        raise InputError(f"There is no model file {path}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return line, payload


def _no_number(word: str) -> Any:
    raise ValueError(f"its card holds {word}")


def _check_size(archive: zipfile.ZipFile, packed: int) -> None:
    if sum(member.file_size for member in archive.infolist()) > max(_LARGEST_UNPACKED, _LARGEST_RATIO * packed):
        raise ValueError("it would unpack to far more than it holds")


_CARD = {
    "dafh": str, "written": str, "versions": dict, "model": str, "settings": dict, "labels": list, "groups": int,
    "served_by": list, "pooled": str, "columns": list,
}  # fmt: skip
_CARD_DETAILS = {
    "data": str, "rows": int, "rows_kept_back": int, "schema": dict, "fingerprints": list, "guesses": list,
    "guard": dict,
}  # fmt: skip


def _check_card(card: Any) -> None:
    """Refuse a card that is not made as `_card` makes it: whoever shows it relies on that."""
    sound = (
        isinstance(card, dict)
        and all(isinstance(card.get(name), kind) for name, kind in _CARD.items())
        and all(isinstance(card[n], kind) for n, kind in _CARD_DETAILS.items() if card.get(n) is not None)
        and all(isinstance(column, dict) and {"name", "type"} <= set(column) for column in card["columns"])
        and isinstance((card.get("guard") or {}).get("summary", ""), str)
        and all(isinstance(entry, str) for name in ("fingerprints", "guesses") for entry in card.get(name) or [])
    )
    if not sound:
        raise ValueError("its card is no card")
    json.dumps(card, ensure_ascii=False).encode()  # Halves of letters cannot be shown.


def _short(error: BaseException) -> str:
    return clipped(" ".join(str(error).split()) or type(error).__name__, 200).rstrip(".")


def _origin(card: dict[str, Any]) -> str:
    return f"written with dafh {clipped(card['dafh'])} and scikit-learn {clipped(card['versions'].get('scikit-learn'))}"


def _minor(release: Any) -> list[str]:
    return str(release).split(".")[:2]


def _card(model: Any, details: Mapping[str, Any]) -> dict[str, Any]:
    final = _final(model)
    report = final.guard_report_
    return {
        "dafh": dafh.__version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
        "model": type(final).__name__,
        "settings": plain(_changed(final)),
        "labels": plain(final.classes_),
        "groups": int(final.n_groups_),
        "served_by": ["pooled" if s == final.n_groups_ else int(s) for s in final.serves_],
        "pooled": type(final.pooled_).__name__,
        "columns": _columns(model, details),
        "guard": None
        if report is None
        else {"summary": report.sentence(), "table": plain(report.table.reset_index().to_dict("records"))},
        **details,
    }


def _changed(estimator: Any) -> dict[str, Any]:
    """Parameters that differ from the default, by what they look like; how much is printed is none of the model."""
    given, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return {name: v for name, v in given.items() if repr(v) != repr(default[name]) and name != "verbose"}


def _columns(model: Any, details: Mapping[str, Any]) -> list[dict[str, str]]:
    """Names and types of the columns that the model takes: a fingerprint of the data without any of its rows."""
    if "schema" in details:
        return [{"name": name, "type": kind} for name, kind in details["schema"]["features"].items()]
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", [f"column {i}" for i in range(first.n_features_in_)])
    kinds = {column.name: column.kind for column in getattr(first, "columns_", [])}
    return [{"name": str(name), "type": kinds.get(name, "number")} for name in names]


def _final(model: Any) -> Any:
    return final_classifier(model)


def _check_kind(model: Any) -> None:
    if not isinstance(_final(model), DAFHClassifier | DecoupledClassifier):
        raise InputError(
            f"A model file holds a DAFHClassifier, a DecoupledClassifier or a pipeline that ends in one, not "
            f"{type(model).__name__}."
        )


def _packed(model: Any) -> Any:
    if isinstance(model, Pipeline):
        steps = [*model.steps[:-1], (model.steps[-1][0], _packed(model[-1]))]
        packed = copy(model)
        packed.steps = steps
        return packed
    packed = copy(model)
    vars(packed).update({name: _pack(value) for name, value in vars(model).items()})
    return packed


def _pack(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        columns = {str(name): column.to_numpy() for name, column in value.items()}
        return {_KIND: "frame", "columns": columns, "index": value.index.to_numpy(), "index_name": value.index.name}
    if isinstance(value, GuardReport):
        return {_KIND: "report", **{entry.name: _pack(getattr(value, entry.name)) for entry in fields(value)}}
    return value


def _unpacked(model: Any) -> Any:
    final = _final(model)
    vars(final).update({name: _unpack(value) for name, value in vars(final).items()})
    return model


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict) or _KIND not in value:
        return value
    if value[_KIND] == "frame":
        return pd.DataFrame(value["columns"], index=pd.Index(value["index"], name=value["index_name"]))
    return GuardReport(**{name: _unpack(part) for name, part in value.items() if name != _KIND})


def _check_fitted(final: Any) -> None:
    """Refuse a model that lacks what every command asks of it."""
    n_groups = int(final.n_groups_)
    if len(np.unique(final.classes_)) < 2 or np.shape(final.serves_) != (n_groups,):
        raise ValueError("its model is not complete")
    if not ((final.serves_ >= 0) & (final.serves_ <= n_groups)).all() or not hasattr(final, "pooled_"):
        raise ValueError("its model is not complete")
    cuts = getattr(vars(final).get("_model"), "cuts", None)
    if cuts is not None and not ((cuts.column >= 0) & (cuts.column < final.n_features_in_)).all():
        raise ValueError("its model cuts columns that it does not have")


def _check_compiled_parts(model: Any, trusted: Sequence[str]) -> None:
    """Refuse parts that compiled code would follow out of their own memory.

    Trees of gradient boosting must point downwards, at nodes and columns that they have: the number of columns is what
    their own booster checks its rows by. Support vectors are not checked by anybody.
    """
    parts = list(_parts(model, set()))
    sound = set()
    boosters = (part for part in parts if isinstance(part, BaseHistGradientBoosting))
    for booster in (part for part in boosters if "_predictors" in vars(part)):  # Others are not fitted.
        n_features = int(vars(booster)["n_features_in_"])
        trees = [tree for stage in booster._predictors for tree in stage]
        if not all(_is_sound_tree(tree.nodes, n_features) for tree in trees):
            raise ValueError("a tree in it points outside itself")
        sound |= {id(tree) for tree in trees}
    if any(type(part).__name__ == "TreePredictor" and id(part) not in sound for part in parts):
        raise ValueError("a tree in it belongs to nobody")
    machines = {f"{type(part).__module__}.{type(part).__name__}" for part in parts if isinstance(part, BaseLibSVM)}
    if machines - set(trusted):
        raise ValueError(f"{sorted(machines)[0]} is built only if named in trusted")


def _is_sound_tree(nodes: Any, n_features: int) -> bool:
    inner = np.flatnonzero(~nodes["is_leaf"].astype(bool))
    children = np.column_stack([nodes["left"][inner], nodes["right"][inner]]).astype(np.int64)
    columns = nodes["feature_idx"][inner].astype(np.int64)
    return bool(
        len(nodes)
        and ((children > inner[:, None]) & (children < len(nodes))).all()
        and ((columns >= 0) & (columns < n_features)).all()
        and not nodes["is_categorical"].any()
    )


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Everything that a model is made of."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | None):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, Mapping):
        inside: Any = value.values()
    elif isinstance(value, list | tuple | set):
        inside = value
    elif isinstance(value, np.ndarray):
        inside = value.ravel() if value.dtype == object else ()
    else:
        inside = vars(value).values() if hasattr(value, "__dict__") else ()
    for part in inside:
        yield from _parts(part, seen)
