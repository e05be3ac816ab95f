"""Arm the library of faults in this process, which must have been started with it."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")
COUNT, KILL, FULL = 1, 2, 3
_VARIABLE = "LD_PRELOAD"


def can_be_made():
    return os.uname().sysname == "Linux" and shutil.which("cc") is not None


def compiled(folder):
    """Compile the library into a folder; return the environment of a process that has it."""
    made = Path(folder) / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, _VARIABLE: str(made), "OMP_NUM_THREADS": "1"}


def arm(kind, at, folder):
    """From now on, count changes below a folder; kill within one of them, or let the disk be full after some bytes."""
    # Processes that this one starts are not meant.
    os.environ.pop(_VARIABLE, None)
    tempfile.tempdir = None
    ctypes.CDLL(None).dafh_arm(ctypes.c_int(kind), ctypes.c_long(at), os.fsencode(folder))


def seen():
    """Changes and bytes since it was armed."""
    library = ctypes.CDLL(None)
    library.dafh_calls.restype = library.dafh_bytes.restype = ctypes.c_long
    return library.dafh_calls(), library.dafh_bytes()
