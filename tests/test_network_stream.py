"""A network that goes on learning from all rows: the same one whatever their order, and never a worse one."""

import numpy as np
import pytest

from dafh import DAFHClassifier, Recipe
from dafh.engine.ranks import Ranks
from dafh.estimators import training_rows
from dafh.groups import continuation
from large import grouped_table, written_in_files

FEATURES = ["x0", "x1", "x2", "x3", "age", "job"]
QUICK = Recipe(max_epochs=2, n_folds=1)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """A sample of 2,000 rows instead of 200,000, and short continuations."""
    monkeypatch.setattr(training_rows, "MOST_ROWS", 2000)
    monkeypatch.setattr(continuation, "_FEWEST_STEPS", 100)


def fitted(X, y="y", pooled="scorecard", recipe=QUICK, **options):
    known = {name: options.pop(name) for name in ("sample_weight", "persons", "time") if name in options}
    model = DAFHClassifier(2, groups="network", pooled=pooled, recipe=recipe, random_state=0, **options)
    return model.fit(X, y, **known)


def parameters(model):
    """All numbers of the network, and of the pooled classifier inside."""
    network = model._trained.model
    parts = [part for layer in (*network.group, *network.classifiers, *network.base) for part in layer]
    return np.concatenate([np.ravel(part) for part in parts])


def assert_same_network(one, other, X):
    np.testing.assert_allclose(parameters(one), parameters(other), atol=1e-4)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-4)


def came_of(monkeypatch):
    """A list of what came of each continuation."""
    found, judge = [], continuation._judge
    monkeypatch.setattr(continuation, "_judge", lambda *given: found.append(judge(*given)) or found[-1])
    return found


@pytest.mark.parametrize("pooled", ["scorecard", "linear"])
def test_files_in_any_order_give_the_network_of_rows_in_memory(tmp_path, pooled):
    table = grouped_table(6000)
    in_memory = fitted(table[FEATURES], table["y"], pooled)
    from_files = fitted(written_in_files(tmp_path / "rows", table, 7), pooled=pooled)
    assert_same_network(in_memory, from_files, table[FEATURES])


def test_two_processes_train_the_network_of_one(monkeypatch):
    table = grouped_table(6000)
    found = came_of(monkeypatch)
    alone = fitted(table[FEATURES], table["y"])
    with Ranks(2):
        together = fitted(table[FEATURES], table["y"])
    print(found[0].log_loss, found[0].kept, found[0].n_steps, np.abs(parameters(alone) - parameters(together)).max())
    assert found[0].kept
    assert_same_network(alone, together, table[FEATURES])
