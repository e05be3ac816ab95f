"""What the guard's report says: table, certificates, losses, declared subgroups, and why a group lost its own."""

import numpy as np
import pandas as pd
import pytest

from compared import rows_of
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.losses import ERROR, check_losses
from dafh.stats import Differences, mcnemar_p

ALL = check_losses(("error", "fpr", "fnr"))


def one_group(won, lost, n=100, **known):
    return rows_of((n, {"10": won, "01": lost}), **known)


def limit(b, c, n, level):
    """Largest harm that is not excluded."""
    return Differences.of_counts(b, c, n).upper(level)[0]


def certificates(rows, **options):
    return choose_servers(rows, **options).table["excluded_harm"].tolist()


# ---- the table and its words ----


def test_the_table_holds_the_statistics_of_each_group():
    rows = rows_of((500, {"100": 40, "011": 5}), (400, {"010": 10, "101": 20}))
    table = choose_servers(rows, level=0.1).table
    assert table.index.name == "group"
    first = table.loc[0]
    assert (first["rows"], first["own_worse"], first["own_better"]) == (500, 5, 40)
    assert (first["own_loss"], first["pooled_loss"]) == (5 / 500, 40 / 500)
    assert table["gain"].tolist() == pytest.approx([35 / 500, -10 / 400])
    for group, (b, c, n) in enumerate([(5, 40, 500), (20, 10, 400)]):
        row = table.loc[group]
        assert (row["low"], row["high"]) == pytest.approx((-limit(b, c, n, 0.05), limit(c, b, n, 0.05)))
        assert (row["p_worse"], row["p_better"]) == pytest.approx((mcnemar_p(b, c), mcnemar_p(c, b)))


def test_the_sentence_of_a_group_has_the_two_figures_that_decide():
    report = choose_servers(rows_of((500, {"100": 40, "011": 5}), (500, {"010": 5, "101": 40})))
    assert "1.00% instead of 8.00%, 500 rows" in report.sentence_of(0)
    assert report.sentence_of(1) == report.reasons()[0]
    assert report.sentence_of(1) in str(report)
    costs = choose_servers(rows_of(SHIFTED), losses=check_losses("cost", {"fp": 1, "fn": 3}))
    assert "6.00 instead of 5.00 per 100 rows" in costs.sentence_of(0)


# ---- certificates ----


def test_certificates_of_evidence_divide_the_level_among_all_that_could_have_been_chosen():
    assert certificates(one_group(40, 5, 500)) == pytest.approx([limit(5, 40, 500, level=0.05)])
    two = rows_of((500, {"100": 40, "011": 5}), (500, {"010": 40, "101": 5}))
    assert certificates(two) == pytest.approx([limit(5, 40, 500, level=0.05 / 2 / 2)] * 2)
    rival = rows_of((1000, {"110": 97, "100": 3, "010": 53}), (1000, {"010": 50}))
    assert choose_servers(rival).serves[0] == 1
    assert certificates(rival)[0] == pytest.approx(limit(0, 150, 1000, level=0.05 / 2 / 2))


def test_certificates_of_proof_are_what_holm_leaves():
    """All proved: each limit at 0.05 / 2, and never more than the margin. One not proved: the margin for the other."""
    both = rows_of((500, {"100": 40, "011": 5}), (500, {"010": 9, "101": 1}))
    limits = [limit(5, 40, 500, level=0.025), limit(1, 9, 500, level=0.025)]
    assert certificates(both, kind="proof") == pytest.approx(np.minimum(limits, 0))
    one = rows_of((500, {"100": 40, "011": 5}), (500, {}))
    assert certificates(one, kind="proof") == [0, 0]
    assert choose_servers(one, kind="proof").table["certificate"].tolist() == ["none", "none (pooled)"]
    assert certificates(one, kind="proof", margin=0.001)[0] == 0.001


# ---- several losses ----

# 200 rows, half of them positive. Own classifier: 10 false positives fewer, 4 false negatives more.
SHIFTED = ((100, 100), {"10": 10, "+01": 4})


def test_under_evidence_no_loss_may_be_higher():
    rows = rows_of(SHIFTED)
    assert choose_servers(rows, losses=(ERROR,)).serves.tolist() == [0]
    report = choose_servers(rows, losses=ALL)
    assert report.serves.tolist() == [1]
    assert "false negative rate is higher" in report.reasons()[0]
    checks = report.checks.set_index("loss")
    assert checks["passed"].to_dict() == {"error": True, "fpr": True, "fnr": False}
    assert checks["rows"].to_dict() == {"error": 200, "fpr": 100, "fnr": 100}
    assert checks["gain"].to_dict() == pytest.approx({"error": 6 / 200, "fpr": 10 / 100, "fnr": -4 / 100})


def test_costs_weigh_both_kinds_of_error():
    rows = rows_of(SHIFTED)  # 10 false positives fewer, 4 false negatives more.
    for costs, kept in (({"fp": 1, "fn": 1}, True), ({"fp": 1, "fn": 2.5}, False), ({"fp": 1, "fn": 3}, False)):
        report = choose_servers(rows, losses=check_losses("cost", costs))
        assert (report.serves[0] == 0) == kept
        assert report.table["gain"].iloc[0] == pytest.approx((10 - 4 * costs["fn"]) / 200)


def test_under_proof_every_loss_must_be_shown():
    """30 false positives fewer are a proof for error and false positive rate, and none for false negatives."""
    rows = rows_of(((200, 200), {"10": 30}))
    assert choose_servers(rows, kind="proof").serves.tolist() == [0]
    report = choose_servers(rows, kind="proof", losses=ALL)
    assert report.serves.tolist() == [1]
    assert "false negative rate is not shown" in report.reasons()[0]
    both = rows_of(((200, 200), {"10": 30, "+10": 8}))
    assert choose_servers(both, kind="proof", losses=ALL).serves.tolist() == [0]
    assert choose_servers(rows, kind="proof", losses=ALL, margin=0.02).serves.tolist() == [0]


def test_the_tests_of_a_loss_are_exact_among_the_rows_that_count():
    rows = rows_of(((100, 60), {"10": 10, "01": 2, "+10": 1, "+01": 6}))
    checks = choose_servers(rows, losses=ALL).checks.set_index("loss")
    assert checks.loc["fpr", "p_better"] == pytest.approx(mcnemar_p(10, 2))
    assert checks.loc["fnr", "p_worse"] == pytest.approx(mcnemar_p(6, 1))
    assert checks.loc["error", "p_better"] == pytest.approx(mcnemar_p(11, 8))


# ---- declared subgroups ----


def declared(n=200, lost=8, won=40):
    """Women lose some rows by the own classifier, men win more."""
    return rows_of(
        (n, {"01": lost, "10": won}), attributes=pd.DataFrame({"sex": ["f"] * lost + ["m"] * won + ["f", "m"] * 76})
    )


def test_under_evidence_a_group_in_which_a_declared_subgroup_is_harmed_loses_its_own_classifier():
    report = choose_servers(declared())
    assert report.serves.tolist() == [1]
    assert "sex = f" in report.reasons()[0]
    checks = report.checks.set_index("part")
    assert checks.loc["sex = f", ["rows", "own_loss", "pooled_loss"]].tolist() == pytest.approx([84, 8 / 84, 0])
    assert checks.loc["sex = m", "passed"]
    assert checks.loc["", "gain"] == pytest.approx(32 / 200)


def test_under_evidence_one_row_lost_or_two_are_no_reason():
    """A fair coin says so in one of four cases: only at one of five do rows speak against a subgroup."""

    def kept(lost):
        sex = ["f"] * lost + ["m"] * 40 + ["f", "m"] * 80
        rows = rows_of((200 + lost, {"01": lost, "10": 40}), attributes=pd.DataFrame({"sex": sex}))
        return choose_servers(rows).serves.tolist() == [0]

    assert [kept(lost) for lost in (0, 1, 2, 3, 4)] == [True, True, True, False, False]  # p = 1, ½, ¼, ⅛, ...


def test_under_proof_every_declared_subgroup_must_be_shown():
    sex = pd.DataFrame({"sex": ["f"] * 20 + ["m"] * 20 + ["f"] * 100 + ["m"] * 100})
    assert choose_servers(rows_of((240, {"10": 40}), attributes=sex), kind="proof").serves.tolist() == [0]
    few = pd.DataFrame({"sex": ["f"] * 3 + ["m"] * 37 + ["f"] * 100 + ["m"] * 100})
    report = choose_servers(rows_of((240, {"10": 40}), attributes=few), kind="proof")
    assert report.serves.tolist() == [1]  # Three rows won have p = 1/8.


def test_a_declared_subgroup_of_one_group_says_nothing_about_another():
    sex = pd.DataFrame({"sex": ["f"] * 100 + ["m"] * 100})
    rows = rows_of((100, {"100": 30, "011": 2}), (100, {"010": 20, "101": 10}), attributes=sex)
    report = choose_servers(rows)
    assert report.serves.tolist() == [0, 1]
    assert report.checks.groupby("group")["part"].apply(list).to_dict() == {0: ["", "sex = f"], 1: ["", "sex = m"]}


def test_each_test_passed_but_not_all_together_is_a_reason_of_its_own():
    rows = rows_of((100, {"100": 5}), (100, {"010": 5}))  # p = 1/32 each: enough for one group, not for two.
    report = choose_servers(rows, kind="proof")
    assert report.serves.tolist() == [2, 2]
    assert "number of groups" in report.reasons()[0]


def test_a_rival_must_not_harm_declared_subgroups_either():
    """Classifier 1 is better for group 0 in total, and worse for women."""
    outcomes = {"110": 40, "010": 60, "101": 8}
    sex = ["m"] * 100 + ["f"] * 8 + ["f", "m"] * 446 + ["f", "m"] * 500
    groups = ((1000, outcomes), (1000, {"010": 60}))
    assert choose_servers(rows_of(*groups)).serves.tolist() == [1, 1]
    assert choose_servers(rows_of(*groups, attributes=pd.DataFrame({"sex": sex}))).serves.tolist() == [0, 1]


# ---- persons ----


def test_rows_of_one_person_are_one_piece_of_evidence():
    """Eight rows won by one person prove nothing; by eight persons they do."""
    assert choose_servers(one_group(8, 0, 80), kind="proof").serves.tolist() == [0]
    one = one_group(8, 0, 80, persons=[0] * 8 + list(range(1, 73)))
    assert choose_servers(one, kind="proof").serves.tolist() == [1]
    assert choose_servers(one).serves.tolist() == [1]  # A fair coin wins once in one of two cases.
    each = one_group(8, 0, 80, persons=[f"id {k}" for k in range(80)])
    assert str(choose_servers(each, kind="proof")) == str(choose_servers(one_group(8, 0, 80), kind="proof"))
