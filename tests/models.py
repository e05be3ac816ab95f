"""Models for tests, from settings of the classifier and of its recipe in one list."""

from dafh import DAFHClassifier, Recipe

RECIPE_SETTINGS = set(Recipe().get_params())


def model_of(n_groups=2, **settings):
    """A DAFHClassifier; what it does not know itself goes into its recipe."""
    recipe = {name: settings.pop(name) for name in RECIPE_SETTINGS & set(settings)}
    return DAFHClassifier(n_groups, recipe=Recipe(**recipe), **settings)
