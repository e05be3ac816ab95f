"""The command line itself: help that is true, exit codes that scripts can rely on, errors in one sentence."""

import re
import shlex
import warnings

import click
import pytest
from click.testing import CliRunner

from command_line import run
from dafh.cli import main
from dafh.cli.output import OneSentence, print_json
from dafh.exceptions import DAFHWarning, InputError


def all_commands(group=main, path=()):
    """Every command with the words that call it, those of groups included."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))


COMMANDS = dict(all_commands())
IDS = [" ".join(path) for path in COMMANDS]


def examples():
    """Every example of every help text, as typed."""
    lines = [command.epilog.removeprefix("Example: ") for command in COMMANDS.values()]
    return [*lines, *re.findall(r"^ +(dafh .*)", main.help, flags=re.M)]


# ---- help ----


@pytest.mark.parametrize("example", examples())
def test_examples_can_be_typed_as_they_are(example):
    words = shlex.split(example.split(">>")[0])
    assert words.pop(0) == "dafh"
    group, parent = main, click.Context(main, info_name="dafh", **main.context_settings)
    while isinstance(group, click.Group):
        _, group, words = group.resolve_command(parent, words)
    # Refuses unknown options, bad values and missing arguments.
    assert not group.make_context(group.name, words, parent=parent).args


@pytest.mark.parametrize(("path", "command"), COMMANDS.items(), ids=IDS)
def test_an_example_is_one_of_the_command_itself(path, command):
    assert command.epilog.startswith(f"Example: dafh {' '.join(path)}")


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_help_says_what_every_option_does(path):
    text = run(*path, "--help").stdout
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help.endswith((".", "]")), parameter.name
            assert parameter.opts[-1] in text


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_help_fits_a_terminal_and_has_no_stray_markup(path):
    text = run(*path, "--help", terminal_width=80).stdout
    assert max(map(len, text.splitlines())) <= 100
    assert "\b" not in text
    assert run(*path, "-h").stdout == run(*path, "--help").stdout


def test_commands_are_listed_in_the_order_of_their_use():
    listed = re.findall(r"^  (\w+)  ", run("--help").stdout.split("Commands:")[1], flags=re.M)
    assert listed == list(main.commands)
    assert listed.index("fit") < listed.index("predict") < listed.index("audit") < listed.index("report")


def test_options_that_commands_share_mean_the_same_everywhere():
    shared = {}
    for name in ("audit", "explain", "report"):
        for parameter in main.commands[name].params:
            if isinstance(parameter, click.Option) and parameter.name != "out":
                shared.setdefault(parameter.name, set()).add((parameter.help, str(parameter.default)))
    assert {name: len(texts) for name, texts in shared.items()} == dict.fromkeys(shared, 1)
    assert {"sensitive", "target", "margin", "as_json"} <= set(shared)


def test_fit_has_few_options_for_what_a_user_decides():
    options = [parameter.name for parameter in main.commands["fit"].params if isinstance(parameter, click.Option)]
    assert " ".join(options) == (
        "target out drop categories sensitive person time weight groups method pooled guard costs test_size seed"
    )


# ---- usage ----


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_unknown_options_are_refused_by_every_command(path):
    result = run(*path, "--no-such-option")
    assert result.exit_code == 2
    assert re.search("No such option.*--no-such-option", result.stderr)
    assert result.stdout == ""


def test_a_misspelt_option_gets_a_suggestion_and_a_misspelt_command_an_error():
    assert re.search("Did you mean '?--target", run("fit", "x.csv", "--targt", "y").stderr)
    result = run("adit")
    assert result.exit_code == 2
    assert "No such command 'adit'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "x.csv"], "Missing option '--target'"),
        (["fit", "--target", "y"], "Missing argument 'DATA'"),
        (["predict", "m.dafh"], "Missing argument 'DATA'"),
        (["fit", "x.csv", "--target", "y", "--groups", "0"], "0 is not in the range 1<=x<=50"),
        (["fit", "x.csv", "--target", "y", "--groups", "-1"], "-1 is not in the range 1<=x<=50"),
        (["fit", "x.csv", "--target", "y", "--groups", "51"], "51 is not in the range 1<=x<=50"),
        (["fit", "x.csv", "--target", "y", "--groups", "many"], "'many' is neither a number from 1 to 50 nor auto"),
        (["fit", "x.csv", "--target", "y", "--method", "sex"], "'sex' is not one of 'exceptions', 'network'"),
        (["fit", "x.csv", "--target", "y", "--test-size", "1"], "1.0 is not in the range 0<=x<=0.9"),
        (["fit", "x.csv", "--target", "y", "--guard", "hope"], "'hope' is not one of 'evidence', 'proof', 'none'"),
        (["audit", "m.dafh", "x.csv", "--margin", "1"], "1.0 is not in the range 0<=x<1"),
    ],
)
def test_values_out_of_range_are_refused_before_any_file_is_opened(arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error:")]) == 1


# ---- errors ----


class OddWarning(UserWarning):
    pass


def failing(error, *options):
    """Run a command that fails in some way within a group like that of dafh."""

    @click.group(cls=OneSentence)
    @click.option("--debug", is_flag=True)
    def group(debug):
        pass

    @group.command()
    def fail():
        warnings.warn("for users", DAFHWarning, stacklevel=1)
        warnings.warn("for developers", OddWarning, stacklevel=1)
        raise error

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        return CliRunner().invoke(group, [*options, "fail"])


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (InputError("Name the target."), 2, "dafh: Name the target."),
        (click.BadParameter("no good"), 2, "Error: Invalid value: no good"),
        (click.exceptions.Exit(1), 1, ""),
        (OSError(28, "No space left on device", "out.csv"), 2, "dafh: out.csv: No space left on device."),
        (OSError(5, "Input/output error"), 2, "dafh: Input/output error."),
        (MemoryError(), 2, "dafh: There is not enough memory for this"),
        (KeyboardInterrupt(), 130, "dafh: interrupted."),
        (click.Abort(), 130, "dafh: interrupted."),
        (ZeroDivisionError("by\n zero"), 70, "dafh: unexpected error, please report it: ZeroDivisionError: by zero"),
        (OSError("odd"), 70, "dafh: unexpected error, please report it: OSError: odd"),
        (AssertionError(), 70, "dafh: unexpected error, please report it: AssertionError:"),
    ],
)
def test_every_error_is_one_sentence_with_its_exit_code(error, code, sentence):
    result = failing(error)
    assert result.exit_code == code
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_our_own_warnings_are_notes_and_those_of_libraries_are_not_shown():
    assert failing(click.exceptions.Exit(0)).stderr == "Note: for users\n"


@pytest.mark.parametrize(
    ("error", "code"), [(ZeroDivisionError("by zero"), 70), (OSError(28, "full"), 2), (InputError("no"), 2)]
)
def test_those_who_ask_for_a_traceback_get_it_with_the_same_sentence_and_exit_code(error, code):
    asked, usual = failing(error, "--debug"), failing(error)
    assert asked.exit_code == usual.exit_code == code
    assert "Traceback" in asked.stderr
    assert asked.stderr.splitlines()[-1] == usual.stderr.splitlines()[-1]


def test_json_is_readable_and_never_holds_what_json_has_not(capsys):
    print_json({"name": "Köln", "n": 1.5})
    assert '"Köln"' in capsys.readouterr().out
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"n": float("nan")})
