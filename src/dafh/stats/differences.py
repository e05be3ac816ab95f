"""Two classifiers on the same rows: one test and one limit for every loss, with weights, and for persons of many rows.

The *harm* is the mean of (own loss − rival loss), which lies between known bounds: −1, 0 or 1 for a row that is right
or wrong; more with costs or weights; a total for a person who has several rows. Nothing else is known about its
distribution, and the tests assume nothing else.

The method is Gaffke's (2005), found again by Learned-Miller and Thomas (2020). The observed differences, and one more
that is as bad as possible, get random weights from a flat Dirichlet distribution. The p-value of "the harm is at least
h" is the probability that the weighted mean reaches h, and the limit is where this probability equals the level.

- For rows that count alike and h = 0 it is exactly McNemar's test, P[Bin(b + c, ½) ≤ c].
- For a rival that is never wrong it is exactly Clopper and Pearson's limit of a share.
- In general it is a conjecture that the level holds, which nobody has refuted. ``docs/guarantee.md`` has our check: all
  outcomes enumerated for rows that count alike and for costs, and simulations for weights and for persons.

Of what we compared, interval formulas (Tango, MOVER, adjusted Wald) miss their level where classifiers disagree often
or groups are small, and have no form for weights. Bets on bounded means (Waudby-Smith and Ramdas 2024) are proven but
need two to three times as many rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root
from scipy.special import betainc, ndtri

from dafh.exceptions import InputError
from dafh.stats.paired import robust_radius

# Nodes of the integral: 96 reproduce McNemar's and Clopper and Pearson's probabilities to 10 digits, but where fewer
# than ten of thousands of units are not as bad as possible: there to half a percent of the probability.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)
_NODES, _NODE_WEIGHTS = (_NODES + 1) / 2, _NODE_WEIGHTS / 2
# Bounds the memory of the integral, which has a complex number for each question, value and node.
_NUMBERS_AT_A_TIME = 4_000_000
# Of limits, as a share of the distance between the ends.
_TOLERANCE = 5e-11
_DOUBLE = np.finfo(np.float64)


@dataclass(frozen=True, eq=False)
class Differences:
    """How much worse the own classifier is than its rival, unit by unit, for each of Q questions.

    A unit is a row, or all rows of a person. All questions share a list of V kinds of units.

    Examples
    --------
    1,000 rows: the own classifier loses 10 that its rival gets right, and wins 30.

    >>> rows = Differences.of_counts(own_worse=10, own_better=30, n_rows=1000)
    >>> rows.harm
    array([-0.02])
    >>> float(rows.p_within(0.0)[0].round(4)), float(rows.upper(0.05)[0].round(4))
    (0.0011, -0.0088)
    """

    difference: NDArray[np.float64]
    """Own loss minus rival loss of each kind of unit, (V,)."""
    size: NDArray[np.float64]
    """What each kind counts in the mean, (V,): the weight of a row, or the total of a person's rows."""
    counts: NDArray[np.float64]
    """Number of units of each kind, (Q, V)."""
    worst: float = 1.0
    """Largest loss of a unit of size 1."""
    largest: float = 1.0
    """Largest size of a unit."""

    @classmethod
    def of_counts(cls, own_worse: ArrayLike, own_better: ArrayLike, n_rows: ArrayLike) -> "Differences":
        """Rows that count alike: b on which only the rival is right, c on which only the own classifier is, of n."""
        tables = np.broadcast_arrays(own_worse, own_better, n_rows)
        b, c, n = (np.asarray(count, np.float64).ravel() for count in tables)
        # A sum of floating point numbers may exceed the number of rows by rounding.
        if (b < 0).any() or (c < 0).any() or (b + c > n * (1 + 1e-9) + 1e-9).any():
            raise InputError("Counts must not be negative, and own_worse + own_better must not exceed n_rows.")
        counts = np.column_stack([b, c, np.maximum(n - b - c, 0.0)])
        return cls(np.array([1.0, -1.0, 0.0]), np.ones(3), counts)

    @classmethod
    def joined(cls, questions: "Sequence[Differences]", worst: float = 1.0, largest: float = 1.0) -> "Differences":
        """Questions of several lists on one list, which has all their kinds of units."""
        pairs = [np.column_stack([question_list.difference, question_list.size]) for question_list in questions]
        kinds, position = np.unique(np.concatenate([np.zeros((0, 2)), *pairs]), axis=0, return_inverse=True)
        counts = np.zeros((sum(len(question_list.counts) for question_list in questions), len(kinds)))
        row = column = 0
        for question_list in questions:
            rows, columns = slice(row, row + len(question_list.counts)), slice(column, column + len(question_list.size))
            counts[rows, position.ravel()[columns]] = question_list.counts
            row, column = rows.stop, columns.stop
        return cls(kinds[:, 0], kinds[:, 1], counts, worst, largest)

    @property
    def total(self) -> NDArray[np.float64]:
        """Size of all units together, (Q,)."""
        return self.counts @ self.size

    @property
    def harm(self) -> NDArray[np.float64]:
        """Mean difference, (Q,): positive if the own classifier is worse; NaN without units."""
        with np.errstate(invalid="ignore"):
            return self.counts @ self.difference / self.total

    @property
    def gain(self) -> NDArray[np.float64]:
        """The same with the other sign, (Q,): positive if the own classifier is better."""
        return 0.0 - self.harm  # Unlike −harm, never −0.

    def gain_limits(self, level: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper limit of the gain, each with error probability `level`, (Q,)."""
        return 0.0 - self.upper(level), 0.0 - self.lower(level)

    @property
    def own_worse(self) -> NDArray[np.float64]:
        """Units that the own classifier serves worse, (Q,)."""
        return self.counts @ (self.difference > 0)

    @property
    def own_better(self) -> NDArray[np.float64]:
        """Units that the own classifier serves better, (Q,)."""
        return self.counts @ (self.difference < 0)

    def robust_radius(self, level: ArrayLike) -> NDArray[np.float64]:
        """As `dafh.stats.robust_radius`, (Q,); missing where units do not count alike."""
        counted = self.size > 0
        stakes = np.abs(self.difference[counted & (self.difference != 0)])
        if len(np.unique(self.size[counted])) > 1 or len(np.unique(stakes)) > 1:
            return np.full(len(self.counts), np.nan)
        return np.asarray(robust_radius(self.own_worse, self.own_better, level))

    @property
    def spread(self) -> NDArray[np.float64]:
        """Mean square of the differences, relative to the mean size, (Q,): the discordance of rows that count alike."""
        units = self.counts.sum(axis=1)
        with np.errstate(invalid="ignore"):
            return self.counts @ self.difference**2 / units / (self.total / units) ** 2

    def exchanged(self) -> "Differences":
        """The same with own classifier and rival exchanged."""
        return replace(self, difference=-self.difference)

    def take(self, questions: NDArray[Any]) -> "Differences":
        """Some of the questions, without kinds of units that they do not have."""
        counts = self.counts[questions]
        used = (counts > 0).any(axis=0)
        return replace(self, difference=self.difference[used], size=self.size[used], counts=counts[:, used])

    def distinct(self) -> tuple["Differences", NDArray[np.intp]]:
        """Questions with different counts, each once, and the position of every question among them.

        Small groups share the same few counts: the error rates of 300 classifiers in 300 groups are 180,000 questions,
        of which a few hundred differ.
        """
        counts, positions = np.unique(self.counts, axis=0, return_inverse=True)
        return replace(self, counts=counts), positions.ravel()

    def p_within(self, margin: ArrayLike) -> NDArray[np.float64]:
        """Test of "the harm is at least `margin`", (Q,): a small p-value shows that it is less. 1 without units."""
        n = len(self.counts)
        return self._reached(np.broadcast_to(np.asarray(margin, np.float64), n), np.arange(n))

    def p_beyond(self, margin: ArrayLike) -> NDArray[np.float64]:
        """Test of "the harm is at most `margin`", (Q,): a small p-value shows that it is more. 1 without units."""
        return self.exchanged().p_within(-np.asarray(margin, np.float64))

    def upper(self, level: ArrayLike) -> NDArray[np.float64]:
        """Upper limit of the harm with error probability `level`, (Q,); the worst possible without units."""
        n = len(self.counts)
        levels = np.broadcast_to(np.asarray(level, np.float64), n)
        if not ((levels > 0) & (levels < 1)).all():
            raise InputError(f"level must lie between 0 and 1, got {level!r}.")
        if not n:
            return np.zeros(0)
        # At the upper end the probability is 0 but for units that cannot be worse; without units it is 1.
        limit, end = np.full(n, float(self.worst)), self.worst * (1 - 1e-12)
        crossing = np.flatnonzero(self._reached(np.full(n, end), np.arange(n)) <= levels)
        if not len(crossing):
            return limit

        # Normal quantiles of the probabilities are nearly straight lines in the harm, which a root finder likes.
        def height(harm: NDArray[np.float64], question: NDArray[Any], level: NDArray[np.float64]) -> Any:
            p = self._reached(harm, question.astype(np.intp))
            return ndtri(p.clip(_DOUBLE.tiny, 1 - _DOUBLE.epsneg)) - ndtri(level)

        ends = np.full(len(crossing), -self.worst), np.full(len(crossing), end)
        tolerances = {"xatol": 2 * _TOLERANCE * self.worst, "xrtol": 0, "fatol": 0, "frtol": 0}
        limit[crossing] = find_root(height, ends, args=(crossing, levels[crossing]), tolerances=tolerances).x
        return limit

    def lower(self, level: ArrayLike) -> NDArray[np.float64]:
        """Lower limit of the harm with error probability `level`, (Q,)."""
        return -self.exchanged().upper(level)

    def _reached(self, harm: NDArray[np.float64], questions: NDArray[np.intp]) -> NDArray[np.float64]:
        """Probability that the randomly weighted mean is at least `harm`, for some of the questions."""
        result = np.empty(len(questions))
        step = max(_NUMBERS_AT_A_TIME // (len(_NODES) * (len(self.size) + 1)), 1)
        for first in range(0, len(questions), step):
            block = slice(first, first + step)
            differences, h = self.take(questions[block]), harm[block, None]
            # The mean reaches h where the sum of weight × (difference − h · size) reaches 0.
            values = differences.difference - h * differences.size
            worst_value = self.largest * (self.worst - h)
            shapes = np.hstack([differences.counts, np.ones_like(h)])
            result[block] = _nonnegative(np.hstack([values, worst_value]), shapes)
        return result


def _nonnegative(values: NDArray[np.float64], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Σ value × Gamma(shape) ≥ 0), for each line of (Q, V) values: independent gamma variables of scale 1."""
    # A kind without units decides nothing, but its value could be a pole on the way of the integral.
    values = np.where(shapes > 0, values, 0.0)
    # The tail on the far side of the mean is computed, so that small probabilities keep their digits.
    above = (values * shapes).sum(axis=1) > 0
    values = np.where(above[:, None], -values, values)
    # Neither does a value that is 0 but for rounding, which would bend that way out of sight.
    values = np.where(np.abs(values) > 1e-14 * np.abs(values).max(axis=1, keepdims=True), values, 0.0)
    positive, negative = values > 0, values < 0
    high, low = values.max(axis=1), values.min(axis=1)
    between = (values != 0) & (values != high[:, None]) & (values != low[:, None])
    # Where all positive values are equal, and all negative ones, two gamma variables remain, and the share of one in
    # their sum has a beta distribution. Tests of "not worse", and limits of error rates of rows that count alike, need
    # no integral therefore: they are most questions of an audit.
    has_two_values = (high > 0) & (low < 0) & ~between.any(axis=1)
    wins, losses = ((shapes * side).sum(axis=1)[has_two_values] for side in (positive, negative))
    threshold = high[has_two_values] / (high[has_two_values] - low[has_two_values])
    tail = np.zeros(len(values))
    tail[has_two_values] = betainc(losses, wins, threshold)
    needs_integral = ~has_two_values & (high > 0)
    if needs_integral.any():
        tail[needs_integral] = _tail(values[needs_integral], shapes[needs_integral])
    return np.where(above, 1.0 - tail, tail)


def _tail(values: NDArray[np.float64], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Σ value × Gamma(shape) ≥ 0) where the mean is negative and some value positive.

    The probability is an integral of the moment generating function Π (1 − value · s)^(−shape) / s along any path that
    crosses the real axis between 0 and its first pole. Ours crosses at the saddle point, where nothing cancels, and
    bends to the right as far as no factor can grow on the way.
    """
    a = values / values.max(axis=1, keepdims=True)
    s = _saddle_point(a, shapes)[:, None]
    relative = a / (1 - a * s)
    curvature = (shapes * relative**2).sum(axis=1, keepdims=True) + 1 / s**2
    along = 3 * _NODES / (1 - _NODES) / np.sqrt(curvature)
    step = 3 * _NODE_WEIGHTS / (1 - _NODES) ** 2 / np.sqrt(curvature)
    # A factor with a positive value stays below its size at the saddle point if the path bends no more than this.
    bend = 1 / np.where(a > 0, relative, np.inf).min(axis=1, keepdims=True)
    root = np.hypot(along, bend)
    path, slope = s + root - bend + 1j * along, along / root + 1j
    logarithm = -(shapes[:, :, None] * np.log(1 - a[:, :, None] * path[:, None, :])).sum(axis=1)
    return np.clip(((np.exp(logarithm) / path * slope).imag * step).sum(axis=1) / np.pi, 0.0, 1.0)


def _saddle_point(a: NDArray[np.float64], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the slope of the logarithm of Π (1 − a · s)^(−shape) / s is 0 between its poles at 0 and 1, for each line.

    The positive part of the slope increases between the poles, the negative part decreases. Newton's method finds where
    they are equal: the logarithm of their ratio is nearly linear in the log-odds of s, so that 5 steps were enough in
    nine of ten of 3,176 random cases, and 10 in all of them. Bisection took 55.
    """
    gains, losses = shapes * np.maximum(a, 0.0), shapes * np.maximum(-a, 0.0)
    # Not quite up to the poles: a saddle point nearer to 1 belongs to a probability that is zero for all purposes.
    low, high, odds = np.full(len(a), -60.0), np.full(len(a), 27.6), np.zeros(len(a))
    for _ in range(25):
        s = 1 / (1 + np.exp(-odds))
        factor = 1 / (1 - a * s[:, None])
        up, down = (gains * factor).sum(axis=1), (losses * factor).sum(axis=1) + 1 / s
        bent = a * factor**2
        slope = ((gains * bent).sum(axis=1) / up - ((losses * bent).sum(axis=1) - 1 / s**2) / down) * s * (1 - s)
        ratio = np.log(up / down)
        below = ratio < 0
        low, high = np.where(below, odds, low), np.where(below, high, odds)
        newton = odds - ratio / slope
        near = np.abs(newton - odds) < 1e-8
        odds = np.where(near | ((low < newton) & (newton < high)), newton, (low + high) / 2)
        if near.all():
            break
    return 1 / (1 + np.exp(-odds))
