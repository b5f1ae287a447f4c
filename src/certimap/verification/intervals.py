"""Interval arithmetic with outward rounding: every operation encloses all exact results of its operands.

float64 addition, multiplication, division and square root are rounded correctly (IEEE 754), so one step outwards with
`math.nextafter` encloses them. exp and ln are not; they come from `decimal`, whose results are correctly rounded.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 2.0**-53
# 20 digits leave the relative error of one decimal operation far below a unit of float64's last place.
_DECIMALS = Context(prec=20, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SUM_ERROR = 1e-18  # of three operations on numbers below 2


def up(x: float) -> float:
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    return math.nextafter(x, -math.inf)


def margin(operations: int, magnitude: float) -> float:
    """Twice the a-priori error gamma_n * magnitude of n successive roundings (the factor covers evaluating it)."""
    return 2.0 * operations * UNIT / (1.0 - operations * UNIT) * magnitude


class Interval:
    """The set of real numbers between `low` and `high`."""

    __slots__ = ("high", "low")

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high

    @property
    def middle(self) -> float:
        return self.low + 0.5 * (self.high - self.low)

    def __repr__(self) -> str:
        return f"[{self.low!r}, {self.high!r}]"

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(down(self.low + other.low), up(self.high + other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(down(self.low - other.high), up(self.high - other.low))

    def __mul__(self, other: Interval) -> Interval:
        ends = (
            _product(self.low, other.low),
            _product(self.low, other.high),
            _product(self.high, other.low),
            _product(self.high, other.high),
        )
        return Interval(down(min(ends)), up(max(ends)))

    def __truediv__(self, other: Interval) -> Interval:
        """The quotient by an interval that does not contain zero."""
        if other.low <= 0.0 <= other.high:
            raise ZeroDivisionError(f"{self} / {other}")
        ends = (
            self.low / other.low,
            self.low / other.high,
            self.high / other.low,
            self.high / other.high,
        )
        if any(math.isnan(end) for end in ends):  # infinity over infinity, after an overflow
            return Interval(-math.inf, math.inf)
        return Interval(down(min(ends)), up(max(ends)))


def point(x: float) -> Interval:
    return Interval(x, x)


def square(x: Interval) -> Interval:
    least = 0.0 if x.low <= 0.0 <= x.high else min(abs(x.low), abs(x.high))
    most = max(abs(x.low), abs(x.high))
    return Interval(max(0.0, down(least * least)), up(most * most))


def sqrt(x: Interval) -> Interval:
    """The square root of the non-negative part."""
    return Interval(max(0.0, down(math.sqrt(max(0.0, x.low)))), up(math.sqrt(max(0.0, x.high))))


def exp(x: Interval) -> Interval:
    low = _exp(x.low)
    width = up(x.high - x.low)
    if width < 1e-3:  # exp(low + w) <= exp(low) (1 + 2w) saves the second call
        return Interval(max(0.0, down(low)), up(up(low) * up(1.0 + 2.0 * width)))
    return Interval(max(0.0, down(low)), up(_exp(x.high)))


def log(x: Interval) -> Interval:
    """The logarithm of the positive part of an interval that reaches above zero."""
    return Interval(down(_log(x.low)) if x.low > 0.0 else -math.inf, up(_log(x.high)))


def softplus(x: Interval) -> Interval:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), without overflow."""
    return Interval(max(0.0, down(down(_softplus(x.low)) - _SUM_ERROR)), up(up(_softplus(x.high)) + _SUM_ERROR))


def dot_range(coefficients: Floats, lower: Floats, upper: Floats) -> Interval:
    """Encloses coefficients.x over the box."""
    ends = coefficients * lower, coefficients * upper
    error = margin(2, float(np.abs(coefficients) @ np.maximum(np.abs(lower), np.abs(upper)))) + 1e-300
    low, high = np.minimum(*ends), np.maximum(*ends)
    # fsum rounds once; the products' own roundings and underflows are the margin.
    return Interval(down(math.fsum(low.tolist()) - error), up(math.fsum(high.tolist()) + error))


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b  # 0 * inf is 0 here: the infinity is a bound, not a value


def _exp(x: float) -> float:
    return float(_DECIMALS.exp(Decimal(x)))


def _log(x: float) -> float:
    return float(_DECIMALS.ln(Decimal(x)))


def _softplus(x: float) -> float:
    tail = _DECIMALS.ln(_DECIMALS.add(1, _DECIMALS.exp(Decimal(-abs(x)))))
    return max(x, 0.0) + float(tail)
