"""Certified maxima of univariate functions:  max over s in [low, high] of  sum_j g_j(s + offset_j) - slope * s.

Interval branch and bound. On a piece where the sum is concave, tangents at two points close to its peak bound it to
rounding accuracy; where it is convex, its ends do; elsewhere second-order expansions bound it, and the piece is split.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from certimap.certificate import CertificateError
from certimap.model.univariate import Univariate
from certimap.verification.intervals import Interval, exp, log, point, softplus, square, up

Parameters = tuple[float, ...]
Enclosure = Callable[[Interval, Parameters], Interval]

MAX_PIECES = 2000  # a stop there leaves the bound valid
ACCURACY = 1e-13  # relative; sums over hundreds of blocks stay below the verifier's allowance
SMALLEST = math.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Function:
    """Enclosures on intervals of g, g' (at a kink: of all supergradients) and g'' (at a kink of a concave g: -inf)."""

    value: Enclosure
    derivative: Enclosure
    curvature: Enclosure


def maximum(terms: Sequence[tuple[float, Univariate]], slope: float, low: float, high: float) -> float:
    """A certified upper bound of the maximum, -inf where the interval has no point of the functions' domains."""
    functions = _Sum(terms, slope)
    low = max(low, functions.least)
    if low > high:
        return -math.inf
    attained = -math.inf  # only decides when to stop, so it need not be rigorous
    pieces = [functions.piece(low, high)]
    for _ in range(MAX_PIECES):
        top = pieces[0]
        middle = top.left + 0.5 * (top.right - top.left)
        if top.closed or not top.left < middle < top.right:
            break
        attained = max(attained, functions.value(middle).low)
        if -top.negative_bound <= attained + ACCURACY * max(1.0, abs(attained)):
            break
        heapq.heapreplace(pieces, functions.piece(top.left, middle))
        heapq.heappush(pieces, functions.piece(middle, top.right))
    return -pieces[0].negative_bound


@dataclass(frozen=True, order=True)
class _Piece:
    negative_bound: float
    left: float
    right: float
    closed: bool  # a split would not improve the bound by more than rounding errors


class _Sum:
    """f(s) = sum_j g_j(s + offset_j) - slope * s."""

    def __init__(self, terms: Sequence[tuple[float, Univariate]], slope: float) -> None:
        self.parts = [(_function(g.kind), point(offset), g.parameters) for offset, g in terms]
        self.slope = point(slope)
        # log's domain ends at 0; its closure serves as well for an upper bound.
        self.least = max(-offset if g.domain()[0] == 0.0 else -math.inf for offset, g in terms)

    def value(self, s: float) -> Interval:
        x = point(s)
        total = -(self.slope * x)
        for g, offset, parameters in self.parts:
            total = total + g.value(x + offset, parameters)
        return total

    def derivative(self, s: float) -> Interval:
        x = point(s)
        total = -self.slope
        for g, offset, parameters in self.parts:
            total = total + g.derivative(x + offset, parameters)
        return total

    def curvature(self, left: float, right: float) -> Interval:
        x = Interval(left, right)
        enclosures = [g.curvature(x + offset, parameters) for g, offset, parameters in self.parts]
        total = sum(enclosures, point(0.0))
        # Outward rounding must not turn a sum of concave (convex) functions into one of unknown curvature.
        low = max(total.low, 0.0) if all(c.low >= 0.0 for c in enclosures) else total.low
        return Interval(low, min(total.high, 0.0) if all(c.high <= 0.0 for c in enclosures) else total.high)

    def piece(self, left: float, right: float) -> _Piece:
        """[left, right] with an upper bound."""
        curvature = self.curvature(left, right)
        if curvature.high <= 0.0:
            return _Piece(-self._concave_bound(left, right), left, right, True)
        ends = max(self.value(left).high, self.value(right).high)
        if curvature.low >= 0.0:
            return _Piece(-ends, left, right, True)
        return _Piece(-self._curved_bound(left, right, ends, curvature), left, right, False)

    def _curved_bound(self, left: float, right: float, ends: float, curvature: Interval) -> float:
        """f'' >= c gives f <= largest end - c width^2 / 8; f'' <= C gives the expansion about the middle."""
        width = up(right - left)
        above_ends = up(ends + up(up(-curvature.low * up(width * width)) / 8.0))
        middle = left + 0.5 * width
        reach = max(up(middle - left), up(right - middle))
        d = self.derivative(middle)
        tilt = up(max(d.high, -d.low, 0.0) * reach)
        bend = up(0.5 * up(curvature.high * up(reach * reach)))
        return min(above_ends, up(up(self.value(middle).high + tilt) + bend))

    def _concave_bound(self, left: float, right: float) -> float:
        """Tangents next to the peak, a short way from it that suits most functions, wide or huge intervals."""
        peak = self._peak(left, right)
        reach = abs(peak) + right - left
        steps = (1e-9 * reach, 1e-12 * reach, 1e-9 * max(1.0, abs(peak)))
        return min(self._tangents(left, max(left, peak - step), min(right, peak + step), right) for step in steps)

    def _tangents(self, left: float, a: float, b: float, right: float) -> float:
        """Tangents at a <= b bound [left, a], [a, b] and [b, right]; valid for any a, b where the sum is concave."""
        at_a, at_b = self.value(a).high, self.value(b).high
        slope_a, slope_b = self.derivative(a), self.derivative(b)
        return max(
            _tangent(at_a, -slope_a.low, a - left),
            _between(at_a, slope_a.high, at_b, -slope_b.low, b - a),
            _tangent(at_b, slope_b.high, right - b),
        )

    def _peak(self, left: float, right: float) -> float:
        """Where the derivative changes its sign, nearly: Newton's method, and bisection where that is slow."""
        if self.derivative(left).middle <= 0.0:
            return left
        if self.derivative(right).middle >= 0.0:
            return right
        s = left + 0.5 * (right - left)
        last = right - left
        for _ in range(200):
            d = self.derivative(s).middle
            left, right = (s, right) if d > 0.0 else (left, s)
            c = self.curvature(s, s).middle
            newton = s - d / c if math.isfinite(c) and c < 0.0 else math.nan
            quick = left < newton < right and abs(newton - s) <= 0.5 * last
            following = newton if quick else left + 0.5 * (right - left)
            last = abs(following - s)
            if abs(following - s) <= 1e-15 * (abs(s) + right - left):
                return following
            s = following
        return s


def _tangent(value: float, slope: float, distance: float) -> float:
    return value if slope <= 0.0 or distance <= 0.0 else up(value + up(slope * up(distance)))


def _between(at_a: float, rise: float, at_b: float, fall: float, distance: float) -> float:
    """The larger end or, between a and b = a + distance, the height where the two tangents meet."""
    single = min(_tangent(at_a, rise, distance), _tangent(at_b, fall, distance))
    if rise <= 0.0 or fall <= 0.0 or distance <= 0.0 or not math.isfinite(rise + fall):
        return single
    up_slope, down_slope = point(rise), point(fall)
    ahead = (point(at_b) - point(at_a)) + down_slope * point(up(distance))
    # Where both slopes are next to nothing, the quotient loses its digits; one tangent alone is then as good.
    return min(single, max(at_a, at_b, (point(at_a) + up_slope * ahead / (up_slope + down_slope)).high))


def _function(kind: str) -> Function:
    if kind not in FUNCTIONS:
        raise CertificateError(f"no interval arithmetic is registered for functions of kind {kind!r}")
    return FUNCTIONS[kind]


# ------------------------------------------------------------------------------------------------ families of functions
def _gaussian(s: Interval, p: Parameters) -> Interval:
    return -(square(s - point(p[0])) / (point(2.0) * point(p[1])))


def _gaussian_derivative(s: Interval, p: Parameters) -> Interval:
    return (point(p[0]) - s) / point(p[1])


def _gaussian_curvature(s: Interval, p: Parameters) -> Interval:
    return point(-1.0) / point(p[1])


def _laplace(s: Interval, p: Parameters) -> Interval:
    t = s - point(p[0])
    least = 0.0 if t.low <= 0.0 <= t.high else min(abs(t.low), abs(t.high))
    return -(Interval(least, max(abs(t.low), abs(t.high))) / point(p[1]))


def _laplace_derivative(s: Interval, p: Parameters) -> Interval:
    t = s - point(p[0])
    steep = point(1.0) / point(p[1])
    return Interval(-steep.high if t.high >= 0.0 else steep.low, steep.high if t.low <= 0.0 else -steep.low)


def _laplace_curvature(s: Interval, p: Parameters) -> Interval:
    return Interval(-math.inf if s.low <= p[0] <= s.high else 0.0, 0.0)


def _logistic(s: Interval, p: Parameters) -> Interval:
    return -softplus(point(-p[0]) * s)


def _logistic_derivative(s: Interval, p: Parameters) -> Interval:
    label = point(p[0])
    return label / (point(1.0) + exp(label * s))


def _logistic_curvature(s: Interval, p: Parameters) -> Interval:
    chance = point(1.0) / (point(1.0) + exp(point(p[0]) * s))
    steep = chance * (point(1.0) - chance)
    return Interval(max(-0.25, -steep.high), min(0.0, -steep.low))


def _poisson(s: Interval, p: Parameters) -> Interval:
    return point(p[0]) * s - exp(s)


def _poisson_derivative(s: Interval, p: Parameters) -> Interval:
    return point(p[0]) - exp(s)


def _poisson_curvature(s: Interval, p: Parameters) -> Interval:
    return -exp(s)


def _log(s: Interval, p: Parameters) -> Interval:
    return point(p[0]) * log(_positive(s)) if p[0] else point(0.0)


def _log_derivative(s: Interval, p: Parameters) -> Interval:
    return point(p[0]) / _positive(s)


def _log_curvature(s: Interval, p: Parameters) -> Interval:
    steep = point(p[0]) / Interval(max(SMALLEST, square(_positive(s)).low), square(_positive(s)).high)
    return Interval(-steep.high, min(0.0, -steep.low))


def _student_t(s: Interval, p: Parameters) -> Interval:
    location, scale, nu = (point(x) for x in p)
    return -((nu + point(1.0)) * log(point(1.0) + square((s - location) / scale) / nu)) * point(0.5)


def _student_t_derivative(s: Interval, p: Parameters) -> Interval:
    location, scale, nu = (point(x) for x in p)
    t = s - location
    return -((nu + point(1.0)) * t) / (nu * square(scale) + square(t))


def _student_t_curvature(s: Interval, p: Parameters) -> Interval:
    """-(nu+1)/(nu scale^2) phi(q), q = t^2/(nu scale^2); phi(q) = (1-q)/(1+q)^2 falls to -1/8 at 3, then rises."""
    location, scale, nu = (point(x) for x in p)
    spread = nu * square(scale)
    q = square(s - location) / spread
    left, right = _phi(q.low), _phi(q.high)
    phi = Interval(min(left.low, right.low), max(left.high, right.high))
    if q.low <= 3.0 <= q.high:
        phi = Interval(-0.125, phi.high)
    return -((nu + point(1.0)) / spread) * phi


def _phi(q: float) -> Interval:
    return (point(1.0) - point(q)) / square(point(1.0) + point(q))


def _polynomial(s: Interval, p: Parameters) -> Interval:
    return _horner(s, [point(c) for c in p])


def _polynomial_derivative(s: Interval, p: Parameters) -> Interval:
    return _horner(s, _differentiated([point(c) for c in p]))


def _polynomial_curvature(s: Interval, p: Parameters) -> Interval:
    return _horner(s, _differentiated(_differentiated([point(c) for c in p])))


def _horner(s: Interval, coefficients: Sequence[Interval]) -> Interval:
    total = point(0.0)
    for c in reversed(coefficients):
        total = total * s + c
    return total


def _differentiated(coefficients: Sequence[Interval]) -> list[Interval]:
    return [point(float(k)) * c for k, c in enumerate(coefficients) if k]


def _positive(s: Interval) -> Interval:
    """The part of the interval in the domain of log."""
    return Interval(max(s.low, SMALLEST), max(s.high, SMALLEST))


FUNCTIONS: Mapping[str, Function] = {
    "gaussian": Function(_gaussian, _gaussian_derivative, _gaussian_curvature),
    "laplace": Function(_laplace, _laplace_derivative, _laplace_curvature),
    "logistic": Function(_logistic, _logistic_derivative, _logistic_curvature),
    "poisson": Function(_poisson, _poisson_derivative, _poisson_curvature),
    "log": Function(_log, _log_derivative, _log_curvature),
    "student_t": Function(_student_t, _student_t_derivative, _student_t_curvature),
    "polynomial": Function(_polynomial, _polynomial_derivative, _polynomial_curvature),
}
