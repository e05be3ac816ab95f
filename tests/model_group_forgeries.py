"""Forged files of what groups are made of: bins, scorecards, views of tables, rules and corrections."""

import json

import numpy as np

from model_files import find
from model_forgeries import POINTS, UNKNOWN, add_array, cells, entry, setting

# Where things stand in the description of a model. "points" is a model on a scorecard, "dafh" on a linear classifier.


def binning(parts):
    return find(parts.model, "scorecard")["binning"]


def view(parts):
    return find(parts.model, "dafh classifier")["view"]


def groups(parts):
    return find(parts.model, "dafh classifier")["groups"]


def tree(parts):
    return groups(parts)["tree"]


def question(parts):
    return tree(parts)["questions"][0]


def corrections(parts):
    return groups(parts)["corrections"]


def strengths(parts):
    return find(parts.model, "scorecard")["strengths"]


# Changes of what stands there.


def update(where, **changes):
    return lambda parts: where(parts).update(changes)


def cell(where, name, at, value):
    """Set a cell of an array; a function changes what is there."""

    def change(parts):
        array = parts.array(where(parts)[name])
        array[at] = value(array[at]) if callable(value) else value
        parts.set_array(where(parts)[name], array)

    return change


def array(where, name, make):
    """Replace an array by what `make` makes of it."""

    def change(parts):
        number = where(parts)[name]
        parts.set_array(number, make(parts.array(number)))

    return change


def cut_short(where, name):
    return array(where, name, lambda values: values[:-1].copy())


def transposed(where, name):
    return array(where, name, lambda values: np.ascontiguousarray(values.T))


def both(*changes):
    def change(parts):
        for one in changes:
            one(parts)

    return change


def other_names(where, names):
    def change(parts):
        parts.names.append(names)
        where(parts)["column_names"] = len(parts.names) - 1

    return change


def many_date_formats(parts):
    n = 150
    other_names(binning, [f"c{i}" for i in range(n)])(parts)
    found = find(parts.model, "scorecard")
    found.update(n_columns=n, column_names=None)
    binning(parts)["kinds"] = [f"date %Y {i}" for i in range(n)]


def cuts_that_are_not_there(parts):
    """Very many columns that say they have all the cuts they may."""
    n = 60_000
    other_names(binning, [f"c{i}" for i in range(n)])(parts)
    find(parts.model, "scorecard").update(n_columns=n, column_names=None)
    binning(parts).update(kinds=["number"] * n, categories=[])
    parts.set_array(binning(parts)["has_other"], np.zeros(0, np.uint8))
    parts.set_array(binning(parts)["n_cuts"], np.full(n, 254))


def guard_column(place, value, name="gain"):
    """Change a column of the table of the guard: its name, or what it holds."""

    def change(parts):
        columns = find(parts.model, "dafh classifier")["guard_report"]["table"]["columns"]
        column = next(column for column in columns if column[0] == name)
        column[place] = value

    return change


def clusters_of_two_columns(parts):
    found = find(parts.model, "clusters")
    for name, values in {"mean": np.zeros(2), "scale": np.ones(2), "centers": np.zeros((2, 2))}.items():
        parts.set_array(found[name], values)


def column_of_encoder(number, **changes):
    return lambda parts: find(parts.model, "table encoder")["columns"][number].update(changes)


def one_question_again(parts):
    """The same question about a leaf that has answered it."""
    again = json.loads(json.dumps(question(parts)))
    again["yes"] = add_array(parts, parts.array(question(parts)["yes"]), "bool")
    tree(parts)["questions"].insert(1, again)
    number = tree(parts)["group"]
    parts.set_array(number, np.append(parts.array(number), 0))


def endless_questions(parts):
    tree(parts)["questions"] = [{"leaf": 0, "column": 0, "yes": 0}] * 5000


def holes(values):
    """Answers about a number that are no cut: the first and the third bin."""
    found = np.zeros_like(values)
    found[[0, 2]] = 1
    return found


def wide_points(parts):
    """Points for a gigabyte of bins, which the file does not hold."""
    parts.table[find(parts.model, "scorecard")["points"]] = ["float64", [2**27, 1]]


def tables_of_other_columns(parts):
    other_names(binning, ["a", "b", "c", "d"])(parts)
    find(parts.model, "scorecard")["column_names"] = binning(parts)["column_names"]


FIT, FINITE, RANGE = "does not fit", "not finite", "out of range"
SCORECARD, MODEL = "scorecard", "dafh classifier"
GROUP_FORGERIES = {
    # Bins.
    "cuts upside down": ("scorecard", array(binning, "cuts", lambda cuts: cuts[::-1].copy()), "not ascending"),
    "cut twice": ("scorecard", array(binning, "cuts", lambda c: np.append(c[:1], c[:-1])), "not ascending"),
    "infinite cut": ("scorecard", cell(binning, "cuts", -1, np.inf), FINITE),
    "cut that is none": ("scorecard", cell(binning, "cuts", 0, np.nan), FINITE),
    "cut beyond all numbers": ("scorecard", cell(binning, "cuts", 0, -1e120), FINITE),
    "day of no calendar": ("scorecard", cell(binning, "cuts", -1, 1e20), "no calendar"),
    "center that is none": ("scorecard", cell(binning, "centers", 0, np.nan), FINITE),
    "center too few": ("scorecard", cut_short(binning, "centers"), FIT),
    "cut too few": ("scorecard", cut_short(binning, "cuts"), FIT),
    "cuts counted wrongly": ("scorecard", cell(binning, "n_cuts", 0, lambda n: n + 1), FIT),
    "more cuts than a byte counts": ("scorecard", cell(binning, "n_cuts", 0, 255), POINTS),
    "cuts that are not there": ("scorecard", cuts_that_are_not_there, FIT),
    "cuts by the billion": ("scorecard", cell(binning, "n_cuts", 0, 10**15), POINTS),
    "negative number of cuts": ("scorecard", cell(binning, "n_cuts", 0, -1), POINTS),
    "cuts of a column too few": ("scorecard", cut_short(binning, "n_cuts"), FIT),
    "gaps of a column too few": ("scorecard", cut_short(binning, "has_gaps"), FIT),
    "gaps that are numbers": ("scorecard", array(binning, "has_gaps", lambda gaps: gaps + 1), "neither true nor"),
    "rare ones of no column": ("scorecard", cut_short(binning, "has_other"), FIT),
    "category twice": ("scorecard", update(binning, categories=[["cook", "cook", "pilot"]]), "a category twice"),
    "category that is no text": ("scorecard", update(binning, categories=[["cook", 7, None]]), "categories"),
    "categories that are a text": ("scorecard", update(binning, categories=["cook"]), "categories"),
    "categories of two columns": ("scorecard", update(binning, categories=[["a"], ["b"]]), "fit its columns"),
    "more categories than a byte counts": (
        "scorecard", update(binning, categories=[[f"c{i}" for i in range(256)]]), "more than 256 bins"),
    "category too many": ("scorecard", update(binning, categories=[["a", "b", "c", "d"]]), FIT),
    "kind of no column": ("scorecard", update(binning, kinds=["number", "number", "category"]), "kinds"),
    "kind that is none": ("scorecard", update(binning, kinds=["number", "posix", "category", "number"]), "kind"),
    "number as a category": ("scorecard", update(binning, kinds=["category"] * 4), "fit its columns"),
    "format of dates": (
        "scorecard", update(binning, kinds=["number", "number", "category", "date %Y%Y%!"]), "format"),
    "formats of dates without end": ("scorecard", many_date_formats, "too many formats"),
    "bins of other columns": ("scorecard", other_names(binning, ["a", "b", "c", "d"]), "columns of the model"),
    "bins of columns in another order": (
        "points", other_names(binning, ["income", "age", "job", "since"]), "columns of the model"),
    "bins of three columns": ("scorecard", other_names(binning, ["age", "income", "job"]), "all columns"),
    "names that are not there": ("scorecard", update(binning, column_names=99), RANGE),
    "bins with an attribute": ("scorecard", update(binning, codes="os.system"), UNKNOWN),
    "bins that are a list": ("scorecard", entry(SCORECARD, "binning", []), "is missing"),
    # Scorecards.
    "points of a bin too few": ("scorecard", cut_short(lambda p: find(p.model, SCORECARD), "points"), FIT),
    "points for two logits": (
        "scorecard", array(lambda p: find(p.model, SCORECARD), "points", lambda a: np.repeat(a, 2, axis=1)), FIT),
    "points that are none": ("scorecard", cells(SCORECARD, "points", 0, np.nan), FINITE),
    "points without end": ("points", cells(SCORECARD, "points", 0, 1e300), FINITE),
    "gigabytes of points": ("scorecard", wide_points, "bytes and "),
    "start of two": ("scorecard", array(lambda p: find(p.model, SCORECARD), "intercept", lambda a: np.append(a, a)),
                     FIT),
    "negative share": (
        "scorecard", cell(lambda p: find(p.model, SCORECARD), "shares", slice(2), lambda v: v + np.array([-0.5, 0.5])),
        "add up"),
    "shares of nobody": ("scorecard", cells(SCORECARD, "shares", slice(None), 0.0), "add up"),
    "share of a bin too few": ("scorecard", cut_short(lambda p: find(p.model, SCORECARD), "shares"), FIT),
    "strength of no column": ("scorecard", cell(strengths, "column", 0, 4), POINTS),
    "strengths without end": ("scorecard", array(strengths, "column", lambda _: np.zeros(400_001, int)), "column"),
    "strength that is none": ("scorecard", cell(strengths, "strength", 0, np.inf), FINITE),
    "strengths of different lengths": ("scorecard", cut_short(strengths, "coefficients"), FIT),
    "negative strength": ("scorecard", entry(SCORECARD, "strength", -1), RANGE),
    "bins without end": ("scorecard", setting(SCORECARD, "n_bins", 10**9), RANGE),
    "one bin": ("scorecard", setting(SCORECARD, "n_bins", 1), RANGE),
    "three labels, one logit": (
        "scorecard", lambda p: find(p.model, SCORECARD)["labels"].update(values=["a", "b", "c"]), FIT),
    "scorecard with an attribute": ("scorecard", entry(SCORECARD, "predict", "os.system"), UNKNOWN),
    # Readers of tables.
    "reader of a kind too few": ("tabular", lambda p: find(p.model, "table reader")["kinds"].pop(), "kinds"),
    "reader of no kind": (
        "tabular", lambda p: find(p.model, "table reader").update(kinds=["number", "posix", "flag", "flag"]), "kind"),
    "reader of a format": (
        "tabular", lambda p: find(p.model, "table reader").update(kinds=["date %Y%Y%!"] * 4), "format"),
    "reader without names": ("tabular", entry("table reader", "column_names", None), "name all columns"),
    "reader of other columns": (
        "tabular", other_names(lambda p: find(p.model, "table reader"), ["a", "b", "c", "d"]), "do not fit together"),
    "reader with an attribute": ("tabular", entry("table reader", "transform", "os.system"), UNKNOWN),
    "reader of a million columns": ("tabular", entry("table reader", "n_columns", 10**6), RANGE),
    # Views of tables.
    "encoder of a scorecard": ("points", update(view, encoder="pooled"), "not an encoder"),
    "encoder that is a scaler": (
        "points", update(view, encoder={"kind": "standard scaler", "settings": {"with_mean": False, "with_std": False},
                                        "n_columns": 4}), "not an encoder"),
    "encoder that is a text": ("points", update(view, encoder="os.system"), "is missing"),
    "encoder of three columns": ("network on points", lambda p: view(p)["encoder"]["columns"].pop(), "other columns"),
    "encoder of three columns without names": (
        "network on points", both(entry(MODEL, "column_names", None), lambda p: view(p)["encoder"]["columns"].pop()),
        "other columns"),
    "encoder of a column by another name": (
        "network on points", lambda p: view(p)["encoder"]["columns"][0].update(name="x"), "other columns"),
    "no encoder": ("dafh", update(view, encoder=None), FIT),
    "bins of a linear classifier": ("dafh", update(view, binning="pooled"), "not that of a scorecard"),
    "bins of a scorecard for other columns": ("points", tables_of_other_columns, "not that of a scorecard"),
    "no bins": ("points", update(view, binning=None), "bins that are not there"),
    "bins that are a number": ("points", update(view, binning=7), "is missing"),
    "view with an attribute": ("points", update(view, see="os.system"), UNKNOWN),
    # Rules.
    "leaf outside": ("points", update(question, leaf=1), RANGE),
    "negative leaf": ("points", update(question, leaf=-1), RANGE),
    "leaf by the billion": ("dafh", update(question, leaf=10**12), RANGE),
    "question about no column": ("points", update(question, column=4), RANGE),
    "question about column -1": ("dafh", update(question, column=-1), RANGE),
    "question about another column": ("points", update(question, column=2), FIT),
    "answers of a bin too few": ("dafh", cut_short(question, "yes"), FIT),
    "answers in two dimensions": ("dafh", array(question, "yes", lambda yes: yes[None].copy()), FIT),
    "answers that are numbers": ("dafh", array(question, "yes", lambda yes: yes + 1), "neither true nor"),
    "answers that are no cut": ("points", array(question, "yes", holes), "not a cut"),
    "answers turned round": ("points", array(question, "yes", lambda yes: 1 - yes), "not a cut"),
    "always yes": ("points", array(question, "yes", np.ones_like), "divides nothing"),
    "always no": ("points", array(question, "yes", np.zeros_like), "divides nothing"),
    "question asked twice": ("points", one_question_again, "divides nothing"),
    "questions without end": ("points", endless_questions, "the entry 'questions'"),
    "question that is a list": ("points", lambda p: tree(p)["questions"].insert(0, [0, 0, 0]), "is missing"),
    "question with an attribute": ("points", update(question, then="os.system"), UNKNOWN),
    "question too few": ("dafh", lambda p: tree(p)["questions"].pop(), FIT),
    "group outside": ("points", cell(tree, "group", 0, 2), POINTS),
    "negative group": ("points", cell(tree, "group", 0, -1), POINTS),
    "group without a leaf": ("points", array(tree, "group", np.zeros_like), "has no leaf"),
    "leaf without a group": ("points", cut_short(tree, "group"), FIT),
    "ten thousand groups": ("points", entry(MODEL, "n_groups", 10_000), "has no leaf"),
    "rules that are a network": ("dafh", update(groups, kind="network"), "group"),
    "rules that are code": ("dafh", update(groups, kind="posix.system"), "kind"),
    "rules with an attribute": ("dafh", update(groups, route="os.system"), UNKNOWN),
    # Corrections.
    "corrections of no kind": ("dafh", update(corrections, kind="logits"), "kind"),
    "corrections for a group too few": ("points", cut_short(corrections, "intercept"), FIT),
    "corrections that are none": ("points", cell(corrections, "intercept", 0, np.nan), FINITE),
    "points of a group too few": ("points", cut_short(corrections, "points"), FIT),
    "points of other bins": ("points", array(corrections, "points", lambda a: a[:, :-1].copy()), FIT),
    "points of groups in another order": ("points", transposed(corrections, "points"), FIT),
    "points of a group that are none": ("points", cell(corrections, "points", (0, 0), np.inf), FINITE),
    "coefficients of a column too few": ("dafh", array(corrections, "weight", lambda a: a[:, :-1].copy()), FIT),
    "coefficients that are none": ("dafh", cell(corrections, "weight", (0, 0), np.nan), FINITE),
    "coefficients in two dimensions": ("dafh", array(corrections, "weight", lambda a: a[:, :, 0].copy()), FIT),
    "coefficients of two logits": (
        "incumbent", array(corrections, "of_logits", lambda a: np.repeat(a, 2, axis=1)), FIT),
    "coefficients used twice": (
        "incumbent", lambda p: corrections(p).update(of_logits=corrections(p)["weight"]), "used twice"),
    "linear as points": ("dafh", update(corrections, kind="points"), "lacks the entry 'points'"),
    "points as linear": ("points", update(corrections, kind="linear"), UNKNOWN),
    # Networks.
    "network without its tree": ("groups by network", update(groups, tree=None), FIT),
    "network of other answers": (
        "groups by network", update(question, column=2), FIT),
    "network for a group too few": ("groups by network", entry(MODEL, "n_groups", 1), POINTS),
    "network with a center": (
        "groups by network", lambda p: groups(p).update(center=add_array(p, np.zeros(3), "float64")), FIT),
    "network that is rules": ("groups by network", update(groups, kind="rules"), "corrections"),
    "network without groups": ("groups by network", update(groups, group=[]), "not complete"),
    "network without classifiers": ("groups by network", update(groups, classifiers=[]), "not complete"),
    "layer without a bias": ("groups by network", lambda p: groups(p)["group"][0].pop(), "malformed"),
    "layer that is a text": ("groups by network", update(groups, group=["ab"]), "malformed"),
    # Encoders.
    "encoder of nothing": ("dafh", entry("table encoder", "columns", []), "no column"),
    "encoder of a column twice": ("dafh", column_of_encoder(1, name="age"), "one twice"),
    "encoder of a category twice": ("dafh", column_of_encoder(2, categories=["a", "a", "b"]), "categories"),
    "encoder of 1,001 categories": (
        "dafh", column_of_encoder(2, categories=[str(i) for i in range(1001)]), "categories"),
    "category with a mean": ("dafh", column_of_encoder(0, kind="category"), "kind"),
    "format of 100 letters": ("dafh", column_of_encoder(0, kind="date %Y" + "-" * 100), "kind"),
    "kind that was given in no pair": ("dafh", entry("table encoder", "given_kinds", ["ab"]), "given_kinds"),
    "kind that was given to nothing": ("dafh", entry("table encoder", "given_kinds", [["number"]]), "given_kinds"),
    # What stands around them.
    "guard without gains": ("dafh", guard_column(0, "x"), "guard_report"),
    "guard without servers": ("dafh", guard_column(0, "x", "served_by"), "guard_report"),
    "gains that are texts": ("dafh", guard_column(1, {"texts": ["a", "b"]}), "guard_report"),
    "guard of other groups": (
        "dafh", lambda p: find(p.model, MODEL)["guard_report"]["table"].update(index={"texts": ["a", "b"]}),
        "guard_report"),
    "history by another name": (
        "groups by network", lambda p: find(p.model, MODEL)["history"].update(index_name="x"), "history"),
    "history without a curve": (
        "groups by network", lambda p: next(column for column in find(p.model, MODEL)["history"]["columns"] if column[
            0] == "train_accuracy").__setitem__(0, "x"), "history"),
    "substitute of nobody": ("pipeline", lambda p: p.model["substitutes"].append(None), "one classifier"),
    "clusters of other columns": ("clusters", clusters_of_two_columns, "other columns"),
    "incumbent of other columns": ("incumbent", entry("boosted trees", "n_columns", 2), "other columns"),
    "share of a group too few": ("dafh", cut_short(lambda p: find(p.model, MODEL), "shares"), FIT),
    "share above 1": ("dafh", cells(MODEL, "shares", 0, 1.5), FINITE),
    "negative share of a group": ("dafh", cells(MODEL, "shares", 0, -0.5), "shares"),
    "shares of a network": (
        "groups by network", lambda p: find(p.model, MODEL).update(shares=add_array(p, np.ones(2) / 2, "float64")),
        "shares"),
    "history of rules": (
        "dafh", lambda p: find(p.model, MODEL).update(history=find(p.model, MODEL)["candidates"]), "to a network"),
    "epoch of rules": ("dafh", entry(MODEL, "best_epoch", 3), "to a network"),
    "network without epochs": ("groups by network", entry(MODEL, "best_epoch", 0), RANGE),
    "candidates of different lengths": (
        "dafh", lambda p: find(p.model, MODEL)["candidates"]["columns"].append(["x", {"texts": ["a"]}]), "lengths"),
    "pooled classifier of no name": ("dafh", entry(MODEL, "pooled", "posix.system"), "pooled"),
    "pooled classifier and incumbent": ("dafh", entry(MODEL, "incumbent", True), "pooled"),
    "no pooled classifier": ("dafh", entry(MODEL, "pooled", None), "pooled"),
    "groups without end": ("dafh", setting(MODEL, "n_groups", 10**9), RANGE),
    "groups by another name": ("dafh", setting(MODEL, "groups", "os.system"), RANGE),
    "pooled classifier as a setting": ("dafh", setting(MODEL, "pooled", "linear"), "not read from files"),
}  # fmt: skip
