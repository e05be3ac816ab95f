"""What the guard's report says: table, certificates, losses, declared subgroups, and why a group lost its own."""

import numpy as np
import pandas as pd
import pytest

from compared import rows_of
from dafh.evaluation import choose_servers
from dafh.evaluation.guard_report import GuardReport, certificate_in_words
from dafh.evaluation.losses import ERROR, Costs, Loss, check_losses
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import InputError
from dafh.stats import excluded_harm, mcnemar_p, paired_interval

ALL = check_losses(("error", "fpr", "fnr"))


def one_group(won, lost, n=100, **known):
    return rows_of((n, {"10": won, "01": lost}), **known)


def certificates(rows, **options):
    return choose_servers(rows, **options).table["excluded_harm"].tolist()


# ---- the table and its words ----


def test_the_table_holds_the_statistics_of_each_group():
    rows = rows_of((500, {"100": 40, "011": 5}), (400, {"010": 10, "101": 20}))
    table = choose_servers(rows, level=0.1).to_frame()
    assert table.index.name == "group"
    first = table.loc[0]
    assert (first["rows"], first["own_worse"], first["own_better"]) == (500, 5, 40)
    assert (first["own_loss"], first["pooled_loss"]) == (5 / 500, 40 / 500)
    assert table["gain"].tolist() == pytest.approx([35 / 500, -10 / 400])
    for group, (b, c, n) in enumerate([(5, 40, 500), (20, 10, 400)]):
        row = table.loc[group]
        assert (row["low"], row["high"]) == pytest.approx(paired_interval(b, c, n, confidence=0.9))
        assert (row["p_worse"], row["p_better"]) == pytest.approx((mcnemar_p(b, c), mcnemar_p(c, b)))


def test_the_loss_of_the_pooled_classifier_is_not_that_of_another_group():
    """Of 100 rows classifier 1 gets 10 wrong, and the pooled one these and 5 more."""
    table = choose_servers(rows_of((100, {"100": 10, "110": 5}), (100, {}))).table
    assert table["own_loss"].tolist() == [0, 0]
    assert table["pooled_loss"].tolist() == [0.15, 0]


def test_a_group_that_keeps_its_own_classifier_has_a_reason_too():
    rows = rows_of((500, {"100": 40, "011": 5}), (500, {"010": 40, "101": 5}))
    lower = "the error rate is lower than with the pooled classifier"
    assert choose_servers(rows).table["reason"].tolist() == [lower] * 2
    shown = "it is shown not to be worse than the pooled classifier"
    assert choose_servers(rows, kind="proof").table["reason"].tolist() == [shown] * 2


def test_the_sentence_of_a_group_has_the_two_figures_that_decide():
    report = choose_servers(rows_of((500, {"100": 40, "011": 5}), (500, {"010": 5, "101": 40})))
    why = "the error rate is lower than with the pooled classifier (1.00% instead of 8.00%, 500 rows)."
    assert report.sentence_of(0) == f"Group 0 keeps its own classifier: {why}"
    assert report.sentence_of(1) == report.reasons()[0]
    costs = choose_servers(rows_of(SHIFTED), losses=check_losses("cost", {"fp": 1, "fn": 3}))
    assert costs.sentence_of(0).endswith("(6.00 instead of 5.00 per 100 rows, 200 rows).")
    assert choose_servers(rows_of((1, {"01": 1}))).sentence_of(0).endswith("(100.00% instead of 0.00%, 1 row).")


def test_checks_are_numbered_through_whatever_was_asked():
    checks = choose_servers(rows_of(SHIFTED), losses=ALL).checks
    assert checks.index.tolist() == [0, 1, 2]
    assert checks["loss"].tolist() == ["error", "fpr", "fnr"]


def test_the_report_is_a_sentence_a_table_and_reasons_in_a_terminal_and_in_a_notebook():
    report = choose_servers(rows_of((100, {"100": 6, "011": 4}), (100, {"010": 4, "101": 12})))
    lines = str(report).splitlines()
    assert lines[0] == 'Guard "veto" on 200 calibration rows: group 1 is served by the pooled classifier.'
    assert "gain, points" in lines[2]
    assert "95% interval" in lines[2]
    assert [line.split()[:2] for line in lines[3:5]] == [["0", "100"], ["1", "100"]]
    lost = "Group 1: the error rate is not lower than with the pooled classifier (12.00% instead of 4.00%, 100 rows)."
    assert lines[-1] == lost
    assert max(map(len, lines)) <= 120
    page = report._repr_html_()
    assert page.count("<tr") == 3
    assert page.index("group 1 is served by the pooled classifier.") < page.index("<table")
    assert lines[-1] in page


def test_the_sentence_names_everyone():
    def sentence(*served):
        outcomes = {"own": {"1110": 1}, "pooled": {"0001": 5}}
        return choose_servers(rows_of(*[(50, outcomes[s]) for s in served])).sentence()

    assert sentence("own", "own", "own").endswith("every group keeps its own classifier.")
    assert sentence("pooled", "pooled", "own").endswith("group 0 and group 1 are served by the pooled classifier.")
    assert sentence("pooled", "pooled", "pooled").endswith("every group is served by the pooled classifier.")


def test_several_groups_can_get_another_classifier():
    better = {"1110": 5, "0010": 60}
    report = choose_servers(rows_of((500, better), (500, better), (500, better)))
    assert report.serves.tolist() == [2, 2, 2]
    assert report.sentence().endswith("group 0 and group 1 get another group's classifier.")
    mixed = choose_servers(rows_of((500, {"0001": 50}), (500, better), (500, better)))
    assert mixed.sentence().endswith(
        ": group 0 is served by the pooled classifier; group 1 gets another group's classifier."
    )


def test_a_report_says_which_rows_it_had():
    rows = rows_of((1500, {"100": 1}), (500, {"010": 1}))
    assert choose_servers(rows).n_rows == 2000
    fitted = choose_servers(rows, kind="proof", cross_fitted=True)
    assert fitted.sentence().startswith(
        'Guard "proof" on 2,000 calibration rows, scored by models trained without them: every'
    )
    assert (fitted.cross_fitted, fitted.level, fitted.margin, fitted.kind) == (True, 0.05, 0.0, "proof")
    assert not choose_servers(rows).cross_fitted


def test_without_rows_the_sentence_says_so():
    assert choose_servers(ComparedRows.none(2)).sentence() == (
        'Guard "veto" had no rows to decide by: every group is served by the pooled classifier.'
    )


def test_a_report_is_about_errors_and_one_model_unless_it_says_otherwise():
    found = choose_servers(one_group(1, 0))
    report = GuardReport(found.kind, found.level, found.margin, found.serves, found.table, found.checks)
    assert (report.losses, report.cross_fitted) == (("error",), False)
    assert report == found


def test_every_reason_has_a_line_of_its_own():
    lines = str(choose_servers(rows_of((50, {"001": 5}), (50, {"001": 5})))).splitlines()
    why = "the error rate is not lower than with the pooled classifier (10.00% instead of 0.00%, 50 rows)."
    assert lines[-2:] == [f"Group {g}: {why}" for g in range(2)]


def test_a_frame_that_is_changed_leaves_the_report_alone():
    report = choose_servers(one_group(1, 0))
    frame = report.to_frame()
    frame.loc[0, "rows"] = -1
    assert report.n_rows == 100
    assert isinstance(report, GuardReport)


# ---- certificates ----


def test_certificates_of_veto_divide_the_level_among_all_that_could_have_been_chosen():
    assert certificates(one_group(40, 5, 500)) == pytest.approx([excluded_harm(5, 40, 500, level=0.05)])
    two = rows_of((500, {"100": 40, "011": 5}), (500, {"010": 40, "101": 5}))
    assert certificates(two) == pytest.approx([excluded_harm(5, 40, 500, level=0.05 / 2 / 2)] * 2)
    rival = rows_of((1000, {"110": 97, "100": 3, "010": 53}), (1000, {"010": 50}))
    assert choose_servers(rival).serves[0] == 1
    assert certificates(rival)[0] == pytest.approx(excluded_harm(0, 150, 1000, level=0.05 / 2 / 2))


def test_among_three_groups_a_rival_has_half_of_the_groups_share_divided_by_two():
    """Classifier 1 wins 155 rows of group 0 and loses none against the pooled one."""
    first = {"1100": 95, "0100": 60, "1000": 5}
    rows = rows_of((1000, first), (1000, {"0100": 50}), (1000, {"0010": 50}))
    assert choose_servers(rows).serves.tolist() == [1, 1, 2]
    own = excluded_harm(0, 50, 1000, level=0.05 / 3 / 2)
    assert certificates(rows) == pytest.approx([excluded_harm(0, 155, 1000, level=0.05 / 3 / 2 / 2), own, own])


def test_certificates_of_proof_are_what_holm_leaves():
    """All proved: each limit at 0.05 / 2, and never more than the margin. One not proved: the margin for the other."""
    both = rows_of((500, {"100": 40, "011": 5}), (500, {"010": 9, "101": 1}))
    limits = [excluded_harm(5, 40, 500, level=0.025), excluded_harm(1, 9, 500, level=0.025)]
    assert certificates(both, kind="proof") == pytest.approx(np.minimum(limits, 0))
    one = rows_of((500, {"100": 40, "011": 5}), (500, {}))
    assert certificates(one, kind="proof") == [0, 0]
    assert choose_servers(one, kind="proof").table["certificate"].tolist() == ["none", "none (pooled)"]
    assert certificates(one, kind="proof", margin=0.001)[0] == 0.001


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (-0.0469, "none, gain ≥ 4.69"),
        (-0.00005, "none"),
        (-0.000051, "none, gain ≥ 0.01"),
        (0.0, "none"),
        (0.0146, "at most 1.46"),
        (0.00005, "at most 0.01"),
        (6.4e-7, "at most 6e-05"),
        (9.45e-7, "at most 9e-05"),
    ],
)
def test_certificates_in_words(harm, words):
    assert certificate_in_words(harm, is_pooled=False) == words
    assert certificate_in_words(harm, is_pooled=True) == "none (pooled)"


# ---- several losses ----

# 200 rows, half of them positive. Own classifier: 10 false positives fewer, 4 false negatives more.
SHIFTED = ((100, 100), {"10": 10, "+01": 4})


def test_under_veto_no_loss_may_be_higher():
    rows = rows_of(SHIFTED)
    assert choose_servers(rows, losses=(ERROR,)).serves.tolist() == [0]
    report = choose_servers(rows, losses=ALL)
    assert report.serves.tolist() == [1]
    assert report.reasons() == [
        "Group 0: the false negative rate is higher than with the pooled classifier (4.00% instead of 0.00%, 100 rows)."
    ]
    checks = report.checks.set_index("loss")
    assert checks["passed"].to_dict() == {"error": True, "fpr": True, "fnr": False}
    assert checks["rows"].to_dict() == {"error": 200, "fpr": 100, "fnr": 100}
    assert checks["gain"].to_dict() == pytest.approx({"error": 6 / 200, "fpr": 10 / 100, "fnr": -4 / 100})


def test_under_veto_a_loss_that_stays_the_same_is_no_harm_but_the_main_one_must_be_lower():
    rows = rows_of(((100, 100), {"10": 10, "+10": 3, "+01": 3}))
    assert choose_servers(rows, losses=ALL).serves.tolist() == [0]
    assert choose_servers(rows, losses=check_losses(("fnr", "error"))).serves.tolist() == [1]


def test_costs_weigh_both_kinds_of_error():
    rows = rows_of(SHIFTED)  # 10 false positives fewer, 4 false negatives more.
    for costs, kept in (({"fp": 1, "fn": 2}, True), ({"fp": 1, "fn": 2.5}, False), ({"fp": 1, "fn": 3}, False)):
        report = choose_servers(rows, losses=check_losses("cost", costs))
        assert (report.serves[0] == 0) == kept
        assert report.table["gain"].iloc[0] == pytest.approx((10 - 4 * costs["fn"]) / 200)
    # 4 false negatives cost 12 on 200 rows, 10 false positives cost 10.
    head, line = str(report).splitlines()[2:4]
    assert [title.strip() for title in head.split("  ") if title][1:5] == [
        "rows", "own cost", "pooled cost", "gain, per 100 rows",
    ]  # fmt: skip
    assert line.split()[1:5] == ["200", "6.00", "5.00", "-1.00"]


def test_under_proof_every_loss_must_be_shown():
    """30 false positives fewer are a proof for error and false positive rate, and none for false negatives."""
    rows = rows_of(((200, 200), {"10": 30}))
    assert choose_servers(rows, kind="proof").serves.tolist() == [0]
    report = choose_servers(rows, kind="proof", losses=ALL)
    assert report.serves.tolist() == [1]
    assert report.reasons() == [
        "Group 0: the false negative rate is not shown to be as low as with the pooled classifier (0.00% with both, "
        "200 rows)."
    ]
    both = rows_of(((200, 200), {"10": 30, "+10": 8}))
    assert choose_servers(both, kind="proof", losses=ALL).serves.tolist() == [0]
    assert choose_servers(rows, kind="proof", losses=ALL, margin=0.02).serves.tolist() == [0]


def test_the_tests_of_a_loss_are_exact_among_the_rows_that_count():
    rows = rows_of(((100, 60), {"10": 10, "01": 2, "+10": 1, "+01": 6}))
    checks = choose_servers(rows, losses=ALL).checks.set_index("loss")
    assert checks.loc["fpr", "p_better"] == pytest.approx(mcnemar_p(10, 2))
    assert checks.loc["fnr", "p_worse"] == pytest.approx(mcnemar_p(6, 1))
    assert checks.loc["error", "p_better"] == pytest.approx(mcnemar_p(11, 8))


@pytest.mark.parametrize("kind", ["veto", "proof"])
def test_a_loss_that_no_row_counts_for_is_not_shown(kind):
    report = choose_servers(rows_of((100, {"10": 20})), kind=kind, losses=ALL)  # No positives at all.
    assert report.serves.tolist() == [1]
    assert report.reasons() == ["Group 0: there are no calibration rows to measure the false negative rate on."]


def test_losses_need_two_classes():
    rows = rows_of((10, {}))
    several = type(rows)(**vars(rows) | {"positive": None})
    with pytest.raises(InputError, match="The cost needs two classes"):
        choose_servers(several, losses=(Loss("cost", Costs(1, 2)),))


# ---- declared subgroups ----


def declared(n=200, lost=8, won=40):
    """Women lose some rows by the own classifier, men win more."""
    return rows_of(
        (n, {"01": lost, "10": won}), attributes=pd.DataFrame({"sex": ["f"] * lost + ["m"] * won + ["f", "m"] * 76})
    )


def test_under_veto_a_group_in_which_a_declared_subgroup_is_harmed_loses_its_own_classifier():
    assert choose_servers(declared()).serves.tolist() == [1]
    report = choose_servers(declared())
    assert report.reasons() == [
        "Group 0: the error rate of sex = f is higher than with the pooled classifier (9.52% instead of 0.00%, "
        "84 rows)."
    ]
    checks = report.checks.set_index("part")
    assert checks.loc["sex = f", ["rows", "own_loss", "pooled_loss"]].tolist() == pytest.approx([84, 8 / 84, 0])
    assert checks.loc["sex = m", "passed"]
    assert checks.loc["", "gain"] == pytest.approx(32 / 200)


def test_under_veto_one_row_lost_or_two_are_no_reason():
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
    assert report.reasons() == [
        "Group 0: the error rate of sex = f is not shown to be as low as with the pooled classifier (0.00% instead of "
        "2.91%, 103 rows)."
    ]


def test_declared_subgroups_are_those_of_single_attributes():
    table = pd.DataFrame({"sex": ["f", "m"] * 50, "town": ["a", "a", "b", None] * 25})
    checks = choose_servers(one_group(20, 0, attributes=table)).checks
    assert checks["part"].tolist() == ["", "sex = f", "sex = m", "town = a", "town = b", "town = (missing)"]
    two = choose_servers(one_group(20, 0, attributes=table), losses=ALL[:2]).checks
    assert len(two) == 2 * 6


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
    assert report.reasons()[0] == (
        "Group 0: its own classifier is not shown to be as good after correction for the number of groups (0.00% "
        "instead of 5.00%, 100 rows)."
    )


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
    assert choose_servers(one).serves.tolist() == [0]
    each = one_group(8, 0, 80, persons=[f"id {k}" for k in range(80)])
    assert choose_servers(each, kind="proof") == choose_servers(one_group(8, 0, 80), kind="proof")
