"""The printed numbers: complete, in percent, and consistent wherever the paper's tables repeat each other."""

import pytest

from research.paper.grid import BATCH_SIZES, CLASSIFIER_RATES, EPOCHS, GROUP_RATES, PENALTIES, Setting, grid_settings
from research.paper.published import CHOSEN_SETTINGS, CLUSTERING, HARM, K2, MANUAL
from research.paper.tables import DATASETS, OTHER_WAYS, TABLES


def test_tables_have_a_cell_for_every_data_set_and_method():
    assert set(K2) == {(d, m) for d in DATASETS for m in ("dafh", "trivial", "pooled")}
    assert set(CLUSTERING) == {(d, m) for d in DATASETS for m in ("dafh", "clustering")}
    assert {len(cells) for cells in CLUSTERING.values()} == {3}
    assert set(HARM) == {(d, m) for d in DATASETS[:3] for m in ("trivial", "lr-all", "treelr", "dafh")}
    assert set(MANUAL) == {"manual", "trivial", "dafh"}


def test_the_sums_of_the_printed_columns():
    """Added up by hand from the printed tables, so that a slip in one digit shows."""
    assert sum(K2[d, "dafh"]["pr"].mean for d in DATASETS) == pytest.approx(457.84)
    assert sum(K2[d, "dafh"]["accuracy"].mean for d in DATASETS) == pytest.approx(395.43)
    assert sum(K2[d, "trivial"]["pr"].mean for d in DATASETS) == pytest.approx(433.68)
    assert sum(K2[d, "pooled"]["accuracy"].mean for d in DATASETS) == pytest.approx(386.11)
    assert sum(cell["pr"].mean for d in DATASETS for cell in CLUSTERING[d, "dafh"]) == pytest.approx(1393.10)
    theirs = [cell["accuracy"].mean for d in DATASETS for cell in CLUSTERING[d, "clustering"]]
    assert sum(theirs) == pytest.approx(1180.29)


def test_tables_agree_on_k_2_except_where_the_paper_disagrees_with_itself():
    agree = {d: K2[d, "dafh"] == CLUSTERING[d, "dafh"][0] for d in DATASETS}
    assert agree == {"adult": True, "arrest": True, "violent": False, "german": True, "bank": True}
    assert MANUAL["trivial"] == K2["arrest", "trivial"]
    assert MANUAL["dafh"] != K2["arrest", "dafh"]


def test_chosen_settings_are_points_of_a_grid_of_96():
    assert len(set(grid_settings())) == 96
    assert set(CHOSEN_SETTINGS) == set(DATASETS)
    for chosen in map(Setting._make, CHOSEN_SETTINGS.values()):
        assert chosen.batch_size in BATCH_SIZES
        assert chosen.epochs in EPOCHS
        assert (chosen.group_rate, chosen.classifier_rate) == (max(GROUP_RATES), min(CLASSIFIER_RATES))
        assert chosen.penalty in PENALTIES


@pytest.mark.parametrize(("name", "n_lines"), [("k2", 15), ("clustering", 45), ("manual", 3), ("harm", 12)])
def test_every_line_of_a_table_has_the_printed_numbers_of_its_metrics(name, n_lines):
    table = TABLES[name]()
    assert len(table.lines) == n_lines
    assert all(set(line.printed) == set(table.metrics) for line in table.lines)


def test_printed_numbers_stand_beside_their_own_number_of_groups_also_for_rules_and_network():
    lines = {(line.dataset, line.method, line.n_groups): line.printed for line in TABLES["clustering"]().lines}
    assert lines["adult", "dafh", 4]["accuracy"].mean == 80.98
    assert lines["german", "clustering", 3]["pr"].mean == 78.96
    for (dataset, method, n_groups), printed in lines.items():
        if method in OTHER_WAYS:
            assert printed == lines[dataset, "dafh", n_groups]
