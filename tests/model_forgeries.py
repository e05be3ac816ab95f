"""What an attacker would write into a model file, as changes of a valid one, and what should be said of it."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.linear_model import LogisticRegression

from model_files import find

# Each change takes the parts of a valid file and leaves a forged one.


def entry(kind, name, value):
    """Set an entry of the first part of a kind."""

    def change(parts):
        find(parts.model, kind)[name] = value

    return change


def setting(kind, name, value):
    def change(parts):
        find(parts.model, kind)["settings"][name] = value

    return change


def cells(kind, name, at, value):
    """Set some cells of an array of the first part of a kind."""

    def change(parts):
        number = find(parts.model, kind)[name]
        array = parts.array(number)
        array[at] = value
        parts.set_array(number, array)

    return change


def table_entry(dtype, shape):
    """Declare the first array to be something else than it is."""

    def change(parts):
        parts.table[0] = [dtype, shape]

    return change


def add_array(parts, array, dtype):
    parts.table.append(None)
    parts.arrays.append(b"")
    parts.set_array(len(parts.table) - 1, array, dtype)
    return len(parts.table) - 1


def one_array_for_all(parts):
    node = find(parts.model, "boosted trees")
    for name in ("value", "threshold", "column", "gaps_left"):
        node[name] = node["value"]


def one_layer_thirty_times(parts):
    network = find(parts.model, "network")
    network["group"] = network["group"][:1] * 30


def one_chain(parts):
    """A boosted tree whose inner nodes hang below each other, a hundred thousand of them."""
    n = 200_001
    node = find(parts.model, "boosted trees")
    left = np.where(np.arange(n) % 2, 0, np.arange(n) + 1)
    children = np.column_stack([left, np.where(left, np.minimum(left + 1, n - 1), 0)])
    children[-1] = 0
    arrays = {"children": children, "column": np.zeros(n, int), "threshold": np.zeros(n), "value": np.zeros(n)}
    for name, array in {**arrays, "gaps_left": np.zeros(n, bool), "roots": np.zeros(1, int)}.items():
        parts.set_array(node[name], array)


def wide_layer(parts):
    group = find(parts.model, "network")["group"]
    n_inputs = parts.table[group[0][0]][1][0]
    parts.set_array(group[0][0], np.zeros((n_inputs, 20_000)))
    parts.set_array(group[0][1], np.zeros(20_000))
    parts.set_array(group[1][0], np.zeros((20_000, 2)))


def labels_of(parts):
    return find(parts.model, "dafh classifier")["labels"]


def wide_labels(parts):
    """One label of 200,000 letters, and 10,000 short ones that would be padded to as many."""
    labels_of(parts)["values"] = [f"a{i:05}" for i in range(9_999)] + ["b" * 200_000]


def report(change_report):
    def change(parts):
        change_report(find(parts.model, "dafh classifier")["guard_report"], parts)

    return change


def unknown_server(node, parts):
    parts.set_array(node["serves"], np.array([0, 7]))


def node(number, **changes):
    def change(parts):
        find(parts.model, "tree")["nodes"][number].update(changes)

    return change


def deep_tree(parts):
    chain = [{"code": i - 1, "attribute": "a", "values": ["v"], "children": [i + 1]} for i in range(5000)]
    leaf = {"code": 4999, "attribute": None, "values": [], "children": []}
    find(parts.model, "tree")["nodes"] = [*chain, leaf]


def long_names(parts):
    """A tree whose thousands of groups all repeat one long value."""
    n = 9000
    leaf = {"attribute": None, "values": [], "children": []}
    find(parts.model, "tree")["nodes"] = [
        {"code": -1, "attribute": "a", "values": ["v" * 200_000], "children": [1]},
        {"code": n, "attribute": "b", "values": list(range(n)), "children": list(range(2, n + 2))},
        *({**leaf, "code": code} for code in range(n)),
    ]


def long_combinations(parts):
    found = find(parts.model, "combinations")
    found["attributes"], found["values"] = ["a" * 200_000, "b"], [[0] * 9000, list(range(9000))]


def long_column_names(parts):
    encoder = find(parts.model, "table encoder")
    column = {"name": "n" * 200_000, "categories": [str(i) for i in range(999)], "has_other": False}
    encoder["columns"] = [column]


def blob(content):
    def change(parts):
        number = find(parts.model, "foreign")["skops"]
        parts.set_array(number, np.frombuffer(content(parts.arrays[number]), np.uint8), "bytes")

    return change


def repacked(archive, compression=zipfile.ZIP_STORED, **members):
    """An archive with other members."""
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        content = {name: old.read(name) for name in old.namelist()} | {
            name.replace("_json", ".json"): data for name, data in members.items()
        }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as new:
        for name, data in content.items():
            new.writestr(name, data)
    return packed.getvalue()


def zips_in_zips(archive):
    inner = b"\0" * 10**8
    for _ in range(3):
        inner = repacked(archive, zipfile.ZIP_DEFLATED, inner=inner)
    return inner


def declared_huge(archive):
    """An archive without compression whose first member claims to be of a gigabyte."""
    at = archive.rindex(b"PK\x01\x02")
    return archive[: at + 20] + (2**30).to_bytes(4, "little") * 2 + archive[at + 28 :]


def hidden_call(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        schema = json.loads(old.read("schema.json"))
    schema["content"]["content"]["kernel"] = {
        "__class__": "system",
        "__module__": "posix",
        "__loader__": "FunctionNode",
    }
    return repacked(archive, schema_json=json.dumps(schema).encode())


def disguised(archive):
    """A sparse matrix that says it is a dictionary."""
    return repacked(
        archive, schema_json=b'{"__class__": "dict", "__module__": "builtins", "__loader__": "SparseMatrixNode"}'
    )


def nested(parts):
    """A model whose pooled classifier is a model whose pooled classifier is a model, and so on."""
    inner = json.dumps(parts.model)
    for _ in range(20):
        parts.model["pooled_classifier"] = json.loads(inner)
        inner = json.dumps(parts.model)


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return (Path.touch, (Path("sprung"),))


POINTS, UNKNOWN = "points outside", "has an unknown entry"
FORGERIES = {
    # Indices that compiled code would follow.
    "sparse coefficients": (
        "pipeline", entry("logistic regression", "coefficients", {"indices": [10**9], "indptr": [0, 1]}), "used twice"),
    "coefficients of other columns": (
        "dafh", lambda p: p.set_array(find(p.model, "default logistic regression")["coefficients"], np.zeros((1, 99))),
        "does not fit"),
    "child outside": ("boosting", cells("boosted trees", "children", (0, 0), 10**9), POINTS),
    "child before its parent": ("boosting", cells("boosted trees", "children", (2, 1), 1), POINTS),
    "child of another tree": ("boosting", lambda p: cells("boosted trees", "children", (0, 1), len(p.array(
        find(p.model, "boosted trees")["value"])) - 1)(p), POINTS),
    "negative child": ("boosting", cells("boosted trees", "children", (0, 1), -5), POINTS),
    "column outside": ("boosting", cells("boosted trees", "column", 0, 7), POINTS),
    "root outside": ("boosting", cells("boosted trees", "roots", 1, 10**6), POINTS),
    "infinite leaf": ("boosting", cells("boosted trees", "value", 1, np.inf), "not finite"),
    "threshold that is none": ("boosting", cells("boosted trees", "threshold", 0, np.nan), "not finite"),
    "chain of nodes": ("boosting", one_chain, "boosted tree is malformed"),
    "server outside": ("dafh", report(unknown_server), POINTS),
    # Attributes that nobody asked for.
    "preprocessor": ("boosting", entry("boosted trees", "_preprocessor", {"kind": "pipeline"}), UNKNOWN),
    "in fit": ("boosting", entry("boosted trees", "_in_fit", True), UNKNOWN),
    "cache of a pipeline": ("pipeline", entry("pipeline", "memory", "/tmp/cache"), UNKNOWN),
    "worker processes": ("pipeline", setting("logistic regression", "n_jobs", -1), "not read from files"),
    "warm start": ("pipeline", setting("logistic regression", "warm_start", True), "not read from files"),
    "endless refit": ("groups by network", setting("recipe", "n_replicas", 10**9), "out of range"),
    "huge network": ("groups by network", setting("recipe", "group_hidden", [100_000] * 200), "out of range"),
    "code in a parameter": ("boosting", setting("boosted trees", "scoring", "os.system"), "out of range"),
    # Kinds in the wrong place.
    "unknown kind": ("dafh", entry("default logistic regression", "kind", "posix.system"), "not a kind of classifier"),
    "partition as classifier": ("random", lambda p: p.model.update(pooled_classifier=p.model["fitted_partition"]),
                                "'random groups' is not a kind of classifier"),
    "classifier alone": ("pipeline", lambda p: vars(p).update(model=find(p.model, "pipeline")), ""),
    "recipe that is none": (
        "dafh", entry("dafh classifier", "recipe", {"kind": "constant", "settings": {}}), "'recipe'"),
    "models in models": ("incumbent", nested, "nested too deeply"),
    "history without accuracy": ("groups by network", lambda p: find(p.model, "dafh classifier")["history"][
        "columns"][0].insert(0, "x"), "history"),
    # Sizes that are not there.
    "one array for four": ("boosting", one_array_for_all, "used twice"),
    "one layer thirty times": ("groups by network", one_layer_thirty_times, "used twice"),
    "array of nothing": ("boosting", table_entry("|V0", [10**15]), "of type |V0"),
    "array of objects": ("boosting", table_entry("object", [1]), "of type object"),
    "empty but wide": ("boosting", table_entry("float64", [0, 10**18]), "shape of an array"),
    "gigabytes from a tiny file": ("boosting", table_entry("float64", [10**12]), "bytes and "),
    "product that overflows": ("boosting", table_entry("float64", [2**32, 2**32, 2**32]), "bytes and "),
    "negative size": ("boosting", table_entry("float64", [-1]), "shape of an array"),
    "four dimensions": ("boosting", table_entry("float64", [1, 1, 1, 1]), "shape of an array"),
    "array that is not used": ("dafh", lambda p: add_array(p, np.zeros(9), "float64"), "does not use"),
    "neither true nor false": ("boosting", cells("boosted trees", "gaps_left", 0, 2), "neither true nor false"),
    "millions of groups": ("random", entry("random groups", "n_groups", 10**9), "out of range"),
    "layer of 20,000": ("groups by network", wide_layer, "too wide"),
    "labels padded to gigabytes": ("dafh", wide_labels, "too long"),
    "tree of 5,000 levels": ("tree", deep_tree, "too deep"),
    "names of a tree": ("tree", long_names, "too long"),
    "names of combinations": ("combinations", long_combinations, "too long"),
    "names of columns": ("dafh", long_column_names, "too long"),
    # Values that do not fit together.
    "one label": ("dafh", lambda p: labels_of(p).update(values=["no"]), "labels"),
    "labels of two types": ("dafh", lambda p: labels_of(p).update(values=["a", 1]), "labels"),
    "labels upside down": ("dafh", lambda p: labels_of(p)["values"].reverse(), "sorted"),
    "labels of another model": (
        "dafh", lambda p: find(p.model, "default logistic regression")["labels"].update(values=["no", "zes"]),
        "labels that the model does not have"),
    "three groups": ("dafh", entry("dafh classifier", "n_groups", 3), "has no leaf"),
    "pooled twice": ("groups by network", entry("network", "pooled", "added"), "not complete"),
    "scale of zero": ("pipeline", cells("standard scaler", "scale", 0, 0.0), "not positive"),
    "clusters without spread": ("clusters", cells("clusters", "scale", 0, 0.0), "malformed"),
    "own classifier too many": ("pipeline", lambda p: p.model["own_classifiers"].append(None), "one classifier"),
    "node of two parents": ("tree", node(0, values=[0, 1], children=[1, 1]), "child of two"),
    "node that is its own child": ("tree", node(1, attribute="b", values=["x"], children=[1]), POINTS),
    "node without parent": ("tree", node(0, values=[0], children=[1]), "nobody's child"),
    "groups out of order": ("tree", node(1, code=3), "not the tree"),
    "encoder of other columns": (
        "dafh", lambda p: find(p.model, "table encoder")["columns"].pop(), "do not fit together"),
    "date format": (
        "dafh", lambda p: find(p.model, "table encoder")["columns"][0].update(kind="date %Y%Y%!"), "format"),
    # Foreign parts; these are loaded with SVC as a trusted type.
    "pickle as a foreign part": ("foreign", blob(lambda _: pickle.dumps(Bomb())), "foreign part is malformed"),
    "call inside a foreign part": ("foreign", blob(hidden_call), "posix.system"),
    "another class": ("foreign", blob(lambda _: skops.io.dumps(LogisticRegression())), "LogisticRegression"),
    "matrix in disguise": ("foreign", blob(disguised), "builtins.dict by SparseMatrixNode"),
    "foreign part of nothing": ("foreign", blob(lambda _: skops.io.dumps({"a": np.ones(3)})), "no estimator"),
    "foreign classifier as partition": (
        "foreign", lambda p: p.model.update(fitted_partition=p.model["pooled_classifier"]),
        "cannot be used as a partition"),
    "zips in zips": ("foreign", blob(zips_in_zips), "more than it holds"),
    "packed schema": ("foreign", blob(lambda a: repacked(a, zipfile.ZIP_DEFLATED, zeros=b"\0" * 10**8)), "more than"),
    "member declared huge": ("foreign", blob(declared_huge), "foreign part"),
    "deep schema": ("foreign", blob(lambda a: repacked(a, schema_json=b"[" * 10**5)), "nested too deeply"),
}  # fmt: skip


TEXTS = {
    "not json": (b"not json", "not JSON"),
    "list": (b"[]", "malformed"),
    "nothing in it": (b"{}", "malformed"),
    "deep": (b"[" * 100_000, "nested too deeply"),
    "deep behind a quote": (b'"' + b"[" * 100_000, "not JSON"),
    "repeated values": (b"[" + b"[]," * 2_700_000 + b"0]", "too many values"),
    "repeated texts": (b"[" + b'"a",' * 2_000_000 + b"0]", "too many values"),
    "escaped quotes": (b'"' + b'\\"' * 900_000, "not JSON"),
    "unknown number": (b'{"a": NaN}', "holds NaN"),
    "infinite number": (b'{"a": 1e999}', "too large"),
    "long number": (b'{"a": ' + b"9" * 100_000 + b"}", "too large"),
    "entry twice": (b'{"a": 1, "a": 2}', "occurs twice"),
    "half a letter": (b'{"a": "\\ud800"}', "not JSON"),
    "other encoding": ('{"a": 1}'.encode("utf-16"), "not JSON"),
    "huge": (b"0" * (2**23 + 1), "too large"),
}
