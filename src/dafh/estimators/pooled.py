"""The pooled classifier of a DAFHClassifier: the user's own or one fitted here, and nested logits to learn from.

One that the user brings is found, checked against the rows of a fit, and made ready to be asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from dafh.classifiers import (
    Classifier,
    class_probabilities,
    decide,
    final_classifier,
    find_cutoff,
    fit_clone,
    fit_group,
    is_fitted,
    logits,
    seeded,
    to_probabilities,
)
from dafh.columns.bins import Binning
from dafh.columns.encoder import TableEncoder
from dafh.exceptions import InputError
from dafh.frames import Table, to_pandas
from dafh.groups.corrections import Kind
from dafh.groups.judging import Decisions
from dafh.incumbents import Incumbent, IncumbentColumns, check_incumbent, names_aside
from dafh.linear.designs import DenseDesign, Standardization, sum_points
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.newton import Regression, Solution, out_of_fold_logits
from dafh.linear.scorecard import Scorecard, ScorecardFit
from dafh.rows import EncodedRows, LabelledRows, TableEncoding
from dafh.text import quoted
from dafh.validation import Allowed

PooledName = Literal["scorecard", "linear"]
# With fewer rows than this, five folds are worth their time; above it, three judge as surely.
_FEW_ROWS = 20_000
# Bins by column in which a classifier of any other kind is corrected: its groups have too few rows for more.
_FEW_BINS = 20
Brought = Incumbent | IncumbentColumns
FITTED_MODEL = Allowed(
    "a fitted model that has 'predict'", lambda value: callable(getattr(value, "predict", None)) and is_fitted(value)
)
"""What a pooled classifier may be beside a name and a classifier with probabilities."""


@dataclass(frozen=True, eq=False)
class PooledFit:
    """The pooled classifier in use, how it sees tables, and how it is corrected."""

    model: Classifier
    encoding: TableEncoding
    kind: Kind
    sums: ScorecardFit | None = None
    """Of a scorecard that was fitted here."""
    fitted_here: bool = True
    """False for a model that the user brought fitted."""


def resolve_pooled(pooled: Classifier | PooledName, threshold: float | None = None) -> Any:
    """Return the classifier that a name stands for, with a cut-off.

    A classifier that the user passes decides as it does: its own `predict` is what groups are compared with.
    """
    if isinstance(pooled, str):
        cutoff = 0.5 if threshold is None else threshold
        kind: Any = Scorecard if pooled == "scorecard" else StandardizedLogisticRegression
        return kind(threshold=cutoff)
    return pooled


def choose_n_folds(pooled: Any, n_rows: int) -> int:
    """Folds to judge in: five where fits are cheap, three where every further fold costs several whole fits.

    A scorecard has three: on ten development splits each of Violent, Arrest and German, five were no better (accuracy
    +0.01, −0.03 and −0.04 points, all within one or two standard errors), and each fold costs a whole fit by evidence.
    """
    cheap = is_fitted(pooled) or isinstance(pooled, StandardizedLogisticRegression)
    return 5 if cheap and n_rows < _FEW_ROWS else 3


def fit_pooled(
    pooled: Any,
    rows: LabelledRows,
    seed: int,
    whole: Callable[[], LabelledRows] | None = None,
    columns: Sequence[str] | None = None,
    numbers: bool = True,
) -> PooledFit:
    """Take a fitted classifier as it is, or fit a copy of an unfitted one.

    Parameters
    ----------
    seed : int
        For a classifier that has a random state.
    whole : function, optional
        Gives all rows, where `rows` are a sample: any classifier but ours is fitted on them. Ours get coefficients
        from all rows later.
    columns : sequence of str, optional
        Features, where rows have further columns for a fitted classifier.
    numbers : bool
        Whether groups need the columns as numbers; a classifier may need them in any case.
    """
    if is_fitted(pooled):
        binning = pooled.binning_ if isinstance(pooled, Scorecard) else None
        kind: Kind = "points" if binning is not None else "columns" if _is_linear(pooled) else "logits"
        view = TableEncoding.learn(
            rows.X,
            rows.weight,
            binning or _bins_of_corrections(rows, kind, columns),
            columns,
            numbers=numbers or kind == "columns",
        )
        return PooledFit(pooled, view, kind, fitted_here=False)
    missing = np.setdiff1d(np.arange(len(rows.classes)), rows.label)
    if len(missing):
        raise InputError(
            f"All rows of the class {quoted(rows.classes[missing[0]])} are held out to judge, and none is left to "
            "train with: give more rows of it, or leave the class out."
        )
    if isinstance(pooled, Scorecard):
        scorecard = clone(pooled)
        sums = scorecard.fit_keeping_sums(rows.X, rows.y, rows.fit_weight, rows.person)
        return PooledFit(
            scorecard, TableEncoding.learn(rows.X, rows.weight, scorecard.binning_, numbers=numbers), "points", sums
        )
    kind = "columns" if isinstance(pooled, StandardizedLogisticRegression) else "logits"
    view = TableEncoding.learn(rows.X, rows.weight, _bins_of_corrections(rows, kind, None))
    unfitted = seeded(pooled, seed)
    if whole is not None and not isinstance(pooled, StandardizedLogisticRegression):
        rows = whole()
    if view.encoder is None or isinstance(pooled, Pipeline):
        model = _fit_copy(unfitted, rows.X, rows)
    else:
        # Most classifiers take numbers only. A pipeline is left alone: it has its own way with tables.
        encoded = view.encoder.transform(rows.X)
        model = Pipeline([("encoder", view.encoder), ("model", _fit_copy(unfitted, encoded, rows))])
    return PooledFit(model, view, kind)


def _bins_of_corrections(rows: LabelledRows, kind: Kind, columns: Sequence[str] | None) -> Binning | None:
    """Few bins by column for the points that correct a foreign classifier; None where they are not needed."""
    if kind != "logits":
        return None
    return Binning.learn(rows.X if columns is None else to_pandas(rows.X)[list(columns)], rows.weight, _FEW_BINS)


def _fit_copy(unfitted: Any, X: Any, rows: LabelledRows) -> Classifier:
    """Fit a copy; our own logistic regression also keeps the rows of a person together in its cross-validation."""
    if isinstance(unfitted, StandardizedLogisticRegression):
        return clone(unfitted).fit(X, rows.y, rows.fit_weight, persons=rows.person)
    return _fit_any(unfitted, X, rows.y, rows.fit_weight)


def _fit_any(unfitted: Any, X: Any, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Any:
    """Fit a copy of any classifier, or remember the label if there is one only.

    XGBoost takes the labels 0, 1, 2, ... and no others, and a fold may lack one of those: it gets such numbers, and is
    told what they stand for.
    """
    unfitted = unfitted.model if isinstance(unfitted, Incumbent) else unfitted
    classes, codes = np.unique(y, return_inverse=True)
    by_number = type(final_classifier(unfitted)).__module__.startswith("xgboost")
    if len(classes) == 1 or not by_number or np.array_equal(classes, np.arange(len(classes))):
        return fit_group(unfitted, X, y, weight)
    return Incumbent(fit_clone(unfitted, X, codes, weight), labels=classes.tolist()).fit(X, y)


def _is_linear(model: Any) -> bool:
    """Whether a classifier is our logistic regression, alone or behind an encoder of tables."""
    if isinstance(model, Pipeline):
        return len(model.steps) == 2 and isinstance(model[0], TableEncoder) and _is_linear(model[1])
    return isinstance(model, StandardizedLogisticRegression)


def pooled_logits(model: Any, seen: EncodedRows, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Logits of the pooled classifier, (n, m); tables are encoded once where it sees them as we do."""
    if _shares_bins(model, seen) and np.array_equal(model.classes_, classes):
        return sum_points(seen.codes, model.points_, model.intercept_)
    if _shares_encoder(model, seen) and _is_linear(model) and np.array_equal(model.classes_, classes):
        return logits(to_probabilities(_linear_scores(model, seen)))
    return logits(class_probabilities(*_last_step(model, seen), classes))


def pooled_labels(model: Any, seen: EncodedRows) -> NDArray[Any]:
    """Labels of the pooled classifier as its own `predict` gives them; tables are encoded once, as for its logits."""
    if _shares_bins(model, seen):
        scores = sum_points(seen.codes, model.points_, model.intercept_)
    elif _shares_encoder(model, seen) and _is_linear(model):
        scores = _linear_scores(model, seen)
    else:
        last, rows = _last_step(model, seen)
        return last.predict(rows)
    last = final_classifier(model)
    return last.classes_[decide(scores, last.threshold_)]


def _linear_scores(model: Pipeline, seen: EncodedRows) -> NDArray[np.float64]:
    """What `decision_function` of a logistic regression behind our encoder gives, (n, m)."""
    linear = model.steps[-1][1]
    return seen.numbers @ linear.coef_.T + linear.intercept_


def _shares_bins(model: Any, seen: EncodedRows) -> bool:
    return isinstance(model, Scorecard) and model.binning_ is seen.encoding.binning


def _shares_encoder(model: Any, seen: EncodedRows) -> bool:
    encoder = seen.encoding.encoder
    return encoder is not None and isinstance(model, Pipeline) and model.steps[0][1] is encoder


def _last_step(model: Any, seen: EncodedRows) -> tuple[Any, Any]:
    """Return a classifier and rows as it takes them, without the encoder where that is the one of our own view."""
    if _shares_encoder(model, seen):
        names = model.steps[0][1].get_feature_names_out()
        return model.steps[-1][1], pd.DataFrame(seen.numbers, columns=names, copy=False)
    if isinstance(model, StandardizedLogisticRegression):
        _ = seen.numbers  # Refuses gaps, which training rows did not have, in a sentence of ours.
    return model, seen.X


def observe_decisions(
    unfitted: Any, fitted: PooledFit, rows: LabelledRows, seen: EncodedRows, threshold: float | None
) -> Decisions:
    """How own classifiers decide, and how the pooled one does where it is judged.

    Own classifiers decide at the cut-off of the pooled one unless another is given: otherwise a group whose classifier
    changes nothing else would be flagged more or less often than before, without a word.
    """
    model, classes = fitted.model, rows.classes
    last = final_classifier(model)
    ours, brought = isinstance(last, Scorecard | StandardizedLogisticRegression), is_fitted(unfitted)
    label = None if ours and not brought else np.searchsorted(classes, model.predict(rows.X))
    # A model in production is the same in all folds. One that is fitted anew in each decides there by its cut-off.
    same = label if brought else None
    if len(classes) != 2:
        return Decisions(pooled_label=same)
    if label is None or ours:
        found = float(last.threshold_)
    else:
        found = _observed_cutoff(label == 1, expit(pooled_logits(model, seen, classes)[:, 0]))
    return Decisions(found if threshold is None else threshold, found, same)


def _observed_cutoff(flagged: NDArray[np.bool_], probability: NDArray[np.float64]) -> float:
    """Cut-off of a classifier, from what it predicts; one half where its probabilities do not explain its decisions.

    Decisions against the score (by people, say, or by a score that has turned) have no cut-off. The one that explains
    most of them would then flag everybody or nobody, and own classifiers with it.
    """
    found = find_cutoff(flagged, probability)
    wrong = int(((probability > found) != flagged).sum())
    return 0.5 if wrong and wrong >= min(flagged.sum(), (~flagged).sum()) else found


def out_of_fold_pooled_logits(
    unfitted: Any, fitted: PooledFit, rows: LabelledRows, seen: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Logits of the pooled classifier for every row, by a fit without the row's fold, (n, m).

    A classifier that was brought fitted is what it is, in every fold; where there is one fold only, nothing is left to
    fit on, and the fit on all rows serves.
    """
    if is_fitted(unfitted) or not fold.any():
        return pooled_logits(fitted.model, seen, rows.classes)
    if isinstance(unfitted, Scorecard):
        assert fitted.sums is not None
        # With the strengths of all rows, as for logistic regression. What they tell of a label makes the pooled
        # classifier look a little better, and own ones harder to earn; strengths for each fold doubled the time.
        return out_of_fold_logits(fitted.sums.rows, fitted.sums.solution, fold)[0]
    if fitted.kind == "columns":
        return _out_of_fold_regression(fitted.model, rows, seen, fold)
    return _out_of_fold_fits(unfitted, fitted, rows, seen, fold)


def _out_of_fold_regression(
    model: Any, rows: LabelledRows, seen: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Logistic regression on standardised columns, with the strength that was chosen for all rows."""
    linear = model.steps[-1][1] if isinstance(model, Pipeline) else model
    standard = Standardization.of(seen.numbers, rows.weight)
    offset = np.zeros((len(rows), len(linear.coef_)))
    regression = Regression(DenseDesign(standard.of_rows(seen.numbers)), rows.label, rows.weight, offset)
    start = standard.stacked(linear.intercept_, linear.coef_)
    solution = Solution(start, np.full(len(start), 1.0 / float(linear.C_)))
    # To the last digits: the start knows the labels of all rows, and the end must not.
    return out_of_fold_logits(regression, solution, fold, tolerance=1e-11)[0]


def _out_of_fold_fits(
    unfitted: Any, fitted: PooledFit, rows: LabelledRows, seen: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    model: Any = fitted.model
    wrapped = isinstance(model, Pipeline) and not isinstance(unfitted, Pipeline)
    probabilities = np.empty((len(rows), len(rows.classes)))
    for number in range(int(fold.max()) + 1):
        inside = np.flatnonzero(fold == number)
        training, held_out = rows.take(np.flatnonzero(fold != number)), seen.take(inside)
        given = seen.numbers[fold != number] if wrapped else training.X
        # A fresh copy of the fitted one, which has its seeds; a fold may lack a rare class, and leave one only.
        last = _fit_any(model.steps[-1][1] if wrapped else model, given, training.y, training.fit_weight)
        asked = held_out.numbers if wrapped else held_out.X
        probabilities[inside] = class_probabilities(last, asked, rows.classes)
    return logits(probabilities)


# ---- brought by the user ----


def find_incumbent(pooled: Any) -> Brought | None:
    """Return what was brought, still to be matched with rows; None for a classifier that is fitted here."""
    if isinstance(pooled, str):
        return None
    if isinstance(pooled, Incumbent):
        pooled.check()
        return pooled.__sklearn_clone__()
    if isinstance(pooled, IncumbentColumns):
        return pooled
    if not is_fitted(pooled):
        return None
    check_incumbent(pooled)
    return Incumbent(pooled)


def match_incumbent(brought: Brought, rows: LabelledRows) -> Any:
    """Match what was brought with the rows of a fit; a model that needs no help is returned as it is."""
    known = (rows.X, rows.y, rows.fit_weight)
    if isinstance(brought, IncumbentColumns):
        # Fitted by the user on other rows, perhaps: then it stays so.
        return brought if is_fitted(brought) else IncumbentColumns(**brought.get_params(deep=False)).fit(*known)
    return brought.fit(*known).as_it_is(rows.X)


class BringsIncumbent(BaseEstimator):
    """Checks of the rows of an estimator whose pooled classifier may be brought by the user."""

    pooled: Any
    n_groups: Any
    classes_: NDArray[Any]
    _aside: tuple[str, ...] | None

    @property
    def brings_incumbent(self) -> bool:
        """Whether `pooled` is a fitted model that takes rows as they come; `tabular_pipeline` asks."""
        # Our own take rows as groups do.
        ours = isinstance(self.pooled, str | Scorecard | StandardizedLogisticRegression | IncumbentColumns)
        return not ours and (isinstance(self.pooled, Incumbent) or is_fitted(self.pooled))

    def __sklearn_clone__(self) -> "BringsIncumbent":
        """Copy the parameters; a fitted pooled classifier stays the same object, as in scikit-learn's FrozenEstimator.

        `clone` would drop what it has learned, and cross-validation would silently judge another model.
        """
        copy: BringsIncumbent = super().__sklearn_clone__()
        keeps = hasattr(self.pooled, "predict") and is_fitted(self.pooled)
        return copy.set_params(pooled=self.pooled) if keeps else copy

    def _check_training_rows(self, X: Table, y: ArrayLike, known: dict[str, Any]) -> LabelledRows:
        brought = find_incumbent(self.pooled)
        self._aside = None if brought is None else names_aside(brought.only)
        # A model in production may know classes that these rows do not have; its order of classes is kept.
        classes = brought.known_classes if isinstance(brought, Incumbent) else getattr(brought, "classes_", None)
        rows = LabelledRows.check(self, X, y, classes=classes, aside=self._aside, **known)
        self.classes_ = rows.classes
        if self.n_groups != "auto" and len(rows) < self.n_groups:
            raise InputError(f"{len(rows)} rows cannot make {self.n_groups} groups: lower n_groups or bring more rows.")
        return rows

    def _check_more(self, X: Table, y: ArrayLike, sensitive_features: Table | None, **known: Any) -> LabelledRows:
        return LabelledRows.check_more(self, X, y, aside=self._aside, **known)
