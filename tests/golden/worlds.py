"""Made-up tables for the golden record, each with the arguments that `dafh fit` gets for it."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class World:
    """A table, and how it is fitted."""

    table: pd.DataFrame
    arguments: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()
    target: str = "hired"
    csv: dict = field(default_factory=dict)
    every_command: bool = False


def _people(seed, n=1200):
    """Applicants whose age counts in opposite directions for cooks and all others."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["cook", "clerk", "pilot"], n, p=[0.4, 0.4, 0.2]),
            "income": np.round(rng.lognormal(3, 0.6, n), 1),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    logit = 0.12 * (table["age"] - 45) * np.where(table["job"] == "cook", 1, -1) + 0.02 * (table["income"] - 22)
    return table, logit.to_numpy(), rng


def _decide(logit, rng):
    return np.where(rng.random(len(logit)) < 1 / (1 + np.exp(-logit)), "yes", "no")


def plain():
    table, logit, rng = _people(1)
    return World(table.assign(hired=_decide(logit, rng)), ("--sensitive", "sex"))


def weights():
    table, logit, rng = _people(2)
    table = table.assign(count=rng.integers(0, 4, len(table)), hired=_decide(logit, rng))
    return World(table, ("--weight", "count", "--pooled", "linear", "--method", "network", "--groups", "2"))


def persons():
    table, logit, rng = _people(3)
    table = table.assign(customer=rng.integers(0, 400, len(table)), hired=_decide(logit, rng))
    return World(table, ("--person", "customer", "--sensitive", "sex"))


def classes():
    table, logit, rng = _people(4)
    noisy = logit + rng.logistic(size=len(logit))
    return World(table.assign(hired=np.select([noisy < -1, noisy < 1], ["no", "wait"], "yes")))


def dates():
    table, logit, rng = _people(5)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 700, len(table))), "D")
    since = day - pd.to_timedelta(rng.integers(0, 3000, len(table)), "D")
    table = table.assign(day=day.strftime("%Y-%m-%d"), since=since.strftime("%Y-%m-%d"), hired=_decide(logit, rng))
    return World(table, ("--time", "day", "--guard", "proof"))


def gaps():
    table, logit, rng = _people(6)
    table = table.assign(hired=_decide(logit, rng))
    for name, share in (("age", 0.1), ("job", 0.15), ("income", 0.3), ("hired", 0.02)):
        table[name] = table[name].astype(object).mask(rng.random(len(table)) < share)
    return World(table, ("--drop", "sex"))


def incumbent():
    table, logit, rng = _people(7)
    score = 1 / (1 + np.exp(-0.05 * (table["income"] - 22)))
    return World(table.assign(score=score.round(4), hired=_decide(logit, rng)), ("--pooled", "score", "--drop", "sex"))


def costs():
    table, logit, rng = _people(8)
    return World(
        table.assign(hired=_decide(logit, rng)),
        ("--costs", "fp=1,fn=5", "--sensitive", "sex"),
        ("--losses", "cost,fnr"),
    )


def semicolons():
    table, logit, rng = _people(9)
    return World(
        table.assign(hired=_decide(logit, rng)),
        ("--groups", "2", "--method", "exceptions"),
        csv={"sep": ";", "decimal": ","},
        every_command=True,
    )


def nothing():
    """No group has an effect of its own, and one column has many values."""
    table, _, rng = _people(10)
    table = table.assign(city=rng.choice([f"city {i:02d}" for i in range(40)], len(table)))
    return World(table.assign(hired=_decide(0.05 * (table["age"].to_numpy() - 45), rng)))


MADE_UP = (plain, weights, persons, classes, dates, gaps, incumbent, costs, semicolons, nothing)
