"""How often an alarm is ever raised where nobody is worse off."""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import check_losses
from dafh.monitor.evidence import Evidence, JudgedRows, capital_of_term
from dafh.stats import Bettors


class Differences(NamedTuple):
    """How discordant rows are distributed: values of own loss − pooled loss, and the probability of each."""

    x: tuple[float, ...]
    chance: tuple[float, ...]


EQUAL = Differences((1.0, -1.0), (0.5, 0.5))
BENEFIT = Differences((1.0, -1.0), (0.45, 0.55))
# Light rows lose and heavy ones win, or the other way round, and all balance exactly.
HEAVY_WINS = Differences((0.05, -1.0), (20 / 21, 1 / 21))
HEAVY_LOSES = Differences((1.0, -0.05), (1 / 21, 20 / 21))
MANY_WEIGHTS = Differences((0.1, 0.4, 1.0, -0.1, -0.4, -1.0), (0.3, 0.15, 0.05, 0.3, 0.15, 0.05))
KINDS = {
    "equal": EQUAL,
    "gain of 1 point in 10": BENEFIT,
    "equal, heavy rows win": HEAVY_WINS,
    "equal, heavy rows lose": HEAVY_LOSES,
    "equal, six weights": MANY_WEIGHTS,
}


def alarm_shares(
    kind: Differences,
    n_groups: int,
    n_losses: int,
    looks: tuple[int, ...],
    n_worlds: int,
    seed: int,
    level: float = 0.05,
) -> list[float]:
    """Share of worlds with any alarm up to each number of discordant rows, if one looks after every one of them.

    Rows on which the classifiers agree change nothing, so that neither discordance nor the size of batches matters:
    looks at the end of a batch are some of these looks. With three losses, a row counts for the error rate and for one
    of the false positive and false negative rates.
    """
    rng = np.random.default_rng(seed)
    bettors = Bettors.start(n_worlds * n_groups * n_losses, capital_of_term(0))
    capital = bettors.capital.reshape(n_worlds, -1)
    n_questions, worlds = capital.shape[1], np.arange(n_worlds)
    target, alarmed, found = n_questions / level, np.zeros(n_worlds, bool), []
    for look in range(1, max(looks) + 1):
        group = rng.integers(n_groups, size=n_worlds)
        x = rng.choice(kind.x, p=kind.chance, size=n_worlds)
        counts_for = [group * n_losses]
        if n_losses == 3:
            counts_for.append(group * n_losses + 1 + (rng.random(n_worlds) < 0.3))
        for question in counts_for:
            place = worlds * n_questions + question
            part = Bettors(bettors.accounts[place], bettors.mass[place], bettors.n_bets[place])
            part.bet_once(x, target)
            bettors.accounts[place], bettors.n_bets[place] = part.accounts, part.n_bets
            capital[worlds, question] = part.capital
        alarmed |= (capital >= target * (1 - 1e-9)).any(axis=1)
        if look in looks:
            found.append(float(alarmed.mean()))
    return found


def level_table(n_worlds: int = 2000, looks: tuple[int, ...] = (1000, 20_000)) -> pd.DataFrame:
    """Percentage of worlds with any alarm, by kind of world and number of groups."""
    rows = []
    cases = [(name, k, n) for name in ("equal", "gain of 1 point in 10") for k in (1, 4, 12) for n in (1, 3)]
    cases += [(name, 4, 1) for name in list(KINDS)[2:]]
    for number, (name, n_groups, n_losses) in enumerate(cases):
        shares = alarm_shares(KINDS[name], n_groups, n_losses, looks, n_worlds, seed=number)
        line: dict[str, object] = {"own classifiers are": name, "groups": n_groups, "losses": n_losses}
        rows.append(line | {f"{look:,} looks": 100 * share for look, share in zip(looks, shares, strict=True)})
    return pd.DataFrame(rows)


def simulated_rows(
    rng: np.random.Generator, n_rows: int, n_groups: int, discordance: float, *, weighted: bool, harm: float = 0.0
) -> JudgedRows:
    """Rows of groups whose own classifier is worse by `harm`, with an attribute of two values."""
    discordant = rng.random(n_rows) < discordance
    loses = rng.random(n_rows) < 0.5 + harm / discordance / 2
    weight = rng.choice([0.05, 0.2, 1.0], n_rows, p=[0.5, 0.3, 0.2]) if weighted else np.ones(n_rows)
    parts: NDArray[np.int16] = rng.integers(1, 3, (n_rows, 1)).astype(np.int16)
    group, positive = rng.integers(n_groups, size=n_rows), rng.random(n_rows) < 0.3
    return JudgedRows(group, discordant & loses, discordant & ~loses, positive, parts, weight)


def empty_books(n_groups: int, *, weighted: bool) -> Evidence:
    """Begin with groups in service, two declared subgroups of each, and three losses."""
    names, losses = ["", "sex = f", "sex = m"], check_losses(("error", "fpr", "fnr"))
    found = Evidence(n_groups, names, losses, 0.05, weighted, np.ones(n_groups, bool))
    found.proved[:] = 1  # Proofs change no alarm: without bets on them, it takes a quarter less time.
    return found


def batch_table(n_worlds: int = 1000, n_looks: int = 10) -> pd.DataFrame:
    """Percentage of worlds with any alarm in the monitor's own books, and with any limit that is ever missed."""
    rows = []
    kinds = [(0.01, False), (0.1, False), (0.5, False), (0.1, True)]
    for number, (n_groups, (discordance, weighted)) in enumerate(itertools.product((1, 4, 12), kinds)):
        n_alarms = n_missed = 0
        for world in range(n_worlds):
            evidence = empty_books(n_groups, weighted=weighted)
            rng = np.random.default_rng([number, world])
            # Small batches are as frequent as large ones in logarithms.
            for size in np.exp(rng.uniform(0, np.log(5000), n_looks)).astype(int):
                evidence.add(simulated_rows(rng, int(size), n_groups, discordance, weighted=weighted))
            n_alarms += bool(evidence.alarmed.any())
            # Limits only ever tighten: whether any has missed a gain of 0 can be seen at the end.
            n_missed += bool((evidence.limits[:, 0] > 0).any() or (evidence.limits[:, 1] < 0).any())
        line: dict[str, object] = {"groups": n_groups, "discordance, %": 100 * discordance}
        line |= {"weights": "0.05, 0.2 and 1" if weighted else "equal", "any alarm": 100 * n_alarms / n_worlds}
        rows.append(line | {"any limit missed": 100 * n_missed / n_worlds})
    return pd.DataFrame(rows)
