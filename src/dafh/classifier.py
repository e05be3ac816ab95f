"""DAFHClassifier: groups and their classifiers, learned together."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh._inference import CorrectionModel
from dafh._pooled import (
    StandardizedLogisticRegression,
    class_probabilities,
    fit_clone,
    is_fitted,
    logits,
    out_of_fold_probabilities,
    seeded,
)
from dafh._progress import epoch_reporter
from dafh._validation import (
    HasMethods,
    Interval,
    StrOptions,
    check_features,
    check_hidden,
    check_weights,
    is_frame,
    replica_grid,
    unchanged_on_error,
)
from dafh.exceptions import GroupsEncodeLabelWarning, InputError

# Fewer distinct rows than this cannot spare any for the selection: all rows then train and select.
_FEWEST_ROWS_TO_SPLIT = 60
# Odds of more than e^20 to 1 are no longer told apart: no data speak for them.
_LARGEST_LOGIT = 20.0


@dataclass(frozen=True)
class _TrainingData:
    """Validated rows: `given` is X as the pooled classifier should see it (a frame keeps its column names)."""

    X: NDArray[Any]
    given: Any
    label: NDArray[np.intp]
    weight: NDArray[np.float64]

    def take(self, rows: NDArray[Any], weight: NDArray[Any]) -> "_TrainingData":
        return _TrainingData(self.X[rows], _safe_indexing(self.given, rows), self.label[rows], weight)


class DAFHClassifier(ClassifierMixin, BaseEstimator):
    """Learn groups, and one classifier per group, so that no group would rather have another classifier.

    A group classifier θ assigns every row to one of K groups; K decoupled classifiers, each a correction of one
    pooled classifier, serve one group each. Both are trained together, without any sensitive attribute, to make every
    group at least as well off with its own classifier as with the pooled one (rationality) and as with any other
    group's (envy-freeness).

    The objective is not convex, so a population of replicas with different starts and settings is trained as one
    program, and rows that did not train them choose the replica and the epoch. Parameters marked *(varied)* take one
    number, or several that are spread over the replicas.

    Parameters
    ----------
    n_groups : int, default=2
        Number of groups K. With 1 there is nothing to learn about groups, and one corrected classifier remains.
    pooled : classifier with `predict_proba`, or None, default=None
        The classifier that must not be harmed. Fitted, it is used as it is and never changed; unfitted, a copy is
        fitted on all rows, and the corrections are trained on its out-of-fold probabilities. None: logistic
        regression.
    n_replicas : int, default=12
        Size of the population.
    max_epochs : int or "auto", default="auto"
        Passes over the training rows at most; "auto" takes enough for about 2,000 steps, and 8 to 200 passes.
    patience : int or "auto", default="auto"
        Stop after this many epochs in which no replica improved on the best so far; "auto" waits for about 400 steps,
        and for 6 epochs at least.
    batch_size : int, default=256
        Rows per step.
    group_hidden : tuple of int, default=(100,)
        Hidden layers of the group classifier.
    classifier_hidden : tuple of int, default=()
        Hidden layers of the corrections; none makes them linear.
    envy_weight : float *(varied)*, default=(0, 0.5, 1)
        Weight of the envy term: 1 (the paper) pushes classifiers apart, 0 keeps them close.
    noise : float *(varied)*, default=0.3
        Size of the random start of the corrections, relative to the spread of the pooled logit (at least 1).
    penalty : float *(varied)*, default=0.1
        The paper's λ: weight of the penalty on unequal group sizes.
    temperature : float *(varied)*, default=1
        Steepness of the surrogate of the 0-1 loss.
    anchor : float *(varied)*, default=1
        Weight of each classifier's likelihood on its own group; 0 is the paper.
    shrinkage : float *(varied)*, default=1e-4
        L2 penalty on the corrections.
    group_learning_rate : float *(varied)*, default=(3e-3, 1e-2)
    classifier_learning_rate : float *(varied)*, default=(5e-3, 5e-2)
    final_rate : float, default=0.05
        Share of the learning rates that is left in the last of `max_epochs`; they fall linearly. 1: constant.
    surrogate : {"margin", "paper"}, default="margin"
        Stand-in for the 0-1 loss; "paper" is the printed one with the missing absolute value.
    start : {"warm", "cold"}, default="warm"
        "warm": classifiers start as the pooled one plus noise. "cold": they start at random and do not contain the
        pooled one, as in the paper.
    optimizer : {"adam", "sgd"}, default="adam"
    momentum : float, default=0.9
        Of the decoupled classifiers with ``optimizer="sgd"``.
    selection_size : float, default=0.2
        Share of the rows that choose replica and epoch; the pooled classifier is fitted on all rows.
    pr_weight : float, default=0.1
        The choice minimises the Brier score − pr_weight · Pr without harm.
    pooled_folds : int, default=5
        Folds for the out-of-fold probabilities of an unfitted pooled classifier.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress: a bar on a terminal, a few plain lines elsewhere.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    pooled_ : classifier
        The pooled classifier in use.
    n_groups_ : int
        Number of groups.
    history_ : DataFrame
        One row per epoch of the chosen replica: objective, log-loss, Brier score, accuracy, Pr without harm and label
        information, on training rows (average over the epoch) and on selection rows (at its end).
    population_ : DataFrame
        One row per replica: its settings, and its best epoch with the figures on the selection rows.
    best_epoch_ : int
        Epoch of the model, counted from 1.
    label_information_ : float
        Normalised mutual information between group and predicted label on the rows of `fit`; above 0.5 a
        `GroupsEncodeLabelWarning` is issued.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(4000, random_state=0)
    >>> model = DAFHClassifier(random_state=0).fit(data.X, data.y)
    >>> model.pooled_.score(data.X, data.y) < 0.6 < 0.95 < model.score(data.X, data.y)
    True
    >>> model.predict_group(data.X).shape, model.predict_all(data.X).shape
    ((4000,), (4000, 3))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "pooled": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "n_replicas": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "patience": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "group_hidden": ["array-like"],
        "classifier_hidden": ["array-like"],
        "final_rate": [Interval(Real, 0, 1, closed="right")],
        "surrogate": [StrOptions({"margin", "paper"})],
        "start": [StrOptions({"warm", "cold"})],
        "optimizer": [StrOptions({"adam", "sgd"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "selection_size": [Interval(Real, 0, 1, closed="neither")],
        "pr_weight": [Interval(Real, 0, None, closed="left")],
        "pooled_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_groups: int = 2,
        *,
        pooled: Any = None,
        n_replicas: int = 12,
        max_epochs: int | str = "auto",
        patience: int | str = "auto",
        batch_size: int = 256,
        group_hidden: Sequence[int] = (100,),
        classifier_hidden: Sequence[int] = (),
        envy_weight: float | Sequence[float] = (0.0, 0.5, 1.0),
        noise: float | Sequence[float] = 0.3,
        penalty: float | Sequence[float] = 0.1,
        temperature: float | Sequence[float] = 1.0,
        anchor: float | Sequence[float] = 1.0,
        shrinkage: float | Sequence[float] = 1e-4,
        group_learning_rate: float | Sequence[float] = (3e-3, 1e-2),
        classifier_learning_rate: float | Sequence[float] = (5e-3, 5e-2),
        final_rate: float = 0.05,
        surrogate: Literal["margin", "paper"] = "margin",
        start: Literal["warm", "cold"] = "warm",
        optimizer: Literal["adam", "sgd"] = "adam",
        momentum: float = 0.9,
        selection_size: float = 0.2,
        pr_weight: float = 0.1,
        pooled_folds: int = 5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_groups = n_groups
        self.pooled = pooled
        self.n_replicas = n_replicas
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.group_hidden = group_hidden
        self.classifier_hidden = classifier_hidden
        self.envy_weight = envy_weight
        self.noise = noise
        self.penalty = penalty
        self.temperature = temperature
        self.anchor = anchor
        self.shrinkage = shrinkage
        self.group_learning_rate = group_learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.final_rate = final_rate
        self.surrogate = surrogate
        self.start = start
        self.optimizer = optimizer
        self.momentum = momentum
        self.selection_size = selection_size
        self.pr_weight = pr_weight
        self.pooled_folds = pooled_folds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the groups and their classifiers.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
            Labels of any type, two or more different ones.
        sample_weight : array of shape (n,), optional
            Row weights; a row of weight 0 is as good as absent.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self._validate_params()
            grid = self._replica_settings()
            layers = self._hidden_layers()
            data = self._check_training_data(X, y, sample_weight)
            entropy = check_random_state(self.random_state).randint(2**31, size=4).tolist()
            start_seed, split_seed, batch_seed, fold_seed = np.random.SeedSequence(entropy).spawn(4)

            base = self._fit_pooled(data, fold_seed)
            train, selection = self._split(data, np.random.default_rng(split_seed))
            record = self._train_population(data, base, train, selection, grid, layers, start_seed, batch_seed)
            self._keep_best(record, grid)
            self._measure_label_information(data)
        self._warn_if_groups_are_labels()
        return self

    # ---- steps of fit ----

    def _replica_settings(self) -> dict[str, NDArray[np.float64]]:
        names = ("envy_weight", "group_learning_rate", "classifier_learning_rate", "noise")
        fixed = ("penalty", "temperature", "anchor", "shrinkage")
        choices = {name: getattr(self, name) for name in names + fixed}
        return replica_grid(type(self).__name__, self.n_replicas, **choices)

    def _hidden_layers(self) -> dict[str, tuple[int, ...]]:
        names = ("group_hidden", "classifier_hidden")
        return {name: check_hidden(type(self).__name__, name, getattr(self, name)) for name in names}

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any) -> _TrainingData:
        values, y = check_features(self, X, y, reset=True)
        check_classification_targets(y)
        weight = check_weights(sample_weight, values)
        counted = weight > 0
        self.classes_, label = self._classes(y, counted)
        data = _TrainingData(values, X if is_frame(X) else values, label, weight)
        if not counted.all():
            data = data.take(np.flatnonzero(counted), weight[counted])
        if len(data.X) < self.n_groups:
            raise InputError(
                f"{len(data.X)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows."
            )
        return _merge_repeated_rows(data) if self._may_merge_rows(data) else data

    def _classes(self, y: NDArray[Any], counted: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.intp]]:
        present = np.unique(y[counted])
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present[0]!r}): at least two classes are needed to learn anything."
            )
        classes = present
        if self.pooled is not None and is_fitted(self.pooled):
            classes = np.unique(self.pooled.classes_)
            unknown = np.setdiff1d(present, classes)
            if len(unknown):
                raise InputError(
                    f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}."
                )
        return classes, np.searchsorted(classes, y).clip(max=len(classes) - 1)

    def _may_merge_rows(self, data: _TrainingData) -> bool:
        """Whether rows may be replaced by weights: all fit into one batch, and the pooled classifier does not mind.

        Logistic regression does not tell a weight of 2 from a row given twice; a classifier that the user brings may.
        """
        return len(data.X) <= self.batch_size and (self.pooled is None or is_fitted(self.pooled))

    def _fit_pooled(self, data: _TrainingData, seed: np.random.SeedSequence) -> NDArray[np.float64]:
        """Set `pooled_` and return the logits that the corrections are trained on."""
        if self.pooled is not None and is_fitted(self.pooled):
            self.pooled_ = self.pooled
            self._check_incumbent(data)
            return logits(class_probabilities(self.pooled_, data.given, self.classes_))
        fold_seed, model_seed = (int(value) for value in seed.generate_state(2))
        pooled = StandardizedLogisticRegression() if self.pooled is None else seeded(self.pooled, model_seed)
        y = self.classes_[data.label]
        weight = None if (data.weight == 1).all() else data.weight
        self.pooled_ = fit_clone(pooled, data.given, y, weight)
        probabilities = None
        if self.pooled is not None or len(y) >= _FEWEST_ROWS_TO_SPLIT:  # Merged rows are no sample to leave out from.
            probabilities = out_of_fold_probabilities(
                pooled, data.given, y, self.classes_, weight, self.pooled_folds, fold_seed
            )
        if probabilities is None:
            probabilities = class_probabilities(self.pooled_, data.given, self.classes_)
        return logits(probabilities)

    def _check_incumbent(self, data: _TrainingData) -> None:
        expected = getattr(self.pooled_, "n_features_in_", data.X.shape[1])
        if expected != data.X.shape[1]:
            raise InputError(
                f"The fitted pooled classifier takes {expected} features, X has {data.X.shape[1]}: "
                "both must see the same columns."
            )

    def _split(self, data: _TrainingData, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Choose training and selection rows, class by class; every class stays in training."""
        everything = np.arange(len(data.label))
        if len(everything) < _FEWEST_ROWS_TO_SPLIT:
            return everything, everything
        shuffled = rng.permutation(everything)
        by_class = [shuffled[data.label[shuffled] == c] for c in np.unique(data.label)]
        held_out = np.concatenate([rows[: int(len(rows) * self.selection_size)] for rows in by_class])
        if not len(held_out):
            return everything, everything
        return np.setdiff1d(everything, held_out), np.sort(held_out)

    def _train_population(
        self,
        data: _TrainingData,
        base: NDArray[np.float64],
        train: NDArray[np.intp],
        selection: NDArray[np.intp],
        grid: dict[str, NDArray[np.float64]],
        layers: dict[str, tuple[int, ...]],
        start_seed: np.random.SeedSequence,
        batch_seed: np.random.SeedSequence,
    ) -> Any:
        # JAX is needed from here on; imported here, the rest of the package does without it.
        from dafh.engine.population import Plan, init_population, train_population
        from dafh.engine.selection import Patience, select

        self._scaler = StandardScaler().fit(data.X[train], sample_weight=data.weight[train])
        rows = self._engine_rows(data, base)
        plan = Plan(
            group_sizes=(data.X.shape[1], *layers["group_hidden"], self.n_groups),
            classifier_sizes=(data.X.shape[1], *layers["classifier_hidden"], base.shape[1]),
            surrogate=self.surrogate,
            optimizer=self.optimizer,
            momentum=self.momentum,
        )
        # Noise is relative to the pooled logit's spread; where that classifier knows nothing, to a spread of 1.
        spread = max(float(base.std(axis=0).mean()), 1.0) if self.start == "warm" else 1.0
        max_epochs, patience = self._schedule(len(train))
        with epoch_reporter(max_epochs, self.verbose, lambda curves: select(curves, self.pr_weight)) as report:
            return train_population(
                type(rows)(*(field[train] for field in rows)),
                type(rows)(*(field[selection] for field in rows)),
                init_population(plan, grid["noise"] * spread, start_seed),
                self._engine_settings(grid),
                plan,
                batch_size=self.batch_size,
                max_epochs=max_epochs,
                rng=np.random.default_rng(batch_seed),
                final_rate=self.final_rate,
                should_stop=Patience(patience, self.pr_weight),
                on_epoch=report,
                keep=lambda curves: select(curves, self.pr_weight).epoch == len(curves["selection_pr"]) - 1,
            )

    def _engine_settings(self, grid: dict[str, NDArray[np.float64]]) -> Any:
        from dafh.engine.objective import Settings

        return Settings(
            envy_weight=grid["envy_weight"],
            penalty=grid["penalty"],
            temperature=grid["temperature"],
            anchor=grid["anchor"],
            shrinkage=grid["shrinkage"],
            group_rate=grid["group_learning_rate"],
            classifier_rate=grid["classifier_learning_rate"],
        )

    def _engine_rows(self, data: _TrainingData, base: NDArray[np.float64]) -> Any:
        from dafh.engine.objective import Rows

        pooled_label = (base[:, 0] > 0) if base.shape[1] == 1 else base.argmax(axis=1)
        return Rows(
            x=self._scaler.transform(data.X).astype(np.float32),
            label=data.label.astype(np.int32),
            base=(base if self.start == "warm" else np.zeros_like(base)).astype(np.float32),
            pooled_right=(pooled_label == data.label).astype(np.float32),
            weight=(data.weight / data.weight.mean()).astype(np.float32),
        )

    def _schedule(self, n_rows: int) -> tuple[int, int]:
        """Epochs at most, and epochs to wait for an improvement; counted in steps, because small data have few."""
        steps_per_epoch = -(-n_rows // self.batch_size)
        max_epochs = np.clip(2000 // steps_per_epoch, 8, 200) if self.max_epochs == "auto" else self.max_epochs
        patience = max(6, 400 // steps_per_epoch) if self.patience == "auto" else self.patience
        return int(max_epochs), int(patience)

    def _keep_best(self, record: Any, grid: dict[str, NDArray[np.float64]]) -> None:
        from dafh.engine.selection import criterion, select

        choice = select(record.curves, self.pr_weight)
        if not np.isfinite(criterion(record.curves, self.pr_weight)).any():
            raise InputError(
                "Training diverged in every replica: bring the columns of X to ordinary scales, or lower the "
                "learning rates."
            )
        parameters = record.parameters(choice.replica, choice.epoch)
        # The default pooled classifier is linear: it becomes part of the same matrix product.
        linear = self.pooled_ if self.start == "warm" and type(self.pooled_) is StandardizedLogisticRegression else None
        self._model = CorrectionModel.from_parameters(parameters, self._scaler.mean_, self._scaler.scale_, linear)
        self.n_groups_ = self.n_groups
        self.best_epoch_ = choice.epoch + 1
        epochs = pd.RangeIndex(1, len(record.checkpoints) + 1, name="epoch")
        self.history_ = pd.DataFrame({n: curve[:, choice.replica] for n, curve in record.curves.items()}, epochs)
        values = criterion(record.curves, self.pr_weight)
        best = values.argmin(axis=0)
        replicas = np.arange(self.n_replicas)
        self.population_ = pd.DataFrame(grid).assign(
            best_epoch=best + 1,
            **{n: record.curves[n][best, replicas] for n in record.curves if n.startswith("selection_")},
            chosen=replicas == choice.replica,
        )
        self.population_.index.name = "replica"

    def _measure_label_information(self, data: _TrainingData) -> None:
        group, values = self._route(data.X, data.given)
        self.label_information_ = float(normalized_mutual_info_score(group, _decide(values)))

    def _warn_if_groups_are_labels(self) -> None:
        from dafh.engine.selection import LABEL_LIKE

        if self.label_information_ > LABEL_LIKE:
            warnings.warn(
                f"The learned groups nearly encode the predicted label (normalised mutual information "
                f"{self.label_information_:.2f}): the group classifier has become the predictor, and being served "
                "well says little about groups of people. Fewer groups, a larger penalty or a smaller envy_weight "
                "usually help.",
                GroupsEncodeLabelWarning,
                stacklevel=3,
            )

    # ---- prediction ----

    def _check_rows(self, X: Any) -> tuple[NDArray[Any], Any]:
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        return values, X if is_frame(X) else values

    def _base(self, given: Any) -> NDArray[Any] | float:
        """Pooled logits, (n, m), unless they are part of the model or, after a cold start, of nothing."""
        if self.start == "cold" or self._model.base:
            return 0.0
        return logits(class_probabilities(self.pooled_, given, self.classes_))

    def _route(self, values: NDArray[Any], given: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row, and the logits of its own classifier (n, m)."""
        group, own = self._model.route(values)
        return group, own + self._base(given)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row, by the classifier of its group."""
        _, values = self._route(*self._check_rows(X))
        return self.classes_[_decide(values)]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probability of each class, by the classifier of the row's group; columns as in `classes_`."""
        values = self.decision_function(X)
        if values.ndim == 1:
            positive = expit(values)
            return np.column_stack([1 - positive, positive])
        return softmax(values, axis=1)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Logit of ``classes_[1]`` (two classes) or of every class, by the classifier of the row's group."""
        _, values = self._route(*self._check_rows(X))
        return values.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)[:, 0] if values.shape[1] == 1 else values

    def predict_group(self, X: Any) -> NDArray[np.intp]:
        """Group of each row, 0 to n_groups_ − 1."""
        values, _ = self._check_rows(X)
        return self._model.group_logits(values).argmax(axis=1)

    def group_proba(self, X: Any) -> NDArray[Any]:
        """Soft assignment of each row to the groups, (n, n_groups_)."""
        values, _ = self._check_rows(X)
        return softmax(self._model.group_logits(values), axis=1)

    def predict_all(self, X: Any) -> NDArray[Any]:
        """Label of each row by every classifier, (n, n_groups_ + 1); the pooled classifier is the last column."""
        values, given = self._check_rows(X)
        every = np.moveaxis(self._model.logits(values), 1, 0) + self._base(given)
        own = self.classes_[_decide(every).T]
        return np.column_stack([own, self.pooled_.predict(given)])


def _decide(values: NDArray[Any]) -> NDArray[np.intp]:
    """Index of the predicted class from logits (..., m); a tie goes to the first class."""
    return (values[..., 0] > 0).astype(np.intp) if values.shape[-1] == 1 else values.argmax(axis=-1)


def _merge_repeated_rows(data: _TrainingData) -> _TrainingData:
    """Replace equal rows of a tiny data set by one with their total weight, in sorted order.

    Where all rows fit into one batch, a weight of 2 then means exactly what a row given twice means, and the order of
    the rows means nothing.
    """
    table = np.column_stack([data.X, data.label])
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    if len(first) >= _FEWEST_ROWS_TO_SPLIT:
        return data
    return data.take(first, np.bincount(inverse, weights=data.weight))
