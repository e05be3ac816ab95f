"""Generators of data with known groups."""

import numpy as np
import pandas as pd
from sklearn.utils import Bunch, check_random_state

from dafh.exceptions import InputError
from dafh.validation import RandomState


def make_paper_synthetic(
    n_samples: int = 20_000, *, delta: float = 0.4, sigma: float = 0.3, random_state: RandomState = None
) -> Bunch:
    """Draw the paper's synthetic data: two hidden attributes, two features and a label.

    The attributes s1, s2 and the label y are -1 or 1 with equal probability, and
    ``x_j ~ N(s_j + delta · s1 · s2 · y, sigma)``. The four combinations of attributes are clusters at the corners of a
    square. The side of a cluster on which the positives lie flips with s1 · s2, so that one line for all rows is no
    better than chance, and one line for each value of either attribute is hardly better.

    Parameters
    ----------
    n_samples : int, default=20_000
    delta : float, default=0.4
        Shift of the features by the label.
    sigma : float, default=0.3
        Standard deviation of the features.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        ``X`` (data frame x1, x2), ``y`` (array of -1 and 1), ``sensitive_features`` (data frame s1, s2) and
        ``feature_names``.

    Examples
    --------
    >>> data = make_paper_synthetic(1000, random_state=0)
    >>> data.X.shape, sorted(set(data.y.tolist()))
    ((1000, 2), [-1, 1])
    """
    if n_samples < 1 or sigma < 0:
        raise InputError(f"n_samples must be at least 1 and sigma not negative, got {n_samples} and {sigma}.")
    rng = check_random_state(random_state)
    s1, s2, y = rng.choice([-1, 1], size=(3, n_samples))
    shift = delta * s1 * s2 * y
    noise = rng.normal(scale=sigma, size=(2, n_samples))
    X = pd.DataFrame({"x1": s1 + shift + noise[0], "x2": s2 + shift + noise[1]})
    return Bunch(
        X=X,
        y=y,
        sensitive_features=pd.DataFrame({"s1": s1, "s2": s2}),
        feature_names=["x1", "x2"],
    )


def make_grouped_classification(
    n_samples: int = 2_000,
    *,
    n_features: int = 5,
    n_groups: int = 2,
    n_classes: int = 2,
    label_noise: float = 0.0,
    random_state: RandomState = None,
) -> Bunch:
    """Draw K groups in d dimensions, each with its own linear rule for the labels.

    Each group is normal around its own centre, four standard deviations from the origin. A label is the class with the
    largest of the group's random linear scores, which are all zero at the centre.

    Parameters
    ----------
    n_samples, n_features, n_groups, n_classes : int
    label_noise : float, default=0.0
        Share of labels that are replaced by a random one.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        ``X`` and ``y`` (arrays), ``groups`` (array of 0..n_groups-1, in random order) and ``feature_names``.

    Examples
    --------
    >>> data = make_grouped_classification(500, n_groups=3, n_features=4, random_state=0)
    >>> data.X.shape, sorted(set(data.groups.tolist()))
    ((500, 4), [0, 1, 2])
    """
    if min(n_samples, n_features, n_groups) < 1 or n_classes < 2 or not 0 <= label_noise <= 1:
        raise InputError(
            "n_samples, n_features and n_groups must be at least 1, n_classes at least 2, label_noise from 0 to 1."
        )
    rng = check_random_state(random_state)
    directions = rng.normal(size=(n_groups, n_features))
    centres = 4.0 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    rules = rng.normal(size=(n_groups, n_features, n_classes))
    groups = rng.randint(n_groups, size=n_samples)
    deviations = rng.normal(size=(n_samples, n_features))
    y = np.einsum("nd,ndc->nc", deviations, rules[groups]).argmax(axis=1)
    flipped = rng.uniform(size=n_samples) < label_noise
    y[flipped] = rng.randint(n_classes, size=flipped.sum())
    return Bunch(
        X=centres[groups] + deviations,
        y=y,
        groups=groups,
        feature_names=[f"x{j + 1}" for j in range(n_features)],
    )
