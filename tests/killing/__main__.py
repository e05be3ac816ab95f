"""``python -m killing``: run the trials in a process that has the library of faults."""

import subprocess
import sys
import tempfile

from killing import faults

if not faults.can_be_made():
    sys.exit("Faults need Linux and a C compiler.")
with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "killing.trials", *sys.argv[1:]]
    sys.exit(subprocess.run(command, env=faults.compiled(folder), check=False).returncode)
