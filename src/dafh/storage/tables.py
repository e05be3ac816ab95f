"""A look at the tables of a database before it is used: it may come from anywhere."""

import sqlite3


def check_tables(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    """Refuse a database with other tables than ours, with views or triggers: those are programs, which would be run.

    An empty database is none of these. Raises ValueError, for whoever calls to say what the file should have been.
    """
    found = connection.execute("SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if found and sorted(found) != sorted(("table", statement) for statement in statements):
        raise ValueError("it has tables, views or triggers that dafh does not make")
