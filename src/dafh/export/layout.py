"""How a statement is laid out: a condition and its value on one line, as in a table of points."""

from typing import Any

from sqlglot import Dialect as SqlglotDialect
from sqlglot import exp

_WIDTH = 110


def render(statement: exp.Expression, dialect: str) -> str:
    """Write a statement for people."""
    known: Any = SqlglotDialect.get_or_raise(dialect)

    class Generator(known.generator_class):
        """Lays out CASE in half the lines that sqlglot takes: a scorecard has hundreds of bins."""

        def case_sql(self, expression: exp.Case) -> str:
            of = self.sql(expression, "this")
            lines = [f"CASE {of}" if of else "CASE"]
            lines += [
                f"WHEN {self.sql(branch, 'this')} THEN {self.sql(branch, 'true')}" for branch in expression.args["ifs"]
            ]
            default = self.sql(expression, "default")
            lines += [f"ELSE {default}", "END"] if default else ["END"]
            line = " ".join(lines)
            if len(line) <= _WIDTH and "\n" not in line:
                return line
            return str(self.indent("\n".join(lines), skip_first=True, skip_last=True))

    return str(Generator(dialect=known, pretty=True).generate(statement))
