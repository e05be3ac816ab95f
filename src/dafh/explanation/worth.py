"""What groups are worth to a model, in one sentence that all outputs share."""

from sklearn.pipeline import Pipeline

from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.linear.scorecard import Scorecard


def adds_nothing(model: GroupModel | Pipeline) -> bool:
    """Whether the pooled classifier serves every group of a fitted model."""
    final = final_classifier(model)
    return bool((final.serves_ == final.n_groups_).all())


def worth_of_groups(model: GroupModel | Pipeline) -> str | None:
    """Say what the groups that a model has learned are worth; None for a model that was told its groups.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import DAFHClassifier
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(600, 2))
    >>> y = X[:, 0] + rng.normal(size=600) > 0
    >>> worth_of_groups(DAFHClassifier(groups="rules", random_state=0).fit(X, y))
    'Groups add nothing to the pooled classifier: keep one scorecard for all rows.'
    """
    final = final_classifier(model)
    if not hasattr(final, "groups_"):  # Only groups that were learned are worth more or less.
        return None
    if adds_nothing(final) and final.n_groups_ > 1:
        none = "but the guard let none keep its own classifier: the pooled one serves all rows"
        return f"{final.n_groups_} groups were found, {none}."
    if adds_nothing(final):
        keep = "one scorecard for all rows" if isinstance(final.pooled_, Scorecard) else "the pooled classifier"
        return f"Groups add nothing to the pooled classifier: keep {keep}."
    if final.n_groups_ == 1:  # Without a guard, the one classifier of a single group stays.
        return "There is one group: one classifier serves all rows."
    own = int((final.serves_ < final.n_groups_).sum())
    have = "has" if own == 1 else "have"
    return f"{final.n_groups_} groups were found; {own} of them {have} a classifier other than the pooled one."
