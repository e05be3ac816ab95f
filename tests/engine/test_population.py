from dataclasses import replace

import jax
import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from dafh.classifiers.logits import decide
from dafh.engine.networks import apply_classifiers, apply_group_network, apply_network
from dafh.engine.objective import Rows, Settings
from dafh.engine.population import Plan, evaluate_population, init_population, train_population


def make_rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    label = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    one = np.ones(n, np.float32)
    return Rows(x, no_answers(n), label, np.zeros((n, 1, 1), np.float32), np.zeros((n, 1), np.float32), one, fold=-one)


def no_answers(n):
    return np.zeros((n, 1, 0), np.int8)


PLAN = Plan((3, 8, 2), (3, 1))


def settings(n_replicas, **changes):
    values = {"envy_weight": 0.5, "penalty": 0.3, "temperature": 1.0, "anchor": 1.0, "shrinkage": 0.0}
    values |= {"group_rate": 1e-2, "classifier_rate": 1e-2, "held_out": -1, "elsewhere": 0.2} | changes
    return Settings(**{name: np.broadcast_to(value, n_replicas).astype(float) for name, value in values.items()})


def train(n_replicas=2, rows=None, **options):
    rows = make_rows() if rows is None else rows
    start = init_population(PLAN, np.full(n_replicas, 0.5), np.random.SeedSequence(0))
    chosen = {"batch_size": 64, "max_epochs": 3, "rng": np.random.default_rng(0)} | options
    return train_population(rows, rows, start, settings(n_replicas), PLAN, **chosen)


def test_a_replica_does_not_depend_on_its_companions():
    alone, together = train(1), train(5)
    for one, many in zip(
        jax.tree.leaves(alone.parameters(0, 2)), jax.tree.leaves(together.parameters(0, 2)), strict=True
    ):
        np.testing.assert_allclose(one, many, atol=1e-5)


def test_replicas_with_different_settings_differ():
    rows = make_rows()
    start = init_population(PLAN, np.full(2, 0.5), np.random.SeedSequence(0))
    start = jax.tree.map(lambda leaf: np.stack([leaf[0], leaf[0]]), start)
    for name in set(Settings._fields) - {"held_out"}:
        varied = settings(2, **{name: np.array([0.1, 0.9])})
        record = train_population(
            rows, rows, start, varied, PLAN, batch_size=64, max_epochs=2, rng=np.random.default_rng(0)
        )
        weights = record.checkpoints[-1].classifiers[0].weight
        assert np.abs(weights[0] - weights[1]).max() > 1e-5, name


def test_padding_the_last_batch_changes_nothing():
    rows = make_rows(50)
    whole, padded = train(rows=rows, batch_size=50), train(rows=rows, batch_size=64)
    for one, other in zip(jax.tree.leaves(whole.checkpoints[-1]), jax.tree.leaves(padded.checkpoints[-1]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("alternate", [False, True])
def test_one_step_trains_the_groups_and_the_classifiers(alternate):
    rows, plan = make_rows(64), replace(PLAN, alternate=alternate, optimizer="sgd")
    start = init_population(plan, np.full(1, 0.5), np.random.SeedSequence(0))
    options = {"batch_size": 64, "max_epochs": 1, "rng": np.random.default_rng(0)}
    after = train_population(rows, rows, start, settings(1, group_rate=0.5, classifier_rate=0.5), plan, **options)
    for part in start._fields:
        before, now = getattr(start, part)[0].weight, getattr(after.checkpoints[0], part)[0].weight
        assert np.abs(before - now).max() > 1e-3, part


def test_the_learning_rates_fall_linearly_to_the_final_share():
    rows, plan = make_rows(64), replace(PLAN, optimizer="sgd")
    start = init_population(plan, np.full(1, 0.5), np.random.SeedSequence(0))

    def trained(max_epochs, final_rate, rate):
        options = {"batch_size": 64, "rng": np.random.default_rng(0), "final_rate": final_rate}
        rates = settings(1, group_rate=rate, classifier_rate=rate)
        return train_population(rows, rows, start, rates, plan, max_epochs=max_epochs, **options).checkpoints

    first, second, third = trained(3, 0.0, 0.2)
    assert_same(first, trained(1, 0.0, 0.2)[0])
    assert_same(third, second, atol=0)  # A rate of 0 in the last epoch.
    # The second epoch's rate is half the first's: from where the first one ended, a run at 0.1 makes the same step.
    again = train_population(
        rows,
        rows,
        first,
        settings(1, group_rate=0.1, classifier_rate=0.1),
        plan,
        batch_size=64,
        max_epochs=1,
        rng=np.random.default_rng(0),
    )
    assert_same(second, again.checkpoints[0], atol=1e-5)


def test_training_improves_the_objective_and_can_be_watched_and_stopped():
    seen = []
    record = train(
        max_epochs=30, on_epoch=lambda epoch, _: seen.append(epoch), should_stop=lambda c: len(c["train_pr"]) == 20
    )
    assert seen == list(range(1, 21))
    assert (record.curves["train_objective"][-1] > record.curves["train_objective"][0]).all()


def test_the_curves_are_the_figures_of_the_checkpoints():
    rows = make_rows(100)
    record = train(rows=rows)
    again = evaluate_population(record.checkpoints[1], rows, settings(2), PLAN, batch_size=32)
    for name, values in again.items():
        np.testing.assert_allclose(values, record.curves[f"selection_{name}"][1], atol=1e-5)


def test_accuracy_and_pr_equal_a_count_by_hand():
    rows = make_rows(100)
    record = train(1, rows=rows)
    params = record.parameters(0, 2)
    group = np.asarray(apply_network(params.group, rows.x)).argmax(1)
    logits = np.asarray(apply_classifiers(params.classifiers, rows.x, rows.base[:, 0]))
    right = (logits[..., 0] > 0) == rows.label[:, None]
    own = right[np.arange(100), group]
    assert record.curves["selection_accuracy"][2, 0] == pytest.approx(own.mean(), abs=1e-6)
    assert record.curves["selection_pr"][2, 0] == pytest.approx(1 - (~own & right.any(1)).mean(), abs=1e-6)


# ---- folds and averages ----


def folded(rows, fold):
    return rows._replace(fold=np.asarray(fold, np.float32))


def assert_same(one, other, atol=1e-6):
    for mine, yours in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(mine, yours, atol=atol)


def test_a_replica_that_holds_rows_out_is_trained_as_if_they_did_not_exist():
    rows, fold = make_rows(200), np.arange(200) % 4
    start = init_population(PLAN, np.full(1, 0.5), np.random.SeedSequence(0))
    options = {"batch_size": 200, "max_epochs": 3, "rng": np.random.default_rng(0)}
    held_out = train_population(folded(rows, fold), rows, start, settings(1, held_out=2), PLAN, **options)
    remaining = Rows(*(field[fold != 2] for field in rows))
    without = train_population(remaining, rows, start, settings(1), PLAN, **options)
    assert_same(held_out.checkpoints[-1], without.checkpoints[-1], atol=1e-4)


def test_a_replica_is_judged_by_the_rows_it_holds_out():
    rows = folded(make_rows(200), np.arange(200) % 2)
    start = init_population(PLAN, np.full(1, 0.5), np.random.SeedSequence(0), [None] * 3)
    judged = settings(3, held_out=np.array([0, 1, -1]))
    accuracy = evaluate_population(start, rows, judged, PLAN, batch_size=64)["accuracy"]
    halves = [Rows(*(field[part::2] for field in rows)) for part in (0, 1)]
    one = init_population(PLAN, np.full(1, 0.5), np.random.SeedSequence(0))
    for part, half in enumerate([*halves, rows]):
        whole = evaluate_population(one, half, settings(1), PLAN, batch_size=64)["accuracy"]
        assert accuracy[part] == pytest.approx(whole[0])


def test_the_average_is_the_mean_of_the_parameters_after_each_step():
    rows = make_rows(64)
    steps = [train(1, rows=rows, max_epochs=n).checkpoints[-1] for n in (1, 2, 3)]
    averaged = train(1, rows=rows, max_epochs=3, average_steps=10).checkpoints[-1]
    assert_same(averaged, jax.tree.map(lambda *leaves: np.mean(leaves, axis=0), *steps))
    assert_same(train(1, rows=rows, max_epochs=3, average_steps=1).checkpoints[-1], steps[-1])


# ---- what must not matter ----


def evaluated(rows, n_replicas=1, start=None, **changes):
    start = init_population(PLAN, np.full(n_replicas, 0.5), np.random.SeedSequence(0)) if start is None else start
    return evaluate_population(start, rows, settings(n_replicas, **changes), PLAN, batch_size=64)


def test_a_weight_of_three_is_a_row_given_three_times():
    rows, weight = make_rows(90), np.where(np.arange(90) % 2, 3, 1)
    often = Rows(*(np.repeat(field, weight, axis=0) for field in rows))
    weighted = evaluated(rows._replace(weight=weight.astype(np.float32)))
    for name, values in evaluated(often).items():
        np.testing.assert_allclose(weighted[name], values, atol=1e-5)


def test_rows_of_weight_zero_change_no_figure_and_no_parameter():
    rows = make_rows(64)
    more = make_rows(100, seed=3)._replace(weight=np.zeros(100, np.float32))
    both = Rows(*(np.concatenate(pair) for pair in zip(rows, more, strict=True)))
    for name, values in evaluated(rows).items():
        np.testing.assert_allclose(evaluated(both)[name], values, atol=1e-5)
    # One batch of all rows: the same step with and without them.
    alone, together = (train(1, rows=one, batch_size=200, max_epochs=1) for one in (rows, both))
    assert_same(alone.checkpoints[-1], together.checkpoints[-1], atol=1e-5)


def test_several_classes_are_counted_by_what_is_decided():
    rng = np.random.default_rng(0)
    plan, n = Plan((3, 2), (3, 3)), 80
    rows = make_rows(n)._replace(label=rng.integers(3, size=n).astype(np.int32), base=np.zeros((n, 1, 3), np.float32))
    start = init_population(plan, np.array([1.0]), np.random.SeedSequence(0))
    figures = evaluate_population(start, rows, settings(1), plan, batch_size=64)
    seen, replica = rows.seen_by(-1), jax.tree.map(lambda leaf: leaf[0], start)
    groups = np.asarray(apply_group_network(replica.group, seen.x, seen.answers).argmax(-1))
    own = np.asarray(decide(apply_classifiers(replica.classifiers, seen.x, seen.base)))[np.arange(n), groups]
    assert figures["accuracy"][0] == pytest.approx(np.mean(own == rows.label), abs=1e-6)
    assert figures["label_information"][0] == pytest.approx(normalized_mutual_info_score(groups, own), abs=1e-5)
