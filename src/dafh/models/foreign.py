"""Parts of a model that are of no kind of ours, such as a support vector machine as the pooled classifier.

They are stored as skops writes them, and built only if whoever loads the file has named every class and function in
them. skops would build all of scikit-learn unasked; but a class of scikit-learn with state from an attacker can make
compiled code read outside its memory, and what is safe to name is for the reader to say, not for the file.
"""

import io
import warnings
import zipfile
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import InconsistentVersionWarning

from dafh.classifiers.fitting import is_fitted
from dafh.exceptions import InputError
from dafh.models.container import LARGEST_FILE, LARGEST_TEXT, Json, MalformedError, parse
from dafh.models.description import Fields, Role, Writer
from dafh.text import clipped

# Containers and plain values. Whatever else stands in the file has to be named.
_HARMLESS = {
    f"{module}.{name}"
    for module, names in {
        "builtins": ("bool", "bytearray", "bytes", "dict", "float", "int", "list", "NoneType", "set", "str", "tuple"),
        "numpy": ("bool", "bool_", "dtype", "float32", "float64", "int32", "int64", "intp", "ndarray"),
        "collections": ("OrderedDict", "defaultdict"),
    }.items()
    for name in names
}
# What builds them. Other loaders of skops build something else, whatever class the node names.
_PLAIN_LOADERS = {
    *("BytearrayNode", "BytesNode", "DefaultDictNode", "DictNode", "DTypeNode", "JsonNode", "ListNode"),
    *("NdArrayNode", "SetNode", "TupleNode", "TypeNode"),
}
_NEEDED: dict[Role, tuple[str, ...]] = {
    "classifier": ("predict", "classes_"),
    "transformer": ("transform",),
    "partition": ("assign", "group_names_", "n_groups_"),
    "unfitted": ("fit", "get_params"),
}


def foreign_writer(trusted: Sequence[str]) -> Callable[[object, Writer], dict[str, Json]]:
    """Return a function that writes a part if all types in it are named in `trusted`."""
    import skops.io

    def write(value: object, writer: Writer) -> dict[str, Json]:
        if isinstance(value, BaseEstimator) and not is_fitted(value):
            value = clone(value)
        try:
            blob = skops.io.dumps(value)  # Without compression, see _archive.
        except Exception as error:
            raise InputError(f"{_name(value)} cannot be written without pickle: {_short(error)}.") from error
        missing = sorted(_types(blob) - {*_HARMLESS, *trusted})
        if missing:
            raise InputError(
                f"{_name(value)} is not among the parts that a model file describes by itself: name what it is made "
                f"of, save(..., trusted={missing!r}), and load it with the same list."
            )
        return {"skops": writer.array(np.frombuffer(blob, np.uint8))}

    return write


class ForeignReader:
    """Builds foreign parts if all types in them are named; remembers whether there were any."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self.trusted = trusted
        self.found = False

    def __call__(self, fields: Fields, role: Role) -> object:
        """Build a part that must have this role."""
        import skops.io

        self.found = True
        blob = fields.blob("skops")
        types = _types(blob)
        missing = sorted(types - {*_HARMLESS, *self.trusted})
        if missing:
            named = clipped(", ".join(missing[:5]), 200)
            raise MalformedError(f"it holds types that are built only if load(..., trusted=[...]) names them: {named}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InconsistentVersionWarning)  # Said once for the whole file.
                # skops asks about some of the plain values, too, such as the type of an array of categories.
                found = skops.io.loads(blob, trusted=[*self.trusted, *sorted(types & _HARMLESS)])
        except Exception as error:  # skops and the classes it builds fail in any way they like.
            raise MalformedError(f"a foreign part cannot be built ({_short(error)})") from error
        if not all(hasattr(found, name) for name in _NEEDED[role]):
            raise MalformedError(f"{_name(found)} cannot be used as a {role} here")
        return found


def _types(blob: bytes) -> set[str]:
    """Every class and function that an archive of skops names, by our own reading of its schema.

    skops is not asked, because it trusts scikit-learn's types by default, and reads arrays into memory while it looks:
    one that is named a thousand times, a thousand times.
    """
    sizes, schema = _archive(blob)
    found, taken, waiting = set(), 0, [parse(schema)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            if "__class__" in value or "__module__" in value:
                name, loader = f"{value.get('__module__')}.{value.get('__class__')}", value.get("__loader__")
                found.add(f"{name} by {loader}" if name in _HARMLESS and loader not in _PLAIN_LOADERS else name)
            taken += sizes.get(str(value.get("file")), 0)
        elif isinstance(value, list):
            waiting += value
    if taken > LARGEST_FILE:
        raise MalformedError("a foreign part would unpack to more than it holds")
    if found <= _HARMLESS:  # So nothing is given to skops unless the reader has named something.
        raise MalformedError("a foreign part holds no estimator")
    return found


def _archive(blob: bytes) -> tuple[dict[str, int], bytes]:
    """Sizes of the members of an archive, and its schema; without compression it holds what it takes."""
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            members = archive.infolist()
            packed = [m for m in members if m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size]
            sizes = {member.filename: member.file_size for member in members}
            if packed or len(sizes) < len(members) or sum(sizes.values()) > len(blob):
                raise MalformedError("a foreign part would unpack to more than it holds")
            if sizes.get("schema.json", 0) > LARGEST_TEXT:
                raise MalformedError("a foreign part is too large")
            return sizes, archive.read("schema.json")
    except MalformedError:
        raise
    except Exception as error:  # Archives can be broken in more ways than their library has names for.
        raise MalformedError("a foreign part is malformed") from error


def _name(value: object) -> str:
    return type(value).__name__


def _short(error: BaseException) -> str:
    return clipped(" ".join(str(error).split()) or type(error).__name__, 150).rstrip(".")
