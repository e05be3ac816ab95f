"""Tables, models and forged files for the tests of `dafh.models`."""

import hashlib
import json
import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dafh
from dafh import DAFHClassifier, DecoupledClassifier, Recipe, Scorecard, tabular_pipeline
from dafh.exceptions import GroupsEncodeLabelWarning
from dafh.models.container import FORMAT
from dafh.partitions import PooledPartition
from research.rivals import make_baseline

SVC_TYPES = ["sklearn.svm._classes.SVC"]
NETWORK = {"groups": "network", "recipe": Recipe(max_epochs=2)}


def quick(**changes):
    """A classifier that is fitted in a fraction of a second."""
    return DAFHClassifier(**{"n_groups": 2, "groups": "rules", "pooled": "linear", "random_state": 0, **changes})


def there_and_back(model, tmp_path, **options):
    """Save a model and load it again."""
    dafh.save(model, tmp_path / "model.dafh", **options)
    return dafh.load(tmp_path / "model.dafh", **options)


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 8, n)),
            "job": rng.choice(["cook", "clerk", "pilot"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    y = np.where(table["age"] + 10 * (table["job"] == "cook") + rng.normal(0, 8, n) > 50, "yes", "no")
    return table, y, pd.DataFrame({"sex": rng.choice(["f", "m"], n), "born": rng.choice(["here", "there"], n)})


def one_own_classifier(table):
    """A model whose guard has let the first group keep its own classifier, and the second not."""
    y = np.where((table["age"] > 50) ^ (table["job"] == "cook"), "yes", "no")
    model = quick(guard=None).fit(table, y)
    every = model.predict_all(table)
    labels = np.where(model.predict_group(table) == 0, every[:, 0], every[:, -1])
    return model.set_params(guard="veto").recalibrate(table, labels)


def models():
    """Fitted models of many kinds, each with 20 rows it can be asked about, as arguments of `predict`."""
    table, y, attributes = people()
    X, by = table[["age"]].to_numpy(float), {"sensitive_features": attributes}
    Z = np.random.default_rng(0).normal(size=(300, 1))
    turned = np.where(attributes["sex"] == "f", attributes["born"].map({"here": 1, "there": -1}), 1)
    z = (Z[:, 0] * turned > 0).astype(int)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    boosted = HistGradientBoostingClassifier(max_iter=3)
    plain = (X[:20],)
    with threadpool_limits(1), warnings.catch_warnings():
        # On so few rows, groups may be little more than the label.
        warnings.simplefilter("ignore", GroupsEncodeLabelWarning)
        return {
            "dafh": (one_own_classifier(table), (table[:20],)),
            "tabular": (tabular_pipeline(quick()).fit(table, y), (table[:20],)),
            "points": (quick(pooled="scorecard").fit(table, y), (table[:20],)),
            "network on points": (quick(**NETWORK, pooled="scorecard").fit(table, y), (table[:20],)),
            "groups by network": (quick(**NETWORK).fit(table, y), (table[:20],)),
            "scorecard": (Scorecard(8).fit(table, y), (table[:20],)),
            "incumbent": (quick(pooled=clone(boosted).fit(X, y)).fit(X, y), plain),
            "boosting": (make_baseline("pooled", estimator=boosted).fit(X, y), plain),
            "pipeline": (DecoupledClassifier(PooledPartition(), scaled).fit(X, y), plain),
            "network": (make_baseline("mlp", random_state=0).fit(X, y), plain),
            "tree": (make_baseline("treelr", random_state=0).fit(Z, z, **by), (Z[:20], attributes[:20])),
            "combinations": (make_baseline("lr-all").fit(X, y, **by), (*plain, attributes[:20])),
            "clusters": (make_baseline("clustering", random_state=0).fit(X, y), plain),
            "random": (make_baseline("random", random_state=0).fit(X, y), plain),
            "foreign": (make_baseline("pooled", estimator=SVC()).fit(X, y), plain),
        }


class Parts:
    """A model file taken apart, to be changed and put together again with a checksum that fits: what a forger does."""

    def __init__(self, path):
        first, lengths, rest = path.read_bytes().split(b"\n", 2)
        self.format = int(first.split()[2])
        n_card, n_description, n_arrays = map(int, lengths.split())
        assert n_card + n_description + n_arrays == len(rest)
        self.card = json.loads(rest[:n_card])
        description = json.loads(rest[n_card : n_card + n_description])
        self.table, self.names, self.model = (description[name] for name in ("arrays", "column_names", "model"))
        self.arrays, at = [], n_card + n_description
        for dtype, shape in self.table:
            size = int(np.prod(shape)) * {"float64": 8, "int64": 8, "float32": 4, "bool": 1, "bytes": 1}[dtype]
            self.arrays.append(rest[at : at + size])
            at += size

    def array(self, number):
        dtype, shape = self.table[number]
        return np.frombuffer(self.arrays[number], "u1" if dtype in ("bool", "bytes") else dtype).reshape(shape).copy()

    def set_array(self, number, values, dtype=None):
        self.table[number] = [dtype or self.table[number][0], list(values.shape)]
        self.arrays[number] = values.tobytes()

    def write(self, path, card=None, description=None):
        card = json.dumps(self.card).encode() if card is None else card
        if description is None:
            description = json.dumps({"arrays": self.table, "column_names": self.names, "model": self.model})
            description = description.encode()
        data = b"".join(self.arrays)
        rest = b"%d %d %d\n" % (len(card), len(description), len(data)) + card + description + data
        path.write_bytes(with_checksum(rest, self.format))
        return path


def with_checksum(rest, number):
    return f"dafh model {number} {hashlib.sha256(b'%d ' % number + rest).hexdigest()}\n".encode() + rest


def find(node, kind):
    """Part of a kind in a description; the fitted one, which has more entries, where there is any."""
    return max((part for part in parts_of(node) if part["kind"] == kind), key=len)


def parts_of(node):
    if isinstance(node, dict):
        if "kind" in node:
            yield node
        node = list(node.values())
    for inner in node if isinstance(node, list) else []:
        yield from parts_of(inner)


EXAMPLES = {
    "": lambda: quick(pooled=HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=7)),
    "-scorecard": lambda: quick(pooled="scorecard"),
}
ANSWERS = ("predict", "predict_group", "predict_proba")


def write_examples(folder):
    """Write the files of the current format that must load for good; once a format is released, never again."""
    table, y, _ = people()
    rows, _, _ = people(20, seed=1)
    for name, example in EXAMPLES.items():
        model = example().fit(table, y)
        dafh.save(model, folder / f"model-format-{FORMAT}{name}.dafh")
        found = {method: getattr(model, method)(rows).tolist() for method in ANSWERS}
        (folder / f"model-format-{FORMAT}{name}.json").write_text(json.dumps(found))
