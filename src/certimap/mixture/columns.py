"""Good columns found quickly: hill climbing on c(S) - lambda(S) over sets of items. Never part of a proof.

A climb alternates two moves, both of which only accept what raises the value. The classification step goes to the
parameters theta(S) that attain c(S) and takes every item with

    u_i = w_i (log p + 1 + logdet Lambda / 2) - [tr Lambda A_i + w_i (y_i - mu)' Lambda (y_i - mu)] / 2 - lambda_i >= 0

(A_i the scatter of a group of items): c(S) is a maximum over theta and convex in the size, so that the new set is at
least as good. Where it leaves the set as it is, the best flip of a single item follows, valued exactly:

    M changes by +-[A_i + w_i (b0+n)/(b0+n +- w_i) (y_i - mu)(y_i - mu)'].

Lambda is of the covariance type: `_measure` takes what counts of M. Coordinates are whitened (W0 = I, or a known
Lambda = I), see `kernel.whitening`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.kernel.whitening import FORMS, WhitenedProblem
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.jit import entry, kernel
from certimap.oracles.partition import ColumnRules

Mask = NDArray[np.bool_]

_FULL, _DIAG, _SPHERICAL, _KNOWN = range(len(FORMS))
_MAX_STEPS = 100
_LEAST_GAIN = 1e-10  # smaller ones are rounding


class Cloud(NamedTuple):
    """Items as flat arrays: weights, number of points, means, scatters (none of them: length 0), rules."""

    form: int  # position of the covariance type in FORMS
    weight: FloatArray
    points: IntArray
    mean: FloatArray
    scatter: FloatArray
    prior_mean: FloatArray
    a0: float
    b0: float
    v: float
    Nt: float
    log_det: float
    conflict_start: IntArray
    conflict_items: IntArray
    min_size: int
    max_size: int


def cloud_of(problem: WhitenedProblem, rules: ColumnRules) -> Cloud:
    """Arrays for the climbs; one item per group of the rules."""
    ends = np.concatenate([rules.apart, rules.apart[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=rules.n_groups))])
    scatter = problem.factor @ problem.factor.transpose(0, 2, 1) if problem.factor.any() else problem.factor[:0]
    return Cloud(
        form=FORMS.index(problem.covariance_type),
        weight=problem.weight.copy(),
        points=rules.sizes,
        mean=np.ascontiguousarray(problem.mean),
        scatter=np.ascontiguousarray(scatter),
        prior_mean=problem.prior_mean,
        a0=problem.a0,
        b0=problem.b0,
        v=problem.v,
        Nt=problem.Nt,
        log_det=problem.log_det,
        conflict_start=start.astype(np.int64),
        conflict_items=np.ascontiguousarray(ends[:, 1]),
        min_size=max(rules.min_size, 1),
        max_size=rules.max_size,
    )


@entry
def column_values(cloud: Cloud, columns: Mask) -> FloatArray:
    """c(S) of sets of items."""
    D = cloud.mean.shape[1]
    centre, M, L = np.empty(D), np.empty((D, D)), np.empty((D, D))
    values = np.empty(len(columns))
    for k in range(len(columns)):
        n = _moments(cloud, columns[k], centre, M)
        values[k] = _value(cloud, n, _measure(cloud, n, M, L))
    return values


@entry
def climb(cloud: Cloud, prices: FloatArray, columns: Mask) -> FloatArray:
    """Climb from every column, in place; returns the values c(S) - lambda(S), -inf where the rules were not met."""
    items, D = cloud.mean.shape
    centre, M, L, T = np.empty(D), np.empty((D, D)), np.empty((D, D)), np.empty((D, D))
    u, distance, trial = np.empty(items), np.empty(items), np.empty(items, dtype=np.bool_)
    constrained = len(cloud.conflict_items) > 0 or cloud.min_size > 1 or cloud.max_size < cloud.points.sum()
    values = np.empty(len(columns))
    for k in range(len(columns)):
        mask = columns[k]
        if constrained:
            _repair(cloud, mask)
        n = _moments(cloud, mask, centre, M)
        value = _value(cloud, n, _measure(cloud, n, M, L)) - _price(prices, mask)
        for _ in range(_MAX_STEPS):
            _gains(cloud, prices, n, centre, L, u, distance)
            _select(cloud, u, trial, constrained)
            if _take(cloud, prices, mask, trial, value, centre, M, L):
                n = _moments(cloud, mask, centre, M)
                value = _value(cloud, n, _measure(cloud, n, M, L)) - _price(prices, mask)
                continue
            n = _moments(cloud, mask, centre, M)
            base = _measure(cloud, n, M, L)
            item = _best_flip(cloud, prices, mask, n, value, base, centre, M, T, distance)
            if item < 0:
                break
            mask[item] = not mask[item]
            n = _moments(cloud, mask, centre, M)
            value = _value(cloud, n, _measure(cloud, n, M, L)) - _price(prices, mask)
        count = 0
        for i in range(items):
            if mask[i]:
                count += cloud.points[i]
        values[k] = value if cloud.min_size <= count <= cloud.max_size else -np.inf
    return values


@kernel
def _take(
    cloud: Cloud,
    prices: FloatArray,
    mask: Mask,
    trial: Mask,
    value: float,
    centre: FloatArray,
    M: FloatArray,
    L: FloatArray,
) -> bool:
    """Go to the trial set if it is another one and worth more."""
    same = True
    for i in range(len(mask)):
        same = same and mask[i] == trial[i]
    if same:
        return False
    n = _moments(cloud, trial, centre, M)
    if _value(cloud, n, _measure(cloud, n, M, L)) - _price(prices, trial) <= value + _LEAST_GAIN:
        return False
    mask[:] = trial
    return True


@kernel
def _moments(cloud: Cloud, mask: Mask, centre: FloatArray, M: FloatArray) -> float:
    """n; fills the posterior mean and the lower triangle of M_S, in two passes against cancellation."""
    D = len(centre)
    n = 0.0
    for a in range(D):
        centre[a] = cloud.b0 * cloud.prior_mean[a]
    for i in range(len(mask)):
        if mask[i]:
            n += cloud.weight[i]
            for a in range(D):
                centre[a] += cloud.weight[i] * cloud.mean[i, a]
    for a in range(D):
        centre[a] /= cloud.b0 + n
    for a in range(D):
        shift = cloud.b0 * (cloud.prior_mean[a] - centre[a])
        for b in range(a + 1):
            M[a, b] = (1.0 if a == b else 0.0) + shift * (cloud.prior_mean[b] - centre[b])
    grouped = len(cloud.scatter) > 0
    for i in range(len(mask)):
        if mask[i]:
            for a in range(D):
                left = cloud.weight[i] * (cloud.mean[i, a] - centre[a])
                for b in range(a + 1):
                    M[a, b] += left * (cloud.mean[i, b] - centre[b])
                    if grouped:
                        M[a, b] += cloud.scatter[i, a, b]
    return n


@kernel
def _measure(cloud: Cloud, n: float, M: FloatArray, L: FloatArray) -> float:
    """log|M| in the sense of the covariance type, or tr M - D of a known one; fills L so that Lambda = nu (L L')^-1."""
    D = len(M)
    if cloud.form == _FULL:
        return _log_det(M, L)
    trace = 0.0
    for a in range(D):
        trace += M[a, a]
    L[:] = 0.0
    total = 0.0
    for a in range(D):
        spread = M[a, a] if cloud.form == _DIAG else trace / D if cloud.form == _SPHERICAL else cloud.v + n
        L[a, a] = math.sqrt(max(spread, 1e-300))
        total += 2.0 * math.log(L[a, a])
    return trace - D if cloud.form == _KNOWN else total


@kernel
def _log_det(M: FloatArray, L: FloatArray) -> float:
    """Cholesky factor of M and the logarithm of its determinant."""
    total = 0.0
    for a in range(len(M)):
        for b in range(a + 1):
            s = M[a, b]
            for k in range(b):
                s -= L[a, k] * L[b, k]
            if a == b:
                L[a, a] = math.sqrt(max(s, 1e-300))
                total += 2.0 * math.log(L[a, a])
            else:
                L[a, b] = s / L[b, b]
    return total


@kernel
def _value(cloud: Cloud, n: float, measure: float) -> float:
    """c(S) from n and the measure of M_S."""
    D = cloud.mean.shape[1]
    m, nu = n + cloud.a0 - 1.0, cloud.v + n
    value: float = 0.5 * D * math.log(cloud.b0) - 0.5 * nu * cloud.log_det
    if m > 0.0:
        value += m * math.log(m / cloud.Nt)
    if cloud.form == _KNOWN:
        return value - 0.5 * measure
    value -= 0.5 * nu * measure
    if nu > 0.0:
        value += 0.5 * D * nu * (math.log(nu) - 1.0)
    return value


@kernel
def _price(prices: FloatArray, mask: Mask) -> float:
    total = 0.0
    for i in range(len(mask)):
        if mask[i]:
            total += prices[i]
    return total


@kernel
def _gains(
    cloud: Cloud, prices: FloatArray, n: float, centre: FloatArray, L: FloatArray, u: FloatArray, distance: FloatArray
) -> None:
    """u_i at theta(S), and (y_i - mu)' M^-1 (y_i - mu)."""
    D = len(centre)
    m, nu = n + cloud.a0 - 1.0, cloud.v + n
    level = (math.log(m / cloud.Nt) if m > 0.0 else -700.0) + 1.0 - 0.5 * cloud.log_det
    for a in range(D):
        level -= math.log(L[a, a])
    level += 0.5 * D * math.log(nu) if nu > 0.0 else -700.0
    x = np.empty(D)
    for i in range(len(u)):
        for a in range(D):
            x[a] = cloud.mean[i, a] - centre[a]
        distance[i] = _square(L, x)
        spread = cloud.weight[i] * distance[i]
        if len(cloud.scatter) > 0:
            for k in range(D):
                spread += _trace_part(L, cloud.scatter[i], k)
        u[i] = cloud.weight[i] * level - 0.5 * nu * spread - prices[i]


@kernel
def _square(L: FloatArray, x: FloatArray) -> float:
    """x' (L L')^-1 x; overwrites x."""
    total = 0.0
    for a in range(len(x)):
        for b in range(a):
            x[a] -= L[a, b] * x[b]
        x[a] /= L[a, a]
        total += x[a] * x[a]
    return total


@kernel
def _trace_part(L: FloatArray, A: FloatArray, k: int) -> float:
    """Entry k of the diagonal of (L L')^-1 A."""
    D = len(L)
    x = np.zeros(D)
    x[k] = 1.0
    for a in range(D):
        for b in range(a):
            x[a] -= L[a, b] * x[b]
        x[a] /= L[a, a]
    for a in range(D - 1, -1, -1):
        for b in range(a + 1, D):
            x[a] -= L[b, a] * x[b]
        x[a] /= L[a, a]
    total = 0.0
    for a in range(D):
        total += x[a] * A[a, k]
    return total


@kernel
def _clashes(cloud: Cloud, mask: Mask, item: int) -> bool:
    clash = False
    for e in range(cloud.conflict_start[item], cloud.conflict_start[item + 1]):
        clash = clash or mask[cloud.conflict_items[e]]
    return clash


@kernel
def _select(cloud: Cloud, u: FloatArray, chosen: Mask, constrained: bool) -> None:
    """The items of u >= 0; with rules, best first as long as they admit it, then on up to the smallest size."""
    if not constrained:
        for i in range(len(u)):
            chosen[i] = u[i] >= 0.0
        return
    chosen[:] = False
    count = 0
    for i in np.argsort(-u / cloud.points):
        if u[i] < 0.0 and count >= cloud.min_size:
            break
        if count + cloud.points[i] <= cloud.max_size and not _clashes(cloud, chosen, i):
            chosen[i] = True
            count += cloud.points[i]


@kernel
def _repair(cloud: Cloud, mask: Mask) -> None:
    """Drop items that clash or exceed the largest size, then fill up to the smallest, all in the order of the items."""
    count = 0
    for i in range(len(mask)):
        if mask[i]:
            mask[i] = False
            if count + cloud.points[i] <= cloud.max_size and not _clashes(cloud, mask, i):
                mask[i] = True
                count += cloud.points[i]
    for i in range(len(mask)):
        if count >= cloud.min_size:
            return
        if not mask[i] and count + cloud.points[i] <= cloud.max_size and not _clashes(cloud, mask, i):
            mask[i] = True
            count += cloud.points[i]


@kernel
def _best_flip(
    cloud: Cloud,
    prices: FloatArray,
    mask: Mask,
    n: float,
    value: float,
    base: float,
    centre: FloatArray,
    M: FloatArray,
    T: FloatArray,
    distance: FloatArray,
) -> int:
    """The item whose flip raises the value most; -1 if none does."""
    D = len(centre)
    L = np.empty((D, D))
    inside = _price(prices, mask)
    count = 0
    for i in range(len(mask)):
        if mask[i]:
            count += cloud.points[i]
    best, found = value + _LEAST_GAIN, -1
    grouped = len(cloud.scatter) > 0
    for i in range(len(mask)):
        sign = -1.0 if mask[i] else 1.0
        size = count + int(sign) * cloud.points[i]
        if size < cloud.min_size or size > cloud.max_size or (sign > 0.0 and _clashes(cloud, mask, i)):
            continue
        w = cloud.weight[i]
        scale = sign * w * (cloud.b0 + n) / (cloud.b0 + n + sign * w)
        if grouped or cloud.form != _FULL:
            for a in range(D):
                left = scale * (cloud.mean[i, a] - centre[a])
                for b in range(a + 1):
                    T[a, b] = M[a, b] + left * (cloud.mean[i, b] - centre[b])
                    if grouped:
                        T[a, b] += sign * cloud.scatter[i, a, b]
            measure = _measure(cloud, n + sign * w, T, L)
        else:
            measure = base + math.log(max(1.0 + scale * distance[i], 1e-300))
        flipped = _value(cloud, n + sign * w, measure) - inside - sign * prices[i]
        if flipped > best:
            best, found = flipped, i
    return found
