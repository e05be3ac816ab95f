"""The numbers that the paper prints, in percent: the mean, and the standard deviation where it gives one.

The tables disagree with each other (Violent and Arrest at K = 2), so each table keeps its own values.
"""

from typing import NamedTuple


class Value(NamedTuple):
    """A printed number and the deviation printed beside it."""

    mean: float
    deviation: float | None = None


Cell = dict[str, Value]

# (data set, method) at K = 2
K2: dict[tuple[str, str], Cell] = {
    ("adult", "dafh"): {"pr": Value(90.70, 0.88), "accuracy": Value(83.36, 0.43)},
    ("adult", "trivial"): {"pr": Value(91.64, 0.86), "accuracy": Value(80.70, 0.51)},
    ("adult", "pooled"): {"accuracy": Value(81.29, 0.41)},
    ("arrest", "dafh"): {"pr": Value(87.05, 1.21), "accuracy": Value(65.72, 1.36)},
    ("arrest", "trivial"): {"pr": Value(78.60, 1.54), "accuracy": Value(62.01, 1.43)},
    ("arrest", "pooled"): {"accuracy": Value(63.84, 1.30)},
    ("violent", "dafh"): {"pr": Value(91.74, 1.49), "accuracy": Value(81.91, 1.53)},
    ("violent", "trivial"): {"pr": Value(91.14, 1.78), "accuracy": Value(79.88, 1.94)},
    ("violent", "pooled"): {"accuracy": Value(81.35, 1.58)},
    ("german", "dafh"): {"pr": Value(90.64, 1.65), "accuracy": Value(74.24, 0.82)},
    ("german", "trivial"): {"pr": Value(78.88, 2.42), "accuracy": Value(65.92, 1.51)},
    ("german", "pooled"): {"accuracy": Value(70.72, 0.93)},
    ("bank", "dafh"): {"pr": Value(97.71, 0.34), "accuracy": Value(90.20, 0.10)},
    ("bank", "trivial"): {"pr": Value(93.42, 0.72), "accuracy": Value(88.77, 0.55)},
    ("bank", "pooled"): {"accuracy": Value(88.91, 0.54)},
}


def _cells(*numbers: tuple[float, float, float, float]) -> list[Cell]:
    """Pr, its deviation, accuracy and its deviation, for K = 2, 3, 4."""
    return [{"pr": Value(pr, pr_sd), "accuracy": Value(acc, acc_sd)} for pr, pr_sd, acc, acc_sd in numbers]


# (data set, method): K = 2, 3, 4
CLUSTERING: dict[tuple[str, str], list[Cell]] = {
    ("adult", "dafh"): _cells((90.70, 0.88, 83.36, 0.43), (94.55, 1.31, 82.82, 0.17), (93.98, 0.47, 80.98, 0.54)),
    ("adult", "clustering"): _cells((88.79, 0.58, 82.90, 0.28), (87.43, 0.53, 82.83, 0.23), (86.00, 1.19, 82.59, 0.52)),
    ("arrest", "dafh"): _cells((87.05, 1.21, 65.72, 1.36), (88.06, 1.06, 65.82, 0.98), (88.78, 1.18, 65.77, 0.80)),
    ("arrest", "clustering"): _cells(
        (84.23, 1.43, 64.86, 0.89), (74.52, 2.43, 65.38, 0.81), (72.12, 1.84, 65.42, 0.38)
    ),
    ("violent", "dafh"): _cells((96.28, 0.53, 83.18, 1.53), (95.38, 1.24, 83.16, 1.69), (96.42, 0.68, 84.54, 0.74)),
    ("violent", "clustering"): _cells(
        (87.96, 2.68, 83.82, 1.36), (85.27, 1.82, 83.58, 1.56), (84.02, 1.58, 83.64, 1.54)
    ),
    ("german", "dafh"): _cells((90.64, 1.65, 74.24, 0.82), (90.00, 2.16, 76.00, 3.27), (89.12, 1.32, 73.52, 1.42)),
    ("german", "clustering"): _cells(
        (84.40, 1.12, 73.16, 2.38), (78.96, 2.43, 71.92, 1.51), (79.04, 2.05, 73.36, 1.69)
    ),
    ("bank", "dafh"): _cells((97.71, 0.34, 90.20, 0.10), (97.34, 0.32, 90.06, 0.28), (97.09, 0.23, 90.11, 0.30)),
    ("bank", "clustering"): _cells((90.18, 0.21, 88.92, 0.25), (89.67, 0.25, 89.07, 0.16), (89.29, 0.43, 88.84, 0.24)),
}

MANUAL: dict[str, Cell] = {
    "manual": {"pr": Value(81.39, 2.39), "accuracy": Value(62.54, 1.70)},
    "trivial": {"pr": Value(78.60, 1.54), "accuracy": Value(62.01, 1.43)},
    "dafh": {"pr": Value(85.72, 1.14), "accuracy": Value(64.72, 1.12)},
}


def _harm(violations: int, gain: float, envy: float, disparity: float, models: int) -> Cell:
    return {
        "violations": Value(violations),
        "max_gain": Value(gain),
        "max_envy_gap": Value(envy),
        "disparity_change": Value(disparity),
        "n_models": Value(models),
    }


# (data set, method); what the paper calls "min envy" is the largest envy gap
HARM: dict[tuple[str, str], Cell] = {
    ("adult", "trivial"): _harm(1, 2.9, 2.9, 0.6, 2),
    ("adult", "lr-all"): _harm(1, 17.6, 33.3, 0.4, 12),
    ("adult", "treelr"): _harm(0, 4.1, 11.8, -0.4, 7),
    ("adult", "dafh"): _harm(0, 11.11, 5.56, -2.91, 2),
    ("arrest", "trivial"): _harm(0, 7.7, 7.7, -0.1, 2),
    ("arrest", "lr-all"): _harm(3, 11.5, 15.4, 1.0, 6),
    ("arrest", "treelr"): _harm(1, 9.0, 12.8, -2.7, 4),
    ("arrest", "dafh"): _harm(0, 10.0, 30.0, -7.9, 2),
    ("violent", "trivial"): _harm(1, 9.3, 7.6, -9.7, 2),
    ("violent", "lr-all"): _harm(0, 13.6, 17.0, -14.0, 6),
    ("violent", "treelr"): _harm(2, 9.3, 7.6, -9.8, 2),
    ("violent", "dafh"): _harm(0, 10.61, 13.64, -10.29, 2),
}

# batch size, epochs, rate of the group classifier, rate of the classifiers, penalty
CHOSEN_SETTINGS: dict[str, tuple[int, int, float, float, float]] = {
    "adult": (1024, 3, 1e-3, 1e-2, 10.0),
    "arrest": (1024, 3, 1e-3, 1e-2, 10.0),
    "violent": (1024, 3, 1e-3, 1e-2, 10.0),
    "german": (256, 3, 1e-3, 1e-2, 100.0),
    "bank": (1024, 2, 1e-3, 1e-2, 10.0),
}
