"""Certified maxima of univariate functions against dense sampling: never below, and close."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import certimap as cm
from certimap.certificate import CertificateError
from certimap.model.univariate import Univariate
from certimap.verification.scalar import FUNCTIONS, maximum

FAMILIES = [
    cm.gaussian(0.3, 2.0),
    cm.gaussian(0.0, 1e-4),
    cm.laplace(0.2, 0.7),
    cm.logistic(1),
    cm.logistic(-1),
    cm.poisson(3.0),
    cm.log(2.0),
    cm.log(0.0),
    cm.student_t(0.5, 0.3, 3.0),
    cm.student_t(0.0, 1.0, 1.0),
    cm.polynomial([1.0]),
    cm.polynomial([1.0, -2.0]),
    cm.polynomial([1.0, 2.0, 3.0]),
    cm.polynomial([0.0, 0.0, -1.5]),
    cm.polynomial([0.0, 0.3, 2.0, 0.0, -1.0]),
    cm.polynomial([0.0, 0.0, 0.0, 0.0, -1.0]),
    cm.polynomial([0.0, 1.0, -2.0, 0.5, 0.3, -0.2]),
]
SUMS = [
    [cm.gaussian(0.3, 2.0), cm.laplace(0.2, 0.7), cm.logistic(1)],
    [cm.laplace(0.2, 0.7), cm.student_t(0.5, 0.3, 3.0)],
    [cm.laplace(0.1), cm.laplace(0.1), cm.laplace(0.4)],
    [cm.student_t(0.5, 0.3), cm.student_t(-0.5, 0.3), cm.student_t(1.5, 0.2, 2.0)],
    [cm.polynomial([0.0, 0.0, 1.0]), cm.polynomial([0.0, 0.0, -2.0])],
    [cm.poisson(2.0), cm.polynomial([0.0, 0.0, 0.5])],
]


def sampled(terms: list[tuple[float, Univariate]], slope: float, low: float, high: float) -> float:
    """The best value found: a grid with kinks and ends, refined around its best point."""

    def f(s: float) -> float:
        return math.fsum(g(s + offset) for offset, g in terms) - slope * s

    kinks = [g.parameters[0] - offset for offset, g in terms if g.kind in ("laplace", "student_t", "gaussian")]
    grid = [*np.linspace(low, high, 1001).tolist(), *(k for k in kinks if low <= k <= high)]
    values = [f(s) for s in grid]
    best = grid[int(np.argmax(values))]
    step = (high - low) / 1000.0
    around = (max(low, best - step), min(high, best + step))
    refined = optimize.minimize_scalar(lambda s: -f(s), bounds=around, method="bounded", options={"xatol": 1e-13})
    return max(*values, -float(refined.fun))


def assert_tight(terms: list[tuple[float, Univariate]], slope: float, low: float, high: float) -> None:
    found, least = maximum(terms, slope, low, high), sampled(terms, slope, low, high)
    scale = max(1.0, abs(least))
    assert found >= least - 1e-14 * scale
    assert found <= least + 1e-10 * scale


@pytest.mark.parametrize("g", FAMILIES, ids=lambda g: f"{g.kind}{g.parameters}")
def test_single_functions(g: Univariate) -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        low, high = np.sort(rng.uniform(0.01 if g.kind == "log" else -3.0, 3.0, 2)).tolist()
        assert_tight([(0.0, g)], float(2.0 * rng.normal()), low, high)


@pytest.mark.parametrize("functions", SUMS, ids=lambda f: "+".join(g.kind for g in f))
def test_sums_with_offsets(functions: list[Univariate]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        terms = [(float(rng.normal()), g) for g in functions]
        low, high = np.sort(rng.uniform(-3.0, 3.0, 2)).tolist()
        assert_tight(terms, float(rng.normal()), low, high)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3, 3), st.sampled_from(FAMILIES), st.floats(0, 1))
def test_never_below_any_value(a: float, b: float, slope: float, g: Univariate, share: float) -> None:
    low, high = min(a, b), max(a, b)
    if g.kind == "log":
        low, high = 0.1 + abs(low), 0.1 + abs(low) + high - low
    s = min(max(low + share * (high - low), low), high)
    value = g(s) - slope * s
    assert maximum([(0.0, g)], slope, low, high) >= value - 1e-14 * max(1.0, abs(value), abs(g(s)))


@pytest.mark.parametrize("reach", [1e6, 1e9, 1e12])
def test_huge_intervals(reach: float) -> None:
    assert 0.0 <= maximum([(0.0, cm.gaussian(3.0))], 0.0, -reach, reach) <= 1e-12
    assert 0.0 <= maximum([(0.0, cm.laplace(3.0, 2.0))], 0.1, -reach, reach) + 0.3 <= 1e-12


@pytest.mark.parametrize("high", [10.0, 150.0, 650.0])
def test_exponentials_far_from_their_peak(high: float) -> None:
    """Newton's steps from the middle have length one there: the peak is found by bisection."""
    assert -1.0 <= maximum([(0.0, cm.poisson(1.0))], 0.0, -33.0, high) <= -1.0 + 1e-12
    assert -1.0 <= maximum([(0.0, cm.poisson(2.0)), (0.0, cm.gaussian(0.0, 1e9))], 1.0, -33.0, high) <= -1.0 + 1e-8


def test_degenerate_intervals() -> None:
    g = cm.gaussian(0.0)
    assert maximum([(0.0, g)], 1.0, 2.0, 2.0) == pytest.approx(-4.0, abs=1e-14)
    assert maximum([(0.0, g)], 1.0, 2.0, 1.0) == -math.inf
    assert maximum([(0.0, cm.log(1.0))], 0.0, -2.0, -1.0) == -math.inf
    assert maximum([(0.0, cm.log(1.0))], 0.0, 0.0, 1.0) == pytest.approx(0.0, abs=1e-14)


def test_every_kind_of_the_model_language_has_an_arithmetic() -> None:
    assert {g.kind for g in FAMILIES} == set(FUNCTIONS)
    with pytest.raises(CertificateError, match="kind 'cosine'"):
        maximum([(0.0, Univariate("cosine", ()))], 0.0, 0.0, 1.0)
