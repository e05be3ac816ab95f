"""Scikit-learn's own checks, for every public estimator: a new one cannot be left out."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import dafh

# Small where that changes nothing about the contract; everything else at its default.
NETWORK = dafh.DAFHClassifier(method="network", recipe=dafh.Recipe(n_replicas=2, max_epochs=10))
# These learn nothing from the arrays that the checks pass: one reads columns by name, the other needs a fitted model.
NOT_FOR_ARRAYS = {"Incumbent", "IncumbentColumns"}


def public_estimators():
    public = (getattr(dafh, name) for name in dafh.__all__ if name not in NOT_FOR_ARRAYS)
    return [
        item() for item in public if isinstance(item, type) and issubclass(item, BaseEstimator) and hasattr(item, "fit")
    ]


def first_variants_fast(checks):
    """Leave to `make slow` what differs from another check in the memory or in the class of the same rows only."""
    names, pairs = checks.args
    cases = [pytest.param(*pair, marks=pytest.mark.slow if is_variant(pair[1]) else ()) for pair in pairs]
    return pytest.mark.parametrize(names, cases, ids=checks.kwargs["ids"])


def is_variant(check):
    return "readonly_memmap" in check.keywords or check.func.__name__ in (
        "check_estimator_sparse_matrix",
        "check_sample_weight_equivalence_on_sparse_data",
    )


# On the checks' tiny and easy data the groups often are the label, and saying so is right.
@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@first_variants_fast(parametrize_with_checks(public_estimators()))
def test_scikit_learn_check(estimator, check):
    check(estimator)


# Each of them trains a network: a minute in all.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
@parametrize_with_checks([NETWORK])
def test_scikit_learn_check_of_networks(estimator, check):
    check(estimator)


def test_the_list_of_public_estimators_is_not_empty():
    assert {type(estimator).__name__ for estimator in public_estimators()} >= {"DAFHClassifier", "DecoupledClassifier"}
