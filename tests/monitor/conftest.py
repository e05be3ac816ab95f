"""Fixtures for monitors."""

import pytest

from watched import fresh_model


@pytest.fixture(scope="session")
def model():
    """Not to be changed."""
    return fresh_model()
