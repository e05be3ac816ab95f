"""Commands run by cases: exit code 0 or 2, and for 2 one sentence."""

from command_line import run as run_command
from fuzz.cases import LONGEST_SENTENCE, NotRefusedWellError


class CommandFailedError(AssertionError):
    """A command ended in another way than with a result or a refusal."""


def run(*arguments: object) -> str:
    """Run a command, and return whether it accepted or refused its input."""
    result = run_command(*arguments)
    if result.exit_code not in (0, 2):
        # The command line has made a sentence of an exception, which says more about where to look.
        cause = result.exception.__context__ if isinstance(result.exception, SystemExit) else result.exception
        raise cause or CommandFailedError(f"exit code {result.exit_code}: {result.stderr[-600:]}")
    if "Traceback" in result.stderr:
        raise CommandFailedError(f"a traceback: {result.stderr[-600:]}")
    if result.exit_code == 2:
        sentences = [line for line in result.stderr.splitlines() if line.startswith(("dafh: ", "Error: "))]
        if len(sentences) != 1 or len(sentences[0]) > LONGEST_SENTENCE or len(sentences[0]) < 12:
            raise NotRefusedWellError(f"not one sentence: {result.stderr[-600:]!r}")
    return "accepted" if result.exit_code == 0 else "refused"
