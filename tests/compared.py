"""Compared rows with given outcomes, written down one kind of row at a time."""

import numpy as np

from dafh.evaluation.compared import ComparedRows


def rows_of(*groups, own=None, **known):
    """Rows of K groups, each a number of rows and the outcomes that are not "all classifiers are right".

    An outcome is a string with a digit for each own classifier and one for the pooled one, 1 for right: ``{"10": 8}``
    are eight rows on which the only own classifier is right and the pooled one wrong. A plus before it makes the true
    label positive. All other rows are negative, or as many are positive as the second of two numbers says.
    """
    right, positive, group = [], [], []
    n_models = max((len(key.lstrip("+")) for _, outcomes in groups for key in outcomes), default=len(groups) + 1)
    for number, (size, outcomes) in enumerate(groups):
        rest = {"": size, "+": 0} if isinstance(size, int) else {"": size[0], "+": size[1]}
        for key, count in outcomes.items():
            rest["+" if key.startswith("+") else ""] -= count
        assert min(rest.values()) >= 0, "more outcomes than rows"
        for key, count in {**outcomes, **{sign + "1" * n_models: left for sign, left in rest.items()}}.items():
            right += [[digit == "1" for digit in key.lstrip("+")]] * count
            positive += [key.startswith("+")] * count
            group += [number] * count
    right = np.array(right, bool).reshape(-1, n_models)
    y = np.array(positive, int)
    labels = np.where(right, y[:, None], 1 - y[:, None])
    served_by = np.arange(len(groups)) if own is None else own
    return ComparedRows.check(
        y, labels[:, :-1], np.array(group, int), labels[:, -1], served_by, classes=[0, 1], **known
    )
