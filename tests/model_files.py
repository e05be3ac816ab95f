"""Tables, models and crafted model files for tests."""

import hashlib
import io
import json
import zipfile

import msgspec
import numpy as np
import pandas as pd

import dafh
from dafh import DAFHClassifier, Recipe

NETWORK = {"method": "network", "recipe": Recipe(max_epochs=2, n_replicas=2, n_folds=1)}


def quick(**changes):
    """A classifier that is fitted in a fraction of a second."""
    return DAFHClassifier(**{"n_groups": 2, "method": "exceptions", "pooled": "linear", "random_state": 0, **changes})


# What skops does not trust unasked of a HistGradientBoostingClassifier.
TREES = ("sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",)


def there_and_back(model, tmp_path, trusted=TREES):
    """Save a model and load it again."""
    dafh.save(model, tmp_path / "model.dafh", trusted=trusted)
    return dafh.load(tmp_path / "model.dafh", trusted=trusted)


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


class Parts:
    """A model file taken apart, to be changed and put together again with a checksum that fits: what a forger does."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
            self.format = int(file.comment.split()[2])
        self.card = json.loads(self.members.pop("card.json"))
        self.model = msgspec.msgpack.decode(self.members.pop("model.msgpack"))
        self.arrays = {name: self.members.pop(name) for name in [*self.members] if name.endswith(".npy")}

    def fields(self, name):
        """Fields of the first object of a class."""
        todo = [self.model]
        while todo:
            match todo.pop():
                case ["object", str(class_name), fields] if class_name == name:
                    return fields
                case list(items):
                    todo += reversed(items)
                case dict(items):
                    todo += reversed(items.values())
        raise LookupError(name)

    def write(self, path, compression=zipfile.ZIP_STORED):
        card, model = json.dumps(self.card).encode(), msgspec.msgpack.encode(self.model)
        members = {"card.json": card, "model.msgpack": model, **self.arrays, **self.members}
        path.write_bytes(with_checksum(zipped(members, compression), self.format))
        return path


def zipped(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def with_checksum(archive, number):
    content = archive[:-2] + (80).to_bytes(2, "little")
    return content + f"dafh model {number:04} {hashlib.sha256(content).hexdigest()}".encode()
