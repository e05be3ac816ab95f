"""docs/reproduction.md, written from made-up results, complete and not."""

from dataclasses import asdict

import pytest

from dafh.exceptions import InputError
from dafh.study.document import write_document
from dafh.study.grid import grid_settings
from dafh.study.runner import Job
from dafh.study.store import ResultStore
from dafh.study.tables import DATASETS, TABLES, with_yardsticks
from study_results import results_of


def page_from(tmp_path, *, share=None, without="", paper=True):
    """Write the page from made-up results of two splits; `share` is the accuracy and the Pr without harm of DAFH."""
    rows = [
        {
            "protocol": "honest",
            "dataset": d,
            "method": "stability",
            "n_groups": k,
            "split": 0,
            "stability": 0.6 + k / 100,
        }
        for d in DATASETS
        for k in (2, 3, 4)
    ]
    for table in TABLES.values():
        honest, printed = (results_of(with_yardsticks(table()), protocol, 2) for protocol in ("honest", "paper"))
        if share is not None:
            honest.loc[honest["method"] == "dafh", ["accuracy", "pr"]] = share
        printed = printed[(printed["protocol"] == "paper") & paper]
        rows += honest.to_dict("records") + printed.to_dict("records")
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


def test_the_page_counts_what_the_results_show_beside_the_published_numbers(tmp_path):
    page = page_from(tmp_path, share=0.1)
    assert page.count("| no | 0 of 15; not adult K = 2, adult K = 3,") == 3
    lines = [line for line in page.splitlines() if line.startswith("| adult | 2 | DAFH |")]
    assert lines[0].split(" | ")[6:9] == ["83.36", "10.00 ± 0.00", "-73.36"]
    assert "nan" not in page


@pytest.mark.slow
def test_the_page_says_which_aims_are_reached(tmp_path):
    assert page_from(tmp_path, share=0.999).count("| yes | 15 of 15 |") == 3


@pytest.mark.parametrize(
    "key", ["honest/bank/dafh/K4/split1", "honest/bank/stability/K3/split0", "paper/bank/grid/K4/split1"]
)
def test_a_page_is_not_written_from_incomplete_results(tmp_path, key):
    protocol = key.split("/")[0]
    with pytest.raises(InputError, match=rf"lacks 1 of \d+ results of the protocol '{protocol}', such as {key}"):
        page_from(tmp_path, without=key)
    assert not (tmp_path / "page.md").exists()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return page_from(tmp_path_factory.mktemp("page"))


def titles(page):
    return [line for line in page.splitlines() if line.startswith("#")]


def test_the_aims_come_first_and_say_what_the_results_show(page):
    aims = page[page.index("### Aims and results") : page.index("### What a user gets by default")]
    assert "| adult | DAFH, rules | +1.00 (+1.00 to +1.00) |" in aims
    assert "| no violation after Holm over all tests of all models | yes | 0 of 200 |" in aims
    assert "| share, Scorecard and groups |" in aims


def test_stability_follows_the_tables_of_the_honest_protocol(page):
    found = titles(page)
    assert found.index("### Stability of the rules") == found.index(f"### {TABLES['harm']().title}") + 1
    assert "| data set | K = 2 | K = 3 | K = 4 |" in page
    assert "| bank | 0.62 | 0.63 | 0.64 |" in page


def test_without_the_papers_protocol_the_page_has_the_honest_part_and_says_so(tmp_path):
    page = page_from(tmp_path, paper=False)
    assert "The store has no results of this protocol yet" in page
    found = titles(page)
    assert [found.count(f"### {table().title}") for table in TABLES.values()] == [1] * 5
    assert "### Chosen settings, published and ours" not in found
    assert found[-2:] == ["## Protocol paper", "## Where the paper as printed cannot be right"]


def test_the_page_has_both_protocols_every_table_and_every_figure_in_order(page):
    found = titles(page)
    assert found[0] == "# The paper's tables, reproduced"
    assert found.index("## Protocol honest") < found.index("## Protocol paper")
    for name, table in TABLES.items():
        assert found.count(f"### {table().title}") == (1 if name == "defaults" else 2)
    assert sum(title.startswith("### Figure: ") for title in found) == 3
    assert found[-1] == "## Where the paper as printed cannot be right"


def test_a_store_without_the_honest_protocol_is_refused(tmp_path):
    with ResultStore(tmp_path / "empty.sqlite") as store:
        store.put("a", asdict(Job("honest", "adult", "pooled", 1, 0)), [{"accuracy": 0.8}], 0.0)
    with pytest.raises(InputError, match="no results of the protocol 'honest': reproduce all tables with it first"):
        write_document(tmp_path / "empty.sqlite", tmp_path / "page.md")
