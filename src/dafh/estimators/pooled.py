"""The pooled classifier of a DAFHClassifier: the user's own or one fitted here, and nested logits to learn from.

One that the user brings is found, checked against the rows of a fit, and made ready to be asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dafh.classifiers import (
    Classifier,
    class_probabilities,
    decide,
    final_classifier,
    find_cutoff,
    fit_group,
    is_fitted,
    logits,
    seeded,
    to_probabilities,
)
from dafh.columns.bins import Binning
from dafh.columns.encoder import TableEncoder
from dafh.exceptions import InputError
from dafh.frames import take_rows, to_pandas
from dafh.groups.corrections import Kind
from dafh.incumbents import Incumbent, IncumbentColumns
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


def stays_fitted(pooled: Any) -> bool:
    """Whether a pooled classifier is a fitted model of the user's, which is used as it is."""
    return callable(getattr(pooled, "predict", None)) and is_fitted(pooled)


FITTED_MODEL = Allowed("a fitted model that has 'predict'", stays_fitted)
"""What a pooled classifier may be beside a name and a classifier with probabilities."""


def find_incumbent(pooled: Any) -> Incumbent | IncumbentColumns | None:
    """Return the user's model, still to be matched with rows; None for a classifier that is fitted here."""
    if isinstance(pooled, IncumbentColumns):
        return pooled
    if not isinstance(pooled, Incumbent):
        if not stays_fitted(pooled):
            return None
        pooled = Incumbent(pooled)
    pooled.check()
    return pooled


def takes_raw_rows(pooled: Any) -> bool:
    """Whether it takes rows as they come; our own, and columns, take rows as groups do."""
    ours = isinstance(pooled, Scorecard | StandardizedLogisticRegression | IncumbentColumns)
    return not ours and (isinstance(pooled, Incumbent) or stays_fitted(pooled))


def resolve_pooled(pooled: Any, threshold: float | None, rows: LabelledRows) -> Any:
    """Return the classifier that a name stands for, with a cut-off, or what was brought, matched with the rows.

    A classifier that the user passes decides as it does: its own `predict` is what groups are compared with.
    """
    if isinstance(pooled, str):
        kind: Any = Scorecard if pooled == "scorecard" else StandardizedLogisticRegression
        return kind(threshold=0.5 if threshold is None else threshold)
    incumbent = find_incumbent(pooled)
    if incumbent is None:
        return pooled
    if isinstance(incumbent, IncumbentColumns) and is_fitted(incumbent):
        return incumbent  # Fitted by the user, on other rows perhaps: then it stays so.
    incumbent = clone(incumbent).fit(rows.X, rows.y, rows.fit_weight)
    return incumbent.as_it_is(rows.X) if isinstance(incumbent, Incumbent) else incumbent


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
        encoding = TableEncoding.learn(rows.X, rows.weight, scorecard.binning_, numbers=numbers)
        return PooledFit(scorecard, encoding, "points", sums)
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
    return fit_group(unfitted, X, rows.y, rows.fit_weight)


def _is_linear(model: Any) -> bool:
    """Whether a classifier is our logistic regression, alone or behind an encoder of tables."""
    if isinstance(model, Pipeline):
        return len(model.steps) == 2 and isinstance(model[0], TableEncoder) and _is_linear(model[1])
    return isinstance(model, StandardizedLogisticRegression)


def pooled_logits(model: Any, encoded: EncodedRows, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Logits of the pooled classifier, (n, m); tables are encoded once where it sees them as groups do."""
    last, scores = _shared_scores(model, encoded)
    if scores is not None and np.array_equal(last.classes_, classes):
        return scores if isinstance(last, Scorecard) else logits(to_probabilities(scores))
    return logits(class_probabilities(*_last_step(model, encoded), classes))


def pooled_labels(model: Any, encoded: EncodedRows) -> NDArray[Any]:
    """Labels of the pooled classifier as its own `predict` gives them; tables are encoded once, as for its logits."""
    last, scores = _shared_scores(model, encoded)
    if scores is not None:
        return last.classes_[decide(scores, last.threshold_)]
    last, rows = _last_step(model, encoded)
    return last.predict(rows)


def _shared_scores(model: Any, encoded: EncodedRows) -> tuple[Any, NDArray[np.float64] | None]:
    """Our own classifier and its scores, (n, m), where it works on the bins or numbers that groups work on."""
    if isinstance(model, Scorecard) and model.binning_ is encoded.encoding.binning:
        return model, sum_points(encoded.codes, model.points_, model.intercept_)
    last = final_classifier(model)
    if _shares_encoder(model, encoded) and isinstance(last, StandardizedLogisticRegression):
        return last, encoded.numbers @ last.coef_.T + last.intercept_
    return last, None


def _shares_encoder(model: Any, encoded: EncodedRows) -> bool:
    encoder = encoded.encoding.encoder
    return encoder is not None and isinstance(model, Pipeline) and model.steps[0][1] is encoder


def _last_step(model: Any, encoded: EncodedRows) -> tuple[Any, Any]:
    """Return a classifier and rows as it takes them, without the encoder where groups have the same."""
    if _shares_encoder(model, encoded):
        names = model.steps[0][1].get_feature_names_out()
        return model.steps[-1][1], pd.DataFrame(encoded.numbers, columns=names, copy=False)
    if isinstance(model, StandardizedLogisticRegression):
        _ = encoded.numbers  # Refuses gaps, which training rows did not have, in a sentence of ours.
    return model, encoded.X


def observe_decisions(
    unfitted: Any,
    fitted: PooledFit,
    rows: LabelledRows,
    encoded: EncodedRows,
    base: NDArray[np.float64],
    threshold: float | None,
) -> tuple[float, NDArray[np.intp]]:
    """Cut-off of own classifiers, and the label that the pooled one gives each row where it is judged.

    Own classifiers decide at the cut-off of the pooled one unless another is given: otherwise a group whose classifier
    changes nothing else would be flagged more or less often than before, without a word.
    """
    model, classes, cutoff = fitted.model, rows.classes, 0.5
    last = final_classifier(model)
    ours, brought = isinstance(last, Scorecard | StandardizedLogisticRegression), is_fitted(unfitted)
    label = np.zeros(0, np.intp) if ours and not brought else np.searchsorted(classes, model.predict(rows.X))
    if len(classes) == 2 and ours:
        cutoff = float(last.threshold_)
    elif len(classes) == 2:
        cutoff = _observed_cutoff(label == 1, expit(pooled_logits(model, encoded, classes)[:, 0]))
    # A model in production is the same in all folds. One that is fitted anew in each decides there by its cut-off.
    return cutoff if threshold is None else threshold, label if brought else decide(base, cutoff)


def _observed_cutoff(flagged: NDArray[np.bool_], probability: NDArray[np.float64]) -> float:
    """Cut-off of a classifier, from what it predicts; one half where its probabilities do not explain its decisions.

    Decisions against the score (by people, say, or by a score that has turned) have no cut-off. The one that explains
    most of them would then flag everybody or nobody, and own classifiers with it.
    """
    cutoff = find_cutoff(flagged, probability)
    # No better than flagging everybody or nobody: then the probabilities say nothing about the decisions.
    n_wrong = int(((probability > cutoff) != flagged).sum())
    return 0.5 if n_wrong and n_wrong >= min(flagged.sum(), (~flagged).sum()) else cutoff


def out_of_fold_pooled_logits(
    unfitted: Any, fitted: PooledFit, rows: LabelledRows, encoded: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Logits of the pooled classifier for every row, by a fit without the row's fold, (n, m).

    A classifier that was brought fitted is what it is, in every fold; where there is one fold only, nothing is left to
    fit on, and the fit on all rows serves.
    """
    # A model in production has not seen these rows, as far as anybody knows: nothing to leave out.
    if is_fitted(unfitted) or not fold.any():
        return pooled_logits(fitted.model, encoded, rows.classes)
    if isinstance(unfitted, Scorecard):
        assert fitted.sums is not None
        # With the strengths of all rows, as for logistic regression. What they tell of a label makes the pooled
        # classifier look a little better, and own ones harder to earn; strengths for each fold doubled the time.
        return out_of_fold_logits(fitted.sums.rows, fitted.sums.solution, fold)[0]
    if fitted.kind == "columns":
        return _out_of_fold_regression(fitted.model, rows, encoded, fold)
    return _out_of_fold_fits(unfitted, fitted, rows, encoded, fold)


def _out_of_fold_regression(
    model: Any, rows: LabelledRows, encoded: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Logistic regression on standardised columns, with the strength that was chosen for all rows."""
    linear = model.steps[-1][1] if isinstance(model, Pipeline) else model
    # Means and scales of all rows: they know no label, and equal columns let all folds share one design.
    standard = Standardization.of(encoded.numbers, rows.weight)
    offset = np.zeros((len(rows), len(linear.coef_)))
    regression = Regression(DenseDesign(standard.of_rows(encoded.numbers)), rows.label, rows.weight, offset)
    start = standard.stacked(linear.intercept_, linear.coef_)
    # scikit-learn's C is the inverse of the penalty on the sum over rows.
    solution = Solution(start, np.full(len(start), 1.0 / float(linear.C_)))
    # To the last digits: the start knows the labels of all rows, and the end must not.
    return out_of_fold_logits(regression, solution, fold, tolerance=1e-11)[0]


def _out_of_fold_fits(
    unfitted: Any, fitted: PooledFit, rows: LabelledRows, encoded: EncodedRows, fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    model: Any = fitted.model
    is_encoded = isinstance(model, Pipeline) and not isinstance(unfitted, Pipeline)
    X = encoded.numbers if is_encoded else rows.X
    probabilities = np.empty((len(rows), len(rows.classes)))
    for number in range(int(fold.max()) + 1):
        held_out, training = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        weight = None if rows.fit_weight is None else rows.weight[training]
        # A fresh copy of the fitted one, which has its seeds; a fold may lack a rare class, and leave one only.
        copy = fit_group(model.steps[-1][1] if is_encoded else model, take_rows(X, training), rows.y[training], weight)
        probabilities[held_out] = class_probabilities(copy, take_rows(X, held_out), rows.classes)
    return logits(probabilities)
