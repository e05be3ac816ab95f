"""From a table to a model file, with the rows that were held out beside it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh.checks.rows import check_persons, check_times
from dafh.classifiers.pipelines import split_pipeline
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard_report import GuardKind
from dafh.evaluation.losses import LossName
from dafh.exceptions import InputError
from dafh.explanation.cutoffs import cutoff_in_words
from dafh.explanation.worth import worth_of_groups
from dafh.groups.recipe import Recipe
from dafh.incumbents import IncumbentColumns
from dafh.rows.held_out import set_rows_aside
from dafh.tables.encoder import tabular_pipeline
from dafh.tables.labels import labelled_rows, read_labels, without_target
from dafh.tables.read import DataFile, with_columns
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.text import clipped, quoted
from dafh.watch.inputs import Reference
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.names import split_names
from dafh.workflows.set_aside import Saved, save_with_test_rows

_FEWEST_ROWS = 20


@dataclass(frozen=True)
class TrainingTable:
    """A table to train on, what its columns hold, and what was guessed about them."""

    name: str
    training: pd.DataFrame
    y: NDArray[Any]
    schema: TableSchema
    notes: tuple[str, ...]
    test_rows: pd.DataFrame
    """Rows set aside: not used in training, nor in anything learned from values."""
    test_sums: NDArray[np.uint64]
    """Sums of their hashes."""
    fingerprints: tuple[str, ...]
    features: pd.DataFrame
    """Features of the training rows, typed."""
    guard_options: dict[str, Any]
    """What `fit` is told about the training rows beside their features: attributes for the guard, persons, time."""

    @classmethod
    def read(
        cls,
        data: DataFile,
        target: str,
        *,
        drop: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        categories: Iterable[str] = (),
        protect: Iterable[str] = (),
        person: str | None = None,
        time: str | None = None,
        score: str | None = None,
        decision: str | None = None,
        weight: str | None = None,
        test_size: float = 0.0,
        seed: int = 0,
    ) -> "TrainingTable":
        """Read a file and guess what its columns hold.

        Parameters
        ----------
        data : DataFile
        target : str
        drop, sensitive, categories, protect : names of columns
            See `TableSchema.guess`; names may be joined by commas.
        person, time : str, optional
            Columns that say which rows belong to one person, and when a row was observed.
        score, decision, weight : str, optional
            Columns that the pooled classifier is read from, and one that says how much each row counts.
        test_size : float
            Share of the rows that are held out: the last ones where time counts, else drawn with `seed`. All rows of a
            person are on the same side.
        """
        data = replace(data, leave_out=split_names(drop, ()))
        table = _read_all(data)
        check_columns(table.columns, [target], "the target")
        said = {
            name: split_names(names, table.columns)
            for name, names in {
                "drop": drop,
                "sensitive": sensitive,
                "categories": categories,
                "protect": protect,
            }.items()
        }
        said["drop"] = [name for name in said["drop"] if name in table.columns or name not in data.left_out]
        known = labelled_rows(table, target)
        if len(known) < _FEWEST_ROWS:
            raise InputError(f"{data.name} has {len(known)} rows with a target: at least {_FEWEST_ROWS} are needed.")
        y = read_labels(known[target])
        # From all rows, held-out ones too: whether a column holds numbers must not depend on where the one word among
        # them was drawn. Kinds and columns to leave out are all that held-out rows decide; every statistic (medians,
        # categories, leakage) comes from training rows alone.
        decimal = data.layout.decimal if data.layout else "."
        roles = {"person": person, "time": time, "score": score, "decision": decision, "weight": weight}
        schema = TableSchema.guess(known, target, **said, **roles, decimal=decimal)  # type: ignore[arg-type]
        schema = replace(schema, left_out={**schema.left_out, **dict.fromkeys(data.left_out, "as you said")})
        guard_options = _about_rows(known, schema)
        features = schema.features_of(known)
        hashes = labelled_hashes(features, y)
        test = _held_out(y, target, guard_options, test_size, seed)
        training = known[~test]
        return cls(
            Path(data.name).name,
            training,
            y[~test],
            schema,
            (*data.notes, *without_target(table, known), *schema.notes, *schema.leakage_notes(training)),
            schema.stored(known)[test].reset_index(drop=True),
            hash_sums(hashes[test]),
            tuple(dict.fromkeys(fingerprint(hash_sums(part)) for part in (hashes, hashes[~test]))),
            features[~test],
            {name: values[~test] for name, values in guard_options.items()},
        )

    def headline(self) -> str:
        """Say how many rows there are, and the share of each label."""
        return class_shares_in_words(Counter(self.y.tolist()), self.schema.target)

    def fit(self, model: DAFHClassifier | DecoupledClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        options = {f"model__{name}": values for name, values in self.guard_options.items()}
        return tabular_pipeline(model, self.schema.columns).fit(self.features, self.y, **options)

    def about_cutoff(self, model: Pipeline) -> str | None:
        """Say whether a model in use would make fewer errors at another cut-off than its own."""
        return cutoff_in_words(model, self.features, self.y)

    def save(self, model: Pipeline, path: Path) -> Saved:
        """Write a model that was fitted on the table, and the held-out rows beside it."""
        details = details_of(self, model, len(self.y), self.fingerprints) | {"reference": self._reference(model)}
        return save_with_test_rows(model, path, details, self.test_sums, lambda writer: writer.write(self.test_rows))

    def _reference(self, model: Pipeline) -> dict[str, Any]:
        """What training rows look like, for a monitor that compares later ones with them."""
        final, X = split_pipeline(model, self.features)
        return Reference.of(
            self.features, final.predict_group(X), int(final.n_groups_), kinds=self.schema.columns
        ).to_dict()


def make_classifier(
    schema: TableSchema,
    *,
    n_groups: int | Literal["auto"] = "auto",
    groups: Literal["rules", "network"] = "rules",
    pooled: Literal["scorecard", "linear", "boosting"] | IncumbentColumns = "scorecard",
    guard: GuardKind | None = "veto",
    guard_losses: Sequence[LossName] = ("error",),
    costs: Mapping[str, float] | None = None,
    threshold: float | None = None,
    seed: int = 0,
    verbose: int = 0,
    recipe: Recipe | None = None,
) -> DAFHClassifier:
    """Make the classifier that a command asks for."""
    if pooled == "boosting" and (costs is not None or threshold is not None):
        # Compared with it, own classifiers at another cut-off would gain by the cut-off alone.
        raise InputError(
            "Gradient boosting always decides at a probability of 0.5: with costs or a threshold, choose a scorecard "
            "or a linear pooled classifier."
        )
    if guard is None and schema.protected:
        raise InputError("Only the guard protects columns, and it is off: set it to veto or proof.")
    return DAFHClassifier(
        n_groups,
        groups=groups,
        pooled=_boosting() if pooled == "boosting" else pooled,
        recipe=recipe,
        guard=guard,
        guard_losses=tuple(guard_losses),
        costs=costs,
        threshold=threshold,
        random_state=seed,
        verbose=verbose,
    )


class AboutTable(Protocol):
    """What a model file says about the table that the model was fitted on."""

    @property
    def name(self) -> str:
        """Name of the file."""
        ...

    @property
    def schema(self) -> TableSchema:
        """What the columns hold."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed."""
        ...


def details_of(table: AboutTable, model: Pipeline, n_rows: int, fingerprints: tuple[str, ...]) -> dict[str, Any]:
    """What is written about a table into the file of a model that was fitted on it."""
    return {
        "data": table.name,
        "rows": n_rows,
        "schema": table.schema.to_dict(),
        "fingerprints": list(fingerprints),
        "guesses": list(table.notes),
        "worth": worth_of_groups(model),
    }


def class_shares_in_words(labels: Counter[Any], target: str) -> str:
    """Say how many rows there are to train on, and the share of each label."""
    n_rows = labels.total()
    shares = [f"{clipped(value, 30)} in {number / n_rows:.0%}" for value, number in sorted(labels.items())]
    more = ", …" if len(shares) > 5 else ""
    return f"Training on {n_rows:,} rows. Values of {clipped(target, 40)}: {', '.join(shares[:5])}{more}."


def _read_all(data: DataFile) -> pd.DataFrame:
    """Read a file, or all files behind a pattern or in a folder, which must have the same columns."""
    first, *others = data.files()
    tables = [first.read(text=None)]
    data.layout = first.layout
    tables += [with_columns(file.read(text=None), list(tables[0].columns), file.name) for file in others]
    return tables[0] if not others else pd.concat(tables, ignore_index=True)


def _about_rows(known: pd.DataFrame, schema: TableSchema) -> dict[str, Any]:
    """Attributes for the guard, persons and time, under the names that `fit` has for them."""
    found: dict[str, Any] = {}
    if schema.protected:
        found["guard_features"] = schema.attributes_of(known, schema.protected)
    if schema.person is not None:
        found["persons"] = persons_of(known, schema.person)
    times, weights = schema.times_of(known), schema.weights_of(known)
    if times is not None:
        found["time"] = times
    if weights is not None:
        found["sample_weight"] = weights
    return found


def _held_out(y: NDArray[Any], target: str, known: Mapping[str, Any], test_size: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are set aside."""
    label = np.unique(y, return_inverse=True)[1]
    person, time = check_persons(known.get("persons"), len(y)), check_times(known.get("time"), len(y))
    # A stream of its own: which rows are held out has nothing to do with the random numbers of training.
    rng = np.random.default_rng([seed, len(y)])
    _, apart = set_rows_aside(label, test_size, rng, person=person, time=time)
    n_units = len(y) if person is None else int(person.max()) + 1
    if not len(apart) and round(test_size * n_units):
        raise InputError(f"The rows left to train on have one value of {quoted(target)} only.")
    return np.isin(np.arange(len(y)), apart)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()
