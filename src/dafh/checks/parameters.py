"""What parameters of estimators and functions may be, and paths."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator

from dafh.exceptions import InputError
from dafh.text import shown


@dataclass(frozen=True)
class Allowed:
    """One kind of value that a parameter may have: in words, and as a test."""

    words: str
    holds: Callable[[Any], bool]


RandomState = int | np.random.RandomState | None
"""What a parameter `random_state` may be."""
Constraints = Mapping[str, tuple[Allowed, ...]]
"""What each parameter of an estimator may be: any of the kinds listed."""


def whole_number(least: int, most: float = np.inf) -> Allowed:
    """Allow whole numbers from `least` on, up to `most` where memory or time set a limit."""
    upper = "inf)" if most == np.inf else f"{most}]"
    # Beyond 64 bits no library below can count.
    return Allowed(
        f"an int in the range [{least}, {upper}",
        lambda value: is_whole(value) and least <= value <= min(most, 2**63),
    )


def number(low: float, high: float = np.inf, *, closed: str = "neither") -> Allowed:
    """Allow numbers between two limits; `closed` says which of them are included: left, right or neither."""
    # The words of scikit-learn's own messages, which users know.
    left, right = "[" if closed == "left" else "(", "]" if closed == "right" else ")"

    def holds(value: Any) -> bool:
        return fits_float(value) and (
            low < value < high or (closed == "left" and value == low) or (closed == "right" and value == high)
        )

    return Allowed(f"a float in the range {left}{low:g}, {high:g}{right}", holds)


def one_of(*names: str) -> Allowed:
    """Allow a few words."""
    words = f"a str among {{{', '.join(map(repr, sorted(names)))}}}"
    return Allowed(words, lambda value: isinstance(value, str) and value in names)


def having(*methods: str) -> Allowed:
    """Allow objects with some methods, such as classifiers."""
    words = f"an object that has {', '.join(map(repr, methods))}"
    return Allowed(words, lambda value: all(callable(getattr(value, method, None)) for method in methods))


def instance_of(kind: type) -> Allowed:
    """Allow objects of a class."""
    return Allowed(f"an instance of {kind.__name__}", lambda value: isinstance(value, kind))


def sequence_of(kind: Allowed, words: str, most: float = np.inf) -> Allowed:
    """Allow sequences whose members are all of one kind, and no more than `most` of them."""

    def holds(value: Any) -> bool:
        try:
            # What can be gone through only once, such as a generator, would be used up by this check. A sparse matrix
            # seems to have a length, and has none.
            listed = np.iterable(value) and not isinstance(value, str) and len(cast(Any, value)) <= most
        except TypeError:
            return False
        return listed and all(kind.holds(member) for member in value)

    return Allowed(words, holds)


NOTHING = Allowed("None", lambda value: value is None)
RANDOM_STATE = Allowed(
    "an int from 0 to 2**32 - 1, a numpy.random.RandomState or None",
    lambda value: value is None or isinstance(value, np.random.RandomState) or (is_whole(value) and 0 <= value < 2**32),
)


def is_real(value: object) -> bool:
    """Whether a value is a number and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def fits_float(value: object) -> bool:
    """Whether a value is a number that a float can hold: whole numbers of 400 digits are too large for one."""
    try:
        return is_real(value) and not np.isnan(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def is_whole(value: object) -> bool:
    """Whether a value is a whole number and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_parameters(estimator: BaseEstimator, constraints: Constraints) -> None:
    """Refuse the first parameter of an estimator that is none of what it may be."""
    for name, kinds in constraints.items():
        value = getattr(estimator, name)
        if not any(kind.holds(value) for kind in kinds):
            *others, last = (kind.words for kind in kinds)
            allowed = f"{', '.join(others)} or {last}" if others else last
            raise InputError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {allowed}. Got {shown(value)} instead."
            )


def check_path(path: object) -> Path:
    """Take a path as `pathlib` does; refuse what is none."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"A path must be text or a pathlib.Path, got {shown(path)}.")
    return Path(path)
