"""Charts as a reader sees them: what is drawn, where it is drawn, and what it is called."""

import html
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dafh import DecoupledClassifier, audit, plots
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.exceptions import InputError
from dafh.plots.style import VERDICT_COLOURS, bar_colours, text_on_bars


def drawn(chart):
    """The chart as an SVG image."""
    return vl_convert.vegalite_to_svg(chart.to_dict())


def texts(chart):
    """Everything that is written on a chart, line by line."""
    found = re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", drawn(chart))
    return [html.unescape(text) for text in found]


def marks(chart, role):
    """What each mark of one kind says to a screen reader."""
    labels = re.findall(rf'aria-label="([^"]*)"[^>]*aria-roledescription="{role}"', drawn(chart))
    labels += re.findall(rf'aria-roledescription="{role}"[^>]*aria-label="([^"]*)"', drawn(chart))
    return [html.unescape(label) for label in labels]


def questions(*gaps, kind="rationality", **columns):
    """A table of questions with the given gaps, as an audit makes it."""
    n = len(gaps)
    table = pd.DataFrame({"kind": kind, "loss": "error", "group": range(n), "rival": "pooled", "gap": gaps, "n": 100.0})
    table = table.assign(low=table["gap"] - 0.1, high=table["gap"] + 0.1, p=0.5, p_corrected=0.5, verdict="undecided")
    return table.assign(**columns)


# ---- gains ----


def test_a_gain_stands_right_of_zero_and_harm_left_of_it():
    svg = drawn(plots.gains(questions(0.2, 0.0, -0.2)))
    places = [float(x) for x in re.findall(r'aria-roledescription="point"[^>]*transform="translate\(([-\d.]+)', svg)]
    better, equal, worse = places
    assert worse < equal < better
    assert better - equal == pytest.approx(equal - worse, abs=0.01)


def test_axis_labels_have_a_sign_on_all_but_zero():
    labels = texts(plots.gains(questions(0.2, -0.2)))
    assert "0" in labels
    assert "+20" in labels
    assert not {"+0", "20"} & set(labels)


def test_undecided_means_not_enough_data_in_the_legend():
    labels = texts(plots.gains(questions(0.2)))
    assert [label for label in labels if label in ("satisfied", "undecided (not enough data)", "violated")] == [
        "satisfied",
        "undecided (not enough data)",
        "violated",
    ]


def test_a_gap_that_is_unknown_is_listed_but_not_drawn():
    chart = plots.gains(questions(0.2, np.nan))
    assert {"group 0", "group 1"} <= set(texts(chart))
    assert len(marks(chart, "point")) == 1
    assert chart.layer[1].data["interval"].tolist() == ["+10.00 to +30.00", ""]


def test_groups_keep_their_order_whatever_their_number():
    labels = [text for text in texts(plots.gains(questions(*[0.1] * 12))) if text.startswith("group ")]
    assert labels == [f"group {k}" for k in range(12)]


def test_each_chart_draws_its_own_questions_only():
    both = pd.concat([questions(0.1, 0.2), questions(0.3, kind="envy", rival=1)])
    assert plots.gains(both).layer[1].data["points"].tolist() == pytest.approx([10, 20])
    assert plots.envy(both).layer[1].data["points"].tolist() == pytest.approx([30])
    assert {"group 0 against", "classifier 1"} <= set(texts(plots.envy(both)))  # Two lines: screens are narrow.


def test_a_chart_draws_one_loss_and_names_it_with_its_unit():
    both = pd.concat([questions(0.1, 0.2, loss="cost"), questions(0.3, 0.4, loss="fnr")])
    assert plots.gains(both).layer[1].data["points"].tolist() == pytest.approx([10, 20])
    assert plots.gains(both, loss="fnr").layer[1].data["points"].tolist() == pytest.approx([30, 40])
    assert {"gain in cost", "per 100 rows"} <= set(texts(plots.gains(both)))
    assert {"gain in false negative rate", "in percentage points"} <= set(texts(plots.gains(both, loss="fnr")))
    with pytest.raises(InputError, match="not asked about the loss 'fpr'"):
        plots.named_groups(both, loss="fpr")


# ---- decisions ----


def rates(*names, **columns):
    table = pd.DataFrame({"name": names, "rows": 100})
    for name in ("flagged", "fpr", "fnr"):
        table = table.assign(**{name: 0.2, f"{name}_pooled": 0.4})
    return table.assign(**columns)


def test_a_rate_is_drawn_twice_in_different_shapes():
    chart = plots.decisions(rates("all rows", "group 0"), "fpr")
    assert chart.layer[1].data.groupby("side")["value"].first().to_dict() == {
        "pooled classifier": 0.4,
        "this model": 0.2,
    }
    scale = chart.to_dict()["layer"][1]["encoding"]["shape"]["scale"]
    assert len(set(scale["range"])) == 2
    assert {"pooled classifier", "this model", "false positive rate", "all rows", "group 0"} <= set(texts(chart))


def test_a_rate_that_is_unknown_is_listed_but_not_drawn():
    chart = plots.decisions(rates("a", "b", fnr=[0.1, np.nan], fnr_pooled=[0.1, np.nan]), "fnr")
    assert {"a", "b"} <= set(texts(chart))
    assert len(marks(chart, "point")) == 2


def test_of_very_many_named_groups_the_first_are_drawn():
    assert len(plots.decisions(rates(*[f"town = {i}" for i in range(99)])).layer[0].data) == 30


def test_three_labels_have_no_rates_to_draw():
    y = np.arange(30) % 3
    with pytest.raises(InputError, match="no rates to draw"):
        plots.decisions(audit(y, y, np.zeros(30, int), pooled=y))


# ---- named groups ----


def test_named_groups_stand_in_the_order_of_the_table_and_small_ones_are_left_out_unless_they_lose():
    table = questions(0.1, 0.2, 0.3, -0.4, 0.5, group=["sex = f", "sex = m", "age = old", "town = a", "town = b"])
    table = table.assign(n=[50, 49, 60, 3, 70], verdict=["undecided"] * 3 + ["violated", "satisfied"])
    shown = plots.named_groups(table, n_groups=3).layer[1].data["name"].tolist()
    assert shown == ["sex = f", "age = old", "town = a"]


def test_a_chart_of_a_result_leaves_out_intersections_unless_they_lose():
    y, row = np.tile([0, 1], 400), np.arange(800)
    people = pd.DataFrame({"sex": row // 2 % 2, "town": row // 4 % 2})
    harmed = (people["sex"] == 1) & (people["town"] == 1)
    result = audit(y, np.where(harmed, 1 - y, y), np.zeros(800, int), pooled=y, sensitive_features=people)
    names = plots.named_groups(result).layer[1].data["name"].tolist()
    assert set(names) == {"sex = 0", "sex = 1", "town = 0", "town = 1", "sex = 1 & town = 1"}


def test_a_group_of_two_attributes_takes_two_lines():
    table = questions(0.1, 0.2, group=["sex = f & age = old", "sex = m"])
    assert {"sex = f &", "age = old", "sex = m"} <= set(texts(plots.named_groups(table)))
    one, two = plots.named_groups(table.iloc[1:]), plots.named_groups(table)
    assert two.height / 2 > one.height  # More room for each line.


def test_long_names_that_begin_alike_are_drawn_on_lines_of_their_own():
    start = "a question of a form that nobody has ever read to the end, answer = "
    chart = plots.named_groups(questions(0.1, 0.2, -0.3, group=[f"{start}yes", f"{start}no", f"{start}both"]))
    names = chart.layer[1].data["name"].tolist()
    assert len(set(names)) == 3
    assert all(len(name) < 70 for name in names)
    heights = re.findall(r'aria-roledescription="point"[^>]*transform="translate\([-\d.]+,([-\d.]+)', drawn(chart))
    assert len(set(heights)) == 3


def test_names_with_line_breaks_and_markup_are_written_as_they_are():
    labels = texts(plots.named_groups(questions(0.1, group=["<b>sex</b> =\n'f'"])))
    assert "<b>sex</b> = 'f'" in labels


# ---- preference matrix ----


def cells(*errors, own=0):
    """The cells of one group with a classifier for each error; the last is the pooled one."""
    names = [*map(str, range(len(errors) - 1)), "pooled"]
    table = pd.DataFrame({"group": 0, "classifier": names, "error": errors, "rows": 100})
    table["own"] = table.index == own
    return table.assign(low=table["error"] - 0.01, high=table["error"] + 0.01, gap=table["error"] - errors[own])


def test_the_matrix_writes_errors_and_their_intervals():
    labels = texts(plots.preference_matrix(cells(0.1, 0.25, 0.2)))
    assert {"10.0%", "25.0%", "20.0%", "9.0 to 11.0%", "classifier 0", "classifier 1", "pooled"} <= set(labels)


def test_colours_are_scaled_by_the_largest_difference_from_the_own_classifier():
    def domain(*errors):
        return plots.preference_matrix(cells(*errors)).to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]

    assert domain(0.1, 0.25, 0.2) == pytest.approx([-15, 0, 15])
    assert domain(0.3, 0.1, 0.31) == pytest.approx([-20, 0, 20])
    assert domain(0.1, 0.1001) == [-0.5, 0, 0.5]  # A rounding error must not get full colour.
    assert domain(0.1, np.nan, 0.2) == pytest.approx([-10, 0, 10])


def test_only_the_classifier_that_serves_is_framed():
    svg = drawn(plots.preference_matrix(cells(0.1, 0.25, 0.2, own=1)))
    frames = re.findall(r'aria-label="([^"]*)"[^>]*stroke-width="3"', svg)
    assert len(frames) == 1
    assert "classifier: classifier 1" in frames[0]


# ---- composition ----


def test_bars_stand_in_the_order_of_the_groups_and_carry_their_numbers():
    n_groups = 12
    table = pd.DataFrame({"named_group": ["sex = f"], "weight": [100.0]})
    chart = plots.composition(table.assign(**{f"in_{k}": 1 / n_groups for k in range(n_groups)}))
    numbers = [text for text in texts(chart) if text in map(str, range(n_groups))]
    assert numbers == [str(k) for k in range(n_groups)]
    svg = drawn(chart)
    starts = [float(x) for x in re.findall(r'aria-roledescription="bar" d="M([-\d.]+),', svg)]
    assert sorted(starts) == starts
    assert len(starts) == n_groups


@pytest.mark.parametrize(("share", "opacity"), [(0.04, 0), (0.05, 1), (0.5, 1)])
def test_a_bar_without_room_for_its_number_has_none(share, opacity):
    table = pd.DataFrame({"named_group": ["sex = f"], "weight": [9.0], "in_0": [share], "in_1": [1 - share]})
    first = re.search(r'<text[^>]*opacity="([\d.]+)"[^>]*>0<', drawn(plots.composition(table)))
    assert (1 if first is None else float(first[1])) == opacity


@given(st.integers(1, 40))
def test_neighbours_never_share_a_colour(n):
    names = [f"group {k}" for k in range(n)]
    shades, text = bar_colours(names).range, text_on_bars(names).range
    assert len(shades) == len(text) == n
    assert all(one != other for one, other in itertools.pairwise(shades))
    assert len(set(shades)) == min(n, 6)


def as_seen(colour, blind):
    """Red, green and blue as readers see them who cannot tell red from green (Viénot, Brettel and Mollon, 1999)."""
    light = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) ** 2.2
    if blind:
        light = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]) @ light
    return np.clip(light, 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize("blind", [False, True], ids=["all colours", "red-green blind"])
def test_colours_of_groups_are_not_those_of_answers_and_neighbours_differ(blind):
    shades = [as_seen(colour, blind) for colour in bar_colours([f"group {k}" for k in range(6)]).range]
    answers = [as_seen(colour, blind) for colour in VERDICT_COLOURS.values()]
    assert min(np.linalg.norm(shade - answer) for shade in shades for answer in answers) > 0.25
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(shades, 2)) > 0.25


# ---- panels of two features ----


def plane(n=100, names=("a", "b"), n_labels=2):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=list(names))
    return X, np.arange(n) % n_labels, np.arange(n) % 2


class SplitAtZero:
    """Two groups with the same border, at zero of the first feature."""

    def __init__(self, names):
        self.names = list(names)

    def predict_all(self, rows):
        assert rows.columns.tolist() == self.names
        return np.repeat((rows.iloc[:, [0]] > 0).to_numpy(), 2, axis=1)


@pytest.mark.parametrize("names", [("income.2020", "b[0]"), ("group", "label"), (0, 1), ("a:Q", "it's"), ("y", "x")])
def test_features_of_any_name_are_drawn(names):
    X, y, groups = plane(names=names)
    chart = plots.partition_panel(SplitAtZero(names), X, y, groups, title="Panel")
    assert {str(name) for name in names} <= set(texts(chart))
    svg = drawn(chart)
    places = re.findall(r'aria-roledescription="point"[^>]*transform="translate\(([-\d.]+),([-\d.]+)\)', svg)
    assert len(set(places)) == len(X)
    across = np.array(places, float)[:, 0]
    np.testing.assert_array_equal(np.argsort(across), np.argsort(X.iloc[:, 0].to_numpy()))


def test_every_label_has_a_shape_of_its_own():
    X, y, groups = plane(n_labels=4)
    svg = drawn(plots.partition_panel(SplitAtZero("ab"), X, y, groups, title="Four labels"))
    shapes = dict(re.findall(r'label: label (\d)[^"]*"[^>]*aria-roledescription="point"[^>]*? d="([^"]*)"', svg))
    assert len(shapes) == len(set(shapes.values())) == 4


def test_a_border_lies_where_the_label_changes_and_a_constant_classifier_has_none():
    X, y, groups = plane()
    borders = plots.partition_panel(SplitAtZero("ab"), X, y, groups, title="Panel").layer[1].data
    assert set(borders["group"]) == {"group 0", "group 1"}
    np.testing.assert_allclose(borders["x"], 0, atol=0.02)
    assert borders["y"].min() < X["b"].min()  # From edge to edge.
    assert borders["y"].max() > X["b"].max()
    constant = SimpleNamespace(predict=lambda rows: np.zeros(len(rows)))
    assert plots.partition_panel(constant, X, y, groups * 0, title="None").layer[1].data.empty


def test_panels_say_accuracy_and_draw_no_more_points_than_asked():
    X, y, groups = plane(60)
    model = LogisticRegression().fit(X, y)
    labels = model.predict(X)
    matrix = PreferenceMatrix.from_predictions(y, labels[:, None], groups * 0, labels)
    two = PreferenceMatrix.from_predictions(y, np.column_stack([y, y]), groups, labels)
    results = [
        SimpleNamespace(method="Pooled", model=model, groups=groups * 0, matrix=matrix),
        SimpleNamespace(method="Both right", model=SplitAtZero("ab"), groups=groups, matrix=two),
    ]
    chart = plots.synthetic_panels(SimpleNamespace(X=X, y=y, results=results), n_points=25)
    assert [len(panel.layer[0].data) for panel in chart.concat] == [25, 25]
    titles = [panel.title["subtitle"] for panel in chart.concat]
    assert titles == [f"accuracy {(labels == y).mean():.1%}", "Pr without harm 100.0%, accuracy 100.0%"]


# ---- training ----


def history(n=4):
    names = [f"{part}_{metric}" for part in ("train", "selection") for metric in ("accuracy", "pr")]
    values = np.linspace(0.5, 0.9, 4 * n).reshape(n, 4)
    return pd.DataFrame(values, columns=names, index=pd.RangeIndex(1, n + 1, name="epoch"))


def test_curves_show_the_columns_they_are_named_after():
    table = history().reset_index()
    for metric in plots.CURVES:
        lines = plots.curve(table, metric, best_epoch=1).layer[0].data
        for rows, part in (("training rows", "train"), ("held-out rows", "selection")):
            assert lines.loc[lines["rows"] == rows, "value"].tolist() == table[f"{part}_{metric}"].tolist()


@pytest.mark.parametrize(("epoch", "side"), [(1, "left"), (2, "left"), (3, "right"), (4, "right")])
def test_the_mark_of_the_selected_epoch_is_written_where_there_is_room(epoch, side):
    *_, text = plots.curve(history().reset_index(), "pr", best_epoch=epoch).to_dict()["layer"]
    assert text["mark"]["align"] == side


def test_a_history_alone_has_no_selected_epoch():
    chart = plots.convergence(history())
    assert [len(panel.layer) for panel in chart.vconcat] == [1, 1]
    model = SimpleNamespace(history_=history(), best_epoch_=3)
    assert "selected: epoch 3" in texts(plots.convergence(model))


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
def test_a_model_without_training_has_no_curves(wrap):
    with pytest.raises(InputError, match="pass a fitted DAFHClassifier"):
        plots.convergence(wrap(DecoupledClassifier()))


def test_an_unknown_curve_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="one of 'accuracy', 'pr', got 'loss'"):
        plots.curve(history().reset_index(), "loss")


def test_an_audit_of_one_row_can_be_drawn():
    result = audit([1], [[1]], [0], pooled=[0])
    assert "0.0%" in texts(plots.preference_matrix(result))
    assert len(marks(plots.gains(result), "point")) == 1
