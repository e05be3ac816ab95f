"""docs/reproduction.md, written from made-up results: every aim reached and missed, and results that are incomplete."""

from dataclasses import asdict

import pytest

from dafh.exceptions import InputError
from dafh.study.document import write_document
from dafh.study.grid import grid_settings
from dafh.study.runner import Job
from dafh.study.store import ResultStore
from dafh.study.tables import DATASETS, TABLES, with_yardsticks
from study_results import results_of


def page_from(tmp_path, *, share=None, without="", change=None):
    """Write the page from made-up results of two splits.

    `share` is the accuracy and the Pr without harm of DAFH, and `change` a function that alters the honest results.
    """
    rows = []
    for table in TABLES.values():
        honest, paper = (results_of(with_yardsticks(table()), protocol, 2) for protocol in ("honest", "paper"))
        if share is not None:
            honest.loc[honest["method"] == "dafh", ["accuracy", "pr"]] = share
        honest = honest if change is None else change(honest)
        rows += honest.to_dict("records") + paper[paper["protocol"] == "paper"].to_dict("records")
    grid = [row for row in rows if row["method"] == "grid" and row["n_groups"] == 2]
    store = tmp_path / "results.sqlite"
    with ResultStore(store) as opened:
        for row in [*rows, *(row | {"method": "grid-cold"} for row in grid)]:
            fields = dict(row)
            job = Job(*(fields.pop(name) for name in ("protocol", "dataset", "method", "n_groups", "split")))
            settings = [s._asdict() for s in grid_settings()] if job.method in ("grid", "grid-cold") else [{}]
            if job.key != without:
                opened.put(job.key, asdict(job), [fields | setting for setting in settings], 0.0)
    write_document(store, tmp_path / "page.md")
    return (tmp_path / "page.md").read_text()


def test_the_page_counts_what_the_results_show(tmp_path):
    page = page_from(tmp_path, share=0.999)
    assert "| 15 of 15 |" in page
    assert aim(page, "the other cells within one") == "there are none"
    page = page_from(tmp_path, share=0.1)
    assert "| 0 of 15; not adult K = 2," in page
    assert "more accurate than DAFH for adult K = 2, adult K = 3" in page


def test_the_page_has_our_numbers_beside_the_published_ones(tmp_path):
    page = page_from(tmp_path, share=0.9)
    lines = [line for line in page.splitlines() if line.startswith("| adult | 2 | DAFH |")]
    assert lines[0].split(" | ")[6:9] == ["83.36", "90.00 ± 0.00", "+6.64"]
    assert "nan" not in page


def test_a_page_is_not_written_from_incomplete_results(tmp_path):
    with pytest.raises(
        InputError, match=r"lacks 1 of \d+ results of the protocol 'honest', such as honest/bank/dafh/K4/split1"
    ):
        page_from(tmp_path, without="honest/bank/dafh/K4/split1")
    assert not (tmp_path / "page.md").exists()


def aim(page, start):
    """What the page says about the aim that starts with these words."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {start}")]
    return line.strip("| ").split(" | ")[-1].strip()


def cells(results, dataset, n_groups=None):
    """Results of DAFH on a data set, for one number of groups or for all."""
    mine = (results["method"] == "dafh") & (results["dataset"] == dataset)
    return mine if n_groups is None else mine & (results["n_groups"] == n_groups)


def nearly_perfect(results):
    """DAFH reaches every aim, some of them just so; on Bank it misses two published accuracies."""
    pooled = 0.8 + results["split"] / 100
    results.loc[results["method"] == "dafh", ["accuracy", "pr", "violations"]] = [0.999, 0.999, 0]
    results.loc[cells(results, "arrest", 2), "accuracy"] = pooled - 0.0005
    results.loc[cells(results, "german", 2), "accuracy"] = pooled - 0.0025
    results.loc[cells(results, "bank", 2), "accuracy"] = 0.9015  # 90.20 ± 0.10 is printed
    results.loc[cells(results, "bank", 3), "accuracy"] = 0.8970  # 90.06 ± 0.28
    return results


def disappointing(results):
    """DAFH misses every aim somewhere."""
    pooled, first = 0.8 + results["split"] / 100, results["split"] == 0
    results.loc[cells(results, "arrest", 3), "accuracy"] = pooled - 0.0015
    results.loc[cells(results, "german", 4), "accuracy"] = pooled - 0.0035
    results.loc[cells(results, "bank", 2), "accuracy"] = pooled
    results.loc[cells(results, "adult", 3) & first, "accuracy"] += 0.05  # More accurate, but not to be relied on.
    results.loc[cells(results, "bank", 2), "violations"] = 4
    results.loc[cells(results, "bank", 3), "violations"] = 99
    results.loc[cells(results, "adult", 2) & first, "smallest_share"] = 0.013
    if cells(results, "adult", 4).any():
        results["p_values"] = [[1e-9, 0.5] if one else [0.5, 0.5] for one in cells(results, "adult", 4)]
    return results


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    return page_from(tmp_path_factory.mktemp("reached"), change=nearly_perfect)


@pytest.fixture(scope="module")
def missed(tmp_path_factory):
    return page_from(tmp_path_factory.mktemp("missed"), change=disappointing)


def test_a_small_loss_is_tolerated_and_a_larger_one_on_german_only(reached, missed):
    assert aim(reached, "nowhere lower than pooled") == "yes"
    assert aim(missed, "nowhere lower than pooled") == "arrest, german"


def test_large_data_sets_need_an_interval_above_zero(reached, missed):
    start = "more accurate than pooled on Adult and Bank"
    assert aim(reached, start) == "yes"
    assert aim(missed, start) == "not adult K = 3, bank K = 2"


def test_lost_cells_are_within_one_published_deviation_or_not(reached):
    assert aim(reached, "Pr and accuracy above the published ones") == "13 of 15; not bank K = 2, bank K = 3"
    assert aim(reached, "the other cells within one") == "bank K = 2: yes, bank K = 3: no"


def test_violations_and_small_groups_are_those_of_two_groups(reached, missed):
    assert aim(reached, "fewer than one violation") == ", ".join(f"{name} 0.0" for name in DATASETS)
    assert aim(missed, "fewer than one violation").endswith("german 1.0, bank 4.0")
    assert aim(missed, "no group under 2%").startswith("smallest: adult 1%, arrest 30%")


def test_significant_violations_are_counted_over_all_tests_of_all_models(reached, missed):
    assert aim(reached, "no violation after Holm") == "0 of 60"  # 15 models, two splits, two tests each.
    assert aim(missed, "no violation after Holm") == "2 of 60"


def test_the_page_has_both_protocols_every_table_and_every_figure_in_order(reached):
    titles = [line for line in reached.splitlines() if line.startswith("#")]
    assert titles[0] == "# The paper's tables, reproduced"
    assert titles.index("## Protocol honest") < titles.index("## Protocol paper")
    for table in TABLES.values():
        assert titles.count(f"### {table().title}") == 2
    assert sum(title.startswith("### Figure: ") for title in titles) == 3
    assert titles[-1] == "## Where the paper as printed cannot be right"


def test_a_store_without_one_of_the_protocols_is_refused(tmp_path):
    with ResultStore(tmp_path / "empty.sqlite") as store:
        store.put("a", asdict(Job("honest", "adult", "pooled", 1, 0)), [{"accuracy": 0.8}], 0.0)
    with pytest.raises(InputError, match="no results of the protocol 'honest': reproduce all tables with it first"):
        write_document(tmp_path / "empty.sqlite", tmp_path / "page.md")
