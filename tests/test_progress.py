"""Progress: a bar that moves on a terminal, a few plain lines in a log, and nothing on the standard output."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from dafh.progress import epoch_reporter, study_reporter, transfer_reporter

BEST = SimpleNamespace(choose=lambda curves: (1, len(curves["selection_pr"]) - 1), judged=lambda curves: curves)
"""A rule that selects the second replica after the last epoch."""


@pytest.fixture
def log(monkeypatch, capsys):
    """Return the lines written to a log so far; fails if any went to the standard output."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def lines():
        out, err = capsys.readouterr()
        assert out == ""
        return [line for line in err.splitlines() if line.strip()]

    return lines


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Return everything written to a terminal so far, without control codes."""
    written = []
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "150"}.items():
        monkeypatch.setenv(name, value)

    def screen():
        written.append(capsys.readouterr().err)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "".join(written))

    return screen


def curves(n_epochs):
    rise = np.linspace(0.5, 0.9, n_epochs)[:, None]
    return {"selection_accuracy": rise * [0.1, 1], "selection_pr": rise * [0.1, 0.5]}


def report_epochs(max_epochs, ran=None, verbose=1):
    with epoch_reporter(max_epochs, verbose, BEST) as report:
        for epoch in range(1, (ran or max_epochs) + 1):
            report(epoch, curves(epoch))


def report_jobs(total, seconds_left=None):
    with study_reporter() as report:
        for done in range(1, total + 1):
            report(SimpleNamespace(key=f"job {done}"), done, total, seconds_left)


def test_a_silent_fit_has_no_reporter_and_writes_nothing(log):
    with epoch_reporter(10, 0, BEST) as report:
        assert report is None
    assert log() == []


def test_a_log_names_the_best_epoch_of_the_best_replica(log):
    report_epochs(10)
    first, *_, last = log()
    assert first.startswith("epoch 1 of at most 10; ")
    assert last == "epoch 10 of at most 10; best so far: epoch 10, accuracy 90.0%, Pr without harm 45.0%"


def test_figures_are_those_that_the_rule_judges_by(log):
    folds = SimpleNamespace(
        choose=lambda found: (0, 0),
        judged=lambda found: {
            name: np.array([[value]]) for name, value in (("selection_accuracy", 0.25), ("selection_pr", 1))
        },
    )
    with epoch_reporter(3, 1, folds) as report:
        report(1, curves(1))
    assert log() == ["epoch 1 of at most 3; best so far: epoch 1, accuracy 25.0%, Pr without harm 100.0%"]


def epochs_in(lines):
    return [int(re.match(r"epoch (\d+) of", line)[1]) for line in lines]


def test_a_fit_reports_each_fifth_of_its_epochs(log):
    report_epochs(100)
    assert epochs_in(log()) == [1, 20, 40, 60, 80, 100]
    report_epochs(100, ran=33)  # Stopped early.
    assert epochs_in(log()) == [1, 20]


@pytest.mark.parametrize("max_epochs", [1, 2, 4, 5, 6, 9, 14, 99])
def test_a_fit_of_any_length_writes_a_few_lines(log, max_epochs):
    report_epochs(max_epochs)
    found = epochs_in(log())
    assert found[0] == 1
    assert len(found) == len(set(found)) <= 6


def test_a_study_reports_its_first_job_each_twentieth_and_its_last(log):
    report_jobs(41)
    assert [line.split(" of ")[0] for line in log()] == ["1", *map(str, range(3, 41, 3)), "41"]


@pytest.mark.parametrize("total", [1, 2, 19, 20, 21, 39, 40, 59, 1000])
def test_a_study_of_any_size_writes_about_twenty_lines(log, total):
    report_jobs(total)
    lines = log()
    assert lines[0] == f"1 of {total} jobs done"
    assert lines[-1] == f"{total} of {total} jobs done"
    assert min(total, 10) <= len(lines) <= 22


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (5399, "90 min"),
        (5400, "1.5 h"),
        (360_000, "100.0 h"),
    ],
)
def test_the_time_left_is_in_the_unit_that_fits(log, seconds, words):
    report_jobs(1, seconds)
    assert log() == [f"1 of 1 jobs done, about {words} left"]


def test_a_download_writes_nothing_to_a_log(log):
    with transfer_reporter("adult.csv") as report:
        report("a mirror", 10, 100)
        report("a mirror", 100, 100)
    assert log() == []


def test_a_download_draws_a_bar_with_its_source_on_a_terminal(terminal):
    with transfer_reporter("adult.csv") as report:
        report("a mirror", 2_000_000, 4_000_000)
    assert "adult.csv from a mirror" in terminal()
    assert "2.0/4.0 MB" in terminal()


def test_a_download_of_unknown_size_shows_what_has_arrived(terminal):
    with transfer_reporter("adult.csv") as report:
        report("a mirror", 2_000_000, None)
    assert "2.0/? MB" in terminal()


def test_a_finished_download_leaves_nothing_on_the_screen(terminal, capsys):
    with transfer_reporter("adult.csv") as report:
        report("a mirror", 100, 100)
    assert capsys.readouterr().err.endswith("\x1b[1A\x1b[2K")  # One line up, and clear it.


def test_a_download_that_has_not_begun_shows_no_bar(terminal):
    with transfer_reporter("adult.csv"):
        pass
    assert "adult.csv" not in terminal()


def test_a_fit_draws_one_bar_and_no_lines_on_a_terminal(terminal):
    report_epochs(10, ran=4)
    assert "training" in terminal()
    assert "4/10" in terminal()
    assert "best so far: epoch 4" in terminal()
    assert "of at most" not in terminal()


def test_a_study_draws_one_bar_with_the_last_job_on_a_terminal(terminal):
    report_jobs(3, seconds_left=7200)
    assert "3/3" in terminal()
    assert "last: job 3, about 2.0 h left" in terminal()
    assert "jobs done" not in terminal()


def test_names_of_jobs_cannot_style_the_log_or_break_it(log):
    long = "x" * 500
    with study_reporter() as report:
        report(SimpleNamespace(key=f"[red]{long}"), 1, 1, None)
    assert log() == ["1 of 1 jobs done"]


def test_a_failure_passes_through_and_gives_the_cursor_back(terminal, capsys):
    def fails():
        with study_reporter() as report:
            report(SimpleNamespace(key="a"), 1, 1, None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    raw = capsys.readouterr().err
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")  # Shown again after it was hidden.
