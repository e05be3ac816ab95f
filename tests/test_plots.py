"""Charts say what the results say, in words and shapes as well as in colours."""

import functools
import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dafh import Scorecard, audit, explanation, plots
from dafh.exceptions import InputError
from dafh.plots.style import LINE_COLOURS, POINT_COLOURS
from models import network_case, rules_case, workers


def audited(n_groups=3, n=900, attributes=("sex",)):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(2, size=n), np.arange(n) % n_groups
    right = rng.random((n, n_groups + 1)) < np.append(np.linspace(0.6, 0.9, n_groups), 0.75)
    labels = np.where(right, y[:, None], 1 - y[:, None])
    people = pd.DataFrame({name: rng.choice(["a", "b"], n) for name in attributes}) if attributes else None
    return audit(y, labels[:, :-1], groups, pooled=labels[:, -1], sensitive_features=people)


def encodings(chart):
    """Encodings of all layers of a chart."""
    return [layer["encoding"] for layer in chart.to_dict()["layer"]]


@pytest.mark.parametrize("room", [plots, explanation], ids=["plots", "explanation"])
def test_every_public_name_has_an_example(room):
    for name in room.__all__:
        thing = getattr(room, name)
        if callable(thing):
            assert ">>>" in inspect.getdoc(thing), name


@pytest.mark.parametrize(
    ("draw", "table"),
    [
        (plots.preference_matrix, lambda result: result.cells()),
        (plots.gains, lambda result: result.questions),
        (plots.envy, lambda result: result.questions),
        (plots.named_groups, lambda result: result.worst_named()),
        (plots.composition, lambda result: result.composition),
    ],
)
def test_a_chart_of_a_result_is_the_chart_of_its_table(draw, table):
    result = audited()
    assert draw(result).to_dict() == draw(table(result)).to_dict()


@pytest.mark.parametrize("draw", [plots.named_groups, plots.composition])
def test_without_attributes_there_is_nothing_to_draw(draw):
    with pytest.raises(InputError, match="sensitive_features"):
        draw(audited(attributes=()))


@pytest.mark.parametrize("draw", [plots.gains, plots.envy, plots.named_groups])
def test_verdicts_differ_in_shape_as_well_as_in_colour(draw):
    dots = encodings(draw(audited()))[-1]
    for channel in ("color", "shape"):
        scale = dots[channel]["scale"]
        assert scale["domain"] == ["satisfied", "undecided", "violated"]
        assert len(set(scale["range"])) == 3


@pytest.mark.parametrize("draw", [plots.gains, plots.envy, plots.named_groups])
def test_gains_are_drawn_in_percentage_points(draw):
    result = audited()
    chart = draw(result)
    drawn = chart.layer[1].data
    np.testing.assert_allclose(drawn["points"], 100 * drawn["gap"].astype(float))
    assert "in percentage points" in encodings(chart)[1]["x"]["title"]


def test_the_matrix_frames_the_classifier_that_serves_each_group():
    cells = plots.preference_matrix(audited()).data
    framed = cells[cells["own"]]
    assert [(row.group, row.classifier) for row in framed.itertuples()] == [
        (f"group {k}", f"classifier {k}") for k in range(3)
    ]
    np.testing.assert_allclose(framed["points"], 0)


@pytest.mark.parametrize("n_groups", [2, 12])
def test_every_segment_of_the_composition_carries_the_number_of_its_group(n_groups):
    chart = plots.composition(audited(n_groups))
    bars, numbers = encodings(chart)
    assert numbers["text"]["field"] == "number"
    assert bars["color"]["scale"]["domain"] == [f"group {k}" for k in range(n_groups)]
    sums = chart.data.groupby("named_group")["share"].sum()
    np.testing.assert_allclose(sums, 1)


def lightness(colour):
    """CIE lightness of an sRGB colour, 0 to 100."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return 116 * np.cbrt(luminance) - 16


def test_neighbouring_bars_differ_in_lightness_and_text_on_them_is_readable():
    bars, numbers = encodings(plots.composition(audited(6)))
    shades = [lightness(colour) for colour in bars["color"]["scale"]["range"]]
    assert min(abs(one - other) for one, other in itertools.pairwise(shades)) > 25
    texts = [0 if colour == "black" else 100 for colour in numbers["color"]["scale"]["range"]]
    assert min(abs(text - shade) for text, shade in zip(texts, shades, strict=True)) > 45


def test_borders_are_darker_than_the_points_of_their_group():
    for point, line in zip(POINT_COLOURS, LINE_COLOURS, strict=True):
        assert lightness(point) - lightness(line) > 20


def test_training_and_held_out_rows_are_told_apart_by_dashes():
    model = network_case().model
    chart = plots.convergence(model)
    assert chart.to_dict() == plots.convergence(model[-1]).to_dict()
    dashes = chart.to_dict()["vconcat"][0]["layer"][0]["encoding"]["strokeDash"]["scale"]
    assert dashes["domain"] == ["training rows", "held-out rows"]
    assert dashes["range"][0] != dashes["range"][1]
    marked = chart.vconcat[0].layer[-1].data["name"].item()
    assert marked == f"selected: epoch {model[-1].best_epoch_}"


def test_a_panel_has_one_border_for_each_group_where_its_classifier_changes_its_mind():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])

    class TwoBorders:
        def predict_all(self, rows):
            return np.column_stack([rows["a"] > 0.5, rows["b"] > -0.5])

    groups = (X["a"] > 0).to_numpy(int)
    _, borders = plots.partition_panel(TwoBorders(), X, groups, groups, title="Two").layer
    first, second = (borders.data[borders.data["group"] == f"group {k}"] for k in (0, 1))
    np.testing.assert_allclose(first["x"], 0.5, atol=0.02)
    np.testing.assert_allclose(second["y"], -0.5, atol=0.02)


def test_a_classifier_without_groups_has_one_border(paper_data):
    X, y = paper_data.X[:200], paper_data.y[:200]
    model = LogisticRegression().fit(X, y)
    rows, borders = plots.partition_panel(model, X, y, np.zeros(200, int), title="Pooled").layer
    assert len(rows.data) == 200
    assert set(borders.data["group"]) == {"group 0"}


def test_rules_were_not_trained_in_epochs_and_have_no_curves():
    with pytest.raises(InputError, match="whose groups are a network"):
        plots.convergence(rules_case().model)


# ---- scorecards ----


@functools.cache
def scorecard(n_classes=2):
    data = workers(600)
    label = data.y if n_classes == 2 else np.where(data.X["experience"] > 30, "old", data.y)
    return Scorecard().fit(data.X, label)


def drawn(column, n_classes=2):
    return plots.scorecard_chart(scorecard(n_classes), column)


def test_bins_of_a_scorecard_are_those_of_its_table():
    bins, table = plots.scorecard_bins(scorecard()), scorecard().table()
    flags = bins["column"] == "remote"
    known = table[(table["rows"] > 0)]
    assert bins["column"].tolist() == known["column"].tolist()
    assert bins["bin"][~flags].tolist() == known["bin"][~flags.to_numpy()].tolist()
    np.testing.assert_allclose(bins["points"], known["points"])
    np.testing.assert_allclose(bins.groupby("column")["rows"].sum(), 1)


@pytest.mark.parametrize("column", ["experience", "job", "hours", "since", "remote"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_column_of_a_scorecard_is_drawn_from_it_as_from_its_bins(column, n_classes, tmp_path):
    chart = drawn(column, n_classes)
    assert chart.to_dict() == plots.scorecard_chart(plots.scorecard_bins(scorecard(n_classes)), column).to_dict()
    chart.save(tmp_path / "chart.svg")
    assert "<svg" in (tmp_path / "chart.svg").read_text()


def test_categories_are_sorted_by_points_and_numbers_by_value():
    categories = drawn("job").data
    assert categories["points"].is_monotonic_decreasing
    numbers = drawn("experience").data
    ends = numbers["end"][numbers["end"] != ""].astype(float)
    assert ends.is_monotonic_increasing
    assert numbers["start"].is_monotonic_increasing
    np.testing.assert_allclose(numbers["stop"] - numbers["start"], 1)


def test_gaps_stand_apart_from_the_numbers():
    numbers = drawn("hours").data
    *_, last, gap = numbers.itertuples()
    assert (gap.bin, gap.missing, last.missing) == ("missing", True, False)
    assert gap.start > last.stop
    assert "missing" not in drawn("experience").data["bin"].tolist()


def test_flags_are_called_true_and_false():
    assert set(drawn("remote").data["bin"]) == {"False", "True"}


def test_signs_and_classes_do_not_depend_on_colour_alone():
    bars = encodings(drawn("job"))[0]
    assert bars["color"]["condition"]["test"] == "datum.points < 0"  # They also lie on two sides of the line at zero.
    for column in ("job", "hours"):
        layers = encodings(drawn(column, 3))
        (shape,) = (layer["shape"] for layer in layers if "shape" in layer)
        assert len(set(shape["scale"]["range"])) == len(shape["scale"]["domain"]) == 3


@pytest.mark.parametrize("column", ["job", "hours"])
def test_tooltips_of_a_scorecard_have_value_points_and_share(column):
    for layer in encodings(drawn(column)):
        if "tooltip" in layer:
            assert [entry.get("title", entry["field"]) for entry in layer["tooltip"]] == [
                "value",
                "points",
                "share of rows",
            ]
    assert drawn(column).data["share"].str.endswith("%").all()


def test_a_share_of_few_rows_is_not_written_as_zero():
    bins = plots.scorecard_bins(scorecard()).assign(rows=lambda t: np.where(t["bin"] == "cook", 0.0004, 0.0006))
    shown = plots.scorecard_chart(bins, "job").data.set_index("bin")["share"]
    assert (shown["cook"], shown["clerk"]) == ("under 0.1%", "0.1%")


def test_of_many_categories_the_most_frequent_are_drawn():
    rng = np.random.default_rng(0)
    town = np.array([f"town {i:02d}" for i in range(40)])[np.minimum(rng.geometric(0.08, 2000) - 1, 39)]
    model = Scorecard().fit(pd.DataFrame({"town": town}), rng.integers(0, 2, 2000))
    shown = plots.scorecard_chart(model, "town").data
    assert len(shown) == 15
    assert set(shown["bin"]) == set(pd.Series(town).value_counts().index[:15])


def test_tiny_points_are_not_blown_up_to_the_size_of_the_chart():
    rng = np.random.default_rng(0)
    model = Scorecard().fit(pd.DataFrame({"noise": rng.normal(size=300)}), rng.integers(0, 2, 300))
    (scale,) = (
        e["y"]["scale"] for e in encodings(plots.scorecard_chart(model, "noise")) if e.get("y", {}).get("scale")
    )
    assert scale["domain"][0] <= -0.1
    assert scale["domain"][1] >= 0.1


def test_a_column_that_the_scorecard_has_not_is_refused():
    with pytest.raises(InputError, match="no column 'wage'"):
        drawn("wage")
