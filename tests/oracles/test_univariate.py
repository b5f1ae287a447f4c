"""Certified conjugates and envelopes of univariate functions against dense sampling."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certimap.model.univariate import _FORMULAS
from certimap.oracles.curve_sum import CurveSum
from certimap.oracles.envelope1d import Envelope1D
from certimap.oracles.univariate import KINDS, Curve

M = 40
SHARES = np.linspace(0.0, 1.0, 1001)


def parameters(kind: str, rng: np.random.Generator, m: int = M) -> np.ndarray:
    location, scale = rng.normal(size=m), rng.uniform(0.1, 3.0, size=m)
    match kind:
        case "gaussian" | "laplace":
            return np.column_stack([location, scale])
        case "logistic":
            return rng.choice([-1.0, 1.0], size=(m, 1))
        case "student_t":
            return np.column_stack([location, scale, rng.uniform(0.5, 8.0, size=m)])
        case "polynomial":
            return rng.normal(size=(m, 6))
    return np.where(rng.random((m, 1)) < 0.2, 0.0, rng.uniform(0.0, 3.0, size=(m, 1)))


def curve_of(kind: str, rng: np.random.Generator, m: int = M) -> Curve:
    if kind != "sum":
        return KINDS[kind](parameters(kind, rng, m))
    kinds = ("laplace", "student_t", "polynomial", "gaussian", "student_t")
    return CurveSum(rng.normal(size=(m, len(kinds))), [curve_of(k, rng, m) for k in kinds])


def ranges(kind: str, rng: np.random.Generator, m: int = M) -> tuple[np.ndarray, np.ndarray]:
    low = rng.uniform(0.01, 1.0, size=m) if kind == "log" else rng.uniform(-4.0, 0.0, size=m)
    return low, low + rng.uniform(0.0, 6.0, size=m)


def grid(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, None] + (b - a)[:, None] * SHARES


@pytest.fixture(params=[*KINDS, "sum"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_kind_of_the_model_has_a_curve() -> None:
    assert set(KINDS) == set(_FORMULAS)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_the_models(kind: str) -> None:
    rng = np.random.default_rng(1)
    p = parameters(kind, rng)
    s = grid(*ranges(kind, rng))
    expected = [[_FORMULAS[kind](x, tuple(row)) for x in xs] for row, xs in zip(p, s, strict=True)]
    np.testing.assert_allclose(KINDS[kind](p).value(s), expected, rtol=1e-13, atol=1e-13)


def test_slopes_and_curvature(kind: str) -> None:
    rng = np.random.default_rng(2)
    curve = curve_of(kind, rng)
    s = grid(*ranges(kind, rng))
    left, right = s[:, :-1], s[:, 1:]
    chord = (curve.value(right) - curve.value(left)) / np.maximum(right - left, 1e-300)
    at_left, at_right = curve.slopes(left)[1], curve.slopes(right)[0]
    smooth = np.ones(left.shape, dtype=bool)
    for k in curve.kinks().T:
        smooth &= (right <= k[:, None]) | (left >= k[:, None])
    low, high = curve.curvature(left, right)
    wide = smooth & (right - left > 1e-4)
    change = (at_right - at_left)[wide]
    room = 1e-9 * (1.0 + np.abs(at_left[wide]))
    assert (change >= (low * (right - left))[wide] - room).all()
    assert (change <= (high * (right - left))[wide] + room).all()
    mean = 0.5 * (at_left + at_right)
    spread = 0.5 * (high - low) * (right - left) + 1e-8 * (1.0 + np.abs(mean))
    assert (np.abs(chord - mean)[wide] <= spread[wide]).all()


@pytest.mark.parametrize("seed", range(3))
def test_conjugate_bounds_and_is_attained(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = ranges(kind, rng)
    curve = curve_of(kind, rng)
    envelope = Envelope1D(curve, low, high)
    for size in (0.0, 0.5, 5.0):
        a = low + (high - low) * rng.uniform(0.0, 0.5, size=M)
        b = high - (high - a) * rng.uniform(0.0, 0.5, size=M)
        u = size * rng.normal(size=M)
        h, s = envelope.on(a, b).conjugate(u)
        points = grid(a, b)
        sampled = (curve.value(points) - u[:, None] * points).max(axis=1)
        assert (sampled <= h).all()
        assert ((a <= s) & (s <= b)).all()
        attained = envelope.value(s) - u * s
        np.testing.assert_allclose(attained, h, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_supporting_lines_are_the_envelope(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = ranges(kind, rng)
    curve = curve_of(kind, rng)
    interval = Envelope1D(curve, low, high).on(low, high)
    points = grid(low, high)
    values = curve.value(points)
    for at in (0, 137, 871):
        s = points[:, at]
        u = interval.support(s)
        line = u * s + interval.conjugate(u)[0]
        np.testing.assert_allclose(line, _hull(points, values, at), rtol=2e-4, atol=2e-4)
        better = np.minimum(*(shifted * s + interval.conjugate(shifted)[0] for shifted in (u - 1e-4, u + 1e-4)))
        assert (line <= better + 1e-9 * (1.0 + np.abs(line))).all()


def _hull(points: np.ndarray, values: np.ndarray, at: int) -> np.ndarray:
    """The concave envelopes of sampled values at one of the samples, by monotone chains."""
    heights = []
    for xs, ys in zip(points, values, strict=True):
        chain: list[tuple[float, float]] = []
        for p in zip(xs.tolist(), ys.tolist(), strict=True):
            while len(chain) > 1 and _turns_left(chain[-2], chain[-1], p):
                chain.pop()
            chain.append(p)
        heights.append(np.interp(xs[at], [x for x, _ in chain], [y for _, y in chain]))
    return np.array(heights)


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) >= 0.0


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    st.integers(-40, 40),
    st.integers(-12, 12),
    st.integers(0, 24),
)
def test_polynomial_bounds_hold_in_exact_arithmetic(
    coefficients: list[int], slope: int, start: int, width: int
) -> None:
    a, b, u = start / 4, (start + width) / 4, slope / 8
    curve = KINDS["polynomial"](np.array([coefficients], dtype=float) / 16)
    h, _ = Envelope1D(curve, np.array([a]), np.array([b])).on(np.array([a]), np.array([b])).conjugate(np.array([u]))
    for k in range(65):
        s = Fraction(a) + (Fraction(b) - Fraction(a)) * k / 64
        exact = sum(Fraction(c, 16) * s**j for j, c in enumerate(coefficients)) - Fraction(u) * s
        assert exact <= Fraction(float(h[0]))


def test_a_wide_range_keeps_the_narrow_peak() -> None:
    curve = KINDS["student_t"](np.array([[3.0, 1e-3, 2.0]]))
    envelope = Envelope1D(curve, np.array([-1e6]), np.array([1e6]))
    interval = envelope.on(np.array([-1e6]), np.array([1e6]))
    h, s = interval.conjugate(np.zeros(1))
    assert 0.0 <= h[0] <= 1e-9
    assert s[0] == pytest.approx(3.0, abs=1e-6)


def test_kinks_in_convex_surroundings() -> None:
    # s^2 - |s| has its inner maximum at the kink, where neither neighbour is concave.
    curve = CurveSum(
        np.zeros((1, 2)), [KINDS["polynomial"](np.array([[0.0, 0, 1]])), KINDS["laplace"](np.array([[0.0, 1]]))]
    )
    interval = Envelope1D(curve, np.array([-0.9]), np.array([0.5])).on(np.array([-0.5]), np.array([0.5]))
    h, s = interval.conjugate(np.zeros(1))
    assert h[0] == pytest.approx(0.0, abs=1e-12)
    assert s[0] == pytest.approx(0.0, abs=1e-12)


def test_rows_select_functions(kind: str) -> None:
    rng = np.random.default_rng(5)
    low, high = ranges(kind, rng)
    envelope = Envelope1D(curve_of(kind, rng), low, high)
    some = np.array([7, 3, 3, 30])
    u = rng.normal(size=M)
    whole, part = envelope.on(low, high).conjugate(u)[0], envelope.on(low[some], high[some], some).conjugate(u[some])[0]
    np.testing.assert_allclose(part, whole[some], rtol=1e-14)
    assert math.isfinite(float(part.sum()))
