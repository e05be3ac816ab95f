"""Monitor: takes batches of rows, and says whether any group is worse off than with the pooled classifier."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dafh.checks.rows import as_array, check_known_labels
from dafh.classifiers.pipelines import final_classifier, split_pipeline
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.frames import Table, to_pandas
from dafh.tables.hashes import row_hashes, value_hashes
from dafh.text import render_html, render_text, shown
from dafh.watch.declared import DeclaredParts, Settings, losses_to_watch
from dafh.watch.inputs import Reference
from dafh.watch.ledger import Ledger, PlainState, decided_rows
from dafh.watch.notices import Notice, ServiceChange, Update, display
from dafh.watch.service import serve_as_shown


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
        Training rows, to compare the input with. Without them, the first rows of `update` take their place.
    largest_weight : float, optional
        Largest weight that any row will ever have; needed for `sample_weight`.
    run_length : float, default=100_000
        Warnings of a change come by accident once in so many labelled rows, on average, at most.
    drift_margin : float, default=0
        Change of a share that is tolerated: 0.01 is one percentage point.

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
        largest_weight: float | None = None,
        run_length: float = 100_000.0,
        drift_margin: float = 0.0,
    ) -> None:
        self.model = model if hasattr(model, "predict") else getattr(model, "model", model)
        self._final = final_classifier(self.model)
        if not isinstance(self._final, DAFHClassifier | DecoupledClassifier):
            raise InputError(
                "A monitor watches a DAFHClassifier or a DecoupledClassifier, or a pipeline that ends in one, not a "
                f"{type(self._final).__name__}."
            )
        check_is_fitted(self._final)
        asked = losses_to_watch(self._final, losses, costs)
        names, known = tuple(loss.name for loss in asked), next((loss.costs for loss in asked if loss.costs), None)
        self.settings = Settings(level, names, known, largest_weight, run_length, drift_margin)
        k = int(self._final.n_groups_)
        serves = np.asarray(self._final.serves_)
        # The same for good: evidence is about one classifier.
        self.watched: NDArray[np.intp] = np.where(serves < k, serves, np.arange(k)).astype(np.intp)
        self._ledger: Ledger | None = None
        self._reference = self._look_at(reference, sensitive_features)
        if sensitive_features is not None:
            self._ledger = self._begin(DeclaredParts.of(sensitive_features, len(to_pandas(sensitive_features))))

    def _look_at(self, reference: "Table | Reference | None", sensitive_features: Table | None) -> Reference | None:
        """Count what is to be compared later in the reference rows."""
        if reference is None or isinstance(reference, Reference):
            return reference
        final, X = split_pipeline(self.model, reference)
        group = final.decide_twice(X, self.watched, sensitive_features).group
        return Reference.of(reference, group, int(final.n_groups_), divides_all=self._divides_all)

    @property
    def _divides_all(self) -> bool:
        """Whether every row belongs to a group: a partition by attributes may meet values it has never seen."""
        return isinstance(self._final, DAFHClassifier)

    def _begin(self, parts: DeclaredParts) -> Ledger:
        """Begin to count, now that it is known which questions there are."""
        serving = np.asarray(self._final.serves_) < self._final.n_groups_
        n_classes = len(self._final.classes_)
        return Ledger(self.settings, parts, serving, n_classes, self._reference, divides_all=self._divides_all)

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
        final, given = split_pipeline(self.model, X)
        decided = final.decide_twice(given, self.watched, sensitive_features)
        table, n = to_pandas(X), len(decided.group)
        codes, labelled = _read_labels(y, final.classes_, n)
        weight = self.settings.weights(sample_weight, n)
        self._check_persons(persons)
        ledger = self._ledger
        parts = DeclaredParts.of(sensitive_features, n) if ledger is None else ledger.parts
        coded = parts.of_rows(sensitive_features, n)
        rows = np.zeros(n, decided_rows(coded.shape[1]))
        if ids is not None:
            rows["id"] = _hashed(ids, n, "ids")
        elif not labelled.all() or self.n_waiting:  # Hashes take as long as predictions.
            rows["id"] = row_hashes(table)
        if persons is not None:
            rows["person"] = _hashed(persons, n, "persons")
        # All was checked: from here on the books change.
        if ledger is None:
            ledger = self._ledger = self._begin(parts)
            coded = parts.without_cuts(coded)
        ledger.has_persons = persons is not None
        rows["group"], rows["own"], rows["pooled"] = decided.group, decided.own, decided.pooled
        rows["parts"], rows["weight"] = coded, weight
        return ledger.take(table, rows, codes, labelled, name, by_id=ids is not None)

    def label(self, ids: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Update:
        """Give labels of earlier rows, by the `ids` they came with.

        Labels of rows that are not waiting are left out, and counted as given before.
        """
        if self._ledger is None:
            raise InputError("No rows are waiting for labels: call update first.")
        _check_name(name)
        codes, known = _read_labels(y, self._final.classes_, as_array(y, "y").size)
        return self._ledger.label(_hashed(ids, len(codes), "ids"), codes, known, name)

    def _check_persons(self, persons: ArrayLike | None) -> None:
        before = None if self._ledger is None else self._ledger.has_persons
        if before is not None and before != (persons is not None):
            raise InputError("Give persons in every update or in none: otherwise rows of a person would count twice.")

    # ---- results ----

    @property
    def notices(self) -> list[Notice]:
        """All alarms, warnings, proofs and signs of drift so far."""
        return [] if self._ledger is None else list(self._ledger.notices)

    @property
    def alarms(self) -> list[Notice]:
        """All alarms so far."""
        return [notice for notice in self.notices if notice.kind == "harm"]

    @property
    def service(self) -> list[ServiceChange]:
        """Every change of who serves whom that `apply` has made."""
        return [] if self._ledger is None else list(self._ledger.service)

    @property
    def attributes(self) -> list[str] | None:
        """Names of the attributes that declare subgroups; None before they are settled."""
        return None if self._ledger is None else [one.name for one in self._ledger.parts.attributes]

    @property
    def n_rows(self) -> int:
        """Labelled rows that have counted as evidence."""
        return 0 if self._ledger is None else self._ledger.evidence.n_rows

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their labels."""
        return 0 if self._ledger is None else len(self._ledger.pending)

    def table(self) -> pd.DataFrame:
        """One row per group, part and loss.

        Columns: rows, own_worse and own_better (discordant rows), own_loss, pooled_loss, gain with the limits low and
        high, which hold for all questions and at all times together; harm_evidence and what it needs for an alarm;
        benefit_evidence; change_evidence, which is compared with the run length; in_service; alarm_row (0 for none).
        """
        if self._ledger is None:
            raise InputError("Nothing is known before the first update.")
        return self._ledger.evidence.table()

    def drift(self) -> pd.DataFrame:
        """One row per share that is compared with the reference: share, reference_share, evidence, drift_row."""
        if self._ledger is None or self._ledger.drift is None:
            raise InputError("There is nothing to compare with before the first update.")
        return self._ledger.drift.table()

    def apply(self, *, on_warnings: bool = False) -> list[ServiceChange]:
        """Change who serves whom, as far as it was shown; the model is changed in place, as by `recalibrate`.

        A classifier is taken out of service after an alarm about its group or a declared subgroup, and the pooled one
        serves. A classifier is put into service only where it is shown to be better than the pooled one, in every loss
        and every declared subgroup with rows. Evidence on a group starts anew when its classifier changes.

        Parameters
        ----------
        on_warnings : bool, default=False
            Take classifiers out of service after a warning, too: sooner, and more often by accident.

        Returns
        -------
        list of ServiceChange
            Also kept in `service`. Empty if nothing was to be changed.
        """
        return [] if self._ledger is None else serve_as_shown(self._final, self.watched, self._ledger, on_warnings)

    # ---- as plain values and arrays ----

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is known but for notices and changes of service, as plain values and as arrays."""
        if self._ledger is None:
            raise InputError("Nothing is known before the first update.")
        return self._ledger.to_state(self.watched)

    @classmethod
    def from_state(
        cls,
        model: Any,
        values: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        notices: Sequence[Notice] = (),
        service: Sequence[ServiceChange] = (),
    ) -> "Monitor":
        """Go on with what `to_state` gave, for the same model."""
        monitor, state = cls(model), msgspec.convert(values, PlainState)
        k, n_classes = int(monitor._final.n_groups_), len(monitor._final.classes_)
        if len(state.watched) != k or state.n_classes != n_classes:
            raise InputError("The state belongs to a model with other groups or labels.")
        monitor.settings, monitor.watched = state.settings, np.array(state.watched, np.intp)
        monitor._ledger = Ledger.from_state(state, arrays, list(notices), list(service))
        return monitor

    def __str__(self) -> str:
        """Render for a terminal."""
        if self._ledger is None:
            return "Monitor: no rows yet."
        shown = display(self.table(), self.settings.level)
        return f"{self._headline()}\n\n{render_text(shown, left=('subgroup', 'loss'))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self._ledger is None:
            return f"<p>{self}</p>"
        return render_html(self._headline(), display(self.table(), self.settings.level))

    def _headline(self) -> str:
        assert self._ledger is not None
        n, batches = len(self.alarms), self._ledger.n_batches
        words = "no alarm" if not n else f"{n} alarm{'s' * (n > 1)}"
        return f"Monitor: {self.n_rows:,} labelled rows in {batches} batch{'es' * (batches != 1)}, {words}."


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
    """Labels as positions of classes, and which are known."""
    if y is None:
        return np.zeros(n_rows, np.intp), np.zeros(n_rows, bool)
    values = as_array(y, "y")
    if values.shape != (n_rows,):
        raise InputError(f"y has the shape {values.shape}, X has {n_rows} rows: give one label for each.")
    try:
        known = ~pd.isna(values)
        # As objects: pandas has no index of some types, and one of texts refuses halves of letters.
        codes = pd.Index(classes, dtype=object).get_indexer(pd.Index(values.astype(object), dtype=object))
    except TypeError as error:
        raise InputError("y holds lists or records: a label is text or a number.") from error
    if (codes[known] < 0).any():
        check_known_labels(values[known], classes, int(known.sum()))
    return codes.astype(np.intp), known
