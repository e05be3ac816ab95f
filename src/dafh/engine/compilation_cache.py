"""Turn on JAX's persistent compilation cache, in the user's cache directory.

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
import platformdirs

ENVIRONMENT_VARIABLE = "DAFH_COMPILATION_CACHE"


def cache_directory() -> Path | None:
    """Return the directory for compiled programs, or None if the cache is off."""
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if choice.lower() in ("off", "0", "no", "false"):
        return None
    if choice:
        return Path(choice)
    home = platformdirs.user_cache_path("dafh")
    # Without a home folder this is "~/.cache", and would become a folder called "~" in the working folder.
    return home / "compiled" / _processor_fingerprint() if home.is_absolute() else None


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


def _processor_fingerprint() -> str:
    """Identify the kind of processor.

    Compiled code uses the instruction set of the machine that compiled it, and the machines of a cluster often share a
    home directory: without this, one would load code that another cannot run.
    """
    description = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        description += next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        pass  # Not Linux: the type of machine is all there is.
    return hashlib.sha256(description.encode()).hexdigest()[:12]
