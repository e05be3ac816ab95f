"""Where compiled programs are kept, and when they are not."""

from pathlib import Path

import jax
import pytest

from dafh.engine.compilation_cache import ENVIRONMENT_VARIABLE, cache_directory, enable_compilation_cache


@pytest.fixture
def directory():
    """The directory that JAX uses; none at first, and the one from before at the end."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield lambda: jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "False"])
def test_a_word_turns_the_cache_off(monkeypatch, directory, word):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, word)
    enable_compilation_cache()
    assert directory() is None


def test_by_default_every_kind_of_processor_has_a_directory_of_its_own(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    first = cache_directory()
    monkeypatch.setattr("platform.machine", lambda: "another machine")
    assert first.parent.name == "compiled"
    assert cache_directory() != first
    assert cache_directory().parent == first.parent


def test_a_directory_may_be_named_and_is_made(monkeypatch, tmp_path, directory):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "new" / "cache"))
    enable_compilation_cache()
    assert directory() == str(tmp_path / "new" / "cache")
    assert Path(directory()).is_dir()


def test_a_directory_that_cannot_be_made_is_done_without(monkeypatch, tmp_path, directory):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "file" / "cache"))
    enable_compilation_cache()
    assert directory() is None


def test_a_directory_that_the_program_has_chosen_is_left_alone(monkeypatch, tmp_path, directory):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "ours"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    enable_compilation_cache()
    assert directory() == str(tmp_path / "theirs")
