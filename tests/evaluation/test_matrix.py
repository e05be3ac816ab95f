import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.matrix import PreferenceMatrix

METRICS = (
    "accuracy", "disagreement", "disparity_change", "max_envy_gap", "max_gain", "min_gain",
    "pr_without_harm", "violations",
)  # fmt: skip


@st.composite
def predictions(draw, max_groups=4):
    n_groups = draw(st.integers(1, max_groups))
    n = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return {
        "y": rng.integers(3, size=n),
        "predictions": rng.integers(3, size=(n, n_groups)),
        "groups": rng.integers(n_groups, size=n),
        "pooled": rng.integers(3, size=n),
    }


def metrics(**rows):
    matrix = PreferenceMatrix.from_predictions(**rows)
    return {name: getattr(matrix, name) for name in METRICS}


def assert_same(first, second):
    assert first == pytest.approx(second, nan_ok=True, abs=1e-9)


# Two groups of four rows; group 0 is served by classifier 0, group 1 by classifier 1; y is all 1.
HAND = {
    "y": np.ones(8, int),
    "predictions": np.array([[1, 0], [1, 0], [1, 1], [0, 1], [1, 1], [1, 0], [0, 0], [0, 0]]),
    "groups": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
    "pooled": np.array([1, 0, 0, 0, 1, 1, 0, 0]),
}


def test_hand_worked_matrix():
    matrix = PreferenceMatrix.from_predictions(**HAND)
    np.testing.assert_allclose(matrix.errors, [[0.25, 0.5, 0.75], [0.5, 0.75, 0.5]])
    np.testing.assert_allclose(matrix.gains, [0.5, -0.25])
    np.testing.assert_allclose(matrix.envy_gaps, [[np.nan, 0.25], [-0.25, np.nan]])


def test_hand_worked_metrics():
    assert metrics(**HAND) == {
        "accuracy": 0.5,  # 3 of 4 and 1 of 4
        "pr_without_harm": 0.75,  # rows 3 and 5: own wrong, another right
        "violations": 2,  # group 1 prefers the pooled classifier, and classifier 0
        "max_gain": 0.5,
        "min_gain": -0.25,
        "max_envy_gap": 0.25,
        "disparity_change": 0.25,  # own: 0.75 - 0.25 = 0.5, pooled: 0.5 - 0.25 = 0.25
        "disagreement": 0.625,  # all agree on rows 4, 6, 7
    }


@given(predictions())
def test_regret_identity(rows):
    """1 − Pr is the probability that the own classifier is wrong and at least one other right."""
    right = np.column_stack([rows["predictions"], rows["pooled"]]) == rows["y"][:, None]
    own = right[np.arange(len(right)), rows["groups"]]
    matrix = PreferenceMatrix.from_predictions(**rows)
    assert 1 - matrix.pr_without_harm == pytest.approx((~own & right.any(axis=1)).mean())
    assert matrix.pr_without_harm == pytest.approx(matrix.accuracy + (~right.any(axis=1)).mean())


@given(predictions(), st.integers(0, 2**32 - 1))
def test_renaming_groups_changes_nothing(rows, seed):
    n_groups = rows["predictions"].shape[1]
    new_name = np.random.default_rng(seed).permutation(n_groups)
    renamed = rows | {"groups": new_name[rows["groups"]], "predictions": rows["predictions"][:, np.argsort(new_name)]}
    assert_same(metrics(**rows), metrics(**renamed))


@given(predictions(), st.integers(0, 2**32 - 1))
def test_an_integer_weight_is_a_repetition(rows, seed):
    weight = np.random.default_rng(seed).integers(0, 4, size=len(rows["y"]))
    if not weight.any():
        weight[0] = 1
    repeated = {k: np.repeat(v, weight, axis=0) for k, v in rows.items()}
    assert_same(metrics(**rows, sample_weight=weight), metrics(**repeated))


@given(predictions())
def test_copies_of_the_pooled_classifier_harm_nobody_and_gain_nothing(rows):
    copies = np.repeat(rows["pooled"][:, None], rows["predictions"].shape[1], axis=1)
    found = metrics(**rows | {"predictions": copies})
    accuracy = (rows["pooled"] == rows["y"]).mean()
    neutral = {"pr_without_harm": 1.0, "violations": 0, "max_gain": 0.0, "min_gain": 0.0, "disagreement": 0.0}
    assert found == pytest.approx(neutral | {"accuracy": accuracy, "max_envy_gap": 0.0, "disparity_change": 0.0})


@given(predictions())
def test_the_largest_envy_gap_is_the_papers_and_never_negative(rows):
    matrix = PreferenceMatrix.from_predictions(**rows)
    errors, own = matrix.errors[:, :-1], matrix.own_errors
    gaps = [errors[k, j] - own[k] for k in range(len(own)) for j in range(errors.shape[1]) if matrix.sizes[k]]
    assert matrix.max_envy_gap == pytest.approx(max(gaps), abs=1e-12)
    assert matrix.max_envy_gap >= 0


@given(predictions(max_groups=1))
def test_a_single_group_has_no_envy(rows):
    matrix = PreferenceMatrix.from_predictions(**rows)
    assert matrix.max_envy_gap == matrix.disparity_change == 0


def test_an_empty_group_has_no_figures_and_no_violations():
    rows = {"y": [1, 1], "predictions": [[1, 0, 0], [1, 0, 0]], "groups": [0, 0], "pooled": [1, 1]}
    matrix = PreferenceMatrix.from_predictions(**rows)
    assert matrix.sizes.tolist() == [2, 0, 0]
    assert np.isnan(matrix.errors[1:]).all()
    assert (matrix.violations, matrix.accuracy, matrix.max_gain, matrix.disparity_change) == (0, 1.0, 0.0, 0.0)


def test_several_groups_may_share_a_classifier_or_the_pooled_one():
    matrix = PreferenceMatrix.from_predictions(
        y=[1, 1, 1], predictions=[[1, 0], [1, 0], [0, 1]], groups=[0, 1, 2], pooled=[0, 1, 0], own=[0, 0, 2]
    )
    np.testing.assert_allclose(matrix.gains, [1, 0, 0])
    np.testing.assert_allclose(matrix.envy_gaps, [[np.nan, 1], [np.nan, 1], [0, -1]])
    assert matrix.violations == 1


def test_rounding_of_weights_is_not_a_violation():
    # Both classifiers err on a weight of 0.3, summed in different ways.
    matrix = PreferenceMatrix.from_predictions(
        y=[1, 1, 1, 1],
        predictions=[[0, 1], [0, 1], [1, 0], [1, 1]],
        groups=[0, 0, 0, 1],
        pooled=[0, 0, 1, 1],
        sample_weight=[0.1, 0.2, 0.3, 1.0],
    )
    assert matrix.violations == 0
