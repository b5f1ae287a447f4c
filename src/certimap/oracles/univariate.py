"""Arithmetic of the named univariate functions, over many terms at once.

A `Curve` holds m functions of one kind. Arrays of arguments have shape (m, q): row i belongs to function i. A new kind
is one subclass and one entry in `KINDS`. What certified bounds need of a kind is its value and slopes with bounds on
their rounding errors, an interval for its curvature, and its kinks; see `envelope1d` for their use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from certimap._numeric.rounding import gamma
from certimap.oracles.cuts import Floats, Ints

Pair = tuple[Floats, Floats]

# Every formula below rounds at most 12 times; numpy's exp, log and log1p stay within 4 units in the last place.
ROUNDINGS = 32
UNDERFLOW = 1e-300  # absolute error where a result falls below the smallest normal number


class Curve(ABC):
    """m functions g_i of one kind; `parameters` has one row per function."""

    concave: bool = True
    roundings: int = ROUNDINGS
    halvings: int = 30  # in `stationary`; the remaining error is second order in 2^-30 of the interval

    def __init__(self, parameters: Floats) -> None:
        self.parameters = parameters

    def __len__(self) -> int:
        return len(self.parameters)

    def rows(self, index: Ints) -> Curve:
        """The functions at these positions."""
        return type(self)(self.parameters[index])

    def _columns(self) -> list[Floats]:
        return [self.parameters[:, j : j + 1] for j in range(self.parameters.shape[1])]

    @abstractmethod
    def value(self, s: Floats) -> Floats:
        """g(s)."""

    @abstractmethod
    def slopes(self, s: Floats) -> Pair:
        """The derivatives from the left and from the right; they differ at kinks only."""

    @abstractmethod
    def curvature(self, left: Floats, right: Floats) -> Pair:
        """Bounds of g'' between `left` and `right`, kinks apart; exact up to relative rounding errors."""

    def kinks(self) -> Floats:
        """(m, q) arguments where the slope drops."""
        return np.empty((len(self), 0))

    def inflections(self) -> Floats:
        """(m, q) arguments where the curvature is known to change its sign."""
        return np.empty((len(self), 0))

    def magnitude(self, s: Floats, value: Floats) -> Floats:
        """Sum of the absolute values of the terms that `value` adds up to: the scale of its rounding error."""
        return np.abs(value)

    def slope_magnitude(self, s: Floats, slopes: Pair) -> Floats:
        """The same for `slopes`."""
        return np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        """Where g(s) - u s is largest on an interval on which g is concave: a point, and ends that enclose the maximum.

        This default halves the interval by the sign of g' - u.
        """
        low = np.where(self.slopes(right)[0] >= u, right, left)
        high = np.where(self.slopes(left)[1] <= u, left, right)
        low = np.minimum(low, high)
        for _ in range(self.halvings):
            middle = 0.5 * (low + high)
            rising = self.slopes(middle)[1] > u
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        return 0.5 * (low + high), low, high

    def evaluate(self, s: Floats) -> Pair:
        """g(s) and a bound on its rounding error."""
        value = self.value(s)
        return value, 2.0 * gamma(self.roundings) * self.magnitude(s, value) + UNDERFLOW

    def evaluate_slopes(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """The slopes from the left and from the right, and a bound on their rounding errors."""
        slopes = self.slopes(s)
        return *slopes, 2.0 * gamma(self.roundings) * self.slope_magnitude(s, slopes) + UNDERFLOW


class Gaussian(Curve):
    """-(s - mean)^2 / (2 variance)."""

    def value(self, s: Floats) -> Floats:
        mean, variance = self._columns()
        return -((s - mean) ** 2) / (2.0 * variance)

    def slopes(self, s: Floats) -> Pair:
        mean, variance = self._columns()
        slope = (mean - s) / variance
        return slope, slope

    def curvature(self, left: Floats, right: Floats) -> Pair:
        _, variance = self._columns()
        flat = np.broadcast_to(-1.0 / variance, left.shape)
        return flat, flat

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        mean, variance = self._columns()
        return np.clip(mean - variance * u, left, right), left, right


class Laplace(Curve):
    """-|s - location| / scale."""

    def value(self, s: Floats) -> Floats:
        location, scale = self._columns()
        return -np.abs(s - location) / scale

    def slopes(self, s: Floats) -> Pair:
        location, scale = self._columns()
        return np.where(s <= location, 1.0, -1.0) / scale, np.where(s < location, 1.0, -1.0) / scale

    def curvature(self, left: Floats, right: Floats) -> Pair:
        return np.zeros(left.shape), np.zeros(left.shape)

    def kinks(self) -> Floats:
        return self.parameters[:, :1]

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        location, scale = self._columns()
        best = np.where(u * scale > 1.0, left, np.where(u * scale < -1.0, right, location))
        return np.clip(best, left, right), left, right


class Logistic(Curve):
    """-log(1 + exp(-label s))."""

    def value(self, s: Floats) -> Floats:
        x = self.parameters * s
        return -(np.maximum(-x, 0.0) + np.log1p(np.exp(-np.abs(x))))

    def slopes(self, s: Floats) -> Pair:
        x = self.parameters * s
        e = np.exp(-np.abs(x))  # no overflow on either side
        slope = self.parameters * np.where(x >= 0.0, e, 1.0) / (1.0 + e)
        return slope, slope

    def curvature(self, left: Floats, right: Floats) -> Pair:
        far = np.maximum(np.abs(left), np.abs(right))
        near = np.where(left * right <= 0.0, 0.0, np.minimum(np.abs(left), np.abs(right)))
        low, high = (-np.exp(-x) / (1.0 + np.exp(-x)) ** 2 for x in (near, far))
        return low, high

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        v = self.parameters * u  # g' = label / (1 + exp(label s)), so label s = log((1 - v) / v) for 0 < v < 1
        with np.errstate(divide="ignore"):
            x = np.log(np.clip(1.0 - v, 0.0, None)) - np.log(np.clip(v, 0.0, None))
        return np.clip(self.parameters * x, left, right), left, right


class Poisson(Curve):
    """count s - exp(s)."""

    def value(self, s: Floats) -> Floats:
        return self.parameters * s - np.exp(s)

    def slopes(self, s: Floats) -> Pair:
        slope = self.parameters - np.exp(s)
        return slope, slope

    def curvature(self, left: Floats, right: Floats) -> Pair:
        return -np.exp(right), -np.exp(left)

    def magnitude(self, s: Floats, value: Floats) -> Floats:
        return np.abs(self.parameters * s) + np.exp(s)

    def slope_magnitude(self, s: Floats, slopes: Pair) -> Floats:
        return self.parameters + np.exp(s)

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        with np.errstate(divide="ignore"):
            best = np.log(np.clip(self.parameters - u, 0.0, None))
        return np.clip(best, left, right), left, right


class Log(Curve):
    """weight log s, s > 0."""

    def value(self, s: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            value = self.parameters * np.log(np.maximum(s, 0.0), where=self.parameters > 0.0, out=np.zeros_like(s))
        return value

    def slopes(self, s: Floats) -> Pair:
        slope = self.parameters / s
        return slope, slope

    def curvature(self, left: Floats, right: Floats) -> Pair:
        return -self.parameters / left**2, -self.parameters / right**2

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        best = np.divide(self.parameters, u, where=u > 0.0, out=np.full(np.shape(u), np.inf))
        return np.clip(best, left, right), left, right


class StudentT(Curve):
    """-(nu + 1)/2 log(1 + (s - location)^2 / (nu scale^2)): concave within scale sqrt(nu) of the location."""

    concave = False

    def _numbers(self) -> tuple[Floats, Floats, Floats]:
        location, scale, nu = self._columns()
        return location, nu * scale**2, nu + 1.0

    def value(self, s: Floats) -> Floats:
        location, spread, weight = self._numbers()
        return -0.5 * weight * np.log1p((s - location) ** 2 / spread)

    def inflections(self) -> Floats:
        location, spread, _ = self._numbers()
        root = np.sqrt(spread)
        return np.concatenate([location - root, location + root], axis=1)

    def slopes(self, s: Floats) -> Pair:
        location, spread, weight = self._numbers()
        r = s - location
        slope = -weight * r / (spread + r * r)
        return slope, slope

    def curvature(self, left: Floats, right: Floats) -> Pair:
        # g'' = weight (q - spread) / (q + spread)^2 with q = (s - location)^2, increasing up to q = 3 spread.
        location, spread, weight = self._numbers()
        one, two = (left - location) ** 2, (right - location) ** 2
        near = np.where((left <= location) & (location <= right), 0.0, np.minimum(one, two))
        far = np.maximum(one, two)
        peak = np.clip(3.0 * spread, near, far)

        def second(q: Floats, side: float) -> Floats:
            # q - spread cancels near the inflections; its error is relative to q + spread.
            room = side * gamma(8) * (q + spread)
            return weight * (q - spread + room) / (q + spread) ** 2

        return np.minimum(second(near, -1.0), second(far, -1.0)), second(peak, 1.0)

    def stationary(self, u: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        # g' = u is a quadratic in r; its root of smaller size is the maximum.
        location, spread, weight = self._numbers()
        root = np.sqrt(np.maximum(weight**2 - 4.0 * u**2 * spread, 0.0))
        return np.clip(location - 2.0 * u * spread / (weight + root), left, right), left, right


class Polynomial(Curve):
    """c0 + c1 s + c2 s^2 + ..."""

    concave = False

    def __init__(self, parameters: Floats) -> None:
        super().__init__(parameters)
        self.roundings = ROUNDINGS + 2 * parameters.shape[1]

    def _derivative(self, order: int) -> list[Floats]:
        columns = self._columns()
        for _ in range(order):
            columns = [k * c for k, c in enumerate(columns)][1:]
        return columns

    def value(self, s: Floats) -> Floats:
        return _horner(self._columns(), s)

    def slopes(self, s: Floats) -> Pair:
        slope = _horner(self._derivative(1), s)
        return slope, slope

    def magnitude(self, s: Floats, value: Floats) -> Floats:
        return _horner([np.abs(c) for c in self._columns()], np.abs(s))

    def slope_magnitude(self, s: Floats, slopes: Pair) -> Floats:
        return _horner([np.abs(c) for c in self._derivative(1)], np.abs(s))

    def curvature(self, left: Floats, right: Floats) -> Pair:
        # Taylor's form about the middle: odd powers of the offset change sign, even ones do not.
        middle, radius = 0.5 * (left + right), 0.5 * (right - left)
        low = high = _horner(self._derivative(2), middle)
        power, error = np.ones(left.shape), np.zeros(left.shape)
        for k in range(1, self.parameters.shape[1] - 2):
            power = power * radius / k
            term = _horner(self._derivative(2 + k), middle) * power
            low = low + (np.minimum(term, 0.0) if k % 2 == 0 else -np.abs(term))
            high = high + (np.maximum(term, 0.0) if k % 2 == 0 else np.abs(term))
        if self.parameters.shape[1] > 3:  # a quadratic's curvature is exact
            reach = np.abs(middle) + radius
            error = 4.0 * gamma(self.roundings) * _horner([np.abs(c) for c in self._derivative(2)], reach)
        return low - error, high + error


KINDS: dict[str, type[Curve]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "logistic": Logistic,
    "poisson": Poisson,
    "log": Log,
    "student_t": StudentT,
    "polynomial": Polynomial,
}


def _horner(coefficients: list[Floats], s: Floats) -> Floats:
    total = np.zeros(np.shape(s))
    for c in reversed(coefficients):
        total = total * s + c
    return total
