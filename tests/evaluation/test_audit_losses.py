"""The audit of small tables, for every loss: hand-worked figures, and named groups answered like any other."""

import numpy as np
import pandas as pd
import pytest

from dafh import audit
from dafh.stats import rows_needed

LOSSES = ("error", "fpr", "fnr", "cost")
COSTS = {"fp": 1, "fn": 5}

# Of the negative rows with a weight the own classifier gets one more wrong than the pooled one, of the positive rows
# one less.
EIGHT_ROWS = {
    "y": [0, 0, 0, 0, 1, 1, 1, 1],
    "predictions": [[1], [1], [0], [0], [0], [1], [1], [1]],
    "groups": [0] * 8,
    "pooled": [1, 0, 0, 0, 0, 0, 1, 1],
    "sample_weight": [1, 1, 1, 0, 1, 1, 1, 1],
}
BY_HAND = {
    "loss": list(LOSSES),
    "rival": ["pooled"] * 4,
    "kind": ["rationality"] * 4,
    "n": [7, 3, 4, 7],
    "own_loss": [3 / 7, 2 / 3, 1 / 4, (2 * 1 + 1 * 5) / 7],
    "rival_loss": [3 / 7, 1 / 3, 2 / 4, (1 * 1 + 2 * 5) / 7],
    "gap": [0, -1 / 3, 1 / 4, 4 / 7],
    "own_worse": [1, 1, 0, 1],
    "own_better": [1, 0, 1, 1],
}


def test_every_loss_counts_its_own_rows():
    everybody = pd.DataFrame({"person": ["any"] * 8})
    result = audit(**EIGHT_ROWS, losses=LOSSES, costs=COSTS, sensitive_features=everybody)
    for asked in (result.questions, result.named):
        pd.testing.assert_frame_equal(asked[list(BY_HAND)], pd.DataFrame(BY_HAND), check_dtype=False)
    assert set(result.questions["group"]) == {0}
    assert set(result.named["group"]) == {"person = any"}


def random_rows(n=120):
    """Rows of two groups with a classifier each, a named attribute, weights, and persons with three rows each."""
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, n), rng.integers(0, 2, n)
    predictions, pooled = (rng.random((n, 2)) < 0.3 + 0.3 * y[:, None]) * 1, (rng.random(n) < 0.3 + 0.4 * y) * 1
    town = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    return y, predictions, groups, pooled, town, rng.choice([0.25, 1.0], n), np.arange(n) // 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by_person", [False, True])
def test_named_groups_are_answered_for_every_loss_as_if_they_were_segments(weighted, by_person):
    y, predictions, groups, pooled, town, weight, person = random_rows()
    options = {
        "losses": LOSSES,
        "costs": COSTS,
        "margin": 0.01,
        "sample_weight": weight if weighted else None,
        "persons": person if by_person else None,
    }
    named = audit(y, predictions, groups, pooled=pooled, sensitive_features=pd.DataFrame({"town": town}), **options)
    served = predictions[np.arange(len(y)), groups]
    direct = audit(y, served, np.char.add("town = ", town), pooled=pooled, **options).questions
    # Named groups have half of the level beside learned ones.
    shared = ["p_corrected", "rows_needed"]
    pd.testing.assert_frame_equal(named.named.drop(columns=shared), direct.drop(columns=shared), check_dtype=False)
    np.testing.assert_allclose(named.named["p_corrected"], np.minimum(2 * direct["p_corrected"], 1))


def test_rows_needed_are_those_of_the_level_that_is_left_for_one_question():
    """Two groups beside two named ones: half of 5% for two questions is 1.25% for each."""
    y = np.zeros(80, int)
    own, pooled = (np.arange(80) % 8 == 0) * 1, (np.arange(80) % 8 == 1) * 1
    pooled[:40] *= np.arange(40) < 32
    sex = pd.DataFrame({"sex": np.repeat(["f", "m"], 40)})
    result = audit(y, own, np.repeat([0, 1], 40), pooled=pooled, margin=0.02, sensitive_features=sex)
    assert result.questions["gap"].tolist() == [pytest.approx(-1 / 40), 0]
    expected = rows_needed(np.array([-1 / 40, 0]) + 0.02, np.array([9 / 40, 10 / 40]), level=0.05 / 2 / 2)
    np.testing.assert_allclose(result.questions["rows_needed"], expected)
    np.testing.assert_allclose(result.named["rows_needed"], expected)


def test_a_single_question_needs_the_rows_of_its_two_sided_interval():
    """The whole level of 10% for one question, or the half of it that named groups leave: 5% on either side."""
    rows = {"y": [0] * 40, "predictions": [[1]] + [[0]] * 39, "groups": [0] * 40, "pooled": [0, 1, 1] + [0] * 37}
    expected = rows_needed(np.array([1 / 40]), np.array([3 / 40]), level=0.1 / 2)
    for people in (None, pd.DataFrame({"person": ["any"] * 40})):
        asked = audit(**rows, level=0.1, sensitive_features=people).questions
        np.testing.assert_allclose(asked["rows_needed"], expected)
