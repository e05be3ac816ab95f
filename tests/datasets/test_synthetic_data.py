import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dafh.datasets import make_grouped_classification, make_paper_synthetic
from dafh.exceptions import InputError


def test_paper_data_have_the_printed_moments():
    data = make_paper_synthetic(200_000, delta=0.4, sigma=0.3, random_state=0)
    s1, s2 = data.sensitive_features.to_numpy().T
    residual = data.X.to_numpy() - np.column_stack([s1, s2]) - (0.4 * s1 * s2 * data.y)[:, None]
    np.testing.assert_allclose(residual.mean(axis=0), 0, atol=0.005)
    np.testing.assert_allclose(residual.std(axis=0), 0.3, atol=0.005)
    np.testing.assert_allclose([s1.mean(), s2.mean(), data.y.mean(), (s1 * s2 * data.y).mean()], 0, atol=0.01)


def test_paper_data_default_to_the_paper_s_size_and_are_reproducible():
    first, again = make_paper_synthetic(random_state=3), make_paper_synthetic(random_state=3)
    assert first.X.shape == (20_000, 2)
    assert first.X.equals(again.X)
    assert not first.X.equals(make_paper_synthetic(random_state=4).X)


def test_in_every_known_group_one_line_is_enough_and_overall_it_is_not():
    data = make_grouped_classification(6_000, n_features=4, n_groups=3, n_classes=3, random_state=0)
    overall = LogisticRegression(max_iter=1000).fit(data.X, data.y).score(data.X, data.y)
    for k in range(3):
        rows = data.groups == k
        assert (
            LogisticRegression(max_iter=1000).fit(data.X[rows], data.y[rows]).score(data.X[rows], data.y[rows]) > 0.95
        )
    assert overall < 0.9


def test_label_noise_flips_its_share():
    clean = make_grouped_classification(20_000, n_classes=2, random_state=0)
    noisy = make_grouped_classification(20_000, n_classes=2, label_noise=0.2, random_state=0)
    assert np.mean(clean.y != noisy.y) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("bad", [{"n_samples": 0}, {"n_classes": 1}, {"label_noise": 2}, {"n_groups": 0}])
def test_impossible_data_are_refused(bad):
    with pytest.raises(InputError, match="must be"):
        make_grouped_classification(**bad)


def test_impossible_paper_data_are_refused():
    with pytest.raises(InputError, match="sigma"):
        make_paper_synthetic(sigma=-1)
