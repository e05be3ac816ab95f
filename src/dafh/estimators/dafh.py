"""DAFHClassifier: groups and their classifiers, learned together."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import Classifier, check_threshold, decide, to_probabilities
from dafh.estimators.guarded import PROOF_SHARE, GuardedMixin, hold_out_for_proof
from dafh.estimators.learning import LearnedGroups, check_jax_is_installed, learn_groups
from dafh.estimators.pooled import (
    FITTED_MODEL,
    PooledFit,
    PooledName,
    find_incumbent,
    fit_pooled,
    pooled_labels,
    pooled_logits,
    resolve_pooled,
    stays_fitted,
    takes_raw_rows,
)
from dafh.evaluation.compared import ComparedRows, PairedDecisions
from dafh.evaluation.guard import GuardKind
from dafh.evaluation.losses import Costs, LossName
from dafh.exceptions import GroupsEncodeLabelWarning, InputError, WorseServedWarning
from dafh.frames import PlainTable, Table, is_frame
from dafh.groups.recipe import Recipe
from dafh.groups.summary import ExceptionSummary
from dafh.groups.trained import ExceptionModel, TrainedGroups
from dafh.incumbents import Incumbent
from dafh.large import TrainingRows, gather_rows, refit_on_all_rows
from dafh.linear.threads import one_thread
from dafh.rows import EncodedRows, LabelledRows, TableEncoding, check_table_for_pooled
from dafh.validation import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    RandomState,
    TakesTables,
    check_parameters,
    having,
    instance_of,
    number,
    one_of,
    unchanged_on_error,
    whole_number,
)

# Above this, the groups are little more than the predicted label; it is measured on so many rows at most.
_LABEL_LIKE, _MOST_ROWS_TO_MEASURE = 0.5, 50_000
# A correction whose spread over the rows of its group is below this share of its mean is told as another cut-off.
_LIKE_A_SHIFT = 0.25
LARGEST_LOGIT = 20.0
"""Odds of more than e^20 to 1 are not told apart: no data could support them."""


class DAFHClassifier(GuardedMixin, TakesTables, ClassifierMixin, BaseEstimator):
    """Learn groups, and one classifier per group, so that no group would rather have another classifier.

    One pooled classifier serves everybody first: a `Scorecard`, unless another is asked for. Rows that it serves badly
    become exceptions, a short list of readable conditions, and each exception gets a classifier of its own, a
    correction of the pooled one. Everybody else is a group like the others. Own classifiers are only kept where
    held-out rows favour them: every group is to be served at least as well as by the pooled classifier (rationality)
    and as by any other group's (envy-freeness). No sensitive attribute is needed.

    Parameters
    ----------
    n_groups : int or "auto", default="auto"
        Number of groups K: K − 1 exceptions, and everybody else. "auto": 1 to 9, the fewest whose held-out log-loss is
        within one standard error of the best; 1 where groups add nothing to the pooled classifier.
    method : {"exceptions", "network"}, default="exceptions"
        How rows are divided. "exceptions": by an ordered list of regions with at most two conditions each; the first
        that holds decides, and classifiers are solved exactly. "network": by the paper's group network, trained jointly
        with the classifiers from a start at the exceptions; needs JAX, ``pip install 'dafh[network]'``.
    pooled : {"scorecard", "linear"}, classifier with `predict_proba`, or fitted model, default="scorecard"
        The classifier that every group is compared with. "linear" is logistic regression, as in the paper. A fitted
        model of any library is used as it is and never changed: it gets rows as they come, and its own columns.
        `Incumbent` says more about one, and `IncumbentColumns` reads scores and decisions from the table. Of an
        unfitted classifier, a copy is fitted on all rows.
    recipe : Recipe or None, default=None
        How the network is trained; None is ``Recipe()``. ``Recipe.paper()`` is the paper's Algorithm 1, for
        ``method="network"``, ``pooled="linear"`` and ``guard=None``.
    guard : {"evidence", "proof"} or None, default="evidence"
        When a group keeps its own classifier. "evidence": only if held-out rows favour it, with p ≤ 0.2 on the first of
        `guard_losses`, and no other loss and no declared subgroup speaks against it; its region is judged by all rows,
        each with coefficients that were fitted without it (with `time`, by a part of the last rows). "proof": only if a
        fifth of the rows, held out of everything, the pooled classifier included, show that it is not worse. None:
        always. See `dafh.evaluation.guard`.
    guard_level : float, default=0.05
        With "proof", the accepted probability that any group is worse off all the same; also the level of certificates
        and of the tests that give a group another group's classifier.
    guard_margin : float, default=0
        Harm up to this size is accepted by "proof": 0.01 is one percentage point of error.
    guard_losses : {"auto", "error", "fpr", "fnr", "cost"} or a sequence of them, default="auto"
        Losses that must not get worse: error rate, false positive rate, false negative rate, costs. The guard checks
        all of them, and certificates are about the first. All but "error" need two classes; ``classes_[1]`` is the
        positive one. "auto" is the error rate where decisions are made at a probability of one half, and otherwise the
        cost that the cut-off implies: at 0.3, a false negative counts 2.3 false positives.
    costs : mapping or None, default=None
        What a false positive and a false negative cost, such as ``{"fp": 1, "fn": 5}``. Decisions are then made at the
        cut-off at which both cost the same on average, unless `threshold` says otherwise.
    threshold : float or None, default=None
        With two classes, the probability above which own classifiers predict ``classes_[1]``. None: the cut-off that
        `costs` imply, or else that of the pooled classifier, found from what it predicts. A pooled classifier that is
        given by name decides at the same cut-off; any other decides by its own `predict`.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress of the network: a bar on a terminal, a few plain lines elsewhere.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    pooled_ : classifier
        The pooled classifier in use.
    n_groups_ : int
        Number of groups.
    method_ : {"exceptions", "network"}
        How rows are divided.
    exceptions_ : ExceptionSummary or None
        The exceptions, with the size of each group and what it gains; prints as a table. None for a network.
    candidates_ : DataFrame
        What held-out rows chose from: settings, log-loss, difference to the pooled classifier with its standard error.
    serves_ : array of shape (`n_groups_`,)
        The classifier that serves each group: its own number, another group's, or `n_groups_` for the pooled one.
    guard_report_ : GuardReport or None
        What the guard did for each group, and why; prints as a table.
    largest_weight_ : float or None
        As it was given to `fit` or `recalibrate`.
    training_hashes_ : array
        Hashes of a thousand training rows at most, by which `recalibrate` recognises them.
    losses_ : tuple of Loss
        Losses that must not get worse.
    threshold_ : float
        Probability above which own classifiers predict ``classes_[1]``; 0.5 where there are more than two classes.
    history_, best_epoch_ : DataFrame and int, or None
        How the network was trained, if one was: one row per epoch of the chosen replica; its epoch.
    label_information_ : float
        Normalised mutual information between group and predicted label on the rows of `fit`; above 0.5 a
        `GroupsEncodeLabelWarning` is issued.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.datasets import make_grouped_classification
    >>> data = make_grouped_classification(2000, random_state=0)
    >>> model = DAFHClassifier(2, pooled="linear", random_state=0).fit(data.X, data.y)
    >>> model.pooled_.score(data.X, data.y) < 0.85 < 0.9 < model.score(data.X, data.y)
    True
    >>> model.predict_group(data.X).shape, model.predict_all(data.X).shape
    ((2000,), (2000, 3))
    """

    _constraints: ClassVar[Constraints] = {
        "n_groups": (whole_number(1), one_of("auto")),
        "method": (one_of("exceptions", "network"),),
        "pooled": (one_of("scorecard", "linear"), having("fit", "predict", "predict_proba"), FITTED_MODEL),
        "recipe": (instance_of(Recipe), NOTHING),
        **GuardedMixin._guard_constraints,
        "threshold": (number(0, 1), NOTHING),
        "random_state": (RANDOM_STATE,),
        "verbose": (whole_number(0),),
    }

    # What a fitted model is, beside what the docstring lists.
    exceptions_: ExceptionSummary | None
    _pooled_columns: tuple[str, ...] | None
    """Columns that only the pooled classifier sees; None where it sees what groups see."""
    _encoding: TableEncoding
    """How tables become numbers and bins."""
    _trained: TrainedGroups
    """Groups, and every own classifier as it was trained."""
    _serving: TrainedGroups
    """The same with the classifiers that serve."""
    _candidates: PlainTable
    _history: PlainTable | None

    def __init__(
        self,
        n_groups: int | Literal["auto"] = "auto",
        *,
        method: Literal["exceptions", "network"] = "exceptions",
        pooled: Classifier | PooledName = "scorecard",
        recipe: Recipe | None = None,
        guard: GuardKind | None = "evidence",
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        guard_losses: LossName | Literal["auto"] | Sequence[LossName] = "auto",
        costs: Mapping[str, float] | None = None,
        threshold: float | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_groups = n_groups
        self.method = method
        self.pooled = pooled
        self.recipe = recipe
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.guard_losses = guard_losses
        self.costs = costs
        self.threshold = threshold
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        guard_features: Table | None = None,
        sensitive_features: Table | None = None,
        persons: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Fit the pooled classifier, learn groups and their classifiers, and let the guard decide who serves whom.

        Of more than 200,000 rows, a sample of so many chooses bins, groups and strengths; coefficients come from all. A
        network learns from the sample alone.

        Parameters
        ----------
        X : data frame or array of shape (n, d), or rows elsewhere
            Numbers, dates, flags, categories or text; missing values where there are some. Elsewhere are files (a path,
            a pattern such as ``"rows/*.parquet"``, a folder, or a list of them), a ``pyarrow.dataset.Dataset`` and a
            Dask data frame; `y`, `sample_weight`, `guard_features`, `sensitive_features`, `persons` and `time` are then
            names of columns, and all other columns are features.
        y : array of shape (n,)
            Labels of any type, two or more different ones.
        sample_weight : array of shape (n,), optional
            Row weights; a row of weight 0 is as good as absent.
        largest_weight : float, optional
            Largest weight of a row in the population, or of all rows of a person. What the guard promises rests on it.
            By default it is the largest weight of the rows that judge: a heavier one that these rows have missed could
            hide any harm.
        guard_features : data frame, series or array with n rows, optional
            Attributes such as sex and age, which training never sees. A group keeps its own classifier only if the
            guard finds no subgroup that they define (one attribute at a time) harmed in it.
        sensitive_features : data frame, series or array with n rows, optional
            Attributes such as sex and age, which neither training nor the guard sees. A `WorseServedWarning` names the
            groups that they define and that the fitted model serves worse than the pooled classifier, on held-out rows
            and by any of `guard_losses` (with p ≤ 0.05 each).
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to, if persons have several rows. A person's rows are never
            on both sides of a split, and the guard counts persons.
        time : array of shape (n,), optional
            When each row was observed, as numbers or dates. The latest rows are then held out, instead of random ones.

        Returns
        -------
        self
        """
        with unchanged_on_error(self), one_thread():
            check_parameters(self, self._constraints)
            if self.method == "network":
                check_jax_is_installed()
            attributes = self._join_attributes(X, guard_features, sensitive_features)
            streams = RandomStreams.of(self.random_state)
            training = gather_rows(
                self._check_training_rows,
                X,
                y,
                held_out=PROOF_SHARE if self.guard == "proof" else 0.0,
                seed=streams.sample,
                sample_weight=sample_weight,
                guard_features=attributes.table,
                persons=persons,
                time=time,
            )
            rows, judges = training.few, training.judges
            if training.blocks is None:
                # Before anything is fitted: rows that are to prove something must be new to the pooled classifier too.
                rows, judges = hold_out_for_proof(rows, self.guard, streams.folds)
            self._check_losses()
            self._keep_largest_weight(largest_weight, rows)
            self._keep_hashes(rows)
            unfitted = resolve_pooled(self.pooled, self._requested_threshold(), rows)
            pooled, learned = self._learn(unfitted, rows, training, streams, has_judges=judges is not None)
            self._set_fitted(pooled, learned)
            self._check_losses(self.threshold_)
            compared = None
            if self.guard is not None or attributes.sensitive:
                compared = learned.judged() if judges is None else self._compare(judges)
            losers = self._judge(compared, attributes, cross_fitted=judges is None)
        # Outside of the block above: a warning that is turned into an error must not undo the fit.
        if losers:
            warnings.warn(losers, WorseServedWarning, stacklevel=2)
        training.warn_if_sampled(unfitted, self.method_)
        if self.label_information_ > _LABEL_LIKE:
            warnings.warn(
                "The learned groups nearly encode the predicted label (normalised mutual information "
                f"{self.label_information_:.2f}): the division into groups makes the predictions, so figures by group "
                "say little about fairness. Fewer groups usually help.",
                GroupsEncodeLabelWarning,
                stacklevel=2,
            )
        return self

    # ---- steps of fit ----

    def _check_training_rows(self, X: Table, y: ArrayLike, attributes: dict[str, Any]) -> LabelledRows:
        incumbent = find_incumbent(self.pooled)
        if incumbent is None:
            self._pooled_columns = None
        else:
            self._pooled_columns = () if incumbent.only is None else tuple(incumbent.only)
        # A model in production may know classes that these rows do not have; its order of classes is kept.
        classes = getattr(incumbent, "classes_", None)
        classes = incumbent.known_classes if isinstance(incumbent, Incumbent) else classes
        rows = LabelledRows.check(self, X, y, classes=classes, pooled_columns=self._pooled_columns, **attributes)
        self.classes_ = rows.classes
        if self.n_groups != "auto" and len(rows) < self.n_groups:
            raise InputError(f"{len(rows)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows.")
        return rows

    def _check_more(self, X: Table, y: ArrayLike, **attributes: Any) -> LabelledRows:
        return LabelledRows.check_more(self, X, y, pooled_columns=self._pooled_columns, **attributes)

    def _requested_threshold(self) -> float | None:
        """Cut-off that the user asks for, by itself or by costs; None leaves it to the pooled classifier."""
        threshold = self.threshold
        if threshold is None and self.costs is not None:
            threshold = Costs.check(self.costs).threshold
        if threshold is not None:
            check_threshold(threshold, len(self.classes_))
        return threshold

    def _learn(
        self, unfitted: Any, rows: LabelledRows, training: TrainingRows, streams: "RandomStreams", *, has_judges: bool
    ) -> tuple[PooledFit, LearnedGroups]:
        """Fit the pooled classifier, then groups and their classifiers; on all rows, where `rows` are a sample."""
        recipe = (Recipe() if self.recipe is None else self.recipe).check()
        features = self.feature_names_in_ if rows.X.shape[1] > self.n_features_in_ else None
        pooled = fit_pooled(unfitted, rows, streams.pooled, training.whole, features, self.method == "network")
        learned = learn_groups(
            rows,
            unfitted,
            pooled,
            method=self.method,
            n_groups=None if self.n_groups == "auto" else self.n_groups,
            recipe=recipe,
            calibrates=self.guard is not None and not has_judges,
            threshold=self._requested_threshold(),
            rng=streams.folds,
            seeds=streams.network,
            verbose=self.verbose,
        )
        if training.blocks is not None and isinstance(learned.model, ExceptionModel):
            foreign = partial(pooled_logits, pooled.model, classes=self.classes_)
            as_frame = hasattr(self, "feature_names_in_")
            groups = refit_on_all_rows(training, pooled, learned, foreign, self.classes_, as_frame=as_frame)
            learned = learned if groups is None else replace(learned, model=groups)
        return pooled, learned

    def _set_fitted(self, pooled: PooledFit, learned: LearnedGroups) -> None:
        """Set all fitted attributes but those of the guard."""
        self.pooled_: Classifier = pooled.model
        self._encoding = pooled.encoding
        self._trained = learned.model
        self.threshold_ = learned.cutoff
        self.n_groups_ = learned.model.n_groups
        self.method_ = "exceptions" if isinstance(learned.model, ExceptionModel) else "network"
        self._candidates = PlainTable.of(learned.fitted.candidates)
        population = learned.population
        self._history = None if population is None else PlainTable.of(population.history)
        self.best_epoch_ = None if population is None else population.best_epoch
        # 50,000 rows tell mutual information to two digits. Every so many rows, not the first ones, because files are
        # often sorted.
        step = max(len(learned.rows) // _MOST_ROWS_TO_MEASURE, 1)
        sample = learned.encoded.take(np.arange(0, len(learned.rows), step))
        weight = learned.rows.weight[::step]
        base = pooled_logits(self.pooled_, sample, self.classes_)
        group, values = self._trained.route(sample, base)
        # By definition, one group and one label would tell all about each other.
        several = len(np.unique(group)) > 1
        label = decide(values, self.threshold_)
        self.label_information_ = float(normalized_mutual_info_score(group, label)) if several else 0.0
        self.exceptions_ = None
        if isinstance(self._trained, ExceptionModel):
            groups = np.arange(self.n_groups_)
            share = np.bincount(group, weight, self.n_groups_) / weight.sum()
            shift = np.array([_common_shift((values - base)[group == k]) for k in groups])
            # What giving up a model of the user's would bring is told where folds have held out its rows.
            replaces = not pooled.fitted_here and learned.problem.n_folds > 1
            self.exceptions_ = ExceptionSummary(
                self._trained.regions,
                groups,
                share,
                shift,
                self.threshold_,
                replacement=learned.replacement() if replaces else None,
            )

    def _compare(self, rows: LabelledRows) -> ComparedRows:
        if not len(rows):
            return ComparedRows.none(self.n_groups_)
        encoded = self._encoding.encode(rows.X)
        logits = self._trained.every(encoded, self._pooled_logits(encoded))
        return ComparedRows.check(
            rows.y,
            self.classes_[decide(logits, self.threshold_)],
            self._trained.assign(encoded),
            self.pooled_.predict(rows.X),
            None,
            rows.weight,
            classes=self.classes_,
            persons=rows.person,
            attributes=rows.declared,
        )

    def _apply_serving(self) -> None:
        self._serving = self._trained.serving(self.serves_)
        if self.exceptions_ is not None:
            self.exceptions_ = self.exceptions_.judged(self.serves_, self.guard_report_)

    # ---- what was fitted ----

    @property
    def candidates_(self) -> pd.DataFrame:
        """What held-out rows chose from."""
        return self._candidates.to_frame()

    @property
    def history_(self) -> pd.DataFrame | None:
        """One row per epoch of the chosen replica of a network."""
        return None if self._history is None else self._history.to_frame()

    # ---- prediction: reads fitted attributes only, never parameters ----

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row, by the classifier that serves its group."""
        encoded = self._encode(X)
        return self._labels(encoded, *self._route(encoded))

    def predict_proba(self, X: Table) -> NDArray[Any]:
        """Probability of each class, by the classifier that serves the row's group; columns as in `classes_`."""
        return to_probabilities(_limited(self._route(self._encode(X))[1]))

    def decision_function(self, X: Table) -> NDArray[Any]:
        """Logit of ``classes_[1]`` (two classes) or of every class, by the classifier that serves the row."""
        logits = _limited(self._route(self._encode(X))[1])
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def pooled_proba(self, X: Table) -> NDArray[Any]:
        """Probability of each class by the pooled classifier, whoever serves the row; columns as in `classes_`."""
        return to_probabilities(_limited(self._pooled_logits(self._encode(X))))

    def predict_group(self, X: Table) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1."""
        encoded = self._encode(X)  # First, because it says when the model is not fitted.
        return self._trained.assign(encoded)

    def group_proba(self, X: Table) -> NDArray[Any]:
        """Soft assignment of each row to the groups, (n, `n_groups_`); 0 or 1 where they are rules."""
        encoded = self._encode(X)
        return self._trained.group_proba(encoded)

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1).

        Column k is the classifier that serves group k; the pooled classifier is the last column.
        """
        encoded = self._encode(X)
        logits = self._serving.every(encoded, self._pooled_logits(encoded))
        own_labels = self.classes_[decide(logits, self.threshold_)]
        # A pooled classifier may decide by rules that no cut-off of its probabilities reproduces: `predict` is asked.
        labels = np.column_stack([own_labels, self.pooled_.predict(encoded.X)])
        # The pooled classifier's own labels, also where its threshold is not one half.
        labels[:, :-1][:, self.serves_ == self.n_groups_] = labels[:, -1:]
        return labels

    def serve(self, X: Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp], dict[str, tuple[int, Any]]]:
        """Label, probability of each class, group, and unseen categories of rows, which are put into bins only once.

        The same as `predict`, `predict_proba`, `predict_group` and `unseen_categories`.
        """
        encoded = self._encode(X)
        group, logits = self._route(encoded)
        labels = self._labels(encoded, group, logits)
        return labels, to_probabilities(_limited(logits)), group, _unseen_categories(encoded)

    def unseen_categories(self, X: Table) -> dict[str, tuple[int, Any]]:
        """By column, the number of rows with a category that training rows did not have, and one of these categories.

        They are served like all others. Of a column with so many categories that the rare ones share a bin, unseen ones
        share it too, and are not counted.
        """
        return _unseen_categories(self._encode(X))

    def decide_twice(self, X: Table, servers: NDArray[np.intp], sensitive_features: Table | None) -> PairedDecisions:
        """Decide about each row by classifier ``servers[k]`` for group k, whoever serves it, and by the pooled one."""
        encoded = self._encode(X)
        base = self._pooled_logits(encoded) if self._trained.contains_pooled else None
        group, logits = self._trained.serving(servers).route(encoded, base)
        pooled = pd.Index(self.classes_).get_indexer(pooled_labels(self.pooled_, encoded))
        return PairedDecisions(group, decide(logits, self.threshold_), pooled)

    def _encode(self, X: Table) -> EncodedRows:
        """Check rows, and look at them as in training."""
        check_is_fitted(self)
        table, _ = check_table_for_pooled(self, X, reset=False, pooled_columns=self._pooled_columns)
        return self._encoding.encode(table if is_frame(X) else table.to_numpy())

    def _pooled_logits(self, encoded: EncodedRows) -> NDArray[np.float64]:
        return pooled_logits(self.pooled_, encoded, self.classes_)

    def _route(self, encoded: EncodedRows) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Group of each row, and the logits of the classifier that serves it (n, m)."""
        # Here and not only around each product: where several threads predict at once, setting the limit and taking it
        # back for each block of rows took four times as long as the products.
        with one_thread():
            contains_pooled = self._trained.contains_pooled
            group, logits = self._serving.route(encoded, self._pooled_logits(encoded) if contains_pooled else None)
            # A zero correction is the pooled classifier already; only classifiers that do not contain it need help.
            rows = np.flatnonzero(self.serves_[group] == self.n_groups_)
            if len(rows) and not contains_pooled:
                logits[rows] = self._pooled_logits(encoded.take(rows))
        return group, logits

    def _labels(self, encoded: EncodedRows, group: NDArray[np.intp], logits: NDArray[Any]) -> NDArray[Any]:
        labels = self.classes_[decide(logits, self.threshold_)]
        rows = np.flatnonzero(self.serves_[group] == self.n_groups_)
        if len(rows):  # Its own label, not the one of its probabilities: it may have a threshold of its own.
            labels[rows] = pooled_labels(self.pooled_, encoded.take(rows))
        return labels

    # ---- beside other estimators ----

    @property
    def brings_incumbent(self) -> bool:
        """Whether `pooled` is a fitted model that takes rows as they come; `tabular_pipeline` asks."""
        return takes_raw_rows(self.pooled)

    def __sklearn_clone__(self) -> "DAFHClassifier":
        """Copy the parameters; a fitted pooled classifier stays the same object, as in scikit-learn's FrozenEstimator.

        `clone` would drop what it has learned, and cross-validation would silently judge another model.
        """
        copy: DAFHClassifier = super().__sklearn_clone__()
        return copy.set_params(pooled=self.pooled) if stays_fitted(self.pooled) else copy


class RandomStreams(NamedTuple):
    """Random numbers by purpose: holding out other rows must not change the random start of a network."""

    folds: np.random.Generator
    """Draws the rows that are held out."""
    network: tuple[np.random.SeedSequence, np.random.SeedSequence]
    """For its start, and for its batches."""
    pooled: int
    """Seed of a pooled classifier that is fitted here."""
    sample: int
    """Seed of the sample of more rows than fit into memory."""

    @classmethod
    def of(cls, random_state: RandomState) -> Self:
        """Spawn them from what the user gave."""
        entropy = check_random_state(random_state).randint(2**31, size=4).tolist()
        start, folds, batches, *seeds = np.random.SeedSequence(entropy).spawn(5)
        pooled, sample = (int(seed.generate_state(1)[0]) for seed in seeds)
        return cls(np.random.default_rng(folds), (start, batches), pooled, sample)


def _common_shift(correction: NDArray[np.float64]) -> float:
    """What a correction (n, m) adds to the logit of every row, NaN where it differs from row to row."""
    if correction.shape[1] != 1 or not len(correction) or not correction.any():
        return float("nan")
    # A constant added to the logit b moves the cut-off c: b + shift > logit(c) is the same as b > logit(c) − shift.
    mean, spread = float(correction.mean()), float(correction.std())
    return mean if spread < _LIKE_A_SHIFT * abs(mean) else float("nan")


def _limited(logits: NDArray[Any]) -> NDArray[Any]:
    return logits.clip(-LARGEST_LOGIT, LARGEST_LOGIT) if logits.shape[1] == 1 else logits


def _unseen_categories(encoded: EncodedRows) -> dict[str, tuple[int, Any]]:
    binning, counts = encoded.encoding.binning, {}
    for position, rows in ({} if binning is None else binning.unseen_categories(encoded.codes)).items():
        values = encoded.features.iloc[rows, position].dropna()  # A gap is missing, and not unseen.
        if len(values):
            counts[str(encoded.features.columns[position])] = (len(values), values.iloc[0])
    return counts
