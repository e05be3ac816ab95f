"""Commands run within the tests, and a table for them."""

import numpy as np
import pandas as pd
from click.testing import CliRunner

from dafh.cli import main


def run(*arguments, **options):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n), rng.choice(["cook", "clerk", "pilot"], n)
    logit = 0.08 * (age - 45) * np.where(job == "cook", 1, -1)
    return pd.DataFrame(
        {
            "person_id": np.arange(n) + 1,
            "age": age,
            "job": job,
            "since": [f"20{10 + i % 10}-0{1 + i % 9}-15" for i in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "hired": np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no"),
        }
    )
