"""Recipe: how groups and their classifiers are trained, every setting in one place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dafh.exceptions import InputError
from dafh.validation import Allowed, Constraints, check_parameters, number, one_of, sequence_of, whole_number

_AUTO = one_of("auto")
_UPDATES = ("row", "batch_mean", "batch_sum")
# Batch size, epochs and λ in the paper's table of final hyper-parameters.
_SELECTED = {
    "adult": (1024, 3, 10.0),
    "arrest": (1024, 3, 10.0),
    "violent": (1024, 3, 10.0),
    "german": (256, 3, 100.0),
    "bank": (1024, 2, 10.0),
}
_YES_OR_NO = Allowed("a bool", lambda value: isinstance(value, bool | np.bool_))
_WIDTHS = sequence_of(whole_number(1, 2**14), "a sequence of up to 10 ints from 1 to 16384", most=10)
_SETTING = number(0, closed="left")
_FUNCTION = Allowed("a function", callable)
# One number, or several that are spread over the replicas; an empty list would leave a replica without a setting.
_VARIED = (
    Allowed("a non-negative number", _SETTING.holds),
    Allowed(
        "a list of such numbers to vary over the replicas",
        lambda value: sequence_of(_SETTING, "").holds(value) and len(value) > 0,
    ),
)

# The settings that may differ, in the order of how much they matter.
_GRID = (
    *("anchor", "classifier_learning_rate", "envy_weight", "group_learning_rate"),
    *("temperature", "noise", "penalty", "shrinkage"),
)
RANDOM_STARTS: dict[str, Any] = {
    "start": "pooled",
    "group_hidden": (100,),
    "anchor_moves_groups": False,
    "n_replicas": 8,
    "anchor": (4.0, 16.0),
    "shrinkage": (1e-2, 1e-1),
    "group_learning_rate": 1e-2,
    "classifier_learning_rate": (3e-3, 1e-2),
}
"""What differs from the defaults in `Recipe.random_starts`."""
Varied = float | Sequence[float]
"""A setting that may differ from replica to replica."""


def _setting(default: Any, *allowed: Allowed) -> Any:
    """Return a setting with what it may be."""
    return field(default=default, metadata={"allowed": allowed})


@dataclass(kw_only=True, eq=False, repr=False)
class Recipe(BaseEstimator):
    """How `DAFHClassifier` trains: architecture, objective, optimiser, schedule, and choice of the model.

    The defaults were chosen on development splits of five data sets and suit a network that starts from exceptions,
    whose groups it copies and whose corrections it takes over. Such a start needs few steps and one replica. Random
    starts need more: the objective is not convex, so a population of replicas with different starts and settings is
    trained as one program, and rows that did not train them choose the replica and the epoch. Settings marked
    *(varied)* take one number, or several that are spread over the replicas.

    Parameters
    ----------
    group_hidden : sequence of int, default=(64,)
        Widths of the hidden layers of the group network.
    start : {"exceptions", "clusters", "errors", "pooled", "cold"}, default="exceptions"
        What groups start from, which the group network first learns to tell, with a correction fitted in each.
        "exceptions": a list of exceptions, where there is one, and otherwise as with "pooled". With
        ``max_epochs="auto"``, the settings of `random_starts` take over where held-out rows clearly prefer two random
        starts, trained for a while. "clusters": K-means on the columns, after GEORGE. "errors": the rows that the
        pooled classifier gets wrong, after Antigone; for two groups. "pooled": groups start at random, and every own
        classifier as the pooled classifier plus noise. "cold": all start at random, and own classifiers do not contain
        the pooled one, as in the paper.
    noise : float *(varied)*, default=0.02
        Size of the random part of the first corrections, relative to the standard deviation of the pooled logit (at
        least 1). The first replica that starts from exceptions has none.
    surrogate : {"margin", "paper", "printed"} or function, default="margin"
        Stand-in for the 0-1 loss; "paper" is the printed one with the missing absolute value, and "printed" is without
        it. Yours takes logits (rows, K, m), labels (rows,) and the temperature, as JAX arrays, and returns (rows, K).
    temperature : float *(varied)*, default=3
        Steepness of the surrogate.
    envy_weight : float *(varied)*, default=0
        Weight of the envy term: 1 (the paper) pushes classifiers apart, 0 keeps them close.
    penalty : float *(varied)*, default=0.1
        The paper's λ: weight of the penalty on unequal group sizes.
    imbalance : {"kl", "printed"} or function, default="kl"
        The paper's Γ, which λ multiplies and which is subtracted: "kl" is the divergence of the groups' shares from
        uniform; "printed" has the printed sign. Yours takes the share of each group (K,) and returns a number.
    anchor : float *(varied)*, default=8
        Weight of each classifier's likelihood on its own group; 0 is the paper.
    anchor_moves_groups : bool, default=True
        Whether that likelihood also moves the group network. True suits a start from exceptions, False a random one.
    shrinkage : float *(varied)*, default=0.04
        L2 penalty on the corrections.
    optimizer : {"adam", "sgd"}, default="adam"
    momentum : float, default=0.9
        Of the own classifiers with ``optimizer="sgd"``.
    group_learning_rate : float *(varied)*, default=0.003
    classifier_learning_rate : float *(varied)*, default=0.003
    final_rate : float, default=0.05
        Share of the learning rates that is left in the last of `max_epochs`; they fall linearly. 1: constant.
    average_steps : int, default=100
        The model is the average of its parameters over this many last steps; 1: no average.
    alternate : bool, default=False
        Update the group network first and the classifiers against the new one, as Algorithm 1 is printed; False
        updates both at once, which costs half as much and was as good.
    n_replicas : int, default=1
        Size of the population. It is trained once on all rows, and once without each fold. From exceptions, a second
        replica gained nothing; from random starts, take 8.
    batch_size : int, default=256
    reduction : {"mean", "sum"}, default="mean"
        Whether the rows of a batch are averaged or summed up.
    max_epochs : int or "auto", default="auto"
        Passes over the training rows at most. "auto" takes 8 passes from exceptions; from a random start about 2,000
        steps, and 8 to 200 passes. Training ends earlier where no replica has improved on the best so far for 3 epochs;
        from a random start for about 400 steps, and for 6 epochs at least.
    select : {"best", "last"}, default="best"
        Which epoch becomes the model: the best one on rows that are held out for this choice, or the last one, for
        which no row is held out.
    n_folds : int or "auto", default="auto"
        Folds in which rows are held out to choose, and for the guard. Everything is trained without each fold, and once
        on all rows, which becomes the model: no row is lost for training. "auto": five, or three from 20,000 rows on
        and where the pooled classifier is not one of ours. 1 holds out a fifth of the rows once.

    Examples
    --------
    >>> from dafh import DAFHClassifier, Recipe
    >>> from dafh.datasets import make_grouped_classification
    >>> data = make_grouped_classification(1000, random_state=0)
    >>> quick = Recipe(n_replicas=2, max_epochs=5)
    >>> DAFHClassifier(2, method="network", recipe=quick, random_state=0).fit(data.X, data.y).method_
    'network'
    """

    group_hidden: Sequence[int] = _setting((64,), _WIDTHS)
    start: str = _setting("exceptions", one_of("exceptions", "clusters", "errors", "pooled", "cold"))
    noise: Varied = _setting(0.02, *_VARIED)
    surrogate: str | Callable[..., Any] = _setting("margin", one_of("margin", "paper", "printed"), _FUNCTION)
    temperature: Varied = _setting(3.0, *_VARIED)
    envy_weight: Varied = _setting(0.0, *_VARIED)
    penalty: Varied = _setting(0.1, *_VARIED)
    imbalance: str | Callable[..., Any] = _setting("kl", one_of("kl", "printed"), _FUNCTION)
    anchor: Varied = _setting(8.0, *_VARIED)
    anchor_moves_groups: bool = _setting(True, _YES_OR_NO)
    shrinkage: Varied = _setting(0.04, *_VARIED)
    optimizer: str = _setting("adam", one_of("adam", "sgd"))
    momentum: float = _setting(0.9, number(0, 1, closed="left"))
    group_learning_rate: Varied = _setting(3e-3, *_VARIED)
    classifier_learning_rate: Varied = _setting(3e-3, *_VARIED)
    final_rate: float = _setting(0.05, number(0, 1, closed="right"))
    average_steps: int = _setting(100, whole_number(1, 10**9))
    alternate: bool = _setting(False, _YES_OR_NO)
    n_replicas: int = _setting(1, whole_number(1, 1_000))
    batch_size: int = _setting(256, whole_number(1, 10**9))
    reduction: str = _setting("mean", one_of("mean", "sum"))
    max_epochs: int | Literal["auto"] = _setting("auto", whole_number(1, 10**6), _AUTO)
    select: str = _setting("best", one_of("best", "last"))
    n_folds: int | Literal["auto"] = _setting("auto", whole_number(1, 100), _AUTO)

    _constraints: ClassVar[Constraints]

    @classmethod
    def paper(
        cls,
        update: Literal["row", "batch_mean", "batch_sum"] = "row",
        data_set: Literal["adult", "arrest", "bank", "german", "violent"] | None = None,
        **changes: Any,
    ) -> Self:
        """Return Algorithm 1 of the paper, with two corrections.

        Stochastic gradient ascent in the printed order, one random start, the last epoch, and nothing held out to
        choose by. `dafh.groups.algorithm` is the same in plain NumPy, and lists what the paper leaves open. It is the
        paper's method with logistic regression and without a guard:
        ``DAFHClassifier(2, method="network", pooled="linear", guard=None, recipe=Recipe.paper())``.

        Parameters
        ----------
        update : {"row", "batch_mean", "batch_sum"}, default="row"
            What one update takes: a row, as Algorithm 1 is printed, or a batch of the paper's table of settings, as a
            mean or as a sum. The paper does not say which; row by row it learns in all of its data sets.
        data_set : {"adult", "arrest", "bank", "german", "violent"}, optional
            Take the batch size, the epochs and λ that the paper selects for this data set; otherwise those that it
            selects for most.
        **changes
            Settings that should be different. ``surrogate="printed"`` and ``imbalance="printed"`` show what happens
            without the two corrections.

        Examples
        --------
        >>> recipe = Recipe.paper(data_set="german")
        >>> recipe.batch_size, recipe.max_epochs, recipe.penalty
        (1, 3, 100.0)
        """
        data_set = data_set or "adult"
        for name, value, allowed in (("update", update, _UPDATES), ("data_set", data_set, sorted(_SELECTED))):
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")
        batch_size, epochs, penalty = _SELECTED[data_set]
        printed: dict[str, Any] = {
            "group_hidden": (100,),
            "start": "cold",
            "noise": 1.0,
            "surrogate": "paper",
            "envy_weight": 1.0,
            "penalty": penalty,
            "anchor": 0.0,
            "shrinkage": 0.0,
            "optimizer": "sgd",
            "group_learning_rate": 1e-3,
            "classifier_learning_rate": 1e-2,
            "final_rate": 1.0,
            "average_steps": 1,
            "alternate": True,
            "batch_size": 1 if update == "row" else batch_size,
            # The mean over a single row would cancel its weight.
            "reduction": "mean" if update == "batch_mean" else "sum",
            "max_epochs": epochs,
            "select": "last",
        }
        return cls(**{**printed, **changes})

    @classmethod
    def random_starts(cls, **changes: Any) -> Self:
        """Return a recipe for eight random starts: slower, and not bound to what exceptions can find."""
        return cls(**{**RANDOM_STARTS, **changes})

    def check(self) -> Self:
        """Refuse settings that cannot be used, in one sentence."""
        check_parameters(self, self._constraints)
        return self

    def grid(self) -> dict[str, NDArray[np.float64]]:
        """Spread the varied settings over the replicas; combinations are cycled.

        The first setting changes fastest, so that a population smaller than the grid still has all its values.
        """
        grid, stride = {}, 1
        for name in _GRID:
            values = np.atleast_1d(np.asarray(getattr(self, name), np.float64))
            grid[name] = values[np.arange(self.n_replicas) // stride % len(values)]
            stride *= len(values)
        return grid

    def schedule(self, n_rows: int, *, from_start: bool = False) -> tuple[int, int]:
        """Epochs at most, and epochs to wait for an improvement.

        From a random start they are counted in steps, because small data have few. From exceptions, many steps on small
        data only lead away from a good start: where 12 epochs were allowed, the best was the third to the sixth.
        """
        steps_per_epoch = -(-n_rows // self.batch_size)
        epochs, patience = int(np.clip(2000 // steps_per_epoch, 8, 200)), max(6, 400 // steps_per_epoch)
        if from_start:
            epochs, patience = 8, 3
        return epochs if self.max_epochs == "auto" else int(self.max_epochs), patience


Recipe._constraints = {each.name: each.metadata["allowed"] for each in fields(Recipe)}
