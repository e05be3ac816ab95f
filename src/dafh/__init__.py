"""Fairness without harm, without demographics.

Find groups that a single model serves badly, train a classifier for each, and test that no group is worse off. Public
names are loaded when first used, so that ``import dafh`` costs nothing.

The rooms of the package, from the command line down to statistics, are listed in CONTRIBUTING.md; the docstring of each
folder says what lives there and where to add the next thing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dafh.columns.encoder import tabular_pipeline
    from dafh.estimators.dafh import DAFHClassifier
    from dafh.estimators.decoupled import DecoupledClassifier
    from dafh.evaluation.audit import AuditResult, audit
    from dafh.evaluation.compare import Comparison, compare
    from dafh.evaluation.failures import Failures, find_failures
    from dafh.evaluation.matrix import PreferenceMatrix
    from dafh.explanation import Explanation, explain
    from dafh.groups.recipe import Recipe
    from dafh.incumbents import Incumbent, IncumbentColumns
    from dafh.linear.scorecard import Scaling, Scorecard
    from dafh.monitor.monitor import Monitor
    from dafh.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AuditResult",
    "Comparison",
    "DAFHClassifier",
    "DecoupledClassifier",
    "Explanation",
    "Failures",
    "Incumbent",
    "IncumbentColumns",
    "Monitor",
    "PreferenceMatrix",
    "Recipe",
    "Scaling",
    "Scorecard",
    "audit",
    "compare",
    "explain",
    "find_failures",
    "load",
    "save",
    "tabular_pipeline",
]

_HOME = {
    "AuditResult": "dafh.evaluation.audit",
    "Comparison": "dafh.evaluation.compare",
    "DAFHClassifier": "dafh.estimators.dafh",
    "DecoupledClassifier": "dafh.estimators.decoupled",
    "Explanation": "dafh.explanation",
    "Failures": "dafh.evaluation.failures",
    "Incumbent": "dafh.incumbents",
    "IncumbentColumns": "dafh.incumbents",
    "Monitor": "dafh.monitor.monitor",
    "PreferenceMatrix": "dafh.evaluation.matrix",
    "Recipe": "dafh.groups.recipe",
    "Scaling": "dafh.linear.scorecard",
    "Scorecard": "dafh.linear.scorecard",
    "audit": "dafh.evaluation.audit",
    "compare": "dafh.evaluation.compare",
    "explain": "dafh.explanation",
    "find_failures": "dafh.evaluation.failures",
    "load": "dafh.persistence",
    "save": "dafh.persistence",
    "tabular_pipeline": "dafh.columns.encoder",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dafh' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
