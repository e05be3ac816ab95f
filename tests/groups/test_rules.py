"""Rules as trees and as words: leaves, ways to them, and printed conditions that say exactly what the tree does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cases import slow_but
from dafh import DAFHClassifier
from dafh.datasets import DATASETS, FETCHERS
from dafh.datasets.sources import is_available
from dafh.groups.rules import Question, RuleTree, column_condition
from dafh.tables.bins import Binning
from dafh.tables.column import Column
from rule_words import groups_by_words

AGE = Column("age", "number", (24.0, 40.0), (20.0, 30.0, 50.0), has_gaps=True)
NAMES = ["cook", "clerk", "Trinidad and Tobago", "a or b", "x, y; or z", "missing", "it's", 'a "b"', "not c", "(other)"]


def said(column, *bins):
    return column_condition(column, np.isin(np.arange(column.n_bins), bins))


# ---- words for one column ----


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ((0, 1), "age is 40 or less"),
        ((1, 2, 3), "age is above 24 or missing"),
        ((1,), "age is above 24, up to 40"),
        ((1, 3), "age is above 24, up to 40 or missing"),
        ((3,), "age is missing"),
        ((0, 1, 2), "age is not missing"),
        ((0, 1, 2, 3), "age is anything"),
    ],
)
def test_bins_of_numbers_are_said_as_a_range(bins, words):
    assert said(AGE, *bins) == words


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ((1,), "job is clerk"),
        ((1, 2), "job is clerk or cook"),
        ((0, 1, 2), "job is missing, clerk or cook"),
        ((1, 2, 3), "job is not missing"),
        ((3,), "job is not missing, clerk or cook"),
        ((0, 1, 2, 3), "job is anything"),
    ],
)
def test_categories_are_listed_and_unseen_ones_make_it_a_list_of_the_others(bins, words):
    assert said(Column("job", "category", categories=("(missing)", "clerk", "cook")), *bins) == words


def test_names_that_could_be_words_of_the_rule_are_quoted():
    land = Column("land", "category", categories=("Trinidad and Tobago", "missing", "not-here"))
    assert said(land, 0, 1, 2) == "land is 'Trinidad and Tobago', 'missing' or not-here"
    assert said(Column("x and y", "number", (1.0,), (0.0, 2.0)), 0) == "'x and y' is 1 or less"


def test_cuts_are_said_with_all_their_digits():
    column = Column("x", "number", (1234.56789, 1234.567891), (1.0, 2.0, 3.0))
    assert said(column, 1) == "x is above 1,234.56789, up to 1,234.567891"


def test_dates_are_said_to_the_day_and_to_the_second_where_a_cut_needs_it():
    column = Column("day", "date ISO8601", (18262.0, 18262.5), (1.0, 2.0, 3.0))
    assert said(column, 1) == "day is above 2020-01-01, up to 2020-01-01 12:00:00"


# ---- trees ----


def grid(n_columns=3, n_bins=4):
    """Columns of numbers with four values each."""
    table = pd.DataFrame({f"x{c}": np.arange(float(n_bins)) for c in range(n_columns)})
    return Binning.learn(table)


@st.composite
def trees(draw, binning=None):
    """Any tree of questions, each of which divides the bins of a column in two, with groups for its leaves."""
    binning = binning or grid()
    questions = []
    for number in range(draw(st.integers(0, 7))):
        column = draw(st.integers(0, len(binning.columns) - 1))
        n_bins = binning.columns[column].n_bins
        if binning.columns[column].is_category:
            yes = draw(st.lists(st.booleans(), min_size=n_bins, max_size=n_bins).filter(lambda y: 0 < sum(y) < len(y)))
        else:
            cut, gaps = draw(st.integers(0, n_bins - 2)), draw(st.booleans())
            yes = [*(bin_ <= cut for bin_ in range(n_bins - 1)), gaps]
        bins = tuple(np.flatnonzero(yes).tolist())
        questions.append(Question(draw(st.integers(0, number)), column, bins))
    n_leaves = len(questions) + 1
    group = np.array(draw(st.lists(st.integers(0, 3), min_size=n_leaves, max_size=n_leaves)))
    return RuleTree(binning, tuple(questions), np.unique(group, return_inverse=True)[1])


def all_rows(binning):
    return np.stack(np.meshgrid(*map(np.arange, binning.n_bins)), axis=-1).reshape(-1, len(binning.columns))


@given(trees())
def test_answers_along_a_path_lead_to_its_leaf_and_to_no_other(tree):
    codes = all_rows(tree.binning)
    answers, leaves = tree.answers(codes), tree.leaves(codes)
    for leaf, path in enumerate(tree.paths()):
        reached = np.all([answers[:, number] == yes for number, yes in path], axis=0)
        np.testing.assert_array_equal(np.broadcast_to(reached, len(codes)), leaves == leaf)


@given(trees(), st.data())
def test_leaves_of_a_tree_that_is_cut_back_are_the_parents_of_its_leaves(tree, data):
    codes, n_leaves = all_rows(tree.binning), data.draw(st.integers(1, tree.n_leaves))
    smaller = tree.cut_back(n_leaves, np.arange(n_leaves))
    np.testing.assert_array_equal(smaller.assign(codes), tree.parents(n_leaves)[tree.leaves(codes)])
    assert smaller.n_leaves == n_leaves


def test_a_tree_without_questions_is_about_all_rows():
    tree = RuleTree(grid(), (), np.zeros(1, np.intp))
    assert (tree.n_leaves, tree.n_groups, tree.rule(0)) == (1, 1, "all rows")


def test_a_part_of_the_tree_that_belongs_to_one_group_is_said_once():
    questions = (Question(0, 0, (0, 1)), Question(0, 1, (0,)), Question(1, 2, (0,)))
    tree = RuleTree(grid(), questions, np.array([0, 1, 0, 0]))
    assert tree.conditions(0) == ["x0 is above 1 or missing and x2 is above 0 or missing", "x0 is 1 or less"]
    assert tree.conditions(1) == ["x0 is above 1 or missing and x2 is 0 or less"]


def test_all_that_is_asked_about_a_column_is_said_once():
    tree = RuleTree(grid(), (Question(0, 0, (0, 1, 2)), Question(0, 0, (0,))), np.array([0, 0, 1]))
    assert tree.rule(1) == "x0 is above 0, up to 2"


# ---- words say what the tree does ----


def mixed_rows(seed=0, n=80):
    """Numbers, dates and awkward categories with gaps, and values that training does not see."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x is y": rng.choice([-1.5, 0.0, 0.3, 1234.5, 1e-7, np.nan], n),
            "when": pd.Timestamp("2020-02-27") + pd.to_timedelta(rng.integers(0, 60, n) * 9, "h"),
            "land": rng.choice([*NAMES, None], n),
        }
    )
    table.loc[::7, "when"] = pd.NaT
    new = table.copy()
    new.loc[::5, "land"] = "Norway"
    new.loc[::3, "x is y"] = rng.normal(size=len(new.loc[::3]))
    new.loc[1, "x is y"] = np.inf
    return table, pd.concat([table, new], ignore_index=True)


TRAINING, ROWS = mixed_rows()
MIXED = Binning.learn(TRAINING)


@given(trees(MIXED))
def test_printed_rules_of_any_tree_give_every_row_its_group(tree):
    possible = set(tree.assign(all_rows(MIXED)).tolist())
    assume(possible == set(range(tree.n_groups)) and not _asks_in_vain(tree))
    np.testing.assert_array_equal(groups_by_words(tree, ROWS), tree.assign(MIXED.codes(ROWS)))


def _asks_in_vain(tree):
    return len(np.unique(tree.leaves(all_rows(tree.binning)))) < tree.n_leaves


def with_gaps_and_news(X, rng):
    """Rows with injected gaps and, in columns of text, categories that training never saw."""
    X = X.copy()
    for name in X.columns:
        numeric = pd.api.types.is_numeric_dtype(X[name])
        X[name] = X[name].astype(float if numeric else object)
        X.loc[rng.random(len(X)) < 0.1, name] = np.nan
        if not numeric:
            X.loc[rng.random(len(X)) < 0.1, name] = "never heard of"
    return X


@pytest.mark.parametrize("pooled", ["linear", pytest.param("scorecard", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dataset", slow_but(DATASETS, "german", "arrest"))
def test_printed_rules_give_every_row_of_the_papers_data_its_group(dataset, pooled):
    if not all(is_available(file) for file in DATASETS[dataset].files):
        pytest.skip(f"needs the data set {dataset} at hand: DAFH_DATA names no folder")
    X, y = FETCHERS[dataset](return_X_y=True)
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(len(X), min(len(X), 2000), replace=False))
    model = DAFHClassifier(4, groups="rules", pooled=pooled, random_state=0).fit(X.iloc[some], y.iloc[some])
    assert model.n_groups_ == 4
    for rows in (X, with_gaps_and_news(X, rng)):
        np.testing.assert_array_equal(groups_by_words(model.rules_.tree, rows), model.predict_group(rows))
