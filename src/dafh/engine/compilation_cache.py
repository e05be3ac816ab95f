"""JAX's persistent compilation cache, switched on in the user's cache directory.

A new shape costs one to three seconds of compilation; with the cache, once per machine instead of once per process.
``DAFH_COMPILATION_CACHE`` names another directory, or is ``off``.
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
    """Where compiled programs are kept; None when the cache is off."""
    choice = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if choice.lower() in ("off", "0", "no", "false"):
        return None
    if choice:
        return Path(choice)
    return platformdirs.user_cache_path("dafh") / "compiled" / _processor_fingerprint()


def enable_compilation_cache() -> None:
    """Point JAX to the cache directory, unless the program has chosen one itself or the cache is off."""
    directory = cache_directory()
    if directory is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # A read-only home costs compilation time, not the fit.
    update: Any = jax.config.update
    update("jax_compilation_cache_dir", str(directory))
    # JAX by default keeps only what took a second to compile: our smaller programs add up to more than that.
    update("jax_persistent_cache_min_compile_time_secs", 0.0)
    update("jax_persistent_cache_min_entry_size_bytes", -1)


def _processor_fingerprint() -> str:
    """Tell processors apart: compiled code uses their instruction sets, and clusters share home directories."""
    description = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        description += next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        pass  # Not Linux: the machine's type has to do.
    return hashlib.sha256(description.encode()).hexdigest()[:12]
