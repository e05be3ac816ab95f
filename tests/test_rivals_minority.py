"""ARL and JTT raise the accuracy of a minority that columns and label identify; the adversary's gradient is right."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit

from dafh.exceptions import InputError
from dafh.rivals import ARLClassifier, DROClassifier, JTTClassifier
from dafh.rivals.arl import LinearAdversary
from dafh.rivals.training import TrainingRows

MINORITY = 2


def draw(seed):
    """A sign that goes with the label, but for one row in ten: those have the label without the sign."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    y = (group > 0).astype(int)
    sign = (group == 1) + rng.normal(0, 0.3, 1500)
    hint = (2 * y - 1) + rng.normal(0, 1.5, 1500)
    return np.column_stack([sign, hint, rng.normal(size=1500)]), y, group


@pytest.fixture(scope="module")
def minority_rows():
    return draw(0), draw(1)


def accuracy(model, rows):
    """Accuracy in the minority, and among all."""
    (X, y, _), (X_new, y_new, group) = rows
    right = model.set_params(hidden=10, random_state=0).fit(X, y).predict(X_new) == y_new
    return right[group == MINORITY].mean(), right.mean()


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_arl_and_jtt_raise_the_accuracy_of_an_identifiable_minority(kind, minority_rows):
    plain, overall = accuracy(DROClassifier(1, model=kind), minority_rows)
    for rival in (ARLClassifier(model=kind), JTTClassifier(model=kind)):
        found, all_rows = accuracy(rival, minority_rows)
        assert found > plain + 0.08
        assert all_rows > overall - 0.03


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_without_adversary_or_upweighting_both_are_plain_training(kind, minority_rows):
    (X, y, _), (X_new, _, _) = minority_rows
    options = {"model": kind, "hidden": 5, "random_state": 0}
    plain = DROClassifier(1, **options).fit(X, y).predict_proba(X_new)
    assert_allclose(ARLClassifier(0, **options).fit(X, y).predict_proba(X_new), plain, atol=1e-5)
    if kind == "linear":  # The second network of JTT has a start and batches of its own.
        assert_allclose(JTTClassifier(1, **options).fit(X, y).predict_proba(X_new), plain, atol=1e-5)


def test_the_errors_of_the_first_model_are_counted_by_weight(minority_rows):
    (X, y, _), _ = minority_rows
    first = DROClassifier(1).fit(X, y)
    model = JTTClassifier().fit(X, y)
    assert model.error_share_ == pytest.approx(1 - first.score(X, y))


def test_a_first_model_that_stops_early_makes_more_errors(minority_rows):
    (X, y, _), _ = minority_rows
    assert JTTClassifier(first_iter=1).fit(X, y).error_share_ > JTTClassifier().fit(X, y).error_share_


def test_errors_count_as_if_their_rows_were_there_more_often(minority_rows):
    (X, y, _), _ = minority_rows
    wrong = DROClassifier(1).fit(X, y).predict(X) != y
    rows = np.repeat(np.arange(len(y)), np.where(wrong, 3, 1))
    # Without a penalty, which would be another one for columns that are standardised over other rows.
    known = DROClassifier(1, l2=0).fit(X[rows], y[rows])
    assert_allclose(JTTClassifier(3, l2=0).fit(X, y).predict_proba(X), known.predict_proba(X), atol=1e-5)


def adversary_rows(n_classes=2):
    rng = np.random.default_rng(0)
    label = rng.integers(0, n_classes, 40)
    return TrainingRows(rng.normal(size=(40, 2)), label, rng.uniform(0.5, 2, 40), n_classes)


@pytest.mark.parametrize(("n_classes", "n_inputs"), [(2, 4), (3, 6)])
def test_the_gradient_of_the_adversary_agrees_with_finite_differences(n_classes, n_inputs):
    rows = adversary_rows(n_classes)
    adversary, rng = LinearAdversary(rows, 0.1), np.random.default_rng(1)
    losses = rng.exponential(size=40)
    adversary.coefficients = rng.normal(size=n_inputs)

    def weighted_loss(coefficients):
        score = expit(adversary._inputs @ coefficients)
        return rows.share @ (score * losses) / (rows.share @ score)

    expected = approx_fprime(adversary.coefficients, weighted_loss, 1e-7)
    assert_allclose(adversary.gradient(adversary._inputs, rows.share, losses), expected, atol=1e-6)


def test_the_adversary_weighs_a_region_with_high_losses_and_its_weights_have_mean_one():
    rows = adversary_rows()
    adversary = LinearAdversary(rows, 1.0)
    high = rows.x[:, 0] + rows.label > 0.5
    for _ in range(20):
        adversary.move(np.where(high, 2.0, 0.1))
    weights = adversary.current / rows.share
    assert weights[high].mean() > 1.2 > 0.8 > weights[~high].mean()
    assert weights.min() >= 0.5
    assert adversary.current.sum() == pytest.approx(1)


def test_wrong_settings_are_refused_in_one_sentence(minority_rows):
    (X, y, _), _ = minority_rows
    with pytest.raises(InputError, match="'upweight' parameter of JTTClassifier"):
        JTTClassifier(0.5).fit(X, y)
    with pytest.raises(InputError, match="'first_iter' parameter of JTTClassifier"):
        JTTClassifier(first_iter=0).fit(X, y)
    with pytest.raises(InputError, match="'adversary_rate' parameter of ARLClassifier"):
        ARLClassifier(-1).fit(X, y)
