"""What is raised on purpose: one tree, and messages that survive a pickle."""

import inspect
import pickle

import pytest

from dafh import exceptions
from dafh.exceptions import DAFHError, DAFHWarning


def public_exceptions():
    return [thing for _, thing in inspect.getmembers(exceptions, inspect.isclass)]


@pytest.mark.parametrize("kind", public_exceptions(), ids=lambda kind: kind.__name__)
def test_everything_raised_on_purpose_has_one_base_and_is_in_the_tree(kind):
    assert issubclass(kind, DAFHError | DAFHWarning)
    assert kind.__name__ in exceptions.__doc__
    standard = {"InputError": ValueError, "DataNotFoundError": OSError}.get(kind.__name__, object)
    assert issubclass(kind, standard)


@pytest.mark.parametrize("kind", public_exceptions(), ids=lambda kind: kind.__name__)
def test_messages_survive_the_way_between_processes(kind):
    copy = pickle.loads(pickle.dumps(kind("what to change")))
    assert type(copy) is kind
    assert str(copy) == "what to change"
