"""What people see of an audit, in a terminal, in a notebook and as plain values; and audits of fitted models."""

import html
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from audited import SMALL, people, rows, run
from dafh import AuditResult, DecoupledClassifier, audit, tabular_pipeline
from dafh.evaluation.losses import Loss
from dafh.evaluation.paired import ComparedRows
from dafh.partitions import IntersectionPartition
from dafh.stats import mcnemar_p

# ---- what people see ----


def test_the_summary_reads_from_the_recommendation_to_the_details():
    table, _ = people()
    text = run(rows(4000, errors=(0.1, 0.4)), sensitive_features=table).summary()
    assert text.startswith("RECOMMENDATION: Deploy for group 0 only")
    assert "\n\nHARM: for group 1 the error rate is higher" in text
    text = text.split("\n\n", 1)[1]
    for part in ("4,000 rows, 2 groups", "Pr without harm", "after correction", "gap, points", "sex = f"):
        assert part in text
    assert max(len(line) for line in text.splitlines()[1:]) <= 140


SUMMARY = """\
RECOMMENDATION: Deploy for group 0 only, and keep the pooled classifier for group 1.
On 1,200 test rows, with this group alone, the error rate falls from 25.0% to 16.7%: gain +8.33 percentage points (95% interval +6.74 to +10.04).
16.7% of rows are flagged, before 25.0%; the false positive rate is 16.7%, before 25.0%.
Why not for all: for group 1, it is shown to lose 16.67 percentage points (95% interval 13.58 to 19.89).
With this group alone, no group is shown to lose. For both named groups, a loss of more than 1 percentage point is ruled out (95% interval of each).
This group was chosen on the rows that the figures come from, so expect a little less: audit the model on new rows once the pooled classifier serves the others.

HARM: for group 1 the error rate is higher than with the pooled classifier by more than 1 percentage point: by 16.67 percentage points (95% interval 13.58 to 19.89; p < 0.001 after correction for 6 questions).
Questions about groups: 2 violated, 2 satisfied, 0 undecided.
Questions about named groups: 0 violated, 0 satisfied, 2 undecided.

1,200 rows, 2 groups, level 0.05, margin 1 percentage point
accuracy 75.0%, pooled 75.0%; Pr without harm 83.3%, classifiers disagree on 33.3% of rows
gain in error rate +0.00 percentage points (95% interval -2.40 to +2.40)
comparisons in which a group looks worse off: 2 observed, 2 significant, 2 after correction for the number of questions

 group  against  rows  own error  rival error  gap, points      95% interval  corrected p  answer
     0   pooled   600       8.3%        25.0%       +16.67  +13.58 to +19.89        1.000  satisfied
     0        1   600       8.3%        41.7%       +33.33  +29.38 to +37.26        1.000  satisfied
     1   pooled   600      41.7%        25.0%       -16.67  -19.89 to -13.58       <0.001  violated
     1        0   600      41.7%         8.3%       -33.33  -37.26 to -29.38       <0.001  violated

Named groups against the pooled classifier:

 group    against  rows  own error  rival error  gap, points    95% interval  corrected p  answer
 sex = f   pooled   600      16.7%        16.7%        +0.00  -3.45 to +3.45        1.000  undecided
 sex = m   pooled   600      33.3%        33.3%        +0.00  -3.45 to +3.45        1.000  undecided

Decisions with the pooled classifier and with this model (flagged: the second label is predicted):

 group      rows  flagged, pooled → own  false positive rate, pooled → own  false negative rate, pooled → own
 all rows  1,200          25.0% → 25.0%                      25.0% → 25.0%                              – → –
 0           600           25.0% → 8.3%                       25.0% → 8.3%                              – → –
 1           600          25.0% → 41.7%                      25.0% → 41.7%                              – → –
 sex = f     600          16.7% → 16.7%                      16.7% → 16.7%                              – → –
 sex = m     600          33.3% → 33.3%                      33.3% → 33.3%                              – → –"""  # noqa: E501


def test_the_whole_summary_of_a_small_audit():
    people = pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")})
    result = audit(**SMALL, sensitive_features=people, margin=0.01)
    assert str(result) == SUMMARY


def test_a_summary_shows_ten_named_groups_those_that_are_harmed_first():
    people = pd.DataFrame({"town": np.arange(1200) % 12, "half": np.arange(1200) // 600})
    result = audit(**SMALL, sensitive_features=people, depth=1)
    text = str(result).split("\n\n")[:-2]  # The last two parts are the table of decisions.
    assert text[-2] == "Named groups against the pooled classifier, 10 of 14 (single attributes first):"
    shown = [line.split("  ")[0].strip() for line in text[-1].splitlines()[1:]]
    assert len(shown) == 10
    assert set(shown[:3]) == {"half = 1", "town = 3", "town = 4"}
    assert set(result.named["group"][result.named["verdict"] == "violated"]) == set(shown[:3])


def test_the_table_of_decisions_shows_all_rows_all_groups_and_ten_named_groups():
    people = pd.DataFrame({"town": list("abcdefghijkl") * 100})
    lines = str(audit(**SMALL, sensitive_features=people)).split("\n\n")[-1].splitlines()
    shown = [line.split("  ")[0].strip() for line in lines[1:]]
    assert shown == ["all rows", "0", "1", *(f"town = {town}" for town in "abcdefghij")]


def test_the_clearest_harm_beyond_the_margin_is_shown_first():
    """4,000 rows that lose 60 are within a margin of 5 points; 100 rows that lose 20 are not."""
    town = np.r_[np.zeros(4000, int), np.ones(100, int)]
    own = np.r_[np.ones(60, int), np.zeros(3940 + 80, int), np.ones(20, int)]
    y = np.zeros(4100, int)
    result = audit(y, own, y, pooled=y, sensitive_features=pd.DataFrame({"town": town}), margin=0.05)
    assert result.named["verdict"].tolist() == ["satisfied", "violated"]
    shown = str(result).split("\n\n")[-3].splitlines()[-2:]
    assert [line.split("  ")[0].strip() for line in shown] == ["town = 1", "town = 0"]


def test_small_p_values_are_rounded_to_three_decimals():
    y, own = np.zeros(1000, int), np.r_[np.ones(9, int), np.zeros(991, int)]
    assert " 0.002 " in str(audit(y, own, y, pooled=y)).split("\n\n")[3]  # 2**-9
    own[9] = 1
    assert " <0.001 " in str(audit(y, own, y, pooled=y)).split("\n\n")[3]  # 2**-10


def test_the_figures_name_a_margin_only_if_there_is_one():
    assert "1,200 rows, 2 groups, level 0.05" in str(audit(**SMALL)).splitlines()
    one = audit([0] * 20, [[0]] * 20, [0] * 20, pooled=[0] * 20, level=0.1)
    assert "20 rows, 1 group, level 0.1" in str(one).splitlines()


def test_a_gain_in_cost_is_told_per_hundred_rows():
    text = str(audit(**SMALL, losses="cost", costs={"fp": 1, "fn": 5}))
    assert "\ngain in cost +0.00 per 100 rows (95% interval -" in text


def test_the_verdict_knows_the_level_and_what_was_gained_in_total():
    assert "(90% interval " in audit(**SMALL, level=0.1).verdict.sentence
    nothing, something = (audit([0] * 40, [1] + [0] * 39, [0] * 40, pooled=[0] + [1] * k + [0] * (39 - k))
                          for k in (1, 2))  # fmt: skip
    assert (nothing.verdict.status, something.verdict.status) == ("nothing_gained", "undecided")


def test_a_notebook_shows_what_the_terminal_shows():
    result = audit(**SMALL, sensitive_features=pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")}))
    page = result._repr_html_()
    assert page.count("<table") == 3
    for line in [*str(result.verdict).splitlines(), "Named groups against the pooled classifier:", "1,200 rows"]:
        assert html.escape(line, quote=False) in page
    assert audit(**SMALL)._repr_html_().count("<table") == 2


def test_cells_hold_every_error_rate_with_its_exact_interval():
    result = audit(**SMALL, level=0.1)
    cells = result.cells().set_index(["group", "classifier"])
    assert cells.loc[("1", "0"), "error"] == pytest.approx(1 / 12)
    assert cells.loc[("1", "0"), "gap"] == pytest.approx(-4 / 12)
    assert cells.loc[("0", "pooled"), "gap"] == pytest.approx(2 / 12)
    assert cells["own"].to_dict() == {
        ("0", "0"): True, ("1", "0"): False, ("0", "1"): False, ("1", "1"): True,
        ("0", "pooled"): False, ("1", "pooled"): False,
    }  # fmt: skip
    assert (cells["rows"] == 600).all()
    low, high = binomtest(250, 600).proportion_ci(0.9, method="exact")
    assert cells.loc[("1", "1"), ["low", "high"]].tolist() == pytest.approx([low, high])


def test_the_dict_holds_the_figures_of_the_matrix():
    content = audit(**SMALL).to_dict()
    assert content["rows"] == 1200
    assert content["groups"] == 2
    assert content["sizes"] == [600, 600]
    assert content["accuracy"] == pytest.approx(0.75)
    assert content["pooled_accuracy"] == pytest.approx(0.75)
    assert content["pr_without_harm"] == pytest.approx(10 / 12)
    assert content["disagreement"] == pytest.approx(4 / 12)
    assert content["errors"] == [pytest.approx([1 / 12, 5 / 12, 3 / 12])] * 2
    assert (content["level"], content["margin"]) == (0.05, 0.0)
    assert content["violations"] == {"point": 2, "significant": 2, "corrected": 2}
    assert (content["named_groups"], content["composition"]) == (None, None)
    assert content["questions"][0]["group"] == 0
    assert content["questions"][0]["rows_needed"] is None
    assert content["losses"] == ["error"]
    assert [total["gain"] for total in content["totals"]] == [0]
    assert [row["group"] for row in content["rates"]] == ["all rows", "0", "1"]
    assert content["recommendation"]["kind"] == "deploy_some"


def test_some_groups_alone_are_tried_where_the_rows_support_some_and_not_others():
    y, groups, right, wrong = [0] * 400, [0] * 200 + [1] * 200, [0] * 200, [1] * 200
    assert audit(y, right + wrong, groups, pooled=wrong + right).trial.totals["own_loss"].tolist() == [0]
    assert audit(y, wrong + wrong, groups, pooled=right + right).trial is None
    assert audit(y, right + right, groups, pooled=wrong + wrong).trial is None


def test_without_sensitive_features_there_is_no_worst_named_group():
    result = audit(**SMALL)
    assert result.worst_named().shape == (0, result.questions.shape[1])


def test_significant_means_by_the_test_alone_and_below_zero():
    """Group 0 loses 7 and wins 1 of 100 rows: p = 0.035, and 0.07 after correction for two questions."""
    y = np.zeros(200, int)
    own = np.r_[np.ones(7, int), np.zeros(193, int)]
    pooled = np.r_[np.zeros(7, int), 1, np.zeros(192, int)]
    result = audit(y, own, np.repeat([0, 1], 100), pooled=pooled)
    assert result.violations == {"point": 1, "significant": 1, "corrected": 0}
    assert audit(y, own, np.repeat([0, 1], 100), pooled=pooled, level=0.03).violations["significant"] == 0
    exactly = float(mcnemar_p(7, 1))
    assert audit(y, own, np.repeat([0, 1], 100), pooled=pooled, level=exactly).violations["significant"] == 1


def test_the_frame_of_an_audit_is_a_copy_with_named_groups_at_the_end():
    people = pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")})
    result = audit(**SMALL, sensitive_features=people)
    frame = result.to_frame()
    assert frame["group"].tolist() == [0, 0, 1, 1, "sex = f", "sex = m"]
    plain = audit(**SMALL)
    changed = plain.to_frame()
    changed.loc[0, "verdict"] = "changed"
    assert plain.questions.loc[0, "verdict"] == "satisfied"
    assert result.attributes == ("sex",)
    assert plain.attributes == ()
    assert result.classifiers == ("0", "1", "pooled")


def test_nothing_from_the_data_becomes_markup():
    table = pd.DataFrame({"<b>x</b>": ["<script>alert(1)</script>", "y"] * 100})
    page = run(rows(200), sensitive_features=table)._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


def test_the_dict_holds_plain_values_only():
    table, _ = people()
    content = run(rows(4000), sensitive_features=table).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert {"verdict", "accuracy", "pr_without_harm", "questions", "named_groups", "violations"} <= set(content)


class Served:
    """A fitted model of two groups: classifier 0 serves both, or the pooled one does."""

    n_groups_ = 2

    def __init__(self, serves=(0, 0)):
        self.serves_ = np.array(serves)

    def predict_group(self, X):
        return X[:, 0]

    def predict_all(self, X):
        served = np.where(self.serves_ == 2, X[:, 2:3], X[:, 1:2])
        return np.column_stack([served, X[:, 2]])


def served_rows():
    row = np.arange(600)
    return np.column_stack([row % 2, row % 12 < 3, row % 12 < 5]).astype(int), np.zeros(600, int)


def test_a_model_is_audited_like_its_predictions():
    X, y = served_rows()
    people, weight = pd.DataFrame(X[:, ::2] * [1, 0], columns=["a", "b"]).assign(c=X[:, 1]), 1 + X[:, 1]
    for options in (
        {},
        {"level": 0.2, "margin": 0.01, "depth": 1, "sample_weight": weight, "persons": np.arange(600) // 3},
    ):
        direct = audit(y, X[:, 1], X[:, 0], pooled=X[:, 2], sensitive_features=people, **options)
        assert AuditResult.of(Served(), X, y, sensitive_features=people, **options) == direct


def test_a_model_knows_its_positive_class_and_the_losses_that_its_guard_protects():
    X, _ = served_rows()
    model = Served()
    model.classes_, model.losses_ = np.array([1, 0]), (Loss("fnr"),)
    result = AuditResult.of(model, X, X[:, 2])
    assert result.losses == ("fnr",)
    assert set(result.questions["loss"]) == {"fnr"}
    assert result.questions["n"].sum() == 350  # Label 0, the second one, has 7 of 12 rows.


def test_checked_rows_are_audited_with_the_same_defaults():
    X, y = served_rows()
    people = pd.DataFrame({name: X[:, k] for k, name in enumerate("abc")})
    rows = ComparedRows.check(y, X[:, 1:2], X[:, 0], X[:, 2], own=[0, 0])
    direct = audit(y, X[:, 1], X[:, 0], pooled=X[:, 2], sensitive_features=people)
    assert AuditResult.from_rows(rows, [0, 1], [0, "pooled"], people) == direct


def test_only_a_model_whose_groups_are_all_served_by_the_pooled_classifier_changes_nothing():
    X, y = served_rows()
    assert AuditResult.of(Served([2, 2]), X, y).verdict.status == "unchanged"
    assert AuditResult.of(Served([0, 2]), X, y).verdict.status == "harm"  # Group 1 would do better with classifier 0.
    assert AuditResult.of(Served([0, 2]), X, X[:, 2]).verdict.status == "harm"  # The pooled one is always right.
    few = AuditResult.of(Served([0, 2]), X[:12], y[:12])
    assert few.verdict.status == "undecided"
    assert few.classifiers == ("0", "pooled")


def test_an_audit_that_changes_nothing_shows_no_table_of_zeros():
    X, y = served_rows()
    result = AuditResult.of(Served([2, 2]), X, y)
    assert str(result).splitlines()[3].startswith("UNCHANGED: ")
    assert len(str(result).splitlines()) == 7
    assert "<table" not in result._repr_html_()


def test_a_model_and_a_pipeline_can_be_audited(paper_data):
    model = DecoupledClassifier(IntersectionPartition())
    model.fit(paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    result = AuditResult.of(model, paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert result.matrix.accuracy == pytest.approx(
        model.score(paper_data.X, paper_data.y, sensitive_features=paper_data.sensitive_features)
    )
    frame = pd.DataFrame(paper_data.X).add_prefix("x")
    pipeline = tabular_pipeline(DecoupledClassifier(random_state=0)).fit(frame, paper_data.y)
    both = AuditResult.of(pipeline, frame, paper_data.y, sensitive_features=paper_data.sensitive_features)
    assert both.matrix.accuracy == pytest.approx(pipeline.score(frame, paper_data.y))
