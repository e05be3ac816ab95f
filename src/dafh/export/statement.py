"""One statement out of all parts: columns cleaned, rows grouped, scored and decided, step by step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dafh.classifiers.logits import SMALLEST_PROBABILITY
from dafh.exceptions import InputError
from dafh.export.cleaning import blank_letters, cleaned
from dafh.export.dialects import Dialect
from dafh.export.expressions import all_of, case, column, identifier, minus, number, real, text
from dafh.export.layout import render
from dafh.export.plan import Plan, Score, Weights
from dafh.export.rules import group_of
from dafh.export.scoring import (
    corrected,
    exponential,
    greatest,
    is_group,
    known_categories,
    logarithm,
    logistic,
    score_of,
    share,
    standardized,
)
from dafh.text import quoted

_LONGEST_NAME = 55
_SOURCE = "source"
_BLANKS = "blanks"
_STEPS = frozenset(
    ("blanks", "cleaned", "encoded", "grouped", "pooled", "pooled_largest", "pooled_powers", "probable", "clipped",
     "scored", "largest", "powers")
)  # fmt: skip

Columns = Mapping[str, exp.Expression]


def write_statement(plan: Plan, dialect: Dialect, table: str, keep: Sequence[str]) -> str:
    """Write the statement that scores a table.

    Parameters
    ----------
    plan : Plan
    dialect : Dialect
    table : str
        Name of the table, as a statement names it.
    keep : names of columns
        To carry over.
    """
    steps = _Steps(plan, dialect, table, keep)
    steps.add_cleaned()
    steps.add_encoded()
    group = steps.add_group()
    pooled = steps.add_scores("pooled", "pooled_score", plan.n_outputs, lambda output: steps.score(plan.pooled, output))
    logits = steps.add_clipped(pooled) if plan.is_clipped else pooled
    own = logits
    if plan.corrections:
        assert group is not None
        own = steps.add_scores(
            "scored",
            "score",
            plan.n_outputs,
            lambda output: corrected(logits, output, group, plan.corrections, steps.score),
        )
    return steps.finish(group, pooled, own)


class _Steps:
    """Steps of a statement; each adds columns to those of the step before it."""

    def __init__(self, plan: Plan, dialect: Dialect, table: str, keep: Sequence[str]) -> None:
        self.plan, self.dialect = plan, dialect
        self._table = _parse_table(table, dialect)
        # A table with the name of a step would be taken for the step.
        self._prefix = "dafh_" if self._table.name.lower() in _STEPS else ""
        self._steps: list[tuple[str, exp.Select]] = []
        _check_names(plan.columns, dialect)
        self._taken = {name.lower() for name in plan.columns}
        # A kept column may be one that the model reads: both go through all steps, one as it is and one cleaned.
        self._kept = {name: self._new_name(name) for name in keep}
        self._standardized: dict[int, dict[str, str]] = {}
        """For each encoder, names of the columns of numbers as it has them."""

    def _new_name(self, wanted: str) -> str:
        """Return a name that no other column of the steps has, whatever their case."""
        # Postgres cuts names at 63 bytes, and two of them might then be the same.
        wanted = wanted if len(wanted.encode()) <= _LONGEST_NAME else "long_name"
        name, attempt = wanted, 1
        while name.lower() in self._taken:
            attempt += 1
            name = f"{wanted}_{attempt}"
        self._taken.add(name.lower())
        return name

    def _add(self, step: str, columns: Columns) -> None:
        """Add a step with all columns of the last one and some more."""
        assert step in _STEPS
        last = exp.Table(this=exp.to_identifier(self._steps[-1][0]))
        self._steps.append((self._prefix + step, exp.select(exp.Star(), *_aliased(columns), copy=False).from_(last)))

    # ---- columns ----

    def add_cleaned(self) -> None:
        """Take the columns that the model needs from the table, as it reads them, and those to carry over."""
        source = exp.alias_(self._table, _SOURCE, table=True)
        categories = known_categories(self.plan)
        has_blanks = any(
            kind == "flag" or (kind == "category" and self.plan.has_gap_words) for kind in self.plan.columns.values()
        )
        columns = {
            name: cleaned(
                column(name, _SOURCE),
                kind,
                categories.get(name, ()),
                lambda: column("letters", self._prefix + _BLANKS),
                self.plan.has_gap_words,
                self.dialect,
            )
            for name, kind in self.plan.columns.items()
        }
        kept = {new: column(name, _SOURCE) for name, new in self._kept.items()}
        select = exp.select(*_aliased({**kept, **columns}), copy=False).from_(source, copy=False)
        if has_blanks:
            blanks = exp.select(*_aliased({"letters": blank_letters(self.dialect)}))
            self._steps.append((self._prefix + _BLANKS, blanks))
            select = select.join(exp.Table(this=exp.to_identifier(self._prefix + _BLANKS)), join_type="cross")
        self._steps.append((f"{self._prefix}cleaned", select))

    def add_encoded(self) -> None:
        """Standardise columns of numbers, where a score needs them so: once for all scores."""
        columns: dict[str, exp.Expression] = {}
        for score in self.plan.scores:
            # A pooled classifier that was brought fitted has an encoder of its own.
            if isinstance(score, Weights) and score.encoder is not None and id(score.encoder) not in self._standardized:
                numbers = score.encoder.scales_
                names = {name: self._new_name(f"{name}_standardised") for name in numbers}
                self._standardized[id(score.encoder)] = names
                columns |= {names[name]: standardized(name, scale) for name, scale in numbers.items()}
        if columns:
            self._add("encoded", columns)

    # ---- groups and scores ----

    def add_group(self) -> str | None:
        """Find the group of each row; None for a model without groups."""
        if self.plan.tree is None:
            return None
        name = self._new_name("group")
        self._add("grouped", {name: group_of(self.plan.tree, self.dialect)})
        return name

    def score(self, score: Score, output: int) -> exp.Expression:
        """Write one logit of a score."""
        named = self._standardized.get(id(score.encoder), {}) if isinstance(score, Weights) else {}
        return score_of(score, output, list(self.plan.columns), named, self.dialect)

    def add_scores(self, step: str, name: str, count: int, write: Callable[[int], exp.Expression]) -> list[str]:
        """Add one column, or one for each class, and return their names."""
        names = [self._new_name(name if count == 1 else f"{name}_{output}") for output in range(count)]
        self._add(step, {name: write(output) for output, name in enumerate(names)})
        return names

    def _add_powers(self, scores: Sequence[str], whose: str = "") -> list[str]:
        """Add e to the power of each logit, of which a probability is the share in the sum; return their names."""
        largest = self._new_name(f"{whose}largest_score")
        self._add(f"{whose}largest", {largest: greatest(scores)})
        names = [self._new_name(f"{whose}power_{output}") for output in range(len(scores))]
        powers = {name: exponential(score, largest) for name, score in zip(names, scores, strict=True)}
        self._add(f"{whose}powers", powers)
        return names

    def add_clipped(self, scores: list[str]) -> list[str]:
        """Turn scores into the logits of clipped probabilities, as any pooled classifier is corrected by these."""
        if len(scores) == 1:
            (one,) = self.add_scores("probable", "pooled_probability", 1, lambda _: logistic(column(scores[0]), 700))
            none = exp.Paren(this=minus(real(1), column(one)))
            odds = minus(logarithm(column(one), SMALLEST_PROBABILITY), logarithm(none, SMALLEST_PROBABILITY))
            return self.add_scores("clipped", "pooled_logit", 1, lambda _: odds)
        powers = self._add_powers(scores, "pooled_")
        shares = self.add_scores("probable", "pooled_probability", len(scores), lambda k: share(powers[k], powers))
        return self.add_scores(
            "clipped",
            "pooled_logit",
            len(scores),
            lambda k: logarithm(column(shares[k]), SMALLEST_PROBABILITY),
        )

    # ---- results ----

    def finish(self, group: str | None, pooled: list[str], own: list[str]) -> str:
        """Write all steps, and what `dafh predict` writes: label, probabilities and group."""
        plan = self.plan
        columns: dict[str, exp.Expression] = {"prediction": self._label(group, pooled, own)}
        if plan.n_outputs == 1:
            columns[_probability(plan.classes[1])] = logistic(column(own[0]), plan.largest_logit)
        else:
            powers = self._add_powers(own)
            for label, power in zip(plan.classes, powers, strict=True):
                columns[_probability(label)] = share(power, powers)
        if group is not None:
            columns["group"] = column(group)
        for name in self._kept:
            if name.lower() in {known.lower() for known in columns}:
                raise InputError(f"The column {quoted(name)} cannot be carried over: a column of scores has this name.")
        kept = {name: column(new) for name, new in self._kept.items()}
        select = exp.select(*_aliased({**kept, **columns}), copy=False)
        select = select.from_(exp.Table(this=exp.to_identifier(self._steps[-1][0])))
        for name, step in self._steps:
            apart = True if self.dialect.materialized and not name.endswith(_BLANKS) else None
            select = select.with_(exp.to_identifier(name), as_=step, materialized=apart, copy=False)
        statement = render(select, self.dialect.name)
        # Texts are written in parts where a variable could take their place, which a name cannot be.
        if self.dialect.substitutes and "${" in statement:
            raise InputError(
                f"A column, a label or the table has a name with ${{, which {self.dialect.name} replaces by a "
                "variable: rename it."
            )
        return statement

    def _label(self, group: str | None, pooled: list[str], own: list[str]) -> exp.Expression:
        """Write the label: of the pooled classifier by its own score and cut-off, where that serves a row."""
        by_own = self._decided(own, self.plan.cutoff)
        by_pooled = self._decided(pooled, self.plan.pooled_cutoff)
        if not self.plan.corrections:
            return case(by_pooled)
        if not self.plan.left_to_pooled or (not self.plan.is_clipped and self.plan.cutoff == self.plan.pooled_cutoff):
            return case(by_own)
        assert group is not None
        left = is_group(group, self.plan.left_to_pooled)
        return case([(left, case(by_pooled)), *by_own])

    def _decided(self, scores: list[str], cutoff: float) -> list[tuple[exp.Expression, exp.Expression]]:
        """Conditions under which each label is predicted; none holds where a score is missing."""
        labels = [_literal(label, self.dialect) for label in self.plan.classes.tolist()]
        if len(scores) == 1:
            score, limit = column(scores[0]), real(cutoff)
            return [
                (exp.GT(this=score, expression=limit), labels[1]),
                (exp.LTE(this=score.copy(), expression=limit.copy()), labels[0]),
            ]
        branches = []
        for place, label in enumerate(labels):
            # A tie goes to the first class.
            others = [other for other in scores if other != scores[place]]
            best = [exp.GTE(this=column(scores[place]), expression=column(other)) for other in others]
            branches.append((all_of(best), label))
        return branches


def _aliased(columns: Columns) -> list[exp.Expression]:
    return [exp.Alias(this=node, alias=identifier(name)) for name, node in columns.items()]


def _parse_table(table: str, dialect: Dialect) -> exp.Table:
    try:
        parsed = exp.to_table(table, dialect=dialect.name)
    except (SqlglotError, ValueError) as error:
        raise InputError(f"{quoted(table)} is not the name of a table.") from error
    for node in parsed.walk():
        node.comments = None
    return parsed


def _check_names(names: Mapping[str, str], dialect: Dialect) -> None:
    """Refuse columns that a database cannot tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        if dialect.folds_names and name.lower() in seen:
            raise InputError(
                f"The columns {quoted(seen[name.lower()])} and {quoted(name)} have the same name for {dialect.name}, "
                "which does not tell upper from lower case: rename one of them."
            )
        seen[name.lower()] = name


def _probability(label: Any) -> str:
    """Name the column of a label's probability, as `dafh predict` does; names cannot hold NUL."""
    return f"probability_{label}".replace("\0", "")


def _literal(label: Any, dialect: Dialect) -> exp.Expression:
    if isinstance(label, bool | np.bool_):
        return exp.true() if label else exp.false()
    if isinstance(label, int):
        return exp.Literal.number(label)
    return text(label, dialect) if isinstance(label, str) else number(label)
