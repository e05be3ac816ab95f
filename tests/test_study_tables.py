"""From results to tables, worked out by hand: means over splits, differences, choices and the files they end in."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh.stats import holm
from dafh.study.grid import Setting, grid_settings
from dafh.study.published import Value
from dafh.study.reproduce import Request, display, grid_values, provenance, stability_table, write_table
from dafh.study.runner import Job
from dafh.study.tables import (
    DATASETS,
    TABLES,
    YARDSTICKS,
    Line,
    Table,
    cells_won,
    paired_mean,
    significant_after_holm,
    summarize,
    with_yardsticks,
)


def result(method="dafh", split=0, protocol="honest", n_groups=2, **figures):
    """One row of results on Adult."""
    row = {"protocol": protocol, "dataset": "adult", "method": method, "n_groups": n_groups, "split": split}
    defaults = {"accuracy": 0.8, "pr": 0.9, "disagreement": 0.1, "smallest_share": 0.25, "violations": 0}
    return row | defaults | figures


def small_table(*lines, metrics=("pr", "accuracy")):
    return Table("small", "A small table", list(lines), metrics)


DAFH = Line("adult", "dafh", 2, {"pr": Value(88.0, 1.0), "accuracy": Value(81.0, 0.5)})


# ---- jobs ----


def test_a_table_needs_each_method_on_each_split_once():
    table = small_table(DAFH, DAFH, Line("adult", "pooled", 1, {}))
    assert table.jobs("honest", 2) == [
        Job("honest", "adult", method, k, split) for split in (0, 1) for method, k in (("dafh", 2), ("pooled", 1))
    ]


def test_under_the_papers_protocol_methods_run_on_the_grid_and_yardsticks_stay_honest():
    lines = [Line("adult", m, 2, {}) for m in ("dafh", "clustering", "trivial", "lr-all", "treelr", *YARDSTICKS)]
    jobs = {(job.protocol, job.method) for job in small_table(*lines).jobs("paper", 1)}
    assert jobs == {
        ("paper", "grid"),
        ("paper", "grid-clustering"),
        ("paper", "grid-trivial"),
        ("paper", "lr-all"),
        ("paper", "treelr"),
        *(("honest", yardstick) for yardstick in YARDSTICKS),
    }


def test_the_papers_protocol_leaves_out_the_ways_that_the_paper_does_not_have():
    table = small_table(*(Line("adult", m, 2, {}) for m in ("dafh", "dafh-rules", "dafh-network", "default")))
    assert table.under("honest") == table
    assert [line.method for line in table.under("paper").lines] == ["dafh", "default"]
    assert [(job.protocol, job.method) for job in table.jobs("paper", 1)] == [("paper", "grid"), ("honest", "default")]
    rows = [*setting_rows({0.0: [0.7]}), result("default"), result("pooled", n_groups=1)]
    assert summarize(table, pd.DataFrame(rows), "paper")["method"].tolist() == ["DAFH", "Scorecard and groups"]


@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_the_stability_of_rules_is_asked_for_once_per_data_set_and_number_of_groups(tmp_path, protocol):
    jobs = Request.of(("stability",), protocol, 10, tmp_path).jobs()
    assert jobs == [Job("honest", d, "stability", k, 0) for d in DATASETS for k in (2, 3, 4)]


@pytest.mark.parametrize("name", list(TABLES))
def test_yardsticks_stand_behind_the_lines_of_their_data_set(name):
    table = TABLES[name]()
    found = with_yardsticks(table).lines
    assert [line for line in found if line.method not in YARDSTICKS] == table.lines
    for dataset in {line.dataset for line in table.lines}:
        assert [line.method for line in found if line.dataset == dataset][-4:] == list(YARDSTICKS)
    assert len(found) == len(table.lines) + 4 * len({line.dataset for line in table.lines})


def test_the_pooled_yardstick_has_the_printed_pooled_accuracy_and_the_majority_nothing():
    lines = {line.method: line for line in with_yardsticks(small_table(DAFH)).lines}
    assert lines["pooled"].printed["accuracy"].mean == 81.29
    assert lines["majority"].printed == {}
    assert lines["pooled"].n_groups == 1


# ---- summaries ----


def test_a_summary_by_hand():
    rows = [result(split=s, accuracy=a, pr=p) for s, a, p in ((0, 0.80, 0.90), (1, 0.84, 0.94))]
    rows += [result("pooled", split=s, n_groups=1, accuracy=a) for s, a in ((0, 0.79), (1, 0.81))]
    (row,) = summarize(small_table(DAFH), pd.DataFrame(rows), "honest").to_dict("records")
    assert (row["dataset"], row["K"], row["method"]) == ("adult", 2, "DAFH")
    assert row["accuracy"] == pytest.approx(82.0)
    assert row["accuracy sd"] == pytest.approx(np.sqrt(8))  # Two values that differ by 4 points.
    assert row["accuracy published"] == 81.0
    assert row["accuracy difference"] == pytest.approx(1.0)
    assert row["pr difference"] == pytest.approx(4.0)
    assert row["to pooled"] == pytest.approx(2.0)  # The differences are 1 and 3 points, split by split.
    assert row["to pooled high"] - row["to pooled"] == pytest.approx(12.706205 * np.sqrt(2) / np.sqrt(2))
    assert (row["disagreement"], row["smallest_share"]) == (pytest.approx(10), pytest.approx(25))


def test_numbers_that_count_things_are_no_percentages():
    line = Line("adult", "dafh", 2, {"violations": Value(1), "n_models": Value(2)})
    rows = [result(violations=3, n_models=2), result("pooled", n_groups=1)]
    summary = summarize(small_table(line, metrics=("violations", "n_models")), pd.DataFrame(rows), "honest")
    assert summary["violations"].item() == 3
    assert summary["violations difference"].item() == 2
    assert summary["n_models"].item() == 2


def test_rows_of_other_protocols_methods_data_sets_and_group_numbers_do_not_count():
    noise = {"accuracy": 0.1, "pr": 0.1}
    rows = [result(), result("pooled", n_groups=1), result(protocol="paper", **noise), result(n_groups=3, **noise)]
    rows += [result("trivial", **noise), result(**noise) | {"dataset": "bank"}]
    summary = summarize(small_table(DAFH), pd.DataFrame(rows), "honest")
    assert summary["accuracy"].item() == pytest.approx(80)


def test_a_paired_difference_ignores_splits_that_one_side_lacks():
    rows = [result(split=s, accuracy=0.9) for s in range(3)] + [result("pooled", split=1, n_groups=1, accuracy=0.7)]
    summary = summarize(small_table(DAFH), pd.DataFrame(rows), "honest")
    assert summary["to pooled"].item() == pytest.approx(20)
    assert np.isnan(summary["to pooled low"].item())


def test_a_method_that_prints_nothing_has_no_difference():
    rows = [result("pooled", n_groups=1), result("majority", n_groups=1, accuracy=0.6)]
    summary = summarize(small_table(Line("adult", "majority", 1, {})), pd.DataFrame(rows), "honest")
    assert summary["accuracy"].item() == pytest.approx(60)
    assert np.isnan(summary["accuracy difference"].item())


def setting_rows(accuracies, **figures):
    """Results of the paper's grid: for each penalty, the accuracies on splits 0, 1, ..."""
    setting = {"batch_size": 256, "epochs": 2, "group_rate": 1e-3, "classifier_rate": 1e-2}
    return [
        result("grid", split=split, protocol="paper", accuracy=accuracy, pr=1 - penalty / 200, **figures)
        | Setting(**setting, penalty=penalty)._asdict()
        for penalty, values in accuracies.items()
        for split, accuracy in enumerate(values)
    ]


def test_the_papers_protocol_takes_the_best_mean_accuracy_and_not_the_best_split_or_pr():
    rows = setting_rows({0.0: [0.70, 0.72], 1.0: [0.60, 0.90], 10.0: [0.76, 0.78]})
    rows += [result("pooled", split=s, n_groups=1, accuracy=0.7) for s in (0, 1)]
    (row,) = summarize(small_table(DAFH), pd.DataFrame(rows), "paper").to_dict("records")
    assert row["accuracy"] == pytest.approx(77)
    assert row["pr"] == pytest.approx(95)
    assert row["to pooled"] == pytest.approx(7)


def test_equal_settings_are_decided_by_the_first_of_the_grid():
    rows = [*setting_rows({1.0: [0.7], 0.0: [0.7]}), result("pooled", n_groups=1)]
    assert summarize(small_table(DAFH), pd.DataFrame(rows), "paper")["pr"].item() == pytest.approx(100)


def test_methods_by_attributes_have_no_number_of_groups():
    line = Line("adult", "lr-all", 2, {})
    rows = [result("lr-all"), result("pooled", n_groups=1)]
    assert summarize(small_table(line), pd.DataFrame(rows), "honest")["K"].item() == "–"


def test_defaults_choose_the_number_of_groups_and_show_what_they_found():
    table = replace(TABLES["defaults"](), lines=[Line("adult", "default", 1, {})])
    rows = [result("default", split=s, n_groups=1, n_found=n, seconds=2.0) for s, n in ((0, 1), (1, 4))]
    rows += [result("pooled", split=s, n_groups=1, accuracy=0.79) for s in (0, 1)]
    summary = summarize(table, pd.DataFrame(rows), "honest")
    assert (summary["K"].item(), summary["n_found"].item(), summary["seconds"].item()) == ("auto", 2.5, 2)
    (shown,) = display(summary, table.metrics).to_dict("records")
    assert (shown["accuracy"], shown["seconds"], shown["groups"]) == ("80.00 ± 0.00", "2.00 ± 0.00", "2.5 ± 2.1")


# ---- stability ----


def test_the_table_of_stability_has_a_line_for_each_data_set_in_the_usual_order():
    found = {("bank", 2): 0.5, ("bank", 3): 1.0, ("adult", 2): 0.756, ("adult", 3): -0.1}
    rows = [result("stability", n_groups=k, stability=value) | {"dataset": d} for (d, k), value in found.items()]
    table = stability_table(pd.DataFrame([*rows, result(stability=0.0)]))
    assert table.columns.tolist() == ["data set", "K = 2", "K = 3"]
    assert table.to_numpy().tolist() == [["adult", "0.76", "-0.10"], ["bank", "0.50", "1.00"]]


# ---- tests and intervals ----


@pytest.mark.parametrize("values", [[3.0], [1.0, 1.0, 1.0], [-2.0, 2.0]])
def test_the_mean_is_in_the_middle_of_its_interval(values):
    mean, low, high = paired_mean(values)
    assert mean == pytest.approx(np.mean(values))
    if len(values) > 1:
        assert (low + high) / 2 == pytest.approx(mean)


def test_no_differences_have_no_mean():
    assert np.isnan(paired_mean([])).all()


def test_the_interval_of_many_differences_covers_their_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(1.0, 2.0, size=(2000, 5))
    covered = [low <= 1.0 <= high for _, low, high in map(paired_mean, draws)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_holm_counts_over_all_models_and_not_model_by_model():
    p_values = [[0.03, 0.5], [0.02, 0.9], [0.001]]
    rows = [result(split=s, p_values=p) for s, p in enumerate(p_values)]
    rows += [result("trivial", p_values=[1e-9]), result(protocol="paper", p_values=[1e-9])]
    expected = int((holm([p for values in p_values for p in values]) <= 0.05).sum())
    assert significant_after_holm(pd.DataFrame(rows)) == (expected, 5) == (1, 5)
    assert significant_after_holm(pd.DataFrame(rows), level=0.1)[0] == 3  # 0.001 · 5, 0.02 · 4, 0.03 · 3


def test_without_models_there_are_no_tests():
    assert significant_after_holm(pd.DataFrame([result("trivial", p_values=[0.1])])) == (0, 0)


@pytest.mark.parametrize(("pr", "accuracy", "won"), [(1, 1, True), (1, 0, False), (0, 1, False), (-1, -1, False)])
def test_a_cell_is_won_by_both_numbers_and_not_by_a_tie(pr, accuracy, won):
    summary = pd.DataFrame([{"dataset": "adult", "K": 2, "method": "DAFH"}, {"dataset": "x", "K": 2, "method": "y"}])
    summary = summary.assign(**{"pr difference": float(pr), "accuracy difference": float(accuracy)})
    assert cells_won(summary) == ((["adult K = 2"], []) if won else ([], ["adult K = 2"]))


# ---- files ----


@pytest.fixture
def summary():
    rows = [result(split=s, accuracy=0.8 + s / 300) for s in range(3)]
    rows += [result(m, split=s, n_groups=1, pr=np.nan) for m in YARDSTICKS for s in range(3)]
    return summarize(with_yardsticks(small_table(DAFH)), pd.DataFrame(rows), "honest")


def test_a_table_shows_signs_units_and_dashes(summary):
    shown = display(summary, ("pr", "accuracy")).set_index("method")
    assert shown.loc["DAFH", "accuracy, published"] == "81.00"
    assert shown.loc["DAFH", "accuracy, ours"] == "80.33 ± 0.33"
    assert shown.loc["DAFH", "accuracy, difference"] == "-0.67"
    assert shown.loc["DAFH", "accuracy to converged pooled"].startswith("+0.33 (-0.49 to +1.16)")
    assert shown.loc["Majority class", "Pr w/o harm, ours"] == "–"
    assert shown.loc["Majority class", "accuracy, difference"] == "–"


def test_figures_of_probabilities_stand_beside_only_where_they_are_known(summary):
    without = display(summary, ("pr", "accuracy"))
    assert [name for name in without if name in ("log-loss", "AUC", "calibration error")] == []
    figures = {"log_loss": 0.43215, "auc": 87.654, "calibration": 1.234}
    known = summary.assign(**{name: [value, *[np.nan] * 4] for name, value in figures.items()})
    shown = display(known, ("pr", "accuracy")).set_index("method")
    beside = ["log-loss", "AUC", "calibration error", "disagreement", "smallest group"]
    assert shown.columns[-5:].tolist() == beside
    assert shown.loc["DAFH", beside].tolist() == ["0.4321", "87.65", "1.23", "10.0", "25.0"]
    assert shown.loc["Majority class", beside[:3]].tolist() == ["–"] * 3


def test_figures_of_probabilities_are_means_over_splits_log_loss_as_it_is_and_the_others_in_percent():
    rows = [result(split=s, log_loss=v, auc=v, calibration=v / 10) for s, v in ((0, 0.4), (1, 0.5))]
    (row,) = summarize(small_table(DAFH), pd.DataFrame([*rows, result("pooled", n_groups=1)]), "honest").to_dict(
        "records"
    )
    assert [row[name] for name in ("log_loss", "auc", "calibration")] == pytest.approx([0.45, 45, 4.5])


def test_the_csv_file_has_every_digit(summary, tmp_path):
    (tmp_path / "tables").mkdir()
    request = Request.of(("k2",), "honest", 3, tmp_path)
    shown = display(summary, ("pr", "accuracy"))
    csv, page, latex = write_table(request, "small", "A title", summary, shown, "A note with 5 %.")
    pd.testing.assert_frame_equal(pd.read_csv(csv), summary, check_exact=True, check_dtype=False)
    assert page.read_text().startswith("# A title\n\n| data set |")
    assert page.read_text().endswith("\n\nA note with 5 %.\n")
    assert latex.read_text().isascii()


def test_a_request_drops_repetitions_keeps_the_order_and_takes_all_for_everything(tmp_path):
    assert Request.of(("harm", "k2", "harm"), "honest", 2, tmp_path).names == ("harm", "k2")
    assert Request.of(("k2", "all"), "honest", 2, tmp_path).names == Request.of((), "honest", 2, tmp_path).names


def test_the_same_job_of_two_tables_is_done_once(tmp_path):
    both, one = (Request.of(names, "honest", 3, tmp_path).jobs() for names in (("k2", "clustering"), ("clustering",)))
    assert len(both) == len(set(both))
    assert set(one) < set(both)
    assert {job.split for job in both} == {0, 1, 2}


def test_provenance_says_which_splits_and_versions_made_the_numbers(tmp_path):
    text = provenance(Request.of(("k2",), "honest", 7, tmp_path))
    for part in ("Protocol honest", "7 random splits", "seeds 0 to 6", "jax ", "Python 3."):
        assert part in text
    assert "TEST rows" not in text


def test_the_table_of_settings_spans_the_grid():
    values = grid_values().set_index("hyper-parameter")["values"]
    assert values["penalty λ"] == "0, 1, 10, 100"
    assert values["momentum of the classifiers"] == "0.9"
    assert np.prod([len(text.split(", ")) for text in values]) == len(grid_settings()) == 96
