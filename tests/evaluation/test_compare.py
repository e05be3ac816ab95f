"""Who loses from a change of model, and whom one model fails: truth by construction, laws, pandas, mistakes."""

import numpy as np
import pandas as pd
import pytest

import dafh
from dafh import compare, find_failures
from dafh.exceptions import InputError
from dafh.stats import Differences, mcnemar_p
from models import rules_case


def rows(n=4000, seed=0, lost=0.3):
    """People of whom the new model loses a share of those above 50, and nobody else."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 70, n), "job": rng.choice(["cook", "clerk", "pilot"], n)})
    y = rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.8, y, 1 - y)
    new = np.where((X["age"] > 50) & (old == y) & (rng.random(n) < lost), 1 - y, old)
    return {"y": y, "old": old, "new": new, "X": X}


def failing(n=4000, seed=0):
    """People of whom the model gets 60 % right above 50, and 90 % elsewhere."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 70, n), "job": rng.choice(["cook", "clerk", "pilot"], n)})
    y = rng.integers(0, 2, n)
    return X, y, np.where(rng.random(n) < np.where(X["age"] > 50, 0.6, 0.9), y, 1 - y)


def losers(result):
    table = result.to_frame()
    return table[table["answer"] == "loses"]


# ---- compare ----


def test_the_group_that_loses_is_named():
    result = compare(**rows())
    assert result.status == "harm"
    assert [str(region) for region in result.regions] == ["age is above 50"]


def test_figures_beside_a_rule_are_those_of_its_tested_rows_in_pandas():
    given = rows(lost=0.1)
    result = compare(**given)
    for number, region in enumerate(result.losers.regions):
        tested = region.holds(given["X"]) & result.losers.tested[result.losers.table["direction"][number]]
        np.testing.assert_array_equal(result.losers.judged[number], tested)
        wrong = {name: given[name][tested] != given["y"][tested] for name in ("old", "new")}
        row = result.losers.table.iloc[number]
        assert row["tested"] == tested.sum()
        line = result.to_frame().query("kind == 'discovered'").iloc[number]
        assert line["old_loss"] == pytest.approx(wrong["old"].mean())
        assert line["new_loss"] == pytest.approx(wrong["new"].mean())
        assert row["harm"] == -line["gain"] == pytest.approx(line["new_loss"] - line["old_loss"])
        n_worse, n_better = (wrong["new"] & ~wrong["old"]).sum(), (wrong["old"] & ~wrong["new"]).sum()
        assert row["p"] == pytest.approx(mcnemar_p(n_worse, n_better))


def test_figures_beside_a_rule_know_nothing_of_the_rows_that_found_it():
    given = rows()
    tested = compare(**given).losers.tested[0]
    # On the rows that judge the first search, nobody loses any more.
    losers_ = compare(**{**given, "new": np.where(tested, given["old"], given["new"])}).losers
    (row,) = losers_.table.query("direction == 0 and rule == 'age is above 50'").to_dict("records")
    assert (row["harm"], row["p"], row["shown"]) == (0.0, 1.0, False)


def test_all_rows_of_a_person_are_in_one_half():
    persons = np.repeat(np.arange(1000), 4)
    result = compare(**rows(), persons=persons)
    assert pd.Series(result.losers.tested[0]).groupby(persons).nunique().max() == 1


def test_rules_of_earlier_rows_are_tested_on_later_ones():
    time = np.random.default_rng(1).permutation(4000)
    result = compare(**rows(), time=time)
    (tested,) = result.losers.tested
    assert time[tested].min() > time[~tested].max()
    assert result.status == "harm"


def test_equal_models_are_unchanged():
    given = rows()
    result = compare(**{**given, "new": given["old"]})
    assert result.status == "unchanged"
    assert not len(losers(result))


def test_groups_that_lose_are_watched_from_then_on():
    case = rules_case()
    result = compare(**rows())
    monitor = dafh.Monitor(case.model, sensitive_features=result.membership(rows()["X"]))
    assert monitor.table()["part"].unique().tolist() == ["", "age is above 50 = no", "age is above 50 = yes"]
    members = result.membership(rows(seed=1)["X"])["age is above 50"] == "yes"
    assert members.tolist() == (rows(seed=1)["X"]["age"] > 50).tolist()


def test_exchanging_the_models_exchanges_who_gains_and_who_loses():
    given = rows()
    exchanged = compare(**{**given, "old": given["new"], "new": given["old"]})
    assert exchanged.status == "better"
    gaining = exchanged.to_frame().query("answer == 'gains'")
    assert gaining["group"].tolist() == ["age is above 50"]
    assert gaining["gain"].tolist() == pytest.approx((-losers(compare(**given))["gain"]).iloc[-1:].tolist())


def test_named_groups_are_tested_too():
    given = rows()
    given["sensitive_features"] = pd.DataFrame({"older": np.where(given["X"]["age"] > 50, "yes", "no")})
    table = losers(compare(**given))
    assert "older = yes" in table.loc[table["kind"] == "named", "group"].tolist()
    alone = compare(**{**given, "X": None})
    assert alone.losers is None
    assert alone.status == "harm"


def test_a_tolerated_harm_is_no_harm():
    assert compare(**rows(lost=0.05), margin=0.15).status != "harm"


def test_several_losses_name_the_one_that_gets_worse():
    given = rows(lost=0.0)
    given["new"] = np.where((given["X"]["age"] > 50) & (given["y"] == 1), 0, given["old"])
    table = losers(compare(**given, losses=("error", "fpr", "fnr")))
    assert {"error", "fnr"} == set(table["loss"])


def test_costs_weigh_errors():
    given = rows(lost=0.0)
    older = given["X"]["age"] > 50
    # As many false negatives more as there are false positives less.
    given["new"] = np.where(older & (np.random.default_rng(2).random(4000) < 0.3), 0, given["old"])
    assert compare(**given, costs={"fp": 1, "fn": 20}).status == "harm"
    assert compare(**given, costs={"fp": 20, "fn": 1}).status != "harm"


def test_scores_are_cut_and_judged_by_log_loss():
    given = rows()
    scores = {name: np.where(given[name] == 1, 0.7, 0.3) for name in ("old", "new")}
    result = compare(**{**given, **scores})
    assert result.differ == compare(**given).differ
    assert result.log_loss[1] > result.log_loss[0]
    assert compare(**{**given, **scores}, old_cutoff=0.8).differ > result.differ


def test_several_classes_are_compared_by_errors():
    given = rows()
    three = {name: np.where(given["X"]["job"] == "pilot", 2, given[name]) for name in ("y", "old", "new")}
    assert compare(**{**given, **three}).status == "harm"


def test_models_decide_about_the_rows_themselves():
    class Constant:
        def predict(self, X):
            return np.ones(len(X), int)

    given = rows()
    assert compare(**{**given, "new": Constant()}).differ == (given["old"] == 0).mean()


def test_without_labels_it_says_who_is_decided_differently():
    given = rows(lost=0.0)
    given["new"] = np.where((given["X"]["age"] > 50) & (np.random.default_rng(3).random(4000) < 0.4), 0, given["old"])
    result = compare(**{**given, "y": None})
    assert result.status == "different"
    (line,) = losers(result).query("kind == 'discovered'").to_dict("records")
    (condition,) = result.regions[0].conditions
    assert (condition.column, condition.high) == ("age", None)
    assert condition.low == pytest.approx(50, abs=1)
    assert line["gain"] == pytest.approx(line["old_loss"] - line["new_loss"])


def test_a_limit_for_every_rule_lies_above_the_harm_of_the_worst_of_them():
    given = rows(lost=0.1)
    every = compare(**given, every_rule=0.1).every_rule
    worse, better = ((given[a] != given["y"]) & (given[b] == given["y"]) for a, b in (("new", "old"), ("old", "new")))
    older = given["X"]["age"] > 50
    assert every.limit > worse[older].mean() - better[older].mean()
    # Every rule has the exact limit of its own counts at its part of the level, and the largest is the answer.
    for job in ("cook", "clerk", "pilot"):
        inside = given["X"]["job"] == job
        alone = Differences.of_counts(worse[inside].sum(), better[inside].sum(), inside.sum())
        assert every.limit >= alone.upper(0.05 / every.n_rules)[0] > 0


def test_of_a_single_column_the_limit_for_every_rule_is_that_of_its_worst_value():
    given = rows(lost=0.1)
    every = compare(**{**given, "X": given["X"][["job"]]}, every_rule=0.1).every_rule
    # Three values, all but each of them, and the nine pairs of these six that any row satisfies.
    assert every.n_rules == 15
    masks = [given["X"]["job"] == job for job in ("cook", "clerk", "pilot")]
    masks += [~mask for mask in masks]
    worse, better = ((given[a] != given["y"]) & (given[b] == given["y"]) for a, b in (("new", "old"), ("old", "new")))
    limits = [
        Differences.of_counts(worse[mask].sum(), better[mask].sum(), mask.sum()).upper(0.05 / every.n_rules)[0]
        for mask in masks
    ]
    assert every.limit == pytest.approx(max(limits))


def test_few_rows_are_no_reason_to_fail():
    given = {name: values[:30] for name, values in rows().items()}
    result = compare(**given)
    assert result.status in ("undecided", "unchanged")
    assert str(result)


def test_everything_is_plain_for_json():
    import json

    assert json.loads(json.dumps(compare(**rows(), every_rule=0.1).to_dict(), allow_nan=False))["status"]
    X, y, prediction = failing()
    assert json.loads(json.dumps(find_failures(y, prediction, X).to_dict(), allow_nan=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"new": np.ones(3)}, "3 decisions"),
        ({"new": np.full(4000, 0.3), "y": np.arange(4000) % 3}, "scores need two"),
        ({"new": np.full(4000, 7)}, "neither a label"),
        ({"X": pd.DataFrame({"a": [1]})}, "one row for each"),
        ({"level": 0.7}, "level"),
        ({"smallest": 0}, "smallest"),
        ({"new_cutoff": 1.5, "new": np.full(4000, 0.3)}, "cut-off"),
        ({"every_rule": 0.1, "sample_weight": np.linspace(1, 2, 4000)}, "count alike"),
        ({"y": None, "losses": "fpr"}, "labels"),
        ({"y": None, "new": np.arange(4000) % 3}, "two labels"),
        ({"new": pd.Series([None] * 4000)}, "missing"),
    ],
)
def test_mistakes_are_said_in_one_sentence(change, message):
    with pytest.raises(InputError, match=message) as raised:
        compare(**{**rows(), **change})
    assert "\n" not in str(raised.value)


# ---- find_failures ----


def test_the_group_that_is_failed_is_named_with_its_level_in_pandas():
    X, y, prediction = failing()
    result = find_failures(y, prediction, X, losses="error")
    assert [str(region) for region in result.regions] == ["age is above 50"]
    row = result.discovered.table.iloc[0]
    tested = (X["age"] > 50) & result.discovered.judged[0]
    assert row["harm"] == pytest.approx((prediction != y)[tested].mean())
    assert row["low"] < row["harm"] < row["high"]


def test_a_model_that_errs_alike_everywhere_fails_nobody():
    X, y, _ = failing()
    prediction = np.where(np.random.default_rng(4).random(len(y)) < 0.8, y, 1 - y)
    assert find_failures(y, prediction, X).regions == ()


def test_predicted_rates_are_compared_with_observed_ones():
    X, y, _ = failing()
    score = np.where(X["age"] > 50, 0.2, 0.5)
    table = find_failures(y, score, X).discovered.table
    too_low = table[(table["loss"] == "above") & table["shown"]]
    assert "age is above 50" in too_low["rule"].tolist()


def test_named_groups_in_level_agree_with_pandas():
    X, y, prediction = failing()
    named = find_failures(y, prediction, X, sensitive_features=X[["job"]], losses="error").named
    by_job = pd.Series(prediction != y).groupby(X["job"]).mean()
    for _, row in named.iterrows():
        assert row["harm"] == pytest.approx(by_job[row["group"].removeprefix("job = ")])


# ---- within an audit ----


def test_an_audit_with_features_names_the_groups_that_fail_even_with_one_group():
    X, y, prediction = failing()
    result = dafh.audit(y, prediction, np.zeros(len(y), int), pooled=prediction, X=X)
    assert "age is above 50" in [str(region) for region in result.failures.regions]
    assert "age is above 50" in result.summary()
    assert result.to_dict()["failures"]["groups"][0]["rule"] == result.failures.discovered.table["rule"].iloc[0]
    assert dafh.audit(y, prediction, np.zeros(len(y), int), pooled=prediction).failures is None


def test_what_own_classifiers_gain_is_said_where_the_model_fails():
    X, y, prediction = failing()
    worse, everybody = np.where(X["age"] > 50, 1 - y, prediction), np.zeros(len(y), int)
    failures = dafh.audit(y, prediction, everybody, pooled=worse, X=X).failures
    table = failures.discovered.table.query("loss == 'error'")
    assert len(failures.helped()) == failures.discovered.table["shown"].sum()
    assert table["gain"].iloc[0] == pytest.approx(1 - table["harm"].iloc[0])
    alone = dafh.audit(y, prediction, everybody, pooled=prediction, X=X).failures
    assert (alone.discovered.table["gain"] == 0).all()


def test_an_audit_finds_the_same_groups_as_find_failures():
    X, y, prediction = failing()
    result = dafh.audit(y, prediction, np.zeros(len(y), int), pooled=prediction, X=X)
    alone = find_failures(y, prediction, X, losses=("error", "fpr", "fnr"))
    assert result.failures.regions == alone.regions


def test_features_of_other_rows_are_refused():
    X, y, prediction = failing()
    with pytest.raises(InputError, match="one row for each"):
        dafh.audit(y, prediction, np.zeros(len(y), int), pooled=prediction, X=X[:10])
