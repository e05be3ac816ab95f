"""What people see of an audit, in a terminal, in a notebook and as plain values; and audits of fitted models."""

import html
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from audited import SMALL, rows, run
from dafh import AuditResult, audit
from dafh.evaluation.audit import failed_now, group_changes
from dafh.evaluation.losses import Loss
from dafh.stats import mcnemar_p

# ---- what people see ----


def test_a_summary_shows_six_named_groups_those_that_are_harmed_first():
    people = pd.DataFrame({"town": np.arange(1200) % 12, "half": np.arange(1200) // 600})
    result = audit(**SMALL, sensitive_features=people, depth=1)
    shown = [line.split("  ")[0].strip() for line in str(result).split("\n\n")[-1].splitlines()[2:]]
    assert len(shown) == 6
    assert set(shown[:3]) == {"half = 1", "town = 3", "town = 4"}
    assert set(result.named["group"][result.named["verdict"] == "violated"]) == set(shown[:3])


def test_who_is_failed_now_is_ranked_by_the_loss_with_the_pooled_classifier_with_exact_limits():
    y, pooled = np.zeros(500, int), (np.arange(500) % 10 < np.repeat([1, 4, 2, 9], [200, 200, 60, 40])).astype(int)
    people = pd.DataFrame({"sex": np.repeat(["f", "m", "x", "few"], [200, 200, 60, 40])})
    table = failed_now(audit(y, y, np.zeros(500, int), pooled=pooled, sensitive_features=people))
    assert table["who"].tolist() == ["all rows", "sex = m", "sex = x", "sex = f"]  # Forty rows are too few to rank.
    assert table["pooled_loss"].tolist() == pytest.approx([148 / 500, 0.4, 0.2, 0.1])
    assert table["fpr_pooled"].tolist() == pytest.approx(table["pooled_loss"].tolist())
    limits = binomtest(80, 200).proportion_ci(0.95, method="exact")
    assert table.loc[1, ["low", "high"]].tolist() == pytest.approx(list(limits), abs=1e-6)


def test_groups_are_listed_by_gain_and_those_that_nothing_changes_for_come_last():
    y, group = np.zeros(1200, int), np.repeat([0, 1, 2], 400)
    place = np.arange(1200) % 400
    pooled = (place < 80).astype(int)
    own = np.where(group == 1, place < 20, place < 60).astype(int)
    predictions = np.column_stack([own, own])
    table = group_changes(audit(y, predictions, group, pooled=pooled, own=[0, 1, 2]))
    assert table["group"].tolist() == ["1", "0", "2"]
    assert table["gain"].tolist() == pytest.approx([0.15, 0.05, 0])
    assert table["served_by"].tolist() == ["its own", "its own", "pooled"]
    assert table["changed"].tolist() == [True, True, False]


@pytest.mark.parametrize(("n_groups", "most_lines"), [(1, 40), (4, 40), (9, 60)])
def test_the_summary_of_an_audit_fits_on_a_screen(n_groups, most_lines):
    rng = np.random.default_rng(0)
    group = rng.integers(0, n_groups, 4000)
    y, pooled, own = (
        np.zeros(4000, int),
        rng.random(4000) < 0.3,
        rng.random(4000) < np.linspace(0.1, 0.4, n_groups)[group],
    )
    people = pd.DataFrame({"town": rng.integers(0, 10, 4000).astype(str), "sex": rng.choice(["f", "m"], 4000)})
    predictions = np.repeat(own[:, None].astype(int), n_groups, axis=1)
    result = audit(y, predictions, group, pooled=pooled.astype(int), sensitive_features=people)
    assert len(str(result).splitlines()) <= most_lines


def test_envy_and_other_metrics_of_the_paper_are_details():
    result = audit(**SMALL)
    assert "envy" not in str(result)
    assert "Pr without harm 83.3%" in result.details()
    assert "2 violated" in result.details()


def test_a_notebook_shows_what_the_terminal_shows():
    result = audit(**SMALL, sensitive_features=pd.DataFrame({"sex": np.where(np.arange(1200) % 2, "f", "m")}))
    page = result._repr_html_()
    assert page.count("<table") == 3
    assert all(html.escape(line) in page for line in str(result.recommendation).splitlines())


def test_cells_hold_every_error_rate_and_who_serves():
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
    assert cells.loc[("1", "1"), "error"] == pytest.approx(250 / 600)


def test_the_dict_holds_plain_values_and_the_figures_of_the_matrix():
    content = audit(**SMALL).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert (content["rows"], content["groups"], content["sizes"]) == (1200, 2, [600, 600])
    assert content["accuracy"] == pytest.approx(0.75)
    assert content["pr_without_harm"] == pytest.approx(10 / 12)
    assert content["disagreement"] == pytest.approx(4 / 12)
    assert content["errors"] == [pytest.approx([1 / 12, 5 / 12, 3 / 12])] * 2
    assert content["violations"] == {"point": 2, "significant": 2, "corrected": 2}
    assert (content["named_groups"], content["composition"]) == (None, None)
    assert content["questions"][0]["rows_needed"] is None
    assert content["recommendation"]["kind"] == "deploy_some"


def test_some_groups_alone_are_tried_where_the_rows_support_some_and_not_others():
    y, groups, right, wrong = [0] * 400, [0] * 200 + [1] * 200, [0] * 200, [1] * 200
    result = audit(y, right + wrong, groups, pooled=wrong + right)
    assert result.trial.totals["own_loss"].tolist() == [0]
    assert result.trial.evidence["changed"].tolist() == [True, False]
    assert audit(y, wrong + wrong, groups, pooled=right + right).trial is None
    assert audit(y, right + right, groups, pooled=wrong + wrong).trial is None


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


def test_nothing_from_the_data_becomes_markup():
    table = pd.DataFrame({"<b>x</b>": ["<script>alert(1)</script>", "y"] * 100})
    page = run(rows(200), sensitive_features=table)._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


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
        direct = audit(y, X[:, 1], X[:, 0], pooled=X[:, 2], X=X, sensitive_features=people, **options)
        found = AuditResult.of(Served(), X, y, sensitive_features=people, **options)
        assert found.to_dict() == direct.to_dict()


def test_a_model_knows_its_positive_class_and_the_losses_that_its_guard_protects():
    X, _ = served_rows()
    model = Served()
    model.classes_, model.losses_ = np.array([1, 0]), (Loss("fnr"),)
    result = AuditResult.of(model, X, X[:, 2])
    assert result.losses == ("fnr",)
    assert set(result.questions["loss"]) == {"fnr"}
    assert result.questions["n"].sum() == 350  # Label 0, the second one, has 7 of 12 rows.


def test_only_a_model_whose_groups_are_all_served_by_the_pooled_classifier_changes_nothing():
    X, y = served_rows()
    assert not AuditResult.of(Served([2, 2]), X, y).changed
    envious = AuditResult.of(Served([0, 2]), X, y)  # Group 1 would do better with classifier 0: that is no harm.
    assert (envious.changed, envious.harm, envious.recommendation.deploy) == (True, False, ("0",))
    assert AuditResult.of(Served([0, 2]), X, X[:, 2]).harm  # The pooled one is always right.
    assert AuditResult.of(Served([0, 2]), X[:12], y[:12]).classifiers == ("0", "pooled")


def test_an_audit_that_changes_nothing_says_who_is_failed_and_shows_no_table_of_zeros():
    X, y = served_rows()
    result = AuditResult.of(Served([2, 2]), X, y)
    assert "all rows" in result._repr_html_()
    assert "+0.00" not in str(result)
