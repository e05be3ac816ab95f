"""Forged cut-offs, losses and reports of the guard: promises that the rest of the file does not keep."""

import numpy as np

from model_files import find
from model_forgeries import entry, setting

MODEL, SCORECARD, LINEAR = "dafh classifier", "scorecard", "default logistic regression"
RANGE, CHECKS, LOSSES = "out of range", "checks that do not fit", "'losses'"


def losses(**entries):
    def change(parts):
        find(parts.model, MODEL)["losses"].update(entries)

    return change


def column(table, name, values):
    """Replace a column of the guard's table or checks: `values` takes the old ones and the parts."""

    def change(parts):
        report = find(parts.model, MODEL)["guard_report"]
        (found,) = (content for title, content in report[table]["columns"] if title == name)
        if "texts" in found:
            found["texts"] = values(found["texts"])
        else:
            parts.set_array(found["array"], values(parts.array(found["array"])))

    return change


def rename(table, name, new):
    def change(parts):
        columns = find(parts.model, MODEL)["guard_report"][table]["columns"]
        columns[[title for title, _ in columns].index(name)][0] = new

    return change


def texts_for_numbers(parts):
    report = find(parts.model, MODEL)["guard_report"]
    for content in report["checks"]["columns"]:
        if content[0] == "gain":
            parts.set_array(content[1]["array"], np.zeros(2, int), "int64")


def keeps_what_it_lost(parts):
    """Group 0 failed its checks, and the report says that it keeps its own classifier."""
    report = find(parts.model, MODEL)["guard_report"]
    parts.set_array(report["serves"], np.array([0, 1]))
    column("table", "served_by", lambda _: ["its own", "its own"])(parts)


def keeps_without_rows(parts):
    find(parts.model, MODEL)["guard_report"]["checks"] = None


GUARD_FORGERIES = {
    # Cut-offs.
    "cut-off of one": ("dafh", entry(MODEL, "threshold", 1), RANGE),
    "cut-off of zero": ("dafh", entry(MODEL, "threshold", 0.0), RANGE),
    "negative cut-off of a scorecard": ("scorecard", entry(SCORECARD, "threshold", -0.1), RANGE),
    "cut-off of a scorecard beyond one": ("scorecard", entry(SCORECARD, "threshold", 7), RANGE),
    "cut-off of a regression": ("dafh", entry(LINEAR, "threshold", 1.0), RANGE),
    "cut-off that is a text": ("dafh", entry(MODEL, "threshold", "0.5"), RANGE),
    "cut-off among the parameters": ("dafh", setting(MODEL, "threshold", 1.5), RANGE),
    "cut-off among those of a scorecard": ("scorecard", setting(SCORECARD, "threshold", 0), RANGE),
    # Losses.
    "no loss": ("dafh", losses(names=[]), LOSSES),
    "unknown loss": ("dafh", losses(names=["error", "os.system"]), LOSSES),
    "loss twice": ("dafh", losses(names=["error", "error"]), LOSSES),
    "cost without costs": ("dafh", losses(names=["cost"]), LOSSES),
    "costs without cost": ("dafh", losses(costs={"fp": 1.0, "fn": 2.0}), LOSSES),
    "free errors": ("dafh", losses(names=["cost"], costs={"fp": 0.0, "fn": 2.0}), RANGE),
    "errors that pay": ("dafh", losses(names=["cost"], costs={"fp": 1.0, "fn": -2.0}), RANGE),
    "one cost": ("dafh", losses(names=["cost"], costs={"fp": 1.0}), "lacks the entry 'fn'"),
    "three costs": ("dafh", losses(names=["cost"], costs={"fp": 1, "fn": 1, "tp": 1}), "unknown entry"),
    "losses with an attribute": ("dafh", losses(more=1), "unknown entry"),
    "another loss than the guard checked": ("dafh", losses(names=["fnr"]), CHECKS),
    "a loss that the guard did not check": ("dafh", losses(names=["error", "fnr"]), CHECKS),
    "no loss among the parameters": ("dafh", setting(MODEL, "guard_losses", []), RANGE),
    "unknown loss among the parameters": ("dafh", setting(MODEL, "guard_losses", ["error", "posix"]), RANGE),
    "free errors among the parameters": ("dafh", setting(MODEL, "costs", {"pairs": [["fp", 0], ["fn", 1]]}), RANGE),
    "one cost among the parameters": ("dafh", setting(MODEL, "costs", {"pairs": [["fp", 1]]}), RANGE),
    # The report.
    "report of another server": ("dafh", column("table", "served_by", lambda texts: texts[::-1]), "'guard_report'"),
    "report without reasons": ("dafh", rename("table", "reason", "why"), "'guard_report'"),
    "reason that is missing": ("dafh", column("table", "reason", lambda texts: [None, texts[1]]), "'guard_report'"),
    "negative number of rows": ("dafh", column("table", "rows", lambda n: -n), "'guard_report'"),
    "chance of two": ("dafh", column("table", "p_worse", lambda p: p + 2), "'guard_report'"),
    "checks without a loss": ("dafh", rename("checks", "loss", "lost"), CHECKS),
    "checks of other kinds": ("dafh", texts_for_numbers, CHECKS),
    "check of an unknown loss": ("dafh", column("checks", "loss", lambda names: ["fpr", *names[1:]]), CHECKS),
    "check of no group": ("dafh", column("checks", "group", lambda groups: groups + 1), CHECKS),
    "check of group -1": ("dafh", column("checks", "group", lambda groups: groups - 1), CHECKS),
    "check twice": ("dafh", column("checks", "group", np.zeros_like), CHECKS),
    "checks of parts only": ("dafh", column("checks", "part", lambda names: ["sex = f"] * len(names)), CHECKS),
    "check with a negative loss": ("dafh", column("checks", "own_loss", lambda losses: losses - 1), CHECKS),
    "check with an infinite loss": ("dafh", column("checks", "own_loss", lambda losses: losses + np.inf), CHECKS),
    "check with a chance that is none": ("dafh", column("checks", "p_better", lambda p: p * np.nan), CHECKS),
    "check on fewer rows than none": ("dafh", column("checks", "rows", lambda n: -n - 1), CHECKS),
    "own classifier in spite of the checks": ("dafh", column("checks", "passed", np.zeros_like), CHECKS),
    "own classifier that failed": ("dafh", keeps_what_it_lost, CHECKS),
    "own classifier without checks": ("dafh", keeps_without_rows, CHECKS),
}
