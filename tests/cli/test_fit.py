"""What fit prints about the model it has fitted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from command_line import people, run
from dafh import load


@pytest.fixture(scope="module")
def fitted(folder):
    return load(folder / "model.dafh"), pd.read_parquet(folder / "model.test.parquet")


def lines(text):
    """The lines of the table of accuracy, as lists of words; names of two words are joined."""
    table = text[text.index("held-out rows") :].split("\n\n")[0].splitlines()[1:]
    return {" ".join(line.split()[:-3]): line.split()[-3:] for line in table}


def test_accuracy_auc_and_log_loss_are_those_of_the_test_rows(folder, fitted):
    model, rows = fitted
    truth = rows["hired"].astype(str)
    features = rows[list(model[0].feature_names_in_)]
    probability = model[-1].pooled_proba(model[:-1].transform(features))
    accuracy, auc, loss = lines((folder / "fit.txt").read_text())["pooled classifier"]
    labels = model.classes_[(probability[:, 1] > 0.5).astype(int)]
    assert accuracy == f"{accuracy_score(truth, labels):.1%}"
    assert auc == f"{roc_auc_score(truth, probability[:, 1]):.3f}"
    assert loss == f"{log_loss(truth, probability):.4f}"


def test_the_majority_class_stands_beside(folder, fitted):
    shares = fitted[1]["hired"].value_counts(normalize=True)
    entropy = -(shares * np.log(shares)).sum()
    assert lines((folder / "fit.txt").read_text())["majority class"] == [
        f"{shares.max():.1%}",
        "0.500",
        f"{entropy:.4f}",
    ]


def test_without_test_rows_fit_says_how_to_get_figures(tmp_path):
    people(120).to_csv(tmp_path / "people.csv", index=False)
    result = run("fit", tmp_path / "people.csv", "--target", "hired", "--out", tmp_path / "model.dafh")
    assert "held-out rows" not in result.stdout
    assert "with --test-size 0.25, fit sets rows aside" in result.stdout
