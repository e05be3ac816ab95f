"""Hostile tables: bytes of a file, and a command that reads it."""

import gzip
import io
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from command_line import people
from command_line import run as run_command
from dafh.tables.footer import read_footer
from dafh.tables.parquet import ParquetTable
from fuzz.cases import Case, Kind, without_parts
from fuzz.commands import run
from fuzz.footers import forged

_CELLS = [
    "", " ", "?", "NA", "None", "null", "0", "-0", "1", "1.0", "01", "007", "1e308", "1e309", "-1e999", "inf",
    "-Infinity",
    "nan", "1_000", "1,000", "1.000,5", "7,5", "0x10", "٣", "9" * 400, "1" + "0" * 5000, "5e-324", "true", "FALSE",
    "TRUE",
    "yes", "2020-01-01", "0000-00-00", "9999-12-31", "1677-09-21", "10000-01-01", "31.2.2020",
    "2020-01-01T00:00:00+25:00",
    "=1+1", "@SUM(A1)", "-2+3", "a\nb", "a\rb", "a\r\n=b", 'a"b', '"', "'", ",", ";", "\t", "a\tb", "|", "\0", "a\0b",
    "\x1a", "\x7f", "\ufeff", "\u2028", "\u202e", "\U0001f98a", "é" * 50, "x" * 20_000, "<script>alert(1)</script>",
    "{{7*7}}", "${HOME}", "'; DROP TABLE people; --", "(missing)", "(other)", "pooled", "\\N", "\\", "%s%n", "[1, 2]",
    '{"a": 1}', "1 2", "0.1", "0.5", "1.5", "-1.5", "1e5", "2e-5",
]  # fmt: skip
_NAMES = [
    "", " ", "y", "hired", "age", "prediction", "group", "probability", "probability_yes", "\0", "\0given age", "a\0b",
    "\0" + "1", "=1+1", "sep=;", "a\nb", "a,b", "a;b", '"', "x" * 10_000, "\ufeffage", "\u202eage", "column_1",
    "x0", "attribute 0", "__class__", "kind", "level_0", "index", "(missing)", "id", "person_id", "<b>", "{{a}}", "0",
    "1.5",
    "nan", "None", "ä", "\U0001f98a", "pooled", "weight",
]  # fmt: skip
_TARGETS = [
    ["yes", "no"], ["0", "1"], ["0.5", "1.5"], ["0.5", "high"], ["1", "01"], ["1", "1.0"], ["True", "False"], ["a",
    "b", "c"],
    ["x" * 5000, "y"], ["=1", "-1"], ["1e400", "1"], ["9" * 30, "1"], ["\0", "a"], ["yes"], ["", "?"], ["a", "a "],
    ["٣", "3"],
    ["(missing)", "(other)"], ["-1", "1"], ["2020-01-01", "2021-01-01"], [str(i) for i in range(60)], ["nan", "1", "0"],
]  # fmt: skip
_ENCODINGS = [
    "utf-8", "latin-1", "utf-16", "utf-16-le", "utf-32", "cp1252", "utf-7", "base64", "rot13", "punycode", "idna",
    "hex",
    "unicode_escape", "raw_unicode_escape", "undefined", "shift_jis", "cp037", "", "no such", "utf-8\0", "x" * 300,
]  # fmt: skip
_DELIMITERS = [
    ",",
    ";",
    "\t",
    "|",
    " ",
    "\r",
    "\n",
    "é",
    '"',
    "'",
    "\0",
    "ab",
    "",
    "a",
    "1",
    ".",
    "\\",
    "-",
    "#",
    "\x85",
]
_SETTINGS = [
    ["--no-header"], ["--header"], ["--decimal", ","], ["--drop", "age"], ["--drop", "age,job,since"],
    ["--categories", "age"],
    ["--sensitive", "sex"], ["--sensitive", "job,sex"], ["--protect", "sex"], ["--person", "person_id"], ["--person",
    "age"],
    ["--time", "since"], ["--time", "job"], ["--weight", "age"], ["--weight", "job"], ["--test-size", "0.5"],
    ["--groups", "3"], ["--groups", "50"], ["--groups", "auto"], ["--guard", "proof"], ["--guard", "none"],
    ["--costs", "fp=1,fn=5"], ["--costs", "fp=1e308,fn=1e-308"], ["--threshold", "0.999999"], ["--pooled", "scorecard"],
    ["--incumbent-score", "age"], ["--incumbent-decision", "hired"], ["--incumbent-decision", "job"], ["--seed",
    "4294967296"],
    ["--guard-losses", "error,fpr,fnr"],
]  # fmt: skip
_COMMANDS = ["fit"] * 6 + ["predict"] * 4 + ["audit"] * 3 + ["explain", "watch", "predict parquet"] + ["report"]


def draw(rng: np.random.Generator) -> Case:
    """Draw a file and what is done with it."""
    command = str(rng.choice(_COMMANDS))
    table = _people(rng) if command != "fit" or rng.random() < 0.5 else _anything(rng)
    content, options = _written(table, rng)
    if rng.random() < (0.4 if content.startswith(b"PAR1") else 0.15):
        content = _damaged(content, rng)
    if command == "fit":
        for _ in range(rng.integers(3)):
            options.append(_SETTINGS[rng.integers(len(_SETTINGS))])
    return {"command": command, "options": options, "content": content.decode("latin-1")}


def _people(rng: np.random.Generator) -> pd.DataFrame:
    """A good table with some bad places: cells, columns, rows, names."""
    table = people(int(rng.choice([1, 2, 20, 60, 60, 120])), seed=int(rng.integers(5))).astype(object)
    for _ in range(rng.integers(4)):
        name = table.columns[rng.integers(table.shape[1])]
        action, share = rng.integers(7), rng.choice([0.02, 0.3, 1.0])
        rows = rng.random(len(table)) < share
        if action <= 2:
            table.loc[rows, name] = _CELLS[rng.integers(len(_CELLS))]
        elif action == 3:
            table.loc[rows, name] = rng.choice(np.array(_CELLS, object), int(rows.sum()))
        elif action == 4:
            table = table.rename(columns={name: _NAMES[rng.integers(len(_NAMES))]})
        elif action == 5:
            table = table.drop(columns=[name])
        else:
            table = pd.concat([table, table[[name]]], axis=1)
        if not table.shape[1] or table.columns.duplicated().any():
            break
    return table


def _anything(rng: np.random.Generator) -> pd.DataFrame:
    """A table of odd columns under odd names, with a target that may be one."""
    n = int(rng.choice([0, 1, 5, 19, 20, 30, 60, 150]))
    d = int(rng.choice([0, 1, 2, 4, 8, 300], p=[0.02, 0.1, 0.25, 0.35, 0.26, 0.02]))
    columns = [_column(n, rng) for _ in range(d)]
    names = [_NAMES[rng.integers(len(_NAMES))] if rng.random() < 0.3 else f"c{i}" for i in range(d)]
    targets = _TARGETS[0 if rng.random() < 0.4 else rng.integers(len(_TARGETS))]
    columns.append(rng.choice(np.array(targets, object), n))
    return pd.DataFrame(dict(enumerate(columns))).set_axis([*names, "hired"], axis=1)


def _column(n: int, rng: np.random.Generator) -> Any:
    numbers = rng.normal(size=n)
    some = rng.choice(np.array(_CELLS, object), max(int(rng.integers(1, 5)), 1))
    with np.errstate(all="ignore"):
        return [
            lambda: numbers,
            lambda: rng.integers(0, 5, n),
            lambda: numbers * 10.0 ** rng.integers(-320, 308),
            lambda: rng.choice(some, n),
            lambda: np.where(rng.random(n) < 0.05, rng.choice(some, n), numbers.astype(str).astype(object)),
            lambda: rng.choice(np.array(_CELLS, object), n),
            lambda: np.array([f"{i}-{'z' * int(rng.integers(5))}" for i in range(n)], object),
            lambda: np.full(n, _CELLS[rng.integers(len(_CELLS))], object),
            lambda: rng.choice(np.array(["a", "b", "c"], object), n),
            lambda: np.array([f"20{i % 30:02d}-0{i % 9 + 1}-1{i % 9}" for i in range(n)], object),
            lambda: rng.random(n) < 0.5,
            lambda: np.arange(n) * 10**15,
        ][rng.integers(12)]()


# ---- bytes ----


def _written(table: pd.DataFrame, rng: np.random.Generator) -> tuple[bytes, list[list[str]]]:
    """A table as bytes of some format, with options that may or may not fit."""
    way = rng.random()
    if way < 0.25 and not table.columns.duplicated().any():
        return _parquet(table, rng), []
    delimiter = str(rng.choice([",", ",", ";", "\t", "|", " "]))
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32"]))
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    text = table.to_csv(index=False, sep=delimiter, lineterminator=end, header=bool(rng.random() < 0.95))
    content = text.encode(encoding, errors="replace")
    options = []
    if encoding not in ("utf-8", "utf-8-sig") and rng.random() < 0.6:
        options.append(["--encoding", encoding])
    elif rng.random() < 0.06:
        options.append(["--encoding", _ENCODINGS[rng.integers(len(_ENCODINGS))]])
    if rng.random() < 0.06:
        options.append(["--delimiter", _DELIMITERS[rng.integers(len(_DELIMITERS))]])
    return (gzip.compress(content, 1) if rng.random() < 0.08 else content), options


def _parquet(table: pd.DataFrame, rng: np.random.Generator) -> bytes:
    """Typed columns, some of them of odd types; as text where Arrow knows no type for what a column holds."""
    typed = {}
    for name, column in table.items():
        way = rng.integers(10)
        values: Any = column
        if way == 0:
            values = [[1, 2]] * len(column)
        elif way == 1:
            values = [Decimal(i) / 7 for i in range(len(column))]
        elif way == 2:
            values = pd.Categorical(column.astype(str))
        elif way == 3:
            values = pd.array([None if i % 3 else i for i in range(len(column))], dtype="Int64")
        elif way == 4:
            values = pd.Timestamp("2020-01-01", tz="Asia/Kolkata") + pd.to_timedelta(np.arange(len(column)), unit="h")
        elif way == 5:
            values = [b"\xff\0"] * len(column)
        elif way == 6:
            values = pd.to_timedelta(np.arange(len(column)), unit="D")
        elif way == 7:
            # From the last seconds of the year 9999 on, or far beyond, in a zone or in none.
            start = int(rng.choice([253_402_300_700, 2**42, -62_135_596_900]))
            instants = pd.Series((start + np.arange(len(column))).astype("datetime64[s]"))
            zone = [None, "UTC", "Europe/Berlin", "America/New_York"][rng.integers(4)]
            values = instants if zone is None else instants.dt.tz_localize("UTC").dt.tz_convert(zone)
            values = values.set_axis(column.index)
        typed[name] = values if way <= 7 and rng.random() < 0.3 else _one_type(column)
    buffer = io.BytesIO()
    pd.DataFrame(typed, index=table.index).to_parquet(buffer, index=bool(rng.random() < 0.1))
    return buffer.getvalue()


def _one_type(column: "pd.Series[Any]") -> "pd.Series[Any]":
    kinds = {type(value) for value in column}
    return column.astype(str) if len(kinds) > 1 else column.infer_objects()


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    if content.startswith(b"PAR1") and rng.random() < 0.7:
        return forged(content, rng)
    at, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 60))
    return [
        lambda: content[:at],
        lambda: content[:at] + rng.bytes(length) + content[at:],
        lambda: (
            content[:at] + bytes([content[at % max(len(content), 1)] ^ 255] if content else b"") + content[at + 1 :]
        ),
        lambda: content[:at] + content[at + length :],
        lambda: b"PAR1" + content,
        lambda: b"\x1f\x8b" + content,
        lambda: content * 2,
        lambda: content[:at] + b'"' + content[at:],
        lambda: rng.bytes(length * 10),
        lambda: gzip.compress(b"a,hired\n" + b"0" * 2_000_000, 1),
        lambda: content.replace(b",", b",,"),
        lambda: b"\n" * length + content,
        lambda: _repeated(rng),
    ][rng.integers(13)]()


def _repeated(rng: np.random.Generator) -> bytes:
    """A Parquet file of a few kilobytes with a text, stored once, that fills up to 80 GB in memory."""
    n = int(rng.choice([50, 5_000, 400_000]))
    texts = pa.array(["x" * int(rng.choice([10, 20_000, 200_000])), "y"])
    job = pa.DictionaryArray.from_arrays(pa.array(np.arange(n, dtype=np.int32) % 50 == 0).cast(pa.int32()), texts)
    columns = {
        "age": np.arange(n) % 60,
        "job": job,
        "sex": ["f"] * n,
        "hired": np.where(np.arange(n) % 7 < 3, "y", "n"),
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, store_schema=bool(rng.random() < 0.5), compression="zstd")
    return buffer.getvalue()


# ---- running ----


def prepare(folder: Path) -> None:
    """Fit the model that other commands than `fit` use."""
    people(300).to_csv(folder / "people.csv", index=False)
    options = ["--target", "hired", "--sensitive", "sex", "--groups", "2", "--by", "rules", "--out"]
    result = run_command("fit", folder / "people.csv", *options, folder / "people.dafh")
    assert result.exit_code == 0, result.output


def run_case(case: Case, folder: Path) -> str:
    """Write the table, and run the command."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        data, model = place / "data", folder / "people.dafh"
        data.write_bytes(case["content"].encode("latin-1"))
        options = [word for option in case["options"] for word in option]
        command = case["command"]
        if command == "fit":
            quick = ["--by", "rules", "--groups", "2", "--pooled", "linear"]
            said = run("fit", data, "--target", "hired", "--out", place / "m.dafh", *quick, *options)
            # What can be fitted can be used: scored by the file it came from, and shown.
            if said == "accepted":
                layout = [word for option in case["options"] if option[0] in _OF_FILES for word in option]
                run("predict", place / "m.dafh", data, "--out", place / "out.csv", *layout)
                run("show", place / "m.dafh")
            return said
        if command.startswith("predict"):
            out = place / ("out.parquet" if command.endswith("parquet") else "out.csv")
            return run("predict", model, data, "--keep", "all", "--out", out, *options)
        if command == "watch":
            return run("watch", model, data, "--state", place / "state.db", *options)
        more = ["--out", place / "page.html", "--seeds", "0"] if command == "report" else []
        return run(command, model, data, *more, *options)


_OF_FILES = ("--encoding", "--delimiter", "--no-header", "--header", "--decimal")


def smaller(case: Case) -> Iterator[Case]:
    """Leave out options, rows, columns and bytes."""
    for options in without_parts(case["options"]):
        yield case | {"options": options}
    content = case["content"].encode("latin-1")
    if content.startswith(b"PAR1"):
        yield from (case | {"content": one.decode("latin-1")} for one in _smaller_parquet(content))
        return
    for mark in (b"\n", b","):
        parts = content.split(mark)
        if 1 < len(parts) < 2_000:
            for left in without_parts(parts):
                yield case | {"content": mark.join(left).decode("latin-1")}
    if len(content) < 200:
        for at in range(len(content)):
            yield case | {"content": (content[:at] + content[at + 1 :]).decode("latin-1")}


def _smaller_parquet(content: bytes) -> Iterator[bytes]:
    try:
        # By our own reader: pandas would unpack a file that repeats a long text, in the process that watches others.
        stream = io.BytesIO(content)
        whole = ParquetTable(stream, "a case", read_footer(stream, "a case"))
        pieces = whole.pieces(50_000, whole.schema.names, together=True)
        table = pd.concat([piece.to_pandas() for piece in pieces])
    except Exception:  # Damaged, or refused: there is nothing to take apart.
        return
    frames = [table[names] for names in without_parts(list(table.columns)) if names]
    frames += [table.iloc[: len(table) // 2]] if len(table) > 1 else []
    for frame in frames:
        buffer = io.BytesIO()
        try:
            frame.to_parquet(buffer)
        except Exception:
            continue
        yield buffer.getvalue()


TABLES = Kind("tables", draw, run_case, smaller, prepare)
