"""DAFHClassifier: groups and their classifiers, learned together."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dafh.checks import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    RandomState,
    check_features,
    check_parameters,
    having,
    instance_of,
    unchanged_on_error,
    whole_number,
)
from dafh.classifiers.fitting import is_fitted
from dafh.classifiers.logits import class_probabilities, decide, logits
from dafh.classifiers.protocols import Classifier
from dafh.estimators.guarded import GuardedMixin
from dafh.estimators.pooled import fit_pooled
from dafh.evaluation.guard import GuardKind
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import GroupsEncodeLabelWarning, InputError
from dafh.frames import Table, is_frame, take_rows
from dafh.groups.network import FittedPopulation, fit_population
from dafh.groups.recipe import Recipe
from dafh.groups.serving import CorrectionModel, Linear
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut

# Odds of more than e^20 to 1 are no longer told apart: no data could support them.
_LARGEST_LOGIT = 20.0


class DAFHClassifier(GuardedMixin, ClassifierMixin, BaseEstimator):
    """Learn groups, and one classifier per group, so that no group would rather have another classifier.

    A group network assigns every row to one of K groups; K own classifiers, each a correction of one pooled classifier,
    serve one group each. Both are trained together, without any sensitive attribute, to make every group at least as
    well off with its own classifier as with the pooled one (rationality) and as with any other group's (envy-freeness).

    Parameters
    ----------
    n_groups : int, default=2
        Number of groups K. With 1 there is nothing to learn about groups, and one corrected classifier remains.
    pooled : classifier with `predict_proba`, or None, default=None
        The classifier that must not be harmed. Fitted, it is used as it is and never changed; unfitted, a copy is
        fitted on all rows, and the corrections are trained on its out-of-fold probabilities. None: logistic
        regression.
    recipe : Recipe or None, default=None
        How training works; None is ``Recipe()``, and ``Recipe.paper()`` is Algorithm 1 as printed.
    guard : {"veto", "proof"} or None, default="veto"
        What is done for groups that their own classifier serves worse than the pooled one. "veto": a group keeps its
        own classifier unless calibration rows favour the pooled one, or the two never disagree. "proof": a group keeps
        its own classifier only if calibration rows, held out of everything else, show that it is not worse. None:
        nothing. See `dafh.evaluation.guard`.
    guard_level : float, default=0.05
        Probability, with "proof", that any group is served worse all the same; level of certificates and of envy.
    guard_margin : float, default=0
        Harm up to this size is accepted by "proof": 0.01 is one percentage point of error.
    calibration_size : float or "auto", default="auto"
        Share of the rows for the guard. With "veto" they are held out in each fold like the rows that select, and
        judge models trained without them; the final model loses none. With "proof" they are held out of everything,
        the pooled classifier included. "auto": 0.1 and 0.2.
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
        "pooled": (having("fit", "predict", "predict_proba"), NOTHING),
        "recipe": (instance_of(Recipe), NOTHING),
        **GuardedMixin._guard_constraints,
        "random_state": (RANDOM_STATE,),
        "verbose": (whole_number(0),),
    }

    def __init__(
        self,
        n_groups: int = 2,
        *,
        pooled: Classifier | None = None,
        recipe: Recipe | None = None,
        guard: GuardKind | None = "veto",
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        calibration_size: float | str = "auto",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_groups = n_groups
        self.pooled = pooled
        self.recipe = recipe
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        X_calibration: Table | None = None,
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
            recipe = (Recipe() if self.recipe is None else self.recipe).check()
            self._check_calibration(X_calibration, y_calibration)
            rows = self._check_training_rows(X, y, sample_weight)
            judges = self._calibration_rows(X_calibration, y_calibration)
            # Four independent streams: holding out other rows, say, must not change the random start.
            entropy = check_random_state(self.random_state).randint(2**31, size=4).tolist()
            start_seed, split_seed, batch_seed, fold_seed = np.random.SeedSequence(entropy).spawn(4)
            rng = np.random.default_rng(split_seed)

            # Before anything is fitted: rows that are to prove something must be new to the pooled classifier too.
            rows, judges = self._hold_out_for_proof(rows, judges, rng)
            if self._may_merge(rows, recipe):
                rows = rows.merge_repeated()
            self.pooled_, base = fit_pooled(self.pooled, rows, recipe.pooled_folds, fold_seed)
            # Cross-fitting needs calibration rows in the folds only if no other rows judge the groups.
            calibration_share = self._calibration_share() if self.guard and judges is None else 0.0
            held_out = HeldOut.draw(rows.label, recipe.selection_share(), calibration_share, recipe.n_folds, rng)
            fitted = fit_population(
                recipe,
                self.n_groups,
                rows,
                base,
                held_out,
                linear_base=self._linear_base(recipe),
                start_seed=start_seed,
                batch_seed=batch_seed,
                verbose=self.verbose,
            )
            self._keep(fitted)
            self._judge(judges, lambda: fitted.cross_fitted_counts(rows, base, held_out))
            self._measure_label_information(rows)
        # Outside of the block above: a warning that is turned into an error must not undo the fit.
        self._warn_if_groups_are_labels()
        return self

    # ---- steps of fit ----

    def _check_training_rows(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None) -> CheckedRows:
        # A model in production may know classes that these rows do not have; its order of classes is kept.
        incumbent = self.pooled if self.pooled is not None and is_fitted(self.pooled) else None
        classes = None if incumbent is None else incumbent.classes_
        rows = CheckedRows.check(self, X, y, classes=classes, sample_weight=sample_weight)
        self.classes_ = rows.classes
        if len(rows) < self.n_groups:
            raise InputError(f"{len(rows)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows.")
        return rows

    def _may_merge(self, rows: CheckedRows, recipe: Recipe) -> bool:
        """Whether rows may be replaced by weights: all fit into one batch, and the pooled classifier does not mind.

        Logistic regression does not tell a weight of 2 from a row given twice; a classifier that the user brings may.
        """
        return len(rows) <= recipe.batch_size and (self.pooled is None or is_fitted(self.pooled))

    def _linear_base(self, recipe: Recipe) -> Linear | None:
        """The pooled classifier where it is the default one: linear, it becomes part of the same matrix product."""
        warm = recipe.start == "warm"
        return self.pooled_ if warm and isinstance(self.pooled_, StandardizedLogisticRegression) else None

    def _keep(self, fitted: FittedPopulation) -> None:
        self.n_groups_ = self.n_groups
        self._trained = fitted.model
        self.best_epoch_, self.history_, self.population_ = fitted.best_epoch, fitted.history, fitted.population

    def _apply_serving(self) -> None:
        self._serving: CorrectionModel = self._trained.serving(self.serves_)

    def _compare(self, rows: CheckedRows) -> ComparedRows | None:
        every = np.moveaxis(self._trained.logits(rows.X), 1, 0) + self._added_logits(rows.given)
        groups = self._trained.group_logits(rows.X).argmax(axis=1)
        pooled = self.pooled_.predict(rows.given)
        return ComparedRows.check(rows.y, self.classes_[decide(every).T], groups, pooled, None, rows.weight)

    def _measure_label_information(self, rows: CheckedRows) -> None:
        group, values = self._route(rows.X, rows.given)
        self.label_information_ = float(normalized_mutual_info_score(group, decide(values)))

    def _warn_if_groups_are_labels(self) -> None:
        from dafh.engine.selection import LABEL_LIKE  # Here, because the engine imports JAX.

        if self.label_information_ > LABEL_LIKE:
            warnings.warn(
                "The learned groups nearly encode the predicted label (normalised mutual information "
                f"{self.label_information_:.2f}): the group network has become the predictor, and being served well "
                "says little about the groups. Fewer groups, or Recipe(penalty=1), usually help.",
                GroupsEncodeLabelWarning,
                stacklevel=3,
            )

    # ---- prediction: only fitted attributes are read, so that set_params after fit changes nothing ----

    def _check_rows(self, X: Table) -> tuple[NDArray[Any], Any]:
        """X as numbers, and as the pooled classifier takes it."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        return values, X if is_frame(X) else values

    def _pooled_logits(self, given: Table) -> NDArray[np.float64]:
        return logits(class_probabilities(self.pooled_, given, self.classes_))

    def _added_logits(self, given: Table) -> NDArray[np.float64] | float:
        """What is added to the outputs of the model to get logits, (n, m) or 0."""
        return self._pooled_logits(given) if self._trained.pooled == "added" else 0.0

    def _left_to_pooled(self, group: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows that the pooled classifier serves, where the model does not contain it."""
        if self._trained.pooled == "inside":
            return np.array([], np.intp)
        return np.flatnonzero(self.serves_[group] == self.n_groups_)

    def _route(self, values: NDArray[Any], given: Table) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row, and the logits of the classifier that serves it (n, m)."""
        group, own = self._serving.route(values)
        own = own + self._added_logits(given)
        # A zero correction is the pooled classifier already; only cold classifiers, which do not contain it, need help.
        rows = self._left_to_pooled(group)
        if len(rows) and self._trained.pooled == "unused":
            own[rows] = self._pooled_logits(take_rows(given, rows))
        return group, own

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row, by the classifier that serves its group."""
        values, given = self._check_rows(X)
        group, own = self._route(values, given)
        labels = self.classes_[decide(own)]
        rows = self._left_to_pooled(group)
        if len(rows):  # Its own label, not the one of its probabilities: it may have a threshold of its own.
            labels[rows] = self.pooled_.predict(take_rows(given, rows))
        return labels

    def predict_proba(self, X: Table) -> NDArray[Any]:
        """Probability of each class, by the classifier that serves the row's group; columns as in `classes_`."""
        values = self.decision_function(X)
        if values.ndim == 1:
            positive = expit(values)
            return np.column_stack([1 - positive, positive])
        return softmax(values, axis=1)

    def decision_function(self, X: Table) -> NDArray[Any]:
        """Logit of ``classes_[1]`` (two classes) or of every class, by the classifier that serves the row."""
        _, values = self._route(*self._check_rows(X))
        return values.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)[:, 0] if values.shape[1] == 1 else values

    def predict_group(self, X: Table) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1."""
        values, _ = self._check_rows(X)
        # In double precision, unlike routing, which settles close calls the same way: both agree on every row.
        return self._trained.group_logits(values).argmax(axis=1)

    def group_proba(self, X: Table) -> NDArray[Any]:
        """Soft assignment of each row to the groups, (n, `n_groups_`)."""
        values, _ = self._check_rows(X)
        return softmax(self._trained.group_logits(values), axis=1)

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1).

        Column k is the classifier that serves group k; the pooled classifier is the last column.
        """
        values, given = self._check_rows(X)
        every = np.moveaxis(self._serving.logits(values), 1, 0) + self._added_logits(given)
        labels = np.column_stack([self.classes_[decide(every).T], self.pooled_.predict(given)])
        # The pooled classifier's own labels, also where its threshold is not one half.
        labels[:, :-1][:, self.serves_ == self.n_groups_] = labels[:, -1:]
        return labels
