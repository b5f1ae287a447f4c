"""Interval operations enclose the exact result, and barely more."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certimap.verification.intervals import Interval, dot_range, exp, log, point, softplus, sqrt, square

NUMBERS = st.floats(-1e6, 1e6)
PRECISE = Context(prec=60)


def exact(x: float) -> Decimal:
    return Decimal(x)


def holds(interval: Interval, value: Decimal | Fraction, width: float = 1e-15) -> bool:
    """Whether the interval contains the value and is narrow."""
    low, high = Fraction(interval.low), Fraction(interval.high)
    inside = low <= Fraction(value) <= high
    return inside and high - low <= Fraction(width) * max(1, abs(Fraction(value)))


@given(NUMBERS, NUMBERS)
def test_arithmetic_of_points(x: float, y: float) -> None:
    a, b = point(x), point(y)
    assert holds(a + b, Fraction(x) + Fraction(y))
    assert holds(a - b, Fraction(x) - Fraction(y))
    assert holds(a * b, Fraction(x) * Fraction(y))
    assert holds(square(a), Fraction(x) ** 2)
    if abs(y) > 1e-6:
        assert holds(a / b, Fraction(x) / Fraction(y))


@given(st.tuples(NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS), st.floats(0, 1), st.floats(0, 1))
def test_arithmetic_of_intervals(p: tuple[float, float], q: tuple[float, float], s: float, t: float) -> None:
    a, b = Interval(*sorted(p)), Interval(*sorted(q))
    x = min(max(a.low + s * (a.high - a.low), a.low), a.high)
    y = min(max(b.low + t * (b.high - b.low), b.low), b.high)
    for interval, value in (
        (a + b, Fraction(x) + Fraction(y)),
        (a - b, Fraction(x) - Fraction(y)),
        (a * b, Fraction(x) * Fraction(y)),
        (-a, -Fraction(x)),
        (square(a), Fraction(x) ** 2),
    ):
        assert Fraction(interval.low) <= value <= Fraction(interval.high)


@given(st.floats(-600, 600))
def test_exponential_functions(x: float) -> None:
    assert holds(exp(point(x)), PRECISE.exp(exact(x)))
    precise = PRECISE.ln(1 + PRECISE.exp(exact(x))) if x > -100 else PRECISE.exp(exact(x))
    assert holds(softplus(point(x)), precise)


def test_softplus_far_out_is_positive_and_linear() -> None:
    assert softplus(point(-90.0)).high >= math.exp(-90.0)
    assert softplus(point(1e4)).low <= 1e4 <= softplus(point(1e4)).high


@given(st.floats(1e-12, 1e12))
def test_logarithm_and_root(x: float) -> None:
    assert holds(log(point(x)), PRECISE.ln(exact(x)))
    assert holds(sqrt(point(x)), PRECISE.sqrt(exact(x)))


def test_wide_arguments() -> None:
    assert exp(Interval(0.0, 1.0)).high >= math.e
    assert log(Interval(-1.0, 1.0)).low == -math.inf
    assert square(Interval(-2.0, 1.0)).low == 0.0
    assert Interval(1.0, 3.0).middle == 2.0
    overflowed = Interval(1.0, math.inf) / Interval(1.0, math.inf)
    assert (overflowed.low, overflowed.high) == (-math.inf, math.inf)
    with pytest.raises(ZeroDivisionError):
        point(1.0) / Interval(-1.0, 1.0)


def test_dot_range_encloses_the_box() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, ends = rng.normal(size=6), np.sort(rng.normal(size=(2, 6)), axis=0)
        low = sum(Fraction(min(c * x, c * y, key=float)) for c, x, y in zip(a, *ends, strict=True))
        found = dot_range(a, *ends)
        assert found.low <= float(low) + 1e-14
        for _ in range(20):
            x = rng.uniform(*ends)
            value = sum(Fraction(float(c)) * Fraction(float(v)) for c, v in zip(a, x, strict=True))
            assert Fraction(found.low) <= value <= Fraction(found.high)
        assert found.high - found.low <= float(np.abs(a) @ (ends[1] - ends[0])) + 1e-13
