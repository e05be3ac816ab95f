"""Figures of the studies: what is drawn, and in which order."""

import pandas as pd
import pytest

from dafh import plots


def test_the_band_of_a_study_is_one_standard_deviation_wide_on_either_side():
    steps = pd.DataFrame({"split": [0, 1, 2], "step": 1, "part": "test", "pr": [0.7, 0.8, 0.9], "accuracy": 0.5})
    band = plots.study_convergence(steps, {"pr": 0.75, "accuracy": 0.6}).concat[0].layer[0].data
    assert band[["low", "mean", "high"]].to_numpy().ravel() == pytest.approx([0.7, 0.8, 0.9])
    single = plots.study_convergence(steps[:1], {"pr": 0.75, "accuracy": 0.6}).concat[0].layer[0].data
    assert single["low"].item() == single["high"].item() == pytest.approx(0.7)


def test_panels_of_attributes_keep_the_order_of_ages_and_of_groups():
    ages = ["greater than 45", "25 - 45", "less than 25"]
    shares = pd.DataFrame([(g, "other", "Male", age, 0.1) for g in (10, 2) for age in ages])
    chart = plots.attribute_panels(shares.set_axis(["group", "race_group", "sex", "age_group", "share"], axis=1))
    encoding = chart.to_dict()["spec"]["layer"][0]["encoding"]
    assert encoding["x"]["sort"] == ["under 25", "25 to 45", "over 45"]
    assert encoding["xOffset"]["sort"] == encoding["color"]["scale"]["domain"] == ["group 2", "group 10"]
    assert set(chart.data["age_group"]) == {"under 25", "25 to 45", "over 45"}


def test_points_of_rivals_whose_labels_would_cover_each_other_share_one():
    points = pd.DataFrame(
        {
            "dataset": "bank",
            "tuning": "log-loss",
            "name": ["ARL", "DRO", "JTT", "pooled"],
            "family": "rival",
            "guard": "no",
            "worst": [0.5, 0.501, 0.3, 0.7],
            "harmed": [0.9, 0.95, 0.9, 0.0],
            "pooled": 0.7,
        }
    )
    assert plots.harm_and_worst(points).data["label"].tolist() == ["", "DRO; ARL", "JTT", ""]
