"""Where compiled programs are kept, and when they are not."""

from pathlib import Path

import jax
import pytest

from dafh.engine.compilation_cache import ENVIRONMENT_VARIABLE, cache_directory, enable_compilation_cache


@pytest.fixture
def told(monkeypatch):
    """What JAX is told, none of which takes effect; it has no cache directory yet."""
    before, told = jax.config.jax_compilation_cache_dir, {}
    jax.config.update("jax_compilation_cache_dir", None)
    with monkeypatch.context() as patch:
        patch.setattr(jax.config, "update", told.__setitem__)
        yield told
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "False"])
def test_a_word_turns_the_cache_off(monkeypatch, word):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, word)
    assert cache_directory() is None


def test_another_directory_may_be_named(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/some/where")
    assert cache_directory() == Path("/some/where")


def test_by_default_every_kind_of_processor_has_a_directory_of_its_own(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    first, again = cache_directory(), cache_directory()
    monkeypatch.setattr("platform.machine", lambda: "another machine")
    assert first == again
    assert first.parent.name == "compiled"
    assert cache_directory() != first
    assert cache_directory().parent == first.parent


def test_the_directory_is_made_and_small_programs_are_kept_too(monkeypatch, tmp_path, told):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "new" / "cache"))
    enable_compilation_cache()
    assert (tmp_path / "new" / "cache").is_dir()
    assert told == {
        "jax_compilation_cache_dir": str(tmp_path / "new" / "cache"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }


def test_a_directory_that_cannot_be_made_is_done_without(monkeypatch, tmp_path, told):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "file" / "cache"))
    enable_compilation_cache()
    assert told == {}


def test_nothing_is_changed_where_the_cache_is_off(monkeypatch, told):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "off")
    enable_compilation_cache()
    assert told == {}


def test_a_directory_that_the_program_has_chosen_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "ours"))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    try:
        enable_compilation_cache()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
