"""What must hold of every set of a box: which groups are in or out, and where its parameters can be.

Groups. Let no admitted set have a reduced value above P, let S have at least P - g, and u_i at theta(S), its level
included: u_i = w_i (log(m/Nt) + 1) + (w_i log det Lambda - sum_d tau_d [...])/2 - lambda_i. As phi is convex and the
density at theta(S) is one that S \\ i may use,

    c(S \\ i) - lambda(S \\ i) >= c(S) - lambda(S) - u_i   for i in S,   c(S + i) - lambda(S + i) >= ... + u_i   else,

so that u_i >= -g inside and u_i <= g outside, wherever the set with i removed or added is admitted too.

Parameters of any set with I in S in I + F and k1 <= |S \\ I| <= k2:
- mean: for any t, mu_d <= t + max over k = k1, k2 of [b0 (o-t) + sum_I w (y-t) + sum_F w max(0, y-t)]/(b0+n_I+k);
- nu/tau_d is the d-th pivot of M_S (diag: its diagonal entry; spherical: tr M_S/D), between those of M_I and M_(I+F);
- full: with residuals e0 at the reference, M' their second moments, s_j = nu/tau_j, g_d the slopes relative to it:
  s_j g_dj = q_dj - sum_{j<k<d} g_dk q_kj,   q_dj = M'_dj - sum_{i<j} g_ji M'_di   (both are covariances with e_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.verification.gaussian_bound import OUTWARD, Data, Frame, Rows, phi, relative_slopes
from certimap.verification.gaussian_boxes import FREE, IN, Boxes, slope
from certimap.verification.gaussian_values import Kind
from certimap.verification.intervals import UNIT
from certimap.verification.logarithm import log_error, logarithm

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]


def group_bounds(data: Data, boxes: Boxes, frame: Frame) -> tuple[Floats, Floats]:
    """Lower and upper bounds of u_i over the box."""
    D, w = data.D, data.weight
    level_lo, level_hi = (_level(data, n) for n in (boxes.lo[0], boxes.hi[0]))
    half_log = 0.5 * sum((log - 1.0 for log in frame.log_tau), np.zeros(()))
    high = w * (level_hi + half_log) - data.price
    low = w * level_lo - data.price
    error = np.zeros(())
    highs, lows = list[Pair](), list[Pair]()
    for d in range(D):
        least, most = _squares(data, frame, d)
        tau, lo, hi = frame.tau[d], frame.tau_lo[d], frame.tau_hi[d]
        # log tau <= log tau0 - 1 + tau/tau0; the loss in small squares is less than what 1 + eta adds to w/tau0.
        line = w * ((1.0 + data.eta) / tau) - least
        highs.append((line * (lo * (1.0 - 16.0 * UNIT)), line * (hi * (1.0 + 16.0 * UNIT))))
        lows.append(
            (w * frame.log_lo[d] - most * (lo * (1.0 + data.eta)), w * frame.log_hi[d] - most * (hi * (1.0 + data.eta)))
        )
        logs = log_error(frame.log_tau[d]) + log_error(frame.log_lo[d]) + log_error(frame.log_hi[d])
        error = error + logs + 64.0 * UNIT * (hi / tau + np.abs(frame.log_lo[d]) + np.abs(frame.log_hi[d]))
    if data.kind is Kind.SPHERICAL:  # every feature is at the same end
        highs, lows = [_added(highs)], [_added(lows)]
    high += 0.5 * sum((np.maximum(*ends) for ends in highs), np.zeros(()))
    low += 0.5 * sum((np.minimum(*ends) for ends in lows), np.zeros(()))
    levels = 64.0 * UNIT * (2.0 + np.abs(level_lo) + np.abs(level_hi))
    error = data.heaviest * (error + levels) + 64.0 * UNIT * data.dearest
    return low - error, high + error


def _added(pairs: list[Pair]) -> Pair:
    return sum((a for a, _ in pairs), np.zeros(())), sum((b for _, b in pairs), np.zeros(()))


def _level(data: Data, n: Floats) -> Floats:
    """log(m/Nt) + 1; far below any other level where m = 0."""
    m = n + data.cloud.a0 - 1.0
    return np.where(m > 0.0, logarithm(np.where(m > 0.0, m, 1.0)) - data.log_total + 1.0, -1e6)


def _squares(data: Data, frame: Frame, d: int) -> Pair:
    """Bounds of w e_d(y)^2 + sum_k e_d(column k)^2 over the box, up to a few roundings."""
    reach = frame.half[d] + sum(
        ((np.abs(frame.b[slope(d, j)]) + frame.half_b[slope(d, j)]) * frame.half[j] for j in range(d)), np.zeros(())
    )
    radius = reach * OUTWARD + frame.blur[d]
    for j in range(d):
        radius = radius + frame.offset[j] * (frame.half_b[slope(d, j)] * OUTWARD)
    size = np.abs(frame.e[d])
    least, most = data.weight * np.maximum(size - radius, 0.0) ** 2, data.weight * (size + radius) ** 2
    for column, e in zip(data.columns, frame.e_columns, strict=True):
        radius = frame.blur[d] + sum(
            (np.abs(column[j]) * (frame.half_b[slope(d, j)] * OUTWARD) for j in range(d)), np.zeros(())
        )
        size = np.abs(e[d])
        least, most = least + np.maximum(size - radius, 0.0) ** 2, most + (size + radius) ** 2
    return least, most


@dataclass(frozen=True, eq=False)
class Sums:
    """Weights of the groups inside and free, and sums of w y and second moments of I and of I + F, with the prior's."""

    inside: Floats
    free: Floats
    n_in: Floats
    n_free: Floats
    first: Floats  # (D, B): b0 o + sum_I w y
    second_in: Floats  # (pairs, B), pairs as in np.tril_indices
    second_all: Floats
    first_all: Floats


class Moments:
    """Sums over sets of groups by one matrix product."""

    def __init__(self, data: Data) -> None:
        cloud = data.cloud
        self._data = data
        a, b = np.tril_indices(data.D)
        second = cloud.weight[:, None] * cloud.y[:, a] * cloud.y[:, b]
        second = second + (cloud.columns[:, :, a] * cloud.columns[:, :, b]).sum(axis=0)
        self._features = np.concatenate([(cloud.weight[:, None] * cloud.y).T, second.T])
        origin = cloud.b0 * cloud.origin
        covariance = (a == b) & (cloud.kind is not Kind.KNOWN)
        self._prior = np.concatenate([origin, covariance + origin[a] * cloud.origin[b]])[:, None]

    def of(self, boxes: Boxes) -> Sums:
        data, D = self._data, self._data.D
        inside, free = (boxes.status == IN).astype(float), (boxes.status == FREE).astype(float)
        with_in = self._features @ inside + self._prior
        with_all = self._features @ free + with_in
        w = data.cloud.weight
        return Sums(inside, free, w @ inside, w @ free, with_in[:D], with_in[D:], with_all[D:], with_all[:D])


def contract_mean(data: Data, boxes: Boxes, sums: Sums) -> None:
    """Shrink the mean's box in place."""
    cloud, free = data.cloud, sums.free
    k1 = np.maximum(boxes.lo[0] - sums.n_in, 0.0)
    k2 = np.minimum(boxes.hi[0] - sums.n_in, sums.n_free)
    mass = cloud.b0 + sums.n_in
    for d in range(data.D):
        row = 1 + d
        order = np.argsort(cloud.y[:, d], kind="stable")[::-1]
        y = cloud.y[order, d][:, None]
        weight = free[order] * cloud.weight[order, None]
        counted, summed = np.cumsum(weight, axis=0), np.cumsum(weight * y, axis=0)
        pad = 16.0 * data.rho * data.reach[d] * (1.0 + cloud.weight.sum() / (mass + k1))
        for sign in (1.0, -1.0):
            if sign < 0.0:  # the other end is the largest mean of -y
                y, weight = -y[::-1], weight[::-1]
                counted = counted[-1] - counted[::-1] + weight
                summed = -(summed[-1] - summed[::-1]) + weight * y
            t = _threshold(y, counted, summed, sign * sums.first[d], mass, k1, k2)
            excess = np.einsum("ib,ib->b", weight, np.maximum(y - t, 0.0))
            gain = sign * sums.first[d] - mass * t + excess
            most = t + np.where(gain > 0.0, gain / (mass + k1), gain / (mass + k2)) + pad
            if sign > 0.0:
                boxes.hi[row] = np.minimum(boxes.hi[row], most)
            else:
                boxes.lo[row] = np.maximum(boxes.lo[row], -most)


def _threshold(
    y: Floats, counted: Floats, summed: Floats, first: Floats, mass: Floats, k1: Floats, k2: Floats
) -> Floats:
    """Where the largest mean stops taking groups: any value is valid, this one is best for equal weights."""
    mean = (first + summed) / (mass + counted)
    allowed = (counted >= k1 - 1e-9) & (counted <= k2 + 1e-9)
    candidate = np.where(allowed, mean, -np.inf)
    at = candidate.argmax(axis=0)
    best = np.take_along_axis(candidate, at[None], axis=0)[0]
    here, following = y[at, 0], y[np.minimum(at + 1, len(y) - 1), 0]
    t = np.clip(best, following, np.maximum(here, following))
    start = first / mass  # taking none
    return np.where((k1 <= 0.0) & (start >= best), start, t)


@dataclass(frozen=True, eq=False)
class Pivots:
    """Bounds of s_d = nu/tau_d over the sets of the box."""

    low: Rows
    high: Rows

    def take(self, which: NDArray[np.bool_]) -> Pivots:
        return Pivots([s[which] for s in self.low], [s[which] for s in self.high])


def pivots_of(data: Data, sums: Sums) -> Pivots:
    """From M_I and M_(I+F); not for a known precision."""
    mass = data.cloud.b0 + sums.n_in
    inner = _centred(sums.second_in, sums.first, mass)
    outer = _centred(sums.second_all, sums.first_all, mass + sums.n_free)
    diagonal = [slope(d + 1, d) for d in range(data.D)]
    largest = sums.second_all[diagonal].max(axis=0)
    # M >= I: an error of size x in every entry changes pivots by a relative D x; elimination adds its own.
    blur = data.D**2 * 64.0 * data.rho * largest
    sound = blur < 0.25
    low = [np.where(sound, np.maximum(s * (1.0 - blur), 1.0), 1.0) for s in _pivots(data, inner)]
    high = [np.where(sound, s * (1.0 + 2.0 * blur), np.inf) for s in _pivots(data, outer)]
    high = [np.minimum(s, most * OUTWARD) for s, most in zip(high, _diagonal(data, sums.second_all), strict=True)]
    return Pivots(low, high)


def set_bounds(data: Data, sums: Sums) -> Floats:
    """Upper bounds of c~ - lambda~ of boxes without free groups: single sets."""
    cloud, half, n, log_b0 = data.cloud, 0.5 * data.D, sums.n_in, data.log_b0
    value = phi(data, n) + half * (log_b0 + log_error(log_b0)) - cloud.price @ sums.inside
    size = np.abs(phi(data, n)) + half * abs(log_b0) + np.abs(cloud.price) @ sums.inside
    if data.kind is Kind.KNOWN:
        # A difference of second moments, summed like them.
        second = sums.second_in[[slope(d + 1, d) for d in range(data.D)]].sum(axis=0)
        less = (sums.first**2).sum(axis=0) / (cloud.b0 + n)
        return np.asarray(value - 0.5 * np.maximum(second - less, 0.0) + data.rho * (size + 2.0 * second))
    nu = cloud.v + n
    logs, log_nu = logarithm(np.array(pivots_of(data, sums).low)), logarithm(nu)
    log_det = (logs - log_error(logs)).sum(axis=0)
    value = value + half * nu * (log_nu + log_error(log_nu) - 1.0) - 0.5 * nu * log_det
    return np.asarray(value + data.rho * (size + half * nu * (1.0 + np.abs(log_nu)) + nu * np.abs(log_det)))


def _centred(second: Floats, first: Floats, mass: Floats) -> Floats:
    a, b = np.tril_indices(len(first))
    return np.asarray(second - first[a] * first[b] / mass)


def _pivots(data: Data, M: Floats) -> Rows:
    """What nu/tau is, of a positive definite matrix given by its lower triangle."""
    D = data.D
    if data.kind is not Kind.FULL:
        return _diagonal(data, M)
    entry = {(a, b): M[slope(a + 1, b)] for a in range(D) for b in range(a + 1)}
    pivots = []
    for k in range(D):
        pivot = np.maximum(entry[k, k], 0.5)
        pivots.append(pivot)
        for a in range(k + 1, D):
            share = entry[a, k] / pivot
            for b in range(k + 1, a + 1):
                entry[a, b] = entry[a, b] - share * entry[b, k]
    return pivots


def _diagonal(data: Data, M: Floats) -> Rows:
    """M_dd; tr M/D in the place of each where all tau are equal."""
    diagonal = [M[slope(d + 1, d)] for d in range(data.D)]
    return [sum(diagonal, np.zeros(())) / data.D] * data.D if data.kind is Kind.SPHERICAL else diagonal


def contract_spread(data: Data, boxes: Boxes, pivots: Pivots) -> None:
    """Shrink tau and n in place: s_d tau_d = v + n."""
    v, n1, n2 = data.cloud.v, boxes.lo[0], boxes.hi[0]
    for d in data.layout.free_tau:
        lo, hi = boxes.lo[1 + data.D + d], boxes.hi[1 + data.D + d]
        np.minimum(hi, (v + n2) / pivots.low[d] * OUTWARD, out=hi)
        np.maximum(lo, (v + n1) / (pivots.high[d] * OUTWARD), out=lo)
        least, most = lo * pivots.low[d] / OUTWARD - v, hi * pivots.high[d] * OUTWARD - v
        room = 8.0 * UNIT * (v + 1.0)
        if data.cloud.integral:
            least, most, room = np.ceil(least - room), np.floor(most + room), 0.0
        np.maximum(n1, least - room, out=n1)
        np.minimum(n2, most + room, out=n2)
    data.layout.join_tau(boxes.lo)
    data.layout.join_tau(boxes.hi)


def contract_slopes(data: Data, boxes: Boxes, frame: Frame, pivots: Pivots) -> None:
    """Shrink the slopes' box in place."""
    D, cloud = data.D, data.cloud
    if D == 1 or data.kind is not Kind.FULL:
        return
    M = _residual_moments(data, boxes, frame)
    bound = relative_slopes(data, frame)
    g: list[Pair] = [(-x, x) for x in bound]
    q: dict[tuple[int, int], Pair] = {}
    for d in range(1, D):
        for j in range(d):
            terms = [M[d, j], *(_minus(_times(g[slope(j, i)], M[d, i])) for i in range(j))]
            q[d, j] = _sum(terms)
        for j in reversed(range(d)):
            terms = [q[d, j], *(_minus(_times(g[slope(d, k)], q[k, j])) for k in range(j + 1, d))]
            low = np.maximum(pivots.low[j], (cloud.v + boxes.lo[0]) / (boxes.hi[1 + D + j] * OUTWARD))
            high = np.minimum(pivots.high[j], (cloud.v + boxes.hi[0]) / boxes.lo[1 + D + j] * OUTWARD)
            lo, hi = _over(_sum(terms), low, np.maximum(low, high))
            old = g[slope(d, j)]
            g[slope(d, j)] = (np.maximum(lo, old[0]), np.minimum(hi, old[1]))
        for j in range(d):
            row = 1 + 2 * D + slope(d, j)
            b0 = frame.b[slope(d, j)]
            moved = [_minus(_times(g[slope(d, k)], (frame.b[slope(k, j)],) * 2)) for k in range(j + 1, d)]
            lo, hi = _sum([(b0, b0), g[slope(d, j)], *moved])
            np.maximum(boxes.lo[row], lo, out=boxes.lo[row])
            np.minimum(boxes.hi[row], hi, out=boxes.hi[row])


def _residual_moments(data: Data, boxes: Boxes, frame: Frame) -> dict[tuple[int, int], Pair]:
    """Bounds of M'_dj, j < d: second moments of e0 about the mean of S."""
    D, cloud = data.D, data.cloud
    inside, free = (boxes.status == IN).astype(float), (boxes.status == FREE).astype(float)
    weighted_in, weighted_free = data.weight * inside, data.weight * free
    origin = [frame.residual(d, [cloud.origin[j] - frame.mean[j] for j in range(D)]) for d in range(D)]
    unit = [[(-frame.b[slope(d, j)] if j < d else np.ones(())) for j in range(d + 1)] for d in range(D)]
    reach = [
        (frame.half[d] + sum((np.abs(frame.b[slope(d, j)]) * frame.half[j] for j in range(d)), np.zeros(()))) * OUTWARD
        for d in range(D)
    ]
    mass, weight = cloud.b0 + boxes.hi[0], cloud.b0 + float(cloud.weight.sum())
    size = []
    for d in range(D):
        square = np.einsum("ib,ib->b", weighted_in + weighted_free, frame.e[d] ** 2)
        for e in frame.e_columns:
            square = square + np.einsum("ib,ib->b", inside + free, e[d] ** 2)
        size.append(square + cloud.b0 * origin[d] ** 2 + sum((x**2 for x in unit[d]), np.zeros(())))
    moments: dict[tuple[int, int], Pair] = {}
    for d in range(1, D):
        for j in range(d):
            product = frame.e[d] * frame.e[j]
            total = np.einsum("ib,ib->b", weighted_in, product) + cloud.b0 * origin[d] * origin[j]
            total = total + sum((unit[d][k] * unit[j][k] for k in range(j + 1)), np.zeros(()))
            product = product * data.weight
            for e in frame.e_columns:
                pair = e[d] * e[j]
                total = total + np.einsum("ib,ib->b", inside, pair)
                product = product + pair
            plus = np.einsum("ib,ib->b", free, np.maximum(product, 0.0))
            minus = np.einsum("ib,ib->b", free, np.minimum(product, 0.0))
            error = 2.0 * data.eta * (size[d] + size[j])
            error = error + (weight + cloud.y.shape[0] * D) * (frame.blur[d] ** 2 + frame.blur[j] ** 2) / data.eta
            shift = mass * reach[d] * reach[j] * OUTWARD
            moments[d, j] = (total + minus - shift - error, total + plus + shift + error)
    return moments


def _times(a: Pair, b: Pair) -> Pair:
    ends = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return np.minimum(np.minimum(*ends[:2]), np.minimum(*ends[2:])), np.maximum(
        np.maximum(*ends[:2]), np.maximum(*ends[2:])
    )


def _minus(a: Pair) -> Pair:
    return -a[1], -a[0]


def _sum(terms: list[Pair]) -> Pair:
    """With room for the roundings of the terms and of the sum."""
    low, high, size = np.zeros(()), np.zeros(()), np.zeros(())
    for lo, hi in terms:
        low, high, size = low + lo, high + hi, size + np.maximum(np.abs(lo), np.abs(hi))
    return low - 32.0 * UNIT * size, high + 32.0 * UNIT * size


def _over(a: Pair, low: Floats, high: Floats) -> Pair:
    """Quotient by [low, high] > 0."""
    return (
        np.where(a[0] >= 0.0, a[0] / high / OUTWARD, a[0] / low * OUTWARD),
        np.where(a[1] >= 0.0, a[1] / low * OUTWARD, a[1] / high / OUTWARD),
    )
