"""dafh completion: a script for the shell."""

import click


@click.command(epilog="Example: dafh completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell completion script."""
    from click.shell_completion import get_completion_class

    from dafh.cli import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "dafh", "_DAFH_COMPLETE").source())
