"""Progress: a bar that moves on a terminal, a few plain lines in a log, and nothing on the standard output."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from dafh.progress import epoch_reporter

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
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "150"}.items():
        monkeypatch.setenv(name, value)
    return lambda: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)


def report_epochs(max_epochs, ran=None):
    with epoch_reporter(max_epochs, 1, BEST) as report:
        for epoch in range(1, (ran or max_epochs) + 1):
            rise = np.linspace(0.5, 0.9, epoch)[:, None]
            report(epoch, {"selection_accuracy": rise * [0.1, 1], "selection_pr": rise * [0.1, 0.5]})


def test_a_silent_fit_has_no_reporter_and_writes_nothing(log):
    with epoch_reporter(10, 0, BEST) as report:
        assert report is None
    assert log() == []


def test_a_log_names_the_best_epoch_of_the_best_replica(log):
    report_epochs(10)
    first, *_, last = log()
    assert first.startswith("epoch 1 of at most 10; ")
    assert last == "epoch 10 of at most 10; best so far: epoch 10, accuracy 90.0%, Pr without harm 45.0%"


@pytest.mark.parametrize(("max_epochs", "ran"), [(1, 1), (5, 5), (9, 9), (14, 14), (100, 100), (100, 33)])
def test_a_fit_of_any_length_writes_a_few_lines(log, max_epochs, ran):
    report_epochs(max_epochs, ran)
    epochs = [int(re.match(r"epoch (\d+) of", line)[1]) for line in log()]
    assert epochs[0] == 1
    assert len(epochs) == len(set(epochs)) <= 6


def test_a_terminal_shows_one_bar_and_no_lines(terminal):
    report_epochs(10, ran=4)
    screen = terminal()
    assert "training" in screen
    assert "4/10" in screen
    assert "best so far: epoch 4" in screen
    assert "of at most" not in screen
