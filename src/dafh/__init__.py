"""Fairness without harm, without demographics.

Find the groups that one shared model serves badly, give each a classifier it would choose for itself, and show that
nobody was made worse off. Public names are loaded when first used, so that ``import dafh`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dafh.auditing import AuditResult, audit
    from dafh.classifier import DAFHClassifier
    from dafh.decoupled import DecoupledClassifier
    from dafh.explaining import Explanation, explain
    from dafh.persistence import load, save
    from dafh.preference import PreferenceMatrix
    from dafh.tabular import tabular_pipeline

__version__ = "0.1.0.dev0"

__all__ = [
    "AuditResult",
    "DAFHClassifier",
    "DecoupledClassifier",
    "Explanation",
    "PreferenceMatrix",
    "audit",
    "explain",
    "load",
    "save",
    "tabular_pipeline",
]

_HOME = {
    "AuditResult": "dafh.auditing",
    "DAFHClassifier": "dafh.classifier",
    "DecoupledClassifier": "dafh.decoupled",
    "Explanation": "dafh.explaining",
    "PreferenceMatrix": "dafh.preference",
    "audit": "dafh.auditing",
    "explain": "dafh.explaining",
    "load": "dafh.persistence",
    "save": "dafh.persistence",
    "tabular_pipeline": "dafh.tabular",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dafh' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
