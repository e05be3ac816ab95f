"""A network that goes on learning from all rows: the same one whatever their order, and never a worse one."""

import functools

import numpy as np
import pandas as pd
import pytest

from cases import first_by_default
from command_line import run
from dafh import DAFHClassifier, Recipe
from dafh.engine import streaming
from dafh.engine.ranks import Ranks
from dafh.estimators import network_rows, training_rows
from dafh.groups import continuation
from dafh.persistence.files import load
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


@functools.cache
def in_memory(pooled="scorecard"):
    """The network of 6,000 rows in memory; several tests compare others with it."""
    table = grouped_table(6000)
    return fitted(table[FEATURES], table["y"], pooled)


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


@pytest.mark.parametrize("pooled", first_by_default(["linear", "scorecard"], 1))
def test_files_in_any_order_give_the_network_of_rows_in_memory(tmp_path, pooled):
    table = grouped_table(6000)
    from_files = fitted(written_in_files(tmp_path / "rows", table, 7), pooled=pooled)
    assert_same_network(in_memory(pooled), from_files, table[FEATURES])


def test_more_rows_make_a_better_network_than_the_sample_alone(monkeypatch):
    table, fresh = grouped_table(20_000), grouped_table(20_000, seed=9)
    found = came_of(monkeypatch)
    model = fitted(table[FEATURES], table["y"])
    monkeypatch.setattr(network_rows, "_FEWEST_JUDGES", np.inf)
    sample = fitted(table[FEATURES], table["y"])

    def loss(one):
        chance = one.predict_proba(fresh[FEATURES])[:, 1]
        return -np.log(np.where(fresh["y"] == "yes", chance, 1 - chance)).mean()

    (came,) = found
    assert came.kept
    assert came.log_loss[1] < came.log_loss[0]
    assert loss(model) < loss(sample) - 0.003


def test_a_network_that_all_rows_made_worse_is_not_kept(monkeypatch):
    table = grouped_table(6000)
    found = came_of(monkeypatch)
    monkeypatch.setattr(network_rows, "_FEWEST_JUDGES", np.inf)
    sample = fitted(table[FEATURES], table["y"])
    monkeypatch.setattr(network_rows, "_FEWEST_JUDGES", 100)

    def spoiled(lanes, start, *rest, **more):
        return start._replace(classifiers=tuple(layer._replace(weight=-layer.weight) for layer in start.classifiers))

    monkeypatch.setattr(streaming, "train_stream", spoiled)
    model = fitted(table[FEATURES], table["y"])
    assert found[0].log_loss[1] > found[0].log_loss[0]
    assert not found[0].kept
    np.testing.assert_array_equal(parameters(model), parameters(sample))


def test_the_pooled_classifier_beside_a_network_has_seen_all_rows():
    table = grouped_table(6000)
    network = in_memory()
    rules = DAFHClassifier(2, groups="rules", random_state=0).fit(table[FEATURES], table["y"])
    np.testing.assert_allclose(network.pooled_.intercept_, rules.pooled_.intercept_, atol=1e-9)


@pytest.mark.parametrize("known", first_by_default(["sample_weight", "persons", "time"], 1))
def test_what_is_known_about_rows_is_the_same_in_files(tmp_path, known):
    table = grouped_table(5000, weights=known == "sample_weight")
    rng = np.random.default_rng(3)
    name = {"sample_weight": "weight", "persons": "id", "time": "day"}[known]
    if name != "weight":
        table[name] = rng.integers(0, 1500, 5000)
    model = fitted(table[FEATURES], table["y"], **{known: table[name]})
    from_files = fitted(written_in_files(tmp_path / "rows", table, 3), **{known: name})
    assert_same_network(model, from_files, table[FEATURES])


def test_rows_that_are_repeated_often_are_spread_over_all_batches(tmp_path):
    X = pd.DataFrame({"a": list("xxxxxyyyzz") * 900, "b": [0.0, 1.0, 2.0] * 3000})
    y = (np.random.default_rng(0).random(9000) < 0.2 + 0.3 * (X["b"] == 1) * (X["a"] == "x")).astype(int)
    model = fitted(X, y)
    order = np.random.default_rng(1).permutation(9000)
    assert_same_network(model, fitted(X.iloc[order], y[order]), X)


@pytest.mark.slow  # tests/test_ranks.py has the training itself.
def test_two_processes_fit_the_network_of_one():
    table = grouped_table(6000)
    with Ranks(2):
        together = fitted(table[FEATURES], table["y"])
    np.testing.assert_array_equal(parameters(in_memory()), parameters(together))


def test_an_interrupted_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    table = grouped_table(6000)
    monkeypatch.setattr(continuation, "_STEPS_PER_CHECKPOINT", 32)
    undisturbed = in_memory()
    slowed_to, n_calls = streaming.slowed_to, []

    def interrupted(*given):
        n_calls.append(1)
        if len(n_calls) == 3:
            raise KeyboardInterrupt
        return slowed_to(*given)

    monkeypatch.setattr(streaming, "slowed_to", interrupted)
    with Ranks(checkpoint=tmp_path), pytest.raises(KeyboardInterrupt):
        fitted(table[FEATURES], table["y"])
    with Ranks(checkpoint=tmp_path):
        resumed = fitted(table[FEATURES], table["y"])
    assert len(n_calls) == 3 + 2  # Of four chunks, two were behind the checkpoint.
    assert_same_network(undisturbed, resumed, table[FEATURES])


@pytest.mark.slow
def test_workers_of_a_cluster_train_the_network_of_one_process(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(continuation, "_STEPS_PER_CHECKPOINT", 32)
    monkeypatch.setattr(continuation, "_FEWEST_STEPS", 64)
    monkeypatch.setattr(continuation, "_MOST_PASSES", 1)
    found = came_of(monkeypatch)
    table = grouped_table(5000)
    rows = written_in_files(tmp_path / "rows", table, 2)
    said = ("fit", rows, "--target", "y", "--by", "network", "--groups", "2", "--out")
    assert run(*said, tmp_path / "one.dafh").exit_code == 0
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local:
        where = ("--cluster", local.scheduler_address, "--checkpoint", tmp_path / "kept")
        result = run(*said, tmp_path / "two.dafh", *where)
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["network.npz"]
    assert [came.kept for came in found] == [True, True]
    one, two = load(tmp_path / "one.dafh"), load(tmp_path / "two.dafh")
    assert_same_network(one[-1], two[-1], one[0].transform(table[FEATURES]))
