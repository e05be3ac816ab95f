"""Make the golden record, and compare it with what is kept.

    python tests/golden/record.py          compare, and print what differs
    python tests/golden/record.py --write  keep what the code does now

A change of behaviour is recorded in the commit that makes it, so that the difference can be read there.
"""

import difflib
import json
import os
import re
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np
from click.testing import CliRunner

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from golden.worlds import MADE_UP, World  # noqa: E402

DATA_SETS = {
    "german": ("--drop", "age"),
    "arrest": ("--pooled", "linear"),
    "violent": ("--method", "exceptions"),
    "bank": ("--method", "exceptions", "--groups", "3", "--pooled", "linear"),
    "adult": ("--method", "exceptions", "--groups", "3", "--pooled", "linear"),
}
ROWS_OF_DATA_SETS = 2_000
PROBABILITY_TOLERANCE = 2e-4
_DIFFERENT_EACH_TIME = {
    r"\d+(\.\d+)? s\b": "N s",
    r"[\d,]+ rows/s": "N rows/s",
    r"(?m)^(Written|Libraries|Checksum): .*\n": "",
    r"[ \t]+\n": "\n",
}


def data_set(name):
    """Some rows of one of the paper's data sets; None where the raw file is not at hand."""
    from dafh import datasets

    if not os.environ.get("DAFH_DATA"):
        return None
    data = getattr(datasets, f"fetch_{name}")()
    table = data.X.assign(target=np.asarray(data.y))
    kept = np.random.default_rng(0).permutation(len(table))[:ROWS_OF_DATA_SETS]
    return World(table.iloc[np.sort(kept)], DATA_SETS[name], target="target")


def worlds():
    yield from ((make.__name__, make) for make in MADE_UP)
    yield from ((name, lambda name=name: data_set(name)) for name in DATA_SETS)


def run(*arguments):
    """The words of a command, without what differs from run to run."""
    from dafh.cli import main

    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    words = result.stdout if "--json" in arguments else result.output
    for pattern, replacement in _DIFFERENT_EACH_TIME.items():
        words = re.sub(pattern, replacement, words)
    return words, result.exit_code


def record(world):
    """Words and figures of a model that is fitted on one part of a table and judged on the other."""
    import pandas as pd

    texts, folder = {}, Path(tempfile.mkdtemp())
    with chdir(folder):
        cut = len(world.table) * 2 // 3 if "--time" in world.arguments else None
        order = np.arange(len(world.table)) if cut else np.random.default_rng(1).permutation(len(world.table))
        cut = cut or len(world.table) * 2 // 3
        world.table.iloc[np.sort(order[:cut])].to_csv("rows.csv", index=False, **world.csv)
        world.table.iloc[np.sort(order[cut:])].to_csv("test.csv", index=False, **world.csv)
        commands = {
            "fit": ("fit", "rows.csv", "--target", world.target, *world.arguments),
            "predict": ("predict", "model.dafh", "test.csv", "--out", "scored.csv"),
            "audit": ("audit", "model.dafh", "test.csv", *world.audit),
            "explain": ("explain", "model.dafh", "test.csv"),
            "show": ("show", "model.dafh"),
            "json": ("audit", "model.dafh", "test.csv", "--json", *world.audit),
        }
        if world.every_command:
            commands |= {
                "report": ("report", "model.dafh", "test.csv"),
                "watch": ("watch", "model.dafh", "test.csv", "--state", "watch.db"),
                "export": ("export", "model.dafh", "--out", "model.sql"),
            }
        for name, command in commands.items():
            texts[name], code = run(*command)
            texts[name] = texts[name].replace(f"{folder}/", "")
            assert code == 0, texts[name]
        scored = pd.read_csv("scored.csv")
    audit = json.loads(texts.pop("json"))
    probability = [name for name in scored if name.startswith("probability")]
    figures = {
        "labels": "".join(str(label)[0] for label in scored["prediction"]),
        "groups": "".join(str(group) for group in scored["group"]),
        "probabilities": scored[probability].head(60).round(5).to_numpy().tolist(),
        "mean_probability": scored[probability].mean().round(5).tolist(),
        "audit": audit,
    }
    return texts, figures


def help_texts():
    """The help of every command."""
    from dafh.cli import main

    texts = {"--help": run("--help")[0]}
    for name, command in sorted(main.commands.items()):
        texts[f"{name} --help"] = run(name, "--help")[0]
        for part in sorted(getattr(command, "commands", ())):
            texts[f"{name} {part} --help"] = run(name, part, "--help")[0]
    return texts


def differences(name, made):
    """Lines that say how a record differs from the one that is kept."""
    texts, figures = made
    kept = json.loads((HERE / f"{name}.json").read_text())
    lines = []
    for part in ("labels", "groups"):
        unequal = sum(a != b for a, b in zip(figures[part], kept[part], strict=True))
        if unequal:
            lines.append(f"{name}: {part} of {unequal} of {len(kept[part])} rows differ")
    for part in ("probabilities", "mean_probability"):
        largest = np.abs(np.subtract(figures[part], kept[part])).max()
        if largest > PROBABILITY_TOLERANCE:
            lines.append(f"{name}: {part} differ by up to {largest:.5f}")
    lines += [f"{name}: audit {line}" for line in _unequal(figures["audit"], kept["audit"])]
    return lines + different_words(name, texts)


def different_words(name, texts):
    """Lines of words that differ from those that are kept."""
    kept = (HERE / f"{name}.txt").read_text().splitlines()
    return list(difflib.unified_diff(kept, as_text(texts).splitlines(), f"{name} kept", f"{name} now", "", "", 1, ""))


def _unequal(now, kept, path=""):
    if isinstance(kept, dict) and isinstance(now, dict):
        for key in sorted({*kept, *now}):
            yield from _unequal(now.get(key), kept.get(key), f"{path}/{key}")
    elif isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        for position, pair in enumerate(zip(now, kept, strict=True)):
            yield from _unequal(*pair, f"{path}/{position}")
    elif isinstance(kept, float) and isinstance(now, int | float):
        if not np.isclose(now, kept, rtol=1e-3, atol=1e-4):
            yield f"{path}: {kept} is now {now}"
    elif now != kept:
        yield f"{path}: {kept!r} is now {now!r}"


def as_text(texts):
    return "\n".join(f"$ dafh {name}\n{words}" for name, words in texts.items())


def main():
    if "--write" in sys.argv:
        (HERE / "help.txt").write_text(as_text(help_texts()))
    else:
        print("\n".join(different_words("help", help_texts())) or "help: equal")
    for name, make in worlds():
        if sys.argv[1:] and sys.argv[1:] != ["--write"] and name not in sys.argv[1:]:
            continue
        world = make()
        if world is None:
            print(f"{name}: no raw data")
            continue
        made = record(world)
        if "--write" in sys.argv:
            (HERE / f"{name}.txt").write_text(as_text(made[0]))
            (HERE / f"{name}.json").write_text(json.dumps(made[1]) + "\n")
        else:
            print("\n".join(differences(name, made)) or f"{name}: equal")


if __name__ == "__main__":
    main()
