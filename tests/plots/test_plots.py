"""Charts say what the results say: what is drawn, where, what it is called, and never by colour alone."""

import functools
import html
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import vl_convert
from sklearn.linear_model import LogisticRegression

from cases import checkerboard
from dafh import Scorecard, audit, compare, plots
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.exceptions import InputError
from dafh.plots import LINE_COLOURS, POINT_COLOURS
from models import workers


def drawn(chart):
    """The chart as an SVG image."""
    return vl_convert.vegalite_to_svg(chart.to_dict())


def texts(chart):
    """Everything that is written on a chart, line by line."""
    return [html.unescape(text) for text in re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", drawn(chart))]


def places(chart):
    """Where the points of a chart are, across and down."""
    found = re.findall(r'aria-roledescription="point"[^>]*transform="translate\(([-\d.]+),([-\d.]+)\)', drawn(chart))
    return np.array(found, float).reshape(-1, 2)


def encodings(chart):
    return [layer["encoding"] for layer in chart.to_dict()["layer"]]


def with_gains(*gaps, groups=None, n=1000, verdict="undecided"):
    """An audit in which groups, of equal size unless names are given for all rows, gain so much over the pooled one."""
    result = audited(len(gaps), n=max(n, len(gaps)))
    about = result.questions[result.questions["kind"] == "rationality"]
    gap = np.array(gaps, float)
    changed = about.assign(gap=gap, low=gap - 0.1, high=gap + 0.1, verdict=verdict)
    return replace(result, questions=changed)


def with_named(*gaps, group, n=100, verdict="undecided", single=None):
    """An audit with so many named groups, of these gaps, rows and verdicts."""
    result, gap = audited(), np.array(gaps, float)
    table = pd.DataFrame({"kind": "rationality", "loss": "error", "group": group, "gap": gap, "n": n, "p": gap + 1})
    table = table.assign(low=gap - 0.1, high=gap + 0.1, p_corrected=0.5, verdict=verdict)
    composition = pd.DataFrame({"named_group": group if single is None else single})
    return replace(result, named=table, composition=composition)


@functools.cache
def audited(n_groups=3, n=900, attributes=("sex",)):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(2, size=n), np.arange(n) % n_groups
    right = rng.random((n, n_groups + 1)) < np.append(np.linspace(0.6, 0.9, n_groups), 0.75)
    labels = np.where(right, y[:, None], 1 - y[:, None])
    people = pd.DataFrame({name: rng.choice(["a", "b"], n) for name in attributes}) if attributes else None
    return audit(y, labels[:, :-1], groups, pooled=labels[:, -1], sensitive_features=people)


# ---- all charts of an audit ----


def test_without_attributes_there_are_no_named_groups_to_draw():
    with pytest.raises(InputError, match="sensitive_features"):
        plots.named_groups(audited(attributes=()))


def test_an_audit_of_one_row_can_be_drawn():
    result = audit([1], [[1]], [0], pooled=[0])
    assert "0.0%" in texts(plots.preference_matrix(result))
    assert len(places(plots.gains(result))) == 1


# ---- gains ----


@pytest.mark.parametrize("draw", [plots.gains, plots.named_groups])
def test_gains_are_in_percentage_points_and_verdicts_differ_in_shape(draw):
    chart = draw(audited())
    table = chart.layer[1].data
    np.testing.assert_allclose(table["points"], 100 * table["gap"].astype(float))
    assert "in percentage points" in encodings(chart)[1]["x"]["title"]
    for channel in ("color", "shape"):
        scale = encodings(chart)[-1][channel]["scale"]
        assert scale["domain"] == ["satisfied", "undecided", "violated"]
        assert len(set(scale["range"])) == 3


def test_a_gain_stands_right_of_zero_and_harm_left_of_it():
    better, equal, worse = places(plots.gains(with_gains(0.2, 0.0, -0.2)))[:, 0]
    assert worse < equal < better
    assert better - equal == pytest.approx(equal - worse, abs=0.01)


def test_axis_labels_have_a_sign_on_all_but_zero_and_the_legend_explains_undecided():
    labels = texts(plots.gains(with_gains(0.2, -0.2)))
    assert {"0", "+20", "undecided (not enough data)"} <= set(labels)
    assert not {"+0", "20"} & set(labels)


def test_a_gap_that_is_unknown_is_listed_but_not_drawn():
    chart = plots.gains(with_gains(0.2, np.nan))
    assert {"group 0", "group 1"} <= set(texts(chart))
    assert len(places(chart)) == 1


def test_groups_are_sorted_by_gain():
    labels = [text for text in texts(plots.gains(with_gains(0.1, 0.3, 0.2))) if text.startswith("group ")]
    assert labels == ["group 1", "group 2", "group 0"]


def test_a_chart_draws_one_loss_and_names_it_with_its_unit():
    y, row = np.tile([0, 1], 400), np.arange(800)
    own = np.where(row < 200, 1 - y, y)
    result = audit(y, own, row % 4 // 2, pooled=1 - y, losses=("cost", "fnr"), costs={"fp": 1, "fn": 5})
    assert {"gain in cost", "per 100 rows"} <= set(texts(plots.gains(result)))
    assert "gain in false negative rate" in texts(plots.gains(result, loss="fnr"))
    assert len(places(plots.gains(result, loss="fnr"))) == 2


def test_of_a_comparison_discovered_and_named_groups_are_drawn_those_that_lose_first():
    rng = np.random.default_rng(0)
    y, age = rng.integers(0, 2, 4000), rng.integers(20, 60, 4000)
    new = np.where(age > 50, 1 - y, y)
    people = pd.DataFrame({"sex": np.resize(["f", "m"], 4000)})
    result = compare(y, y, new, pd.DataFrame({"age": age}), sensitive_features=people)
    first = plots.gains(result).layer[1].data.iloc[0]
    assert first["name"].startswith("age is above")
    assert (first["verdict"], first["points"]) == ("violated", -100.0)
    assert set(plots.named_groups(result).layer[1].data["name"]) == {"sex = f", "sex = m"}
    assert "over the old model," in texts(plots.named_groups(result))[-20:] or "over the old model" in str(
        encodings(plots.named_groups(result))[1]["x"]["title"]
    )


# ---- named groups ----


def test_small_named_groups_are_left_out_unless_they_lose():
    names = ["sex = f", "sex = m", "age = old", "town = a", "town = b"]
    verdicts = ["undecided"] * 3 + ["violated", "satisfied"]
    result = with_named(0.1, 0.2, 0.3, -0.4, 0.5, group=names, n=[50, 49, 60, 3, 70], verdict=verdicts)
    assert plots.named_groups(result).layer[1].data["name"].tolist() == ["town = a", "sex = f", "age = old", "town = b"]
    many = with_named(*[0.1] * 30, group=[f"town = {k}" for k in range(30)])
    assert len(plots.named_groups(many).layer[1].data) == 20


def test_a_chart_of_a_result_leaves_out_intersections_unless_they_lose():
    y, row = np.tile([0, 1], 400), np.arange(800)
    people = pd.DataFrame({"sex": row // 2 % 2, "town": row // 4 % 2})
    harmed = (people["sex"] == 1) & (people["town"] == 1)
    result = audit(y, np.where(harmed, 1 - y, y), np.zeros(800, int), pooled=y, sensitive_features=people)
    names = plots.named_groups(result).layer[1].data["name"].tolist()
    assert set(names) == {"sex = 0", "sex = 1", "town = 0", "town = 1", "sex = 1 & town = 1"}


def test_long_names_that_begin_alike_are_drawn_on_lines_of_their_own():
    start = "a question of a form that nobody has ever read to the end, answer = "
    chart = plots.named_groups(with_named(0.1, 0.2, -0.3, group=[f"{start}yes", f"{start}no", f"{start}both"]))
    assert len(set(places(chart)[:, 1])) == 3
    assert chart.layer[1].data["name"].str.len().max() < 70


def test_names_with_line_breaks_markup_and_two_attributes_are_written_as_they_are():
    labels = texts(plots.named_groups(with_named(0.1, 0.2, group=["<b>sex</b> =\n'f'", "sex = f & age = old"])))
    assert {"<b>sex</b> = 'f'", "sex = f &", "age = old"} <= set(labels)


# ---- preference matrix ----


def of_errors(*errors, own=0):
    """An audit of one group, served by one of several classifiers of these errors; the last is the pooled one."""
    row = np.arange(10_000) / 10_000
    wrong = row[:, None] < np.array(errors)
    labels = wrong.astype(int)
    return audit(np.zeros(10_000, int), labels[:, :-1], np.zeros(10_000, int), pooled=labels[:, -1], own=[own])


def test_the_matrix_writes_errors_and_frames_the_classifier_that_serves():
    chart = plots.preference_matrix(of_errors(0.1, 0.25, 0.2, own=1))
    assert {"10.0%", "25.0%", "20.0%", "classifier 0", "classifier 1", "pooled"} <= set(texts(chart))
    (frame,) = re.findall(r'aria-label="([^"]*)"[^>]*stroke-width="3"', drawn(chart))
    assert "classifier: classifier 1" in frame


def test_a_group_without_rows_is_a_dash():
    y = np.array([0, 1] * 20)
    table = plots.preference_matrix(audit(y, np.column_stack([y, y]), np.zeros(40, int), pooled=1 - y)).data
    assert set(table.loc[table["group"] == "group 1", "label"]) == {"–"}


@pytest.mark.parametrize(
    ("errors", "limit"),
    [((0.1, 0.25, 0.2), 15), ((0.3, 0.1, 0.31), 20), ((0.1, 0.1001), 0.5)],
)
def test_colours_are_scaled_by_the_largest_difference_but_not_by_rounding_errors(errors, limit):
    colour = encodings(plots.preference_matrix(of_errors(*errors)))[0]["color"]
    assert colour["scale"]["domain"] == pytest.approx([-limit, 0, limit])


# ---- colours ----


def lightness(colour):
    """CIE lightness of an sRGB colour, 0 to 100."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


def test_lines_on_points_are_readable():
    assert all(lightness(p) - lightness(line) > 20 for p, line in zip(POINT_COLOURS, LINE_COLOURS, strict=True))


# ---- two features ----


class SplitAtZero:
    """Two groups: the border of one lies at zero of the first feature, that of the other at zero of the second."""

    def __init__(self, names):
        self.names = list(names)

    def predict_all(self, rows):
        assert rows.columns.tolist() == self.names
        return (rows > 0).to_numpy()


def panels(names=("a", "b"), n_labels=2, **options):
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (60, 2)), columns=list(names))
    y, groups = np.arange(60) % n_labels, np.arange(60) % 2
    one = LogisticRegression().fit(X.to_numpy(), y)
    labels = one.predict(X.to_numpy())
    pooled = SimpleNamespace(predict=lambda rows: np.zeros(len(rows)))
    matrix = PreferenceMatrix.from_predictions(y, labels[:, None], groups * 0, labels)
    both = PreferenceMatrix.from_predictions(y, np.column_stack([y, y]), groups, labels)
    results = [
        SimpleNamespace(method="Pooled", model=pooled, groups=groups * 0, matrix=matrix),
        SimpleNamespace(method="Both right", model=SplitAtZero(names), groups=groups, matrix=both),
    ]
    chart = plots.synthetic_panels(SimpleNamespace(X=X, y=y, results=results), **options)
    return chart.concat, (labels == y).mean()


@pytest.mark.parametrize("names", [("income.2020", "b[0]"), ("group", "label"), (0, 1), ("a:Q", "it's"), ("y", "x")])
def test_features_of_any_name_are_drawn(names):
    (_, panel), _ = panels(names)
    assert {str(name) for name in names} <= set(texts(panel))
    assert len(np.unique(places(panel), axis=0)) == 60


def test_every_label_has_a_shape_of_its_own():
    (_, panel), _ = panels(n_labels=4)
    shapes = dict(
        re.findall(r'label: label (\d)[^"]*"[^>]*aria-roledescription="point"[^>]*? d="([^"]*)"', drawn(panel))
    )
    assert len(shapes) == len(set(shapes.values())) == 4


def test_a_border_lies_where_the_label_changes_and_a_constant_classifier_has_none():
    (constant, panel), _ = panels()
    borders = panel.layer[2].data
    np.testing.assert_allclose(borders.loc[borders["group"] == "group 0", "x"], 0, atol=0.02)
    np.testing.assert_allclose(borders.loc[borders["group"] == "group 1", "y"], 0, atol=0.02)
    assert constant.layer[2].data.empty


def test_the_positive_side_of_each_classifier_is_shaded():
    (constant, panel), _ = panels()
    shaded = panel.layer[0].data
    for name, axis in (("group 0", "x"), ("group 1", "y")):
        side = shaded.loc[shaded["group"] == name, axis]
        assert len(side) > 100
        assert (side > -0.02).all() or (side < 0.02).all()
    assert constant.layer[0].data.empty  # It calls every row 0.


def test_panels_say_accuracy_and_draw_no_more_points_than_asked():
    both, accuracy = panels(n_points=25)
    assert [len(panel.layer[1].data) for panel in both] == [25, 25]
    titles = [panel.title["subtitle"] for panel in both]
    assert titles == [f"accuracy {accuracy:.1%}", "Pr without harm 100.0%, accuracy 100.0%"]


# ---- over time ----


def test_evidence_is_drawn_within_limits_and_shows_what_an_alarm_needs():
    table = pd.DataFrame({"batch": [1, 2], "name": "group 0", "harm_evidence": [1e-9, 1e9], "harm_needed": 20.0})
    chart = plots.evidence_over_time(table)
    assert chart.layer[0].data["drawn"].tolist() == [0.01, 10_000]
    assert "needed for an alarm" in texts(chart)
    assert "needed for an alarm" not in texts(plots.evidence_over_time(table.assign(harm_needed=np.nan)))


def test_a_gain_over_time_has_zero_in_the_middle_and_its_unit():
    table = pd.DataFrame({"batch": [1, 2], "gain": [0.02, -0.01], "low": -0.5, "high": 0.5, "in_batch": [0.03, np.nan]})
    chart = plots.gain_over_time(table, "per 100 rows")
    low, high = encodings(chart)[2]["y"]["scale"]["domain"]
    assert low == -high == pytest.approx(-6)  # The first limits are so wide that nothing else could be seen.
    assert "gain, per 100 rows" in texts(chart)
    assert len(places(chart)) == 1


def test_shares_over_time_have_a_dotted_line_for_the_reference():
    table = pd.DataFrame({"batch": [1, 2], "name": "age missing", "in_batch": [0.1, 0.3], "reference_share": 0.1})
    chart = plots.shares_over_time(table)
    assert chart.layer[1].mark.strokeDash == [1, 3]
    assert chart.data["in_batch"].tolist() == [0.1, 0.3]


# ---- scorecards ----


@functools.cache
def scorecard(n_classes=2):
    data = workers(600)
    label = data.y if n_classes == 2 else np.where(data.X["experience"] > 30, "old", data.y)
    return Scorecard().fit(data.X, label)


def points_of(column, n_classes=2):
    return plots.scorecard_chart(scorecard(n_classes), column)


@pytest.mark.parametrize(
    ("column", "n_classes"), checkerboard(["experience", "job", "hours", "since", "remote"], [2, 3])
)
def test_a_column_is_drawn_with_the_points_of_its_table(column, n_classes):
    drawn, table = (
        points_of(column, n_classes).data,
        scorecard(n_classes).table().query("column == @column and rows > 0"),
    )
    np.testing.assert_allclose(np.sort(drawn["points"]), np.sort(table.filter(like="points").to_numpy().ravel()))
    assert drawn.groupby("bin")["rows"].first().sum() == pytest.approx(1)
    assert "points" in texts(points_of(column, n_classes))


def test_categories_are_sorted_by_points_and_numbers_by_value_with_gaps_last():
    assert points_of("job").data["points"].is_monotonic_decreasing
    numbers = points_of("hours").data
    assert numbers["bin"].tolist() == scorecard().table().query("column == 'hours' and rows > 0")["bin"].tolist()
    assert numbers["bin"].iloc[-1] == "missing"
    assert {numbers["bin"].iloc[0], "missing"} <= set(texts(points_of("hours")))
    assert set(points_of("remote").data["bin"]) == {"False", "True"}


@pytest.mark.parametrize("column", ["job", "hours"])
def test_signs_and_classes_do_not_depend_on_colour_alone(column):
    (shape,) = (layer["shape"] for layer in encodings(points_of(column, 3)) if "shape" in layer)
    assert len(set(shape["scale"]["range"])) == len(shape["scale"]["domain"]) == 3
    # Of two classes, points lie on two sides of the line at zero.
    assert encodings(points_of(column))[-1][{"job": "x", "hours": "y"}[column]]["field"] == "zero"


def test_of_many_categories_the_most_frequent_are_drawn():
    rng = np.random.default_rng(0)
    town = np.array([f"town {i:02d}" for i in range(40)])[np.minimum(rng.geometric(0.08, 2000) - 1, 39)]
    model = Scorecard().fit(pd.DataFrame({"town": town}), rng.integers(0, 2, 2000))
    shown = plots.scorecard_chart(model, "town").data
    assert set(shown["bin"]) == set(pd.Series(town).value_counts().index[:15])


def test_tiny_points_are_not_blown_up_to_the_size_of_the_chart():
    rng = np.random.default_rng(0)
    model = Scorecard().fit(pd.DataFrame({"noise": rng.normal(size=300)}), rng.integers(0, 2, 300))
    layers = encodings(plots.scorecard_chart(model, "noise"))
    (domain,) = (e["y"]["scale"]["domain"] for e in layers if e.get("y", {}).get("scale"))
    assert domain[0] <= -0.1 < 0.1 <= domain[1]


def test_a_column_that_the_scorecard_has_not_is_refused():
    with pytest.raises(InputError, match="no column 'wage'"):
        points_of("wage")
