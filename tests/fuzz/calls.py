"""Calls of the Python interface with arguments that no caller should pass."""

import copy
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

import dafh
from dafh import DAFHClassifier, DecoupledClassifier, Incumbent, IncumbentColumns, Monitor, PreferenceMatrix, Recipe
from dafh.exceptions import DAFHError
from dafh.partitions import (
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
    RandomPartition,
    TreePartition,
)
from dafh.sql import to_sql
from fuzz.cases import Case, Kind, refused, without_parts

N = 60
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N, 3))
Y = (X[:, 0] + _RNG.normal(size=N) > 0).astype(int)
GROUPS = np.arange(N) % 2
PREDICTIONS = np.column_stack([Y, 1 - Y])
TABLE = pd.DataFrame({"age": X[:, 0], "job": np.where(GROUPS, "cook", "clerk"), "since": pd.Timestamp("2020-01-01")})
ATTRIBUTES = pd.DataFrame({"sex": np.where(GROUPS, "f", "m"), "born": np.where(np.arange(N) % 3, "here", "there")})
DIGITS = 10**400


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "0": lambda: 0,
    "-1": lambda: -1,
    "5": lambda: 5,
    "2.5": lambda: 2.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "True": lambda: True,
    "400 digits": lambda: DIGITS,
    "-400 digits": lambda: -DIGITS,
    "1e9": lambda: 10**9,
    "2**63": lambda: 2**63,
    "complex": lambda: 1j,
    "text": lambda: "abc",
    "empty text": lambda: "",
    "long text": lambda: "a" * 5000,
    "nul": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"abc",
    "empty list": lambda: [],
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "type": lambda: int,
    "function": lambda: len,
    "object": lambda: object(),
    "path": lambda: Path("/nowhere"),
    "list of None": lambda: [None] * N,
    "list of text": lambda: ["abc"] * N,
    "list of 400 digits": lambda: [DIGITS] * N,
    "mixed list": lambda: [1, "a", None, 2.5] * (N // 4),
    "ragged": lambda: [[1, 2], [3]] * (N // 2),
    "nested": lambda: _nested(50),
    "list of lists": lambda: [[1], [2]] * (N // 2),
    "list of dicts": lambda: [{"a": 1}] * N,
    "of dates": lambda: [pd.Timestamp(0)] * N,
    "zeros": lambda: np.zeros(N),
    "ones": lambda: np.ones(N, int),
    "halves": lambda: np.full(N, 0.5),
    "nans": lambda: np.full(N, np.nan),
    "infinite": lambda: np.full(N, np.inf),
    "huge": lambda: np.full(N, 1e308),
    "negative": lambda: -np.ones(N),
    "flags": lambda: GROUPS > 0,
    "whole": lambda: GROUPS.copy(),
    "large whole": lambda: GROUPS + 2**62,
    "uint8": lambda: GROUPS.astype(np.uint8),
    "texts": lambda: np.where(GROUPS, "a", "b"),
    "objects": lambda: np.array([object()] * N),
    "dates": lambda: np.full(N, "2020-01-01", "M8[D]"),
    "complex array": lambda: np.ones(N) * 1j,
    "structured": lambda: np.zeros(N, [("a", int)]),
    "few": lambda: np.zeros(3),
    "empty": lambda: np.zeros(0),
    "two columns": lambda: np.column_stack([GROUPS, GROUPS]),
    "no columns": lambda: np.zeros((N, 0)),
    "three dimensions": lambda: np.zeros((N, 2, 2)),
    "one row": lambda: np.zeros((1, 3)),
    "matrix": lambda: X.copy(),
    "matrix of nan": lambda: X * np.nan,
    "sparse": lambda: csr_matrix(X),
    "series": lambda: pd.Series(GROUPS, name="g"),
    "named by number": lambda: pd.Series(GROUPS, index=np.arange(N) + 500),
    "frame": lambda: TABLE.copy(),
    "frame of lists": lambda: pd.DataFrame({"a": [[1]] * N}),
    "frame of 400 digits": lambda: pd.DataFrame({"a": [DIGITS, 1] * (N // 2), "b": X[:, 0]}),
    "frame twice": lambda: pd.DataFrame(X, columns=["a", "a", "b"]),
    "frame without rows": lambda: TABLE[:0],
    "frame without columns": lambda: TABLE[[]],
    "frame of levels": lambda: pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])),
    "frame of odd names": lambda: pd.DataFrame(X, columns=["\0given a", "", "a" * 5000]),
    "frame of none": lambda: pd.DataFrame({None: GROUPS, 1.5: GROUPS}),
    "frame of objects": lambda: pd.DataFrame({"a": [object()] * N}),
    "frame of periods": lambda: pd.DataFrame({"a": pd.period_range("2020", periods=N)}),
    "frame of intervals": lambda: pd.DataFrame({"a": pd.cut(X[:, 0], 3)}),
    "categorical": lambda: pd.Categorical(np.where(GROUPS, "a", "b")),
    "masked": lambda: np.ma.masked_array(GROUPS, GROUPS > 0),
    "attributes": lambda: ATTRIBUTES.copy(),
    "classifier": lambda: DAFHClassifier(),
    "fitted": lambda: copy.deepcopy(fitted()),
    "pair": lambda: ("a", "b"),
    "names": lambda: ["sex"],
    "unknown names": lambda: ["shoe"],
    "error": lambda: "error",
    "losses": lambda: ["error", "shoe"],
    "costs": lambda: {"fp": 1, "fn": 5},
    "odd costs": lambda: {"fp": -1, "fn": "a"},
    "costs of 400 digits": lambda: {"fp": DIGITS, "fn": 1},
    "small": lambda: 1e-300,
    "half": lambda: 0.5,
    "rows of nothing": lambda: [[]] * N,
}
"""Values by name, made anew for every case."""


@functools.cache
def fitted() -> Any:
    """A quick model of numbers."""
    return DecoupledClassifier(RandomPartition(2, random_state=0), random_state=0).fit(X, Y)


@functools.cache
def fitted_rules() -> Any:
    """A quick model of a table."""
    return DAFHClassifier(2, groups="rules", pooled="linear", random_state=0).fit(TABLE, Y)


def _quick(**settings: Any) -> DAFHClassifier:
    return DAFHClassifier(**{"n_groups": 2, "groups": "rules", "pooled": "linear", "random_state": 0, **settings})


def _saved(path: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        name = Path(folder) / "m.dafh" if isinstance(path, np.ndarray) else path
        # A name of a file goes into the folder; what is none is passed as it is.
        is_name = isinstance(name, str) and 0 < len(name) < 100 and "\0" not in name
        dafh.save(fitted(), Path(folder) / name if is_name else name)


def _monitored(**settings: Any) -> Monitor:
    about = {
        name: settings.pop(name)
        for name in ("level", "losses", "costs", "largest_weight", "run_length")
        if name in settings
    }
    more = {name: settings.pop(name) for name in ("drift_margin", "reference") if name in settings}
    monitor = Monitor(settings.pop("model", fitted()), **about, **more)
    monitor.update(X, Y)
    monitor.update(settings.pop("X"), settings.pop("y"), **settings)
    str(monitor)
    return monitor


def _labelled(ids: Any, y: Any) -> None:
    monitor = Monitor(copy.deepcopy(fitted()))
    monitor.update(X, None, ids=np.arange(N))
    monitor.label(ids, y)


def _of_recipe(**settings: Any) -> None:
    _quick(groups="network", recipe=Recipe(**{"max_epochs": 1, "n_replicas": 1, **settings})).fit(X, Y)


def _divided(partition: Any, sensitive_features: Any = None) -> None:
    model = DecoupledClassifier(partition, random_state=0).fit(X, Y, sensitive_features=sensitive_features)
    model.predict(X, sensitive_features)


GOOD = {"X": X, "y": Y}
OF_AUDIT = {"y": Y, "predictions": PREDICTIONS, "groups": GROUPS, "pooled": Y}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
    "audit": (
        dafh.audit,
        OF_AUDIT,
        ("sensitive_features", "sample_weight", "persons", "losses", "costs", "level", "margin", "depth", "own"),
    ),
    "audit of one": (dafh.audit, OF_AUDIT | {"predictions": Y}, ("sensitive_features", "own")),
    "audit of names": (
        dafh.audit,
        OF_AUDIT | {"predictions": {"a": Y, "b": Y}, "groups": np.where(GROUPS, "a", "b")},
        (),
    ),
    "matrix": (PreferenceMatrix.from_predictions, OF_AUDIT, ("own", "sample_weight")),
    "matrix of": (PreferenceMatrix.of, {"model": None, **GOOD}, ("sensitive_features", "sample_weight")),
    "explain": (dafh.explain, {"model": None, "X": X}, ("sensitive_features",)),
    "save": (_saved, {"path": X}, ()),
    "load": (dafh.load, {"path": "/nowhere"}, ("trusted",)),
    "scorer": (lambda path: dafh.Scorer(path)(TABLE), {"path": "/nowhere"}, ()),
    "monitor": (
        _monitored,
        GOOD,
        (
            "model",
            "level",
            "losses",
            "costs",
            "largest_weight",
            "run_length",
            "drift_margin",
            "reference",
            "sensitive_features",
            "sample_weight",
            "persons",
            "ids",
            "name",
        ),
    ),
    "label": (_labelled, {"ids": np.arange(N), "y": Y}, ()),
    "fit": (
        lambda **given: _quick().fit(given.pop("X"), given.pop("y"), **given),
        GOOD,
        ("sample_weight", "guard_features", "persons", "time"),
    ),
    "fit table": (
        lambda **given: _quick().fit(given.pop("X"), given.pop("y"), **given),
        GOOD | {"X": TABLE},
        ("sample_weight", "guard_features", "persons", "time"),
    ),
    "settings": (
        lambda **given: _quick(**given).fit(X, Y),
        {},
        ("n_groups", "groups", "pooled", "guard", "guard_losses", "costs", "threshold", "random_state", "recipe"),
    ),
    "recipe": (
        _of_recipe,
        {},
        tuple(name for name in Recipe().get_params() if name not in ("max_epochs", "n_replicas")),
    ),
    "recalibrate": (
        lambda **given: copy.deepcopy(fitted_rules()).recalibrate(given.pop("X"), given.pop("y"), **given),
        {"X": TABLE, "y": Y},
        ("sample_weight", "guard_features", "persons"),
    ),
    "predict": (lambda X: fitted_rules().predict(X), {"X": TABLE}, ()),
    "predict_proba": (lambda X: fitted().predict_proba(X), {"X": X}, ()),
    "predict_all": (lambda X: fitted_rules().predict_all(X), {"X": TABLE}, ()),
    "scorecard": (
        lambda n_bins, X, y: dafh.Scorecard(n_bins).fit(X, y).predict(X),
        {"n_bins": 8, "X": TABLE, "y": Y},
        (),
    ),
    "random": (lambda n: _divided(RandomPartition(n)), {"n": 2}, ()),
    "clusters": (lambda n: _divided(ClusterPartition(n)), {"n": 2}, ()),
    "tree": (lambda **given: _divided(TreePartition(), **given), {"sensitive_features": ATTRIBUTES}, ()),
    "pooled": (lambda **given: _divided(PooledPartition(), **given), {}, ("sensitive_features",)),
    "attribute": (
        lambda name, **given: _divided(AttributePartition(name), **given),
        {"name": "sex", "sensitive_features": ATTRIBUTES},
        (),
    ),
    "intersection": (
        lambda names, **given: _divided(IntersectionPartition(names), **given),
        {"names": ["sex"], "sensitive_features": ATTRIBUTES},
        (),
    ),
    "decoupled": (
        lambda **given: DecoupledClassifier(**given).fit(X, Y),
        {},
        ("partition", "estimator", "guard", "random_state"),
    ),
    "tabular": (
        lambda model, X, y: dafh.tabular_pipeline(model).fit(X, y).predict(X),
        {"model": _quick(), "X": TABLE, "y": Y},
        (),
    ),
    "incumbent": (
        lambda model, **given: _quick(pooled=Incumbent(model, **given)).fit(X, Y),
        {"model": None},
        ("labels", "columns", "only"),
    ),
    "incumbent columns": (
        lambda **given: _quick(pooled=IncumbentColumns(**given)).fit(TABLE, Y),
        {"score": "age"},
        ("decision", "threshold"),
    ),
    "to_sql": (to_sql, {"model": None}, ("dialect", "table", "schema", "keep", "notes")),
}
"""Function, arguments that are good, and names of more arguments."""


def draw(rng: np.random.Generator) -> Case:
    """Draw a call and the arguments that are odd."""
    name = str(rng.choice(list(CALLS)))
    _, good, more = CALLS[name]
    names = [*good, *more]
    chosen = rng.choice(names, min(int(rng.choice([1, 1, 1, 2, 3])), len(names)), replace=False)
    return {"call": name, "odd": [[str(argument), str(rng.choice(list(ODD)))] for argument in chosen]}


def run_case(case: Case, folder: Path) -> str:
    """Call it; refusals are errors of ours, or those of scikit-learn's own checks."""
    function, good, _ = CALLS[case["call"]]
    model = fitted_rules() if case["call"] == "to_sql" else fitted()
    arguments = {name: model if name == "model" and value is None else value for name, value in good.items()}
    arguments |= {name: ODD[value]() for name, value in case["odd"]}
    try:
        str(function(**copy.deepcopy(arguments)))
    except DAFHError as error:
        return refused(error)
    except (ValueError, TypeError, NotFittedError) as error:
        if not _is_of_scikit_learn(error):
            raise
        return "refused"
    return "accepted"


def _is_of_scikit_learn(error: BaseException) -> bool:
    """Whether the last line of Python that an error went through is one of scikit-learn's checks."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and "sklearn" in Path(at.tb_frame.f_code.co_filename).parts


def smaller(case: Case) -> Iterator[Case]:
    """Leave out odd arguments."""
    for odd in without_parts(case["odd"]):
        if odd:
            yield case | {"odd": odd}


CALLS_KIND = Kind("calls", draw, run_case, smaller)
