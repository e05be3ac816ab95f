"""Models for tests: fast ones to share, and new ones from settings of the classifier and of its recipe in one list."""

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.special import expit

from dafh import DAFHClassifier, Recipe, tabular_pipeline

RECIPE_SETTINGS = set(Recipe().get_params())


def model_of(n_groups=2, **settings):
    """A DAFHClassifier with rules; with a setting of a recipe, the network with random starts that this is about."""
    recipe = {name: settings.pop(name) for name in RECIPE_SETTINGS & set(settings)}
    if not recipe:
        return DAFHClassifier(n_groups, **{"method": "exceptions"} | settings)
    return DAFHClassifier(
        n_groups, recipe=Recipe.random_starts(**recipe), **{"method": "network", "pooled": "linear"} | settings
    )


def workers(n=1200, seed=0, flip=1.0):
    """Rows of mixed types with gaps: experience helps cooks and, with `flip`, harms all others; hours help all."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "experience": rng.integers(0, 40, n).astype(float),
            "job": rng.choice(["cook", "clerk", "pilot"], n, p=[0.5, 0.3, 0.2]),
            "hours": rng.normal(38, 8, n).round(),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
            "remote": rng.random(n) < 0.3,
        }
    )
    side = np.where(table["job"] == "cook", 1.0, 1.0 - 2.0 * flip)
    score = 0.12 * (table["experience"] - 20) * side + 0.15 * (table["hours"] - 38)
    y = np.where(rng.random(n) < expit(score), "yes", "no")
    table.loc[rng.random(n) < 0.1, "hours"] = np.nan
    return SimpleNamespace(X=table, y=y, sensitive=pd.DataFrame({"sex": rng.choice(["f", "m"], n)}))


@functools.cache
def rules_case():
    """Rows and a pipeline fitted on them, with two groups by rules and a scorecard."""
    data = workers()
    data.model = tabular_pipeline(DAFHClassifier(2, random_state=0)).fit(data.X, data.y)
    return data


@functools.cache
def additive_case():
    """Rows on which groups add nothing, and a pipeline that was free to find that out."""
    data = workers(flip=0.0)
    data.model = tabular_pipeline(DAFHClassifier(random_state=0)).fit(data.X, data.y)
    return data


@functools.cache
def network_case():
    """Rows and a pipeline fitted on them, with two groups by a network and a linear pooled classifier."""
    data = workers()
    # After four epochs the guard lets no group keep its own classifier, and there would be little to report.
    data.model = tabular_pipeline(model_of(2, max_epochs=8, random_state=0)).fit(data.X, data.y)
    return data
