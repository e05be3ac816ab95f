"""DAFHClassifier: groups and their classifiers, learned together."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh.checks import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    check_features,
    check_parameters,
    check_weights,
    having,
    number,
    one_of,
    sequence_of,
    unchanged_on_error,
    whole_number,
)
from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT, fit_clone, is_fitted, out_of_fold_probabilities, seeded
from dafh.classifiers.logits import class_probabilities, decide, logits
from dafh.estimators.guarded import GuardedMixin
from dafh.evaluation.guard import GuardKind, GuardReport
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import GroupsEncodeLabelWarning, InputError
from dafh.frames import is_frame, take_rows
from dafh.groups.network import FittedPopulation, Recipe, fit_population
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import TrainingRows
from dafh.rows.held_out import HeldOut

# Odds of more than e^20 to 1 are no longer told apart: no data speak for them.
_LARGEST_LOGIT = 20.0


class DAFHClassifier(GuardedMixin, ClassifierMixin, BaseEstimator):
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
    n_replicas : int, default=8
        Size of the population; it is trained once on all rows, and once without each fold.
    max_epochs : int or "auto", default="auto"
        Passes over the training rows at most; "auto" takes enough for about 2,000 steps, and 8 to 200 passes.
    patience : int or "auto", default="auto"
        Stop after this many epochs in which no replica improved on the best so far; "auto" waits for about 400 steps,
        and for 6 epochs at least.
    batch_size : int, default=256
        Rows per step.
    group_hidden : tuple of int, default=(100,)
        Hidden layers of the group classifier.
    group_cuts : int, default=64
        Cuts that the group classifier sees beside the columns: whether a value lies above a point where the errors of
        the pooled classifier change. This many at most, in all columns together; 0: none, as in the paper.
    classifier_hidden : tuple of int, default=()
        Hidden layers of the corrections; none makes them linear.
    envy_weight : float *(varied)*, default=0
        Weight of the envy term: 1 (the paper) pushes classifiers apart, 0 keeps them close.
    noise : float *(varied)*, default=0.02
        Size of the random start of the corrections, relative to the spread of the pooled logit (at least 1). The random
        group classifier breaks the symmetry; what noise is left by the end of training is harm.
    penalty : float *(varied)*, default=0.1
        The paper's λ: weight of the penalty on unequal group sizes.
    temperature : float *(varied)*, default=3
        Steepness of the surrogate of the 0-1 loss.
    anchor : float *(varied)*, default=(4, 16)
        Weight of each classifier's likelihood on its own group; 0 is the paper.
    shrinkage : float *(varied)*, default=(0.01, 0.1)
        L2 penalty on the corrections.
    group_learning_rate : float *(varied)*, default=1e-2
    classifier_learning_rate : float *(varied)*, default=(3e-3, 1e-2)
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
    average_steps : int, default=100
        The model is the average of its parameters over this many last steps; 1: the last one as it is.
    selection_size : float, default=0.1
        Share of the rows that choose replica and epoch in each fold.
    n_folds : int or "auto", default="auto"
        Folds in which rows are held out. Every start is trained without each fold, which chooses start and epoch, and
        once on all rows, which becomes the model: no row is lost for training. "auto" takes as many folds as it needs
        to hold out 2,000 rows, and five at most.
    pr_weight : float or "auto", default="auto"
        The choice minimises the Brier score − pr_weight · Pr without harm. "auto" is 0.02 · `n_groups`: the more
        classifiers a row could envy, the more it counts that it does not.
    pooled_folds : int, default=5
        Folds for the out-of-fold probabilities of an unfitted pooled classifier.
    guard : {"veto", "proof"} or None, default="veto"
        What is done for groups that their own classifier serves worse than the pooled one. "veto": unless calibration
        rows tell the two apart and do not speak for the pooled one, that one serves the group. "proof": a group keeps
        its own classifier only if calibration rows, kept from everything else, show that it is not worse. None:
        nothing. See `dafh.evaluation.guard`.
    guard_level : float, default=0.05
        Probability, with "proof", that any group is served worse all the same; level of certificates and of envy.
    guard_margin : float, default=0
        Harm up to this size is accepted by "proof": 0.01 is one point of error.
    calibration_size : float or "auto", default="auto"
        Share of the rows for the guard. With "veto" they are held out in each fold like the rows that select, and
        judge models trained without them; the final model loses none. With "proof" they are kept from everything, the
        pooled classifier included. "auto": 0.1 and 0.2.
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
    serves_ : array of shape (`n_groups_`,)
        The classifier that serves each group: its own number, another group's, or `n_groups_` for the pooled one.
    guard_report_ : GuardReport or None
        What the guard did for each group, and why; prints as a table.
    history_ : DataFrame
        One row per epoch of the chosen replica: objective, log-loss, Brier score, accuracy, Pr without harm and label
        information, on training rows (average over the epoch) and on selection rows (at its end), averaged over folds.
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

    _constraints: ClassVar[Constraints] = {
        "n_groups": (whole_number(1),),
        "pooled": (
            having("fit", "predict", "predict_proba"),
            NOTHING,
        ),
        "n_replicas": (whole_number(1),),
        "max_epochs": (
            whole_number(1),
            one_of("auto"),
        ),
        "patience": (
            whole_number(1),
            one_of("auto"),
        ),
        "batch_size": (whole_number(1),),
        "group_hidden": (sequence_of(whole_number(1), "a sequence of positive ints"),),
        "group_cuts": (whole_number(0),),
        "classifier_hidden": (sequence_of(whole_number(1), "a sequence of positive ints"),),
        "final_rate": (number(0, 1, closed="right"),),
        "surrogate": (one_of("margin", "paper"),),
        "start": (one_of("warm", "cold"),),
        "optimizer": (one_of("adam", "sgd"),),
        "momentum": (number(0, 1, closed="left"),),
        "selection_size": (number(0, 1, closed="neither"),),
        "pr_weight": (
            number(0, closed="left"),
            one_of("auto"),
        ),
        "n_folds": (
            whole_number(1),
            one_of("auto"),
        ),
        "average_steps": (whole_number(1),),
        "pooled_folds": (whole_number(2),),
        **GuardedMixin._guard_constraints,
        "random_state": (RANDOM_STATE,),
        "verbose": (whole_number(0),),
    }

    def __init__(
        self,
        n_groups: int = 2,
        *,
        pooled: Any = None,
        n_replicas: int = 8,
        max_epochs: int | str = "auto",
        patience: int | str = "auto",
        batch_size: int = 256,
        group_hidden: Sequence[int] = (100,),
        group_cuts: int = 64,
        classifier_hidden: Sequence[int] = (),
        envy_weight: float | Sequence[float] = 0.0,
        noise: float | Sequence[float] = 0.02,
        penalty: float | Sequence[float] = 0.1,
        temperature: float | Sequence[float] = 3.0,
        anchor: float | Sequence[float] = (4.0, 16.0),
        shrinkage: float | Sequence[float] = (1e-2, 1e-1),
        group_learning_rate: float | Sequence[float] = 1e-2,
        classifier_learning_rate: float | Sequence[float] = (3e-3, 1e-2),
        final_rate: float = 0.05,
        average_steps: int = 100,
        surrogate: Literal["margin", "paper"] = "margin",
        start: Literal["warm", "cold"] = "warm",
        optimizer: Literal["adam", "sgd"] = "adam",
        momentum: float = 0.9,
        selection_size: float = 0.1,
        n_folds: int | str = "auto",
        pr_weight: float | str = "auto",
        pooled_folds: int = 5,
        guard: GuardKind | None = "veto",
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        calibration_size: float | str = "auto",
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
        self.group_cuts = group_cuts
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
        self.average_steps = average_steps
        self.surrogate = surrogate
        self.start = start
        self.optimizer = optimizer
        self.momentum = momentum
        self.selection_size = selection_size
        self.pr_weight = pr_weight
        self.n_folds = n_folds
        self.pooled_folds = pooled_folds
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
    ) -> Self:
        """Learn the groups and their classifiers, and let the guard decide who serves whom.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
            Labels of any type, two or more different ones.
        sample_weight : array of shape (n,), optional
            Row weights; a row of weight 0 is as good as absent.
        X_calibration, y_calibration : like X and y, optional
            Rows for the guard, and for nothing else. Without them it uses a part of X.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            recipe = Recipe.of(self)
            given_rows = self._check_calibration_rows(X_calibration, y_calibration)
            data = self._check_training_data(X, y, sample_weight)
            entropy = check_random_state(self.random_state).randint(2**31, size=4).tolist()
            start_seed, split_seed, batch_seed, fold_seed = np.random.SeedSequence(entropy).spawn(4)
            rng = np.random.default_rng(split_seed)

            data, apart = self._set_calibration_rows_aside(data, given_rows, rng)
            if given_rows:
                self._check_labelled_rows(X_calibration, y_calibration)
            if self._may_merge_rows(data):
                data = data.merge_repeated()
            base = self._fit_pooled(data, fold_seed)
            calibration_size = self._calibration_share() if self.guard == "veto" and not given_rows else 0.0
            held_out = HeldOut.draw(data.label, self.selection_size, calibration_size, self.n_folds, rng)
            fitted = fit_population(recipe, data, base, held_out, self._linear_base(), start_seed, batch_seed)
            self._keep(fitted)
            if y_calibration is not None:
                self.recalibrate(X_calibration, y_calibration)
            elif apart is not None:
                self._guard_by(self._compare(apart.X, apart.given, self.classes_[apart.label], apart.weight))
            elif self.guard is not None:
                warm = self.start == "warm"
                counts = fitted.cross_fitted_counts(data, base, held_out, warm=warm)
                self._serve(self._decide(counts, cross_fitted=True))
            self._measure_label_information(data)
        self._warn_if_groups_are_labels()
        return self

    # ---- steps of fit ----

    def _set_calibration_rows_aside(
        self, data: TrainingRows, given_rows: bool, rng: np.random.Generator
    ) -> tuple[TrainingRows, TrainingRows | None]:
        """Keep rows from everything, the pooled classifier included, where the guard has to prove something."""
        if self.guard != "proof" or given_rows:
            return data, None
        return data.set_aside(self._calibration_share(), rng)

    def _check_training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        values, y = check_features(self, X, y, reset=True)
        check_classification_targets(y)
        weight = check_weights(sample_weight, len(values))
        counted = weight > 0
        self.classes_, label = self._classes(y, counted)
        data = TrainingRows(values, X if is_frame(X) else values, label, weight)
        if not counted.all():
            data = data.take(np.flatnonzero(counted), weight[counted])
        if len(data.X) < self.n_groups:
            raise InputError(
                f"{len(data.X)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows."
            )
        return data

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

    def _may_merge_rows(self, data: TrainingRows) -> bool:
        """Whether rows may be replaced by weights: all fit into one batch, and the pooled classifier does not mind.

        Logistic regression does not tell a weight of 2 from a row given twice; a classifier that the user brings may.
        """
        return len(data.X) <= self.batch_size and (self.pooled is None or is_fitted(self.pooled))

    def _fit_pooled(self, data: TrainingRows, seed: np.random.SeedSequence) -> NDArray[np.float64]:
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
        if self.pooled is not None or len(y) >= FEWEST_ROWS_TO_SPLIT:  # Merged rows are no sample to leave out from.
            probabilities = out_of_fold_probabilities(
                pooled, data.given, y, self.classes_, weight, self.pooled_folds, fold_seed
            )
        if probabilities is None:
            probabilities = class_probabilities(self.pooled_, data.given, self.classes_)
        return logits(probabilities)

    def _check_incumbent(self, data: TrainingRows) -> None:
        expected = getattr(self.pooled_, "n_features_in_", data.X.shape[1])
        if expected != data.X.shape[1]:
            raise InputError(
                f"The fitted pooled classifier takes {expected} features, X has {data.X.shape[1]}: "
                "both must see the same columns."
            )

    def _linear_base(self) -> Any:
        """The pooled classifier where it is the default one: linear, it becomes part of the same matrix product."""
        linear = self.start == "warm" and type(self.pooled_) is StandardizedLogisticRegression
        return self.pooled_ if linear else None

    def _keep(self, fitted: FittedPopulation) -> None:
        self.n_groups_ = self.n_groups
        self._trained = fitted.model
        self.best_epoch_, self.history_, self.population_ = fitted.best_epoch, fitted.history, fitted.population
        self._serve(None)

    def _serve(self, report: GuardReport | None) -> None:
        """Let the classifiers serve as the guard has decided; without it, each its own group."""
        self.guard_report_ = report
        self.serves_ = np.arange(self.n_groups_) if report is None else report.serves
        self._model = self._trained.serving(self.serves_)

    def recalibrate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Let the guard decide anew, on fresh rows that were used for nothing else; nothing is refitted.

        The rows judge the model as it is, so that all the guard promises holds for the population they come from.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        self._check_guard()
        values, given = self._check_labelled_rows(X, y)
        return self._guard_by(self._compare(values, given, y, sample_weight))

    def _guard_by(self, rows: ComparedRows) -> Self:
        self._serve(self._decide(rows.paired_counts(), cross_fitted=False))
        return self

    def _compare(self, values: NDArray[Any], given: Any, y: Any, weight: Any) -> ComparedRows:
        """Every classifier as it was trained, whoever it serves, and the pooled one on some rows."""
        every = np.moveaxis(self._trained.logits(values), 1, 0) + self._base(given)
        labels = self.classes_[decide(every).T]
        groups = self._trained.group_logits(values).argmax(axis=1)
        return ComparedRows.check(y, labels, groups, self.pooled_.predict(given), None, weight)

    def _measure_label_information(self, data: TrainingRows) -> None:
        group, values = self._route(data.X, data.given)
        self.label_information_ = float(normalized_mutual_info_score(group, decide(values)))

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"group_cuts": 0, **state})  # Model files of format 1 are older than cuts.

    # ---- prediction ----

    def _check_rows(self, X: Any) -> tuple[NDArray[Any], Any]:
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        return values, X if is_frame(X) else values

    def _base(self, given: Any) -> NDArray[Any] | float:
        """Pooled logits, (n, m), unless they are part of the model or, after a cold start, of nothing."""
        if self.start == "cold" or self._trained.base:
            return 0.0
        return logits(class_probabilities(self.pooled_, given, self.classes_))

    def _served_by_pooled(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows that the pooled classifier serves and that the model does not already serve as it would."""
        if self._trained.base:
            return np.array([], np.intp)
        return np.flatnonzero(self.serves_[group] == self.n_groups_)

    def _route(self, values: NDArray[Any], given: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row, and the logits of the classifier that serves it (n, m)."""
        group, own = self._model.route(values)
        own = own + self._base(given)
        rows = self._served_by_pooled(group)
        if len(rows) and self.start == "cold":
            own[rows] = logits(class_probabilities(self.pooled_, take_rows(given, rows), self.classes_))
        return group, own

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row, by the classifier that serves its group."""
        values, given = self._check_rows(X)
        group, own = self._route(values, given)
        labels = self.classes_[decide(own)]
        rows = self._served_by_pooled(group)
        if len(rows):  # Its own word, not its probabilities: it may have a threshold of its own.
            labels[rows] = self.pooled_.predict(take_rows(given, rows))
        return labels

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probability of each class, by the classifier that serves the row's group; columns as in `classes_`."""
        values = self.decision_function(X)
        if values.ndim == 1:
            positive = expit(values)
            return np.column_stack([1 - positive, positive])
        return softmax(values, axis=1)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Logit of ``classes_[1]`` (two classes) or of every class, by the classifier that serves the row."""
        _, values = self._route(*self._check_rows(X))
        return values.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)[:, 0] if values.shape[1] == 1 else values

    def predict_group(self, X: Any) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1."""
        values, _ = self._check_rows(X)
        return self._model.group_logits(values).argmax(axis=1)

    def group_proba(self, X: Any) -> NDArray[Any]:
        """Soft assignment of each row to the groups, (n, `n_groups_`)."""
        values, _ = self._check_rows(X)
        return softmax(self._model.group_logits(values), axis=1)

    def predict_all(self, X: Any) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1).

        Column k is the classifier that serves group k; the pooled classifier is the last column.
        """
        values, given = self._check_rows(X)
        every = np.moveaxis(self._model.logits(values), 1, 0) + self._base(given)
        labels = np.column_stack([self.classes_[decide(every).T], self.pooled_.predict(given)])
        labels[:, :-1][:, self.serves_ == self.n_groups_] = labels[:, -1:]
        return labels
