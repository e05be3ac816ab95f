"""Keep compiled programs in JAX's persistent cache, in the user's cache directory.

Compiling for a new array shape takes one to three seconds. With the cache that happens once per machine instead of once
per process. The environment variable ``DAFH_COMPILATION_CACHE`` names another directory, or turns the cache off
(``off``).
"""

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax
import pooch

ENVIRONMENT_VARIABLE = "DAFH_COMPILATION_CACHE"


def cache_directory() -> Path | None:
    """Return the directory for compiled programs, or None if the cache is off or the user has no home."""
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if choice:
        return None if choice.lower() in ("off", "0", "no", "false") else Path(choice)
    # Machines of a cluster often share a home directory, and one must not run instructions of another's processor.
    processor = platform.machine() + platform.processor()
    if (description := Path("/proc/cpuinfo")).exists():
        lines = description.read_text().splitlines()
        processor += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    home = pooch.os_cache("dafh")
    return home / "compiled" / hashlib.sha256(processor.encode()).hexdigest()[:12] if home.is_absolute() else None


def enable_compilation_cache() -> None:
    """Point JAX to the cache directory, unless the cache is off or the calling program has already chosen one."""
    directory = cache_directory()
    if directory is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # With a read-only home directory, training compiles each time instead of failing.
    # JAX does not annotate this function, and strict type checking refuses calls of such functions.
    update: Any = jax.config.update
    update("jax_compilation_cache_dir", str(directory))
    # By default JAX keeps only programs that took a second or more to compile. Ours are smaller, but there are many.
    update("jax_persistent_cache_min_compile_time_secs", 0.0)
    update("jax_persistent_cache_min_entry_size_bytes", -1)
