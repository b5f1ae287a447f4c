"""Certified conjugates: for every factor family, an upper bound of

    h(u; box) = max over dom theta and the box of  theta(x) - u.x.

A family is one function and one line in `FAMILIES`. A feasibility cut asks for the same maximum with theta replaced by
0 on its domain. -inf means that the box has no point of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.graph.blocks import RidgeSum, Spectral
from certimap.model.concave import Concave
from certimap.model.factors import BlackBox, Factor, Gated, Parity, Potts, Ridge, SparseTable, Table
from certimap.model.univariate import Univariate
from certimap.verification.intervals import Interval, dot_range, margin, point, up
from certimap.verification.scalar import maximum
from certimap.verification.spectral import largest_product, symmetric

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

GRADIENT_ERROR = 1e-9


@dataclass(frozen=True)
class Cut:
    """What a conjugate needs of a cut: its slope u, its box over the scope, whether it is a feasibility cut.

    `witness` is the point whose tangent the cut is, for families that need it.
    """

    u: Floats
    lower: Floats
    upper: Floats
    feasibility: bool = False
    witness: Floats | None = None


Conjugate = Callable[[Factor, Cut], float]


def conjugate(factor: Factor, cut: Cut) -> float:
    """A certified upper bound of h(u; box), in the arithmetic of the factor's family."""
    if factor.kind not in FAMILIES:
        raise CertificateError(f"{factor.label()}: no verification is registered for factors of kind {factor.kind!r}")
    if (cut.lower > cut.upper).any():
        return -math.inf
    h = FAMILIES[factor.kind](factor, cut)
    if math.isnan(h):
        raise CertificateError(f"{factor.label()}: the conjugate is not a number")
    return h


# ----------------------------------------------------------------------------------------------------------- tables
def _table(factor: Factor, cut: Cut) -> float:
    assert isinstance(factor, Table)
    total = _values(factor.log_values, cut)
    size = np.abs(total)
    for axis, gain in enumerate(_gains(factor.log_values.shape, cut)):
        along = [-1 if i == axis else 1 for i in range(total.ndim)]
        total, size = total + gain.reshape(along), size + np.abs(gain).reshape(along)
    return _largest_raised(total, size, total.ndim + 1)


def _sparse_table(factor: Factor, cut: Cut) -> float:
    assert isinstance(factor, SparseTable)
    gains = _gains([len(v.states) for v in factor.scope], cut)
    total = _values(factor.log_values, cut)
    size = np.abs(total)
    for gain, positions in zip(gains, factor.positions.T, strict=True):
        total, size = total + gain[positions], size + np.abs(gain[positions])
    return _largest_raised(total, size, len(gains) + 1)


def _potts(factor: Factor, cut: Cut) -> float:
    """The best equal pair, and the best pair of different states: for each left state the best other right state."""
    assert isinstance(factor, Potts)
    weight = 0.0 if cut.feasibility else factor.weight
    size = len(factor.scope[0].states)
    left, right = _gains([size, size], cut)
    first = int(np.argmax(right))
    others = np.full(size, right[first])
    others[first] = np.delete(right, first).max(initial=-math.inf)
    # fsum rounds once: a huge penalty leaves the pairs of different states alone.
    equal = [math.fsum((a, b, weight)) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    best = max(*equal, *map(math.fsum, zip(left.tolist(), others.tolist(), strict=True)))
    return best if best == -math.inf else up(best)


def _parity(factor: Factor, cut: Cut) -> float:
    """Take the better value of every item; where the parity is then wrong, change the item that costs least."""
    assert isinstance(factor, Parity)
    at_one = np.where(cut.upper >= 1.0, -cut.u, -math.inf)
    at_zero = np.where(cut.lower <= 0.0, 0.0, -math.inf)
    best = np.maximum(at_one, at_zero)
    if not np.isfinite(best).all():
        return -math.inf
    total = math.fsum(best.tolist())
    if (int((at_one > at_zero).sum()) % 2 == 1) != factor.odd:
        total -= float((best - np.minimum(at_one, at_zero)).min())
    return _raised(total, 3, float(np.abs(cut.u).sum()))


def _values(log_values: Floats, cut: Cut) -> Floats:
    """theta, or the indicator of its domain for a feasibility cut."""
    return np.where(log_values > -math.inf, 0.0, -math.inf) if cut.feasibility else log_values


def _gains(sizes: Sequence[int], cut: Cut) -> list[Floats]:
    """Per variable and state -u of the state's indicator, -inf where the box excludes the state."""
    ends = np.cumsum(sizes)[:-1]
    parts = zip(*(np.split(a, ends) for a in (cut.u, cut.lower, cut.upper)), strict=True)
    return [np.where(_allowed(lower, upper), -u, -math.inf) for u, lower, upper in parts]


def _allowed(lower: Floats, upper: Floats) -> Flags:
    """States that can be chosen: one whose indicator has a positive lower bound must be, below 1 it cannot."""
    forced = lower > 0.0
    allowed = upper >= 1.0
    return allowed & forced & (forced.sum() == 1) if forced.any() else allowed


def _largest_raised(total: Floats, size: Floats, roundings: int) -> float:
    """The largest entry, each raised by its own error: a huge negative one does not blur the others."""
    possible = total > -math.inf
    if not possible.any():
        return -math.inf
    return up(float((total[possible] + margin(roundings + 2, 1.0) * size[possible]).max()))


def _raised(value: float, roundings: int, magnitude: float) -> float:
    return value if value == -math.inf else up(value + margin(roundings + 1, magnitude))


# ----------------------------------------------------------------------------------------------------------- ridges
def _ridge(factor: Factor, cut: Cut) -> float:
    assert isinstance(factor, Ridge)
    return _along(factor.coefficients, [(factor.expression.constant, factor.function)], cut)


def _ridge_sum(factor: Factor, cut: Cut) -> float:
    assert isinstance(factor, RidgeSum)
    return _along(factor.coefficients, factor.functions, cut)


def _gated(factor: Factor, cut: Cut) -> float:
    """The better of the gate's two values: 0 leaves -u.x, 1 adds g and costs the gate's own slope."""
    assert isinstance(factor, Gated)
    inner = Cut(cut.u[1:], cut.lower[1:], cut.upper[1:], cut.feasibility)
    closed = _linear_maximum(inner) if cut.lower[0] <= 0.0 else -math.inf
    if cut.upper[0] < 1.0:
        return closed
    opened = _along(factor.coefficients, [(factor.expression.constant, factor.function)], inner)
    return max(closed, up(opened - float(cut.u[0])))


def _along(a: Floats, functions: Sequence[tuple[float, Univariate]], cut: Cut) -> float:
    """max over s = a.x of sum g(s + offset) - us s, plus the box maximum of the rest us a - u of the slope.

    Every us is valid; the one of the largest coefficient leaves a rest of rounding errors where u is parallel to a.
    """
    if cut.feasibility:
        return _linear_maximum(cut)
    j = int(np.argmax(np.abs(a)))
    us = float(cut.u[j]) / float(a[j])
    if not math.isfinite(us):
        return math.inf
    rest = 0.0
    for k, (c, slope) in enumerate(zip(a.tolist(), cut.u.tolist(), strict=True)):
        r = point(us) * point(c) - point(slope)
        rest = up(rest + (r * Interval(float(cut.lower[k]), float(cut.upper[k]))).high)
    s = dot_range(a, cut.lower, cut.upper)
    return up(maximum(functions, us, s.low, s.high) + rest)


def _linear_maximum(cut: Cut) -> float:
    """max of -u.x over the box."""
    return dot_range(-cut.u, cut.lower, cut.upper).high


# ----------------------------------------------------------------------------------------------------------- others
def _spectral(factor: Factor, cut: Cut) -> float:
    assert isinstance(factor, Spectral)
    domain = factor.domain
    exact = largest_product(symmetric(-cut.u, domain.order), domain.lower, domain.upper)
    return min(up(float(exact)), _linear_maximum(cut))


def _black_box(factor: Factor, cut: Cut) -> float:
    """The oracle's bound; a method `conjugate(u, lower, upper)`, where the oracle has one, may give a smaller h."""
    assert isinstance(factor, BlackBox)
    top = float(factor.oracle.upper(cut.lower.copy(), cut.upper.copy()))
    if top == -math.inf:
        return top
    if cut.feasibility:
        return _linear_maximum(cut)
    h = up(top + _linear_maximum(cut))
    own = getattr(factor.oracle, "conjugate", None)
    return min(h, float(own(cut.u, cut.lower.copy(), cut.upper.copy()))) if callable(own) else h


def _concave(factor: Factor, cut: Cut) -> float:
    """The tangent at the witness x0, f(x) <= f(x0) + g.(x - x0), less u.x, over the box; valid for any x0 in it.

    Gradients of compound expressions are exact to a relative `GRADIENT_ERROR` only.
    """
    assert isinstance(factor, Concave)
    if cut.feasibility:
        return _linear_maximum(cut)
    start = 0.5 * (cut.lower + cut.upper) if cut.witness is None else cut.witness
    x = np.clip(start, cut.lower, cut.upper)
    value, slope = factor.value(x), factor.gradient(x)
    if slope is None or not math.isfinite(value):
        return math.inf
    reach = np.maximum(np.abs(cut.lower), np.abs(cut.upper))
    height = value - float(slope @ x) + GRADIENT_ERROR * (1.0 + abs(value) + float(np.abs(slope) @ reach))
    return up(height + dot_range(slope - cut.u, cut.lower, cut.upper).high)


FAMILIES: Mapping[str, Conjugate] = {
    "table": _table,
    "sparse_table": _sparse_table,
    "potts": _potts,
    "parity": _parity,
    "ridge": _ridge,
    "ridge_sum": _ridge_sum,
    "gated": _gated,
    "spectral": _spectral,
    "black_box": _black_box,
    "concave": _concave,
}

# Families whose numbers come from outside; reports name them.
TRUSTED: Mapping[str, str] = {
    "black_box": "the upper bounds of the user's oracle",
    "concave": "values and gradients of the CVXPY expression",
}
