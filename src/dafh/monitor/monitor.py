"""Monitor: takes batches of rows, and says whether any group is worse off than with the pooled classifier."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import joblib
import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import final_classifier, split_pipeline
from dafh.columns.hashes import row_hashes, value_hashes
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.compared import PairedDecisions
from dafh.exceptions import DAFHError, InputError
from dafh.frames import Table, to_pandas
from dafh.monitor.inputs import Reference
from dafh.monitor.ledger import UNKNOWN, Ledger, PlainState, decided_rows
from dafh.monitor.notices import ALARMS, Notice, ServiceChange, Update, display
from dafh.monitor.service import serve_as_shown
from dafh.monitor.settings import DeclaredSubgroups, MonitorSettings, losses_to_watch
from dafh.persistence import write_state
from dafh.text import render_text, shown
from dafh.validation import as_array, check_known_labels


class Monitor:
    """Watch a fitted model while it is in use: valid at any time, however often it is asked.

    In each group, the classifier that serves it (its own, where the pooled one does) is compared with the pooled
    classifier on labelled rows as they come. If no group is worse off than with the pooled classifier, the probability
    that any alarm is ever raised is at most `level`, for all groups, declared subgroups and losses together.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, a pipeline that ends in one, or an opened model file
        Not changed but by `apply`.
    level : float, default=0.05
        Accepted probability of any false alarm, ever; of any false proof; of any limit that does not hold; and of any
        false sign of drift.
    losses : sequence of {"error", "fpr", "fnr", "cost"}, optional
        What must not get worse; by default what the model's guard was asked to protect.
    costs : mapping, optional
        For the loss "cost", such as ``{"fp": 1, "fn": 5}``; by default those of the model.
    sensitive_features : data frame, optional
        Rows whose values declare the subgroups to watch in each group, such as those of the training rows. Without it,
        the first rows of `update` that have any declare them. Values that come up later are not watched.
    reference : data frame, array or Reference, optional
        Rows to compare the input with, such as training rows. Without them, the first rows of `update` take their
        place.
    reference_labels : array, optional
        Labels of the reference rows, if the model has not seen these rows: the error of later rows is compared with
        theirs. Without them it is that of the rows that the guard had, or else that of the first batch.
    largest_weight : float, optional
        Largest weight that any row will ever have; needed for `sample_weight`.
    drift_margin : float, default=0
        Change of a share that is tolerated: 0.01 is one percentage point.
    level_margin : float, default=0.02
        Rise of the error of the model in use, and distance of the mean of its probabilities from the share of positive
        labels, that is tolerated.
    min_labelled : float, default=0.95
        A batch counts when such a share of its rows has labels. 0 lets each label count as it comes, which is right if
        it comes no sooner for one class than for another.
    by_batch : bool, default=False
        Count each batch once, by who is ahead in it: for rows that are not independent within a batch, because of a
        shock that they share. "Worse off" then means in more batches than not, and limits are not stated.

    Examples
    --------
    >>> from dafh import DecoupledClassifier, Monitor
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(3000, random_state=0)
    >>> model = DecoupledClassifier(random_state=0).fit(data.X[:1000], data.y[:1000])
    >>> monitor = Monitor(model, reference=data.X[:1000])
    >>> update = monitor.update(data.X[1000:2000], data.y[1000:2000])
    >>> update = monitor.update(data.X[2000:], data.y[2000:])
    >>> update.n_labelled, len(monitor.alarms), monitor.table()["rows"].sum()
    (1000, 0, np.int64(2000))
    """

    def __init__(
        self,
        model: Any,
        *,
        level: float = 0.05,
        losses: Sequence[str] | str | None = None,
        costs: Mapping[str, float] | None = None,
        sensitive_features: Table | None = None,
        reference: "Table | Reference | None" = None,
        reference_labels: ArrayLike | None = None,
        largest_weight: float | None = None,
        drift_margin: float = 0.0,
        level_margin: float = 0.02,
        min_labelled: float = 0.95,
        by_batch: bool = False,
    ) -> None:
        self.model = model if hasattr(model, "predict") else getattr(model, "model", model)
        self._final = final_classifier(self.model)
        if not isinstance(self._final, DAFHClassifier | DecoupledClassifier):
            raise InputError(
                "A monitor watches a DAFHClassifier or a DecoupledClassifier, or a pipeline that ends in one, not a "
                f"{type(self._final).__name__}."
            )
        check_is_fitted(self._final)
        watched_losses = losses_to_watch(self._final, losses, costs)
        names = tuple(loss.name for loss in watched_losses)
        loss_costs = next((loss.costs for loss in watched_losses if loss.costs), None)
        margins = drift_margin, level_margin, min_labelled, bool(by_batch)
        self.settings = MonitorSettings(level, names, loss_costs, largest_weight, *margins)
        self._note_model()
        self._reference = self._count_reference(reference, reference_labels, sensitive_features)
        n_declaring = 0 if sensitive_features is None else len(to_pandas(sensitive_features))
        self._ledger = self._empty_ledger(DeclaredSubgroups.of(sensitive_features, n_declaring))

    def _note_model(self) -> None:
        """Note which classifiers are watched, and in which model: evidence is about these."""
        k, serves = int(self._final.n_groups_), np.asarray(self._final.serves_)
        # Where the pooled classifier serves, the group's own is watched: it may be shown to be better.
        self.watched: NDArray[np.intp] = np.where(serves < k, serves, np.arange(k)).astype(np.intp)
        self._fingerprint = _fingerprint(self._final)

    def _count_reference(
        self, reference: "Table | Reference | None", labels: ArrayLike | None, sensitive_features: Table | None
    ) -> Reference | None:
        """Count what is to be compared later in the reference rows."""
        if reference is None or isinstance(reference, Reference):
            if labels is not None:
                raise InputError("reference_labels belong to the rows of reference: give both.")
            return reference
        decided, _ = self._decide(reference, sensitive_features)
        k = int(self._final.n_groups_)
        counted = Reference.of(reference, decided.group, k, divides_all=self._divides_all)
        if labels is None:
            return counted
        codes, labelled = _read_labels(labels, self._final.classes_, len(decided.group))
        errors = labelled & (self._used(decided) != codes)
        # All rows first, and then each group, if there are several: as `Levels` takes them.
        members = [np.full(len(codes), True), *(decided.group == g for g in range(k if k > 1 else 0))]
        counts = ([int((rows & of_set).sum()) for of_set in members] for rows in (labelled, errors))
        n_labelled, n_errors = map(tuple, counts)
        return replace(counted, judged=n_labelled, errors=n_errors)

    def _decide(
        self, X: Table, sensitive_features: Table | None, *, scored: bool = False
    ) -> tuple[PairedDecisions, NDArray[np.float64]]:
        """What both classifiers decide, and the model's probability of the positive label if there are two classes."""
        final, rows = split_pipeline(self.model, X)
        decided = final.decide_twice(rows, self.watched, sensitive_features)
        probability = np.full(len(decided.group), np.nan)
        if scored and len(final.classes_) == 2 and hasattr(final, "predict_proba"):
            attributes = {} if isinstance(final, DAFHClassifier) else {"sensitive_features": sensitive_features}
            # Models that bring decisions alone have no probabilities, and say so.
            with suppress(DAFHError):
                probability = final.predict_proba(rows, **attributes)[:, 1]
        return decided, probability

    def _used(self, decided: PairedDecisions) -> NDArray[np.intp]:
        """What the model in use decides."""
        # Rows of no group are numbered after the groups; the pooled classifier serves them.
        serving = np.append(np.asarray(self._final.serves_) < self._final.n_groups_, False)
        return np.where(serving[decided.group], decided.own, decided.pooled)

    @property
    def _divides_all(self) -> bool:
        """Whether every row belongs to a group: a partition by attributes may meet values it has never seen."""
        return isinstance(self._final, DAFHClassifier)

    def _empty_ledger(self, subgroups: DeclaredSubgroups) -> Ledger:
        """Make books without rows."""
        return Ledger(
            self.settings,
            subgroups,
            np.asarray(self._final.serves_) < self._final.n_groups_,
            len(self._final.classes_),
            self._reference,
            divides_all=self._divides_all,
            reference_errors=_reference_errors(self._reference, self._final),
        )

    def _check_model(self) -> None:
        """Begin anew if the model is not the one that evidence is about."""
        if _fingerprint(self._final) == self._fingerprint:
            return
        self._note_model()
        if self._reference is not None:  # What it says about groups and errors is about the model before.
            self._reference = replace(self._reference, groups=(), no_group=None, judged=(), errors=())
        empty = self._empty_ledger(self._ledger.subgroups)
        self._ledger = self._ledger.start_anew(empty) if self._ledger.n_batches else empty

    # ---- rows ----

    def update(
        self,
        X: Table,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        persons: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        name: str | None = None,
    ) -> Update:
        """Take a batch of rows: any number, any number of times.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        y : array of shape (n,), optional
            Labels; None or a missing value where the label is not known yet. Such rows count for drift, and wait for
            their labels: give them again with the label, or pass it to `label`.
        sensitive_features : data frame with n rows, optional
            Attributes that declare subgroups, and those that a model's groups depend on.
        sample_weight : array of shape (n,), optional
            At most `largest_weight`.
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to. Of the rows of a person, the first one counts.
        ids : array of shape (n,), optional
            Identifier of each row. A row that was given before with its label is left out. Without them, rows that
            wait for labels are told by their values.
        name : str, optional
            What the batch is called, such as "March".

        Returns
        -------
        Update
            What was counted, and what is new.
        """
        _check_name(name)
        self._check_model()
        ledger = self._ledger
        decided, probability = self._decide(X, sensitive_features, scored=True)
        table, n = to_pandas(X), len(decided.group)
        label, labelled = _read_labels(y, self._final.classes_, n)
        weight = self.settings.relative_weights(sample_weight, n)
        # The first rows declare subgroups where the constructor had none: earlier than any evidence about them.
        declares = not ledger.n_batches and not ledger.subgroups.attributes
        subgroups = DeclaredSubgroups.of(sensitive_features, n) if declares else ledger.subgroups
        codes = subgroups.codes(sensitive_features, n)
        rows = np.zeros(n, decided_rows(codes.shape[1]))
        # Hashes, so that the state holds neither identifiers nor values.
        rows["id"] = row_hashes(table) if ids is None else _hashed(ids, n, "ids")
        if persons is not None:
            rows["person"] = _hashed(persons, n, "persons")
        for argument, values, was_given in (("persons", persons, ledger.has_persons), ("ids", ids, ledger.has_ids)):
            if was_given is not None and was_given != (values is not None):
                raise InputError(f"Give {argument} in every update or in none: otherwise rows would count twice.")
        # All was checked: from here on the books change.
        if declares:
            ledger = self._ledger = self._empty_ledger(subgroups)
            codes = subgroups.without_quarters(codes)
        ledger.has_persons, ledger.has_ids = persons is not None, ids is not None
        rows["group"], rows["own"], rows["pooled"] = decided
        rows["used"], rows["probability"] = self._used(decided), probability
        rows["subgroups"], rows["weight"], rows["label"] = codes, weight, np.where(labelled, label, UNKNOWN)
        return ledger.take(table, rows, name)

    def label(self, ids: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Update:
        """Give labels of earlier rows, by the `ids` they came with.

        Labels of rows that are not waiting are left out, and counted as given before.
        """
        _check_name(name)
        if not self._ledger.n_batches:
            raise InputError("No rows are waiting for labels: call update first.")
        codes, labelled = _read_labels(y, self._final.classes_, as_array(y, "y").size)
        return self._ledger.label(_hashed(ids, len(codes), "ids"), np.where(labelled, codes, UNKNOWN), name)

    # ---- results ----

    @property
    def notices(self) -> list[Notice]:
        """All alarms, proofs, signs of drift and other notices so far."""
        return list(self._ledger.notices)

    @property
    def alarms(self) -> list[Notice]:
        """All alarms so far."""
        return [notice for notice in self.notices if notice.kind in ALARMS]

    @property
    def service(self) -> list[ServiceChange]:
        """Every change of who serves whom that `apply` has made."""
        return list(self._ledger.service)

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes that declare subgroups."""
        return [column.name for column in self._ledger.subgroups.attributes]

    @property
    def n_rows(self) -> int:
        """Labelled rows that have counted as evidence."""
        return self._ledger.evidence.n_rows

    def table(self) -> pd.DataFrame:
        """One row per group, part and loss.

        Columns: rows, own_worse and own_better (discordant rows), own_loss, pooled_loss, gain with the limits low and
        high, which hold for all questions and at all times together; harm_evidence and what it needs for an alarm;
        benefit_evidence; in_service; alarm_row (0 for none).
        """
        return self._ledger.evidence.table()

    def levels(self) -> pd.DataFrame:
        """One row for all rows, and one for each group: how the model in use does by itself.

        Columns: group (None for all rows), rows, error with the limits low and high, which hold for all and at all
        times together; reference_error and the largest error tolerated; predicted and observed share of positive
        labels; the evidence of each kind of change, and alarm_row (0 for none).
        """
        return self._ledger.levels.table()

    def drift(self) -> pd.DataFrame:
        """One row per share that is compared with the reference: share, reference_share, evidence, drift_row."""
        if self._ledger.drift is None:
            raise InputError("There is nothing to compare with before the first update.")
        return self._ledger.drift.table()

    def apply(self) -> list[ServiceChange]:
        """Change who serves whom, as far as it was shown; the model is changed in place, as by `recalibrate`.

        A classifier is taken out of service after an alarm about its group or a declared subgroup, and the pooled one
        serves. A classifier is put into service only where it is shown to be better than the pooled one, in every loss
        and every declared subgroup with rows. Evidence on a group starts anew when its classifier changes.

        Returns
        -------
        list of ServiceChange
            Also kept in `service`. Empty if nothing was to be changed.
        """
        self._check_model()
        changes = serve_as_shown(self._final, self.watched, self._ledger)
        if changes:
            self._fingerprint = _fingerprint(self._final)
        return changes

    # ---- as plain values and arrays ----

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known, as plain values and as arrays."""
        return self._ledger.to_state(self.watched)

    @classmethod
    def from_state(cls, model: Any, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> "Monitor":
        """Go on with what `to_state` gave, for the same model."""
        monitor, state = cls(model), msgspec.convert(values, PlainState)
        k, n_classes = int(monitor._final.n_groups_), len(monitor._final.classes_)
        if len(state.watched) != k or arrays["ledger.n_classes"] != n_classes:
            raise InputError("The state belongs to a model with other groups or labels.")
        monitor.settings, monitor.watched = state.settings, np.array(state.watched, np.intp)
        monitor._reference = state.reference
        monitor._ledger = monitor._empty_ledger(DeclaredSubgroups(state.attributes))
        monitor._ledger.restore(state, arrays)
        return monitor

    def __str__(self) -> str:
        """Render for a terminal."""
        n_alarms, n_batches = len(self.alarms), self._ledger.n_batches
        if not n_batches:
            return "Monitor: no rows yet."
        alarms = "no alarm" if not n_alarms else f"{n_alarms} alarm{'s' * (n_alarms > 1)}"
        headline = f"Monitor: {self.n_rows:,} labelled rows in {n_batches} batch{'es' * (n_batches != 1)}, {alarms}."
        questions = render_text(display(self.table(), self.settings.level), left=("subgroup", "loss"))
        levels = render_text(self._ledger.levels.display(), left=("model in use",))
        return f"{headline}\n\n{questions}\n\n{levels}"

    __repr__ = __str__


def _fingerprint(final: Any) -> str:
    """Tell a fitted model, and who serves whom in it, from all others, by what a model file would hold."""
    try:
        content = b"".join(write_state(final).values())
    except ValueError:  # A part of another library that is not written unasked.
        report = None if final.guard_report_ is None else final.guard_report_.table
        fitted = [final.pooled_, getattr(final, "estimators_", []), final.serves_, report]
        content = str(joblib.hash(fitted)).encode()
    return hashlib.sha256(content).hexdigest()


def _reference_errors(reference: Reference | None, final: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Reference rows and errors of the model in use, of all rows and of each group; zeros where they are unknown."""
    report, k = final.guard_report_, int(final.n_groups_)
    if reference is not None and reference.judged:
        return np.array(reference.judged, np.int64), np.array(reference.errors, np.int64)
    unknown = np.zeros(1 + k if k > 1 else 1, np.int64)
    if report is None or report.losses[0] != "error" or not report.n_rows:
        return unknown, unknown.copy()
    if ((report.serves < k) & (report.serves != np.arange(k))).any():
        return unknown, unknown.copy()  # The report has no loss of a group that another group's classifier serves.
    # The report has losses as shares; errors are whole numbers unless rows were weighted.
    rows = report.table["rows"].to_numpy(np.int64)
    loss = np.where(report.serves == k, report.table["pooled_loss"], report.table["own_loss"])
    errors = np.round(np.nan_to_num(loss) * rows).astype(np.int64)
    if k == 1:
        return rows, errors
    return np.append(rows.sum(), rows), np.append(errors.sum(), errors)


def _check_name(name: object) -> None:
    if name is not None and not isinstance(name, str):
        raise InputError(f"name must be the name of a batch, as text, got {shown(name)}.")


def _hashed(values: ArrayLike, n_rows: int, name: str) -> NDArray[np.uint64]:
    """Identifiers as numbers: 7, 7.0 and "7" are the same one."""
    table = to_pandas(values)
    if table.shape[1] != 1:
        raise InputError(f"{name} has {table.shape[1]} columns: give one identifier for each row.")
    column = table.iloc[:, 0].reset_index(drop=True)
    if len(column) != n_rows:
        raise InputError(f"{name} has {len(column)} entries, the data have {n_rows} rows: give one for each.")
    try:
        if column.isna().any():
            raise InputError(f"{name} has missing values: every row needs one.")
        return value_hashes(column)
    except TypeError as error:
        raise InputError(f"{name} holds lists or records: an identifier is text or a number.") from error


def _read_labels(y: ArrayLike | None, classes: NDArray[Any], n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Labels as positions of classes, and which rows have one."""
    if y is None:
        return np.zeros(n_rows, np.intp), np.zeros(n_rows, bool)
    values = as_array(y, "y")
    if values.shape != (n_rows,):
        raise InputError(f"y has the shape {values.shape}, X has {n_rows} rows: give one label for each.")
    try:
        labelled = ~pd.isna(values)
        # As objects: pandas has no index of some types, and one of texts refuses halves of letters.
        codes = pd.Index(classes, dtype=object).get_indexer(pd.Index(values.astype(object), dtype=object))
    except TypeError as error:
        raise InputError("y holds lists or records: a label is text or a number.") from error
    if (codes[labelled] < 0).any():
        check_known_labels(values[labelled], classes, int(labelled.sum()))
    return codes.astype(np.intp), labelled
